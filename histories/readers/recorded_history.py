"""Reader of a recorded history in a file or folder, with detection of its format by content.

The readers of other formats than the one that is read are not imported.
"""

from __future__ import annotations

import gzip
import re
import zlib
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isolitmus.histories.readers import ENDINGS, RECORDED
from isolitmus.histories.readers.bulk import read_awdit_in_bulk, read_plume_in_bulk
from isolitmus.model.errors import RecordingError, near
from isolitmus.specs.disk.input_files import (
    RECORDING,
    decode_bytes,
    from_utf_16,
    is_file,
    is_folder,
    paths_below,
    read_bytes,
    read_json,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.histories.readers.blackbox_history import ListHistory, RegisterHistory

DBCOP_TEXT = re.compile(r"(?:\s|//[^\n]*+\n|-+\s)*+\[\s*\w+[ \t]*[:=]=", re.ASCII)
"""Beginning of a text of dbcop: comments, then the first operation of a transaction."""
BEGINNINGS = {
    "dbcop text": DBCOP_TEXT,
    "plume": re.compile(r"\s*[rw]\("),
    "awdit": re.compile(r"\s*(?:[rw]\s|-|=)"),
    "dbcop": re.compile(
        r'\s*(?:\[\s*(?:\]\s*\Z|\[)|\{\s*"(?:(?:id|params|info|start|end|data)"\s*:'
        r'|(?s:.{0,1000}?)"data"\s*:\s*\[))'
    ),
    "elle": re.compile(r"[\s,]*[\[({#;]"),
}
"""Pattern of the beginning of a text in each format; the first match determines the format."""
REGULAR = {
    "plume": ((b"r(", b"w("), read_plume_in_bulk),
    "awdit": ((b"r ", b"w ", b"-", b"="), read_awdit_in_bulk),
}
"""First bytes of a regular text, and its reader."""
GZIP = b"\x1f\x8b"
"""First bytes of gzip data."""
JSON = re.compile(r'\s*\[\s*(?:\{\s*["}]|\])')
JSON_VALUE = re.compile(r"\s*[\[{]")
JSON_LINE = re.compile(r'\s*\{\s*"')
"""Beginning of a file with one JSON operation per line."""


def recorded_files(path: Path) -> list[Path]:
    """Return the histories in a folder, by file extension; a path that is a history is returned
    alone.

    Examples
    --------
    >>> recorded_files(Path("nowhere.edn"))
    [PosixPath('nowhere.edn')]
    """
    if not is_folder(path) or is_file(path / "history.bincode") or any(path.glob("*.log")):
        return [path]
    found = (one for one in paths_below(path) if one.suffix in ENDINGS and is_file(one))
    folded = {one.parent if _folded(one) else one for one in found}
    return sorted(folded) or [path]


def _folded(path: Path) -> bool:
    return path.suffix == ".log" or path.name == "history.bincode"


def recorded_history(
    path: str | Path,
    format: str = "auto",  # noqa: A002 - the option's name
) -> RegisterHistory | ListHistory:
    """Return the history that another tool recorded in a file, or in a folder of its logs.

    Parameters
    ----------
    path : str or Path
        File or folder.
    format : str
        Format of the history; ``auto`` detects it.

    Raises
    ------
    RecordingError
        If it does not parse; the message has the place, the problem and a fix.

    Examples
    --------
    >>> recorded_history("nowhere.edn")
    Traceback (most recent call last):
    isolitmus.model.errors.RecordingError: cannot read nowhere.edn: No such file or directory
    >>> recorded_history("h.edn", "ele")
    Traceback (most recent call last):
    isolitmus.model.errors.RecordingError: unknown format 'ele' of recorded histories; did you \
mean 'elle'?
    """
    if format not in ("auto", *RECORDED):
        raise RecordingError(
            f"unknown format '{format}' of recorded histories{near(format, ('auto', *RECORDED))}"
        )
    path = Path(path)
    if is_folder(path):
        inside = path / "history.bincode"
        if format in ("auto", "dbcop") and is_file(inside):
            path = inside
        elif format in ("auto", "cobra"):
            return _cobra(path)
    elif format == "cobra":
        raise RecordingError(
            f"{path}: not a folder; Cobra's logs are a folder with a file for each session"
        )
    return read_recorded(read_bytes(path, RecordingError, RECORDING), path, format)


def read_recorded(data: bytes, path: Path, form: str = "auto") -> RegisterHistory | ListHistory:
    r"""Return the history in the bytes of a file, perhaps compressed by gzip.

    Examples
    --------
    >>> read_recorded(b"r(5,0,0,0)\nw(5,1,0,0)\n", Path("h.txt"))
    1 transaction in 1 session, 2 operations on 1 key
    """
    file = str(path)
    if data[:2] == GZIP:
        data = _unpacked(data, file)
    found = _regular(data, form)
    if found is not None:
        return found
    text = from_utf_16(data)
    if text is None and b"\0" in data[:64] and form in ("auto", "dbcop"):
        from isolitmus.histories.readers.dbcop import read_dbcop

        return read_dbcop(data, file)
    if text is None:
        text = decode_bytes(data, path, RecordingError).removeprefix("\ufeff")
    text = text.replace("\r\n", "\n")
    if form == "auto":
        fits = [name for name, begins in BEGINNINGS.items() if begins.match(text)]
        if not fits:
            start = text.lstrip()[:20]
            said = f"the file begins with '{start}'" if start else "the file is empty"
            raise RecordingError(
                f"{file}: {said}, and no recorded history does that; known: {', '.join(RECORDED)}"
            )
        form = fits[0]
    elif form == "dbcop" and (DBCOP_TEXT.match(text) or not JSON_VALUE.match(text)):
        form = "dbcop text"
    match form:
        case "dbcop text":
            from isolitmus.histories.readers.dbcop import read_dbcop_text

            return read_dbcop_text(text, file)
        case "plume":
            from isolitmus.histories.readers.plume import read_plume

            return read_plume(text, file)
        case "awdit":
            from isolitmus.histories.readers.awdit import read_awdit

            return read_awdit(text, file)
        case "dbcop":
            from isolitmus.histories.readers.dbcop import read_dbcop_json

            return read_dbcop_json(_json(text, file), file)
    from isolitmus.histories.readers.elle import read_elle

    if JSON.match(text):
        found = _json(text, file)
        return read_elle(enumerate(found, 1), file)
    if JSON_LINE.match(text):
        return read_elle(_json_lines(text, file), file)
    from isolitmus.histories.readers.edn import read_edn_forms

    return read_elle(read_edn_forms(text, file), file, ":")


def _regular(data: bytes, form: str) -> RegisterHistory | None:
    """Return the history in a regular text of Plume or AWDIT; None for any other."""
    for name, (begins, read) in REGULAR.items():
        if form in ("auto", name) and data.startswith(begins):
            return read(data.replace(b"\r\n", b"\n") if b"\r" in data else data)
    return None


def _unpacked(data: bytes, file: str) -> bytes:
    """Return data unpacked by gzip; RecordingError if they are damaged or too large."""
    found = bytearray()
    try:
        with gzip.open(BytesIO(data)) as packed:
            while len(found) <= RECORDING and (more := packed.read(2**16)):
                found += more
    except (EOFError, OSError, zlib.error) as problem:
        raise RecordingError(f"cannot read {file}: as gzip it is damaged ({problem})") from None
    if len(found) > RECORDING:
        raise RecordingError(f"cannot read {file}: unpacked it is larger than {RECORDING:,} bytes")
    return bytes(found)


def _json(text: str, file: str) -> Any:
    """Return parsed JSON without repeated keys, or raise RecordingError."""
    try:
        return read_json(text, unique=True)
    except ValueError as problem:
        raise RecordingError(f"{file}: not valid JSON: {problem}") from None


def _json_lines(text: str, file: str) -> Iterator[tuple[int, Any]]:
    """Yield the values of a text with one JSON value per line, each with its line."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, _json(line, f"{file}:{number}")


def _cobra(folder: Path) -> RegisterHistory:
    """Return the history in the ``.log`` files of a folder in Cobra's format."""
    try:
        logs = sorted(path for path in folder.iterdir() if path.suffix == ".log")
    except OSError as problem:
        raise RecordingError(f"cannot read {folder}: {problem.strerror}") from None
    if not logs:
        raise RecordingError(
            f"{folder}: this folder holds no history: it has neither a file history.bincode (dbcop)"
            " nor files NAME.log (Cobra)"
        )
    from isolitmus.histories.readers.cobra import read_cobra

    read = ((path.name, read_bytes(path, RecordingError, RECORDING)) for path in logs)
    return read_cobra(read, str(folder))
