"""Search space of tables: every candidate of a scope, in a fixed order, with shared prefixes.

A candidate is executed without any check. Whether a protocol admits it is decided on its dependency
graph, as for a level. Order: fewest transactions, then fewest writers, then initial tables in their
order, then the smallest vocabulary: candidates that need only the first k statements of the scope
come before those that need one more. The same scope gives the same order.

`Witnesses` accepts the candidates that one spec admits and another forbids. It also counts the
silent ones: these are not witnesses only because the first spec is silent and does not forbid them,
or because the second one is silent and does not admit them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

from isolitmus.checker.execution.commit_loop import initial_database, is_unrecorded
from isolitmus.checker.execution.serial_orders import ModelExecutor, unexplained_versions
from isolitmus.checker.judge.compiled_semantics import compile_spec
from isolitmus.checker.judge.read_nodes import needs_reads
from isolitmus.checker.judge.spec_properties import is_monotone
from isolitmus.model.budget import Budget
from isolitmus.model.display import count_of
from isolitmus.model.errors import IsolitmusError, Limit
from isolitmus.model.execution import Event
from isolitmus.model.litmus import Litmus
from isolitmus.model.schedule import Schedule, Step
from isolitmus.model.spec_algebra import with_silences_as_axioms, without_silences
from isolitmus.model.sql.statement import Block
from isolitmus.specs.registries import format_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from isolitmus.checker.universes.exercised_names import ExerciseRecord
    from isolitmus.model.execution import Database, Effect
    from isolitmus.model.format import BuildsFrame, Format, ScopeSolver
    from isolitmus.model.frame import Frame
    from isolitmus.model.schedule import Action
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec
    from isolitmus.model.sql.statement import Statement

KINDS = {"Read": "reader", "Definition": "alter", "Block": "txn"}
"""Name of a transaction by class of statement, where it is not the name of the class."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Execution of statements of a scope."""

    scope: Scope
    """Scope of the statements."""
    init: tuple[Statement, ...]
    """Statements that fill the tables."""
    statements: tuple[Statement, ...]
    """Writers in log order, with those that recorded nothing at their places, then readers."""
    events: tuple[Event, ...]
    """Event of each statement."""
    states: tuple[Database, ...]
    """Tables at first, and after each writer."""
    frame: Frame
    """Dependency graph, without reasons."""

    @property
    def writers(self) -> int:
        """Number of transactions that are not readers of the scope."""
        return len(self.states) - 1

    def unexplained(self) -> bool:
        """Return whether some version is produced by no serial order of the writers so far."""
        so_far = [
            tuple(event.name for event in self.events[:k] if event.version is not None)
            for k in range(len(self.states))
        ]
        versions = [{n: t.rows() for n, t in state.items()} for state in self.states]
        return bool(unexplained_versions(ModelExecutor(self.plain()), so_far, versions))

    def plain(self) -> Litmus:
        """Return a litmus test with the names of the events, without a schedule."""
        transactions = {e.name: s for e, s in zip(self.events, self.statements, strict=True)}
        return Litmus(
            "", "", "", self.scope.tables, self.init, transactions, Schedule(()),
            format=self.scope.format,
        )  # fmt: skip

    def litmus(self, name: str, title: str, source: str) -> Litmus:
        """Return the candidate as a litmus test with a schedule for its read versions and log."""
        steps = self._steps()
        order = list(dict.fromkeys(k for k, _ in steps))
        names = dict(zip(order, self._names(order), strict=True))
        return Litmus(
            name,
            title,
            source,
            self.scope.tables,
            self.init,
            {names[k]: self.statements[k] for k in order},
            Schedule(tuple(self._taken(names, steps))),
            format=self.scope.format,
        )

    def _names(self, order: list[int]) -> list[str]:
        """Return a name for each transaction: its job or kind, numbered if not unique."""
        written = [self.statements[k] for k in order]
        names = [self.scope.jobs.get(s.sql) or _kind(s) for s in written]
        return [
            name if names.count(name) == 1 else f"{name}{names[: k + 1].count(name)}"
            for k, name in enumerate(names)
        ]

    def _taken(
        self, names: Mapping[int, str], steps: Sequence[tuple[int, Action]]
    ) -> Iterator[Step]:
        """Yield the steps; a block executes its statements right after its start."""
        for k, action in steps:
            yield Step(names[k], action)
            statement = self.statements[k]
            if action == "start" and isinstance(statement, Block):
                for number in range(1, len(statement.statements) + 1):
                    yield Step(names[k], "statement", number)

    def _steps(self) -> list[tuple[int, Action]]:
        """Return the schedule as pairs: position of the transaction among the events, action."""
        steps: list[tuple[int, Action]] = []
        for version in range(self.writers + 1):
            if version:
                alone = self.events[version - 1].read_version == version - 1
                steps.append((version - 1, "both" if alone else "commit"))
            for k, event in enumerate(self.events):
                if event.read_version == version and (k >= self.writers or k != version):
                    steps.append((k, "start" if k < self.writers else "both"))
        return steps


