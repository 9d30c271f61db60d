"""What can go wrong, one class for each kind of thing that a user hands in."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, ClassVar, Literal
from unicodedata import category

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "Disagreement",
    "Ended",
    "EngineFailed",
    "EngineUnavailable",
    "FrameError",
    "HistoryError",
    "IsolitmusError",
    "Limit",
    "LitmusError",
    "LogError",
    "MemoryLimit",
    "NoLitmusTest",
    "RecordingError",
    "Refused",
    "SpecError",
    "SqlError",
    "SqlProblem",
    "TimeLimit",
    "UndeterminedError",
    "UnknownName",
    "WaitsForEver",
    "brief",
    "clip",
    "excerpt",
    "near",
    "printable",
    "sentence",
    "visible",
]


WIDTH = 120
"""How much of a line a message shows."""
NEAR = 0.66
"""How much of two names is alike (difflib's ratio) where one may have been meant for the other."""
LISTED = 12
"""How many names a message lists."""
LONGEST = 800
"""How long a message is."""
QUOTED = re.compile(r"(?<!\w)'(?:[^']|'(?=\w))*'")
UNUSUAL = re.compile(r"[^\n\t -~]")
UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""The categories of Unicode that show nothing: controls, formats such as directions, halves of
signs, ends of lines.
"""
WORD = re.compile(rf"\S{{{2 * WIDTH},}}")


SqlProblem = Literal[
    "syntax", "no table", "no column", "column there", "arity", "type", "opaque", "outside"
]
"""What can be wrong with a statement: it does not parse; there is no such table or column, or there
is such a column already; a list is too long or too short; a value is of another type; what an
expression gives is not modelled (``Opaque``); or else isolitmus does not model the statement.
"""


class IsolitmusError(Exception):
    """The root of every error that isolitmus raises on purpose; its text is one ``sentence`` for a
    person, whatever it was made of, and ``status`` the exit status of a command that it ends.
    """

    status: ClassVar[int] = 2

    def __init__(self, text: str) -> None:
        super().__init__(sentence(text))


class SpecError(IsolitmusError):
    """A spec file (``.cat``) that does not read, or names what its frame cannot have."""


class ClauseError(IsolitmusError):
    """A clause of a protocol of which its format makes nothing: the number of the clause, and of
    the word in it, from 0.
    """

    def __init__(self, text: str, clause: int = 0, word: int = 0) -> None:
        super().__init__(text)
        self.clause, self.word = clause, word


class SqlError(IsolitmusError):
    """A statement outside the fragment of SQL that the model understands: the ``problem``, where in
    its text, from 0, if that is known, and of which ``kind`` it is.
    """

    def __init__(
        self,
        message: str,
        *,
        problem: str = "",
        start: int | None = None,
        kind: SqlProblem = "outside",
    ) -> None:
        super().__init__(message)
        self.problem, self.start, self.kind = problem, start, kind


class LitmusError(IsolitmusError):
    """A litmus or scope file that does not read or contradicts itself."""


class StepBeyond(LitmusError):
    """A step of a schedule that comes where its transaction gives no more."""


class LogError(IsolitmusError):
    """A table's log that cannot be read: it is none, has a gap, or holds what is unknown."""


class UndeterminedError(LitmusError):
    """Nothing that is modelled says how a statement ends, or whether a commit meets it: undecided,
    which is the ``problem``; and what is ``decided`` all the same, if anything is.
    """

    status = 3

    def __init__(self, text: str, decided: str = "") -> None:
        super().__init__(f"{text}. Decided before that: {decided}" if decided else text)
        self.problem = text


class WaitsForEver(UndeterminedError):
    """Transactions that wait for each other, and nobody ends one of them."""

    status = 3


class NoLitmusTest(LitmusError):
    """A TOML file that is something else."""


class Refused(LitmusError):
    """A litmus test that an engine cannot carry out: which statement, and why."""


class HistoryError(IsolitmusError):
    """A history that no database could have produced as it stands."""


class RecordingError(IsolitmusError):
    """A history that another tool recorded and whose file does not read."""


class Disagreement(IsolitmusError):
    """Two things that must agree do not: a defect to be explained."""


class FrameError(IsolitmusError):
    """A relation or set that does not fit its frame."""


class UnknownName(IsolitmusError):
    """A name that the catalogue does not have."""


class EngineUnavailable(IsolitmusError):
    """An engine that could not be started, or that ended: no Java, no jar, no package, a JVM that
    died.
    """

    status = 4


class EngineFailed(IsolitmusError):
    """An engine that failed at what is no transaction of a litmus test: it lives on, the test is
    not carried out.
    """

    status = 4


class Ended(IsolitmusError):
    """Something ended the work before it was done, and it was not the user's input: a limit, a full
    disk, an engine that died.
    """

    status = 3


class Limit(Ended):
    """A limit ended the work. ``examined``: how much had been looked at then, if that was
    counted.
    """

    examined = 0


class TimeLimit(Limit):
    """The limit was one of time."""


class MemoryLimit(Limit):
    """The limit was one of memory."""


def near(name: str, known: Iterable[str]) -> str:
    """The end of an error message: what would have been right.

    >>> near("serialisable", ["serializable", "snapshot-isolation"])
    "; did you mean 'serializable'?"
    >>> near("x", ["so", "wr"])
    '; known: so, wr'

    Of many names the first few are listed. Of names with dots only the last part differs, if the
    rest is one.
    """
    names = sorted(known)
    family = name[: name.rfind(".") + 1]
    tails = {n.removeprefix(family): n for n in names if n.startswith(family)}
    close = get_close_matches(name.removeprefix(family), tails, 1, NEAR)
    if close:
        return f"; did you mean '{tails[close[0]]}'?"
    if not tails and (close := get_close_matches(name, names, 1, NEAR)):
        return f"; did you mean '{close[0]}'?"
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"; known: {', '.join(names[:LISTED])}{more}" if names else ""


def sentence(text: str) -> str:
    r"""A message as it is shown: on one line, below which the text's line may stand with a caret
    (``excerpt``). Nothing in it is what a terminal obeys, and no more than a line of what it
    quotes.

    >>> sentence("no level 'a\x1b[31m\nb'"), len(sentence(f"no level '{'x' * 5000}'; known: so"))
    ("no level 'a\\x1b[31m b'", 142)
    """
    head, *shown = text.rsplit("\n", 2)
    if shown and (len(shown) < 2 or shown[1].strip() != "^"):
        head, shown = text, []
    line = printable(re.sub(r"\s*\n\s*", " ", head.strip()))
    line = QUOTED.sub(
        lambda found: (
            found[0] if len(found[0]) <= WIDTH + 2 else f"'{brief(found[0][1:-1], WIDTH)}'"
        ),
        line,
    )
    line = WORD.sub(lambda found: brief(found[0], 2 * WIDTH), line)
    return "\n".join([brief(line, LONGEST) if len(line) > LONGEST else line, *shown])


def printable(text: str) -> str:
    r"""A text as one line that any terminal shows and none obeys: what does not print, the end of a
    line among it, is written as Python writes it.

    >>> printable("red: \x1b[31m, from right to left: \u202e")
    'red: \\x1b[31m, from right to left: \\u202e'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def visible(text: str) -> str:
    r"""A text for a page: what no browser shows, but obeys, is written as Python writes it; lines
    stay lines.

    >>> visible("red: \x1b[31m,\nfrom right to left: \u202e")
    'red: \\x1b[31m,\nfrom right to left: \\u202e'
    """
    return UNUSUAL.sub(
        lambda sign: printable(sign[0]) if category(sign[0]) in UNSEEN else sign[0], text
    )


def brief(text: str, most: int = 400) -> str:
    """A text for a message, on one line; of a long one the beginning and the end.

    >>> brief("a value that is much too long to be shown", 15)
    'a value… shown'
    """
    line = " ".join(text.split())
    half = most // 2
    return line if len(line) <= most else f"{line[:half].rstrip()}…{line[-half + 1 :]}"


def excerpt(text: str, line: int, column: int) -> str:
    r"""The line of a text that an error is about, with a caret below the column (both from 1).


    >>> print(excerpt("let a =\n b | wx", 2, 6))
    <BLANKLINE>
        b | wx
            ^
    """
    lines = text.split("\n")
    shown, column = clip(lines[min(line, len(lines)) - 1], column)
    stripped = shown.lstrip()
    indent = max(column - 1 - (len(shown) - len(stripped)), 0)
    return f"\n    {stripped.rstrip()}\n    {' ' * indent}^"


def clip(line: str, column: int) -> tuple[str, int]:
    """A line as a terminal can show it, and the column (from 1) there: of a long line only the part
    around the column, and blanks for what does not print.

    >>> clip("x" * 1000, 500) == ("x" * WIDTH, WIDTH // 2 + 1)
    True
    """
    start = max(column - 1 - WIDTH // 2, 0) if len(line) > WIDTH else 0
    shown = "".join(c if c.isprintable() else " " for c in line[start : start + WIDTH])
    return shown, column - start
