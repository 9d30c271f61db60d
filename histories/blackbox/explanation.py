"""Explanations of forbidden recorded histories: flaws, or a minimal part with a cycle.

A history is shrunk by delta debugging (Zeller and Hildebrandt, Simplifying and isolating
failure-inducing input, TSE 2002), first by transactions, then by operations. The test is the judge
itself. A level that forbids a part forbids the whole, if all writes of a key and value are left out
together with its reads: an order that explains the whole explains the part.

The minimal part is translated to a history of versions and checked against the level of the
catalogue, in every order of its versions: an independent reading of the level has to forbid it. If
the order of versions was not observed, each possible order gets a cycle; if several transactions
wrote what was read, so does each possible writer.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice, pairwise, permutations
from typing import TYPE_CHECKING

import numpy as np

from isolitmus.checker.judge.anomalies import FLAWS, anomaly_of
from isolitmus.histories.blackbox.cycles import cycle_violation
from isolitmus.histories.blackbox.events import TIMED
from isolitmus.histories.blackbox.judgement import (
    POLYNOMIAL,
    SEEING_ORDER,
    find_contradiction,
    judge_recorded,
    reads_at_level,
)
from isolitmus.histories.blackbox.lists import list_order_reason
from isolitmus.histories.blackbox.precedence import Names
from isolitmus.histories.blackbox.read_from import (
    LastWrites,
    attribute_reads,
    is_among,
    ranges,
    value_codes,
)
from isolitmus.histories.readers.blackbox_history import ListHistory
from isolitmus.model.display import ReadableRepr, count_of
from isolitmus.model.errors import Limit
from isolitmus.model.operations import INITIAL, ItemRead, Transaction, Version, Write
from isolitmus.model.reason import Edge, Reason
from isolitmus.model.relation import Relation
from isolitmus.model.verdict import Allowed, Forbidden, Unknown, Violation

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from isolitmus.histories.blackbox.judgement import RecordVerdict
    from isolitmus.histories.blackbox.precedence import Precedence
    from isolitmus.histories.blackbox.read_from import AttributedReads, Flaw
    from isolitmus.histories.readers.blackbox_history import RegisterHistory
    from isolitmus.model.budget import Budget
    from isolitmus.model.history import History
    from isolitmus.model.operations import Moment
    from isolitmus.model.spec import Spec
    from isolitmus.model.verdict import Verdict

    Pair = tuple[Version, Version]


@dataclass(frozen=True, slots=True)
class Core(ReadableRepr):
    """Some operations of a history as a history; transactions keep their names."""

    history: RegisterHistory
    """The part, with the transactions that have an operation in it."""
    numbers: tuple[int, ...]
    """Number in the whole history, from 1, of each transaction."""
    lists: ListHistory | None = None
    """The lists of the part, if whole lists are used."""

    @property
    def judged(self) -> RegisterHistory | ListHistory:
        """The history that a level judges."""
        return self.lists or self.history

    def __repr__(self) -> str:
        return f"{', '.join(f'T{number}' for number in self.numbers)}: {self.history!r}"


def extract_part(whole: RegisterHistory | ListHistory, kept: NDArray[np.bool_]) -> Core:
    """Return the kept operations as a history.

    A read is dropped if a dropped operation wrote its key and value. Of a list only its last
    element counts for that; other elements that a dropped operation wrote are removed from the
    list.

    Parameters
    ----------
    whole : RegisterHistory or ListHistory
        Recorded history.
    kept : ndarray of bool, shape (n_operations,)
        Operations to keep.

    Examples
    --------
    >>> from isolitmus.histories.readers.blackbox_history import RegisterHistory
    >>> history = RegisterHistory(
    ...     ("x", "y"), ("s", "t"), np.array([0, 1]), np.array([0, 0]), np.array([0, 2, 4]),
    ...     np.array([True, True, False, True]), np.array([0, 1, 0, 1]), np.array([7, 8, 7, 9]),
    ...     np.arange(1, 5),
    ... )
    >>> extract_part(history, np.array([False, True, True, True]))
    T1, T2: 2 transactions in 2 sessions, 2 operations on 2 keys
    """
    history = whole.registers
    elements = whole.seen if isinstance(whole, ListHistory) else history.value[:0]
    lengths = np.diff(whole.seen_first) if isinstance(whole, ListHistory) else 0
    read = np.repeat(np.arange(len(kept)), lengths)
    cell = value_codes(np.append(history.value, elements), len(history.keys))
    cell *= len(history.keys)
    cell += np.append(history.key, history.key[read])
    gone = is_among(cell, cell[: len(kept)][history.is_write & ~kept])
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
    """Return a part that the level forbids, minimal under removal of an operation.

    Parameters
    ----------
    judged : RecordVerdict
        Forbidden verdict on a history without flaws.
    budget : Budget
        Limits of time and memory. If spent, the part may not be minimal.
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
    """Return a mask of the kept operations and of all writes to a key by transactions read from.

    These are the transactions that wrote a value that a kept operation read of the key.
    """
    code = np.unique(history.value, return_inverse=True)[1]
    key = history.key.astype(np.int64)
    cell = key * (int(code.max(initial=0)) + 1) + code
    group = owner * len(history.keys) + key
    wrote = history.is_write & np.isin(cell, cell[kept & ~history.is_write])
    found: NDArray[np.bool_] = kept | (history.is_write & np.isin(group, group[wrote]))
    return found


