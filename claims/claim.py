"""Claims of a document, and evidence by which a run confirms, refutes or corrects them.

A piece of evidence asks a question, such as the outcome of a litmus test. It records the answer
that the claim predicts and, if it differs, the answer that was observed. A verdict is derived from
the answers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from operator import eq, ge, gt, le, lt
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from isolitmus.model.litmus import Expectation

ClaimVerdict = Literal[
    "confirmed",
    "confirmed in part",
    "refuted",
    "corrected",
    "holds by the page's protocol",
    "differs in open-source Delta",
    "not semantic",
    "a defect of the text",
    "undecided",
]
VERDICTS: Mapping[ClaimVerdict, str] = {
    "confirmed": "every run agrees with the claim",
    "confirmed in part": (
        "every run agrees with the claim; a part of the claim, which is named, was not tested"
    ),
    "refuted": "no run agrees with the claim, and no protocol of the page does",
    "corrected": "some runs agree with the claim; the correction says which do not",
    "holds by the page's protocol": (
        "the protocols of the page agree with the claim; nothing that runs here can show it"
    ),
    "differs in open-source Delta": (
        "some or all runs of open-source Delta 4.4.0 disagree with the claim; the protocols of the"
        " page agree, if they were tested; nothing was run on Databricks, to which the page belongs"
    ),
    "not semantic": "the claim says nothing about isolation that a run could show",
    "a defect of the text": (
        "no run shows the claim as printed; every run shows it as it must be meant"
    ),
    "undecided": "there is no evidence, none that could be run, or runs of one case that disagree",
}
"""Meaning of each verdict."""


class Edition(NamedTuple):
    """State of a document, and where it was read."""

    title: str
    """Title and language."""
    date: str
    """Date that the document prints, or what its contents say of it."""
    read: str
    """Where it was read, and how much of it."""
    in_part: bool = False
    """True if only some of its parts were read: it may state a claim that does not name it."""


_ONE_PAGE = "Databricks, Isolation levels and write conflicts"
_TWO_PAGES = (
    "Databricks, Isolation levels (WriteSerializable and Serializable); Row-level concurrency"
)
EDITIONS: Mapping[str, Edition] = {
    "EN": Edition(
        f"{_TWO_PAGES} (English)",
        "none printed; later than EN3: row-level concurrency from 14.3 LTS on, the rest is legacy",
        "learn.microsoft.com/en-us/azure/databricks/optimizations/isolation/ and"
        " docs.databricks.com/aws/en/optimizations/isolation/, in part",
        in_part=True,
    ),
    "EN3": Edition(
        f"{_TWO_PAGES} (English)",
        "none printed; later than PT: two pages, row-level concurrency from 14.2 on",
        "docs.azure.cn/en-us/databricks/optimizations/isolation/, and the same pages in Chinese:"
        " the first whole, the second up to the end of the matrices",
        in_part=True,
    ),
    "EN2": Edition(
        f"{_ONE_PAGE} (English)",
        "last update 2025-03-11",
        "docs.databricks.com/optimizations/isolation-level.html, up to the first matrix",
        in_part=True,
    ),
    "EN1": Edition(
        f"{_ONE_PAGE} (English)",
        "as of 2022-09-22: one matrix, no row-level concurrency",
        "learn.microsoft.com/en-us/azure/databricks/optimizations/isolation-level, and a"
        " translation of 2022-09-22 (qiita.com/taka_yayoi/items/62a581c20ab4096a990b), up to the"
        " levels",
        in_part=True,
    ),
    "PT": Edition(
        f"{_ONE_PAGE}, newest of three (Portuguese, Azure)",
        "none printed; its example is that of t0 to t3",
        "its text, whole",
    ),
    "JA": Edition(
        f"{_ONE_PAGE}, middle one of three (Japanese)",
        "none printed; it has the warning on blind appends, and the example of txn1 and txn2",
        "its text, without some cells of the matrices",
    ),
    "AR": Edition(
        f"{_ONE_PAGE}, oldest of three (Arabic, Azure)",
        "none printed; no warning on blind appends",
        "its text, whole",
    ),
    "SQL": Edition(
        "Paul White, The Read Committed Isolation Level (Portuguese)",
        "none printed",
        "its text, whole",
    ),
}
"""Editions of the documents."""

PAGES_OF_DATABRICKS = frozenset(EDITIONS) - {"SQL"}
"""Editions of the Databricks page."""
Figure = int | str
"""One number or word in the answer to a question other than a run, such as a count or ``yes``."""


# Questions


class AskedRun(NamedTuple):
    """Question for the outcome of a litmus test under a protocol."""

    litmus: str
    protocol: str

    def __str__(self) -> str:
        return f"run {self.litmus} --protocol {self.protocol}"


class AskedCells(NamedTuple):
    """Question for the number of matrix cases that end in a conflict, with given losers and
    winners.
    """

    matrix: str
    """Name of the matrix."""
    parked: tuple[str, ...]
    """Names of the statements that are parked before their commits."""
    winners: tuple[str, ...]
    """Names of the statements that commit meanwhile."""
    layouts: tuple[str, ...]
    """Layouts of the table."""
    protocol: str
    """Protocol that the cases are run under."""

    @property
    def figures(self) -> tuple[str, ...]:
        """Names of the figures in the answer: over all cases, and over those with each parked
        statement; ``apart`` counts the winners beside which the parked statements end differently,
        once for each layout.
        """
        counts = ("cases", "committed", "conflicts", "silent", "unknown")
        return (*counts, "apart", *(f"{a}.{count}" for a in self.parked for count in counts))

    def __str__(self) -> str:
        sides = " beside ".join(", ".join(side) for side in (self.parked, self.winners))
        where = ", ".join(self.layouts)
        return f"matrix {self.matrix} --protocol {self.protocol}: {sides} ({where})"


class AskedSeparation(NamedTuple):
    """Question whether spec `a` admits a history that spec `b` forbids."""

    a: str
    """Spec that has to admit it."""
    b: str
    """Spec that has to forbid it."""
    universe: str | None = None
    """Search space; None for the default of the ``separate`` command."""
    transactions: int | None = None
    """Maximum number of transactions; None for the default of the ``separate`` command."""
    unexplained: bool = False
    """Whether, in addition, no serial order may produce the table."""
    unbounded: bool = False
    """True if a proof is requested."""

    @property
    def figures(self) -> tuple[str, ...]:
        """Names of the figures in the answer."""
        return ("found", "transactions", "proved")

    def __str__(self) -> str:
        words = [f"separate {self.a} {self.b}"]
        if self.universe is not None:
            words.append(f"--universe {self.universe}")
        if self.transactions is not None:
            words.append(f"--transactions 1..{self.transactions}")
        words += ["--unexplained"] * self.unexplained + ["--unbounded"] * self.unbounded
        return " ".join(words)


class AskedSweep(NamedTuple):
    """Question for the number of candidates of some scopes that each protocol admits."""

    scopes: tuple[str, ...]
    transactions: int

    def __str__(self) -> str:
        size = f"--transactions {self.transactions}"
        return " and ".join(f"sweep {scope} {size}" for scope in self.scopes)


class AskedInterleavings(NamedTuple):
    """Question for the outcomes of all interleavings of a litmus test's steps under a protocol."""

    litmus: str
    """Name of the litmus test."""
    protocol: str
    """Protocol that they are run under."""

    def __str__(self) -> str:
        return f"run {self.litmus} --interleavings --protocol {self.protocol}"


