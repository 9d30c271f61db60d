"""Rules of ``isolitmus lint``: stable codes, names, severities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from isolitmus.model.errors import near

if TYPE_CHECKING:
    from collections.abc import Iterable

Severity = Literal["error", "warning", "note"]


class LintRule(NamedTuple):
    """Rule of ``isolitmus lint``.

    Examples
    --------
    >>> RULES["ISO201"].anchor
    'iso201-jobs-may-conflict'
    """

    code: str
    """Stable code."""
    name: str
    """Name in words, joined by hyphens."""
    summary: str
    """Meaning in one sentence."""
    severity: Severity
    default: bool = True
    """Whether the rule is on if nothing is selected."""
    unknown: bool = False
    """Whether a finding says that an answer is unknown; with ``--strict`` it fails."""
    mend: str = ""
    """Change after which the finding is gone, as in docs/lint.md."""

    @property
    def anchor(self) -> str:
        """Anchor of the section about the rule in docs/lint.md."""
        return f"{self.code.lower()}-{self.name}"


_EVERY = (
    LintRule(
        "ISO001",
        "statement-not-understood",
        "The statement is outside the SQL that isolitmus models, so its conflicts are unknown.",
        "note",
        unknown=True,
        mend=(
            "correct the name, declare the table, or move a statement that changes the table"
            " out of the jobs."
        ),
    ),
    LintRule(
        "ISO002",
        "unused-ignore",
        "The ignore comment suppresses no finding.",
        "warning",
        mend="remove the comment.",
    ),
    LintRule(
        "ISO003",
        "invalid-ignore",
        "The ignore comment has no code, or a code that no rule has.",
        "warning",
        mend="write the code of a rule.",
    ),
    LintRule(
        "ISO004",
        "job-never-runs",
        "No parameter values satisfy the condition of the job.",
        "warning",
        mend="correct the condition.",
    ),
    LintRule(
        "ISO005",
        "statement-invalid",
        "The statement does not parse, or names a column or table that does not exist.",
        "warning",
        mend="correct the word.",
    ),
    LintRule(
        "ISO101",
        "upsert-may-insert-a-key-twice",
        "Runs of the jobs may leave two rows with a key that is to be unique.",
        "error",
        mend=(
            'let the source have one row for each key. isolitmus robust --keeps "unique(id)"'
            " --repairs looks for changes with which the key is proved."
        ),
    ),
    LintRule(
        "ISO102",
        "invariant-may-break",
        "Runs of the jobs may leave a table that violates an invariant.",
        "error",
        mend=("leave out the rows that violate it (WHERE day IS NOT NULL), or correct the source."),
    ),
    LintRule(
        "ISO201",
        "jobs-may-conflict",
        "Some concurrent runs of the two statements end with an abort of one of them.",
        "warning",
        mend=(
            "let the scheduler keep the two apart and write that into schedule, partition the"
            " table so that they touch different partitions, or retry. isolitmus predict"
            " --remedies tries such changes and says what they end."
        ),
    ),
    LintRule(
        "ISO202",
        "jobs-always-conflict",
        "Whenever both statements write something concurrently, the one that commits last aborts.",
        "error",
        mend=(
            "name the partition with a literal in the condition of a MERGE, or let one job do"
            " the work of both."
        ),
    ),
    LintRule(
        "ISO301",
        "not-write-serializable",
        "Overlapping runs may leave a table that no serial order of the jobs produces.",
        "error",
        mend="isolitmus robust --repairs finds changes with which the promise is proved.",
    ),
    LintRule(
        "ISO302",
        "not-log-serializable",
        "Overlapping runs may leave versions that the order of the log does not produce serially.",
        "warning",
        default=False,
        mend="set the isolation level to Serializable, or keep the two apart.",
    ),
    LintRule(
        "ISO303",
        "answer-unknown",
        "It is unknown whether a rule holds for the statements.",
        "note",
        unknown=True,
        mend="write the condition with columns of supported types.",
    ),
    LintRule(
        "ISO304",
        "only-with-null",
        "A conflict or violation is proved impossible unless a parameter is NULL.",
        "note",
        mend=(
            "declare the parameter NOT NULL (-- :day DATE NOT NULL), or the column in which it is"
            " stored."
        ),
    ),
)
RULES = {rule.code: rule for rule in _EVERY}
"""Rules by code, in the order of their codes."""
EVERYTHING = "ALL"
"""Selector of every rule."""


def codes_of(selector: str) -> frozenset[str]:
    """Return the codes that a selector stands for: a code, the beginning of codes, or ``ALL``.

    Examples
    --------
    >>> sorted(codes_of("ISO20")), codes_of("ISO9")
    (['ISO201', 'ISO202'], frozenset())
    """
    if selector == EVERYTHING:
        return frozenset(RULES)
    long_enough = selector.startswith("ISO")
    return frozenset(code for code in RULES if long_enough and code.startswith(selector))


def unknown_code(selector: str) -> str:
    """Return the message about a selector that stands for no rule.

    Examples
    --------
    >>> unknown_code("IS0301")
    "unknown rule 'IS0301'; did you mean 'ISO301'?"
    """
    return f"unknown rule '{selector}'{near(selector, [*RULES, EVERYTHING])}"


def chosen_codes(
    select: Iterable[str] | None, extend: Iterable[str], ignore: Iterable[str]
) -> frozenset[str]:
    """Return the codes of the rules that are on.

    Parameters
    ----------
    select : iterable of str, optional
        Selectors of all rules that are on; by default, the rules that are on by default.
    extend : iterable of str
        Selectors of further rules that are on.
    ignore : iterable of str
        Selectors of rules that are off. Of several selectors for a rule, the longest decides.

    Examples
    --------
    >>> sorted(chosen_codes(["ISO2", "ISO302"], [], ["ISO201"]))
    ['ISO202', 'ISO302']
    """
    usual = () if select is not None else (code for code, rule in RULES.items() if rule.default)
    on = dict.fromkeys(usual, -1)
    off: dict[str, int] = {}
    for weights, selectors in ((on, (*(select or ()), *extend)), (off, ignore)):
        for selector in selectors:
            weight = 0 if selector == EVERYTHING else len(selector)
            for code in codes_of(selector):
                weights[code] = max(weights.get(code, -1), weight)
    return frozenset(code for code, weight in on.items() if weight > off.get(code, -2))
