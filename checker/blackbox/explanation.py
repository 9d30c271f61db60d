"""Why a level forbids a recorded history: flaws, or a small part of it with a cycle, step by step.

A part of which nothing can be left out (``shrinking``) is asked of the catalogue's level, too, in every order of its
versions: another reading of another text of the level has to forbid it. Where versions have an order that nobody
observed there is a cycle for each; so it is where several wrote what was read, for each of them.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from isolitmus.checker.blackbox.abstracting import COMPLETIONS, abstracted, forbidden_ways
from isolitmus.checker.blackbox.attributions import attributions
from isolitmus.checker.blackbox.circle import circle_of
from isolitmus.checker.blackbox.events import TIMED
from isolitmus.checker.blackbox.judgement import POLYNOMIAL, SEEING_ORDER, judge_recorded
from isolitmus.checker.blackbox.naming import Names
from isolitmus.checker.blackbox.shown_by_lists import shown_by_lists
from isolitmus.checker.blackbox.shrinking import shrunk
from isolitmus.checker.judge.anomalies import anomaly_of
from isolitmus.checker.judge.flaws import FLAWS
from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.model.edge import Edge
from isolitmus.model.errors import Limit
from isolitmus.model.number import many
from isolitmus.model.reason import Reason
from isolitmus.model.verdict import Allowed, Forbidden, Unknown, Violation
from isolitmus.specs.files.catalogue import level

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from isolitmus.checker.blackbox.attributions import Attribution
    from isolitmus.checker.blackbox.judgement import JudgedRecord
    from isolitmus.checker.blackbox.read_from import Flaw
    from isolitmus.checker.blackbox.shrinking import Core
    from isolitmus.model.budget import Budget
    from isolitmus.model.operations import Version
    from isolitmus.model.verdict import Verdict

    Pair = tuple[Version, Version]

__all__ = ["explained_record"]

WITNESS = 40
"""Of a history with up to so many transactions an order is shown that explains it."""
SECONDS = 20.0
"""How long a small part is looked for."""
CASES = 100
"""So many ways of who was read from are looked at."""
WAYS = 6
"""So many ways in which a part may have been are shown."""


def explained_record(judged: JudgedRecord, budget: Budget) -> Verdict:
    """The verdict, with its witness or its violations.

    >>> import numpy as np
    >>> from isolitmus.model.budget import Budget
    >>> from isolitmus.model.blackbox_history import RegisterHistory
    >>> skew = RegisterHistory(
    ...     ("x", "y"), ("s", "t"), np.array([0, 1]), np.array([0, 0]), np.array([0, 2, 4]),
    ...     np.array([False, True] * 2), np.array([0, 1, 1, 0]), np.array([-1, 1, -1, 2]), np.arange(1, 5),
    ... )
    >>> explained_record(judge_recorded(skew, "serializable"), Budget())
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
    part = shrunk(judged, budget.within(SECONDS))
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
        more = f" (the first of {many(len(found), 'such read')})" if len(found) > 1 else ""
        why = Reason.of("recorded flaw", said=first.said(names.numbers), more=more)
        yield Violation(name, "flaw", (Edge(writer, reader, "wr", why),))


def _of_part(part: Core, judged: JudgedRecord, budget: Budget) -> Forbidden:
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
    history, spec = abstracted(part, case.seen, timed=judged.level in TIMED), level(judged.level)
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


def _no_order(part: Core, judged: JudgedRecord) -> Violation:
    """The cycle of the judge, or else its clause."""
    names = Names(part.history, part.numbers)
    if judged.cycle:
        return circle_of(judged.cycle, names, judged.level)
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
            listed = part.lists and shown_by_lists(names, part.lists, source, target, key)
            return listed or names.overwrote(source, target, key, sees=sees)
        case "rw":
            version = nouns["version"]
            return names.missed(source, target, _key(version), names.number(version.writer))
    return edge.reason


def _key(version: Version) -> int:
    return int(version.object[1:])


def _written(version: Version, names: Names) -> str:
    return names.written(names.number(version.writer), _key(version))
