"""``isolitmus audit``: anomalies in the logs of Delta tables."""

from __future__ import annotations

from itertools import groupby
from math import inf
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Annotated

import typer

from isolitmus.checker.auditing.log_audit import FollowedAudit
from isolitmus.checker.auditing.log_audit import audit as audit_table
from isolitmus.checker.render.audit import audit_assumptions, headline, overview_lines
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
"""Number of findings of a kind and certainty that are printed."""
LISTED = 8
"""Number of versions of a finding that are printed."""


@check_output_paths(html=False, out=True, evidence=False)
def audit(
    tables: Annotated[list[str], typer.Argument(metavar="TABLE", help="Folders of Delta tables.")],
    *,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the findings as an HTML page.")
    ] = None,
    spark: Annotated[
        bool, typer.Option("--spark", help="Audit on Spark, one task per table.")
    ] = False,
    master: Master = None,
    out: Annotated[
        Location | None,
        typer.Option(
            metavar="TABLE",
            parser=Location,
            help="With --spark: folder of a Delta table to which the findings are appended.",
        ),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            help="Audit new commits as they arrive, until --time is over or Ctrl-C is pressed.",
        ),
    ] = False,
    every: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="With --follow: seconds between two looks at the log; default: 1.",
        ),
    ] = None,
    evidence: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="For one table: file that stores the progress; the next audit continues from it.",
        ),
    ] = None,
    time: Time = None,
    memory: Memory = None,
    as_: Annotated[str | None, FORMS.option] = None,
    as_json: Json = False,
) -> int:
    """Only the folder _delta_log of each table is read.

    Exit status:
      0  no finding
      1  at least one finding
      2  a log could not be read (the other tables were audited)
      3  a limit ended an audit

    Examples:
      isolitmus audit /data/events
      isolitmus audit /data/* --html audit.html
      isolitmus audit /data/events --follow --every 5

    """
    form = FORMS.chosen(as_, as_json=as_json)
    within = read_budget(time, memory)
    needs_spark(spark, master, out)
    names = list(dict.fromkeys(tables))
    if every is not None and not (follow and 0 < every < inf):
        raise IsolitmusError(
            f"--every is {every:g}; it needs --follow and a number of seconds above 0"
        )
    if evidence is not None and (spark or len(names) > 1):
        raise IsolitmusError("--evidence needs a single table, and excludes --spark")
    if follow:
        if spark or len(names) > 1:
            raise IsolitmusError("--follow needs a single table, and excludes --spark")
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
    """Write the page and the errors; return the exit status."""
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
    """Audit a table and follow it for some seconds or until Ctrl-C; print each new commit.

    The progress is stored in the file ``evidence``.
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
        say(headline(done))
    return done


def _print_commit(commit: LogCommit, findings: Iterable[Finding]) -> None:
    """Print a commit, the number of commits that it did not see, and its findings."""
    say(commit.words)
    read = commit.read_version
    if read is not None and read < commit.version - 1:
        say(
            f"  read version {read}, so it did not see"
            f" {count_of(commit.version - 1 - read, 'commit')}"
        )
    for finding in findings:
        say(f"  {finding.kind}, {finding.certainty}: {finding.why}")


def _here(
    names: list[str], budget: Budget, evidence: Path | None
) -> tuple[list[Audit], list[LogError]]:
    """Audit tables in this process; return the audits and the errors of unreadable logs."""
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
    """Audit tables on Spark; return the audits and the errors of unreadable logs."""
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
    """Print an audit: at most ``SHOWN`` findings of a kind, overview, notes and assumptions."""
    if not first:
        say()
    say(headline(done), bold=True)
    for (kind, certainty), group in groupby(done.findings, lambda f: (f.kind, f.certainty)):
        number = done.counts[kind, certainty]
        say(f"  {kind}, {certainty} ({number:,}): {KINDS[kind]}")
        found = list(group)
        for finding in found[:SHOWN]:
            say(f"    {_versions(finding.versions)}: {finding.why}")
        if number > SHOWN:
            say(f"    … and {number - SHOWN:,} more; --json lists them")
    if done.overview is not None:
        say("Overview:")
        for line in overview_lines(done.overview):
            say(f"  {line}")
    for title, lines in (("Notes:", done.notes), ("Assumptions:", tuple(audit_assumptions(done)))):
        if lines:
            say(title)
            for line in lines:
                say(f"- {line}")


def _versions(versions: Iterable[int]) -> str:
    shown = list(versions)
    more = ", …" if len(shown) > LISTED else ""
    return f"version{'s' if len(shown) > 1 else ''} {', '.join(map(str, shown[:LISTED]))}{more}"


def _write(path: Path, audits: list[Audit]) -> None:
    """Write the HTML page of the audits."""
    from isolitmus.checker.render.audit import audit_page
    from isolitmus.cli.output import made_by_command

    write_whole(path, audit_page(audits, made_by_command()))
