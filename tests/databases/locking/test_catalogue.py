"""The catalogue's litmus tests of scans: what each protocol makes of them, and the words for it."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from case_checks import check_cases
from catalogue_runs import predicted

import isolitmus.specs
from isolitmus.checker.checks.history_check import check
from isolitmus.checker.execution import serial_orders as serial
from isolitmus.checker.execution.run_result import run
from isolitmus.checker.render.verdicts import verdict_words
from isolitmus.checker.search.mutant_separation import spec_answer
from isolitmus.databases.locking.format import LOCKING
from isolitmus.databases.locking.query_plans import scan_hints
from isolitmus.model.errors import IsolitmusError, Refused
from isolitmus.specs import level, litmus, protocol
from isolitmus.specs.files.catalogue import litmus_names
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.files.spec_catalogue import levels, protocols
from isolitmus.specs.files.spec_reader import read_spec
from isolitmus.specs.registries import format_named

SPECS = Path(isolitmus.specs.__file__).parent
TESTS = litmus_names("locking")


@pytest.fixture(scope="module", autouse=True)
def shared_executors():
    """What the independent executor found of an order of a litmus test serves under each
    protocol.
    """
    made = {}

    def independent(test):
        if id(test) not in made:
            made[id(test)] = test, LOCKING.independent(test)
        return made[id(test)][1]

    shared = replace(LOCKING, independent=independent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            serial, "format_named", lambda name: shared if name == "locking" else format_named(name)
        )
        yield


@pytest.mark.slow
def test_a_litmus_test_says_what_it_is_and_expects_something_of_each_protocol():
    def look(name):
        test = litmus(name)
        assert test.title and test.source and test.tags
        hinted = any(any(scan_hints(one.sql)) for one in test.transactions.values())
        for other in {*protocols("locking")} - {*test.expect}:
            assert hinted, other
            with pytest.raises(Refused, match="table hints are of SQL Server"):
                run(test, protocol(other))
        for expect in test.expect.values():
            assert expect.outcome.keys() == test.transactions.keys()
            assert expect.tables and expect.serial is not None and expect.waits is not None
        again = read_litmus(str(test), name)
        assert (again.transactions, again.expect) == (test.transactions, test.expect)

    assert len(check_cases(look, TESTS)) >= 40


@pytest.mark.slow
def test_the_model_meets_the_expectations():
    def meet(name, under):
        judged = predicted(name, under)
        assert (judged.expected, judged.differences) == ("met", ())

    cases = ((name, under) for name in TESTS for under in litmus(name).expect)
    assert len(check_cases(meet, cases)) >= 740


WHOLE = re.compile(
    r"UPDATE cases SET worker = (\d) WHERE .*\(SELECT (?:\S*id FROM cases .*ORDER BY \S*created"
    r"(?: DESC)? LIMIT 1|TOP \(1\) id FROM cases .*ORDER BY created)\)"
)
COUNT = r"(?i)\(SELECT COUNT(?:_BIG)?\(\*\) FROM cases .*?worker = {}\) < 3"


def test_every_worker_of_the_quiz_runs_the_whole_statement():
    names = [name for name in TESTS if name.startswith("quiz-")]
    for name in names:
        workers = {k: one for k, one in litmus(name).transactions.items() if k in ("a", "b")}
        assert workers
        for one in workers.values():
            choice = WHOLE.search(one.sql)
            assert choice, name
            assert re.search(COUNT.format(choice[1]), one.sql), name
    assert len(names) >= 20


def test_where_a_protocol_refuses_hints_nothing_is_said_of_the_test():
    assert spec_answer(litmus("quiz-with-hints"), protocol("derby-serializable")) == {}
    assert spec_answer(litmus("quiz-with-hints"), protocol("locking-serializable")) == {}
    assert spec_answer(litmus("quiz-with-hints"), protocol("locking-repeatable-read"))


def forbids(name, under, asked):
    return str(predicted(name, under).verdict(level(asked))) == "forbidden"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "asked", "admits"),
    [
        ("scan-twice", "row-once", {"read-uncommitted", "read-committed", "read-committed-coupled", "latest-committed"}),
        ("scan-misses", "row-once", {"read-uncommitted", "read-committed", "read-committed-coupled", "latest-committed", "repeatable-read"}),
        ("scan-of-no-moment", "one-moment", {"read-uncommitted", "read-committed", "read-committed-coupled", "latest-committed"}),
        ("scan-of-a-pair", "one-moment", {"read-uncommitted", "read-committed"}),
        ("scan-of-fixed-keys", "row-once", set()),
        ("dirty-scan", "no-dirty-read", {"read-uncommitted"}),
        ("phantom-scan", "serializable", {"read-uncommitted", "read-committed", "read-committed-coupled", "read-committed-page", "read-committed-table", "read-committed-snapshot", "latest-committed", "repeatable-read"}),
        ("skew-of-accounts", "serializable", {"read-uncommitted", "read-committed", "read-committed-coupled", "read-committed-page", "read-committed-table", "read-committed-snapshot", "latest-committed", "oldest-committed", "snapshot"}),
    ],
)  # fmt: skip
def test_which_protocols_admit_what(name, asked, admits):
    ours = {p.removeprefix("locking-") for p in protocols("locking") if p.startswith("locking-")}
    assert {p for p in ours if forbids(name, f"locking-{p}", asked)} == admits


@pytest.mark.parametrize(
    ("name", "asked", "words"),
    [
        ("scan-twice", "row-once", "row (1, 10, 1) was read at k = 10, moved to k = 40 by move, and read again"),
        ("scan-misses", "row-once", "row (3, 30, 3) was there all the time, and move moved it behind the scan of audit"),
        ("scan-of-no-moment", "one-moment", "what a statement of audit read was there at no one moment"),
        ("dirty-scan", "no-dirty-read", "audit read (2, 20, 9), which change wrote"),
        ("fuzzy-scan", "ansi-repeatable-read", "row (2, 20, 2) was read, changed to (2, 20, 9) by change, and read again"),
    ],
)  # fmt: skip
def test_check_says_why(name, asked, words):
    spec = level(asked)
    verdict = check(litmus(name), [spec]).levels[asked]
    assert words in "\n".join(verdict_words(verdict, spec))


def test_levels_of_scans_are_asked_of_scans_only():
    assert "row-once" in levels("locking") and "row-once" not in levels()
    assert str(check(litmus("reorder"), [level("row-once")]).levels["row-once"]).startswith("needs")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lock reads S rwo until commit", "no 'rwo' here; did you mean 'row'?"),
        ("lock reads S row", "'lock reads S row' ends; expected one of until"),
        ("see comitted", "no 'comitted' here; did you mean 'committed'?"),
        ("see current see current", "'see' is said twice"),
        ("lock writes S row until commit", "writes are locked X"),
        ("lock writes X row until statement", "else nothing could be rolled back"),
        ("lock reads S page until commit lock writes X row until commit", "do not meet"),
        ("lock ranges S next-key until commit", "add a line lock reads"),
        ("pages of 0", "'0' is not a whole number from 1 to 1,000"),
        ("pages of 2000", "'2000' is not a whole number from 1 to 1,000"),
        ("escalate to table at many", "'many' is not a whole number"),
        ("see current row", "'row' is too much here"),
        ("victim fewest-locks", "say keep heaps"),
        ("lock reads S row until commit lock ranges S previous-key until commit", "over heaps"),
        (
            "keep heaps lock reads S row until commit lock ranges S next-key until commit",
            "elsewhere",
        ),
        ("keep heaps see committed", "nothing to see but what is current"),
    ],
)
def test_a_clause_that_is_wrong_is_refused_at_its_word(text, message):
    with pytest.raises(IsolitmusError) as refused:
        read_spec(f'"A" format locking {text}', "a")
    assert message in str(refused.value), refused.value
    assert re.match(r"a:1:\d+: ", str(refused.value))


def test_other_formats_have_no_clauses():
    with pytest.raises(IsolitmusError, match="format delta has no clause 'lock'"):
        read_spec('"A" lock reads S row until commit', "a")
    with pytest.raises(
        IsolitmusError, match="not a protocol: of format locking one says what is seen"
    ):
        protocol(str(SPECS / "levels" / "locking" / "row-once.cat"))
