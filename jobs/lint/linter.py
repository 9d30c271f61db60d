"""Linter: findings of all rules in a workload, without those that comments or settings ignore.

A finding about a pair of statements is made once, not once for each order of the two. To add a
rule that needs other answers, add its code to ``jobs.lint_rule`` and its findings to
`find_everything`; comments, settings, baseline and output then know it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from os import fspath
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING

from isolitmus.jobs.invariants.invariants import decide_invariants
from isolitmus.jobs.lint.answer_cache import AnswerCache
from isolitmus.jobs.lint.finding import FindingSite, LintFinding, LintResult
from isolitmus.jobs.lint.job_answers import JobAnswers, writes_of
from isolitmus.jobs.lint_rule import codes_of
from isolitmus.jobs.predict.prediction import predict_pair
from isolitmus.jobs.questions.instances import Instances
from isolitmus.jobs.questions.table_alterations import leave_out_failing
from isolitmus.jobs.readers.ignore_comments import concerned_statement
from isolitmus.jobs.readers.lint_settings import (
    LintSettings,
    default_root,
    find_settings,
    read_settings,
)
from isolitmus.jobs.readers.lint_sources import read_lint_sources
from isolitmus.jobs.readers.workload_sources import choose_protocol
from isolitmus.jobs.robust.robustness import decide_all
from isolitmus.model.assumption import Place
from isolitmus.model.budget import Budget
from isolitmus.model.errors import IsolitmusError, Limit
from isolitmus.specs.files.spec_catalogue import protocol as named_protocol
from isolitmus.specs.sql.parameters import one_line, strip_end

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from isolitmus.jobs.invariants.invariant_runs import InvariantViolation
    from isolitmus.jobs.questions.pair_prediction import PairPrediction
    from isolitmus.jobs.readers.baseline_file import BaselineEntry
    from isolitmus.jobs.readers.ignore_comments import IgnoreComment
    from isolitmus.jobs.workload import JobStatement, UnreadStatement, Workload
    from isolitmus.model.litmus import Litmus
    from isolitmus.specs.files.spec_catalogue import SpecLike

CAN_ABORT = ("always", "when")
OF_NULL = re.compile(
    r"\bnull\b|<=>|\b(?:coalesce|nvl2?|ifnull|nullif|isnull|isnotnull|nanvl)\s*\("
    r"|\bdistinct\s+from\b",
    re.IGNORECASE,
)
"""Words of SQL that treat NULL as a value of its own."""
PROMISED = {"ISO301": "write-serializable", "ISO302": "log-serializable"}
"""Promise that each rule asks for."""


def lint_workload(
    workload: Workload,
    protocol: SpecLike,
    settings: LintSettings,
    comments: Sequence[IgnoreComment] = (),
    *,
    cache: AnswerCache | None = None,
    tell: Callable[[str], None] | None = None,
    budget: Budget | None = None,
) -> LintResult:
    """Return the findings in a workload.

    Parameters
    ----------
    workload : Workload
        The jobs; statements that are not understood are findings.
    protocol : Spec, str or path
        The commit protocol.
    settings : LintSettings
        Rules that are on, and rules that are off in some files.
    comments : sequence of IgnoreComment
        Comments in the files of the workload.
    cache : AnswerCache, optional
        Answers of earlier runs.
    tell : callable, optional
        Receives progress messages.
    budget : Budget, optional
        Limits; questions that remain when it is spent are not asked.

    Examples
    --------
    >>> from pathlib import Path
    >>> from isolitmus.jobs.readers.lint_settings import LintSettings
    >>> from isolitmus.jobs.readers.workload_sources import workload
    >>> found = lint_workload(workload("shop"), "delta-serializable", LintSettings(Path()))
    >>> [(one.code, *(site.name for site in one.sites)) for one in found.findings][:2]
    [('ISO201', 'upsert', 'ingest'), ('ISO201', 'upsert', 'erase')]
    """
    begun = process_time()
    workload, spec = leave_out_failing(workload), named_protocol(protocol)
    budget = budget or Budget(memory=inf)
    answers = JobAnswers(workload, spec, cache or AnswerCache(None))
    linter = _Linter(workload, answers, settings.codes, tell, budget)
    linter.seconds["prepare"] = process_time() - begun
    found = [*linter.find_everything()]
    kept = _without_ignored(found, comments, workload, settings, ended=linter.ended is not None)
    return LintResult(
        workload,
        spec.name,
        settings.root,
        settings.codes,
        tuple(sorted(kept, key=_order)),
        files=len({one.location.file for one in _every(workload) if one.location is not None}),
        asked=answers.asked,
        cached=answers.cached,
        ended=linter.ended,
        seconds=linter.seconds,
    )


def lint_paths(
    paths: Sequence[Path | str] = (),
    settings: LintSettings | None = None,
    *,
    tell: Callable[[str], None] | None = None,
    budget: Budget | None = None,
) -> LintResult:
    """Return the findings in folders and files of jobs, without baseline and cache.

    Parameters
    ----------
    paths : sequence of path or str
        Folders and SQL files; or one workload file, or the name of a shipped workload. Default:
        those of the settings.
    settings : LintSettings, optional
        Settings; default: those of the nearest file with settings.
    tell : callable, optional
        Receives progress messages.
    budget : Budget, optional
        Limits; questions that remain when it is spent are not asked.

    Returns
    -------
    LintResult
        Findings, sorted by place.

    Raises
    ------
    IsolitmusError
        If there are no paths, a path does not exist, or no table is declared.

    Examples
    --------
    >>> found = lint_paths(["shop"])
    >>> found.findings[0].code
    'ISO201'
    """
    names = [fspath(path) for path in paths]
    if settings is None:
        start = Path(names[0]) if names else Path()
        path = find_settings(start)
        settings = LintSettings(default_root(start)) if path is None else read_settings(path)
    names = names or [str(path) for path in settings.paths]
    if not names:
        raise IsolitmusError("no path to lint; name a folder, or write 'paths' into the settings")
    jobs, comments = read_lint_sources(names, settings, whole=not paths)
    place = settings.place_of("level")
    under = choose_protocol(jobs, settings.level, f"{place}: unknown level".removeprefix(": "))
    return lint_workload(jobs, under, settings, comments, tell=tell, budget=budget)


def _every(workload: Workload) -> tuple[JobStatement | UnreadStatement, ...]:
    return (*workload.statements, *workload.unread)


def _order(one: LintFinding) -> tuple[object, ...]:
    """Return the key by which findings are sorted: place, rule, related places."""
    return (*one.place[:3], one.code, [site.place[:3] for site in one.sites])


@dataclass
class _Linter:
    """Findings of each rule."""

    workload: Workload
    answers: JobAnswers
    codes: frozenset[str]
    tell: Callable[[str], None] | None
    budget: Budget

    def __post_init__(self) -> None:
        self.ended: str | None = None
        self.seconds: dict[str, float] = {}
        self.by_name = {one.name: one for one in _every(self.workload)}
        self.sites = {name: _site(one) for name, one in self.by_name.items()}

    def find_everything(self) -> Iterator[LintFinding]:
        """Yield the findings of the rules that are on."""
        for code, find in (
            ("statements", self._statements),
            ("pairs", self._pairs),
            ("promises", self._promises),
            ("invariants", self._invariants),
        ):
            begun = process_time()
            for one in find():
                if one.code in self.codes:
                    yield one
            self.seconds[code] = process_time() - begun

    def _site(self, *names: str) -> tuple[FindingSite, ...]:
        return tuple(self.sites[name] for name in dict.fromkeys(names))

    def _statements(self) -> Iterator[LintFinding]:
        """Yield the statements that are not understood, and the jobs that never run."""
        for one in self.workload.unread:
            site = self.sites[one.name]
            if one.mistake is not None:
                site = replace(site, place=one.mistake, statement=site.place)
            code = "ISO001" if one.mistake is None else "ISO005"
            yield LintFinding(code, (site,), problem=one.problem)
        for job, reason in self.answers.idle.items():
            first = self.workload.jobs[job].statements[0]
            yield LintFinding("ISO004", self._site(first.name), problem=reason)

    def _pairs(self) -> Iterator[LintFinding]:
        """Yield the pairs of statements that conflict, or of which that is unknown."""
        if not self.codes & {"ISO201", "ISO202", "ISO303", "ISO304"}:
            return
        found: list[LintFinding] = []  # an interruption must not meet the caller
        try:
            with self.budget.interrupting():
                for one, other in self.answers.pairs():
                    if self.tell is not None:
                        self.tell(f"{one.name} and {other.name}")
                    meetings = self.answers.meetings(one, other)
                    code = _pair_code(meetings, null=speaks_of_null(one.sql, other.sql))
                    if code is not None:
                        names = _by_loser(meetings, (one.name, other.name))
                        ordered = sorted(meetings, key=lambda one: names.index(one.loser))
                        found.append(LintFinding(code, self._site(*names), tuple(ordered)))
        except Limit as limit:
            self.ended = str(limit)
        yield from found

    def _promises(self) -> Iterator[LintFinding]:
        """Yield the promises that runs of some statements violate."""
        wanted = {PROMISED[code]: code for code in PROMISED if code in self.codes}
        for some in self.answers.classes:
            if not wanted or self.ended is not None:
                return
            if not any(writes_of(one) for one in some):
                continue
            if self.tell is not None:
                self.tell(f"runs of {some[0].name} and {len(some) - 1} others")
            found = self.answers.promises(some, list(wanted), self.budget)
            if (limit := self.budget.spent()) is not None:
                self.ended = str(limit)
            for promise, answer in found.items():
                for run in answer.violations:
                    names = sorted({*run.members}, key=list(self.sites).index)
                    null = not answer.not_null or speaks_of_null(
                        *(self.by_name[name].sql for name in names)
                    )
                    code = wanted[promise] if null else "ISO304"
                    yield LintFinding(code, self._site(*names), violation=run)
                if answer.why and self.ended is None:
                    yield LintFinding(
                        "ISO303",
                        self._site(*(one.name for one in some)),
                        problem=f"{promise} under {self.answers.protocol.name}",
                        why=answer.why,
                    )

    def _invariants(self) -> Iterator[LintFinding]:
        """Yield the invariants that runs of some jobs violate."""
        if not self.codes & {"ISO101", "ISO102", "ISO303", "ISO304"}:
            return
        for some in self.answers.classes:
            if self.ended is not None:
                return
            for answer in self.answers.invariants(some, self.budget):
                own = [one for one in some if writes_of(one) in answer.invariant.tables]
                for run in answer.broken:
                    names = [one.name for one in own if one.job in run.jobs]
                    code = "ISO101" if answer.invariant.is_key else "ISO102"
                    texts = (answer.invariant.text, *(one.sql for one in own))
                    if answer.not_null and not speaks_of_null(*texts):
                        code = "ISO304"
                    yield LintFinding(code, self._site(*names), broken=run)
                if answer.why and not answer.broken:
                    yield LintFinding(
                        "ISO303",
                        self._site(*(one.name for one in own)),
                        problem=f"{answer.invariant.name} is kept",
                        why=answer.why,
                    )
            if (limit := self.budget.spent()) is not None:
                self.ended = str(limit)


def _site(one: JobStatement | UnreadStatement) -> FindingSite:
    """Return a statement as a place of findings."""
    place = one.location or Place("", 1, 1, 1)
    text = one_line(one_line(one.sql))  # once more, for the blanks around a comment
    return FindingSite(one.name, place, strip_end(text) if one.sql else one.name)


def speaks_of_null(*texts: str) -> bool:
    """Return whether some text treats NULL as a value of its own.

    Examples
    --------
    >>> speaks_of_null("DELETE FROM t WHERE day <=> :day"), speaks_of_null("DELETE FROM nulls")
    (True, False)
    """
    return any(OF_NULL.search(one_line(text)) for text in texts)


def _pair_code(meetings: Sequence[PairPrediction], *, null: bool) -> str | None:
    """Return the rule that a pair violates, or None.

    What only NULL as a parameter violates is a note, unless the statements speak of ``null``.
    """
    plain = [one.plain.word for one in meetings]
    if all(word == "always" for word in plain):
        return "ISO202"
    if any(word in CAN_ABORT for word in plain):
        return "ISO201"
    if "unknown" in plain:
        return "ISO303"
    if all(one.not_null is None for one in meetings):
        return None
    if null and any(one.word in CAN_ABORT for one in meetings):
        return "ISO201"
    return "ISO304"


def _by_loser(meetings: Sequence[PairPrediction], names: tuple[str, str]) -> tuple[str, ...]:
    """Return two statements, one that may abort first; if both may, in their own order."""
    losers = [one.loser for one in meetings if one.word in CAN_ABORT]
    return tuple(sorted(names, key=lambda name: bool(losers) and name not in losers))


# Comments and settings


def _without_ignored(
    found: Sequence[LintFinding],
    comments: Sequence[IgnoreComment],
    workload: Workload,
    settings: LintSettings,
    *,
    ended: bool,
) -> Iterator[LintFinding]:
    """Yield the findings, with those marked that are ignored, and those about comments."""
    statements: dict[str, list[Place]] = defaultdict(list)
    for place in sorted({one.location for one in _every(workload) if one.location is not None}):
        statements[place.file].append(place)
    by_place: dict[Place, list[IgnoreComment]] = defaultdict(list)
    for comment in comments:
        for place in concerned_statement(comment, statements[comment.place.file]):
            by_place[place].append(comment)
    used: set[tuple[Place, str]] = set()
    for one in found:
        ignoring = [
            (comment, selector)
            for site in one.sites
            for comment in by_place[site.statement or site.place]
            for selector in comment.selectors
            if one.code in codes_of(selector)
        ]
        used |= {(comment.place, selector) for comment, selector in ignoring}
        beside = ignoring[0][0].place if ignoring else None
        off = ignoring or any(one.code in _off(site, settings) for site in one.sites)
        yield replace(one, state="ignored", comment=beside) if off else one
    for one in _of_comments(comments, used, settings.codes, ended=ended):
        off = any(one.code in _off(site, settings) for site in one.sites)
        yield replace(one, state="ignored") if off else one


def _off(site: FindingSite, settings: LintSettings) -> frozenset[str]:
    """Return the rules that are off in the file of a statement."""
    path = site.place.path
    return frozenset() if path is None else settings.ignored_in(path)


def _of_comments(
    comments: Sequence[IgnoreComment],
    used: set[tuple[Place, str]],
    codes: frozenset[str],
    *,
    ended: bool,
) -> Iterator[LintFinding]:
    """Yield findings about comments: invalid ones, and those that suppress nothing."""
    for comment in comments:
        site = FindingSite("", comment.place, ",".join(comment.selectors))
        if "ISO003" in codes:
            for problem in comment.problems:
                yield LintFinding("ISO003", (site,), problem=problem)
        for selector in comment.selectors:
            asked = codes_of(selector) & codes
            if "ISO002" in codes and asked and not ended and (comment.place, selector) not in used:
                yield LintFinding("ISO002", (site,), problem=f"no finding of {selector} is ignored")


# Baseline


def apply_baseline(found: LintResult, entries: Mapping[str, BaselineEntry]) -> LintResult:
    """Return the findings with those marked that are in a baseline, and the entries that are gone.

    Parameters
    ----------
    found : LintResult
        Findings.
    entries : mapping of str to BaselineEntry
        Entries by fingerprint.
    """
    left = Counter({fingerprint: one.times for fingerprint, one in entries.items()})
    marked = []
    for one in found.findings:
        fingerprint = found.fingerprint(one)
        known = one.state == "new" and left[fingerprint] > 0
        left[fingerprint] -= known
        marked.append(replace(one, state="baseline") if known else one)
    gone = (
        ()
        if found.ended
        else tuple(
            one._replace(times=left[fingerprint])
            for fingerprint, one in entries.items()
            if left[fingerprint] > 0 and one.code in found.codes
        )
    )
    return replace(found, findings=tuple(marked), gone=gone)


class FindingExamples:
    """Examples of the findings of one result; the invariants are decided once for all of them.

    Examples
    --------
    >>> from pathlib import Path
    >>> from isolitmus.jobs.lint.linter import lint_workload
    >>> from isolitmus.jobs.readers.lint_settings import LintSettings
    >>> from isolitmus.jobs.readers.workload_sources import workload
    >>> result = lint_workload(workload("shop"), "delta-serializable", LintSettings(Path()))
    >>> first = next(FindingExamples(result).of(result.findings[0]))
    >>> first.name, str(first.schedule)
    ('upsert-by-ingest', 'upsert.start ingest upsert.commit')
    """

    def __init__(self, result: LintResult) -> None:
        self.result = result
        self.spec = named_protocol(result.protocol)
        self.by_name = {each.name: each for each in result.workload.statements}

    def of(self, one: LintFinding) -> Iterator[Litmus]:
        """Yield the smallest examples of a finding; none if it has no executed example."""
        if one.broken is not None:
            broken = self._violations.get(one.broken.name, ())
            yield from (run.test for run in broken if run.jobs == one.broken.jobs)
        elif one.violation is not None:
            names = {site.name for site in one.sites}
            for answer in decide_all(self._part(one), (self.spec,), (one.violation.promise,)):
                for run in answer.counterexamples:
                    if {member.name for member in run.danger.members} == names:
                        yield run.test
                        return
        else:
            for meeting in one.meetings:
                loser, winner = self.by_name[meeting.loser], self.by_name[meeting.winner]
                found = predict_pair(Instances(self._part(one)), loser, winner, self.spec)
                yield from found.examples.values()

    def _part(self, one: LintFinding) -> Workload:
        """Return the workload of the jobs of a finding."""
        work = self.result.workload
        jobs = {self.by_name[site.name].job for site in one.sites}
        left = {name: job for name, job in work.jobs.items() if name in jobs}
        return replace(work, jobs=left, unread=())

    @cached_property
    def _violations(self) -> Mapping[str, tuple[InvariantViolation, ...]]:
        """Violations of each invariant."""
        work = self.result.workload
        answers = decide_invariants(work, (self.spec,), work.invariants)
        return {answer.invariant.name: answer.violations for answer in answers}
