"""``isolitmus audit``: what the logs of tables show."""

from __future__ import annotations

from itertools import groupby
from math import inf
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Annotated

import typer

from isolitmus.checker.auditing.log_audit import FollowedAudit
from isolitmus.checker.auditing.log_audit import audit as audit_table
from isolitmus.checker.render.audit import commit_times, nothing_found, overview_lines
from isolitmus.cli.conversion import TABLES, OutputForms
from isolitmus.cli.options import Json, Master, Memory, Time, needs_spark, read_budget
from isolitmus.cli.output import Pace, check_output_paths, progress, say, warn
from isolitmus.model.audit import KINDS
from isolitmus.model.display import count_of
from isolitmus.model.errors import IsolitmusError, LogError
from isolitmus.pipeline.result_table import Location
from isolitmus.specs.disk.output_files import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable

    from isolitmus.cli.conversion import OutputForm
    from isolitmus.model.audit import Audit, Finding
    from isolitmus.model.budget import Budget
    from isolitmus.model.delta.log import LogCommit

__all__ = ["audit"]

FORMS = OutputForms(*TABLES)
SHOWN = 10
"""So many findings of a kind and certainty are printed."""
LISTED = 8
"""So many versions of a finding."""


@check_output_paths(html=False, out=True, evidence=False)
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
        Location | None,
        typer.Option(
            metavar="TABLE",
            parser=Location,
            help="With --spark: the folder of a Delta table for the findings.",
        ),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", help="Look at new commits as they come, until --time is over, or Ctrl-C."
        ),
    ] = False,
    every: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="With --follow: how often to look; default: 1."),
    ] = None,
    evidence: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Of one table: keep here what was audited so far, and go on from there.",
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
    within = read_budget(time, memory)
    needs_spark(spark, master, out)
    names = list(dict.fromkeys(tables))
    if every is not None and not (follow and 0 < every < inf):
        raise IsolitmusError(
            f"--every is {every:g}; with --follow, a number of seconds above 0 is wanted"
        )
    if evidence is not None and (spark or len(names) > 1):
        raise IsolitmusError("--evidence is of one table, and without --spark")
    if follow:
        if spark or len(names) > 1:
            raise IsolitmusError("--follow looks at one table, and without --spark")
        done = follow_table(
            names[0],
            read_budget(None, memory),
            every or 1.0,
            within.left,
            quiet=form.quiet,
            evidence=evidence,
        )
        return _close([done], [], form, html)
    audits, errors = (
        _on_spark(names, master, out, within) if spark else _here(names, within, evidence)
    )
    if errors and not audits:
        raise errors[0]
    if not form.quiet:
        for k, done in enumerate(audits):
            _print(done, first=not k)
    return _close(audits, errors, form, html)


def _close(audits: list[Audit], errors: list[LogError], form: OutputForm, html: Path | None) -> int:
    """What comes at the end, and the exit status."""
    form.show(audits, lambda: [done.to_json() for done in audits])
    if html is not None:
        _write(html, audits)
    for error in errors:
        warn(str(error))
    if errors or any(done.ended is not None for done in audits):
        return 2 if errors else 3
    return int(any(done.counts for done in audits))


def follow_table(
    name: str,
    budget: Budget,
    every: float,
    seconds: float,
    *,
    quiet: bool,
    evidence: Path | None = None,
) -> Audit:
    """The audit of a table that is followed for so many seconds, or until a Ctrl-C; each commit is told of as it
    comes. What it knows is kept in a file of ``evidence``.
    """
    end = monotonic() + seconds
    one = FollowedAudit(Path(name), budget, evidence)
    try:
        with progress(f"audit {name}") as tell:
            one.there(lambda k: tell(f"version {k:,}"))
        first = one.audit()
        if not quiet:
            _print(first, first=True)
        while first.ended is None:
            for commit, findings in one.came():
                if not quiet:
                    _print_commit(commit, findings)
            left = end - monotonic()
            if left <= 0:
                break
            sleep(min(every, left))
    except KeyboardInterrupt:
        pass
    one.save()
    done = one.audit()
    if not quiet:
        say(f"{done.table}: {_span(done)}; {_summary(done)}")
    return done


def _print_commit(commit: LogCommit, findings: Iterable[Finding]) -> None:
    say(commit.words)
    read = commit.read_version
    if read is not None and read < commit.version - 1:
        say(
            f"  it had read version {read}, and not seen {count_of(commit.version - 1 - read, 'commit')}"
        )
    for finding in findings:
        say(f"  {finding.kind}, {finding.certainty}: {finding.why}")


def _here(
    names: list[str], budget: Budget, evidence: Path | None
) -> tuple[list[Audit], list[LogError]]:
    audits: list[Audit] = []
    errors: list[LogError] = []
    for name in names:
        try:
            with progress(f"audit {name}") as tell:
                done = audit_table(
                    Path(name),
                    budget=budget,
                    progress=lambda k: tell(f"version {k:,}"),
                    evidence=evidence,
                )
        except LogError as problem:
            errors.append(problem)
        else:
            audits.append(done)
    return audits, errors


def _on_spark(
    names: list[str], master: str | None, out: Location | None, budget: Budget
) -> tuple[list[Audit], list[LogError]]:
    from isolitmus.pipeline.audit_job import audit_all, refuse_no_findings
    from isolitmus.pipeline.spark import MASTER, open_spark

    if out is not None:
        refuse_no_findings(out)
    pace = Pace(len(names), "tables")
    with open_spark(master or MASTER) as spark, progress("audit on Spark") as tell:
        return audit_all(
            spark,
            names,
            out=out,
            budget=budget,
            progress=lambda k: tell(pace.words(k)),
        )


def _print(done: Audit, *, first: bool) -> None:
    if not first:
        say()
    told = done.overview
    when = "" if told is None else commit_times(told)
    say(f"{done.table}: {_span(done)}{when}")
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


def _span(done: Audit) -> str:
    if not done.commits:
        return "no commits to audit"
    return f"{count_of(done.commits, 'commit')}, versions {done.first} to {done.last}"


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
    from isolitmus.checker.render.audit import audit_page
    from isolitmus.cli.output import made_by_command

    write_whole(path, audit_page(audits, made_by_command()))
