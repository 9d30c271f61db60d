"""Sweep kernel: count all candidates of a scope, with shared prefixes and pruning by protocols.

A candidate is a path of commits, each a statement and the version that it read. The effect of a
commit is memoized by the state it ran on, the relations of two commits by their effects, and the
verdicts of specs on all of them by these numbers, so that a step is a few look-ups.

Serial orders are executed, on memoized rows, only for candidates whose conflicts have a cycle, or
contradict the log. In all others the order of the conflicts (or the log) explains every version
(docs/semantics.md, Theorems 1 and 3). A last commit that has seen all the others is not executed:
every verdict on the others also holds with it (Theorem 13).

Specs judge whole candidates. A prefix is pruned only by protocols under which further commits never
make an inadmissible prefix admissible. A protocol with silences is counted twice: with its silences
as axioms, and without them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from isolitmus.checker.execution.commit_loop import is_unrecorded
from isolitmus.checker.judge.spec_properties import ignores_latecomers
from isolitmus.checker.sweeps.pair_frames import (
    Judge,
    Layout,
    Pairs,
    commit_number,
    is_decided_by_pairs,
)
from isolitmus.checker.sweeps.space import FAILS, IDLE, RowContents, Space
from isolitmus.checker.sweeps.tally import FailedStatement, Tallies, Tally, count_continuations
from isolitmus.model.spec_algebra import without_silences
from isolitmus.specs.language.parser import read

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from isolitmus.checker.sweeps.pair_frames import Prefix
    from isolitmus.checker.sweeps.tally import Shard
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec

WriterAt = tuple[int, int]
"""Number of a statement of the scope, and its commit position."""


class TableSteps(Protocol):
    """Tables by number, as states (``Space``) or as rows alone (``RowContents``)."""

    def step(self, tables: int, k: int, position: int, /) -> int | None:
        """Return the tables after statement k at a commit position; None if it fails."""

    def bag(self, tables: int, /) -> int:
        """Return the number of the tables as bags of rows."""


class SerialTables:
    """Memoized results of serial orders of writers from the tables at ``start``."""

    def __init__(self, steps: TableSteps, start: int) -> None:
        self.steps = steps
        self._bags: dict[tuple[WriterAt, ...], frozenset[int]] = {}
        self._anyhow: dict[tuple[WriterAt, ...], frozenset[int]] = {(): frozenset((start,))}
        self._ends: dict[tuple[WriterAt, ...], int | None] = {(): start}

    def end(self, order: tuple[WriterAt, ...]) -> int | None:
        """Return the tables after the writers in this order; None if one of them fails."""
        if order not in self._ends:
            before = self.end(order[:-1])
            self._ends[order] = None if before is None else self.steps.step(before, *order[-1])
        return self._ends[order]

    def bags(self, writers: tuple[WriterAt, ...]) -> frozenset[int]:
        """Return the tables, as bags, that some order of the writers produces."""
        known = self._bags.get(writers)
        if known is None:
            known = frozenset(self.steps.bag(end) for end in self._any(writers))
            self._bags[writers] = known
        return known

    def _any(self, writers: tuple[WriterAt, ...]) -> frozenset[int]:
        """Return the tables that some order of the writers produces.

        Each writer is tried as the last one, after all orders of the others.
        """
        known = self._anyhow.get(writers)
        if known is None:
            ends = (
                self.steps.step(tables, *last)
                for i, last in enumerate(writers)
                for tables in self._any(writers[:i] + writers[i + 1 :])
            )
            known = self._anyhow[writers] = frozenset(end for end in ends if end is not None)
        return known

    def gives(self, writers: tuple[WriterAt, ...], tables: int) -> bool:
        """Return whether the writers in this order produce the tables, compared as bags of rows."""
        end = self.end(writers)
        return end is not None and self.steps.bag(end) == self.steps.bag(tables)

    def explain(self, writers: tuple[WriterAt, ...], versions: Sequence[int]) -> bool:
        """Return whether, at every version, some order of the writers so far produces the tables.

        ``writers`` are sorted by position; ``versions`` are the tables of each version, from 0.
        """
        count = 0
        for version, tables in enumerate(versions):
            while count < len(writers) and writers[count][1] <= version:
                count += 1
            if self.steps.bag(tables) not in self.bags(writers[:count]):
                return False
        return True


SOME_ORDER = read('"Some order" acyclic wr | ww | rw as order', "sweep: some order")
LOG_ORDER = read('"The order of the log" acyclic wr | ww | rw | log as order', "sweep: log order")
MOST = 200_000
"""Number of known states, plus a quarter of the known contents, after which a shard ends with
clearing the memos; counts stay. That is about half a gigabyte.
"""


class _View(NamedTuple):
    """Protocols that record the same commits, as a bit mask, with their judge.

    Bit b of ``protocols`` stands for ``Kernel.protocols[b]``. The judge also has the levels.
    """

    protocols: int
    judge: Judge


class _ViewPrefix(NamedTuple):
    """Prefix in one view: its commits, and whether two of them overwrote one row version."""

    view: _View
    commits: tuple[int, ...]
    prefix: Prefix
    forked: bool


class Kernel:
    """Counter of the candidates of a scope with n writers under protocols and levels.

    Parameters
    ----------
    scope : Scope
        Statements and initial tables.
    n : int
        Number of writers of a candidate.
    protocols, levels : sequence of Spec
        Specs to count under.
    kinds : bool
        Whether forbidden candidates are also counted by kind.

    Notes
    -----
    ``check`` is called before each step and may raise to end the count.

    Examples
    --------
    >>> from isolitmus.checker.sweeps.tally import make_shards
    >>> from isolitmus.specs import scope, spec
    >>> asked, judged = [spec("delta-serializable")], [spec("log-serializable")]
    >>> kernel = Kernel(scope("two-partitions"), 2, asked, judged)
    >>> counts = [kernel.count(shard) for shard in make_shards(kernel.scope, 2)]
    >>> sum(tallies.of["delta-serializable"].admitted for tallies in counts)
    94
    """

    check: Callable[[], None] = staticmethod(lambda: None)

    def __init__(
        self,
        scope: Scope,
        n: int,
        protocols: Sequence[Spec],
        levels: Sequence[Spec],
        *,
        kinds: bool = False,
    ) -> None:
        self.scope, self.n, self.kinds = scope, n, kinds
        self.levels = (*map(without_silences, levels), SOME_ORDER, LOG_ORDER)
        self.own = len(protocols)
        self.reticent = [spec for spec in protocols if spec.silences]
        self.protocols = (*protocols, *map(without_silences, self.reticent))
        asked = [*self.levels, *(spec for spec in self.protocols if not is_decided_by_pairs(spec))]
        self.layout = Layout(frozenset[str]().union(*(spec.needs for spec in asked)))
        self.ignored = all(map(ignores_latecomers, (*self.protocols, *self.levels)))
        each = [1 << b for b in range(len(self.protocols))]
        self.groups = [sum(each)] if scope.noops == "skip" else each
        self.cyclic = 1 << len(levels)
        self.backward = 2 << len(levels)
        self._begin()

    def count(self, shard: Shard) -> Tallies:
        """Return the counts of one shard."""
        contents = 0 if self.contents is None else len(self.contents)
        if len(self.space.databases) + contents // 4 > MOST:
            self._begin()
        self.shard = shard
        self.choices: list[tuple[int, int]] = []
        self.states = [self.space.starts[shard.init]]
        self.orders = self._orders[shard.init]
        self.found: list[tuple[_View, Prefix]] = []
        self.failed = 0
        self.failure: FailedStatement | None = None
        lines = [_ViewPrefix(view, (), view.judge.root, False) for view in self.views]
        self._extend(lines, 0)
        tallies = Tallies.none(
            [protocol.name for protocol in self.protocols[: self.own]],
            [level.name for level in self.levels[:-2]],
        )
        tallies.failed, tallies.failure = self.failed, self.failure
        for view, prefix in self.found:
            for b, protocol in enumerate(self.protocols):
                if prefix.admitted >> b & 1:
                    tally = tallies.of[protocol.name]
                    if b < self.own:
                        self._add(tally, view, prefix)
                    else:
                        tally.silent += prefix.count
            prefix.forget()
        # So far ``silent`` counts what the protocol without its silences admits.
        for protocol in self.reticent:
            tallies.of[protocol.name].silent -= tallies.of[protocol.name].admitted
        return tallies

    def _begin(self) -> None:
        """Create empty caches of states, effects, verdicts and serial orders."""
        self.space = Space(self.scope)
        self.views = [
            _View(group, Judge(self.layout, self.protocols, self.levels, group))
            for group in self.groups
        ]
        self.pairs = Pairs(self.space, self.layout, self.protocols)
        self.contents = RowContents(self.space) if RowContents.known(self.space) else None
        self._orders = [
            (
                SerialTables(self.space, start)
                if self.contents is None
                else SerialTables(self.contents, self.contents.of(start))
            )
            for start in self.space.starts
        ]
        self.options: dict[tuple[int, int], list[int]] = {}
        self._idle: dict[Hashable, bool] = {}

    def _add(self, tally: Tally, view: _View, prefix: Prefix) -> None:
        """Add the candidates that end in a prefix's counter to the counts of a protocol."""
        tally.admitted += prefix.count
        tally.unexplained += prefix.unexplained
        tally.not_log_order += prefix.not_log_order
        for b, level in enumerate(self.levels[:-2]):
            if prefix.forbidden >> b & 1:
                tally.forbidden[level.name] += prefix.count
                assert prefix.first is not None
                first = (self.shard.init, *prefix.first)
                tally.offer(level.name, first)
                if self.kinds:
                    tally.sort(level.name, view.judge.kind(prefix, b), prefix.count, first)

    # One step: extensions of a prefix

    def _extend(self, lines: list[_ViewPrefix], vocabulary: int) -> None:
        """Count the continuations of a prefix in all views, depth first."""
        self.check()
        position = len(self.states)
        fixed = self.shard.choices[position - 1 : position]
        plain = self.scope.noops == "skip" and not lines[0].forked
        if position == self.n and plain and not fixed:
            self._last(lines[0], vocabulary)
            return
        runs = [self._options(state, position) for state in self.states]
        for k in range(len(self.scope.statements)):
            for version in range(position):
                if fixed and fixed[0] != (k, version):
                    continue
                number = runs[version][k]
                if number < 0:
                    if number == FAILS:
                        self._fails(k, version, position)
                    continue
                grown = [g for line in lines if (g := self._grown(line, number, version))]
                if not grown:
                    continue
                self.choices.append((k, version))
                self.states.append(self.space.after(self.states[-1], number >> 1))
                if position == self.n:
                    for line in grown:
                        self._leaf(line, vocabulary)
                else:
                    self._extend(grown, max(vocabulary, k))
                self.states.pop()
                self.choices.pop()

    def _last(self, line: _ViewPrefix, vocabulary: int) -> None:
        """Count the last step of one view: `_extend` inlined, where most candidates are."""
        view, commits, prefix, _ = line
        versions = self.n
        if self.contents is not None and self.ignored:
            versions -= 1
            self._latecomers(line, vocabulary, self.contents)
        runs = [self._options(state, self.n) for state in self.states[:versions]]
        mine = view.protocols
        seen, unseen, alone = self.pairs.seen, self.pairs.unseen, self.pairs.alone
        known = [
            [(seen if i < version else unseen)[c] for i, c in enumerate(commits)]
            for version in range(versions)
        ]
        start, width, shift = self.layout.start, self.layout.width, self.pairs.shift
        forks = self.layout.forks(self.n)
        below = prefix.below
        for k in range(len(self.scope.statements)):
            for version in range(versions):
                number = runs[version][k]
                own = alone.get(number)
                if own is None:
                    self._slow(line, number, k, version, vocabulary)
                    continue
                alive = prefix.alive & own
                row, place = own >> shift, start
                for of_earlier in known[version]:
                    pair = of_earlier.get(number)
                    if pair is None:
                        self._slow(line, number, k, version, vocabulary)
                        break
                    alive &= pair
                    if not alive & mine:
                        break
                    row |= pair >> shift << place
                    place += width
                else:
                    longer = below.get(row << shift | alive)
                    if longer is None or row & forks:
                        self._slow(line, number, k, version, vocabulary)
                    elif longer.count and not longer.forbidden:
                        longer.count += 1
                    else:
                        self.choices.append((k, version))
                        self._leaf(_ViewPrefix(view, (*commits, number), longer, False), vocabulary)
                        self.choices.pop()

    def _latecomers(self, line: _ViewPrefix, vocabulary: int, contents: RowContents) -> None:
        """Count last commits that have seen all others, without executing them.

        Specs say of them what they say of the prefix (``ignored``). An order that explains the
        others also does with the last commit at its end.
        """
        view, _, prefix, _ = line
        position, state = self.n, self.states[-1]
        came: list[int] = []
        for k, what in enumerate(contents.late(state, position)):
            if what == FAILS:
                self._fails(k, position - 1, position)
            elif what != IDLE:
                came.append(k)
        if not came or not prefix.admitted:
            return
        if not prefix.count:
            self.found.append((view, prefix))
        prefix.count += len(came)
        forbidden = view.judge.forbidden(prefix)
        if not forbidden:
            return
        first = max(vocabulary, came[0]), (*self.choices, (came[0], position - 1))
        if prefix.first is None or first < prefix.first:
            prefix.first = first
        writers = tuple((k, i) for i, (k, _) in enumerate(self.choices, 1))
        if forbidden & self.cyclic and not self.orders.explain(writers, self._versions()):
            prefix.unexplained += len(came)
        if forbidden & self.backward:
            end, seen = self.orders.end(writers), contents.of(state)
            if end is None:
                prefix.not_log_order += len(came)
            elif end != seen:
                prefix.not_log_order += sum(
                    contents.step(end, k, position) != contents.step(seen, k, position)
                    for k in came
                )

    def _slow(self, line: _ViewPrefix, number: int, k: int, version: int, vocabulary: int) -> None:
        """Count the last step of one view: its failure, or the candidate that it completes."""
        if number == FAILS:
            self._fails(k, version, self.n)
        if number < 0:
            return
        grown = self._grown(line, number, version)
        if grown is not None:
            self.choices.append((k, version))
            self._leaf(grown, vocabulary)
            self.choices.pop()

    def _options(self, state: int, position: int) -> list[int]:
        """Return, for each statement on a state, its commit number, IDLE or FAILS."""
        known = self.options.get((state, position))
        if known is None:
            found = self.space.options(state, position)
            known = [number if number < 0 else commit_number(number) for number in found]
            self.options[state, position] = known
        return known

    def _fails(self, k: int, version: int, position: int) -> None:
        """Count all candidates with this failing prefix."""
        self.failed += count_continuations(len(self.scope.statements), position, self.n)
        if self.failure is None:
            done = self.space.done[self.space.run(self.states[version], k, position)]
            assert done.effect.error is not None
            statement = self.scope.statements[k][position - 1]
            error = done.effect.error
            choices = (*self.choices, (k, version))
            self.failure = FailedStatement(
                self.shard.init, choices, statement.sql, error.exception, str(error)
            )

    def _grown(self, line: _ViewPrefix, number: int, version: int) -> _ViewPrefix | None:
        """Return a prefix extended by a commit, in one view; None if no protocol admits it."""
        view, commits, prefix, forked = line
        if self.scope.noops == "keep" and self._unrecorded(view, number >> 1):
            number = commit_number(number >> 1, recorded=False)
        own = self.pairs.alone.get(number)
        if own is None:
            own = self.pairs.single(number)
        shift = self.pairs.shift
        alive = prefix.alive & own
        pairs = []
        for i, earlier in enumerate(commits):
            known = (self.pairs.seen if i < version else self.pairs.unseen)[earlier]
            pair = known.get(number)
            if pair is None:
                pair = self.pairs.pair(earlier, number, seen=i < version)
            alive &= pair
            if not alive & view.protocols:
                return None
            pairs.append(pair >> shift)
        row = self.layout.row(own >> shift, pairs)
        forked = forked or bool(row & self.layout.forks(len(commits) + 1))
        if forked:
            versions = [v for _, v in self.choices] + [version]
            row = self.layout.rows_of(self.pairs.frame((*commits, number), versions))[-1]
        longer = view.judge.longer(prefix, row << shift | alive)
        if longer is None:
            return None
        return _ViewPrefix(view, (*commits, number), longer, forked)

    def _unrecorded(self, view: _View, effect: int) -> bool:
        """Return whether a protocol does not record a commit; this depends on its sets alone."""
        protocol = self.protocols[view.protocols.bit_length() - 1]
        done = self.space.done[effect]
        key = protocol.name, done.footing
        if key not in self._idle:
            self._idle[key] = is_unrecorded(self.space.form, done.bare, protocol)
        return self._idle[key]

    # Whole candidates

    def _leaf(self, line: _ViewPrefix, vocabulary: int) -> None:
        """Count a candidate, and execute serial orders if a level of serial orders forbids it."""
        view, commits, prefix, forked = line
        if not prefix.count:
            self.found.append((view, prefix))
        prefix.count += 1
        forbidden = view.judge.forbidden(prefix)
        if not forbidden:
            return
        vocabulary = max(vocabulary, self.choices[-1][0])
        first = vocabulary, tuple(self.choices)
        if prefix.first is None or first < prefix.first:
            prefix.first = first
        cyclic = forbidden & self.cyclic
        backward = forbidden & self.backward
        if not (cyclic or backward):
            return
        writers: tuple[WriterAt, ...] = tuple(
            (k, position)
            for position, ((k, _), number) in enumerate(zip(self.choices, commits, strict=True), 1)
            if not number & 1
        )
        tables = self._tables(commits[-1] >> 1, forked=forked)
        if backward and not self.orders.gives(writers, tables):
            prefix.not_log_order += 1
        if cyclic and not self.orders.explain(writers, [*self._versions(), tables]):
            prefix.unexplained += 1

    def _versions(self) -> list[int]:
        """Return the tables at each version before the last, as numbers of ``orders``."""
        states = self.states[: self.n]
        return states if self.contents is None else list(map(self.contents.of, states))

    def _tables(self, last: int, *, forked: bool) -> int:
        """Return the tables after the last effect of a candidate, as a number of ``orders``."""
        state = self.states[self.n - 1]
        if self.contents is None:
            return self.space.after(state, last)
        # A forked commit writes rows that are gone, or that are there twice.
        if forked:
            return self.contents.of(self.space.after(state, last))
        return self.contents.after(self.contents.of(state), last)
