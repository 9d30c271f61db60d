"""Exceptions, one class for each kind of input or failure, and the form of their messages."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, ClassVar, Literal
from unicodedata import category

if TYPE_CHECKING:
    from collections.abc import Iterable

WIDTH = 120
"""Maximum number of columns of a quoted line in a message."""
NEAR = 0.66
"""Similarity (difflib's ratio) from which a known name is suggested for an unknown one."""
LISTED = 12
"""Maximum number of names that a message lists."""
LONGEST = 800
"""Maximum length of a message."""
QUOTED = re.compile(r"(?<!\w)'(?:[^']|'(?=\w))*+(?:'|\Z)")
UNUSUAL = re.compile(r"[^\n\t -~]")
UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode categories without a visible glyph: controls, formats such as text directions,
surrogates, and line and paragraph separators.
"""
WORD = re.compile(rf"\S{{{2 * WIDTH},}}")


SqlProblem = Literal[
    "syntax", "no table", "no column", "column there", "arity", "type", "opaque", "outside"
]
"""Kind of a problem with a statement: it does not parse; a table or column is unknown, or a column
exists already; a list is too long or too short; a value has another type; the value of an
expression is not modelled (``Opaque``); or isolitmus does not model the statement for another
reason.
"""


class IsolitmusError(Exception):
    """Base class of the errors that isolitmus raises on purpose.

    The text is normalized by ``sentence``. ``status`` is the exit status of a command that ends
    with the error.
    """

    status: ClassVar[int] = 2

    def __init__(self, text: str) -> None:
        super().__init__(sentence(text))


class SpecError(IsolitmusError):
    """Spec file (``.cat``) that does not parse, or that uses a name that its frame cannot have."""


class SpecWarning(UserWarning):
    """Statement of a spec file that parses, but can have no effect."""


class ClauseError(IsolitmusError):
    """Clause of a protocol that its format does not support.

    ``clause`` is the number of the clause, ``word`` that of the word in it, both from 0.
    """

    def __init__(self, text: str, clause: int = 0, word: int = 0) -> None:
        super().__init__(text)
        self.clause, self.word = clause, word


class SqlError(IsolitmusError):
    """Statement outside the supported fragment of SQL.

    ``problem`` is the message without its context, ``start`` the offset in the statement's text
    (from 0, None if unknown), ``kind`` the kind of the problem.
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
    """Litmus or scope file that does not parse or contradicts itself."""


class StepBeyond(LitmusError):
    """Step of a schedule after the last step of its transaction."""


class LogError(IsolitmusError):
    """Log of a table that cannot be read: no log, a gap in it, or unknown contents."""


class UndeterminedError(LitmusError):
    """Outcome of a statement or commit that the model does not determine.

    ``problem`` is what is undetermined; ``decided``, if given, is what is determined nevertheless.
    """

    status = 3

    def __init__(self, text: str, decided: str = "") -> None:
        super().__init__(f"{text}. Decided before that: {decided}" if decided else text)
        self.problem = text


class WaitsForEver(UndeterminedError):
    """Transactions that wait for each other, with no rule that ends one of them."""

    status = 3


class NoLitmusTest(LitmusError):
    """TOML file that is not a litmus test."""


class Refused(LitmusError):
    """Litmus test that an engine cannot run; the text names the statement and the reason."""


class HistoryError(IsolitmusError):
    """History that no database can produce."""


class RecordingError(IsolitmusError):
    """History recorded by another tool whose file does not parse."""


class Disagreement(IsolitmusError):
    """Disagreement of two results that must agree: a defect to be explained."""

    def report(self, statements: Iterable[str]) -> str:
        """Return the reason why an answer about these statements is unknown.

        >>> Disagreement("two executors differ").report(["load", "clean"])
        'a defect of isolitmus: two executors differ; please report it with load and clean'
        """
        return f"a defect of isolitmus: {self}; please report it with {' and '.join(statements)}"


class FrameError(IsolitmusError):
    """Relation or set that does not fit its frame."""


class UnknownName(IsolitmusError):
    """Name that the catalogue does not contain."""


class MissingPart(IsolitmusError):
    """Something that belongs to a part of isolitmus which is not installed."""


class EngineUnavailable(IsolitmusError):
    """Engine that does not start or has ended: no Java, no jar, no package, or a JVM that died."""

    status = 4


class EngineFailed(IsolitmusError):
    """Engine failure outside a transaction of a litmus test: the engine keeps running, the test
    does not.
    """

    status = 4


class Ended(IsolitmusError):
    """Work that ended early for a reason other than the input: a limit, a full disk, an engine that
    died.
    """

    status = 3


class Limit(Ended):
    """Limit that ended the work; ``examined`` counts items examined before, if counted."""

    examined = 0


class TimeLimit(Limit):
    """Time limit that ended the work."""


class MemoryLimit(Limit):
    """Memory limit that ended the work."""


def near(name: str, known: Iterable[str]) -> str:
    """Return the end of an error message about an unknown name: a suggestion or the known names.

    At most the first few names are listed. For a dotted name, only the last part is compared if the
    rest matches a known name.

    Examples
    --------
    >>> near("serialisable", ["serializable", "snapshot-isolation"])
    "; did you mean 'serializable'?"
    >>> near("x", ["so", "wr"])
    '; known: so, wr'
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
    r"""Return a message in display form: one line, perhaps with a source line and a caret
    (``excerpt``).

    Control characters are escaped, and long quoted text is shortened.

    Examples
    --------
    >>> sentence("no level 'a\x1b[31m\nb'"), len(sentence(f"no level '{'x' * 5000}'; known: so"))
    ("no level 'a\\x1b[31m b'", 142)
    """
    head, *shown = text.rsplit("\n", 2)
    if shown and (len(shown) < 2 or shown[1].strip() != "^"):
        head, shown = text, []
    line = printable(" ".join(filter(None, map(str.strip, head.split("\n")))))
    line = QUOTED.sub(
        lambda found: (
            found[0]
            if len(found[0]) <= WIDTH + 2 or found[0][-1] != "'"
            else f"'{brief(found[0][1:-1], WIDTH)}'"
        ),
        line,
    )
    line = WORD.sub(lambda found: brief(found[0], 2 * WIDTH), line)
    return "\n".join([brief(line, LONGEST) if len(line) > LONGEST else line, *shown])


def printable(text: str) -> str:
    r"""Return `text` as one printable line; other characters, line ends included, are escaped as in
    Python.

    Examples
    --------
    >>> printable("red: \x1b[31m, from right to left: \u202e")
    'red: \\x1b[31m, from right to left: \\u202e'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def visible(text: str) -> str:
    r"""Return `text` for an HTML page, with invisible characters escaped as in Python; lines are
    kept.

    Examples
    --------
    >>> visible("red: \x1b[31m,\nfrom right to left: \u202e")
    'red: \\x1b[31m,\nfrom right to left: \\u202e'
    """
    return UNUSUAL.sub(
        lambda sign: printable(sign[0]) if category(sign[0]) in UNSEEN else sign[0], text
    )


def brief(text: str, most: int = 400) -> str:
    """Return `text` on one line, shortened in the middle to about `most` characters.

    Examples
    --------
    >>> brief("a value that is much too long to be shown", 15)
    'a value… shown'
    """
    line = " ".join(text.split())
    half = most // 2
    return line if len(line) <= most else f"{line[:half].rstrip()}…{line[-half + 1 :]}"


def excerpt(text: str, line: int, column: int) -> str:
    r"""Return the source line that an error is about, with a caret below the column (both from 1).

    Examples
    --------
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
    """Return the part of `line` around `column` (from 1) that fits on a terminal, and the column
    there.

    Characters that do not print become blanks.

    Examples
    --------
    >>> clip("x" * 1000, 500) == ("x" * WIDTH, WIDTH // 2 + 1)
    True
    """
    start = max(column - 1 - WIDTH // 2, 0) if len(line) > WIDTH else 0
    shown = "".join(c if c.isprintable() else " " for c in line[start : start + WIDTH])
    return shown, column - start
