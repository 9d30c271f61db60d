"""A claim: what a document says, and the evidence by which a run confirms, refutes or corrects it.

A piece of evidence asks a question, such as what becomes of a litmus test. It says what would come
out if the claim were true, and, where something else comes out, what that is. A verdict is derived
from how the answers are.
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

__all__ = [
    "EDITIONS",
    "VERDICTS",
    "AskedCells",
    "AskedInterleavings",
    "AskedObservation",
    "AskedRun",
    "AskedSeparation",
    "AskedSweep",
    "Claim",
    "ClaimAnswer",
    "ClaimEvidence",
    "ClaimQuestion",
    "ClaimVerdict",
    "Figure",
    "FigureStatement",
    "FigureStatements",
    "cited_claims",
    "claim_order",
    "derived",
]

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
    "undecided": "there is no evidence, or none that could be run",
}
"""Meaning of each verdict."""

EDITIONS: Mapping[str, str] = {
    "EN": (
        "Databricks, Isolation levels; Row-level concurrency (English, two pages that came"
        " after PT)"
    ),
    "PT": "Databricks, Isolation levels and write conflicts, newest edition (Portuguese, Azure)",
    "JA": "Databricks, Isolation levels and write conflicts, middle edition (Japanese)",
    "AR": "Databricks, Isolation levels and write conflicts, oldest edition (Arabic, Azure)",
    "SQL": "Paul White, The Read Committed Isolation Level (Portuguese)",
}
"""The editions, each with what it is."""

PAGES_OF_DATABRICKS = frozenset(EDITIONS) - {"SQL"}
"""The editions that are of Databricks' page."""
Figure = int | str
"""What a question other than a replay gives, by name: a number, or yes, no or another word."""


# Questions


class AskedRun(NamedTuple):
    """What becomes of a litmus test under a protocol."""

    litmus: str
    protocol: str

    def __str__(self) -> str:
        return f"run {self.litmus} --protocol {self.protocol}"


class AskedCells(NamedTuple):
    """How many of the cases of a matrix end in a conflict: these statements parked, those the
    winners.
    """

    matrix: str
    """The name of the matrix."""
    parked: tuple[str, ...]
    """The statements that are parked before their commits, by name."""
    winners: tuple[str, ...]
    """Those that overtake them."""
    layouts: tuple[str, ...]
    """Of the table."""
    protocol: str
    """Under which they are carried out."""

    @property
    def figures(self) -> tuple[str, ...]:
        """What it gives: of all cases, and of those with each statement parked."""
        counts = ("cases", "committed", "conflicts", "silent", "unknown")
        return (*counts, *(f"{a}.{count}" for a in self.parked for count in counts))

    def __str__(self) -> str:
        sides = " beside ".join(", ".join(side) for side in (self.parked, self.winners))
        where = ", ".join(self.layouts)
        return f"matrix {self.matrix} --protocol {self.protocol}: {sides} ({where})"


class AskedSeparation(NamedTuple):
    """Whether a spec admits what another forbids."""

    a: str
    """The spec that is to admit it."""
    b: str
    """The spec that is to forbid it."""
    universe: str | None = None
    """Where it is looked for; None: where the verb does by itself."""
    transactions: int | None = None
    """The most that are tried; None: as many as the verb does by itself."""
    unexplained: bool = False
    """Whether no serial order is to give the table, either."""
    unbounded: bool = False
    """Whether a proof is wanted."""

    @property
    def figures(self) -> tuple[str, ...]:
        """What it gives: whether something was found, with how many transactions, whether that is
        proved.
        """
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
    """How many of the candidates of scopes each protocol admits."""

    scopes: tuple[str, ...]
    transactions: int

    def __str__(self) -> str:
        size = f"--transactions {self.transactions}"
        return " and ".join(f"sweep {scope} {size}" for scope in self.scopes)


class AskedInterleavings(NamedTuple):
    """What comes out of all interleavings of a litmus test's steps under a protocol."""

    litmus: str
    """The name of the litmus test."""
    protocol: str
    """Under which they are carried out."""

    def __str__(self) -> str:
        return f"run {self.litmus} --interleavings --protocol {self.protocol}"


class AskedObservation(NamedTuple):
    """What an engine is seen to do in an experiment of a name."""

    name: str

    def __str__(self) -> str:
        return f"observe {self.name}"


ClaimQuestion = (
    AskedRun | AskedCells | AskedSeparation | AskedSweep | AskedInterleavings | AskedObservation
)


# Answers


class FigureStatement(NamedTuple):
    """A statement on figures: a name, a sign, and a number, a word or another name."""

    name: str
    sign: str
    value: Figure

    @classmethod
    def parse(cls, text: str) -> FigureStatement | None:
        """The statement that a text is; None if it is none.

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
        """Whether it holds of any figures: no number of things is below 0."""
        same = self.name == self.value and "=" in self.sign
        return same or (self.sign, self.value) == (">=", 0)

    def holds(self, figures: Mapping[str, Figure]) -> bool:
        """Whether it is true of these figures; of one that is not among them nothing is.

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
"""Statements that are all to be true."""


