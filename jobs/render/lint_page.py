"""Findings of the linter as an HTML page: by file, each with its smallest schedule and its mend."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isolitmus.checker.render.page_parts import render_template
from isolitmus.jobs.lint.linter import FindingExamples
from isolitmus.jobs.render.job_examples import job_example
from isolitmus.jobs.render.lint import (
    SEVERITIES,
    baseline_entry_words,
    finding_details,
    finding_title,
    lint_summary,
    site_words,
)
from isolitmus.model.budget import Budget
from isolitmus.model.display import capitalized
from isolitmus.model.errors import Limit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from isolitmus.checker.render.page_parts import PageOrigin
    from isolitmus.jobs.lint.finding import LintFinding, LintResult
    from isolitmus.jobs.render.job_examples import JobExample
    from isolitmus.model.assumption import Place
    from isolitmus.model.litmus import Litmus

MOST_EXAMPLES = 25
"""Maximum number of findings whose examples are computed for a page."""
STYLES = {"error": "always", "warning": "sometimes", "note": "unknown"}
"""Class of the colour of each severity."""


@dataclass(frozen=True, slots=True)
class ShownFinding:
    """Finding with what a page shows of it."""

    finding: LintFinding
    number: int
    """Number on the page, from 1."""
    sites: tuple[tuple[str, str, str], ...]
    """Place, name and SQL of each statement concerned; its SQL is empty if it is not known."""
    examples: tuple[tuple[str, JobExample], ...]
    """Smallest schedules, each with its title."""
    is_left_out: bool = False
    """True if its examples were not computed, because of their number or of a limit."""

    @property
    def style(self) -> str:
        """Class of the colour of its severity."""
        return STYLES[self.finding.rule.severity]


def lint_page(
    result: LintResult,
    made: PageOrigin,
    show: Callable[[Place], str],
    *,
    path: Callable[[Place], str],
    budget: Budget | None = None,
) -> str:
    """Return the HTML page, without scripts or external resources, and with every text escaped.

    Parameters
    ----------
    result : LintResult
        The findings.
    made : PageOrigin
        Origin of the page.
    show : callable
        Returns a place as the user names it.
    path : callable
        Returns the path of a place's file as the user names it.
    budget : Budget, optional
        Limits of the search for examples; findings that remain are shown without.

    Examples
    --------
    >>> from pathlib import Path
    >>> from isolitmus.jobs.lint.finding import LintResult
    >>> from isolitmus.checker.render.page_parts import PageOrigin
    >>> from isolitmus.jobs.readers.workload_sources import workload
    >>> result = LintResult(workload("shop"), "delta-serializable", Path(), frozenset())
    >>> made = PageOrigin("isolitmus 0.1.0", "2026-01-01", "isolitmus lint shop")
    >>> page = lint_page(result, made, str, path=lambda place: place.file)
    >>> "No findings; 5 statements in 0 files." in page
    True
    """
    shown = tuple(_shown_findings(result, show, budget or Budget()))
    by_file: dict[str, list[ShownFinding]] = {}
    for one in shown:
        by_file.setdefault(path(one.finding.place), []).append(one)
    return render_template(
        "lint.html.j2",
        "isolitmus.jobs.render",
        result=result,
        workload=result.workload,
        made=made,
        summary=lint_summary(result),
        files=by_file,
        counts={name: _counts(some) for name, some in by_file.items()},
        severities=SEVERITIES,
        styles=STYLES,
        title=finding_title,
        details=finding_details,
        capitalized=capitalized,
        gone=[baseline_entry_words(entry) for entry in result.gone],
        known={
            "in the baseline": [(show(one.place), one) for one in result.of_state("baseline")],
            "ignored": [(show(one.place), one) for one in result.of_state("ignored")],
        },
        left_out=sum(one.is_left_out for one in shown),
    )


def _counts(some: Sequence[ShownFinding]) -> Counter[str]:
    return Counter(one.finding.rule.severity for one in some)


def _shown_findings(
    result: LintResult, show: Callable[[Place], str], budget: Budget
) -> Iterator[ShownFinding]:
    """Yield the new findings, the first ones that can have examples with them."""
    work = result.workload
    texts = {one.name: one.sql for one in work.statements}
    texts |= {one.name: one.sql for one in work.unread}
    examples_of = FindingExamples(result).of
    examined, ended = 0, False
    for number, one in enumerate(result.new, 1):
        sites = tuple(
            (show(site.place), site_words(site), texts.get(site.name, "")) for site in one.sites
        )
        examples: list[tuple[str, JobExample]] = []
        wanted = bool(one.meetings or one.violation or one.broken)
        if wanted and not ended and examined < MOST_EXAMPLES:
            examined += 1
            try:
                with budget.interrupting():
                    for test in examples_of(one):
                        shown = job_example(test, result.protocol, work)
                        examples.append((_example_title(test, result.protocol), shown))
            except Limit:
                ended = True
        left_out = wanted and not examples
        yield ShownFinding(one, number, sites, tuple(examples), left_out)


def _example_title(test: Litmus, protocol: str) -> str:
    """Return the title of an example, with the exceptions that it expects."""
    expected = test.expect.get(protocol)
    outcomes = (
        [] if expected is None else [one for some in expected.outcome.values() for one in some]
    )
    aborts = [one for one in outcomes if one not in ("committed", "no-op")]
    return f"{test.title}: {', '.join(aborts)}" if aborts else test.title