def _kind(statement: Statement) -> str:
    name = type(statement).__name__
    return KINDS.get(name, name.lower())


def of_format(scope: Scope, *specs: Spec) -> Format:
    """Return the format of a scope.

    Raises
    ------
    IsolitmusError
        If a spec is of another format, or of one that is not searched.
    """
    for spec in specs:
        name = scope.format if spec.format is None else spec.format
        form = format_named(name)
        if form.unsearched:
            raise IsolitmusError(f"{spec.name} is of format {name}: {form.unsearched}")
        if (form.searched_as or name) != scope.format:
            raise IsolitmusError(
                f"{spec.name} is of format {name}, and what is searched, '{scope.name}', of format"
                f" {scope.format}; name a scope of format {name}"
            )
    return format_named(scope.format)


def candidates(
    scope: Scope,
    transactions: int,
    keep: Callable[[Frame], bool],
    check: Callable[[], None] = lambda: None,
    *,
    recorder: Spec | None = None,
) -> Iterator[Candidate | None]:
    """Yield every candidate with n transactions whose prefixes are all kept.

    Yields None for each candidate that is refused at its last step, so that a caller can count and
    stop.

    Parameters
    ----------
    scope : Scope
        Statements and initial tables.
    transactions : int
        Number of transactions.
    keep : callable
        Called with the graph of each prefix. A refused prefix is not extended, so ``keep`` must
        also refuse all its extensions.
    check : callable
        Called at every step; it may raise to end the enumeration.
    recorder : Spec, optional
        Protocol; a commit that it does not record has no version and leaves an empty one at its
        place.
    """
    for writers in range(1, transactions + 1):
        if writers < transactions and not scope.readers:
            continue
        for init in scope.inits:
            search = _CandidateSearch(
                scope, init, writers, transactions - writers, keep, check=check, recorder=recorder
            )
            for vocabulary in range(1, len(scope.statements) + 1):
                yield from search.extend(search.root, vocabulary, fresh=False)


def candidate(
    scope: Scope,
    init: tuple[Statement, ...],
    writers: Sequence[tuple[int, int]],
    readers: Sequence[tuple[int, int]],
) -> Candidate | None:
    """Return one candidate by its choices.

    Parameters
    ----------
    scope : Scope
        Statements and initial tables.
    init : tuple of Statement
        Statements that fill the tables.
    writers, readers : sequence of (int, int)
        Number of a statement (of a reader) and the version that it reads.

    Returns
    -------
    Candidate or None
        None if a statement fails, or is a no-op that the scope skips.
    """
    search = _CandidateSearch(scope, init, len(writers), len(readers), keep=lambda _: True)
    node = search.root
    for k, read_version in writers:
        event = search.grown(node, k, read_version)
        if event is None:
            return None
        node = search.longer(node, k, event, node.frame)
    node = replace(node, frame=search.form.frame(node.events, reasons=False))
    return search.watched(node, [(scope.readers[q], version) for q, version in readers])


@dataclass(frozen=True, slots=True)
class _Node:
    """Prefix of candidates.

    ``effects`` has, for each state, the effects computed on it so far, by statement and position,
    and whether they are recorded.
    """

    statements: tuple[Statement, ...]
    events: tuple[Event, ...]
    states: tuple[Database, ...]
    effects: tuple[dict[tuple[int, int], tuple[Effect, bool]], ...]
    frame: Frame