class AskedObservation(NamedTuple):
    """Question for the behaviour of an engine in a named experiment."""

    name: str

    def __str__(self) -> str:
        return f"observe {self.name}"


ClaimQuestion = (
    AskedRun | AskedCells | AskedSeparation | AskedSweep | AskedInterleavings | AskedObservation
)


# Answers


class FigureStatement(NamedTuple):
    """Comparison of a named figure with a number, a word or another figure."""

    name: str
    sign: str
    value: Figure

    @classmethod
    def parse(cls, text: str) -> FigureStatement | None:
        """Return the comparison that `text` states, or None if it is none.

        Examples
        --------
        >>> FigureStatement.parse("conflicts > 0"), FigureStatement.parse("some")
        (FigureStatement(name='conflicts', sign='>', value=0), None)
        """
        match = STATEMENT.fullmatch(text.strip())
        if match is None:
            return None
        name, sign, value = match.groups()
        return cls(name, sign, int(value) if value.isdecimal() else value)

    @property
    def is_empty(self) -> bool:
        """True if the comparison is true of any figures; counts are at least 0."""
        same = self.name == self.value and "=" in self.sign
        return same or (self.sign, self.value) == (">=", 0)

    def holds(self, figures: Mapping[str, Figure]) -> bool:
        """Return whether the comparison is true of `figures`; it is false if a figure is missing.

        Examples
        --------
        >>> FigureStatement("a", "<", "b").holds({"a": 1, "b": 2})
        True
        """
        left, right = figures.get(self.name), figures.get(str(self.value), self.value)
        return type(left) is type(right) and bool(SIGNS[self.sign](left, right))

    def __str__(self) -> str:
        return f"{self.name} {self.sign} {self.value}"


