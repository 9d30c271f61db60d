"""What the commands share: JSON on standard output, progress on standard error, words in between."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["print_json", "progress", "say", "split"]


def print_json(document: object) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def say(text: str = "") -> None:
    """A line of the result on standard output."""
    sys.stdout.write(text + "\n")


def split(names: str) -> list[str]:
    """The names of an option that takes several, separated by commas.

    >>> split("model, delta")
    ['model', 'delta']
    """
    return [name.strip() for name in names.split(",") if name.strip()]


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
