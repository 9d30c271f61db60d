"""A term: a base name that a spec may use, where it belongs, and its words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

__all__ = ["EVERYWHERE", "SET_NAME", "Of", "Term", "named_set"]

Of = Literal[
    "histories", "reads", "operations", "moments", "items", "times", "orders", "logs", "delta", "delta-rs",
]  # fmt: skip
"""Where a name belongs: to all ``histories``; to those whose ``reads`` are nodes; to those whose ``operations`` all are;
to those that say of all operations at what ``moments`` they were; to those that tell reads of ``items``
from those by predicate; to those that say at what ``times`` transactions began and ended; to the ``orders`` that
a binder binds; to ``logs``, where what commits becomes a version; to commits as Delta (``delta``) has
them, or to what delta-rs takes a statement to read (``delta-rs``).
"""

EVERYWHERE: tuple[Of, ...] = (
    "histories", "reads", "operations", "moments", "items", "times", "orders", "logs",
)  # fmt: skip
"""What no table format has for itself alone."""


SET_NAME = re.compile(r"[A-Z][A-Za-z0-9_]*(-[A-Za-z0-9_]+)*", re.ASCII)
"""What the name of a set looks like (``specs/cat.lark``)."""


@dataclass(frozen=True, slots=True)
class Term:
    """A base name of specs. ValueError if it lacks the words of its kind.

    >>> from isolitmus.model.vocabulary import RELATIONS, SETS
    >>> RELATIONS["rw"].verb, SETS["Blind"].member("a"), SETS["Blind"].member("a", inside=False)
    ('does not see', 'a is a blind append', 'a is no blind append')
    >>> Term("waits", "locking", "the first waits for a lock of the second", verb="waits for").kind
    'relation'
    """

    name: str
    """As specs and frames have it; a set begins with a capital."""
    of: str
    """Where it belongs: see ``Of``, or the name of a format that has it for itself alone."""
    meaning: str
    """What is related, or who is a member."""
    verb: str = ""
    """Of a relation, by which an edge reads aloud."""
    inside: str = ""
    """Of a set, what is said of a transaction that is in it, with ``{}`` for the transaction."""
    outside: str = ""
    """And of one that is not."""

    def __post_init__(self) -> None:
        words = (self.verb,) if self.kind == "relation" else (self.inside, self.outside)
        if not all((self.meaning, *words)):
            wanted = "a verb" if self.kind == "relation" else "what is said inside and outside it"
            raise ValueError(f"the {self.kind} {self.name} needs a meaning and {wanted}")

    @property
    def kind(self) -> Literal["relation", "set"]:
        """What a spec may do with it: as in every spec, capitals are sets."""
        return "set" if self.name[0].isupper() else "relation"

    def member(self, node: str, *, inside: bool = True) -> str:
        """That a transaction is in this set, or is not, in words."""
        return (self.inside if inside else self.outside).format(node)


def named_set(name: str) -> Term:
    """The term of a set that a history names.

    >>> named_set("Trusted").member("T1", inside=False)
    'T1 is not in Trusted'
    """
    words = f"{{}} is in {name}", f"{{}} is not in {name}"
    return Term(name, "history", "transactions that the history names", "", *words)
