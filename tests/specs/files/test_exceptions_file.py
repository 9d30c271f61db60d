"""The table of exceptions: what it says ends so on the model, and what is wrong with a file is
said.
"""

import re
from functools import cache
from itertools import product

import pytest
from case_checks import check_cases

from isolitmus.checker.auditing.diagnosis import run_example
from isolitmus.model.delta.conflict import CONFLICTS, ConflictFacts
from isolitmus.model.errors import LitmusError
from isolitmus.model.litmus import Litmus
from isolitmus.specs import litmus
from isolitmus.specs.files.catalogue import litmus_names
from isolitmus.specs.files.exceptions_file import (
    FILE,
    exception_of,
    exception_table,
    read_exceptions,
)

TABLE = exception_table().exceptions
CONDITIONS = exception_table().conditions
CAUSES = {
    f"{name}.{one.name}": one.of_exception(exception_table().every[name])
    for one in CONDITIONS.values()
    for name in one.of
}
EVERY = {**exception_table().every, **CAUSES}
EXAMPLES = {
    f"{key} {one.test} {one.loser} {under}": (known.name, one, under)
    for key, known in EVERY.items()
    for one in known.examples
    for under in one.under
}
carried_out = cache(run_example)

TEXT = FILE.read_text("utf-8")


def test_each_exception_of_delta_is_there():
    assert list(TABLE) == list(CONFLICTS)
    phrases = [phrase for known in exception_table().every.values() for phrase in known.phrases]
    assert len(phrases) == len(set(phrases))


def ends_so(key):
    name, example, under = EXAMPLES[key]
    shown = carried_out(example, under, name)
    assert shown.why.axiom == name
    assert litmus(example.test).expect[under].outcome[example.loser] == (name,)
    seen = shown.judged.run.transactions
    assert (seen[example.loser].error_class or "").partition(".")[0] in {*TABLE[name].classes, ""}
    winner = seen[shown.why.cycle[0].source]
    assert (winner.operation or "").startswith(example.winner)
    assert example.blind in (None, winner.blind)
    hint = {"partition": "WITH_PARTITION_HINT", "table": "WITHOUT_HINT", None: ""}[example.where]
    assert (seen[example.loser].error_class or "").partition(".")[2] == hint
    return True


@pytest.mark.slow
def test_an_example_ends_so_on_the_model_and_its_file_expects_it_of_real_delta():
    """What a file expects of a protocol of Delta is executed there
    (tests/conformance/test_catalogue.py).
    """
    assert len(check_cases(ends_so, EXAMPLES)) > 100


RETRIED = {"yes": {"committed", "no-op"}, "no": {"no-op"}}
"""By what is said of a retry, what may come of it; of the others anything may."""


def comes_of_it(key):
    name, example, under = EXAMPLES[key]
    known, again = EVERY[key.split()[0]], carried_out(example, under, name).again
    assert again in RETRIED[known.retry] or (again[:6] == "error:" and "fails" in known.retrying)
    return True


@pytest.mark.slow
def test_what_is_said_of_trying_again_is_what_comes_of_it():
    said = [key for key in EXAMPLES if EVERY[key.split()[0]].retry in RETRIED]
    assert len(check_cases(comes_of_it, said)) > 100


def test_an_example_that_ends_otherwise_is_an_error():
    with pytest.raises(
        Exception, match="is an example of MetadataChangedException, but delete ends with"
    ):
        run_example(
            TABLE["ConcurrentAppendException"].examples[0],
            "delta-serializable",
            "MetadataChangedException",
        )


COMMANDS = {"Insert": "WRITE", "Delete": "DELETE", "Update": "UPDATE", "Merge": "MERGE", "Optimize": "OPTIMIZE"}  # fmt: skip


