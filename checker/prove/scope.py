"""What a theorem is about, in words; and which litmus tests of the catalogue are outside of that.

A premise that speaks of statements, that their reads are all tracked, bounds what is proved as much as a
number of transactions would. So it stands in the headline, and every test that ships is asked. One that the
first spec admits and the second forbids must be outside of some premise: else the proof would be refuted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from isolitmus.checker.delta.frame import delta_frame
from isolitmus.checker.execution.commit_loop import execute, unfit_table
from isolitmus.checker.judge.compiled_semantics import admission
from isolitmus.checker.prove.executed import violated_premises
from isolitmus.model.errors import Disagreement
from isolitmus.model.litmus import Litmus
from isolitmus.specs.files.catalogue import litmus, litmus_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.checker.prove.arguments import Question
    from isolitmus.checker.prove.premises import Premise

__all__ = ["Outside", "outside", "statements"]


@dataclass(frozen=True, slots=True)
class Outside:
    """A litmus test that a theorem does not speak of: its name, why, and whether the first spec admits there
    what the second forbids.
    """

    litmus: str
    why: tuple[str, ...]
    fails: bool

    def to_json(self) -> dict[str, object]:
        """The test as ``separate --json`` has it."""
        return {"litmus": self.litmus, "why": list(self.why), "fails": self.fails}


def statements(premises: Sequence[Premise]) -> str:
    """What the premises make of "statements on one Delta table", what their reads are first.

    >>> from isolitmus.checker.prove.premises import PREMISES
    >>> statements([p for p in PREMISES if p.name in ("read-files", "sessions")])
    'statements on one Delta table, whose reads are all tracked, each in a session of its own'
    """
    said = dict.fromkeys(premise.scope for premise in premises if premise.scope)
    first = sorted(said, key=lambda words: not words.startswith("whose"))
    return ", ".join(["statements on one Delta table", *first])


def outside(question: Question, premises: Sequence[Premise]) -> tuple[Outside, ...]:
    """The litmus tests with statements that break one of the premises, or the bound, in what takes effect under the
    first spec; Disagreement if one refutes what was proved and breaks none.
    """
    admits, permits = admission(question.a), admission(question.b)
    found: list[Outside] = []
    for name in litmus_names():
        test = litmus(name)
        if not isinstance(test, Litmus) or test.raw or unfit_table(test, question.a):
            continue
        done = execute(test, question.a)
        seen = delta_frame([event for event in done.events if not event.aborted], reasons=False)
        fails = admits(seen) and not permits(seen)
        why = ["is about several tables"] if len(test.tables) > 1 else []
        if not why:
            why = [p.outside or f"breaks {p.name}" for p in violated_premises(done, premises)]
        if question.transactions is not None and seen.transactions > question.transactions:
            why.append(f"has more than {question.transactions} transactions")
        if why:
            found.append(Outside(name, tuple(dict.fromkeys(why)), fails))
        elif fails:
            raise Disagreement(
                f"{name}: {question.a.name} admits it and {question.b.name} forbids it, though it breaks no"
                " premise of the proof that there is no such history"
            )
    return tuple(found)
