"""What the commands share: JSON on standard output, progress on standard error, words in between.

Whatever a command prints goes through here, and with it what files and tables have put into names and
SQL: a terminal is given lines that print, and nothing that it would obey.
"""

from __future__ import annotations

import json
import re
import sys
from contextlib import ExitStack, contextmanager
from functools import wraps
from inspect import signature
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, ParamSpec

from isolitmus.model.errors import IsolitmusError, printable, sentence
from isolitmus.model.number import lasting
from isolitmus.specs.disk.output_files import only_writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.status import Status

P = ParamSpec("P")

__all__ = [
    "Pace",
    "print_json",
    "progress",
    "refuse_other_engine",
    "say",
    "say_text",
    "warn",
    "writes",
]

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


def say(line: str = "") -> None:
    """A line of the result on standard output, at once: what comes after it may take minutes. It stays one
    line, whatever is in it.
    """
    with _without_progress():
        sys.stdout.write(printable(line) + "\n")
        sys.stdout.flush()


@contextmanager
def _without_progress() -> Iterator[None]:
    """While the block lasts, no line of progress is shown, which takes what is printed for its own."""
    for status in SHOWN:
        status.stop()
    yield
    for status in SHOWN:
        status.start()


def say_text(text: str) -> None:
    """The lines of a text, such as a file's, on standard output."""
    for line in text.split("\n"):
        say(line.removesuffix("\r").expandtabs())


def writes(**options: bool) -> Callable[[Callable[P, int]], Callable[P, int]]:
    """Of a command that writes what these options name, if they are given (true: a folder): while it runs,
    nobody else does.
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
    """IsolitmusError if the evidence in a file is of another version of an engine than the one that runs."""
    if known not in {None, version}:
        raise IsolitmusError(
            f"--evidence {evidence}: it is of {known}, and this is {version}; name a file that is not"
            " there yet"
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
        return f"{said}, {rate:,.0f} a second, {lasting((self._total - done) / rate)} left"


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
