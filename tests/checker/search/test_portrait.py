"""What ``show PROTOCOL`` says: promises, holes, needless aborts and shares, found and
re-checked.
"""

from functools import cache

import pytest

from isolitmus.checker.execution.run_result import run
from isolitmus.checker.render.search_results import portrait_lines
from isolitmus.checker.search.portrait import portray
from isolitmus.model.errors import SpecError
from isolitmus.model.spec_algebra import conjunction, unfold, with_axioms
from isolitmus.specs import level, protocol, spec
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.files.spec_catalogue import protocols, related_protocols

APPEND, DELETE_READ = "ConcurrentAppendException", "ConcurrentDeleteReadException"


@cache
def portrait(name):
    return portray(protocol(name))


def test_every_protocol_of_the_catalogue_promises_something():
    others = [name for name in protocols() if not name.startswith("delta-rs-")]
    assert all(protocol(name).promises for name in others)  # nobody says what delta-rs promises


def test_a_promise_of_no_level_is_refused(tmp_path):
    path = tmp_path / "mine.cat"
    path.write_text('"Mine" promises serialisable empty unseen as Conflict')
    with pytest.raises(SpecError, match=r"no level: 'serialisable'; did you mean 'serializable'\?"):
        protocol(str(path))


@pytest.mark.slow
@pytest.mark.parametrize("name", related_protocols())
def test_needless_aborts_happen_and_are_needless(name):
    """Each, read back from its text, aborts with just that exception; committed as the level has
    it, it would have been allowed (``separate`` has judged that).
    """
    for abort in portrait(name).aborts:
        if abort.found.found:
            test = read_litmus(abort.found.litmus.text, "needless")
            done = run(test, protocol(name))
            outcomes = [t.outcome for t in done.run.transactions.values()]
            assert [o for o in outcomes if o != "committed"] == [abort.exception]


@pytest.mark.slow
def test_the_portrait_of_write_serializable():
    seen = portrait("delta-write-serializable")
    (promise,) = seen.promises
    assert (promise.hole.transactions, promise.unexplained.transactions) == (3, 3)
    aborted = promise.elsewhere["delta-write-serializable-repaired"]
    assert APPEND in aborted.values()
    found = {a.exception: a.found.transactions for a in seen.aborts if a.found.found}
    assert (found[APPEND], found[DELETE_READ]) == (2, 2)
    assert {a.exception for a in seen.aborts if not a.raised} >= {"MetadataChangedException"}
    lines = list(portrait_lines(seen))
    assert lines[0].startswith("Promised level write-serializable: violated by 3 transactions")
    todo = [line for line in lines if "Remedy" in line]
    assert (
        todo[0]
        == "  Remedy: with delta.isolationLevel = Serializable (delta-serializable), delete aborts"
        " with ConcurrentAppendException."
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", related_protocols())
def test_what_to_do_names_only_what_a_table_can_be_set_to(name):
    todo = [line for line in portrait_lines(portrait(name)) if "Remedy" in line]
    assert todo
    unset = [other for other in related_protocols() if not protocol(other).setting]
    assert "delta-snapshot-isolation" in unset
    assert not [line for line in todo for other in unset if f"({other})" in line]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["case-2-serializable", "case-3-write-serializable"])
def test_a_rule_that_is_being_designed_stands_beside_the_rules_that_ship(name, tmp_path):
    """A table cannot choose between them, and its violation is none that they admit, too."""
    copy = tmp_path / "mine.cat"
    copy.write_text(protocol(name).text)
    for seen in (portrait(name), portray(copy)):
        promise = seen.promises[0]
        assert promise.hole.found
        assert {*promise.elsewhere} == {*related_protocols("delta-serializable")}
        aborted = promise.elsewhere["delta-serializable"].values()
        assert any(outcome.endswith("Exception") for outcome in aborted)
        lines = [line.strip() for line in portrait_lines(seen)]
        assert any(line.startswith("Under delta-serializable, which ships,") for line in lines)
        assert not any(line.startswith("Remedy: with") for line in lines)


@pytest.mark.slow
def test_the_layout_that_avoids_an_abort_does():
    (abort,) = (a for a in portrait("delta-serializable").aborts if a.exception == APPEND)
    assert "partitioned by id" in abort.layouts


def test_specs_made_of_parts_say_what_their_parts_say():
    delta, serial = protocol("delta-serializable"), level("serializable")
    both = conjunction(delta, serial, "both")
    assert [a.name for a in both.axioms] == [a.name for a in (*delta.axioms, *serial.axioms)]
    assert both.needs >= serial.needs
    alone = with_axioms(delta, delta.axioms[-1:], "alone")
    assert not alone.definitions
    assert "Unlogged" not in str(alone.axioms[0])


def test_unfolding_reaches_through_lets_of_lets():
    repaired = spec("delta-write-serializable-repaired")
    assert "Downgraded" not in str(unfold(repaired.axioms[0].expr, repaired.definitions))
