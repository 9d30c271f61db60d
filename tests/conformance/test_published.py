"""Schedules that nobody here wrote: Hermitage's, and PostgreSQL's own isolation tests.

They lie beside the repository, in ``shared/datasets``, and are never copied into it: the folder of
each has its source and licence. Those whose SQL is that of the format ``locking`` are predicted by
the model and carried out on PostgreSQL at each level that has a protocol, whatever level they were
written for. Where they are not, these tests are skipped.
"""

import re
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from isolitmus.checker import run
from isolitmus.checker.execution.run_diff import compare_runs
from isolitmus.conformance.engines import open_engine
from isolitmus.databases.postgres.engine import SQL
from isolitmus.model.errors import EngineUnavailable, LitmusError, SqlError
from isolitmus.model.toml_text import quoted, toml_list
from isolitmus.specs import protocol
from isolitmus.specs.files.litmus_file import read_litmus

DATASETS = Path(__file__).parents[3] / "shared" / "datasets"
PAGES = sorted(
    (DATASETS / "hermitage").glob("*.md"), key=lambda page: (page.stem != "postgres", page.stem)
)
SPECS = sorted((DATASETS / "pg-isolation" / "specs").glob("*.spec"))
PAGE = Path(__file__).parents[2] / "docs" / "locking.md"
pytestmark = pytest.mark.skipif(
    not (PAGES and SPECS), reason="no ../shared/datasets/hermitage and pg-isolation here"
)

TYPES = {
    "int": "INT", "int4": "INT", "integer": "INT", "int8": "BIGINT", "text": "STRING", "bool": "BOOLEAN",
    "date": "DATE",
}  # fmt: skip
LINE = re.compile(r"(?i)(.*?); *(?:--|#) *(?:T(\d)|either)(.*)")
BLOCK = re.compile(r'(?ms)^\s*(setup|teardown|session|step)\b\s*"?(\w*)"?\s*(?:\{(.*?)\})?')
PERMUTATION = re.compile(r"(?ms)^permutation\s+(.*?)(?=^permutation|\Z)")
TABLE = re.compile(r"(?i)create table (\w+) ?\((.*)\)")
COLUMN = re.compile(r"(?i)(\w+) (\w+)( not null)?( primary key)?( not null)?")
KEY = re.compile(r"(?i)(?:, )?(?:constraint \w+ )?primary key ?\(([^)]*)\)")
LEVEL = re.compile(
    r"(?i)(begin|start transaction)\b.*|set (session )?transaction isolation level .*"
)
FOREIGN = re.compile(r"(?i)\bset yb_[^;]*|\b\w+\.dbo\.")
"""Priorities of YugabyteDB's, and the databases of SQL Server's."""
ERROR = re.compile(r'(?:T(\d) now )?prints (?:out )?"ERROR', re.IGNORECASE)
WHY = {
    "a partitioned table": (r"(?i)partition", 13),
    "a foreign key": (r"(?i)references", 5),
    "a column type or column rule that the format lacks": (r"^the column ", 16),
    "a row locked by a query": (r"'LOCKS'", 7),
    "ON CONFLICT": ("'CONFLICT'", 2),
    "a savepoint": ("^SAVEPOINT", 5),
    "a prepared transaction": ("^PREPARE", 2),
    "a setting": ("(?i)^set ", 5),
    "an index on expressions or on some rows, or before generated rows": (
        "(?i)^create (unique )?index",
        4,
    ),
    "a statement that is neither a query nor a change of rows": (
        "(?i)^(create|alter|vacuum|drop|table) ",
        11,
    ),
    "a function": (r"pg_advisory|current_setting|COALESCE", 6),
    "a subquery in VALUES, or one of several rows": ("subquery", 2),
}
"""What the format has not, how the reader says it, and how many scripts have it, each for the first
such thing.
"""
HERMITAGE = (
    "create table test (id int primary key, value int)",
    "insert into test (id, value) values (1, 10), (2, 20)",
)
"""What all pages begin with."""


class UnfitError(Exception):
    """What a script has that the format has not."""


@dataclass(frozen=True)
class Script:
    """Statements that make the tables, and orders of those of sessions."""

    name: str
    setup: tuple[str, ...]
    orders: tuple[tuple[tuple[str, str], ...], ...]


def statements(text):
    """The statements of a text."""
    found = re.sub(r"--.*", "", text).split(";")
    return tuple(" ".join(one.split()) for one in found if one.strip())


