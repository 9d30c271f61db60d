"""Output of commands: lines that fit the terminal, JSON, progress, errors, certificates.

Results go to standard output, progress and messages to standard error. Everything that a command
prints passes through here, so that names and SQL from files cannot control the terminal.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from importlib.metadata import version
from inspect import signature
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from time import monotonic
from typing import TYPE_CHECKING, ParamSpec

from isolitmus.checker.render.page_parts import PageOrigin
from isolitmus.checker.render.text_pictures import assumption_lines
from isolitmus.model.display import about_duration
from isolitmus.model.errors import LISTED, IsolitmusError, printable, sentence
from isolitmus.specs.disk.output_files import only_writer, write_error, write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from rich.status import Status

    from isolitmus.checker.solver.refutation import Certificate

__all__ = [
    "Pace",
    "Refusal",
    "check_output_paths",
    "group_refusals",
    "line_width",
    "made_by_command",
    "print_json",
    "progress",
    "refuse_other_engine",
    "say",
    "say_assumptions",
    "say_file",
    "say_text",
    "warn",
    "worst_status",
    "wrap_line",
    "write_certificates",
]

P = ParamSpec("P")


WIDTH = 100
"""Columns of a line where no terminal says how many it has, and the most that a terminal is
given.
"""
AS_IT_IS = re.compile(
    r"\S  +\S|^[|#]|[├│●]|^(?:SELECT|INSERT|UPDATE|DELETE|MERGE|CREATE|REPLACE|ALTER|DROP|OPTIMIZE|WITH) "
)
"""What shows that a line is no prose: columns, a table in Markdown, a picture, SQL."""
UNIT = re.compile(r"(\d) (s\b|%|MB\b|GB\b|MiB\b)")
"""A number and its unit."""
GOOD = ("passed", "safe", "Proved", "allowed")
VERDICT = re.compile(rf"\b(?:{'|'.join(GOOD)}|FAILED|DIFFERENT|unsafe|forbidden)\b")
"""Words that a terminal shows in green or red."""
SIGN = re.compile(r"[^\n -~]")
SHOWN: list[Status] = []
"""The line of progress that a terminal shows, if it shows one."""
BAR = 20
"""So many signs wide is the bar of work that goes on."""


def print_json(document: object) -> None:
    """One JSON document on standard output."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    sys.stdout.write(SIGN.sub(_escaped, text) + "\n")


def _escaped(sign: re.Match[str]) -> str:
    """A sign as JSON has it, escaped if it does not print."""
    return sign[0] if sign[0].isprintable() else json.dumps(sign[0])[1:-1]


def say(line: str = "", *, bold: bool = False) -> None:
    """Print one line of a result, wrapped to the terminal, and flush: the next may take minutes.

    Control characters in it are escaped. `bold`, for the answer, and the colour of its verdict
    appear on a terminal only, and not where the variable NO_COLOR is set.
    """
    shown = wrap_line(printable(line), line_width())
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        shown = [_styled(one, bold=bold) for one in shown]
    with _without_progress():
        sys.stdout.write("\n".join(shown) + "\n")
        sys.stdout.flush()


def line_width() -> int:
    """Return the columns of a line: those of the variable COLUMNS, else the terminal's, at most
    100.
    """
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    return min(get_terminal_size((WIDTH, 24)).columns, WIDTH)


