"""Some commits of a log as two frames: what is certain of their dependencies, and what is possible.

Nodes are commits. ``so`` is empty, for no log knows sessions; nobody aborted, and who only read is not
there. The possible frame has the certain one in it. What a relation's pairs rest on stands in
``checker.auditing.dependencies``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.auditing.dependencies import changes, missed, saw, wrote_after
from isolitmus.model.frame import Frame
from isolitmus.model.relation import Relation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.checker.auditing.dependencies import Seen
    from isolitmus.model.finding import Certainty

__all__ = ["frames"]

KINDS = ("so", "wr", "ww", "rw", "log")


def frames(commits: Sequence[Seen]) -> tuple[Frame, Frame]:
    """The certain frame and the possible one of commits that follow each other in the log."""
    certain, possible = _Rows(len(commits)), _Rows(len(commits))
    for i, earlier in enumerate(commits):
        for j in range(i + 1, len(commits)):
            later = commits[j]
            for rows in (certain, possible):
                rows.add("log", i, j, "it is earlier in the log")
            for kind, a, b, certainty, why in _pairs(earlier, later):
                source, target = (i, j) if (a, b) == (earlier, later) else (j, i)
                possible.add(kind, source, target, why)
                if certainty == "certain":
                    certain.add(kind, source, target, why)
    names = tuple(f"version {seen.version}" for seen in commits)
    return certain.frame(names), possible.frame(names)


def _pairs(earlier: Seen, later: Seen) -> list[tuple[str, Seen, Seen, Certainty, str]]:
    """The dependencies between two commits: kind, from, to, how sure, and the reason."""
    found: list[tuple[str, Seen, Seen, Certainty, str]] = []
    read = later.commit.read_version
    i, j = f"version {earlier.version}", f"version {later.version}"
    overwrote = changes(earlier, later.commit)
    if overwrote is not None:
        may = "changed" if overwrote == "certain" else "may have changed"
        found.append(("rw", earlier, later, overwrote, f"{j} {may} rows that {i} read"))
    if read is None:
        return found
    if earlier.version > read:
        passed = missed(later, earlier.commit)
        if passed is not None:
            may = "changed" if passed == "certain" else "may have changed"
            why = f"{j} read version {read}, and {i} {may} rows that it read"
            found.append(("rw", later, earlier, passed, why))
        return found
    read_it = saw(later, earlier.commit)
    if read_it is not None:
        may = "read" if read_it == "certain" else "may have read"
        found.append(("wr", earlier, later, read_it, f"{j} {may} what {i} wrote"))
    if wrote_after(later.commit, earlier.commit):
        why = f"{j} may have overwritten what {i} wrote"
        found.append(("ww", earlier, later, "possible", why))
    return found


class _Rows:
    def __init__(self, n: int) -> None:
        self._rows = {kind: [0] * n for kind in KINDS}
        self._why: dict[tuple[str, int, int], str] = {}

    def add(self, kind: str, i: int, j: int, why: str) -> None:
        self._rows[kind][i] |= 1 << j
        self._why.setdefault((kind, i, j), why)

    def frame(self, names: tuple[str, ...]) -> Frame:
        relations = {kind: Relation(tuple(rows)) for kind, rows in self._rows.items()}
        sets = {"Writer": (1 << len(names)) - 1, "Reader": 0, "Aborted": 0}
        return Frame(names, relations, sets, self._why)