def pairs():
    """Two commands, and the exception of the first, of each litmus test of two such
    transactions.
    """
    for name in litmus_names():
        test = litmus(name)
        kinds = getattr(test, "transactions", {}).items()
        named = {one: COMMANDS.get(type(statement).__name__) for one, statement in kinds}
        if isinstance(test, Litmus) and len(named) == 2 and None not in named.values():
            expected = test.expect.get("delta-serializable")
            for loser, outcomes in (expected.outcome if expected else {}).items():
                (winner,) = set(named) - {loser}
                for outcome in set(outcomes) & set(TABLE):
                    yield outcome, named[loser], named[winner]


@pytest.mark.slow
def test_the_example_is_of_the_same_commands_where_the_catalogue_has_one():
    found = set(pairs())
    assert len(found) > 15
    for name, mine, winner in found:
        example = TABLE[name].example(ConflictFacts(winner, mine=mine))
        assert (example.mine, example.winner) == (mine, winner), name


FACTS = {
    "winner": (None, "WRITE", "DELETE", "OPTIMIZE", "AUTO COMPACTION", "CREATE OR REPLACE TABLE"),
    "blind": (None, True, False),
    "level": (None, "Serializable", "WriteSerializable"),
    "where": (None, "partition", "table"),
    "mine": (None, "WRITE", "DELETE", "OPTIMIZE", "AUTO COMPACTION", "ALTER TABLE", "CLONE"),
    "engine": ("unknown", "Delta", "Databricks", "Trino", "delta-rs"),
    "overwrites": (None, True, False),
    "vectors": (False, True),
}


def facts_of(known, engines):
    """All that may be known of a conflict, as far as anything that is said depends on it."""
    whens = [one.when for one in (*known.notes, *known.retries, *known.changes)]
    asked = {name for name in FACTS for when in whens if getattr(when, name) not in (None, ())}
    asked |= {"winner" for when in whens if when.not_beside}
    asked |= {"blind", "level"} if known.examples else set()
    values = {name: FACTS[name] for name in asked} | ({"engine": engines} if engines else {})
    for picked in product(*values.values()):
        yield ConflictFacts(**dict(zip(values, picked, strict=True)))


CONDITIONAL = ("If the winning commit", "If your job is", "If the table", "If the job")
"""Beginnings of advice that says a known fact as a condition."""


def contradictions(known, facts):
    """Lines of one answer that contradict each other, or what is known."""
    changes = known.advice(facts)
    said = [known.title, known.check, known.means(facts), known.retried(facts)]
    text = " ".join([*said, *changes])
    by_rows = "rows were compared" in known.check or "rows were to be compared" in known.check
    foreign = facts.engine not in ("Databricks", "unknown")
    yield "no advice", not changes
    yield (
        "files and rows",
        by_rows and ("does not check whether" in text or "partition" in " ".join(changes)),
    )
    yield "what is on already", by_rows and "enableDeletionVectors" in text
    yield (
        "a level that no user sets",
        facts.engine == "Delta" and "WriteSerializable" in " ".join(changes),
    )
    yield (
        "another engine's remedy",
        foreign and re.search("enableDeletionVectors|On Databricks", text),
    )
    yield (
        "partitions and none",
        re.search("(?i)partition the table by", text) and "leave the table unpartitioned" in text,
    )
    yield (
        "no partition is named",
        facts.where != "partition" and "another partition than the one in the message" in text,
    )
    yield (
        "a partition is named",
        facts.where == "partition" and "Partition the table by" in text,
    )
    yield (
        "what is known",
        any(text.startswith(CONDITIONAL) for text in (*changes, known.retried(facts))),
    )
    yield "blind", facts.blind is False and "metadata changes out of your job" in text
    yield "not blind", facts.blind is not False and "Make the other job a blind append" in text
    yield "an overwrite", not facts.overwrites and "Overwrite while no other job" in text
    yield "vectors", facts.vectors is not True and "although the table has deletion vectors" in text
    yield "no vectors", facts.vectors is True and "Turn on deletion vectors" in text
    compaction = (facts.winner or "").startswith(("OPTIMIZE", "REORG", "AUTO COMPACTION"))
    can_wait = compaction and facts.winner != "AUTO COMPACTION"
    yield "no compaction", not can_wait and "Postpone the compaction" in text
    yield "postponed", facts.winner == "AUTO COMPACTION" and "Postpone the compaction" in text
    ours = (facts.mine or "").startswith(("OPTIMIZE", "REORG"))
    yield "as an overwrite does", ours and "overwrite with dynamic partitions" in text
    yield "it changes no row", compaction and re.search("changed the same|its own keys", text)
    other = {"RESTORE", "CLONE"} - {facts.mine}
    yield (
        "another command",
        facts.mine in ("RESTORE", "CLONE") and any(one in said[-1] for one in other),
    )
    yield "not my compaction", not ours and "Postpone your compaction" in text
    yield "started twice", "domain" in known.title and re.search("checkpoint|query", text)
    example = known.example(facts)
    if example is not None:
        under = example.protocol(facts)
        yield "its level", facts.level == "WriteSerializable" and "write-serializable" not in under
        yield (
            "its winner",
            None not in (facts.blind, example.blind) and facts.blind != example.blind,
        )