def _named(steps: Iterable[Precedence]) -> tuple[set[int], set[int]]:
    """Return the transactions and the reads of steps and of all their premises."""
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
    """State of the delta debugging; ``kept``, of shape (n_operations,), masks the remaining
    operations.
    """

    history: RegisterHistory | ListHistory
    level: str
    budget: Budget
    kept: NDArray[np.bool_]

    def leave_out(self, groups: Sequence[NDArray[np.int64]]) -> None:
        """Remove groups of operations until each one left is needed; larger chunks are tried first.

        ``groups`` are arrays of operation indices.
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
        """Return whether the level forbids a part."""
        self.budget.check()
        part = extract_part(self.history, kept).judged
        return judge_recorded(part, self.level, budget=self.budget).verdict == "forbidden"


COMPLETIONS = 5000
"""Maximal number of version orders that are tried."""


def to_version_history(part: Core, seen: AttributedReads, *, timed: bool = False) -> History:
    """Return the counting transactions of a part as a history of versions.

    Transactions have the names of the whole history; an object is ``k`` and the number of its key.
    Versions are ordered as far as lists, or else sessions and reads, order them.

    Parameters
    ----------
    part : Core
        Part of a recorded history.
    seen : AttributedReads
        Reads of the part with their assumed writers.
    timed : bool
        Whether to include the times at which transactions began and ended.

    Examples
    --------
    >>> import numpy as np
    >>> from isolitmus.histories.blackbox.read_from import attribute_reads
    >>> from isolitmus.histories.blackbox.explanation import extract_part
    >>> from isolitmus.histories.readers.blackbox_history import RegisterHistory
    >>> history = RegisterHistory(
    ...     ("x",), ("s", "t"), np.array([0, 1]), np.array([0, 0]), np.array([0, 1, 3]),
    ...     np.array([True, False, True]), np.array([0, 0, 0]), np.array([7, 7, 8]),
    ...     np.array([1, 2, 3]),
    ... )
    >>> part = extract_part(history, np.ones(3, bool))
    >>> to_version_history(part, attribute_reads(part.history))
    History.from_table({'T1': 'w(k0_1)', 'T2': 'r(k0_1) w(k0_2)', 'order': ['k0_1 < k0_2']})
    """
    from isolitmus.model.history import History

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
    """Return the times of beginnings and ends, sorted; at equal times beginnings come first."""
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
    """Return the pairs of versions of an object that sessions and reads order.

    They have this order at each level with a version order. Empty if sessions and reads have a
    cycle.
    """
    place = {one.number: k for k, one in enumerate(done)}
    reads = (
        (read.version.writer, one.number)
        for one in done
        for read in one.operations
        if isinstance(read, ItemRead) and read.version.writer in place
    )
    ordered = (pair for one in sessions for pair in pairwise(one))
    pairs = ((place[a], place[b]) for a, b in (*ordered, *reads))
    before = Relation.of(len(done), pairs).plus()
    if not before.acyclic():
        return ()
    writers: dict[str, list[Version]] = {}
    for version in (version for one in done for version in one.writes):
        writers.setdefault(version.object, []).append(version)
    return tuple(
        (first, second)
        for versions in writers.values()
        for first, second in permutations(versions, 2)
        if (place[first.writer], place[second.writer]) in before
    )


def forbidden_ways(history: History, spec: Spec) -> list[Violation] | None:
    """Return violations of a fully committed history that together exclude every version order.

    Each violation assumes an order of the objects that its cycle mentions.

    Parameters
    ----------
    history : History
        History of versions, all committed.
    spec : Spec
        Level that must forbid each order. If it allows one, the caller's verdict is wrong, and an
        AssertionError is raised.

    Returns
    -------
    list of Violation or None
        None if there are more than COMPLETIONS orders.

    Examples
    --------
    >>> from isolitmus.model.history import History
    >>> lost = History.parse("r1(x0) r2(x0) w1(x1) w2(x2) w1(y1) w2(y2)")
    >>> from isolitmus.specs import level
    >>> ways = forbidden_ways(lost, level("snapshot-isolation"))
    >>> [[str(why) for why in way.supposing] for way in ways]
    [['x1 came before x2'], ['x2 came before x1']]
    """
    from isolitmus.checker.judge.completion import completions
    from isolitmus.checker.judge.graph_semantics import judge

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
    """Return maximal runs of an order whose consecutive versions are not known to be ordered."""
    stretches: list[list[Version]] = [[]]
    for version in order:
        if stretches[-1] and (stretches[-1][-1], version) in known:
            stretches.append([])
        stretches[-1].append(version)
    return [stretch for stretch in stretches if len(stretch) > 1]


@dataclass(frozen=True, slots=True, eq=False)
class Attribution:
    """Assumed writers of some reads, and the level's verdict under that assumption."""

    seen: AttributedReads
    """Reads with their writers; some may stay unclear if they do not matter."""
    supposing: tuple[tuple[int, int], ...]
    """Pairs of an operation index of a read and its assumed writer."""
    judged: RecordVerdict
    """Verdict on the reads that are not unclear."""