def wrap_line(line: str, width: int) -> list[str]:
    """Return a line of prose as lines of at most `width` columns, the later ones indented by two
    more.

    A line in columns (two spaces between them), of a table or of SQL stays as it is.

    >>> wrap_line("  a before b, because b read what a wrote", 25)
    ['  a before b, because b', '    read what a wrote']
    >>> wrap_line("12 candidates checked, in 0.1 s", 30)
    ['12 candidates checked, in', '  0.1 s']
    >>> wrap_line("delete  DELETE FROM t WHERE part = 0", 25)
    ['delete  DELETE FROM t WHERE part = 0']
    """
    text = line.lstrip(" ")
    if len(line) <= width or AS_IT_IS.search(text):
        return [line]
    indent = " " * (len(line) - len(text) + 2)
    kept = UNIT.sub("\\1\0\\2", line)  # a number stays with its unit
    parts = wrap(
        kept, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return [part.replace("\0", " ") for part in parts]


def _styled(line: str, *, bold: bool) -> str:
    """Return a line with the codes of a terminal around its verdict, or around the whole of it."""
    if bold:
        return f"\x1b[1m{line}\x1b[0m"
    return VERDICT.sub(lambda word: f"\x1b[{32 if word[0] in GOOD else 31}m{word[0]}\x1b[0m", line)


@contextmanager
def _without_progress() -> Iterator[None]:
    """While the block lasts, no line of progress is shown, which takes what is printed for its
    own.
    """
    for status in SHOWN:
        status.stop()
    yield
    for status in SHOWN:
        status.start()


def say_assumptions(assumptions: Collection[str]) -> None:
    """Print the assumptions of a result, one a line; nothing if there are none."""
    for line in assumption_lines(assumptions) if assumptions else ():
        say(line)


def say_text(text: str) -> None:
    """Print the lines of a result's text, wrapped."""
    for line in text.split("\n"):
        say(line)


def say_file(text: str) -> None:
    """Print the lines of a file as they stand there: not wrapped, tabs as spaces."""
    with _without_progress():
        for line in text.split("\n"):
            sys.stdout.write(printable(line.removesuffix("\r").expandtabs()) + "\n")


def check_output_paths(**options: bool) -> Callable[[Callable[P, int]], Callable[P, int]]:
    """Of a command that writes what these options name, if they are given (true: a folder): while
    it runs, nobody else does.
    """

    def around(command: Callable[P, int]) -> Callable[P, int]:
        @wraps(command)
        def alone_with(*args: P.args, **kwargs: P.kwargs) -> int:
            given = signature(command).bind(*args, **kwargs).arguments
            with ExitStack() as stack:
                for option, folder in options.items():
                    named = given.get(option)
                    path = named if isinstance(named, Path | None) else named.path
                    if path is not None:
                        stack.enter_context(only_writer(path, folder=folder))
                return command(*args, **kwargs)

        return alone_with

    return around


def refuse_other_engine(evidence: Path | None, known: str | None, version: str) -> None:
    """IsolitmusError if the evidence in a file is of another version of an engine than the one that
    runs.
    """
    if known not in {None, version}:
        raise IsolitmusError(
            f"--evidence {evidence}: it is of {known}, and this is {version}; name a file that is"
            " not there yet"
        )


def warn(text: str) -> None:
    """A sentence on standard error, for what is no result."""
    with _without_progress():
        sys.stderr.write(f"isolitmus: {sentence(text)}\n")


class Pace:
    """How far work is, how fast it goes, and what is left of it, in words with a bar.

    >>> pace = Pace(1000, "candidates")
    >>> pace.words(200, 0.0), pace.words(600, 10.0)
    ('━━━━──────────────── 200 of 1,000 candidates', '━━━━━━━━━━━━──────── 600 of 1,000 candidates, 40 a second, 10 s left')
    """

    def __init__(self, total: int, what: str) -> None:
        self._total, self._what = total, what
        self._begun: tuple[float, int] | None = None

    def words(self, done: int, now: float | None = None) -> str:
        """When so much is done; ``now`` is the time in seconds, by default the clock's."""
        now = monotonic() if now is None else now
        if self._begun is None:
            self._begun = now, done
        start, first = self._begun
        full = BAR * done // max(self._total, 1)
        said = f"{'━' * full}{'─' * (BAR - full)} {done:,} of {self._total:,} {self._what}"
        if done <= first or now - start < 1:
            return said
        rate = (done - first) / (now - start)
        return f"{said}, {rate:,.0f} a second, {about_duration((self._total - done) / rate)} left"


@contextmanager
def progress(title: str) -> Iterator[Callable[[str], None]]:
    """A line of progress on standard error while the block lasts, on a terminal only; the block is
    given a function that says where the work is.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(printable(title))) as status:
        SHOWN.append(status)
        try:
            yield lambda text: status.update(Text(printable(f"{title}: {text}")))
        finally:
            SHOWN.remove(status)


def made_by_command() -> PageOrigin:
    """The release, the time, and the command as it was typed."""
    return PageOrigin(
        f"isolitmus {version('isolitmus')}",
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        shlex.join(["isolitmus", *sys.argv[1:]]),
    )


@dataclass(frozen=True, slots=True)
class Refusal:
    """A file or a litmus test that was not carried out, by its name; on which engine and under
    which protocol if it was one; why.
    """

    name: str
    error: IsolitmusError
    engine: str | None = None
    protocol: str | None = None

    @property
    def place(self) -> str:
        """Where what is wrong stands, as far as the error says."""
        return f"{self.name}{self._split[0]}"

    @property
    def reason(self) -> str:
        """What is wrong, without its place."""
        return self._split[1]

    @property
    def _split(self) -> tuple[str, str]:
        text, path = str(self.error), Path(self.name)
        names = "|".join(map(re.escape, (self.name, path.name, path.stem)))
        found = re.match(rf"(?:{names})((?::\d+)*): ", text)
        return ("", text) if found is None else (found[1], text[found.end() :])

    def to_json(self) -> dict[str, object]:
        """The refusal as docs/interface.md, 6, has it."""
        return {
            "name": self.name,
            "engine": self.engine,
            "protocol": self.protocol,
            "status": self.error.status,
            "reason": str(self.error),
        }


def group_refusals(refusals: Iterable[Refusal]) -> Iterator[str]:
    r"""A message for each reason, with the places that have it.

    >>> from isolitmus.model.errors import LitmusError
    >>> wrong = [Refusal(f"{n}.toml", LitmusError(f"{n}.toml:{k}: no title")) for k, n in enumerate("ab")]
    >>> print(*group_refusals(wrong), sep="\n")
    no title: a.toml:0, b.toml:1
    >>> print(*group_refusals(wrong[1:]))
    b.toml:1: no title
    """
    groups: dict[str, list[Refusal]] = {}
    for refusal in refusals:
        groups.setdefault(refusal.reason, []).append(refusal)
    for reason, group in groups.items():
        places = list(dict.fromkeys(refusal.place for refusal in group))
        if len(places) == 1:
            yield str(group[0].error)
            continue
        more = f" and {len(places) - LISTED} more" if len(places) > LISTED else ""
        between = "\n    " if "\n" in reason else ": "
        yield f"{reason}{between}{', '.join(places[:LISTED])}{more}"


def worst_status(statuses: Collection[int]) -> int:
    """The exit status of a command of which several are true (docs/interface.md, 1).

    >>> worst_status({1, 2, 3}), worst_status({3, 1}), worst_status(())
    (2, 1, 0)
    """
    return next((status for status in (2, 4, 1, 3) if status in statuses), 0)


def write_certificates(
    certificates: Sequence[Certificate], folder: Path, readme: str | None = None
) -> None:
    """A folder for each certificate, and the README of the whole; a word on standard error if there
    is none.
    """
    if not certificates:
        warn(f"nothing was refuted, so {folder} was not written")
    for one in certificates:
        inside = folder / one.name
        try:
            inside.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise write_error(inside, problem) from None
        for name, text in one.files():
            write_whole(inside / name, text)
    if certificates and readme is not None:
        write_whole(folder / "README.md", readme)
