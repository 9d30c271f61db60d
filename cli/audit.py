"""``isolitmus audit``: what the logs of tables show."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isolitmus.checker.auditing.audit import audit as audit_table
from isolitmus.checker.telling.overview_words import (
    nothing_found,
    overview_lines,
    when_written,
)
from isolitmus.cli.forms import TABLES, Forms
from isolitmus.cli.options import Json, Master, Memory, Time, budget, needs_spark
from isolitmus.cli.output import progress, say, warn, writes
from isolitmus.model.errors import LogError
from isolitmus.model.finding import KINDS
from isolitmus.model.number import many
from isolitmus.specs.writing import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isolitmus.model.budget import Budget
    from isolitmus.model.finding import Audit

__all__ = ["audit"]

FORMS = Forms(*TABLES)
SHOWN = 10
"""So many findings of a kind and certainty are printed."""
LISTED = 8
"""So many versions of a finding."""


@writes(html=False, out=True)
def audit(
    tables: Annotated[list[str], typer.Argument(metavar="TABLE", help="Folders of Delta tables.")],
    *,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the findings as a page, too.")
    ] = None,
    spark: Annotated[
        bool, typer.Option("--spark", help="Audit on Spark, a table each task.")
    ] = False,
    master: Master = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE", help="With --spark: the folder of a Delta table for the findings."
        ),
    ] = None,
    time: Time = None,
    memory: Memory = None,
    as_: Annotated[str | None, FORMS.option] = None,
    as_json: Json = False,
) -> int:
    """Exit status 2 if a log could not be read (the others are audited all the same), 3, whatever was found,
    if a limit ended an audit, 1 if something was found, else 0.
    """
    form = FORMS.chosen(as_, as_json=as_json)
    within = budget(time, memory)
    needs_spark(spark, master, out)
    names = list(dict.fromkeys(tables))
    audits, errors = _on_spark(names, master, out, within) if spark else _here(names, within)
    if errors and not audits:
        raise errors[0]
    form.show(audits, lambda: [done.to_json() for done in audits])
    if not form.quiet:
        for k, done in enumerate(audits):
            _print(done, first=not k)
    if html is not None:
        _write(html, audits)
    for error in errors:
        warn(str(error))
    if errors or any(done.ended is not None for done in audits):
        return 2 if errors else 3
    return int(any(done.counts for done in audits))


def _here(names: list[str], budget: Budget) -> tuple[list[Audit], list[LogError]]:
    audits: list[Audit] = []
    errors: list[LogError] = []
    for name in names:
        try:
            with progress(f"audit {name}") as tell:
                done = audit_table(
                    Path(name), budget=budget, progress=lambda k: tell(f"version {k:,}")
                )
        except LogError as problem:
            errors.append(problem)
        else:
            audits.append(done)
    return audits, errors


def _on_spark(
    names: list[str], master: str | None, out: Path | None, budget: Budget
) -> tuple[list[Audit], list[LogError]]:
    from isolitmus.pipeline.audits import audit_all, refuse_no_findings
    from isolitmus.pipeline.jobs import MASTER, open_for_sweeps

    if out is not None:
        refuse_no_findings(out)
    with open_for_sweeps(master or MASTER) as session, progress("audit on Spark") as tell:
        return audit_all(
            names,
            session,
            out=out,
            budget=budget,
            progress=lambda k: tell(f"{k:,} of {len(names):,} tables"),
        )


def _print(done: Audit, *, first: bool) -> None:
    if not first:
        say()
    span = f"{many(done.commits, 'commit')}, versions {done.first} to {done.last}"
    told = done.overview
    when = "" if told is None else when_written(told)
    say(f"{done.table}: {span + when if done.commits else 'no commits to audit'}")
    for line in () if told is None else overview_lines(told):
        say(f"  {line}")
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
        return nothing_found(done)
    return f"{sure:,} certain, {maybe:,} possible."


def _versions(versions: Iterable[int]) -> str:
    shown = list(versions)
    more = ", …" if len(shown) > LISTED else ""
    return ", ".join(map(str, shown[:LISTED])) + more


def _write(path: Path, audits: list[Audit]) -> None:
    from isolitmus.checker.telling.audit_page import audit_page
    from isolitmus.cli.made import made

    write_whole(path, audit_page(audits, made()))
