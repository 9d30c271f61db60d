"""``isolitmus audit``: what the logs of tables show."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from isolitmus.checker.auditing.audit import audit as audit_table
from isolitmus.cli.output import print_json, progress, say, warn
from isolitmus.model.errors import IsolitmusError, LogError
from isolitmus.model.finding import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isolitmus.model.finding import Audit

__all__ = ["audit"]

SHOWN = 10
"""So many findings of a kind and certainty are printed."""
LISTED = 8
"""So many versions of a finding."""


def audit(
    tables: list[str],
    *,
    html: Path | None,
    spark: bool,
    master: str | None,
    out: Path | None,
    as_json: bool,
) -> int:
    """Exit status 2 if a log could not be read (the others are audited all the same), 1 if something
    was found, else 0.
    """
    if html is not None and html.is_dir():
        raise IsolitmusError(f"--html {html}: that is a folder; the name of a file is wanted")
    if not spark and (master is not None or out is not None):
        raise IsolitmusError(f"--{'master' if master is not None else 'out'} needs --spark")
    names = list(dict.fromkeys(tables))
    audits, errors = _on_spark(names, master, out) if spark else _here(names)
    if errors and not audits:
        raise errors[0]
    if as_json:
        print_json([done.to_json() for done in audits])
    else:
        for k, done in enumerate(audits):
            _print(done, first=not k)
    if html is not None:
        _write(html, audits)
    for error in errors:
        warn(str(error))
    return 2 if errors else int(any(done.counts for done in audits))


def _here(names: list[str]) -> tuple[list[Audit], list[LogError]]:
    audits: list[Audit] = []
    errors: list[LogError] = []
    for name in names:
        try:
            with progress(f"audit {name}") as tell:
                done = audit_table(Path(name), progress=lambda k: tell(f"version {k:,}"))
        except LogError as problem:
            errors.append(problem)
        else:
            audits.append(done)
    return audits, errors


def _on_spark(
    names: list[str], master: str | None, out: Path | None
) -> tuple[list[Audit], list[LogError]]:
    from isolitmus.pipeline.audits import audit_all, refuse_other
    from isolitmus.pipeline.jobs import MASTER, open_for_sweeps

    if out is not None:
        refuse_other(out)
    with open_for_sweeps(master or MASTER) as session, progress("audit on Spark") as tell:
        return audit_all(
            names, session, out=out, progress=lambda k: tell(f"{k:,} of {len(names):,} tables")
        )


def _print(done: Audit, *, first: bool) -> None:
    if not first:
        say()
    span = f"{done.commits:,} commits, versions {done.first} to {done.last}"
    say(f"{done.table}: {span if done.commits else 'no commits to audit'}")
    for (kind, certainty), group in groupby(done.findings, lambda f: (f.kind, f.certainty)):
        number = done.counts[kind, certainty]
        say(f"  {kind}, {certainty} ({number:,}): {KINDS[kind]}")
        found = list(group)
        for finding in found[:SHOWN]:
            say(f"    {_versions(finding.versions)}: {finding.why}")
        if number > SHOWN:
            say(f"    … and {number - SHOWN:,} more; --json lists them")
    for note in done.notes:
        say(f"  {note}")
    say(f"  {_summary(done)}")


def _summary(done: Audit) -> str:
    sure, maybe = (
        sum(n for (_, c), n in done.counts.items() if c == certainty)
        for certainty in ("certain", "possible")
    )
    if not sure + maybe:
        return "Nothing found. That is what the log shows, not all that may have happened."
    return f"{sure:,} certain, {maybe:,} possible."


def _versions(versions: Iterable[int]) -> str:
    shown = list(versions)
    more = ", …" if len(shown) > LISTED else ""
    return ", ".join(map(str, shown[:LISTED])) + more


def _write(path: Path, audits: list[Audit]) -> None:
    from isolitmus.checker.telling.audit_page import audit_page

    try:
        path.write_text(audit_page(audits), "utf-8")
    except OSError as problem:
        raise IsolitmusError(f"cannot write {path}: {problem.strerror}") from None
