"""What became of a spec's mutants: which are told from it, by what, and which are not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from isolitmus.checker.render.worded import Worded
from isolitmus.model.records import Records, Tabular

if TYPE_CHECKING:
    from isolitmus.model.litmus import HistoryTest, Litmus
    from isolitmus.model.spec import Spec
    from isolitmus.specs.language.mutant import Mutant

__all__ = ["JudgedMutant", "Kill", "MutantReport"]

COLUMNS = ("spec", "mutant", "was", "becomes", "outcome", "by", "argument")


@dataclass(frozen=True, slots=True)
class Kill:
    """What tells a mutant from its spec."""

    test: Litmus | HistoryTest
    """The litmus test, of the catalogue or one that was found."""
    words: str
    """What the spec says of it, and what the mutant says."""
    found: bool = False
    """Whether a search has found it; else it ships."""

    @property
    def name(self) -> str:
        """The test's name."""
        return self.test.name


@dataclass(frozen=True, slots=True)
class JudgedMutant:
    """A mutant with what tells it from the spec."""

    mutant: Mutant
    """Which one."""
    kills: tuple[Kill, ...] = ()
    """Every litmus test of the catalogue that tells it; if none does, the history that a search found."""
    bound: str = ""
    """How far nothing was found, where nothing was."""
    argument: str = ""
    """Why it is equivalent, if somebody says so."""
    ended: str | None = None
    """The limit that ended the search for a history that tells it."""

    @property
    def outcome(self) -> Literal["told", "argued", "unknown", "survives"]:
        """``told``; or nothing tells it: ``argued`` to be equivalent, ``unknown`` where a limit ended the search,
        else ``survives``.
        """
        if self.kills:
            return "told"
        if self.argument:
            return "argued"
        return "survives" if self.ended is None else "unknown"

    def to_json(self) -> dict[str, object]:
        """The mutant as docs/interface.md, 6, has it."""
        first = self.kills[0] if self.kills else None
        return {
            "mutant": self.mutant.number,
            "was": self.mutant.was,
            "becomes": self.mutant.becomes,
            "what": self.mutant.what,
            "outcome": self.outcome,
            "by": [kill.name for kill in self.kills],
            "how": None if first is None else first.words,
            "litmus": first.test.text if first is not None and first.found else None,
            "bound": self.bound or None,
            "argument": self.argument or None,
            "ended": self.ended,
        }


@dataclass(frozen=True, slots=True, repr=False)
class MutantReport(Worded, Tabular):
    """The answer to ``separate LEVEL --mutants``."""

    spec: Spec
    """Whose mutants."""
    judged: tuple[JudgedMutant, ...]
    """Each, in the order of the text."""
    seconds: float
    """What it took."""

    @property
    def survivors(self) -> tuple[JudgedMutant, ...]:
        """Those that nothing tells from the spec, and for which nobody argues."""
        return tuple(one for one in self.judged if one.outcome in {"survives", "unknown"})

    @property
    def argued(self) -> tuple[JudgedMutant, ...]:
        """Those that somebody says are equivalent, and that nothing tells from the spec."""
        return tuple(one for one in self.judged if one.outcome == "argued")

    @property
    def told(self) -> tuple[JudgedMutant, ...]:
        """Those that a history tells from the spec."""
        return tuple(one for one in self.judged if one.outcome == "told")

    @property
    def records(self) -> Records:
        """A row for each mutant; by is the first test that tells it."""
        return Records(
            COLUMNS,
            tuple(
                (
                    self.spec.name,
                    one.mutant.number,
                    one.mutant.was,
                    one.mutant.becomes,
                    one.outcome,
                    one.kills[0].name if one.kills else None,
                    one.argument or None,
                )
                for one in self.judged
            ),
        )

    def to_json(self) -> dict[str, object]:
        """The report as docs/interface.md, 6, has it."""
        return {
            "spec": self.spec.name,
            "mutants": [one.to_json() for one in self.judged],
            "survivors": [one.mutant.number for one in self.survivors],
            "seconds": round(self.seconds, 3),
        }
