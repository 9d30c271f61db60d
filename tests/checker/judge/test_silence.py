"""What a spec is silent on is neither admitted nor forbidden, counted apart, and never a
witness.
"""

from dataclasses import replace

import pytest

from isolitmus.checker import check, separate, sweep
from isolitmus.checker.execution.commit_loop import abort_violations
from isolitmus.checker.execution.conflict_matrix import predict_cells
from isolitmus.checker.execution.run_diff import compare_runs
from isolitmus.checker.execution.run_result import run
from isolitmus.checker.judge.graph_semantics import judge
from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.checker.render.sweeps import sweep_lines
from isolitmus.checker.render.verdicts import refusal_words, verdict_words
from isolitmus.checker.search.unbounded_separation import separate_unbounded
from isolitmus.checker.universes.tables import candidates
from isolitmus.model.display import count_of
from isolitmus.model.history import History
from isolitmus.model.matrix import MatrixPlace
from isolitmus.specs import level, litmus, protocol, scope
from isolitmus.specs.files.catalogue import matrix
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.files.spec_reader import read_spec

MISSED = "let missed = unseen & (removes-meets-reads | removes-meets-removes)"
QUIET = read_spec(
    f'"Quiet" {MISSED} empty missed as Conflict silent unseen & adds-meets-reads as adds show'
    " Writer as WriteSerializable",
    "quiet",
)
"""It says nothing of what was added."""
SAME = read_spec(f'"Same" {MISSED} empty missed | unseen & adds-meets-reads as Conflict', "same")
THREE = """
title = "A delete, overtaken twice"
schedule = "delete.start first second delete.commit after reader"
[table]
columns = "id INT, part INT"
init = ["INSERT INTO t VALUES (1, 0)"]
[transactions]
delete = "DELETE FROM t WHERE part = 0"
first  = "INSERT INTO t VALUES (2, 0)"
second = "{second}"
after  = "INSERT INTO t VALUES (4, 0)"
reader = "SELECT * FROM t"
[expect.quiet]
outcome = {{ delete = "silent", after = "silent", reader = "silent" }}
"""


def carried(second, tmp_path):
    (tmp_path / "quiet.cat").write_text(QUIET.text, "utf-8")
    test = read_litmus(THREE.format(second=second), "three", tmp_path / "three.toml")
    return run(test, QUIET)


def test_a_run_ends_in_a_silence(tmp_path):
    done = carried("INSERT INTO t VALUES (3, 0)", tmp_path)
    assert {name: t.outcome for name, t in done.run.transactions.items()} == {
        "first": "committed", "second": "committed",
        "delete": "silent", "after": "silent", "reader": "silent",
    }  # fmt: skip
    assert done.run.tables == {"t": ((1, 0), (2, 0), (3, 0))}
    assert (done.word, done.expected, str(done.levels["serializable"])) == (
        "silent",
        "met",
        "allowed",
    )
    assert not any(t.aborted or t.failed for t in done.run.transactions.values())
    why = abort_violations(done.execution, QUIET)
    assert list(why) == ["delete"]
    first, so = refusal_words(why["delete"])
    assert first.startswith("delete overlaps first, because delete read version 0, before first")
    assert so == "the outcome of delete is undefined (adds), and the run ends"


def test_a_conflict_comes_before_a_silence_whoever_is_earlier(tmp_path):
    done = carried("DELETE FROM t WHERE id = 1", tmp_path)
    assert done.run.transactions["delete"].outcome == "Conflict"
    assert done.run.transactions["after"].outcome == "committed"
    assert done.expected == "not met"


def test_a_verdict_may_be_silent():
    verdict = check(litmus("reorder"), QUIET).levels["quiet"]
    assert str(verdict) == "silent"
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(verdict)
    lines = verdict_words(verdict, QUIET)
    assert lines[0] == "Quiet is silent on it (adds):"
    assert lines[-1] == "  the history is neither allowed nor forbidden"


def test_a_history_that_leaves_something_open_is_silent_if_no_completion_is_allowed():
    said = read_spec('"S" with ww from versions empty wr as w silent ww as order', "s")
    open_, read_ = (History.parse(text) for text in ("w1(x1) c1 w2(x2) c2", "w1(x1) c1 r2(x1) c2"))
    assert str(check_history(open_, said)) == "silent"
    assert str(check_history(read_, said)) == "forbidden"
    assert str(check_history(History.parse("w1(x1) c1 w2(y2) c2"), said)) == "allowed"


