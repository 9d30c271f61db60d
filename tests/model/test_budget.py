"""Limits of time and memory end every search, count and audit in good order: unknown, with what was
done.
"""

import gc
import signal
import subprocess
import sys
import threading
import time
import weakref
from importlib import import_module
from itertools import combinations
from math import inf

import pytest

from isolitmus.checker import audit, check, separate, sweep
from isolitmus.checker.checks.log_check import check_log
from isolitmus.checker.search.portrait import portray
from isolitmus.checker.search.unbounded_separation import separate_unbounded
from isolitmus.checker.solver import smt as solver
from isolitmus.checker.solver.circuits import Gates, Solver
from isolitmus.checker.universes import abstract_enumeration as abstract_exhaustive
from isolitmus.cli.main import _interrupt_again
from isolitmus.model import budget as budgets
from isolitmus.model.budget import Budget, in_use, raised_again, size
from isolitmus.model.display import count_of
from isolitmus.model.errors import IsolitmusError, MemoryLimit, TimeLimit
from isolitmus.specs import litmus, protocol, scope, spec


class Counted(Budget):
    """A budget that is spent after so many looks at it."""

    def __init__(self, looks):
        super().__init__(memory=inf)
        self.looks = looks

    def spent(self):
        self.looks -= 1
        return TimeLimit("the time limit of 9 s ended it") if self.looks < 0 else None


ENDED = "the time limit of 9 s ended it"
QUESTIONS = {
    ("snapshot-isolation", "serializable"): "abstract",
    ("delta-serializable", "log-serializable"): "table",
}


@pytest.mark.slow
@pytest.mark.parametrize("by", ["symbolic", "exhaustive"])
@pytest.mark.parametrize("pair", QUESTIONS)
def test_a_search_says_what_it_did_until_then(pair, by):
    universe = QUESTIONS[pair]
    inside = universe if universe == "abstract" else scope(universe)
    budget = Counted({"symbolic": 1, "exhaustive": 3}[by])
    answer = separate(*map(spec, pair), inside, by=by, transactions=[2], budget=budget)
    assert (answer.found, answer.ended) == (None, ENDED)
    assert answer.bound.startswith(f"{ENDED}, at 2 transactions in search space '{universe}'")
    assert answer.to_json()["ended"] == ENDED
    if by == "exhaustive":
        assert answer.examined > 0
        assert answer.effort == f"{count_of(answer.examined, 'candidate')} checked before the limit"


@pytest.mark.slow
def test_a_proof_that_is_cut_short_is_none():
    pair = spec("delta-serializable"), spec("log-serializable")
    answer = separate_unbounded(*pair, budget=Budget(seconds=0))
    assert (answer.found, answer.proved) == (None, False)


@pytest.mark.slow
@pytest.mark.parametrize("looks", [0, 3, 20])
def test_a_sweep_counts_what_it_came_to(looks):
    whole = sweep(scope("two-partitions"), 2)
    assert (whole.counted, whole.ended) == (whole.candidates, None)
    part = sweep(scope("two-partitions"), 2, budget=Counted(looks))
    assert part.ended == ENDED
    assert part.counted < part.candidates
    assert part.to_json()["ended"] == ENDED


@pytest.mark.slow
def test_a_portrait_says_what_is_unknown():
    seen = portray(protocol("delta-write-serializable"), budget=Budget(seconds=0))
    assert not seen.whole
    assert {promise.hole.found for promise in seen.promises} == {None}
    assert seen.uncounted[0] == "two-partitions, for the time limit of 0 s ended it"


def test_a_history_that_was_not_judged_is_unknown():
    for name in ("reorder", "history-write-skew"):
        checked = check(litmus(name), [spec("serializable")], budget=Counted(0))
        verdict = checked.levels["serializable"]
        assert str(verdict) == "unknown"
        assert verdict.reason.startswith(ENDED)


def test_an_audit_says_how_far_it_came(log):
    whole = audit(log)
    part = audit(log, budget=Counted(2))
    assert (part.commits, part.ended) == (2, ENDED)
    assert f"Unknown: {ENDED}; 2 of {whole.commits} commits were audited." in part.notes
    verdict = check_log(log, [spec("serializable")], budget=Counted(2)).levels["serializable"]
    assert verdict.reason == f"{ENDED}; 2 of {whole.commits:,} commits were read until then"