def attributions(judged: RecordVerdict, budget: Budget) -> Iterator[Attribution]:
    """Yield cases of assumed writers that the level forbids; each full choice extends one of them.

    Parameters
    ----------
    judged : RecordVerdict
        Forbidden verdict.
    budget : Budget
        Limits of time and memory.

    Raises
    ------
    Limit
        TimeLimit or MemoryLimit if the ``budget`` is spent.
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
    """Yield forbidden cases that extend the given writers by candidates of unclear reads.

    ``given`` has shape (n_operations,): writer of each read, −1 where none is assumed.
    """
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
"""Maximal number of transactions for which an allowed verdict shows the order."""
SECONDS = 20.0
"""Time limit, in seconds, for shrinking, and again for the cases of the part."""
CASES = 100
"""Maximal number of cases of assumed writers."""
WAYS = 6
"""Maximal number of violations shown."""


def explain_record(judged: RecordVerdict, budget: Budget) -> Verdict:
    """Return the verdict with its witness or its violations.

    Parameters
    ----------
    judged : RecordVerdict
        Verdict to explain.
    budget : Budget
        Limits of time and memory, besides SECONDS.

    Examples
    --------
    >>> import numpy as np
    >>> from isolitmus.model.budget import Budget
    >>> from isolitmus.histories.readers.blackbox_history import RegisterHistory
    >>> skew = RegisterHistory(
    ...     ("x", "y"), ("s", "t"), np.array([0, 1]), np.array([0, 0]), np.array([0, 2, 4]),
    ...     np.array([False, True] * 2), np.array([0, 1, 1, 0]), np.array([-1, 1, -1, 2]),
    ...     np.arange(1, 5),
    ... )
    >>> explain_record(judge_recorded(skew, "serializable"), Budget())
    forbidden
      not write skew (G2-item):
        rw  T1 → T2  T1 (session s, line 1) read nothing of x, and T2 (..., line 4) wrote x = 2
        rw  T2 → T1  T2 (session t, line 3) read nothing of y, and T1 (..., line 2) wrote y = 1
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
    """Yield the first flaw of each kind as a violation that states their number."""
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
    """Return the explanation of a minimal part: up to WAYS ways, and the number of others."""
    every: list[Attribution] = []
    with suppress(Limit):
        every = [*islice(attributions(judged, budget), CASES + 1)]
    if not 0 < len(every) <= CASES:
        return Forbidden((_no_order(part, judged),))
    ways = [way for case in every for way in _of_case(part, case)]
    return Forbidden(tuple(ways[:WAYS]), max(0, len(ways) - WAYS))


def _of_case(part: Core, case: Attribution) -> list[Violation]:
    """Return the violations of a part under the assumed writers of a case."""
    from isolitmus.checker.judge.history_verdict import check_history
    from isolitmus.specs.files.spec_catalogue import level

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
    """Return the judge's cycle as a violation, or else its reason."""
    names = Names(part.history, part.numbers)
    if judged.cycle:
        return cycle_violation(judged.cycle, names, judged.level)
    why = Reason.of("recorded orders", of=", ".join(map(str, names.numbers)), said=judged.reason)
    return Violation("no order of versions", "flaw", (Edge(names[0], names[0], "ww", why),))


def _translated(
    violation: Violation, names: Names, part: Core, known: Collection[Pair]
) -> Violation:
    """Return a violation over versions as one over operations and their lines."""
    cycle = tuple(
        replace(edge, reason=_reason(edge, names, part, known)) for edge in violation.cycle
    )
    supposing = tuple(
        Reason.of("came in order", versions=[_written(one, names) for one in reason["versions"]])
        for reason in violation.supposing
    )
    return Violation(anomaly_of(cycle) or violation.axiom, violation.kind, cycle, supposing)


def _reason(edge: Edge, names: Names, part: Core, known: Collection[Pair]) -> Reason:
    """Return the reason of an edge between transactions, from that of its versions."""
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
