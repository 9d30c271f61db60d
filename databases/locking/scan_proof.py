"""Proof that a scan emits each row once if keys do not change, for any number of transactions.

The proof is by induction on the steps of one row and the cursor of a scan, which visits the entries
of an index in order. The invariant is: the row is ahead of the cursor and has not been emitted, or
it is not ahead and has been emitted once. It holds at the start. Every step of the scan preserves
it, and so does every write to other rows or to other columns of this one, as long as its key stays
and it remains there, committed. At the end nothing is ahead, so the row has been emitted once,
whatever the numbers of rows and of concurrent writes. If its key may change, the step of a writer
does not preserve the invariant, and Z3 gives a counterexample.

Two conditions are checked: by the statements of a scope, that no statement changes the key of an
index that scans use; and, if no row may be missed, by the clauses of a protocol, that no scan sees
uncommitted rows.

The model reads entries in the order of their keys, at the positions of their keys. Splits of a page
while a scan is between pages, and scans in page order, are outside. A row that is inserted or
deleted meanwhile is emitted at most once. Positions are real numbers, since every finite ordered
set embeds in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from time import monotonic
from typing import TYPE_CHECKING

from isolitmus.checker.execution.commit_loop import execute
from isolitmus.checker.judge.compiled_semantics import compile_spec
from isolitmus.checker.prove.proof import OutsideTest, Proof, ProofAttempt, ProofStep
from isolitmus.checker.solver.smt import ask_solver
from isolitmus.checker.universes.tables import of_format
from isolitmus.databases.locking.protocol_rules import rules_of
from isolitmus.databases.locking.query_plans import scan_hints
from isolitmus.model.errors import Disagreement, Refused
from isolitmus.model.litmus import Litmus
from isolitmus.model.sql.statement import Update, statements_of
from isolitmus.specs.files.catalogue import litmus, litmus_names
from isolitmus.specs.registries import format_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import z3

    from isolitmus.checker.prove.arguments import Question
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec
    from isolitmus.model.sql.schema import Schema
    from isolitmus.model.sql.statement import Statement


@dataclass(frozen=True, slots=True)
class InductiveStep:
    """Part of the induction, and whether Z3 proves it, else a counterexample."""

    name: str
    sentence: str
    holds: bool
    counterexample: str = ""


def prove_each_row_once(*, moves: bool = False, stays: bool = True) -> tuple[InductiveStep, ...]:
    """Return the parts of the proof that a scan emits a row exactly once.

    Parameters
    ----------
    moves : bool
        Whether the key of the row may change.
    stays : bool
        Whether the row stays. If False, it may be inserted and deleted, and the claim is that it is
        emitted at most once.

    Examples
    --------
    >>> all(step.holds for step in prove_each_row_once())
    True
    >>> all(step.holds for step in prove_each_row_once(stays=False))
    True
    >>> [step.sentence for step in prove_each_row_once(moves=True) if not step.holds]
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
            (
                "before the first step the row is ahead and not emitted, or not ahead and emitted"
                f" {often}"
            ),
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
    """Return an inductive step with Z3's answer, and a counterexample unless it holds."""
    import z3

    solver = z3.Solver()
    solver.add(z3.Not(claim))
    if ask_solver(solver) == "unsat":
        return InductiveStep(name, sentence, holds=True)
    return InductiveStep(name, sentence, holds=False, counterexample=str(solver.model()))


def attempt_scan_proof(question: Question, inside: Scope) -> ProofAttempt:
    """Return the attempt of a proof about scans, with its scope and assumptions.

    Examples
    --------
    >>> from isolitmus.checker.prove.arguments import Question
    >>> from isolitmus.specs import level, protocol, scope
    >>> question = Question(protocol("locking-read-committed"), level("row-once"))
    >>> attempt_scan_proof(question, scope("fixed-keys")).statements
    'statements that do not change the keys of by_id (id)'
    """
    return ProofAttempt(
        prove_scans(question, inside),
        inside.name,
        scope_of_scans(inside),
        scan_assumptions(question, inside),
        lambda: outside_of_scans(question),
    )


STAYS = {"(same & scan)": False, "misses": True}
"""Relations that the induction shows to be empty, each with whether it concerns rows that stay."""


