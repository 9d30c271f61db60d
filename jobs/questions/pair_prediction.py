"""Predictions of the outcome of statements if other ones commit meanwhile, and their words."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from isolitmus.jobs.questions.null_parameters import not_null_assumptions
from isolitmus.model.assumption import AssumptionKind
from isolitmus.model.display import ReadableRepr

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from isolitmus.jobs.workload import JobStatement, Workload
    from isolitmus.model.assumption import Assumption
    from isolitmus.model.litmus import Litmus

COMPARISONS = {
    "=": "equals",
    "<": "is below",
    ">": "is above",
    "<=": "is at most",
    ">=": "is at least",
    "<>": "is not",
}
"""Words for a comparison of two parameters."""
COMMITS, NO_OP, FAILS = "commits", "finds nothing to do", "fails"
"""Outcomes of a retry."""

Word = Literal["never", "always", "when", "apart", "unknown"]


class PlainAnswer(NamedTuple):
    """Answer about a pair if none of some parameters is NULL: fields of `PairPrediction`."""

    word: Word
    condition: tuple[str, ...] = ()
    certain: bool = False


@dataclass(frozen=True, slots=True)
class PairPrediction(ReadableRepr):
    """Outcome of one statement if another one commits between its snapshot and its commit."""

    loser: str
    """Statement that starts first and commits last."""
    winner: str
    """Statement that commits in between."""
    word: Word
    """Predicted outcome of the loser.

    ``never``; ``always``; ``when`` something holds; ``apart``: the two never overlap; ``unknown``:
    neither an example nor a proof was found.
    """
    condition: tuple[str, ...] = ()
    """Necessary conditions on the parameters; all of them must hold."""
    certain: bool = False
    """True if the loser then always aborts if both write; otherwise that depends on the rows."""
    examples: Mapping[str, Litmus] = field(default_factory=dict)
    """Smallest example of each exception, in the order of the commit check.

    An exception that is neither here nor in ``perhaps`` is proved impossible.
    """
    retries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Possible outcomes of a retry, by exception.

    An absent outcome is proved impossible, except "fails", which is present only if an example
    showed it.
    """
    perhaps: tuple[str, ...] = ()
    """Exceptions with neither an example nor a proof that they are impossible."""
    why: str = ""
    """Reason why something is unknown."""
    shown: tuple[str, ...] = ()
    """Exceptions whose examples were executed, but are not kept here."""
    unless: tuple[str, ...] = ()
    """Parameters with their owners; `not_null` is the answer unless one of them is NULL."""
    not_null: PlainAnswer | None = None
    """Answer if none of `unless` is NULL; None if NULL makes no difference."""
    unshown: tuple[str, ...] = ()
    """Tables that stand for queries of which it is not shown that they return the rows of the
    examples.
    """

    @property
    def exceptions(self) -> tuple[str, ...]:
        """Exceptions for which an example was executed."""
        return tuple(self.examples) or self.shown

    @property
    def plain(self) -> PairPrediction:
        """The prediction if none of `unless` is NULL."""
        if self.not_null is None:
            return self
        word, condition, certain = self.not_null
        return replace(self, word=word, condition=condition, certain=certain)

    def __repr__(self) -> str:
        when = " and ".join(self.plain.condition)
        said = f"{self.loser} aborts if {self.winner} commits: {self.plain.word} {when}".rstrip()
        unless = " or ".join(self.unless)
        return f"{said} unless {unless} is NULL" if unless else said

    def to_json(self) -> dict[str, object]:
        """Return the prediction in the format of docs/interface.md, 6."""
        return {
            "loser": self.loser,
            "winner": self.winner,
            "word": self.word,
            "condition": list(self.condition),
            "certain": self.certain,
            "examples": {name: str(test) for name, test in self.examples.items()},
            "retries": {name: list(ends) for name, ends in self.retries.items()},
            "perhaps": list(self.perhaps),
            "why": self.why,
            "unshown": list(self.unshown),
            **null_to_json(self),
        }


@dataclass(frozen=True, slots=True)
class JobPrediction(ReadableRepr):
    """Predictions for all pairs of a workload's statements, under one commit protocol."""

    workload: Workload
    protocol: str
    """Name of the commit protocol."""
    meetings: tuple[PairPrediction, ...]
    """One prediction for each ordered pair of statements."""
    seconds: float = 0.0
    """Duration."""
    ended: str | None = None
    """Limit that ended the prediction, if any."""
    engine: str = ""
    """Engine for which the prediction is valid, with differences on Databricks if the tables have
    any.
    """

    @property
    def rows(self) -> dict[str, list[PairPrediction]]:
        """Predictions by the statement that aborts."""
        found: dict[str, list[PairPrediction]] = {}
        for meeting in self.meetings:
            found.setdefault(meeting.loser, []).append(meeting)
        return found

    @property
    def examples(self) -> tuple[Litmus, ...]:
        """Smallest examples of all pairs, with distinct names."""
        return tuple(
            replace(test, name=test.name if not k else f"{test.name}-{k + 1}")
            for meeting in self.meetings
            for k, test in enumerate(meeting.examples.values())
        )

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """Assumptions about tables, times of runs, and parameters that are not NULL."""
        unshown = [(table, one) for one in self.meetings for table in one.unshown]
        return (
            *self.workload.assumptions,
            *not_null_assumptions(self.workload),
            *unshown_rows((table, f"{one.loser} by {one.winner}") for table, one in unshown),
        )

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.meetings))

    def to_json(self) -> dict[str, object]:
        """Return the predictions in the format of docs/interface.md, 6."""
        return {
            "workload": self.workload.name,
            "protocol": self.protocol,
            "engine": self.engine,
            "not_understood": [one.to_json() for one in self.workload.unread],
            "meetings": [meeting.to_json() for meeting in self.meetings],
            "assumptions": list(self.assumptions),
            "ended": self.ended,
            "seconds": round(self.seconds, 3),
        }


def unshown_rows(examples: Iterable[tuple[str, str]]) -> Iterator[Assumption]:
    """Yield what is not shown of queries that tables stand for, each with the names of examples.

    Examples
    --------
    >>> print(*unshown_rows([("s_rows", "load by upsert"), ("s_rows", "load by purge")]))
    It is not shown that the query of s_rows returns the rows of the examples of load by upsert \
and load by purge.
    """
    found: dict[str, list[str]] = {}
    for table, name in examples:
        found.setdefault(table, []).append(name)
    for table, names in found.items():
        several = "s" if len(names) > 1 else ""
        more = [f"{len(names) - 2:,} more"] if len(names) > 3 else names[2:]
        listed = " and ".join([*names[:2], *more])
        yield AssumptionKind.ANY_VALUE.says(
            f"It is not shown that the query of {table} returns the rows of the example{several}"
            f" of {listed}."
        )


def null_to_json(meeting: PairPrediction) -> dict[str, object]:
    """Return what NULL changes in the format of docs/interface.md, 6; nothing if it does not."""
    plain = meeting.not_null
    if plain is None:
        return {}
    said = {"word": plain.word, "condition": list(plain.condition), "certain": plain.certain}
    return {"unless": list(meeting.unless), "not_null": said}


def pair_names(a: JobStatement, b: JobStatement) -> tuple[str, str]:
    """Return different names for two statements, even if they are the same one."""
    return a.name, b.name if a is not b else f"{b.name}_2"
