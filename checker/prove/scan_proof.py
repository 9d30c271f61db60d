"""The verb behind ``separate --unbounded`` where statements are scans: each row once, if keys stay.

The induction is that of ``checker.prove.induction``. Here is what it takes: that no statement changes the key of an
index by which scans go, and, where a row is not to be missed, that no scan sees what is not committed. The one is asked
of the statements of a scope, the other of the clauses of a protocol.
"""

from __future__ import annotations

from itertools import product
from time import monotonic
from typing import TYPE_CHECKING

from isolitmus.checker.execution.commit_loop import execute
from isolitmus.checker.judge.compiled_semantics import admission
from isolitmus.checker.locking.hints import scan_hints
from isolitmus.checker.locking.protocol_rules import rules_of
from isolitmus.checker.prove.induction import each_row_once
from isolitmus.checker.prove.proof import Proof, ProofStep
from isolitmus.checker.prove.scope import Outside
from isolitmus.checker.universes.tables import of_format
from isolitmus.model.errors import Disagreement, Refused
from isolitmus.model.litmus import Litmus
from isolitmus.model.sql.statement import Update, statements_of
from isolitmus.specs.files.catalogue import litmus, litmus_names
from isolitmus.specs.registries.formats import format_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from isolitmus.checker.prove.arguments import Question
    from isolitmus.model.schema import Schema
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec
    from isolitmus.model.sql.statement import Statement

__all__ = ["assumed_of_scans", "outside_of_scans", "prove_scans", "scanned_statements"]

STAYS = {"(same & scan)": False, "misses": True}
"""What relates nothing by the induction, each with whether it is about rows that stay."""


def prove_scans(question: Question, inside: Scope) -> Proof:
    """The proof, or how far it came; IsolitmusError if the scope is of another format.

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
    """The parts of the induction, up to the first that does not hold."""
    began = monotonic()
    for part in each_row_once(moves=moves, stays=stays):
        counterexample = () if part.holds else (part.counterexample.replace("\n", ""),)
        yield ProofStep(
            f"{name}-{part.name}", part.sentence, "holds" if part.holds else "fails",
            monotonic() - began, counterexample=counterexample,
        )  # fmt: skip
        if not part.holds:
            return


def scanned_statements(inside: Scope) -> str:
    """What statements a proof is about."""
    keys = [
        f"{index.name} ({index.text(table.columns)})"
        for table in inside.tables.values()
        for index in table.indexes
        if index.name in _named([inside.scan])
    ]
    if not keys:
        return "statements whose scans go by no index"
    return f"statements that leave the keys of {' and '.join(keys)} as they are"


def assumed_of_scans(question: Question, inside: Scope) -> tuple[str, ...]:
    """What a proof rests on."""
    index = " and ".join(sorted(_named([inside.scan]))) or "no index"
    order = "an entry of an index stands where its key says, and a scan takes entries in the order of their keys: no page of an index is split, and no scan goes by the order of pages"
    found = [order, f"scans go by {index}, and what they go by changes for no row that is there"]
    if any(str(axiom.expr) == "misses" for axiom in question.b.axioms):
        found.append(
            f"a row that is not to be missed stays, committed, and {question.a.name} lets no scan see what is not"
            " committed"
        )
    return tuple(found)


def outside_of_scans(question: Question) -> tuple[Outside, ...]:
    """The litmus tests whose statements change a key by which scans go; Disagreement if one refutes what was proved
    and changes none.
    """
    admits, permits = admission(question.a), admission(question.b)
    found: list[Outside] = []
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
            why.append("changes a key by which scans go")
        if question.transactions is not None and seen.transactions > question.transactions:
            why.append(f"has more than {question.transactions} transactions")
        if why:
            found.append(Outside(name, tuple(why), fails))
        elif fails:
            raise Disagreement(
                f"{name}: {question.a.name} admits it and {question.b.name} forbids it, though it changes no key, and"
                " the proof says that there is no such history"
            )
    return tuple(found)


def _named(scans: Iterable[str | tuple[str, ...]]) -> set[str]:
    """The indexes by which scans go."""
    return {name for scan in scans for name in ([scan] if isinstance(scan, str) else scan)}


def _moves(
    tables: Mapping[str, Schema], statements: Iterable[Statement], names: set[str]
) -> Iterator[Update]:
    """The statements that set a column of an index of one of these names."""
    for statement in statements:
        for part in statements_of(statement):
            if isinstance(part, Update):
                columns = {column for column, _ in part.sets}
                indexes = tables[part.target].indexes
                if any(one.name in names and columns & set(one.columns) for one in indexes):
                    yield part


def _dirty(protocol: Spec) -> bool:
    """Whether some scan sees what is not committed."""
    rules = rules_of(protocol)
    return any(
        (rules.searched if writes else rules.see) == "current"
        and rules.of_scan(indexed=indexed, writes=writes) is None
        for indexed, writes in product((False, True), repeat=2)
    )