@pytest.fixture
def log(tmp_path):
    folder = tmp_path / "t" / "_delta_log"
    folder.mkdir(parents=True)
    start = (
        '{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}\n'
        '{"metaData":{"id":"m","format":{"provider":"parquet"},"partitionColumns":[],'
        '"configuration":{},"schemaString":"{\\"type\\":\\"struct\\",\\"fields\\":[]}"}}\n'
    )
    for version in range(4):
        info = '{"commitInfo":{"operation":"WRITE"}}\n'
        (folder / f"{version:020}.json").write_text(info + (start if not version else ""))
    return tmp_path / "t"


def test_memory_is_a_limit_too():
    answer = separate(
        spec("delta-serializable"), spec("log-serializable"), by="exhaustive",
        budget=Budget(memory=in_use() / 2),
    )  # fmt: skip
    assert answer.found is None
    assert answer.ended.startswith("the memory limit of ")


def test_memory_that_is_used_up_is_a_limit_too(monkeypatch):
    def full(*_, **__):
        raise MemoryError

    monkeypatch.setattr("isolitmus.checker.delta.table_solver.search", full)
    answer = separate(spec("delta-serializable"), spec("log-serializable"))
    assert (answer.found, answer.ended) == (None, "memory limit")


@pytest.mark.slow
def test_the_memory_of_processes_that_were_started_counts():
    code = "x = bytearray(10 ** 8); print(flush=True); input()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], **pipes) as child:
        child.stdout.readline()
        with_it = in_use()
        child.communicate(b"\n")
    assert with_it - in_use() > 90_000_000


def test_what_is_free_bounds_what_nobody_bounds(monkeypatch):
    monkeypatch.setattr(budgets, "_free", lambda: 4e9)
    assert 3e9 < Budget().memory < 3e9 + 2 * in_use()


@pytest.mark.parametrize("text", ["", "4", "4PB", "-1GB", "0MB", "x" * 99])
def test_what_is_no_amount_of_memory(text):
    with pytest.raises(
        IsolitmusError, match="is not an amount of memory; 800MB or 4GB would be one"
    ):
        size(text)


# Inside Z3


def pigeons(n):
    """A question that takes Z3 very long: n + 1 pigeons in n holes."""
    z3 = pytest.importorskip("z3")
    asked = z3.SolverFor("QF_FD")
    sits = [[z3.Bool(f"{i} in {j}") for j in range(n)] for i in range(n + 1)]
    asked.add(*map(z3.Or, sits))
    for one in range(n + 1):
        for other in range(one):
            asked.add(*(z3.Not(z3.And(a, b)) for a, b in zip(sits[one], sits[other], strict=True)))
    return asked


@pytest.mark.slow
def test_a_limit_of_time_ends_a_solver_at_work():
    start = time.monotonic()
    with pytest.raises(TimeLimit):
        solver.ask_solver(pigeons(13), [], Budget(seconds=0.3))
    assert time.monotonic() - start < 20


@pytest.mark.slow
def test_a_limit_of_memory_ends_a_solver_at_work(monkeypatch):
    begun = time.monotonic()
    monkeypatch.setattr(budgets, "in_use", lambda: 9 if time.monotonic() > begun + 0.3 else 0)
    with pytest.raises(MemoryLimit):
        solver.ask_solver(pigeons(13), [], Budget(memory=5))
    assert time.monotonic() - begun < 20


def pigeon_clauses(n):
    """The same question as clauses."""
    gates = Gates()
    sits = [[gates.new() for _ in range(n)] for _ in range(n + 1)]
    for holes in sits:
        gates.add(*holes)
    for one, other in combinations(sits, 2):
        for a, b in zip(one, other, strict=True):
            gates.add(-a, -b)
    return gates


@pytest.mark.slow
def test_limits_and_ctrl_c_end_a_solver_of_clauses_at_work(monkeypatch):
    start = time.monotonic()
    with pytest.raises(TimeLimit):
        Solver(pigeon_clauses(13), Budget(seconds=0.3)).check()
    threading.Timer(
        0.3, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)
    ).start()
    with pytest.raises(KeyboardInterrupt):
        Solver(pigeon_clauses(13), Budget(seconds=30)).check()
    begun = time.monotonic()
    monkeypatch.setattr(budgets, "in_use", lambda: 9 if time.monotonic() > begun + 0.3 else 0)
    with pytest.raises(MemoryLimit):
        Solver(pigeon_clauses(13), Budget(memory=5)).check()
    assert time.monotonic() - start < 20


@pytest.mark.slow
def test_ctrl_c_ends_a_solver_at_work():
    asked = pigeons(13)
    timer = threading.Timer(0.3, signal.raise_signal, (signal.SIGINT,))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        solver.ask_solver(asked, [], Budget(seconds=30))


