"""Evidence of an audit: what it knows of a log up to some commit, to go on from there.

Two lines of JSON: whose file it is, with a digest of the other line; and what the audit knows. It is of one release: what
another one looks for in a log may be something else.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from isolitmus.model.errors import Ended, LogError
from isolitmus.model.text_digest import text_digest
from isolitmus.specs.disk.input_files import read_if_there
from isolitmus.specs.disk.limits import RECORDING, read_json
from isolitmus.specs.disk.output_files import write_whole

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["edited", "read_audit_file", "write_audit_file"]

WHAT = "evidence of an audit"


def read_audit_file(path: Path) -> dict[str, Any] | None:
    """What an audit has left in a file, None if there is none; LogError if it is no such file, another release's, or not
    as it was written.
    """
    text = read_if_there(path, LogError, RECORDING)
    if text is None:
        return None
    head, _, body = text.partition("\n")
    try:
        first = read_json(head)
        what, release, digest = first["isolitmus"], first["release"], first["digest"]
    except (ValueError, TypeError, KeyError):
        what = release = digest = None
    if what != WHAT:
        raise LogError(f"{path}: this is no {WHAT}; name a file that is not there yet")
    if release != version("isolitmus"):
        raise LogError(
            f"{path}: it is of isolitmus {release}, and this is {version('isolitmus')}; name a file that is not there yet"
        )
    if digest != text_digest(body):
        raise edited(path)
    said: dict[str, Any] = json.loads(body)
    return said


def edited(path: Path) -> LogError:
    """That a file is not what an audit wrote.

    >>> from pathlib import Path
    >>> edited(Path("seen.json"))
    LogError('seen.json: it was cut off or edited since an audit wrote it; without it the audit begins anew')
    """
    return LogError(
        f"{path}: it was cut off or edited since an audit wrote it; without it the audit begins anew"
    )


def write_audit_file(path: Path, said: dict[str, Any]) -> None:
    """Write what an audit knows, as a whole; Ended if that is more than is read again."""
    body = json.dumps(said, separators=(",", ":")) + "\n"
    if len(body) > RECORDING:
        raise Ended(
            f"cannot write {path}: the table has so many files that {WHAT} is larger than {RECORDING:,} bytes"
        )
    head = {"isolitmus": WHAT, "release": version("isolitmus"), "digest": text_digest(body)}
    write_whole(path, json.dumps(head) + "\n" + body)
