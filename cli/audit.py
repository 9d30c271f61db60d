"""``isolitmus audit``: anomalies in the logs of Delta tables."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from math import inf
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Annotated

import typer

from isolitmus.checker.auditing.log_audit import FollowedAudit
from isolitmus.checker.render.audit import audit_assumptions, headline, overview_lines
from isolitmus.cli.audit_feed import AuditFeed, LinesPath
from isolitmus.cli.conversion import TABLES, OutputForms
from isolitmus.cli.options import SPARK_JOBS, Json, Master, Memory, Time, needs_spark, read_budget
from isolitmus.cli.output import (
    Pace,
    check_output_paths,
    progress,
    say,
    warn,
    worst_status,
)
from isolitmus.model.audit import KINDS
from isolitmus.model.display import count_of
from isolitmus.model.errors import IsolitmusError, LogError
from isolitmus.specs.disk.output_files import Location, write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from isolitmus.model.audit import Audit, Finding
    from isolitmus.model.budget import Budget
    from isolitmus.model.delta.log import LogCommit

FORMS = OutputForms(*TABLES)
SHOWN = 10
"""Number of findings of a kind and certainty that are printed."""
LISTED = 8
"""Number of versions of a finding that are printed."""


@check_output_paths(html=False, out=True, evidence=False, metrics=False, jsonl=False)
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
    metrics: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write metrics as Prometheus text; with --follow, again after each look.",
        ),
    ] = None,
    jsonl: Annotated[
        LinesPath | None,
        typer.Option(
            metavar="FILE",
            parser=LinesPath,
            help="Also append each finding to this file as a line of JSON; - for standard output.",
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
      isolitmus audit /data/* --follow --metrics audit.prom --jsonl audit.jsonl

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
    if follow and spark:
        raise IsolitmusError("--follow excludes --spark")
    if spark and (metrics is not None or jsonl is not None):
        raise IsolitmusError(
            f"--{'jsonl' if metrics is None else 'metrics'} excludes --spark, which has --out"
        )
    lines = jsonl is not None and jsonl.path is None
    if lines and form.quiet:
        raise IsolitmusError("--jsonl - excludes --json and --as: both use standard output")
    quiet = form.quiet or lines
    with AuditFeed(metrics, jsonl) as feed:
        if follow:
            unlimited = read_budget(None, memory)
            followed = [FollowedTable(name, unlimited, evidence) for name in names]
            audits = follow_tables(followed, feed, every or 1.0, within.left, quiet=quiet)
            errors = [table.error for table in followed if table.error is not None]
        elif spark:
            audits, errors = _on_spark(names, master, out, within)
        else:
            audits, errors = _here(names, within, evidence, feed)
        if errors and not audits and not follow:
            raise errors[0]
        if not quiet and not follow:
            for k, done in enumerate(audits):
                _print(done, first=not k)
        if audits:
            form.show(audits, lambda: [done.to_json() for done in audits])
            if html is not None:
                _write(html, audits)
        for error in () if follow else errors:
            warn(str(error))
        return _status(audits, errors, feed)


def _status(audits: list[Audit], errors: Sequence[LogError], feed: AuditFeed) -> int:
    """Return the exit status: a limit counts before findings."""
    statuses = {2} if errors else set()
    if feed.problem is not None:
        statuses.add(feed.problem.status)
    if any(done.ended is not None for done in audits):
        statuses.add(3)
    return worst_status(statuses) or int(any(done.counts for done in audits))


@dataclass(slots=True)
class FollowedTable:
    """Table that is followed, its newest audit, and the error that ended its audit."""

    name: str
    budget: Budget
    evidence: Path | None
    one: FollowedAudit | None = None
    audit: Audit | None = None
    error: LogError | None = None

    @property
    def is_open(self) -> bool:
        """True if new commits of the table are audited."""
        return self.error is None and (self.one is None or not self.one.is_ended)

    def begin(self, feed: AuditFeed) -> None:
        """Audit the commits that exist; a Ctrl-C leaves the evidence of those audited."""
        with progress(f"audit {self.name}") as tell:
            self.one = FollowedAudit(
                Path(self.name), self.budget, self.evidence, feed.listener(self.name)
            )
            try:
                self.one.there(lambda k: tell(f"version {k:,}"))
            except KeyboardInterrupt:
                self.one.save()
                raise
        self.audit = self.one.audit()

    def advance(self, title: str, *, quiet: bool) -> None:
        """Audit the commits that have arrived; print them after a title."""
        assert self.one is not None
        arrived = False
        try:
            for commit, findings in self.one.came():
                arrived = True
                if not quiet:
                    _print_commit(commit, findings, title)
        except LogError:
            with suppress(LogError):
                self.audit = self.one.audit()
            raise
        if arrived or self.one.is_ended:
            self.audit = self.one.audit()

    def end(self) -> None:
        """Store the evidence and the final audit."""
        assert self.one is not None
        self.one.save()
        self.audit = self.one.audit()


def follow_tables(
    tables: Sequence[FollowedTable], feed: AuditFeed, every: float, seconds: float, *, quiet: bool
) -> list[Audit]:
    """Audit tables and follow them for some seconds or until Ctrl-C; print each new commit.

    Tables whose log can no longer be read get an error, which is printed; the others are followed
    further. The audits of the others are returned. A Ctrl-C before the end of the first look, which
    is the audit of what exists, is raised.
    """
    end, start = monotonic() + seconds, monotonic()
    first = True
    for table in tables:
        _try(table, partial(table.begin, feed), feed)
        if table.error is None and table.audit is not None and not quiet:
            _print(table.audit, first=first)
            first = False
    try:
        _tell(tables, feed, monotonic() - start)
        while any(table.is_open for table in tables):
            left = end - monotonic()
            if left <= 0:
                break
            sleep(min(every, left))
            start = monotonic()
            for table in tables:
                if table.is_open:
                    title = f"{table.name}: " if len(tables) > 1 else ""
                    _try(table, partial(table.advance, title, quiet=quiet), feed)
            _tell(tables, feed, monotonic() - start)
    except KeyboardInterrupt:
        start = monotonic()
    for table in tables:
        if table.error is None:
            _try(table, table.end, feed)
    _tell(tables, feed, monotonic() - start, closing=True)
    audits = [t.audit for t in tables if t.error is None and t.audit is not None]
    if not quiet:
        for done in audits:
            say(headline(done))
            if done.ended is not None:
                say(f"Unknown: {done.ended}; later commits were not audited.")
    return audits


def _try(table: FollowedTable, step: Callable[[], None], feed: AuditFeed) -> None:
    """Take a step of a table; an error of its log is kept, printed and written."""
    try:
        step()
    except LogError as problem:
        table.error = problem
        warn(str(problem))
        feed.tell_error(table.name, problem)


def _tell(
    tables: Iterable[FollowedTable], feed: AuditFeed, seconds: float, *, closing: bool = False
) -> None:
    """Write a round of the tables; a closing one only if it is new."""
    audits = {table.name: table.audit for table in tables if table.audit is not None}
    errors = {table.name: table.error for table in tables if table.error is not None}
    feed.tell_round(audits, errors, seconds, closing=closing)


def _print_commit(commit: LogCommit, findings: Iterable[Finding], title: str) -> None:
    """Print a commit after a title, the number of commits that it did not see, and its findings."""
    say(f"{title}{commit.words}")
    read = commit.read_version
    if read is not None and read < commit.version - 1:
        say(
            f"  read version {read}, so it did not see"
            f" {count_of(commit.version - 1 - read, 'commit')}"
        )
    for finding in findings:
        say(f"  {finding.kind}, {finding.certainty}: {finding.why}")


def _here(
    names: list[str], budget: Budget, evidence: Path | None, feed: AuditFeed
) -> tuple[list[Audit], list[LogError]]:
    """Audit tables in this process; return the audits and the errors of unreadable logs."""
    audits: dict[str, Audit] = {}
    errors: dict[str, LogError] = {}
    start = monotonic()
    for name in names:
        try:
            with progress(f"audit {name}") as tell:
                one = FollowedAudit(Path(name), budget, evidence, feed.listener(name))
                one.there(lambda k: tell(f"version {k:,}"))
                audits[name] = one.audit()
        except LogError as problem:
            errors[name] = problem
            feed.tell_error(name, problem)
    feed.tell_round(audits, errors, monotonic() - start)
    return [*audits.values()], [*errors.values()]


def _on_spark(
    names: list[str], master: str | None, out: Location | None, budget: Budget
) -> tuple[list[Audit], list[LogError]]:
    """Audit tables on Spark; return the audits and the errors of unreadable logs."""
    pace = Pace(len(names), "tables")
    with (
        SPARK_JOBS.named("audit")(master, out) as audit_on_spark,
        progress("audit on Spark") as tell,
    ):
        audits, errors = audit_on_spark(
            names, budget=budget, progress=lambda k: tell(pace.words(k))
        )
    return audits, errors


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
