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
from inspect import signature
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from time import monotonic
from typing import TYPE_CHECKING, ParamSpec

from isolitmus.checker.render.text_pictures import assumption_lines
from isolitmus.model.display import about_duration
from isolitmus.model.errors import LISTED, IsolitmusError, printable, sentence
from isolitmus.specs.disk.output_files import only_writer, write_error, write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from rich.status import Status

    from isolitmus.checker.render.page_parts import PageOrigin
    from isolitmus.checker.solver.refutation import Certificate

P = ParamSpec("P")


WIDTH = 100
"""Maximum width of a line on a terminal, and its width without a terminal."""
SQL = (
    r"(?:(?:SELECT|INSERT (?:INTO|OVERWRITE)|UPDATE \S+ SET|DELETE FROM|MERGE|CREATE|REPLACE|WITH) "
    r"|DROP TABLE |ALTER TABLE \S+ [A-Z]{3}|OPTIMIZE \S+ (?:WHERE|ZORDER) )"
)
"""Pattern of the beginning of a SQL statement."""
AS_IT_IS = re.compile(rf"\S  +\S|^[|#]|[├│●]|^{SQL}")
"""Pattern of lines that are not wrapped: columns, Markdown tables, pictures and SQL."""
LAST_COLUMN = re.compile(rf"( *+\S(?>.*  ))(?!{SQL})(?=.*[a-z]{{3}})([^\W\d]\S*+(?: \S++){{3,}})")
"""Pattern of a line in columns, the last of which is a sentence."""
UNIT = re.compile(r"(\d) (s\b|%|MB\b|GB\b|MiB\b)")
"""Pattern of a number with its unit."""
GOOD = ("passed", "safe", "Proved", "allowed")
VERDICT = re.compile(rf"\b(?:{'|'.join(GOOD)}|FAILED|DIFFERENT|unsafe|forbidden)\b")
"""Pattern of words that are green or red on a terminal."""
SIGN = re.compile(r"[^\n -~]")
SHOWN: list[Status] = []
"""Progress line that the terminal shows, if any."""
BAR = 20
"""Width of the progress bar in characters."""


def print_json(document: object) -> None:
    """Print one JSON document on standard output."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    sys.stdout.write(SIGN.sub(_escaped, text) + "\n")


def json_line(document: object) -> str:
    r"""Return one JSON document on one line, as the lines of ``--jsonl``.

    Examples
    --------
    >>> print(json_line({"table": "é\x1b"}))
    {"table": "é\u001b"}
    """
    return SIGN.sub(_escaped, json.dumps(document, ensure_ascii=False))


def _escaped(sign: re.Match[str]) -> str:
    """Return a character for JSON, escaped if it is not printable."""
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
    """Return the width of a line: the variable COLUMNS, else that of the terminal, at most 100."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    return min(get_terminal_size((WIDTH, 24)).columns, WIDTH)


