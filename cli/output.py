"""What the commands share: JSON on standard output, progress on standard error, words in between."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from isolitmus.model.errors import IsolitmusError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["named", "print_json", "progress", "refuse_other_engine", "say", "warn"]


def print_json(document: object) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def say(text: str = "") -> None:
    """A line of the result on standard output."""
    sys.stdout.write(text + "\n")


def named(option: str, names: str) -> list[str]:
    """The names of an option that takes several, separated by commas; each once, at least one.

    >>> named("engine", "model, delta")
    ['model', 'delta']
    """
    found = list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    if not found:
        raise IsolitmusError(f"--{option} is empty; name at least one {option}")
    return found


def refuse_other_engine(evidence: Path | None, known: str | None, version: str) -> None:
    """IsolitmusError if the evidence in a file is of another version of an engine than the one that runs."""
    if known not in {None, version}:
        raise IsolitmusError(
            f"--evidence {evidence}: it is of {known}, and this is {version}; name a file that is not"
            " there yet"
        )


def warn(text: str) -> None:
    """A line on standard error, for what is no result."""
    sys.stderr.write(f"isolitmus: {text}\n")


@contextmanager
def progress(title: str) -> Iterator[Callable[[str], None]]:
    """A line of progress on standard error while the block lasts, on a terminal only; the block is
    given a function that says where the work is.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status(title) as status:
        yield lambda text: status.update(f"{title}: {text}")
