"""Explanations of forbidden histories: a smallest part with a cycle, judged anew.

Why a level forbids a recorded history: flaws, or a small part of it with a cycle, step by step.

A part of which nothing can be left out (``shrinking``) is asked of the catalogue's level, too, in
every order of its versions: another reading of another text of the level has to forbid it. Where
versions have an order that nobody observed there is a cycle for each; so it is where several wrote
what was read, for each of them.

A forbidden part of a history of which nothing can be left out: what an explanation is about.

What a level forbids of a part it forbids of the whole, if a read goes with any write of its key and
value: an order that explains the whole explains the part, when the rest is taken out of it. So
parts are tried by the judge itself (Zeller and Hildebrandt, Simplifying and isolating
failure-inducing input, TSE 2002): first without transactions, then without operations.

A recorded history as one of versions: what the levels of the catalogue are asked of, in every order
of versions.

The ways in which reads whose value several wrote may have been: who was read from, as far as it has
to be supposed.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice, pairwise, permutations
from typing import TYPE_CHECKING

import numpy as np
from networkx import DiGraph, has_path, is_directed_acyclic_graph

from isolitmus.checker.blackbox.cycles import cycle_violation
from isolitmus.checker.blackbox.events import TIMED
from isolitmus.checker.blackbox.judgement import (
    POLYNOMIAL,
    SEEING_ORDER,
    find_contradiction,
    judge_recorded,
    reads_at_level,
)
from isolitmus.checker.blackbox.lists import list_order_reason
from isolitmus.checker.blackbox.precedence import Names
from isolitmus.checker.blackbox.read_from import LastWrites, attribute_reads, ranges
from isolitmus.checker.judge.anomalies import anomaly_of
from isolitmus.checker.judge.completion import FLAWS, completions
from isolitmus.checker.judge.graph_semantics import judge
from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.model.blackbox_history import ListHistory
from isolitmus.model.display import ReadableRepr, count_of
from isolitmus.model.errors import Limit
from isolitmus.model.history import History
from isolitmus.model.operations import INITIAL, ItemRead, Transaction, Version, Write
from isolitmus.model.reason import Edge, Reason
from isolitmus.model.verdict import Allowed, Forbidden, Unknown, Violation
from isolitmus.specs.files.catalogue import level

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from isolitmus.checker.blackbox.judgement import RecordVerdict
    from isolitmus.checker.blackbox.precedence import Precedence
    from isolitmus.checker.blackbox.read_from import AttributedReads, Flaw
    from isolitmus.model.blackbox_history import RegisterHistory
    from isolitmus.model.budget import Budget
    from isolitmus.model.operations import Moment
    from isolitmus.model.spec import Spec
    from isolitmus.model.verdict import Verdict

    Pair = tuple[Version, Version]

__all__ = [
    "COMPLETIONS",
    "Attribution",
    "Core",
    "attributions",
    "explain_record",
    "extract_part",
    "forbidden_ways",
    "shrink_core",
    "to_version_history",
]


@dataclass(frozen=True, slots=True)
class Core(ReadableRepr):
    """Some operations of a history as a history, whose transactions keep their names."""

    history: RegisterHistory
    """The part, with transactions that have an operation."""
    numbers: tuple[int, ...]
    """Of each transaction its number in the whole, from 1."""
    lists: ListHistory | None = None
    """Where whole lists are looked at, these of the part."""

    @property
    def judged(self) -> RegisterHistory | ListHistory:
        """What a level is asked of."""
        return self.lists or self.history

    def __repr__(self) -> str:
        return f"{', '.join(f'T{number}' for number in self.numbers)}: {self.history!r}"


def extract_part(whole: RegisterHistory | ListHistory, kept: NDArray[np.bool_]) -> Core:
    """These operations, but for reads of a key and value that an operation which is left out wrote;
    of a list that value is the last, and others are left out of it.

    >>> from isolitmus.model.blackbox_history import RegisterHistory
    >>> history = RegisterHistory(
    ...     ("x", "y"), ("s", "t"), np.array([0, 1]), np.array([0, 0]), np.array([0, 2, 4]),
    ...     np.array([True, True, False, True]), np.array([0, 1, 0, 1]), np.array([7, 8, 7, 9]), np.arange(1, 5),
    ... )
    >>> extract_part(history, np.array([False, True, True, True]))
    T1, T2: 2 transactions in 2 sessions, 2 operations on 2 keys
    """
    history = whole.registers
    elements = whole.seen if isinstance(whole, ListHistory) else history.value[:0]
    lengths = np.diff(whole.seen_first) if isinstance(whole, ListHistory) else 0
    read = np.repeat(np.arange(len(kept)), lengths)
    code = np.unique(np.append(history.value, elements), return_inverse=True)[1]
    key = np.append(history.key, history.key[read]).astype(np.int64)
    cell = key * (int(code.max(initial=0)) + 1) + code
    gone = np.isin(cell, cell[: len(kept)][history.is_write & ~kept])
    kept = kept & (history.is_write | ~gone[: len(kept)])
    owner = np.repeat(np.arange(len(history.session)), np.diff(history.first))
    many = np.bincount(owner[kept], minlength=len(history.session))
    there = np.flatnonzero(many)
    part = replace(
        history,
        session=history.session[there],
        status=history.status[there],
        first=np.append(0, np.cumsum(many[there])),
        is_write=history.is_write[kept],
        key=history.key[kept],
        value=history.value[kept],
        line=history.line[kept],
        started=None if history.started is None else history.started[there],
        ended=None if history.ended is None else history.ended[there],
    )
    numbers = tuple((there + 1).tolist())
    if not isinstance(whole, ListHistory):
        return Core(part, numbers)
    stays = kept[read] & ~gone[len(kept) :]
    lengths = np.bincount(read[stays], minlength=len(kept))[kept]
    lists = ListHistory(part, np.append(0, np.cumsum(lengths)), whole.seen[stays])
    return Core(part, numbers, lists)


def shrink_core(judged: RecordVerdict, budget: Budget) -> Core:
    """A part that the level forbids, and no longer does without one of its operations; what there
    is of it once the ``budget`` is spent. Of a history without flaws that is forbidden.
    """
    whole, history = judged.lists or judged.history, judged.history
    owner = np.repeat(np.arange(len(history.session)), np.diff(history.first))
    base = extract_part(whole, np.ones(len(owner), bool))
    if judged.cycle:
        named, reads = _named(judged.cycle)
        named |= {int(owner[read]) for read in reads}
        part = extract_part(whole, _with_writers(history, owner, np.isin(owner, [*named])))
        if judge_recorded(part.judged, judged.level).verdict == "forbidden":
            base = part
    owner = np.repeat(np.arange(len(base.numbers)), np.diff(base.history.first))
    shrinking = _Shrinking(base.judged, judged.level, budget, np.ones(len(owner), bool))
    with suppress(Limit):
        numbers = np.unique(owner).tolist()
        shrinking.leave_out([np.flatnonzero(owner == number) for number in numbers])
        shrinking.leave_out([np.array([one]) for one in np.flatnonzero(shrinking.kept).tolist()])
    part = extract_part(base.judged, shrinking.kept)
    return replace(part, numbers=tuple(base.numbers[number - 1] for number in part.numbers))


def _with_writers(
    history: RegisterHistory, owner: NDArray[np.int64], kept: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Operations, and all writes to a key of whoever wrote a value that they read of it."""
    code = np.unique(history.value, return_inverse=True)[1]
    key = history.key.astype(np.int64)
    cell = key * (int(code.max(initial=0)) + 1) + code
    group = owner * len(history.keys) + key
    wrote = history.is_write & np.isin(cell, cell[kept & ~history.is_write])
    found: NDArray[np.bool_] = kept | (history.is_write & np.isin(group, group[wrote]))
    return found