SIGNS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": eq,
    "<": lt,
    ">": gt,
    "<=": le,
    ">=": ge,
}
STATEMENT = re.compile(r"(\S.*) (=|<|>|<=|>=) (\S.*)")
CITED = re.compile(r"\b([DNQ])(\d\d?)([a-z]?)(?:[-–]\1(\d\d?))?\b")
FigureStatements = tuple[FigureStatement, ...]
"""Comparisons that all have to be true."""


@dataclass(frozen=True, slots=True, eq=False)
class ClaimEvidence:
    """Question, the engines that can answer it, and the answer.

    The answer is the one that the claim predicts (``claimed``) or another one (``found``), which is
    evidence against the claim.
    """

    question: ClaimQuestion
    """Question that is asked."""
    engines: tuple[str, ...]
    """Names of the engines that can answer the question."""
    claimed: Expectation | FigureStatements
    """Answer if the claim is true."""
    found: Expectation | FigureStatements | None = None
    """Answer that was observed instead; None if the evidence supports the claim."""
    of_page: bool = False
    """True if the answer is that of a protocol written from a page, and not of anything that can be
    run.
    """
    amended: bool = False
    """True if ``claimed`` is the prediction of the claim after its text is corrected."""
    words: str = ""
    """Description of the evidence for readers."""
    figures: FigureStatements = ()
    """Further figures of the answer, independent of whether it supports the claim."""
    when: str = ""
    """Case that the evidence is of, narrower than the claim's condition; empty for any case."""
    met: Expectation | FigureStatements | None = None
    """Part of the answer that shows that the claim's condition is met; None if no more than the
    question shows it.
    """

    @property
    def case(self) -> tuple[str, bool, bool]:
        """Key of the case: pieces of evidence of one case agree with the claim, or none does."""
        return (self.when, self.of_page, self.amended)

    @property
    def agrees(self) -> bool:
        """True if the evidence is recorded as supporting the claim."""
        return self.found is None

    @property
    def recorded(self) -> Expectation | FigureStatements:
        """Answer that is recorded."""
        came = self.claimed if self.found is None else self.found
        return (*came, *self.figures) if isinstance(came, tuple) else came


@dataclass(frozen=True, slots=True)
class ClaimAnswer:
    """Answer of an engine to a piece of evidence.

    ``against`` lists the differences from the claim, ``unlike`` those from the recorded answer;
    ``unknown`` says why there is no answer.
    """

    engine: str
    against: tuple[str, ...] = ()
    unlike: tuple[str, ...] = ()
    unknown: str = ""

    @property
    def agrees(self) -> bool:
        """True if the answer agrees with the claim."""
        return not self.against

    def to_json(self) -> dict[str, object]:
        """Return the answer as a JSON object (docs/interface.md, 6)."""
        return {
            "engine": self.engine,
            "agrees": None if self.unknown else self.agrees,
            "against": list(self.against),
            "unlike": list(self.unlike),
            "unknown": self.unknown or None,
        }


def derived(
    answers: Iterable[tuple[ClaimEvidence, bool]], *, of_databricks: bool = False, unasked: str = ""
) -> ClaimVerdict:
    """Return the verdict on a claim, given whether each piece of its evidence agrees with it.

    A protocol written from a page confirms a claim only if no other evidence exists. Runs of
    open-source Delta alone do not refute a claim of Databricks, and do not correct it if all
    protocols of the page agree with it.

    Parameters
    ----------
    answers : iterable of (ClaimEvidence, bool)
        Pieces of evidence, and whether each agrees with the claim.
    of_databricks : bool
        Whether the claim is one of the Databricks page.
    unasked : str
        Part of the claim that no evidence tests; empty if there is none.

    Examples
    --------
    >>> derived([])
    'undecided'
    """
    every = list(answers)
    here = [(e, agrees) for e, agrees in every if not e.of_page]
    by_page = {agrees for e, agrees in every if e.of_page}
    told = [(e, agrees) for e, agrees in every if not (here and e.of_page and agrees)]
    literal = {agrees for e, agrees in told if not e.amended}
    amended = {agrees for e, agrees in told if e.amended}
    if amended == {True} and literal == {False}:
        return "a defect of the text"
    match literal | amended:
        case agree if agree == {True}:
            if not here:
                return "holds by the page's protocol"
            return "confirmed in part" if unasked else "confirmed"
        case agree if agree == {False}:
            if of_databricks and by_page != {False}:
                return (
                    "corrected"
                    if True in by_page and False in by_page
                    else "differs in open-source Delta"
                )
            return "refuted"
        case agree:
            if of_databricks and by_page == {True}:
                return "differs in open-source Delta"
            return "corrected" if agree else "undecided"


