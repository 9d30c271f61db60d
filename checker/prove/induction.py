"""Each row once, for any number of steps: an invariant of one row and the cursor of a scan.

The scan goes through the entries of an index in their order. Of one row, whichever, the invariant says: it is
still ahead of the cursor and has not been emitted, or it is not ahead any more and has been emitted once. It is
so at the start, every step of the scan keeps it, and so does whatever writers do to other rows and to other
columns of this one, as long as its key stays and it stays there, committed. At the end nothing is ahead. So the row has been
emitted once, however many rows there are, however often others write in between. If its key may change, the step
of a writer does not keep it, and Z3 says where.

What it is about: entries are read in the order of their keys, and stand where their keys say. Pages that are split while
a scan is between two of them, and scans that go by the order of pages, are outside; a row that is inserted or deleted meanwhile
is emitted once at most. Positions are real numbers: any finite set that is ordered is like some of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from isolitmus.checker.solver.solver import answer

if TYPE_CHECKING:
    import z3

__all__ = ["InductiveStep", "each_row_once"]


@dataclass(frozen=True, slots=True)
class InductiveStep:
    """A part of the proof: its name, what it says, and whether Z3 proves it; else where it does not hold."""

    name: str
    sentence: str
    holds: bool
    counterexample: str = ""


def each_row_once(*, moves: bool = False, stays: bool = True) -> tuple[InductiveStep, ...]:
    """The parts of the proof that a scan emits a row exactly once; ``moves``: its key may change; ``stays`` False: it may
    be inserted and deleted, and then it is emitted at most once.

    >>> all(step.holds for step in each_row_once()), all(step.holds for step in each_row_once(stays=False))
    (True, True)
    >>> [step.sentence for step in each_row_once(moves=True) if not step.holds]
    ['a writer keeps that']
    """
    import z3

    cursor, then, place, moved = z3.Reals("cursor then place moved")
    count, counted = z3.Ints("count counted")
    there, still = z3.Bools("there still")

    def invariant(
        at: z3.ArithRef, where: z3.ArithRef, times: z3.ArithRef, present: z3.BoolRef
    ) -> z3.BoolRef:
        ahead = z3.And(where > at, times == 0)
        behind = times == 1 if stays else times <= 1
        return z3.And(
            z3.Or(ahead, z3.And(where <= at, behind)), present if stays else z3.BoolVal(True)
        )

    now = invariant(cursor, place, count, there)
    passes = z3.And(then > cursor, z3.Not(z3.And(there, cursor < place, place < then)))
    met = z3.And(there, place == then)
    step = z3.And(
        passes, z3.Or(z3.And(met, counted == count + 1), z3.And(z3.Not(met), counted == count))
    )
    writes = z3.And(
        moved == place if not moves else z3.BoolVal(True),
        still == there if stays else z3.BoolVal(True),
    )
    ends = z3.Not(z3.And(there, place > cursor))
    often = "once" if stays else "once at most"
    once = count == 1 if stays else count <= 1
    lemmas = (
        (
            "start",
            f"before the first step the row is ahead and not emitted, or not ahead and emitted {often}",
            z3.Implies(z3.And(place > cursor, count == 0, there), now),
        ),
        (
            "scan",
            "a step of the scan keeps that",
            z3.Implies(z3.And(now, step), invariant(then, place, counted, there)),
        ),
        (
            "writer",
            "a writer keeps that",
            z3.Implies(z3.And(now, writes), invariant(cursor, moved, count, still)),
        ),
        (
            "end",
            f"at the end the row has been emitted {often}",
            z3.Implies(z3.And(now, ends), once),
        ),
    )
    return tuple(_step(*lemma) for lemma in lemmas)


def _step(name: str, sentence: str, claim: z3.BoolRef) -> InductiveStep:
    import z3

    solver = z3.Solver()
    solver.add(z3.Not(claim))
    if answer(solver) == "unsat":
        return InductiveStep(name, sentence, holds=True)
    return InductiveStep(name, sentence, holds=False, counterexample=str(solver.model()))
