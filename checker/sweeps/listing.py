"""Listing of all candidates of a scope, with all of their transactions committed.

The kernel counts what protocols admit and drops the rest; a listing keeps every candidate, whatever
protocols say. Each has its effects, the state at each version, the dependency graph of its commits,
and the serial orders that produce its tables. Effects, verdicts on graphs, and serial orders are
memoized by number (``space``, ``pairs``, ``orders``).
"""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.checker.judge.compiled_semantics import compile_spec
from isolitmus.checker.judge.graph_semantics import first_conflict, first_silence
from isolitmus.checker.sweeps.kernel import SerialTables
from isolitmus.checker.sweeps.pair_frames import (
    BrokenAxiom,
    Layout,
    Pairs,
    commit_number,
    first_broken,
)
from isolitmus.checker.sweeps.space import FAILS, Space
from isolitmus.checker.sweeps.tally import count_continuations, shard_number
from isolitmus.model.spec_algebra import without_silences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.checker.sweeps.kernel import WriterAt
    from isolitmus.checker.sweeps.shard_runner import Work
    from isolitmus.checker.sweeps.tally import Shard
    from isolitmus.model.spec import Spec

DEPENDENCIES = ("wr", "ww", "rw")
"""Relations of a dependency graph that are listed."""
MOST = 200_000
"""Number of known states after which a shard ends with clearing the memos."""
RowCodes = tuple[int, ...]


class StopReason(NamedTuple):
    """Reason why a protocol ends an execution."""

    position: int
    """Commit position, from 1, of the commit that fails."""
    by: int | None
    """Position of the earlier commit that it conflicts with; None if it is none of them alone."""
    exception: str
    """Exception of the transaction, or the name of the axiom if it has no exception."""
    silent: bool = False
    """True if the protocol does not define the outcome; ``exception`` then names its silence."""


class FrameVerdicts(NamedTuple):
    """Verdicts of specs on a dependency graph."""

    levels: tuple[BrokenAxiom | None, ...]
    """Broken axiom by level; None if the level allows the graph."""
    protocols: tuple[StopReason | None, ...]
    """Stop reason by protocol; None if the protocol admits the graph."""
    dependencies: tuple[tuple[int, int, str], ...]
    """Source and target, as commit positions from 1, and relation."""


class ExplainedCandidate(NamedTuple):
    """Serial orders that produce the tables of a candidate."""

    orders: tuple[tuple[int, ...], ...]
    """Orders that produce the final tables, as commit positions of the writers, from 1."""
    unexplained: tuple[int, ...]
    """Versions whose tables no order of the writers until then produces."""
    log_order: bool
    """True if the order of the log produces the final tables."""


class DroppedCandidates(NamedTuple):
    """Candidates with a common prefix and no history: a statement is a no-op there, or fails."""

    rank: int
    """Rank of the first of them; their ranks are consecutive."""
    candidates: int
    """Number of candidates."""
    position: int
    """Commit position of the statement."""
    exception: str | None
    """Exception of the failure; None if the statement is a no-op, which the scope skips."""
    frame: RowCodes
    """Codes of the commits before it."""


class ListedShard(NamedTuple):
    """Candidates of a shard by columns; those in ``ranks`` have a history, and are sorted."""

    first: int
    """Rank of the first candidate of the shard."""
    ranks: list[int]
    """Ranks of the candidates that have a history."""
    effects: list[int]
    """Effects in the space, n per candidate, for n transactions."""
    states: list[int]
    """States in the space, n + 1 per candidate."""
    frames: list[int]
    """Number of the dependency graph of each candidate, for `Listing.judged`."""
    explained: list[int]
    """Number of the explanation of each candidate, for `Listing.explanation`."""
    dropped: list[DroppedCandidates]
    """Candidates without a history."""