class _CandidateSearch:
    def __init__(
        self,
        scope: Scope,
        init: tuple[Statement, ...],
        writers: int,
        readers: int,
        keep: Callable[[Frame], bool],
        *,
        check: Callable[[], None] = lambda: None,
        recorder: Spec | None = None,
    ) -> None:
        self.scope, self.init, self.recorder = scope, init, recorder
        self.writers, self.readers = writers, readers
        self.keep, self.check = keep, check
        self.form = format_named(scope.format)
        start = (initial_database(self.form, scope.tables, init),)
        self.root = _Node((), (), start, ({},), self.form.frame((), reasons=False))

    def extend(self, node: _Node, vocabulary: int, *, fresh: bool) -> Iterator[Candidate | None]:
        """Yield the candidates below a prefix that use the first ``vocabulary`` statements.

        They use the last of these at least once; ``fresh``: the prefix already does.
        """
        position = len(node.events) + 1
        if position > self.writers:
            yield from self.read(node)
            return
        last = vocabulary - 1
        for k in range(last if position == self.writers and not fresh else 0, vocabulary):
            for read_version in range(position):
                event = self.grown(node, k, read_version)
                if event is None:
                    continue
                seen = self.form.frame((*node.events, event), reasons=False)
                if not self.keep(seen):
                    yield None
                    continue
                longer = self.longer(node, k, event, seen)
                yield from self.extend(longer, vocabulary, fresh=fresh or k == last)

    def grown(self, node: _Node, k: int, read_version: int) -> Event | None:
        """Return the event of statement k after a prefix.

        None if it fails, or is a no-op that the scope skips.
        """
        self.check()
        position = len(node.events) + 1
        done, recorded = self.effect(node, read_version, k, position)
        if done.error is not None or done.footprint is None:
            return None
        if self.scope.noops == "skip" and done.footprint.empty:
            return None
        return Event(f"T{position}", done, read_version, position if recorded else None)

    def longer(self, node: _Node, k: int, event: Event, seen: Frame) -> _Node:
        """Return the node extended by a commit of statement k."""
        return _Node(
            (*node.statements, self.scope.statements[k][len(node.events)]),
            (*node.events, event),
            (*node.states, self.form.after(node.states[-1], event)),
            (*node.effects, {}),
            seen,
        )

    def effect(self, node: _Node, version: int, k: int, position: int) -> tuple[Effect, bool]:
        """Return the effect of statement k on a version, and whether it is recorded; memoized."""
        known = node.effects[version]
        if (k, position) not in known:
            statement = self.scope.statements[k][position - 1]
            done = self.form.effect(
                statement, node.states[version], f"T{position}", self.scope.tables
            )
            writes = done.error is None and done.footprint is not None
            dropped = writes and self.recorder and is_unrecorded(self.form, done, self.recorder)
            known[k, position] = done, not dropped
        return known[k, position]

    def read(self, node: _Node) -> Iterator[Candidate | None]:
        """Yield a node's candidates with readers, None for those that are not kept."""
        choices = [(s, v) for s in self.scope.readers for v in range(len(node.states))]
        for chosen in combinations_with_replacement(choices, self.readers):
            self.check()
            found = self.watched(node, chosen)
            yield found if not self.readers or self.keep(found.frame) else None

    def watched(self, node: _Node, chosen: Sequence[tuple[Statement, int]]) -> Candidate:
        """Return the candidate with these readers, each at a version."""
        readers = tuple(
            Event(f"R{k}", self.form.effect(s, node.states[v], f"R{k}", self.scope.tables), v)
            for k, (s, v) in enumerate(chosen, 1)
        )
        events = node.events + readers
        seen = self.form.frame(events, reasons=False) if readers else node.frame
        statements = node.statements + tuple(s for s, _ in chosen)
        return Candidate(self.scope, self.init, statements, events, node.states, seen)


ENOUGH = 100
"""Number of silent candidates at which a solver stops counting."""


