"""The table of exceptions: what it says ends so on the model, and what is wrong with a file is said."""

import re

import pytest

from isolitmus.checker.auditing.diagnosis import carry_out_example
from isolitmus.model.conflict import CONFLICTS
from isolitmus.model.conflict_exception import ALWAYS, ConflictFacts
from isolitmus.model.errors import LitmusError
from isolitmus.specs import litmus
from isolitmus.specs.exceptions_file import FILE, exception_of, exception_table, read_exceptions

TABLE = exception_table().exceptions
EXAMPLES = [(name, one) for name, known in TABLE.items() for one in known.examples]


def said(one):
    """What a name or an example is called in a list of tests."""
    return one if isinstance(one, str) else f"{one.test}-{one.under}"


TEXT = FILE.read_text("utf-8")


def test_each_exception_of_delta_is_there():
    assert list(TABLE) == list(CONFLICTS)
    phrases = [phrase for known in TABLE.values() for phrase in known.phrases]
    assert len(phrases) == len(set(phrases))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "example"), EXAMPLES, ids=said)
def test_an_example_ends_so_on_the_model_and_its_file_expects_it_of_real_delta(name, example):
    """What a file expects of a protocol of Delta is carry_out_example (tests/conformance/test_catalogue.py)."""
    shown = carry_out_example(example, name)
    assert shown.why.axiom == name
    assert litmus(example.test).expect[example.under].outcome[example.loser] == (name,)
    classes = {seen.error_class for seen in shown.judged.run.transactions.values()} - {None}
    assert {one.partition(".")[0] for one in classes} == set(TABLE[name].classes)


RETRIED = {"yes": {"committed", "no-op"}, "no": {"no-op"}}
"""By what is said of trying again, what may come of it; of the others anything may."""


@pytest.mark.parametrize(
    ("name", "example"),
    [(name, example) for name, example in EXAMPLES if TABLE[name].retry in RETRIED],
    ids=said,
)
def test_what_is_said_of_trying_again_is_what_comes_of_it(name, example):
    assert carry_out_example(example, name).again in RETRIED[TABLE[name].retry]


def test_an_example_that_ends_otherwise_is_an_error():
    with pytest.raises(
        Exception, match="is an example of MetadataChangedException, but delete ends with"
    ):
        carry_out_example(
            TABLE["ConcurrentAppendException"].examples[-1], "MetadataChangedException"
        )


def test_advice_is_for_what_is_known():
    append = TABLE["ConcurrentAppendException"]
    assert append.advice(ConflictFacts()) == ()
    (whole,) = append.advice(ConflictFacts(where="table"))
    assert "partition the table by" in whole
    compaction = ConflictFacts(winner="OPTIMIZE", where="partition", blind=False)
    assert [append.example(compaction).test, len(append.advice(compaction))] == [
        "optimize-during-delete",
        2,
    ]
    for known in TABLE.values():
        assert all(change.when == ALWAYS for change in known.changes) or known.advice(
            ConflictFacts("WRITE", True, "Serializable", 3, "table", "DELETE")
        )


@pytest.mark.parametrize(
    "name",
    [
        "ConcurrentAppendException",
        "io.delta.exceptions.ConcurrentAppendException",
        "DELTA_CONCURRENT_APPEND",
        "DELTA_CONCURRENT_APPEND.ROW_LEVEL_CHANGES",
    ],
)
def test_an_exception_is_found_by_each_of_its_names(name):
    assert exception_of(name) is TABLE["ConcurrentAppendException"]


def test_another_name_is_none():
    assert exception_of("ConcurrentAppend") is None


BROKEN = [
    (r"^retry +=.*", 'retry = "perhaps"', "retry is 'perhaps'; one of ('yes', 'after a look', 'no') is wanted"),
    (r"^title +=.*\n", "", "needs 'title' (a text)"),
    (r"^phrases +=.*", "phrases = []", "needs 'phrases' (a list of texts)"),
    (r"^test +=.*", 'test = "reordr"', "names what is not in the catalogue: 'reordr'"),
    (r"^under +=.*", 'under = "delta-serialisable"', "not in the catalogue: 'delta-serialisable'"),
    (r'^when = \{ where = "table" \}', 'when = { where = "here" }', "where is 'here'; one of"),
    (r'^when = \{ where = "table" \}', "when = { who = 1 }", "when] has no key 'who'"),
    (r"^\[ProtocolChangedException\](?:.|\n)*", "[hints]\n[commands]\n", "has no table [ProtocolChangedException]"),
    (r"^\[hints\]", "[hint]", "the file has no key 'hint'"),
    (r'^loser = "delete"\n\n\[Conc', 'loser = "delete"\nwhen = { blind = true }\n\n[Conc', "is for any conflict, and has no 'when'"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "said"), BROKEN, ids=[said for *_, said in BROKEN])
def test_what_is_wrong_with_a_file_is_said(old, new, said):
    text, count = re.subn(old, lambda _: new, TEXT, count=1, flags=re.MULTILINE)
    assert count == 1
    with pytest.raises(LitmusError) as refused:
        read_exceptions(text, "mine.toml")
    assert str(refused.value).startswith("mine.toml")
    assert said in str(refused.value)