class Listing:
    """Lister of the candidates of a scope, shard by shard.

    Parameters
    ----------
    work : Work
        Scope, number of writers, protocols and levels. The scope must skip no-ops.

    Examples
    --------
    >>> from isolitmus.checker.sweeps.tally import make_shards
    >>> from isolitmus.checker.sweeps.table_sweep import sweep_work
    >>> from isolitmus.specs import scope
    >>> work = sweep_work(scope("two-partitions"), 2)
    >>> listing = Listing(work)
    >>> found = listing.of(make_shards(work.scope, 2)[0])
    >>> len(found.ranks), sum(some.candidates for some in found.dropped)
    (13, 1)
    >>> listing.judged(found.frames[0]).protocols
    (None, None)
    """

    def __init__(self, work: Work) -> None:
        assert work.scope.noops == "skip", "else a candidate is several histories"
        self.scope, self.n = work.scope, work.n
        levels = tuple(map(without_silences, work.levels))
        names = frozenset[str]().union(*(spec.needs for spec in (*levels, *work.protocols)))
        self.layout = Layout(names | {*DEPENDENCIES})
        self._levels = [(level, compile_spec(level)) for level in levels]
        self._protocols = [_Protocol(spec, self.layout) for spec in work.protocols]
        self._begin()

    def of(self, shard: Shard) -> ListedShard:
        """Return the candidates of one shard."""
        if len(self.space.databases) > MOST:
            self._begin()
        start = self.space.starts[shard.init]
        self.orders = self._orders[shard.init]
        first = shard_number(len(self.scope.statements), *shard)
        self._fixed = shard.choices
        self._out = ListedShard(first * self._below(len(shard.choices)), [], [], [], [], [], [])
        self._walk(shard.init, (), (), (start,), (), forked=False)
        return self._out

    def judged(self, frame: int) -> FrameVerdicts:
        """Return the verdicts of the specs on a dependency graph, by its number."""
        known = self._judged.get(frame)
        if known is None:
            known = self._judged[frame] = self._judge(self._rows_of[frame])
        return known

    def explanation(self, number: int) -> ExplainedCandidate:
        """Return an explanation by its number."""
        return self._explanations[number]

    def stopped(self, frame: RowCodes) -> tuple[StopReason | None, ...]:
        """Return, by protocol, why it ends the execution of some commits; None if not."""
        return tuple(protocol.ends(frame) for protocol in self._protocols)

    def _begin(self) -> None:
        """Create empty caches of states, serial orders, graphs and verdicts."""
        self.space = Space(self.scope)
        self._orders = [SerialTables(self.space, start) for start in self.space.starts]
        self._pairs = Pairs(self.space, self.layout, ())
        self._frames: dict[RowCodes, int] = {}
        self._rows_of: list[RowCodes] = []
        self._judged: dict[int, FrameVerdicts] = {}
        self._known: dict[tuple[tuple[WriterAt, ...], tuple[int, ...]], int] = {}
        self._explanations: list[ExplainedCandidate] = []

    def _below(self, position: int) -> int:
        return count_continuations(len(self.scope.statements), position, self.n)

    def _walk(
        self,
        rank: int,
        choices: tuple[tuple[int, int], ...],
        effects: tuple[int, ...],
        states: tuple[int, ...],
        rows: RowCodes,
        *,
        forked: bool,
    ) -> None:
        """List the continuations of a prefix; record those of a failure or no-op as dropped."""
        position, space = len(states), self.space
        if position > self.n:
            self._whole(rank, choices, effects, states, rows)
            return
        fixed = self._fixed[position - 1 : position]
        runs = [space.options(state, position) for state in states]
        size = len(self.scope.statements)
        for k in range(size):
            for version in range(position):
                if fixed and fixed[0] != (k, version):
                    continue
                longer, number = (rank * size + k) * position + version, runs[version][k]
                if number < 0:
                    exception = None
                    if number == FAILS:
                        error = space.done[space.run(states[version], k, position)].effect.error
                        assert error is not None
                        exception = error.exception
                    below = self._below(position)
                    self._out.dropped.append(
                        DroppedCandidates(longer * below, below, position, exception, rows)
                    )
                    continue
                all_choices, all_effects = (*choices, (k, version)), (*effects, number)
                row, fork = self._row(all_choices, all_effects, forked=forked)
                after = space.after(states[-1], number)
                self._walk(
                    longer, all_choices, all_effects, (*states, after), (*rows, row), forked=fork
                )

    def _row(
        self, choices: Sequence[tuple[int, int]], effects: Sequence[int], *, forked: bool
    ) -> tuple[int, bool]:
        """Return the code of the last commit, and whether two commits overwrote one version."""
        pairs, last = self._pairs, commit_number(effects[-1])
        version = choices[-1][1]
        own = pairs.alone.get(last)
        if own is None:
            own = pairs.single(last)
        found = []
        for i, effect in enumerate(effects[:-1]):
            seen, earlier = i < version, commit_number(effect)
            pair = (pairs.seen if seen else pairs.unseen)[earlier].get(last)
            found.append(pairs.pair(earlier, last, seen=seen) if pair is None else pair)
        row = self.layout.row(own, found)
        if forked or row & self.layout.forks(len(effects)):
            seen_of = [v for _, v in choices]
            return self.layout.rows_of(pairs.frame(list(map(commit_number, effects)), seen_of))[
                -1
            ], True
        return row, False

    def _whole(
        self,
        rank: int,
        choices: tuple[tuple[int, int], ...],
        effects: tuple[int, ...],
        states: tuple[int, ...],
        rows: RowCodes,
    ) -> None:
        """Append a candidate to the columns: rank, effects, states, graph, serial orders."""
        out = self._out
        out.ranks.append(rank)
        out.effects.extend(effects)
        out.states.extend(states)
        frame = self._frames.setdefault(rows, len(self._frames))
        if frame == len(self._rows_of):
            self._rows_of.append(rows)
        out.frames.append(frame)
        writers = tuple((k, position) for position, (k, _) in enumerate(choices, 1))
        key = writers, tuple(map(self.space.bag, states))
        number = self._known.setdefault(key, len(self._known))
        if number == len(self._explanations):
            self._explanations.append(self._explain(*key))
        out.explained.append(number)

    def _explain(self, writers: tuple[WriterAt, ...], bags: tuple[int, ...]) -> ExplainedCandidate:
        """Return the serial orders with the final table, and the versions that none produces."""
        orders, bag = self.orders, self.space.bag

        def gives(order: tuple[WriterAt, ...]) -> bool:
            end = orders.end(order)
            return end is not None and bag(end) == bags[-1]

        found = [order for order in permutations(writers) if gives(order)]
        unexplained = (v for v, b in enumerate(bags) if b not in orders.bags(writers[:v]))
        return ExplainedCandidate(
            tuple(tuple(position for _, position in order) for order in found),
            tuple(unexplained),
            writers in found,
        )

    def _judge(self, rows: RowCodes) -> FrameVerdicts:
        """Return the verdicts of levels and protocols on a graph, and its dependencies."""
        frame = self.layout.frame(rows)
        dependencies = (
            (i + 1, j + 1, name)
            for name in DEPENDENCIES
            for i in range(self.n)
            for j in range(self.n)
            if (i, j) in frame.relations[name]
        )
        found = tuple(
            None if admits(frame) else first_broken(frame, level) for level, admits in self._levels
        )
        return FrameVerdicts(found, self.stopped(rows), tuple(dependencies))


