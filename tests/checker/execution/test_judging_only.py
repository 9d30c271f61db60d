"""A spec judges, it never acts: what its axioms say decides nothing of what is carried out."""

from dataclasses import replace

import pytest

from isolitmus.checker.delta.delta_rs_read_set import READ_SETS
from isolitmus.checker.delta.frame import BASIC, BASIC_SETS
from isolitmus.checker.execution.commit_loop import execute, observed_run
from isolitmus.checker.search.separation import separate
from isolitmus.checker.sweeps.table_sweep import sweep_work
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.litmus import Litmus
from isolitmus.model.spec import Axiom, Binary, Bracket, Name
from isolitmus.specs import level, litmus, protocol, scope
from isolitmus.specs.files.catalogue import litmus_names
from isolitmus.specs.files.spec_reader import read_spec

SAME_ROW = read_spec('"By row" empty unseen & ww as SameRow', "by-row")
IMPLIED = " ".join(
    [
        "empty unseen & ww as SameRow",
        *(f"empty unseen & ww & {word} as Never" for word in READ_SETS),
    ]
)


def on_tables():
    return [test for test in map(litmus, litmus_names()) if isinstance(test, Litmus)]


def runs(spec, tests):
    """What every test shows under a spec, and the tables at every version; or why it has no run."""
    for test in tests:
        try:
            yield observed_run(test, execute(test, spec), "under")
        except IsolitmusError as error:
            yield str(error)


def with_all_words(spec):
    """The protocol with axioms that never fire, and that use every word that there is."""
    words = {*BASIC, *BASIC_SETS, *(READ_SETS if spec.format == "delta-rs" else ())}
    names = [Bracket(Name(word)) if word in BASIC_SETS else Name(word) for word in sorted(words)]
    never = (Axiom("empty", Binary("\\", name, name), f"Never{name}") for name in names)
    return replace(spec, axioms=(*spec.axioms, *never), needs=spec.needs | words)


@pytest.mark.slow
def test_axioms_that_follow_from_another_change_no_run():
    wordy = read_spec(f'"By row" format delta-rs {IMPLIED}', "wordy")
    plain, tests = replace(SAME_ROW, format="delta-rs"), on_tables()[::3]
    assert list(runs(wordy, tests)) == list(runs(plain, tests))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["delta-serializable", "delta-rs-serializable", "databricks-write-serializable-newest-rows"],
)
def test_axioms_that_never_fire_change_no_run(name):
    tests = on_tables()
    assert list(runs(with_all_words(protocol(name)), tests)) == list(runs(protocol(name), tests))


def test_what_the_log_decides_is_said_by_the_format():
    test = litmus("two-deletes-one-partition")
    log = replace(SAME_ROW, format="delta-rs")
    by_row, by_file = next(runs(SAME_ROW, [test])), next(runs(log, [test]))
    assert by_row.transactions == by_file.transactions
    assert by_row.tables == {"t": ((3, 1),)}
    assert by_file.tables == {"t": ((1, 0), (2, 0), (3, 1))}  # each leaves what the other deletes
    assert protocol("delta-rs-serializable").format == "delta-rs"


@pytest.mark.slow
def test_where_rows_decide_a_format_is_refused():
    log = replace(SAME_ROW, format="delta-rs")
    said = "by-row is of format delta-rs: what a commit of delta-rs leaves is what the log replays"
    with pytest.raises(IsolitmusError, match=said):
        separate(log, level("log-serializable"), scope("table"))
    with pytest.raises(IsolitmusError, match=said):
        sweep_work(scope("writers-unpartitioned"), 2, protocols=[log])
