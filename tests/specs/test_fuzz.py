"""Whatever the readers are given: a value, or one message fit to print; never another exception.

``HYPOTHESIS_PROFILE=thorough`` tries 5,000 texts in each test.
"""

import json
import re
from datetime import date, datetime, time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.lark import from_lark
from lark import Lark

from isolitmus import specs as package
from isolitmus.checker.execution.run_result import RunResult, run
from isolitmus.checker.judge.graph_semantics import judge
from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.checker.render.verdicts import serial_words, verdict_words
from isolitmus.checker.strategies import transactions
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.frame import Frame
from isolitmus.model.history import History
from isolitmus.model.litmus import Litmus
from isolitmus.model.relation import Relation
from isolitmus.model.sql.schema import Column, Schema
from isolitmus.model.vocabulary import RELATIONS, SETS
from isolitmus.specs import level, litmus, protocol
from isolitmus.specs.files.catalogue import litmus_names
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.files.scope_file import read_scope
from isolitmus.specs.files.spec_catalogue import levels, protocols
from isolitmus.specs.files.toml_reader import read_toml
from isolitmus.specs.language import parser as cat
from isolitmus.specs.sql.statements import read_statement

HOME = Path(package.__file__).parent
SPECS = [path.read_text("utf-8") for path in sorted(HOME.rglob("*.cat"))]
LITMUS = [path.read_text("utf-8") for path in sorted((HOME / "litmus").rglob("*.toml"))]
SCOPES = [path.read_text("utf-8") for path in sorted((HOME / "scopes").rglob("*.toml"))]


def value_of(reader, *arguments):
    """What a reader gives, or None where it refuses."""
    try:
        return reader(*arguments)
    except IsolitmusError as error:
        assert str(error).strip()
        return None


# Texts


def pieces(tokens):
    """What a mutation puts into a text: a token, any text, or a token so often that it is too
    deep.
    """
    return st.one_of(
        st.sampled_from(tokens),
        st.text(max_size=3),
        st.builds(lambda token, n: token * n, st.sampled_from(tokens), st.sampled_from([2, 600])),
    )