def wrap_line(line: str, width: int) -> list[str]:
    """Return a line of prose as lines of at most `width` columns, with hanging indentation.

    The later lines are indented by two more columns. Of a line in columns (two spaces between them)
    only a sentence in the last column is wrapped. A line of a table or of SQL is not wrapped.

    Examples
    --------
    >>> wrap_line("  a before b, because b read what a wrote", 25)
    ['  a before b, because b', '    read what a wrote']
    >>> wrap_line("12 candidates checked, in 0.1 s", 30)
    ['12 candidates checked, in', '  0.1 s']
    >>> wrap_line("delete  DELETE FROM t WHERE part = 0", 25)
    ['delete  DELETE FROM t WHERE part = 0']
    >>> wrap_line("wr  a → b  b read row (1), which a wrote", 25)
    ['wr  a → b  b read row', '           (1), which a', '           wrote']
    """
    text = line.lstrip(" ")
    if len(line) <= width:
        return [line]
    columns = LAST_COLUMN.fullmatch(line)
    if columns is not None and len(columns[1]) <= 0.6 * width:
        indent = " " * len(columns[1])
    elif AS_IT_IS.search(text):
        return [line]
    else:
        indent = " " * (len(line) - len(text) + 2)
    kept = UNIT.sub("\\1\0\\2", line)  # keep a number with its unit
    parts = wrap(
        kept, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return [part.replace("\0", " ") for part in parts]


def _styled(line: str, *, bold: bool) -> str:
    """Return a line with terminal codes for its verdict, or for the whole line."""
    if bold:
        return f"\x1b[1m{line}\x1b[0m"
    return VERDICT.sub(lambda word: f"\x1b[{32 if word[0] in GOOD else 31}m{word[0]}\x1b[0m", line)


@contextmanager
def _without_progress() -> Iterator[None]:
    """Hide the progress line during the block, since it would mix with the output."""
    for status in SHOWN:
        status.stop()
    yield
    for status in SHOWN:
        status.start()


def say_assumptions(assumptions: Collection[str]) -> None:
    """Print the assumptions of a result, one per line; nothing if there are none."""
    for line in assumption_lines(assumptions) if assumptions else ():
        say(line)


def say_text(text: str) -> None:
    """Print the lines of a result's text, wrapped."""
    for line in text.split("\n"):
        say(line)


def say_file(text: str) -> None:
    """Print the lines of a file unwrapped, with tabs expanded."""
    with _without_progress():
        for line in text.split("\n"):
            sys.stdout.write(printable(line.removesuffix("\r").expandtabs()) + "\n")


def say_unwrapped(line: str) -> None:
    """Print one line of output for a program, such as JSON, as it is, and flush it."""
    with _without_progress():
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def check_output_paths(**options: bool) -> Callable[[Callable[P, int]], Callable[P, int]]:
    """Return a decorator that locks the output paths of a command while it runs.

    Each keyword is an option that names an output path, if it is given; its value is True for a
    folder.
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
    """Raise IsolitmusError if an evidence file belongs to another version of the engine."""
    if known not in {None, version}:
        raise IsolitmusError(
            f"--evidence {evidence}: it is of {known}, and this is {version}; name a file that is"
            " not there yet"
        )


def warn(text: str) -> None:
    """Print a message on standard error."""
    with _without_progress():
        sys.stderr.write(f"isolitmus: {sentence(text)}\n")


class Pace:
    """Progress of work in words with a bar: work done, rate and time left.

    Examples
    --------
    >>> pace = Pace(1000, "candidates")
    >>> pace.words(200, 0.0)
    '━━━━──────────────── 200 of 1,000 candidates'
    >>> pace.words(600, 10.0)
    '━━━━━━━━━━━━──────── 600 of 1,000 candidates, 40 a second, 10 s left'
    """

    def __init__(self, total: int, what: str) -> None:
        self._total, self._what = total, what
        self._begun: tuple[float, int] | None = None

    def words(self, done: int, now: float | None = None) -> str:
        """Return the words for this much work done; ``now`` defaults to the clock's seconds."""
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
    """Show a progress line on standard error during the block, on a terminal only.

    Yields a function that updates the line.
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
    """Return the release, the time, and the command as it was typed."""
    from importlib.metadata import version

    from isolitmus.checker.render.page_parts import PageOrigin

    return PageOrigin(
        f"isolitmus {version('isolitmus')}",
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        shlex.join(["isolitmus", *sys.argv[1:]]),
    )


@dataclass(frozen=True, slots=True)
class Refusal:
    """File or litmus test that was not run, by name, with the error.

    ``engine`` and ``protocol`` say where it should have run, if that was determined.
    """

    name: str
    error: IsolitmusError
    engine: str | None = None
    protocol: str | None = None

    @property
    def place(self) -> str:
        """Place of the error, as far as the error has it."""
        return f"{self.name}{self._split[0]}"

    @property
    def reason(self) -> str:
        """Error without its place."""
        return self._split[1]

    @property
    def _split(self) -> tuple[str, str]:
        """Position that the error's text begins with, as ``:3:5`` or empty, and the rest."""
        text, path = str(self.error), Path(self.name)
        names = "|".join(map(re.escape, (self.name, path.name, path.stem)))
        found = re.match(rf"(?:{names})((?::\d+)*): ", text)
        return ("", text) if found is None else (found[1], text[found.end() :])

    def to_json(self) -> dict[str, object]:
        """Return the refusal in the form that docs/interface.md, section 6, describes."""
        return {
            "name": self.name,
            "engine": self.engine,
            "protocol": self.protocol,
            "status": self.error.status,
            "reason": str(self.error),
        }


def group_refusals(refusals: Iterable[Refusal]) -> Iterator[str]:
    r"""Yield a message for each reason, with its places.

    Examples
    --------
    >>> from isolitmus.model.errors import LitmusError
    >>> errors = [LitmusError("a.toml:0: no title"), LitmusError("b.toml:1: no title")]
    >>> wrong = [Refusal("a.toml", errors[0]), Refusal("b.toml", errors[1])]
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
    """Return the exit status of a command to which several apply (docs/interface.md, section 1).

    Examples
    --------
    >>> worst_status({1, 2, 3}), worst_status({3, 1}), worst_status(())
    (2, 1, 0)
    """
    return next((status for status in (2, 4, 1, 3) if status in statuses), 0)


def write_certificates(
    certificates: Sequence[Certificate], folder: Path, readme: str | None = None
) -> None:
    """Write a folder for each certificate, and the README of the whole; warn if there are none."""
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