@dataclass(frozen=True, slots=True, eq=False)
class ClaimEvidence:
    """A question, on which engines it can be asked, and what comes out: what the claim says
    (``claimed``), or something else (``found``), which then speaks against it.
    """

    question: ClaimQuestion
    """What is asked."""
    engines: tuple[str, ...]
    """The names of those who can be asked."""
    claimed: Expectation | FigureStatements
    """What comes out if the claim is true."""
    found: Expectation | FigureStatements | None = None
    """What comes out instead; None: it does speak for the claim."""
    of_page: bool = False
    """Whether the answer is that of a protocol which stands for a page, and not of anything that
    can be run.
    """
    amended: bool = False
    """Whether ``claimed`` is what the claim says once its text is mended."""
    words: str = ""
    """What it shows, for a reader."""
    figures: FigureStatements = ()
    """Figures that come out as well, whichever way it speaks."""

    @property
    def agrees(self) -> bool:
        """Whether it is recorded as speaking for the claim."""
        return self.found is None

    @property
    def recorded(self) -> Expectation | FigureStatements:
        """What is recorded as having come out."""
        came = self.claimed if self.found is None else self.found
        return (*came, *self.figures) if isinstance(came, tuple) else came


@dataclass(frozen=True, slots=True)
class ClaimAnswer:
    """The answer of an engine to a piece of evidence: where it is not as the claim has it, where
    not as it is recorded; or ``unknown``, why there is no answer.
    """

    engine: str
    against: tuple[str, ...] = ()
    unlike: tuple[str, ...] = ()
    unknown: str = ""

    @property
    def agrees(self) -> bool:
        """Whether it is as the claim has it."""
        return not self.against

    def to_json(self) -> dict[str, object]:
        """The answer as docs/interface.md, 6, has it."""
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
    """The verdict on a claim of whose evidence each piece agrees with it or does not, and of which
    a part may be ``unasked``.

    What a protocol says that stands for a page confirms only where nothing else was asked. A claim
    ``of_databricks`` is not refuted by runs of open-source Delta alone, nor corrected if the page's
    protocols all agree with it.

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


@dataclass(frozen=True, slots=True)
class Claim:
    """What a document says, in our words, with the evidence and the verdict that is recorded."""

    name: str
    """A letter and a number, such as D46."""
    says: str
    """The statement, in our words."""
    where: str
    """The part of the document that says it."""
    editions: tuple[str, ...]
    """The editions that do, of EDITIONS."""
    reading: str
    """What it says of histories, runs or tables."""
    verdict: ClaimVerdict
    """What is recorded as having come out."""
    remark: str = ""
    """The correction, if the verdict is that; else what a reader should know."""
    unasked: str = ""
    """The part of the claim that no evidence is about."""
    apart: Mapping[str, str] | None = None
    """What single editions say instead, by edition."""
    evidence: tuple[ClaimEvidence, ...] = ()
    """What was asked; none: nothing is known."""
    part: str = ""
    """The title of its file."""
    path: Path | None = None
    """Where the file is."""

    def derived(self, answers: Iterable[tuple[ClaimEvidence, bool]]) -> ClaimVerdict:
        """The verdict that these answers to its evidence give."""
        of_databricks = not PAGES_OF_DATABRICKS.isdisjoint(self.editions)
        return derived(answers, of_databricks=of_databricks, unasked=self.unasked)

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(self.editions)}; {self.verdict}): {self.says}"

    def __contains__(self, word: object) -> bool:
        """Whether its texts have a word, in whatever case."""
        texts = (
            self.says,
            self.where,
            self.reading,
            self.remark,
            self.unasked,
            *(self.apart or {}).values(),
        )
        return str(word).lower() in " ".join(texts).lower()

    def to_json(self) -> dict[str, object]:
        """The entry as docs/interface.md, 6, has it."""
        return {
            "claim": self.name,
            "says": self.says,
            "where": self.where,
            "editions": list(self.editions),
            "apart": dict(self.apart or {}),
            "reading": self.reading,
            "verdict": self.verdict,
            "remark": self.remark,
            "unasked": self.unasked,
            "evidence": [
                {
                    "question": str(e.question),
                    "engines": list(e.engines),
                    "agrees": e.agrees,
                    "words": e.words,
                }
                for e in self.evidence
            ],
        }


def claim_order(name: str) -> tuple[int, int, str]:
    """Where a claim stands among others: those of Databricks' page, those of the article, the
    additions.

    >>> sorted(["N1", "D32b", "Q2", "D7", "D32"], key=claim_order)
    ['D7', 'D32', 'D32b', 'Q2', 'N1']
    """
    number = re.sub(r"\D", "", name)
    return "DQN".index(name[0]), int(number), name


def cited_claims(text: str) -> list[str]:
    """The numbers of claims that a text cites, in its order; a range stands for all within.

    >>> cited_claims("Databricks (D32c, D54-D56)")
    ['D32c', 'D54', 'D55', 'D56']
    """
    found = []
    for kind, first, letter, last in CITED.findall(text):
        found += [f"{kind}{n}{letter}" for n in range(int(first), int(last or first) + 1)]
    return found
