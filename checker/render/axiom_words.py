"""What a spec demands, an axiom a line, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.model.spec import Spec

__all__ = ["axiom_lines"]

DEMANDS = {
    "acyclic": "no cycle in",
    "irreflexive": "nothing related to itself by",
    "empty": "nothing related by",
}


def axiom_lines(spec: Spec) -> Iterator[str]:
    """Each axiom, then each silence.

    >>> from isolitmus.specs import level
    >>> print(*axiom_lines(level("pl-3")), sep="; ")
    no-aborted-read: nothing related by ([Aborted] ; wr); serial-order: no cycle in ((wr | ww) | rw)
    """
    for axiom in spec.axioms:
        yield f"{axiom.name}: {DEMANDS[axiom.test]} {axiom.expr}"
    for one in spec.silences:
        yield f"{one.name}: nothing is said of what is related by {one.expr}"