def _disputed(answers: Iterable[tuple[ClaimEvidence, bool]]) -> bool:
    """Return whether some case has answers for and against the claim."""
    sides: dict[tuple[str, bool, bool], bool] = {}
    return any(sides.setdefault(e.case, agrees) is not agrees for e, agrees in answers)


@dataclass(frozen=True, slots=True)
class Claim:
    """Statement of a document, paraphrased, with its evidence and recorded verdict."""

    name: str
    """Letter and number, such as D46."""
    says: str
    """Statement, paraphrased."""
    where: str
    """Part of the document that makes the claim."""
    editions: tuple[str, ...]
    """Editions that make the claim, keys of EDITIONS."""
    reading: str
    """Meaning of the claim in terms of histories, runs or tables, if its condition is met."""
    verdict: ClaimVerdict
    """Recorded verdict."""
    remark: str = ""
    """Correction if the verdict is "corrected"; otherwise a remark for readers."""
    unasked: str = ""
    """Part of the claim that no evidence tests."""
    apart: Mapping[str, str] | None = None
    """Different statements of single editions, by edition."""
    evidence: tuple[ClaimEvidence, ...] = ()
    """Pieces of evidence; empty if nothing is known."""
    part: str = ""
    """Title of its file."""
    path: Path | None = None
    """Path of its file."""
    when: str = ""
    """Condition of the statement: what has to be the case for it to say anything."""

    @property
    def of_databricks(self) -> bool:
        """True if an edition of the Databricks page makes the claim."""
        return not PAGES_OF_DATABRICKS.isdisjoint(self.editions)

    def derived(self, answers: Iterable[tuple[ClaimEvidence, bool]]) -> ClaimVerdict:
        """Return the verdict that these answers to the evidence give.

        If the claim states its condition, answers that disagree on one case decide nothing.
        """
        every = list(answers)
        if self.when and _disputed(every):
            return "undecided"
        return derived(every, of_databricks=self.of_databricks, unasked=self.unasked)

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(self.editions)}; {self.verdict}): {self.says}"

    def __contains__(self, word: object) -> bool:
        """Return whether the texts of the claim contain a word, case-insensitively."""
        texts = (
            self.says,
            self.where,
            self.when,
            self.reading,
            self.remark,
            self.unasked,
            *(self.apart or {}).values(),
        )
        return str(word).lower() in " ".join(texts).lower()

    def to_json(self) -> dict[str, object]:
        """Return the claim as a JSON object (docs/interface.md, 6)."""
        return {
            "claim": self.name,
            "says": self.says,
            "where": self.where,
            "editions": list(self.editions),
            "apart": dict(self.apart or {}),
            "when": self.when,
            "reading": self.reading,
            "verdict": self.verdict,
            "remark": self.remark,
            "unasked": self.unasked,
            "evidence": [
                {
                    "question": str(e.question),
                    "engines": list(e.engines),
                    "agrees": e.agrees,
                    "when": e.when,
                    "words": e.words,
                }
                for e in self.evidence
            ],
        }


def claim_order(name: str) -> tuple[int, int, str]:
    """Return the sort key of a claim: Databricks page (D), then article (Q), then additions (N).

    Examples
    --------
    >>> sorted(["N1", "D32b", "Q2", "D7", "D32"], key=claim_order)
    ['D7', 'D32', 'D32b', 'Q2', 'N1']
    """
    number = re.sub(r"\D", "", name)
    return "DQN".index(name[0]), int(number), name


def cited_claims(text: str) -> list[str]:
    """Return the names of the claims that `text` cites, in its order, with ranges expanded.

    Examples
    --------
    >>> cited_claims("Databricks (D32c, D54-D56)")
    ['D32c', 'D54', 'D55', 'D56']
    """
    found = []
    for kind, first, letter, last in CITED.findall(text):
        found += [f"{kind}{n}{letter}" for n in range(int(first), int(last or first) + 1)]
    return found
