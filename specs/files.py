"""Files that a user names: whether they are there, and their text or one sentence that says why not."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from isolitmus.model.errors import IsolitmusError

__all__ = ["is_file", "is_folder", "read_text", "write_whole"]


def is_file(path: Path) -> bool:
    """Whether there is such a file; a name that no file can have is none.

    >>> from pathlib import Path
    >>> is_file(Path("x" * 1000))
    False
    """
    try:
        return path.is_file()
    except OSError:
        return False


def is_folder(path: Path) -> bool:
    """Whether there is such a folder."""
    try:
        return path.is_dir()
    except OSError:
        return False


def read_text(path: Path, error: type[IsolitmusError]) -> str:
    """The text of a file; the error says what is wrong with it."""
    try:
        return path.read_text("utf-8")
    except OSError as problem:
        raise error(f"cannot read {path}: {problem.strerror}") from None
    except UnicodeDecodeError as problem:
        raise error(
            f"cannot read {path}: it is not UTF-8 text (byte {problem.start + 1})"
        ) from None


def write_whole(path: Path, text: str) -> None:
    """Write a file so that whoever is stopped meanwhile leaves the old one or the new one, whole."""
    beside = path.with_name(f"{path.name}.new")
    beside.write_text(text, "utf-8")
    beside.replace(path)
