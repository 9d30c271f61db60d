"""Objects that print as people write them, whoever prints them."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from isolitmus.model.errors import visible

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Command", "Readable", "begun", "few"]


class Readable:
    """What has a ``repr`` that is to be read. IPython and Hypothesis print it, too; without this they take
    a dataclass apart, whatever its ``repr``. A notebook shows it, unless a class has a page of its own.
    """

    __slots__ = ()

    @property
    def printed(self) -> str:
        """What they print."""
        return repr(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ARG002 - their protocol
        for k, line in enumerate(self.printed.splitlines()):
            if k:
                printer.break_()
            printer.text(line)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(visible(self.printed))}</pre>"


class Command(Readable):
    """What somebody wrote in SQL prints as its SQL."""

    __slots__ = ()
    sql: str

    def __repr__(self) -> str:
        return self.sql


def begun(text: str) -> str:
    """A text as a sentence begins with it; the rest of it stays: names have their own capitals.

    >>> begun("claims of WriteSerializable")
    'Claims of WriteSerializable'
    """
    return text[:1].upper() + text[1:]


def few(lines: Iterable[str], most: int = 20) -> str:
    r"""So many of some lines at ``most``; where there are more, the last says how many are left out.

    >>> few("abcd", 3), few("abcd", 4)
    ('a\nb\n… and 2 more lines', 'a\nb\nc\nd')
    """
    every = list(lines)
    if len(every) > most:
        left = len(every) - most + 1
        every[most - 1 :] = [f"… and {left} more lines"]
    return "\n".join(every)
