"""Baseline of ``isolitmus lint``: findings that are known and do not fail.

A finding is recognized by its fingerprint, which depends on no line number.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from isolitmus.jobs.lint_rule import RULES
from isolitmus.model.errors import LitmusError, brief
from isolitmus.specs.disk.input_files import read_json, read_text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

FORMAT = 1
"""Number of the format of the file."""
HEAD = "isolitmus_baseline"
"""Key of the number."""
FINGERPRINT = re.compile(r"[0-9a-f]{16}")
SIZE = 2**24
"""Maximum size of the file in bytes."""


class BaselineEntry(NamedTuple):
    """Known findings with one fingerprint."""

    fingerprint: str
    code: str
    """Code of the rule."""
    files: tuple[str, ...]
    """Files of the statements, the first statement's first."""
    title: str
    """Finding in words, for those who read the file."""
    times: int = 1
    """Number of findings with this fingerprint."""


def baseline_text(entries: Iterable[BaselineEntry]) -> str:
    """Return the text of a baseline file; the same findings give the same text.

    Examples
    --------
    >>> text = baseline_text([BaselineEntry("0" * 16, "ISO201", ("a.sql",), "a may conflict")])
    >>> text.count("ISO201")
    1
    """
    document = {
        HEAD: FORMAT,
        "findings": [
            {
                "fingerprint": one.fingerprint,
                "rule": one.code,
                "files": list(one.files),
                "title": one.title,
                "count": one.times,
            }
            for one in sorted(entries, key=lambda one: (one.files, one.code, one.fingerprint))
        ],
    }
    return f"{json.dumps(document, indent=2)}\n"


def read_baseline(path: Path) -> dict[str, BaselineEntry]:
    """Return the entries of a baseline file, by fingerprint.

    Raises LitmusError if it is not a baseline, or of a format that this release does not read.
    """
    text = read_text(path, LitmusError, SIZE)

    def refuse(problem: str) -> NoReturn:
        raise LitmusError(f"{path}: {brief(problem)}; write it again with --update-baseline")

    try:
        document: Any = read_json(text, unique=True)
    except ValueError as error:
        refuse(f"not a baseline: not valid JSON ({error})")
    if not isinstance(document, dict) or HEAD not in document:
        refuse(f"not a baseline: it has no key '{HEAD}'")
    version = document[HEAD]
    if isinstance(version, bool) or version != FORMAT:
        refuse(f"baseline of format {brief(repr(version), 40)}, but this release reads {FORMAT}")
    findings = document.get("findings")
    if not isinstance(findings, list):
        refuse("not a baseline: 'findings' is not a list")
    found: dict[str, BaselineEntry] = {}
    for number, one in enumerate(findings, 1):
        entry = _entry(one)
        if isinstance(entry, str):
            refuse(f"finding {number}: {entry}")
        if entry.fingerprint in found:
            refuse(f"finding {number}: the fingerprint {entry.fingerprint} occurs twice")
        found[entry.fingerprint] = entry
    return found


def _entry(one: Any) -> BaselineEntry | str:
    """Return the entry of a finding, or what is wrong with it."""
    if not isinstance(one, dict):
        return "expected an object"
    fingerprint, code, files, title, count = (
        one.get(key) for key in ("fingerprint", "rule", "files", "title", "count")
    )
    if not isinstance(fingerprint, str) or not FINGERPRINT.fullmatch(fingerprint):
        return "'fingerprint' is not 16 hexadecimal digits"
    if not isinstance(code, str) or code not in RULES:
        return f"unknown rule {brief(repr(code), 40)}"
    if not isinstance(files, list) or not all(isinstance(file, str) for file in files):
        return "'files' is not a list of strings"
    if not isinstance(title, str):
        return "'title' is not a string"
    if not isinstance(count, int) or isinstance(count, bool) or not 0 < count < 10**6:
        return "'count' is not a positive number"
    return BaselineEntry(fingerprint, code, tuple(files), title, count)
