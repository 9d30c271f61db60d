"""Some commits of a log as two frames: what is certain of their dependencies, and what is possible.

Nodes are commits. ``so`` is empty, for no log knows sessions; nobody aborted, and who only read is not
there. The possible frame has the certain one in it. What a relation's pairs rest on stands in
``checker.auditing.dependencies``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.auditing.dependencies import changes, missed, saw, wrote_after
from isolitmus.model.frame import FrameBuilder
from isolitmus.model.vocabulary import relations_of, sets_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.checker.auditing.dependencies import AuditedCommit
    from isolitmus.model.certainty import Certainty
    from isolitmus.model.frame import Frame

__all__ = ["frames"]

KINDS = (*relations_of("histories"), "log")


def frames(commits: Sequence[AuditedCommit]) -> tuple[Frame, Frame]:
    """The certain frame and the possible one of commits that follow each other in the log."""
    names = [_name(seen) for seen in commits]
    certain, possible = (FrameBuilder(names, KINDS, sets_of("histories")) for _ in range(2))
    for builder in (certain, possible):
        for i in range(len(commits)):
            builder.put("Writer", i)
    for i, earlier in enumerate(commits):
        for j in range(i + 1, len(commits)):
            later = commits[j]
            for builder in (certain, possible):
                builder.add("log", i, j, "earlier")
            for relation, a, b, certainty, kind, nouns in _pairs(earlier, later):
                source, target = (i, j) if (a, b) == (earlier, later) else (j, i)
                sure = certainty == "certain"
                for builder in (certain, possible) if sure else (possible,):
                    builder.add(relation, source, target, kind, **nouns, certain=sure)
    return certain.build(), possible.build()


def _name(seen: AuditedCommit) -> str:
    return f"version {seen.version}"


def _pairs(
    earlier: AuditedCommit, later: AuditedCommit
) -> Iterator[tuple[str, AuditedCommit, AuditedCommit, Certainty, str, dict[str, object]]]:
    """The dependencies between two commits: relation, from, to, how sure, the kind of reason, its nouns."""
    read = later.commit.read_version
    i, j = _name(earlier), _name(later)
    overwrote = changes(earlier, later.commit)
    if overwrote is not None:
        yield "rw", earlier, later, overwrote, "audit overwrote", {"writer": j, "reader": i}
    if read is None:
        return
    if earlier.version > read:
        passed = missed(later, earlier.commit)
        if passed is not None:
            nouns = {"reader": j, "version": read, "writer": i}
            yield "rw", later, earlier, passed, "audit missed", nouns
        return
    read_it = saw(later, earlier.commit)
    if read_it is not None:
        yield "wr", earlier, later, read_it, "audit read", {"reader": j, "writer": i}
    if wrote_after(later.commit, earlier.commit):
        yield "ww", earlier, later, "possible", "audit wrote", {"writer": j, "before": i}