def schedules(*pages):
    """Hermitage's, and what its lines say behind each step."""
    for page in pages:
        blocks = re.findall(r"```sql\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
        for number, block in enumerate(blocks):
            lines = [LINE.fullmatch(line.strip()) for line in block.strip().splitlines()]
            if all(lines) and len(lines) > 2:
                steps = [
                    (f"t{n[2] or 1}", one)
                    for n in lines
                    for one in statements(FOREIGN.sub("", n[1]))
                ]
                yield Script(f"{page.stem} {number}", HERMITAGE, (tuple(steps),)), lines


def scripts():
    """All that there is, each once, whatever its level."""
    found = {}
    for script, _ in schedules(*PAGES):
        kept = (step for step in script.orders[0] if not LEVEL.fullmatch(step[1]))
        bare = (
            (one, re.sub(r"\s", "", text).lower().replace("abort", "rollback"))
            for one, text in kept
        )
        found.setdefault(tuple(bare), script)
    return [*found.values(), *map(isolation_test, SPECS)]


def isolation_test(path):
    """A specification of PostgreSQL's isolationtester; without permutations, all orders of its
    sessions' steps.
    """
    text = re.sub(r"(?m)#.*$", "", path.read_text("utf-8"))
    setup, begun, sessions, steps = [], [], {}, {}
    for kind, name, body in BLOCK.findall(text):
        if kind == "session":
            session = name
            sessions[session] = []
        elif kind == "step":
            sessions[session].append(name)
            steps[name] = tuple((session, one) for one in statements(body))
        elif kind == "setup" and sessions:
            begun += ((session, one) for one in statements(body))
        elif kind == "setup":
            setup += statements(body)
    named = [re.findall(r"\w+", re.sub(r"\([^)]*\)", "", one)) for one in PERMUTATION.findall(text)]
    orders = [
        tuple(begun) + tuple(step for name in order for step in steps[name])
        for order in named or interleaved(list(sessions.values()))
    ]
    return Script(path.stem, tuple(setup), tuple(orders))


def interleaved(queues):
    """All orders of some sequences."""
    if not any(queues):
        yield []
    for at, queue in enumerate(queues):
        if queue:
            for rest in interleaved([*queues[:at], queue[1:], *queues[at + 1 :]]):
                yield [queue[0], *rest]


def columns_of(text):
    """Columns and indexes of a table, as a litmus test has them."""
    keys = KEY.findall(text)
    columns = []
    for one in KEY.sub("", text).split(","):
        found = COLUMN.fullmatch(one.strip())
        if found is None or found[2].lower() not in TYPES:
            raise UnfitError(f"the column {one.strip()}")
        columns.append(f"{found[1]} {TYPES[found[2].lower()]}")
        keys += [found[1]] if found[4] else []
    return ", ".join(columns), [f"unique {key}" for key in keys]


def read_order(script, order):
    """The litmus test that an order of steps is; UnfitError if it is none of the format.

    BEGIN is left out, as PostgreSQL does nothing at it. Who says nothing at the end is rolled back.
    """
    tables, init = {}, []
    for text in script.setup:
        made = TABLE.fullmatch(text)
        if made:
            tables[made[1].lower()] = columns_of(made[2])
        elif re.match(r"(?i)insert|update|delete", text):
            init.append(text)
        elif not re.match(r"(?i)drop table if exists", text):
            raise UnfitError(text)
    texts, words, now, under = {}, [], {}, set()
    begun = Counter()
    for session, text in order:
        if re.fullmatch(r"(?i)commit|abort|rollback", text):
            if session in now:
                verb = "commit" if text.lower() == "commit" else "rollback"
                words.append(f"{now.pop(session)}.{verb}")
            under.discard(session)
        elif LEVEL.fullmatch(text):
            under.add(session)
        elif not re.match(r"(?i)select|insert|update|delete", text):
            raise UnfitError(text)
        else:
            if session not in now:
                begun[session] += 1
                now[session] = f"{session}_{begun[session]}"
            name = now[session]
            texts.setdefault(name, []).append(text)
            words.append(f"{name}[{len(texts[name])}]")
            if session not in under:
                words.append(f"{now.pop(session)}.commit")
    words += [f"{name}.rollback" for name in now.values()]
    lines = [
        f"title = {quoted(script.name)}",
        'format = "locking"',
        f"schedule = {quoted(' '.join(words))}",
    ]
    for name, (
        columns,
        keys,
    ) in tables.items():  # each INSERT and UPDATE of the setup is of one of them
        own = [one for one in init if re.match(rf"(?i)\w+ (into |from )?{name}\b", one)]
        index = ", ".join(f"{name}_{n} = {quoted(key)}" for n, key in enumerate(keys))
        lines += [f"[tables.{name}]", f"columns = {quoted(columns)}", f"index = {{ {index} }}"]
        lines += [f"init = {toml_list(map(quoted, own))}"]
        init = [one for one in init if one not in own]
    assert not init
    lines += ["[transactions]", *(f"{n} = {toml_list(map(quoted, t))}" for n, t in texts.items())]
    try:
        return read_litmus("\n".join(lines), script.name)
    except (LitmusError, SqlError) as error:
        raise UnfitError(str(error)) from None


def reason(script):
    """Why a script does not fit, in a few words; empty if it does."""
    try:
        for order in script.orders:
            read_order(script, order)
    except UnfitError as error:
        return next(
            (why for why, (what, _) in WHY.items() if re.search(what, str(error))), str(error)
        )
    return ""


def fitting():
    return [script for script in scripts() if not reason(script)]


@pytest.mark.slow
def test_which_fit_the_format_and_why_the_others_do_not():
    found = Counter(map(reason, scripts()))
    assert found == {"": 69} | {why: number for why, (_, number) in WHY.items()}
    assert sum(len(script.orders) for script in fitting()) == 169
    rows = sorted((-number, why) for why, (_, number) in WHY.items())
    lines = "".join(f"| {why} | {-number} |\n" for number, why in rows)
    page = PAGE.read_text("utf-8")
    assert lines in page
    orders = sum(len(script.orders) for script in fitting())
    assert f"{found['']} of {sum(found.values())} use only SQL" in " ".join(page.split())
    assert f"with {orders} orders of steps" in page
    assert f"in all {3 * orders} runs" in page  # at three levels


@pytest.mark.slow
def test_the_model_says_of_postgresql_what_hermitage_saw():
    """Who waits, who ends with an error and what is read, at the levels that there are protocols
    for.
    """
    compared = Counter()
    for script, lines in schedules(PAGES[0]):
        level = re.search(
            r"isolation level ([\w ]+)", script.orders[0][0][1] + script.orders[0][1][1]
        )[1]
        name = next((name for name, own in SQL.levels.items() if own == level), None)
        if name is None or reason(script):
            continue
        test = read_order(script, script.orders[0])
        seen = run(test, protocol(name)).run.transactions
        waits = {one for one, own in seen.items() if own.waits}
        errors = {one for one, own in seen.items() if own.outcome == "SerializationFailure"}
        assert {f"t{line[2]}_1" for line in lines if "BLOCKS" in line[3]} == waits
        failed = ((ERROR.search(line[3]), line[2]) for line in lines)
        assert {f"t{found[1] or own}_1" for found, own in failed if found} == errors
        for session in {line[2] or "1" for line in lines}:
            queries = [
                line
                for line in lines
                if (line[2] or "1") == session and line[1].startswith("select")
            ]
            said = [line[3] for line in queries]
            asked = " ".join(line[1] for line in queries)
            pairs = Counter(
                (int(one), int(other))
                for text in said
                for one, other in re.findall(r"(\d+) => (\d+)", text)
            )
            read = [seen[one].rows or () for one in seen if one.startswith(f"t{session}_")]
            rows = Counter(row for own in read for row in own)
            assert pairs <= rows
            if all(re.search("=>|nothing", text) for text in said) and asked.count("where") == len(
                said
            ):
                assert pairs == rows
            compared["rows"] += pairs.total()
        compared += Counter(scripts=1, waits=len(waits), errors=len(errors))
    assert compared == {"scripts": 20, "waits": 6, "errors": 6, "rows": 26}


@pytest.mark.postgres
def test_postgresql_does_what_the_model_says():
    """All that fit, in all their orders, at each level."""
    with ExitStack() as stack:
        try:
            carry = stack.enter_context(open_engine("postgres"))
        except EngineUnavailable as error:
            pytest.skip(str(error))
        differences = []
        for script in fitting():
            for order in script.orders:
                test = read_order(script, order)
                for name in SQL.levels:
                    seen = carry(test, protocol(name))
                    found = compare_runs(run(test, protocol(name)).run, seen).differences
                    differences += (
                        [(script.name, name, str(test.schedule), *found)] if found else []
                    )
    assert differences == []
