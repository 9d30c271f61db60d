"""Display of texts, numbers and results, and the hook that binds a renderer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isolitmus.model.errors import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


class ReadableRepr:
    """Base class for a readable ``repr`` that IPython, Hypothesis and notebooks show as well.

    Without it, IPython and Hypothesis print the fields of a dataclass, whatever its ``repr``. A
    notebook shows the ``repr``, unless a class has a page of its own.
    """

    __slots__ = ()

    @property
    def printed(self) -> str:
        """Text that they print."""
        return repr(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ARG002 - their protocol
        """Print the text in IPython, line by line."""
        for k, line in enumerate(self.printed.splitlines()):
            if k:
                printer.break_()
            printer.text(line)

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(visible(self.printed))}</pre>"


_load: Callable[[], Callable[[Any, str], str]] | None = None


def bind_renderer(load: Callable[[], Callable[[Any, str], str]]) -> None:
    """Bind the renderer of results.

    `load` returns a function of an object and a form. It is called each time something is shown, so
    that a program which shows nothing imports no renderer.
    """
    global _load  # noqa: PLW0603 - the one hook
    _load = load


def render(thing: object, form: str = "text") -> str:
    """Return `thing` in a form: ``text``, ``html``, ``svg``, ``dot``, ``mermaid`` or ``tikz``.

    Without a renderer, return Python's default ``repr``; importing ``isolitmus.checker`` binds one.
    """
    return object.__repr__(thing) if _load is None else _load()(thing, form)


class TextResult(ReadableRepr):
    """Result that prints as lines of text."""

    __slots__ = ()

    def __repr__(self) -> str:
        return render(self)


class PageResult(ReadableRepr):
    """Result that a notebook shows as a page."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return render(self, "html")


class Command(ReadableRepr):
    """Object with SQL text; prints as its SQL."""

    __slots__ = ()
    sql: str

    def __repr__(self) -> str:
        return self.sql


def capitalized(text: str) -> str:
    """Return `text` with its first letter in upper case; the rest keeps its case.

    Examples
    --------
    >>> capitalized("claims of WriteSerializable")
    'Claims of WriteSerializable'
    """
    return text[:1].upper() + text[1:]


def first_lines(lines: Iterable[str], most: int = 20) -> str:
    r"""Return at most `most` lines as one text; the last line says how many are left out.

    Examples
    --------
    >>> first_lines("abcd", 3), first_lines("abcd", 4)
    ('a\nb\n… and 2 more lines', 'a\nb\nc\nd')
    """
    every = list(lines)
    if len(every) > most:
        left = len(every) - most + 1
        every[most - 1 :] = [f"… and {left} more lines"]
    return "\n".join(every)


def about_duration(seconds: float) -> str:
    """Return a duration in rounded words.

    Examples
    --------
    >>> about_duration(0.2), about_duration(7300), about_duration(100)
    ('1 s', '2 hours', '100 s')
    """
    for unit, size in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{max(seconds, 1):.0f} s"


def count_of(number: int, one: str, several: str = "") -> str:
    """Return a number with its noun; `several` is the plural, by default `one` with an s.

    Examples
    --------
    >>> count_of(1, "finding"), count_of(1200, "finding"), count_of(0, "history", "histories")
    ('1 finding', '1,200 findings', '0 histories')
    """
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"


def first_reasons(why: Sequence[str], shown: int = 3) -> list[str]:
    """Return the first reasons of an unknown answer, and the number of others.

    Examples
    --------
    >>> first_reasons(["no example", "no proof", "a view", "a function", "a loop"])
    ['no example', 'no proof', 'a view', '2 more reasons']
    """
    more = [count_of(len(why) - shown, "more reason")] if len(why) > shown else []
    return [*why[:shown], *more]


def text_digest(text: str) -> str:
    """Return the digest of a text: 16 hexadecimal digits.

    Examples
    --------
    >>> text_digest("r(x0)")
    '01cc3c2f3b5a8e6b'
    """
    from hashlib import sha256

    return sha256(text.encode()).hexdigest()[:16]