@pytest.mark.slow
def test_a_search_counts_what_only_a_silence_keeps_from_being_found():
    universe = scope("two-partitions")
    for a, b in ((protocol("delta-write-serializable"), QUIET), (QUIET, SAME)):
        open_ = 0
        for found in candidates(universe, 2, lambda _: True):
            verdicts = str(judge(found.frame, a)), str(judge(found.frame, b))
            open_ += (
                "silent" in verdicts and verdicts[0] != "forbidden" and verdicts[1] != "allowed"
            )
        assert open_
        answers = [
            separate(a, b, universe, by=by, transactions=[2], shipped=False)
            for by in ("exhaustive", "symbolic")
        ]
        assert [(each.found, each.silent) for each in answers] == [(False, open_)] * 2
        assert f", {open_} candidates silent" in str(answers[0])


@pytest.mark.slow
def test_without_a_silence_nothing_is_counted():
    names = "delta-serializable", "log-serializable"
    assert (
        separate(*map(read_or_named, names), scope("two-partitions"), transactions=[2]).silent == 0
    )


def read_or_named(name):
    return level(name) if name == "log-serializable" else protocol(name)


@pytest.mark.slow
def test_in_the_abstract_universe_silent_histories_are_left_out():
    said = read_spec('"S" with ww from versions acyclic wr | ww | rw as c silent wr as read', "s")
    for by in ("symbolic", "exhaustive"):
        answer = separate(said, level("read-committed"), by=by, transactions=[1, 2], shipped=False)
        assert (answer.found, answer.silent) == (False, None)
        assert ", silent ones left out" in answer.bound
        found = separate(level("read-committed"), said, by=by, transactions=[1, 2], shipped=False)
        assert str(check_history(found.litmus.history, said)) == "forbidden"


@pytest.mark.slow
@pytest.mark.parametrize("noops", ["skip", "keep"])
def test_a_sweep_counts_them_apart(noops):
    universe = replace(scope("two-partitions"), noops=noops)
    counts = sweep(universe, 2, protocols=[QUIET, SAME], levels=[level("log-serializable")])
    quiet, same = (counts.protocols[name] for name in ("quiet", "same"))
    verdicts = [str(judge(c.frame, QUIET)) for c in candidates(universe, 2, lambda _: True)]
    if noops == "skip":
        assert (quiet.admitted, quiet.silent) == (
            verdicts.count("allowed"),
            verdicts.count("silent"),
        )
    assert quiet.silent
    assert (quiet.admitted, same.silent) == (same.admitted, 0)
    silent, admitted = (count_of(n, "candidate") for n in (quiet.silent, quiet.admitted))
    assert f"  quiet is undefined on {silent} and admits {admitted}. Of these:" in [
        *sweep_lines(counts)
    ]


@pytest.mark.slow
def test_a_matrix_has_them_apart():
    (cell,) = predict_cells(
        matrix("pairs"), [QUIET], [MatrixPlace("delete-row", "insert", "same partition")]
    ).cells
    assert cell.predicted == "silent"


def test_no_engine_differs_from_a_silence():
    test = litmus("reorder")
    ours = run(test, QUIET).run
    theirs = replace(run(test, protocol("delta-write-serializable")).run, protocol="quiet")
    compared = compare_runs(ours, theirs)
    assert compared.differences == ()
    assert compared.uncompared == ("the outcome of delete, on which the protocol is silent",)
    shorter = replace(theirs, versions=theirs.versions[:1])
    assert compare_runs(ours, shorter).differences == ("1 versions predicted, 0 observed",)


@pytest.mark.slow
def test_a_proof_supposes_that_nothing_is_left_unsaid():
    """What the silent protocol admits is what delta-serializable does; without the silence it
    fails.
    """
    checks = "delta-serializable-checks.cat"
    whole = protocol("delta-serializable")
    text = whole.text.replace(
        f'include "{checks}"',
        (whole.path.parents[1] / checks).read_text("utf-8").partition("\n")[2],
    )
    append = "empty added ; [~Downgraded] as ConcurrentAppendException"
    assert append in text
    log = level("log-serializable")
    silent = read_spec(
        text.replace(append, "silent added ; [~Downgraded] as appends"), "silent-delta"
    )
    assert separate_unbounded(silent, log).proved
    gone = read_spec(text.replace(append, ""), "without")
    assert not separate_unbounded(gone, log, transactions=[2]).proved


def test_an_axiom_on_one_transaction_alone_is_a_conflict_with_itself():
    alone = read_spec('"Alone" format delta empty [Blind] as NoAppends', "alone")
    done = run(litmus("reorder"), alone)
    assert done.run.transactions["insert"].outcome == "NoAppends"