@st.composite
def mutants(draw, texts, tokens):
    """A text with some stretches cut out and others put in, or two texts in one."""
    text = draw(st.sampled_from(texts))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        text = text[:start] + draw(pieces(tokens)) + text[end:]
    if draw(st.integers(0, 9)) == 0:
        other = draw(st.sampled_from(texts))
        text = text[: len(text) // 2] + other[len(other) // 2 :]
    return text


WORD = re.compile(r"\w+|\s+|[^\w\s]")
NUMBERS = ["0", "1", "2", "100", "2147483647", "2147483648", "9223372036854775807"]
SIGNS = ["=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "%", ",", "(", ")", "."]
WORDS = [
    "t", "u", "id", "part", "x", "a", "b", "delete", "insert", "NULL", "TRUE", "AND", "OR", "NOT", "IN",
    "IS", "SELECT", "FROM", "WHERE", "VALUES", "count", "sum", "min", "start", "commit", "INT", "STRING",
    "BIGINT", "T1", "T2", "committed", "x0", "x1", "x2", "y2", "r", "w", "serializable", "causal",
]  # fmt: skip


@st.composite
def respelled(draw, text, most=2):
    """A text with a word, number or sign or two in the place of another: often still right."""
    tokens = WORD.findall(text)
    for _ in range(draw(st.integers(1, most)) if tokens else 0):
        k = draw(st.integers(0, len(tokens) - 1))
        if tokens[k].isdigit():
            tokens[k] = draw(st.sampled_from(NUMBERS))
        elif tokens[k].isalnum():
            tokens[k] = draw(st.sampled_from([*WORDS, *(w for w in tokens if w.isalnum())]))
        elif not tokens[k].isspace():
            tokens[k] = draw(st.sampled_from(SIGNS))
    return "".join(tokens)


def soups(tokens, most=25):
    """Tokens in any order."""
    return st.lists(st.sampled_from(tokens), max_size=most).map(" ".join)


# Specs

CAT = (HOME / "language" / "cat.lark").read_text("utf-8")
CAT_TOKENS = [
    *RELATIONS, *SETS, "acyclic", "empty", "irreflexive", "as", "x", "let", "=", "show", "with",
    "from", "versions", "include", '"stdlib.cat"', '"Title"', "|", ";", "\\", "&", "+", "*", "?",
    "^-1", "~", "(", ")", "[", "]", "(*", "*)", "\n", "rec", "0", "_", "{", "'",
]  # fmt: skip
CAT_NAMES = {
    "RELATION": st.sampled_from([f" {name} " for name in (*sorted(RELATIONS), "a", "versions")]),
    "SET": st.sampled_from([f" {name} " for name in (*sorted(SETS), "A")]),
    "STRING": st.sampled_from([' "T" ', ' "stdlib.cat" ']),
}


def grammatical(start):
    """Texts of a symbol of the grammar, wrong in names and types only; blanks stand beside names.

    Each name counts several times (with more blanks), so that most expressions come to an end.
    """
    grammar = "\n".join(line for line in CAT.splitlines() if not line.startswith("%ignore"))
    names = " | ".join(f'"{" " * n}{name} "' for name in sorted(RELATIONS) for n in range(1, 6))
    parser = Lark(grammar.replace("?atom: RELATION", f"?atom: {names}"), parser="lalr", start=start)
    used = {terminal.name for terminal in parser.terminals}
    explicit = {name: values for name, values in CAT_NAMES.items() if name in used}
    return from_lark(parser, start=start, explicit=explicit)


def read_spec(text):
    """A text that reads is a spec that judges and prints."""
    spec = value_of(cat.read, text, "fuzzed")
    if spec is not None:
        assert all(map(str, (*spec.clauses, *spec.axioms)))
        some = Relation.of(3, [(0, 1), (1, 2), (2, 0)])
        frame = Frame(("a", "b", "c"), dict.fromkeys(RELATIONS, some), dict.fromkeys(SETS, 0b011))
        assert verdict_words(judge(frame, spec), spec)


@pytest.mark.slow
@given(
    st.one_of(
        grammatical("expr").map('"T" acyclic {} as x'.format),
        st.lists(grammatical("statement"), max_size=3).map(lambda parts: '"T" ' + " ".join(parts)),
    )
)
def test_specs_of_the_grammar(text):
    read_spec(text)


@given(st.one_of(mutants(SPECS, CAT_TOKENS), soups(CAT_TOKENS).map('"T" '.__add__)))
def test_specs_of_any_text(text):
    read_spec(text)


# SQL

SCHEMAS = {
    "t": Schema("t", (Column("id", "INT"), Column("part", "INT"), Column("x", "INT")), ("part",)),
    "u": Schema("u", (Column("b", "BIGINT"), Column("s", "STRING"), Column("d", "DATE"))),
}
STATEMENTS = sorted(
    {s.sql for name in litmus_names() if isinstance(test := litmus(name), Litmus)
     for s in (*test.init, *test.transactions.values())}
)  # fmt: skip
SQL_TOKENS = [
    "SELECT", "INSERT", "INTO", "OVERWRITE", "VALUES", "DELETE", "FROM", "WHERE", "UPDATE", "SET",
    "MERGE", "USING", "ON", "WHEN", "MATCHED", "NOT", "THEN", "UNION", "ALL", "DISTINCT", "OPTIMIZE",
    "ZORDER", "BY", "GROUP", "ORDER", "LIMIT", "JOIN", "AS", "AND", "OR", "IN", "IS", "NULL", "TRUE",
    "DATE", "CAST", "CASE", "END", "EXISTS", "BETWEEN", "LIKE", "INTERVAL", "WITH", "PARTITION",
    "count", "sum", "min", "max", "t", "u", "id", "part", "x", "b", "s", "d", "t.id", "`t`", "*",
    "(", ")", ",", ";", ".", "=", "<>", "<", "<=", "<=>", "+", "-", "/", "%", "||", ":", "::", "[",
    "]", "{", "}", "0", "1", "-1", "1.5", "1e3", "2147483648", "9223372036854775808", "0x1F", "²",
    "'a'", "'2020-02-30'", "'", '"', "`", "--", "/*", "*/", "@", "$", "?", ":p", "TRUNCATE", "CREATE",
    "TABLE", "ALTER", "DROP", "VIEW", "EXPLAIN", "VERSION", "AS", "OF", "{init[1]}", "{init[0]}", "init 1",
    "delta.`{alias}`", "delta.`{alias[u]}`", "{alias}", "\n", "\0", "REPLACE TABLE", "SHALLOW CLONE",
    "IF NOT EXISTS", "USING delta", "PARTITIONED BY (part)", "TBLPROPERTIES ('a' = 'b')", "(id INT)",
]  # fmt: skip


def read_sql(text):
    statement = value_of(read_statement, text, SCHEMAS)
    if statement is not None:
        assert statement.sql == text


@given(
    st.one_of(
        transactions(),
        st.sampled_from(STATEMENTS).flatmap(respelled),
        mutants(STATEMENTS, SQL_TOKENS),
    )
)
def test_mutated_statements(text):
    read_sql(text)


@given(soups(SQL_TOKENS))
def test_any_tokens_as_a_statement(text):
    read_sql(text)


# TOML

TOML_TOKENS = [
    "=", "[", "]", "{", "}", ",", '"', "'", '"""', "#", ".", "\n", "\r", "\0", "title", "table",
    "[table]", "[tables.u]", "[transactions]", "[expect.x]", "[history]", "[scope]", "init", "1", "0", "exists",
    "[transactions.a]", "sql", "let", "before", "conf", "session", "write", "query", "options", "park-init",
    "a.before", "a.park-init", "a.start[1]", ":seen", "CACHE TABLE t", "{init[1]}", "{alias}",
    "-1", "1e400", "nan", "0x" + "f" * 5000, "9" * 5000, "2020-02-30", "true", "T1", "r(x0)", "a.start",
]  # fmt: skip
JUNK = st.recursive(
    st.one_of(
        st.sampled_from([0, 1, -1, 2**31, 2**63, -(2**64)]),
        st.booleans(),
        st.floats(),
        st.text(max_size=5),
        st.sampled_from(
            [
                "t",
                "id INT",
                "desc INT, part INT",
                "INSERT INTO t VALUES (1, 0)",
                "SELECT * FROM t",
                "a",
                "²",
            ]
        ),
        st.dates(),
        st.times(),
        st.datetimes(),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)


def toml(value):
    """Any value as TOML writes it within a line."""
    match value:
        case dict():
            return "{" + ", ".join(f"{toml(k)} = {toml(v)}" for k, v in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(toml, value)) + "]"
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case date() | datetime() | time():
            return value.isoformat()
        case _:
            return repr(value)


def document(table):
    return "\n".join(f"{toml(key)} = {toml(value)}" for key, value in table.items())


def places(value, path=()):
    """Every place in a document, as keys and positions from its root."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in inner:
        yield (*path, key)
        if isinstance(part, dict | list):
            yield from places(part, (*path, key))


@st.composite
def changed(draw, texts):
    """A document with some values replaced, respelled, taken from another document, left out, or
    called something else.
    """
    table, other = (read_toml(draw(st.sampled_from(texts)), "shipped") for _ in range(2))
    for _ in range(draw(st.integers(1, 2))):
        known = list(places(table))
        *path, last = draw(st.sampled_from(known)) if known else [draw(st.text(max_size=3))]
        holder = table
        for key in path:
            holder = holder[key]
        value = holder[last] if known else None
        match draw(st.sampled_from(["respell", "respell", "take", "replace", "drop", "rename"])):
            case "respell" if isinstance(value, str):
                holder[last] = draw(respelled(value))
            case "respell" if type(value) is int:
                holder[last] = draw(st.integers(0, 5))
            case "take" if isinstance(holder, dict) and other:
                key = last if last in other and not path else draw(st.sampled_from(sorted(other)))
                table[key] = other[key]
            case "drop" if known:
                del holder[last]
            case "rename" if known and isinstance(holder, dict):
                holder[draw(st.text(max_size=4))] = holder.pop(last)
            case _:
                holder[last] = draw(JUNK)
    return document(table)


def read_test(text):
    """A litmus file that reads can be carried out, judged, and said in words."""
    test = value_of(read_litmus, text, "fuzzed")
    if isinstance(test, Litmus):
        who = next((name for name in protocols() if name in test.expect), protocols()[0])
        judged = value_of(run, test, protocol(who))
        if judged is not None:
            value_of(look_at, judged)
    elif test is not None:
        judge_history(test.history)


def look_at(judged: RunResult):
    assert serial_words(judged.serial.orders, judged.serial.unexplained)
    assert judged.to_json()
    for name, verdict in judged.levels.items():
        assert verdict_words(verdict, level(name))


@pytest.mark.slow
@given(st.one_of(changed(LITMUS), mutants(LITMUS, TOML_TOKENS)))
def test_litmus_files(text):
    read_test(text)


@pytest.mark.slow
@given(st.one_of(changed(SCOPES), mutants(SCOPES, TOML_TOKENS)))
def test_scope_files(text):
    value_of(read_scope, text, "fuzzed")


# Histories

STEPS = [
    "r1(x0)", "w1(x1)", "r2(x1)", "w2(x2)", "r1(P: x0*, y0)", "r2(P: x1* | y2)", "w2(y2)", "r3(P:)",
    "w3(x3)", "r3(x2)", "c1", "a1", "c2", "a2", "c3", "[x0 < x1]", "[x1 < x2 < x3]", "[x2 << x1]", "[]",
    "r(x0)", "w(x1)", "r٣(x0)", "r1(x²)", "w1(x" + "9" * 5000 + ")", "r0(x0)", "[x0 < y1]", "w1(P: x1)",
]  # fmt: skip
OPERATIONS = [
    "r(x0)", "r(y0)", "r(x1)", "r(x2)", "w(x1)", "w(x2)", "w(y2)", "w(y3)", "r(P: x0*, y0)", "r(P: x1)",
    "r(P: x2* | y3)", "r(Q: )", "r(x²)", "r()", "w", "",
]  # fmt: skip


def judge_history(history):
    """Every level has a verdict on a history, or says what it needs."""
    assert History.from_table(history.to_table()) == history
    for name in levels():
        verdict = check_history(history, level(name), limit=200)
        assert verdict_words(verdict, level(name))


HISTORIES = [
    "r1(x0) r1(y0) w1(x1) r2(x0) r2(y0) w2(y2) c1 c2",
    "w1(x1) r2(x1) a1 c2",
    "r1(P: x0*, y0* | z2*) w2(z2) w2(s2) c2 r1(s2) c1",
    "r2(x0) r2(y0) r1(y0) w1(y1) c1 r3(x0) r3(y1) c3 w2(x2) c2",
    "w1(x1) w2(x2) w2(y2) w1(y1) c1 [x1 < x2, y2 < y1]",
    "w1(x1) w1(y1) w2(x2) w2(y2) r3(x1) r3(y2) [x1 < x2]",
]


@given(
    st.one_of(
        soups(STEPS, 10),
        mutants(STEPS, STEPS),
        st.sampled_from(HISTORIES).flatmap(lambda text: respelled(text, most=3)),
    )
)
@example("r3(P:)")
def test_histories_on_one_line(text):
    history = value_of(History.parse, text)
    if history is not None:
        judge_history(history)


@given(
    st.dictionaries(
        st.sampled_from(["T1", "T2", "T3", "T٣", "T²", "T0", "T" + "9" * 5000, "x"]),
        st.one_of(soups(OPERATIONS, 5), JUNK),
        max_size=4,
    ),
    st.dictionaries(
        st.sampled_from(["sessions", "order", "aborted", "unknown"]),
        st.one_of(
            st.lists(st.sampled_from(["T1", "T2", "T1 T2", "x0 < x1", "x1 < x2", "y2 < y3", ""])),
            JUNK,
        ),
        max_size=2,
    ),
)
def test_history_tables(operations, lists):
    history = value_of(History.from_table, operations | lists)
    if history is not None:
        judge_history(history)