@pytest.mark.slow
def test_a_wait_after_a_solver_hears_ctrl_c():
    """Z3 leaves a handler behind after which a wait is begun again, and a Ctrl-C would wait with
    it.
    """
    assert solver.ask_solver(pigeons(2)) == "unsat"
    threading.Timer(
        0.2, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)
    ).start()
    done = threading.Event()
    last = threading.Timer(20, done.set)
    last.start()
    with pytest.raises(KeyboardInterrupt):
        done.wait()
    last.cancel()
    assert not done.is_set()


def test_a_measurement_that_waited_for_another_thread_does_not_delay_the_next(monkeypatch):
    """A thread that computes holds Python's lock; the wait for it is no time of the measurement."""

    def waited():
        time.sleep(0.2)
        return 1 if len(looks) < 1 else 9

    looks = []
    monkeypatch.setattr(budgets, "in_use", waited)
    budget = Budget(memory=5)
    looks += [budget.spent()]
    time.sleep(2 * budgets.PACE)
    assert looks == [None]
    assert isinstance(budget.spent(), MemoryLimit)


class Slow:
    """Something whose finalizer takes longer than the limit."""

    def __del__(self):
        time.sleep(0.3)


def finalize():
    Slow()


def call_back_weakly():
    event = threading.Event()
    _kept = weakref.ref(event, lambda _: time.sleep(0.3))
    del event


def collect_garbage():
    def slow(*_):
        time.sleep(0.3)

    gc.callbacks.append(slow)
    try:
        gc.collect()
    finally:
        gc.callbacks.remove(slow)


DROPPING = pytest.mark.parametrize("drop", [finalize, call_back_weakly, collect_garbage])
"""Python drops what is raised meanwhile."""


@pytest.mark.slow
@DROPPING
def test_a_limit_that_is_dropped_ends_the_work_after_it(drop):
    with pytest.raises(TimeLimit), Budget(seconds=0.1).interrupting():
        drop()
        time.sleep(20)


@pytest.mark.slow
@DROPPING
def test_ctrl_c_that_is_dropped_ends_the_command_after_it(drop):
    threading.Timer(
        0.1, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT)
    ).start()
    with pytest.raises(KeyboardInterrupt), raised_again(KeyboardInterrupt, _interrupt_again):
        drop()
        time.sleep(20)


def test_an_object_that_was_interrupted_while_it_was_made_goes_silently(monkeypatch):
    class Slow:
        def __init__(self):
            time.sleep(20)
            self.owner = True

        def __del__(self):
            assert self.owner

    dropped = []
    monkeypatch.setattr(sys, "unraisablehook", dropped.append)
    with raised_again(KeyboardInterrupt, _interrupt_again):
        with pytest.raises(TimeLimit), Budget(seconds=0.05).interrupting():
            Slow()
        gc.collect()
    assert not dropped


def test_an_import_ends_before_a_limit_of_time_does(monkeypatch, tmp_path):
    (tmp_path / "half_a_package.py").write_text("import time\ntime.sleep(0.2)\nwhole = True\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(TimeLimit), Budget(seconds=0.05).interrupting():
        import_module("half_a_package")
        time.sleep(20)
    assert sys.modules.pop("half_a_package").whole


# What is enumerated is never there all at once


@pytest.mark.slow
@pytest.mark.parametrize(
    "pair", [("serializable", "update-serializable"), ("causal", "read-atomic")]
)
def test_an_enumeration_takes_no_more_memory_than_a_batch(pair):
    """Eight transactions over three keys have more histories than a machine could hold."""
    before = in_use()
    budget = Budget(seconds=1)
    most = 0

    def told(_n, _examined):
        nonlocal most
        most = max(most, in_use())

    answer = separate(
        *map(spec, pair), "abstract", by="exhaustive", transactions=[8], budget=budget,
        progress=told,
    )  # fmt: skip
    assert answer.ended == "the time limit of 1 s ended it"
    assert answer.examined > 0
    assert most - before < 400_000_000
    assert answer.seconds < 20


@pytest.mark.slow
def test_version_orders_that_are_cut_give_what_they_give_together(monkeypatch):
    pair = spec("prefix-consistency"), spec("snapshot-isolation")
    whole, _ = abstract_exhaustive.search(*pair, 2)
    monkeypatch.setattr(abstract_exhaustive, "LARGEST", 1)
    cut, _ = abstract_exhaustive.search(*pair, 2)
    assert cut == whole
    assert [str(transaction) for transaction in cut.transactions] == ["r(x0) w(x1)", "r(x0) w(x2)"]