def _named(steps: Iterable[Precedence]) -> tuple[set[int], set[int]]:
    """The transactions of steps, and of those that they follow from, and the reads of these."""
    named: set[int] = set()
    reads: set[int] = set()
    seen: set[int] = set()
    todo = [*steps]
    while todo:
        step = todo.pop()
        if id(step) in seen:
            continue
        seen.add(id(step))
        named |= {step.source, step.target}
        reads |= set() if step.read is None else {step.read}
        todo += step.because
    return named, reads


@dataclass(slots=True)
class _Shrinking:
    """The operations that are left."""

    history: RegisterHistory | ListHistory
    level: str
    budget: Budget
    kept: NDArray[np.bool_]

    def leave_out(self, groups: Sequence[NDArray[np.int64]]) -> None:
        """Groups of operations, until each that is left is needed: halves are tried before single
        ones.
        """
        left = [*groups]
        size = max(1, len(left) // 2)
        while True:
            before, at = len(left), 0
            while at < len(left) > 1:
                less = self.kept.copy()
                less[np.concatenate(left[at : at + size])] = False
                if self.forbidden(less):
                    self.kept = less
                    del left[at : at + size]
                else:
                    at += size
            if size == 1 and len(left) == before:
                return
            size = max(1, size // 2)

    def forbidden(self, kept: NDArray[np.bool_]) -> bool:
        """Whether the level forbids a part."""
        self.budget.check()
        part = extract_part(self.history, kept).judged
        return judge_recorded(part, self.level, budget=self.budget).verdict == "forbidden"


COMPLETIONS = 5000
"""So many orders of versions are tried."""


def to_version_history(part: Core, seen: AttributedReads, *, timed: bool = False) -> History:
    """What counts of a part, ``seen`` as it may have been, with the names of the whole; an object
    is ``k`` and the number of its key. Versions have an order where lists, or sessions and reads,
    give them one. ``timed``: with when transactions began and ended.

    >>> import numpy as np
    >>> from isolitmus.checker.blackbox.read_from import attribute_reads
    >>> from isolitmus.checker.blackbox.explanation import extract_part
    >>> from isolitmus.model.blackbox_history import RegisterHistory
    >>> history = RegisterHistory(
    ...     ("x",), ("s", "t"), np.array([0, 1]), np.array([0, 0]), np.array([0, 1, 3]),
    ...     np.array([True, False, True]), np.array([0, 0, 0]), np.array([7, 7, 8]), np.array([1, 2, 3]),
    ... )
    >>> part = extract_part(history, np.ones(3, bool))
    >>> to_version_history(part, attribute_reads(part.history))
    History.from_table({'T1': 'w(k0_1)', 'T2': 'r(k0_1) w(k0_2)', 'order': ['k0_1 < k0_2']})
    """
    history, numbers = part.history, part.numbers
    reads: dict[int, list[ItemRead | Write]] = {}
    rows = zip(seen.reader.tolist(), seen.key.tolist(), seen.writer.tolist(), strict=True)
    for reader, key, writer in rows:
        number = INITIAL if writer == seen.initial else numbers[writer]
        reads.setdefault(reader, []).append(ItemRead(Version(f"k{key}", number)))
    for key, writer in zip(seen.written_key.tolist(), seen.written_by.tolist(), strict=True):
        reads.setdefault(writer, []).append(Write(Version(f"k{key}", numbers[writer])))
    sessions: dict[int, list[int]] = {}
    for number in reads.keys() & {*range(seen.initial)}:
        sessions.setdefault(int(history.session[number]), []).append(numbers[number])
    done = tuple(
        Transaction(numbers[n], tuple(operations)) for n, operations in sorted(reads.items())
    )
    ordered = tuple(sorted(tuple(sorted(one)) for one in sessions.values() if len(one) > 1))
    shows = (getattr(seen.observed, of).tolist() for of in ("source", "target", "read"))
    observed = [
        (Version(f"k{history.key[read]}", numbers[a]), Version(f"k{history.key[read]}", numbers[b]))
        for a, b, read in zip(*shows, strict=True)
    ]
    shown = {first.object for first, _ in observed}
    sees = (pair for pair in _sees(done, ordered) if pair[0].object not in shown)
    schedule = _schedule(history, numbers, sorted(reads)) if timed else ()
    return History(tuple(done), ordered, (*observed, *sees), schedule)


def _schedule(
    history: RegisterHistory, numbers: Sequence[int], done: Sequence[int]
) -> tuple[Moment, ...]:
    """When transactions began and ended; who began when another ended had not missed it."""
    assert history.started is not None
    assert history.ended is not None
    moments: list[tuple[int, int, Moment]] = []
    for n in done:
        moments.append((int(history.started[n]), 0, (numbers[n], "start")))
        moments.append((int(history.ended[n]), 1, (numbers[n], "end")))
    return tuple(moment for *_, moment in sorted(moments, key=lambda one: one[:2]))


def _sees(
    done: Sequence[Transaction], sessions: Iterable[tuple[int, ...]]
) -> tuple[tuple[Version, Version], ...]:
    """The versions of which one comes first by sessions and reads: at each level with an order of
    versions.
    """
    graph = DiGraph()
    graph.add_nodes_from(one.number for one in done)
    graph.add_edges_from(pair for one in sessions for pair in pairwise(one))
    graph.add_edges_from(
        (read.version.writer, one.number)
        for one in done
        for read in one.operations
        if isinstance(read, ItemRead) and read.version.writer
    )
    if not is_directed_acyclic_graph(graph):
        return ()
    writers: dict[str, list[Version]] = {}
    for version in (version for one in done for version in one.writes):
        writers.setdefault(version.object, []).append(version)
    return tuple(
        (first, second)
        for versions in writers.values()
        for first, second in permutations(versions, 2)
        if has_path(graph, first.writer, second.writer)
    )


def forbidden_ways(history: History, spec: Spec) -> list[Violation] | None:
    """Violations of a history, all of it committed, that together leave no order of versions: each
    supposes the order of the objects of which its cycle says something. None: there are too many
    orders. A spec that allows one of them is a defect of whoever called the history forbidden.

    >>> from isolitmus.specs.files.catalogue import level
    >>> lost = History.parse("r1(x0) r2(x0) w1(x1) w2(x2) w1(y1) w2(y2)")
    >>> [[str(why) for why in way.supposing] for way in forbidden_ways(lost, level("snapshot-isolation"))]
    [['x1 came before x2'], ['x2 came before x1']]
    """
    every = list(islice(completions(history), COMPLETIONS + 1))
    if len(every) > COMPLETIONS:
        return None
    found: list[Violation] = []
    while every:
        first = every[0]
        verdict = judge(first.frame(), spec)
        assert isinstance(verdict, Forbidden), f"{spec.name} does not forbid {history}"
        violation = verdict.violations[0]
        about = {
            edge.reason["version"].object for edge in violation.cycle if edge.kind in ("ww", "rw")
        }
        supposing = tuple(
            Reason.of("came in order", versions=open_part)
            for reason in first.supposing()
            if reason["versions"][0].object in about
            for open_part in _open(reason["versions"], history.order)
        )
        found.append(Violation(violation.axiom, violation.kind, violation.cycle, supposing))
        every = [
            other
            for other in every
            if any(other.orders[name] != first.orders[name] for name in about)
        ]
    return found


def _open(
    order: Sequence[Version], known: Collection[tuple[Version, Version]]
) -> list[list[Version]]:
    """The stretches of an order of which nobody knows that each comes before the next."""
    stretches: list[list[Version]] = [[]]
    for version in order:
        if stretches[-1] and (stretches[-1][-1], version) in known:
            stretches.append([])
        stretches[-1].append(version)
    return [stretch for stretch in stretches if len(stretch) > 1]


@dataclass(frozen=True, slots=True, eq=False)
class Attribution:
    """Who some reads are supposed to have read from, and why the level forbids that."""

    seen: AttributedReads
    """Who wrote what each read saw; some may be left unclear, as it does not matter."""
    supposing: tuple[tuple[int, int], ...]
    """Reads, by operation, with their writers."""
    judged: RecordVerdict
    """What the level says of the reads that are not unclear."""


def attributions(judged: RecordVerdict, budget: Budget) -> Iterator[Attribution]:
    """Of a history that a level forbids: each choice of writers is one of these cases, or goes
    beyond one of them. TimeLimit if the ``budget`` ends it.
    """
    seen = reads_at_level(judged.lists or judged.history, judged.level)
    if judged.flaws or judged.cycle or seen.ambiguous or not len(seen.unclear):
        yield Attribution(seen, (), judged)
    else:
        yield from _attributions(np.full(len(seen.owner), -1), (), judged, budget)


def _attributions(
    given: NDArray[np.int64],
    supposing: tuple[tuple[int, int], ...],
    judged: RecordVerdict,
    budget: Budget,
) -> Iterator[Attribution]:
    seen = attribute_reads(judged.history, given)
    found = find_contradiction(seen, judged.level, budget)
    if found is not None:
        yield Attribution(seen, supposing, found)
        return
    assert len(seen.unclear), f"{judged.level} does not forbid {judged.history}"
    read, cells = seen.unclear[:1], LastWrites(judged.history)
    for writer in cells.by[ranges(*cells.writers(read))].tolist():
        if writer != seen.owner[read[0]]:
            more = given.copy()
            more[read] = writer
            yield from _attributions(more, (*supposing, (int(read[0]), writer)), judged, budget)


WITNESS = 40
"""Of a history with up to so many transactions an order is shown that explains it."""
SECONDS = 20.0
"""How long a small part is looked for."""
CASES = 100
"""So many ways of who was read from are looked at."""
WAYS = 6
"""So many ways in which a part may have been are shown."""


def explain_record(judged: RecordVerdict, budget: Budget) -> Verdict:
    """The verdict, with its witness or its violations.

    >>> import numpy as np
    >>> from isolitmus.model.budget import Budget
    >>> from isolitmus.model.blackbox_history import RegisterHistory
    >>> skew = RegisterHistory(
    ...     ("x", "y"), ("s", "t"), np.array([0, 1]), np.array([0, 0]), np.array([0, 2, 4]),
    ...     np.array([False, True] * 2), np.array([0, 1, 1, 0]), np.array([-1, 1, -1, 2]), np.arange(1, 5),
    ... )
    >>> explain_record(judge_recorded(skew, "serializable"), Budget())
    forbidden
      not write skew (G2-item):
        rw  T1 → T2  T1 (session s, line 1) read nothing of x, and T2 (session t, line 4) wrote x = 2
        rw  T2 → T1  T2 (session t, line 3) read nothing of y, and T1 (session s, line 2) wrote y = 1
    """
    match judged.verdict:
        case "allowed":
            shown = judged.order if len(judged.order) <= WITNESS else ()
            return Allowed(tuple(f"T{number + 1}" for number in shown))
        case "unknown":
            return Unknown(judged.reason)
    if judged.flaws:
        return Forbidden(tuple(_flaws(judged.flaws, Names(judged.history))))
    part = shrink_core(judged, budget.within(SECONDS))
    again = judge_recorded(part.judged, judged.level)
    assert again.verdict == "forbidden", f"{judged.level}: a part says otherwise"
    return _of_part(part, again, budget.within(SECONDS))


def _flaws(flaws: Sequence[Flaw], names: Names) -> Iterator[Violation]:
    """Of each kind the first, which says how many there are."""
    for kind, name in FLAWS.items():
        found = [flaw for flaw in flaws if flaw.kind == kind]
        if not found:
            continue
        first = found[0]
        reader = names[names.owner(first.read)]
        writer = reader if first.write is None else names[names.owner(first.write)]
        more = f" (the first of {count_of(len(found), 'such read')})" if len(found) > 1 else ""
        why = Reason.of("recorded flaw", said=first.said(names.numbers), more=more)
        yield Violation(name, "flaw", (Edge(writer, reader, "wr", why),))


def _of_part(part: Core, judged: RecordVerdict, budget: Budget) -> Forbidden:
    every: list[Attribution] = []
    with suppress(Limit):
        every = [*islice(attributions(judged, budget), CASES + 1)]
    if not 0 < len(every) <= CASES:
        return Forbidden((_no_order(part, judged),))
    ways = [way for case in every for way in _of_case(part, case)]
    return Forbidden(tuple(ways[:WAYS]), max(0, len(ways) - WAYS))


def _of_case(part: Core, case: Attribution) -> list[Violation]:
    """The ways in which a part may have been, if those wrote what was read who are supposed to."""
    judged, names = case.judged, Names(part.history, part.numbers)
    supposing = tuple(names.supposed(read, writer) for read, writer in case.supposing)
    history, spec = (
        to_version_history(part, case.seen, timed=judged.level in TIMED),
        level(judged.level),
    )
    ways: list[Violation] | None = None
    if judged.flaws:
        ways = [*_flaws(judged.flaws, names)]
    elif judged.level not in POLYNOMIAL:
        found = forbidden_ways(history, spec)
        if found is not None:
            ways = [_translated(one, names, part, history.order) for one in found]
    else:
        if judged.level not in SEEING_ORDER:
            history = replace(history, order=())
        said = check_history(history, spec, limit=COMPLETIONS)
        assert not isinstance(said, Allowed), f"{spec.name}: the catalogue allows {part}"
    if ways is None:
        ways = [_no_order(part, judged)]
    return [replace(way, supposing=supposing + way.supposing) for way in ways]


def _no_order(part: Core, judged: RecordVerdict) -> Violation:
    """The cycle of the judge, or else its clause."""
    names = Names(part.history, part.numbers)
    if judged.cycle:
        return cycle_violation(judged.cycle, names, judged.level)
    why = Reason.of("recorded orders", of=", ".join(map(str, names.numbers)), said=judged.reason)
    return Violation("no order of versions", "flaw", (Edge(names[0], names[0], "ww", why),))


def _translated(
    violation: Violation, names: Names, part: Core, known: Collection[Pair]
) -> Violation:
    """A violation in versions as one in operations and their lines."""
    cycle = tuple(
        replace(edge, reason=_reason(edge, names, part, known)) for edge in violation.cycle
    )
    supposing = tuple(
        Reason.of("came in order", versions=[_written(one, names) for one in reason["versions"]])
        for reason in violation.supposing
    )
    return Violation(anomaly_of(cycle) or violation.axiom, violation.kind, cycle, supposing)


def _reason(edge: Edge, names: Names, part: Core, known: Collection[Pair]) -> Reason:
    """The reason of an edge between transactions, from its versions."""
    nouns = edge.reason.nouns
    source, target = names.place(edge.source), names.place(edge.target)
    match edge.kind:
        case "so":
            return names.session(source, target)
        case "rt":
            return names.in_time(source, target)
        case "wr":
            return names.read_from(source, target, _key(nouns["version"]))
        case "ww":
            key, sees = _key(nouns["version"]), (nouns["before"], nouns["version"]) in known
            listed = part.lists and list_order_reason(names, part.lists, source, target, key)
            return listed or names.overwrote(source, target, key, sees=sees)
        case "rw":
            version = nouns["version"]
            return names.missed(source, target, _key(version), names.number(version.writer))
    return edge.reason


def _key(version: Version) -> int:
    return int(version.object[1:])


def _written(version: Version, names: Names) -> str:
    return names.written(names.number(version.writer), _key(version))
