"""Findings of the linter: a rule, the statements concerned, and the facts behind it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from isolitmus.jobs.lint_rule import RULES
from isolitmus.model.display import ReadableRepr, text_digest
from isolitmus.specs.disk.input_files import real_path, real_place

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from isolitmus.jobs.lint_rule import LintRule
    from isolitmus.jobs.questions.pair_prediction import PairPrediction
    from isolitmus.jobs.readers.baseline_file import BaselineEntry
    from isolitmus.jobs.workload import Workload
    from isolitmus.model.assumption import Place

FindingState = Literal["new", "baseline", "ignored"]


@dataclass(frozen=True, slots=True)
class FindingSite:
    """Statement or comment that a finding is about."""

    name: str
    """Name of the statement; empty for a comment."""
    place: Place
    text: str = ""
    """Normalized SQL, for the fingerprint."""
    statement: Place | None = None
    """Place of the statement, if the finding is about a word of it."""


@dataclass(frozen=True, slots=True)
class RunViolation:
    """Executed runs of some statements that violate a promise."""

    promise: str
    protocol: str
    members: tuple[str, ...]
    """Statements of the smallest run in the order of their commits; the last one starts first."""


@dataclass(frozen=True, slots=True)
class BrokenInvariant:
    """Executed runs of some jobs that violate an invariant."""

    name: str
    """Name of the invariant."""
    text: str
    """Invariant as written."""
    jobs: tuple[str, ...]
    """Jobs of the smallest run; the second one runs during the first one."""
    half_done: bool = False
    """True if only versions between two statements of a job violate it."""
    alone: bool = False
    """True if one run of one job suffices."""


@dataclass(frozen=True)
class LintFinding(ReadableRepr):
    """Finding of a rule."""

    code: str
    """Code of the rule."""
    sites: tuple[FindingSite, ...]
    """Statements concerned; the first one is the primary place, the others are related."""
    meetings: tuple[PairPrediction, ...] = ()
    """Both directions of a pair of statements, or the only one of a statement with itself."""
    violation: RunViolation | None = None
    """Run that violates a promise."""
    broken: BrokenInvariant | None = None
    """Run that violates an invariant."""
    problem: str = ""
    """Mistake or open question, if that is the finding."""
    why: tuple[str, ...] = ()
    """Reasons why the question is open."""
    state: FindingState = "new"
    """Whether it is new, in the baseline, or ignored by a comment."""
    comment: Place | None = None
    """Comment that ignores it; None if a setting does."""

    @property
    def rule(self) -> LintRule:
        """Rule of the finding."""
        return RULES[self.code]

    @property
    def place(self) -> Place:
        """Primary place."""
        return self.sites[0].place

    @property
    def outcome(self) -> tuple[str, ...]:
        """Answer, without words that may change with a release."""
        told = [
            f"{one.word}:{','.join(sorted(one.exceptions))}"
            for one in sorted(self.meetings, key=lambda one: self._rank(one.loser))
        ]
        if self.violation is not None:
            told.append(self.violation.promise)
        if self.broken is not None:
            told.append(self.broken.text)
        return tuple(told) or ((self.problem,) if self.problem and not self.rule.unknown else ())

    def _rank(self, loser: str) -> tuple[str, str]:
        """Return the text of a statement, for an order that does not depend on lines."""
        return next((site.text, "") for site in self.sites if site.name == loser)

    def fingerprint(self, files: Sequence[str]) -> str:
        """Return a digest that stays the same if lines move, or blanks and comments change.

        Parameters
        ----------
        files : sequence of str
            Names of the files of its sites, relative to a folder that does not move.
        """
        sites = sorted(zip(files, (site.text for site in self.sites), strict=True))
        return text_digest(repr((self.code, sites, self.outcome)))

    def __repr__(self) -> str:
        return f"{self.place}: {self.code}"


@dataclass(frozen=True)
class LintResult(ReadableRepr):
    """Findings in a workload, and what was asked."""

    workload: Workload
    protocol: str
    """Name of the commit protocol."""
    root: Path
    """Folder to which fingerprints' files are relative."""
    codes: frozenset[str]
    """Rules that were on."""
    findings: tuple[LintFinding, ...] = ()
    """All findings in the order of their places."""
    gone: tuple[BaselineEntry, ...] = ()
    """Findings of the baseline that no longer occur, with how many are missing."""
    files: int = 0
    """Number of files with statements."""
    asked: int = 0
    """Number of questions that were answered anew."""
    cached: int = 0
    """Number of questions whose answer was in the cache."""
    ended: str | None = None
    """Limit that ended the work, if any."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Seconds of one processor, by phase."""

    def of_state(self, state: FindingState) -> tuple[LintFinding, ...]:
        """Return the findings that are new, in the baseline, or ignored."""
        return tuple(one for one in self.findings if one.state == state)

    @property
    def new(self) -> tuple[LintFinding, ...]:
        """Findings that are neither ignored nor in the baseline."""
        return self.of_state("new")

    def fingerprint(self, one: LintFinding) -> str:
        """Return the fingerprint of a finding."""
        return one.fingerprint(self.file_names(one))

    def file_names(self, one: LintFinding) -> tuple[str, ...]:
        """Return the files of a finding's sites, relative to the root."""
        return tuple(relative_name(site.place, self.root) for site in one.sites)

    def __repr__(self) -> str:
        return f"{self.workload.name}: {len(self.new)} new findings"


def relative_name(place: Place, root: Path) -> str:
    """Return the name of a file relative to a folder, or as it is if it is elsewhere."""
    return place.file if place.path is None else _relative(place.path, root) or place.file


@lru_cache(maxsize=10_000)
def _relative(path: Path, root: Path) -> str:
    """Return a path relative to a folder; empty if it is elsewhere."""
    real, above = real_place(path), real_path(root)
    return real.relative_to(above).as_posix() if real.is_relative_to(above) else ""