class Witnesses:
    """Filter of the candidates that ``a`` admits and ``b`` forbids.

    With ``unexplained``, only candidates that no serial order explains. ``silent`` is the number of
    silent candidates met so far.
    """

    def __init__(self, a: Spec, b: Spec, frame: BuildsFrame, *, unexplained: bool) -> None:
        self.a, self.b, self.unexplained = a, b, unexplained
        self.silent = 0
        self._admits, self._grants = (_on_candidates(spec, frame) for spec in (a, b))
        self._tolerates, self._permits = self._admits, self._grants
        if a.silences:
            self._tolerates = _on_candidates(without_silences(a), frame)
        if b.silences:
            self._permits = _on_candidates(without_silences(b), frame)

    def accept(self, candidate: Candidate) -> bool:
        """Return whether the candidate is a witness; count it if only a silence prevents that."""
        if not self._tolerates(candidate) or self._grants(candidate):
            return False
        if self.unexplained and not candidate.unexplained():
            return False
        said = self._admits(candidate) and not self._permits(candidate)
        self.silent += not said
        return said

    def words(
        self, solver: ScopeSolver | None, scope: Scope, sizes: Sequence[int], budget: Budget
    ) -> str:
        """Return the number of silent candidates of these sizes as text, if there is no witness.

        The enumeration counts them as it meets them. The ``solver`` never proposes them, and is
        asked for them here.
        """
        if not (self.a.silences or self.b.silences):
            return ""
        if solver is not None:
            self.silent = 0
            a, b = without_silences(self.a), with_silences_as_axioms(self.b)
            for n in sizes:
                solver.search(a, b, scope, n, self._enough, budget=budget)
        least = "at least " if solver is not None and self.silent >= ENOUGH else ""
        return f", {least}{count_of(self.silent, 'candidate')} silent" if self.silent else ""

    def _enough(self, candidate: Candidate) -> bool:
        """Return whether a solver has met as many silent candidates as it counts."""
        return not self.accept(candidate) and self.silent >= ENOUGH


def _on_candidates(spec: Spec, frame: BuildsFrame) -> Callable[[Candidate], bool]:
    """Return a predicate on candidates: whether the spec admits them."""
    admits = compile_spec(spec)
    if needs_reads(spec):
        return lambda candidate: admits(frame(candidate.events, reasons=False, reads=True))
    return lambda candidate: admits(candidate.frame)


def search(
    a: Spec,
    scope: Scope,
    n: int,
    accept: Callable[[Candidate], bool],
    *,
    record: ExerciseRecord | None = None,
    recorder: Spec | None = None,
    budget: Budget | None = None,
    progress: Callable[[int], None] | None = None,
) -> tuple[Candidate | None, int]:
    """Return the first candidate with n transactions that ``accept`` accepts.

    If further transactions can never help, candidates that ``a`` forbids are not extended.

    Parameters
    ----------
    a : Spec
        Spec that admits the candidate.
    scope : Scope
        Statements and initial tables.
    n : int
        Number of transactions.
    accept : callable
        Whether a candidate is the result.
    record : ExerciseRecord, optional
        Looks at every candidate, and at the prefixes that ``a`` forbids.
    recorder : Spec, optional
        Protocol; a commit that it does not record counts as a reader.
    budget : Budget, optional
        Limits of time and memory.
    progress : callable, optional
        Called with the number of candidates examined so far.

    Returns
    -------
    tuple of (Candidate or None, int)
        The candidate, if there is one, and the number examined.

    Raises
    ------
    Limit
        If the budget is spent; its ``examined`` has the number examined.
    """
    a = without_silences(a)
    keep = compile_spec(a) if is_monotone(a) and not needs_reads(a) else _anything
    build = format_named(scope.format).frame
    if record is not None:
        keep = _watched_by(record, keep)
    check = (budget or Budget()).check
    examined = 0
    try:
        for candidate in candidates(scope, n, keep, check, recorder=recorder):
            examined += 1
            if progress is not None and examined % 500 == 0:
                progress(examined)
            if candidate is not None and record is not None and record.watches_reads:
                record.look_at(candidate.events, candidate.frame, build)
            if candidate is not None and accept(candidate):
                return candidate, examined
    except Limit as limit:
        limit.examined = examined
        raise
    return None, examined


def _watched_by(record: ExerciseRecord, keep: Callable[[Frame], bool]) -> Callable[[Frame], bool]:
    """Return `keep` as a function that first shows each graph to a record."""

    def look_and_keep(frame: Frame) -> bool:
        record.look(frame)
        return keep(frame)

    return look_and_keep


def _anything(_frame: Frame) -> bool:
    return True