def prove_scans(question: Question, inside: Scope) -> Proof:
    """Return a proof of the claim, or the lemmas of a failed attempt.

    Parameters
    ----------
    question : Question
        Claim to be proved.
    inside : Scope
        Scope whose statements and indexes the proof covers.

    Raises
    ------
    IsolitmusError
        If the scope has another format.

    Examples
    --------
    >>> from isolitmus.checker.prove.arguments import Question
    >>> from isolitmus.specs import level, protocol, scope
    >>> question = Question(protocol("locking-read-committed"), level("row-once"))
    >>> prove_scans(question, scope("fixed-keys")).holds
    True
    >>> prove_scans(question, scope("moving-keys")).failed[0].lemma
    'row-twice-writer'
    """
    start = monotonic()
    of_format(inside, question.a, question.b)
    statements = [one for choice in inside.statements for one in choice]
    moves = any(_moves(inside.tables, statements, _named([inside.scan])))
    hinted = any(any(scan_hints(one.sql)) for one in (*statements, *inside.readers))
    steps: list[ProofStep] = []
    for axiom in question.b.axioms:
        stays = STAYS.get(str(axiom.expr)) if axiom.test == "empty" else None
        if stays is None:
            words = f"no argument is known for {axiom.expr}"
            steps.append(ProofStep(axiom.name, words, "unknown", 0.0))
        elif hinted:
            words = "table hints change what a scan sees and locks"
            steps.append(ProofStep(axiom.name, words, "unknown", 0.0))
        elif stays and _dirty(question.a):
            words = f"{question.a.name} lets scans see what is not committed, and may be undone"
            steps.append(ProofStep(axiom.name, words, "unknown", 0.0))
        else:
            steps += _induction(axiom.name, moves=moves, stays=stays)
        if steps[-1].outcome != "holds":
            return Proof(question, tuple(steps), (), monotonic() - start, holds=False)
    return Proof(question, tuple(steps), (), monotonic() - start, holds=True)


def _induction(name: str, *, moves: bool, stays: bool) -> Iterator[ProofStep]:
    """Yield the parts of the induction, up to the first that does not hold."""
    began = monotonic()
    for part in prove_each_row_once(moves=moves, stays=stays):
        counterexample = () if part.holds else (part.counterexample.replace("\n", ""),)
        yield ProofStep(
            f"{name}-{part.name}", part.sentence, "holds" if part.holds else "fails",
            monotonic() - began, counterexample=counterexample,
        )  # fmt: skip
        if not part.holds:
            return


def scope_of_scans(inside: Scope) -> str:
    """Return the statements that a proof covers, as text."""
    keys = [
        f"{index.name} ({index.text(table.columns)})"
        for table in inside.tables.values()
        for index in table.indexes
        if index.name in _named([inside.scan])
    ]
    if not keys:
        return "statements whose scans use no index"
    return f"statements that do not change the keys of {' and '.join(keys)}"


def scan_assumptions(question: Question, inside: Scope) -> tuple[str, ...]:
    """Return the assumptions of a proof about scans."""
    index = " and ".join(sorted(_named([inside.scan]))) or "no index"
    order = (
        "a scan visits index entries in the order of their keys: no index page splits, and no scan"
        " follows the order of pages"
    )
    found = [
        order,
        f"scans use {index}, and the keys that they use do not change for any existing row",
    ]
    if any(str(axiom.expr) == "misses" for axiom in question.b.axioms):
        found.append(
            f"a row that must not be missed stays and is committed, and under {question.a.name} no"
            " scan sees uncommitted rows"
        )
    return tuple(found)


def outside_of_scans(question: Question) -> tuple[OutsideTest, ...]:
    """Return the litmus tests that change a key that scans use, or exceed the bound.

    Raises
    ------
    Disagreement
        If another test refutes the claim.
    """
    admits, permits = compile_spec(question.a), compile_spec(question.b)
    found: list[OutsideTest] = []
    form = format_named(question.a.format or question.b.format or "")
    for name in litmus_names(form.log):
        test = litmus(name)
        if not isinstance(test, Litmus) or test.format != form.name:
            continue
        try:
            done = execute(test, question.a if question.a.clauses else None)
        except Refused:  # table hints
            continue
        seen = form.frame(done.events, reasons=False)
        fails = admits(seen) and not permits(seen)
        names = _named(client.scan for client in test.clients.values())
        why = []
        if any(_moves(test.tables, test.transactions.values(), names)):
            why.append("changes a key that scans use")
        if question.transactions is not None and seen.transactions > question.transactions:
            why.append(f"has more than {question.transactions} transactions")
        if why:
            found.append(OutsideTest(name, tuple(why), fails))
        elif fails:
            raise Disagreement(
                f"{name}: {question.a.name} admits it and {question.b.name} forbids it, though it"
                " changes no key, and the proof says that there is no such history"
            )
    return tuple(found)


def _named(scans: Iterable[str | tuple[str, ...]]) -> set[str]:
    """Return the names of the indexes that scans use."""
    return {name for scan in scans for name in ([scan] if isinstance(scan, str) else scan)}


def _moves(
    tables: Mapping[str, Schema], statements: Iterable[Statement], names: set[str]
) -> Iterator[Update]:
    """Yield the UPDATE statements that set a column of one of these indexes."""
    for statement in statements:
        for part in statements_of(statement):
            if isinstance(part, Update):
                columns = {column for column, _ in part.sets}
                indexes = tables[part.target].indexes
                if any(one.name in names and columns & set(one.columns) for one in indexes):
                    yield part


def _dirty(protocol: Spec) -> bool:
    """Return whether some scan sees uncommitted rows."""
    rules = rules_of(protocol)
    return any(
        (rules.searched if writes else rules.see) == "current"
        and rules.of_scan(indexed=indexed, writes=writes) is None
        for indexed, writes in product((False, True), repeat=2)
    )
