"""How things print: texts, numbers, results; the one hook by which a renderer is bound.

Objects that print as people write them, whoever prints them.

A number and what it counts, as people write them.

What tells one text from another in few letters.
"""

from __future__ import annotations

from hashlib import sha256
from html import escape
from typing import TYPE_CHECKING, Any

from isolitmus.model.errors import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = [
    "Command",
    "PageResult",
    "ReadableRepr",
    "TextResult",
    "about_duration",
    "bind_renderer",
    "capitalized",
    "count_of",
    "first_lines",
    "render",
    "text_digest",
]


class ReadableRepr:
    """What has a ``repr`` that is to be read. IPython and Hypothesis print it, too; without this
    they take a dataclass apart, whatever its ``repr``. A notebook shows it, unless a class has a
    page of its own.
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


_load: Callable[[], Callable[[Any, str], str]] | None = None


def bind_renderer(load: Callable[[], Callable[[Any, str], str]]) -> None:
    """Bind what renders results: ``load`` gives a function of a thing and a form, and is called
    each time that something is shown, so that a program which shows nothing imports no renderer.
    """
    global _load  # noqa: PLW0603 - the one hook
    _load = load


def render(thing: object, form: str = "text") -> str:
    """A thing in a form: ``text``, ``html``, ``svg``, ``dot``, ``mermaid``, ``tikz``. Without a
    renderer, as Python shows any object: importing ``isolitmus.checker`` binds one.
    """
    return object.__repr__(thing) if _load is None else _load()(thing, form)


class TextResult(ReadableRepr):
    """A result that prints in lines."""

    __slots__ = ()

    def __repr__(self) -> str:
        return render(self)


class PageResult(ReadableRepr):
    """A result that a notebook shows as a page."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return render(self, "html")


class Command(ReadableRepr):
    """What somebody wrote in SQL prints as its SQL."""

    __slots__ = ()
    sql: str

    def __repr__(self) -> str:
        return self.sql


def capitalized(text: str) -> str:
    """A text as a sentence begins with it; the rest of it stays: names have their own capitals.

    >>> capitalized("claims of WriteSerializable")
    'Claims of WriteSerializable'
    """
    return text[:1].upper() + text[1:]


def first_lines(lines: Iterable[str], most: int = 20) -> str:
    r"""So many of some lines at ``most``; where there are more, the last says how many are left
    out.

    >>> first_lines("abcd", 3), first_lines("abcd", 4)
    ('a\nb\n… and 2 more lines', 'a\nb\nc\nd')
    """
    every = list(lines)
    if len(every) > most:
        left = len(every) - most + 1
        every[most - 1 :] = [f"… and {left} more lines"]
    return "\n".join(every)


def about_duration(seconds: float) -> str:
    """How long something takes, about.

    >>> about_duration(0.2), about_duration(7300), about_duration(100)
    ('1 s', '2 hours', '100 s')
    """
    for unit, size in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{max(seconds, 1):.0f} s"


def count_of(number: int, one: str, several: str = "") -> str:
    """So many of something; ``several`` is its plural, by default ``one`` with an s.

    >>> count_of(1, "finding"), count_of(1200, "finding"), count_of(0, "history", "histories")
    ('1 finding', '1,200 findings', '0 histories')
    """
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"


def text_digest(text: str) -> str:
    """A digest of a text, of 16 hexadecimal digits.

    >>> text_digest("r(x0)")
    '01cc3c2f3b5a8e6b'
    """
    return sha256(text.encode()).hexdigest()[:16]