def agrees(key):
    known = EVERY[key]
    for facts in facts_of(known, CONDITIONS[key.partition(".")[2]].engine if key in CAUSES else ()):
        assert [why for why, holds in contradictions(known, facts) if holds] == [], facts
    return True


@pytest.mark.slow
def test_no_line_of_an_answer_contradicts_another_one():
    """Of each exception and each cause, over all that may be known of a conflict."""
    assert len(check_cases(agrees, EVERY)) == len(EVERY)


def test_advice_fits_what_is_known():
    append, read = TABLE["ConcurrentAppendException"], TABLE["ConcurrentDeleteReadException"]

    def first(known, **facts):
        return known.advice(ConflictFacts(**facts))[0]

    assert "one after the other" in first(append)
    merge = {"winner": "MERGE", "mine": "UPDATE", "where": "table"}
    assert "Partition the table by a column that separates" in first(
        append, **merge, engine="Delta"
    )
    assert "Turn on deletion vectors" in first(append, **merge, engine="Databricks")
    assert "rows were not compared" in first(append, **merge, engine="Databricks", vectors=True)
    assert "It reads the whole table" in first(
        append, winner="WRITE", mine="ALTER TABLE", where="table"
    )
    assert first(append, winner="OPTIMIZE", mine="DELETE").startswith("Postpone the compaction")
    assert "cannot be postponed" in first(append, winner="AUTO COMPACTION", mine="DELETE")
    assert first(read, winner="DELETE", mine="OPTIMIZE").startswith("Postpone your compaction")
    assert "the write before" in first(read, winner="DELETE", mine="AUTO COMPACTION")
    assert "Overwrite while no other job writes" in first(
        append, winner="WRITE", overwrites=True, blind=False
    )
    twice = TABLE["ConcurrentDeleteDeleteException"]
    for where, said in (("partition", "another partition"), ("table", "Partition the table")):
        for known in (read, twice):
            assert said in first(known, winner="UPDATE", where=where, engine="Delta")
    rows = CAUSES["ConcurrentAppendException.ROW_LEVEL_CHANGES"]
    assert "its own keys" in first(rows, winner="MERGE")
    assert "its own keys" not in " ".join(rows.advice(ConflictFacts("OPTIMIZE")))
    assert "row tracking" in first(rows, winner="OPTIMIZE")
    assert "one of the two compactions" in first(read, winner="OPTIMIZE", mine="OPTIMIZE")
    general = [str(change) for change in read.changes]
    assert any(text.startswith("If both jobs are compactions: run only one") for text in general)