class _Protocol:
    """A protocol with memoized stop reasons of prefixes."""

    def __init__(self, spec: Spec, layout: Layout) -> None:
        self.spec, self.layout = spec, layout
        self.admits, self.admits_at_most = compile_spec(spec), compile_spec(without_silences(spec))
        self.known: dict[RowCodes, StopReason | None] = {(): None}

    def ends(self, rows: RowCodes) -> StopReason | None:
        """Return the reason why the protocol stops these commits; None if it admits them."""
        if rows not in self.known:
            self.known[rows] = self._ends(rows)
        return self.known[rows]

    def _ends(self, rows: RowCodes) -> StopReason | None:
        """Return the reason that stops a prefix, silence last, or None if it is admitted."""
        frame = self.layout.frame(rows)
        if self.admits(frame):
            return None
        before = self.ends(rows[:-1])
        if before is not None and not before.silent:
            return before
        last = len(rows) - 1
        conflict = first_conflict(frame, self.spec, last)
        if conflict is not None:
            return StopReason(last + 1, conflict[0] + 1, conflict[1])
        if not self.admits_at_most(frame):
            return StopReason(
                last + 1, None, first_broken(frame, without_silences(self.spec)).axiom
            )
        if before is not None:
            return before
        silence = first_silence(frame, self.spec, last)
        assert silence is not None
        return StopReason(last + 1, silence[0] + 1, silence[1], silent=True)