SUB_CONDITIONS = """ALLOTTED_TIME_EXCEEDED CHANGE_TYPE_COLUMN EMPTY_READ_PREDICATES METADATA_CHANGE
PARTITIONED_TABLE_WITHOUT_MERGE_SOURCE PREDICATES_NEED_REWRITE PROTOCOL_CHANGE ROW_LEVEL_CHANGES WHOLE_TABLE_READ
WHOLE_TABLE_REPLACE"""
"""Databricks' pages of DELTA_CONCURRENT_APPEND, DELTA_CONCURRENT_DELETE_READ and
DELTA_CONCURRENT_DELETE_DELETE.
"""


def test_each_sub_condition_of_databricks_has_a_meaning_and_remedies_of_its_own():
    names = SUB_CONDITIONS.split()
    assert set(names) <= set(CONDITIONS)
    assert all(f".{name}" in exception_table().engines["Databricks"].marks for name in names)
    titles = [known.title for key, known in EVERY.items() if key not in CAUSES]
    titles += [CONDITIONS[name].instead["title"] for name in names]
    assert len(titles) == len(set(titles))


def test_places_name_the_release_that_their_lines_are_of():
    for key, known in EVERY.items():
        assert "Delta 4.4.0" in known.place or not re.search(r"\d{3}", known.place), key


@pytest.mark.parametrize(
    "name",
    [
        "ConcurrentAppendException",
        "io.delta.exceptions.ConcurrentAppendException",
        "DELTA_CONCURRENT_APPEND",
        "DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT",
    ],
)
def test_an_exception_is_found_by_each_of_its_names(name):
    assert exception_of(name) is TABLE["ConcurrentAppendException"]


def test_an_error_class_with_a_cause_is_that():
    found = exception_of("DELTA_CONCURRENT_DELETE_READ.ROW_LEVEL_CHANGES")
    assert found == CAUSES["ConcurrentDeleteReadException.ROW_LEVEL_CHANGES"]
    assert "is not looked at" not in found.meaning


def test_another_name_is_none():
    assert exception_of("ConcurrentAppend") is None


BROKEN = [
    (r"^retry +=.*", 'retry = "perhaps"', "retry is 'perhaps'; expected one of ('yes', 'after a look', 'no')"),
    (r"^title +=.*\n", "", "needs 'title' (a string)"),
    (r"^phrases +=.*", "phrases = []", "needs 'phrases' (a list of texts)"),
    (r'test = "reorder"', 'test = "reordr"', "names what is not in the catalogue: 'reordr'"),
    (r'under = \["delta-serializable"', 'under = ["delta-serialisable"', "not in the catalogue: 'delta-serialisable'"),
    (r'where = "partition", blind', 'where = "here", blind', "where is 'here'; expected one of"),
    (r'^when = \{ engine = \["unknown"\] \}', "when = { who = 1 }", "when] has no key 'who'"),
    (r'^when = \{ engine = \["unknown"\] \}', 'when = { engine = ["Detla"] }', "names no engine: 'Detla'"),
    (r"^\[ProtocolChangedException\](?:.|\n)*", "[conditions]\n[commands]\n", "has no table [ProtocolChangedException]"),
    (r"^\[commands\]", "[command]", "the file has no key 'command'"),
    (r"^of +=.*", 'of = ["ConcurrentApend"]', "names no exception: 'ConcurrentApend'"),
    (r"^of +=.*\n", "", "needs 'of' (a list of exceptions)"),
    (r'^text = "Stop the jobs', 'when = { version = 1 }\ntext = "Stop the jobs', "is for any conflict, and has no 'when'"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "said"), BROKEN, ids=[said for *_, said in BROKEN])
def test_what_is_wrong_with_a_file_is_said(old, new, said):
    text, count = re.subn(old, lambda _: new, TEXT, count=1, flags=re.MULTILINE)
    assert count == 1
    with pytest.raises(LitmusError) as refused:
        read_exceptions(text, "mine.toml")
    assert str(refused.value).startswith("mine.toml")
    assert said in str(refused.value)
