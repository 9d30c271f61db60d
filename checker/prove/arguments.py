"""Proof arguments: the lemmas by which a spec admits nothing that another one forbids.

The specs enter as their texts (``Formulas``), and the lemmas are for any two specs. A lemma is a
formula that a solver proves from the demands of the first spec and the premises on tables. Its
consequence by induction is stated beside it, and later lemmas may use it.

**By steps** (docs/semantics.md, Theorems 5 to 7), for each ``acyclic r`` of the second spec. Every
edge of r follows the order of the log. Or, where an edge i -> j does not, each edge j -> k leads to
a k after i. A cycle, followed by single edges where they ascend and by double edges elsewhere,
would then ascend forever, but it is finite. (Two consecutive edges back, and an edge from a
transaction to itself, are impossible: the second edge must end above.) With at most n transactions
there is an alternative: no n of them form a cycle.

For Corollary 6b this covers a case that the proof of Theorem 6 on paper leaves out. It says that
every edge back from a transaction A leads to a blind append I; a later X that removes I's row is
also the end of an edge back from A. But then A, I and X are already the triple that the protocol
forbids.

**First committer wins** (Theorem 4). The first spec has an acyclic axiom, which gives an order. Two
writers of one row have the same order there as in the log, by induction on the number of writers of
the row in between. A transaction that writes a row without having seen another one's write of it
would both precede that one, whose write it missed, and follow it, which is impossible. The rest is
by steps.

**Readers pin the log** (Theorem 2). If every version is read, the order of the first spec has each
writer before the next one: a reader of the first one's version misses the next one's. By induction
on the number of versions in between, it contains the whole log, and so serves the second spec, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isolitmus.checker.prove.formula_semantics import (
    PREDICATE,
    ROW,
    TRANSACTION,
    Formulas,
    RelationFormula,
    TableVocabulary,
    Z3Expr,
    inclusion_formula,
    spec_formula,
)
from isolitmus.checker.prove.premises import EVERY_VERSION_READ, PREMISES
from isolitmus.checker.prove.row_level_premises import COMPACTIONS, ROW_LEVEL_PREMISES
from isolitmus.model.spec import Fold
from isolitmus.model.vocabulary import SETS, relations_of

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from isolitmus.checker.prove.formula_semantics import Domain
    from isolitmus.checker.prove.premises import Premise
    from isolitmus.model.spec import Axiom, Spec

T = TRANSACTION

PLAIN = frozenset({"snapshot", "put-if-absent", "sessions", "committed"})
FILES = frozenset({"read-files", "files"})
DEFINITIONS = frozenset({"definitions"})
ROWS = frozenset({"read-before-written", "born-once"})
PREDICATES = frozenset({"read-predicates", "rows", "blind", "compactions", "backfills", "metadata"})
MERGED = frozenset({"read-files", "vectors", "merged-files", "removed-rows", "removed-positions"})
MOVED = frozenset({"moved-files", "compactions"})
WRITTEN = frozenset({"something-written"})


@dataclass(frozen=True, slots=True)
class Question:
    """Claim that ``a`` admits nothing that ``b`` forbids.

    It is about any number of transactions, or at most `transactions`; about all histories, or with
    `every_version_read` those in which every version is read.
    """

    a: Spec
    b: Spec
    transactions: int | None = None
    every_version_read: bool = False

    @property
    def premises(self) -> tuple[Premise, ...]:
        """Premises that may be assumed."""
        instead = {COMPACTIONS.name: COMPACTIONS} if self.moves_files else {}
        plain = (instead.get(premise.name, premise) for premise in PREMISES)
        below = ROW_LEVEL_PREMISES if self.below_files else ()
        every = EVERY_VERSION_READ if self.every_version_read else ()
        return (*plain, *below, *every)

    @property
    def below_files(self) -> bool:
        """True if the first spec looks below the level of files."""
        return not self.a.needs.isdisjoint(relations_of("delta-rows"))

    @property
    def merges_files(self) -> bool:
        """True if the first spec leaves merged files out."""
        return any(name.endswith("-unmerged") for name in self.a.needs)

    @property
    def moves_files(self) -> bool:
        """True if the first spec leaves moved files out."""
        return any(name.endswith("-unmoved") for name in self.a.needs)


class Theory:
    """Claim in a domain: tables, demands of the first spec, relations of the second."""

    def __init__(self, question: Question, domain: Domain) -> None:
        self.tables = TableVocabulary(domain)
        self.formulas = Formulas(self.tables)
        self.facts = [*domain.facts, *self.tables.facts, *spec_formula(self.formulas, question.a)]
        self._fold = Fold(self.formulas, question.b.definitions)
        names = question.a.needs | question.b.needs
        self.sets = [name for name in SETS if name in names and name != "Writer"]

    def relation(self, axiom: Axiom) -> RelationFormula:
        """Return the relation of an axiom of the second spec."""
        return self._fold.relation(axiom.expr)

    def order(self, name: str) -> RelationFormula:
        """Return an order by name: that of the log, or one by an axiom of the first spec."""
        return self.formulas.orders[name]


FormulaClaim = Callable[[Theory], Z3Expr]


@dataclass(frozen=True, slots=True)
class Lemma:
    """Claim to be proved."""

    name: str
    """Name by which later lemmas refer to it."""
    words: str
    """Statement as text."""
    tools: frozenset[str]
    """Names of the premises that it may use."""
    claim: FormulaClaim
    """Statement as a formula."""
    hence: FormulaClaim | None = None
    """Consequence by induction that later lemmas may use; None if they may use none."""
    helps: bool = False
    """True if the argument may succeed without it."""


def arguments(question: Question) -> list[list[Lemma]]:
    """Return the lemmas of a proof in order.

    Returns
    -------
    list of list of Lemma
        One lemma of each inner list suffices; the last claims least.
    """
    orders = [axiom.name for axiom in question.a.axioms if axiom.test == "acyclic"]
    if not orders:
        about_reads = [_as_read()]
        tools = PLAIN | ROWS | PREDICATES
        if question.below_files:
            read_tools = MERGED if question.merges_files else FILES
            read_tools |= MOVED if question.moves_files else set()
            about_reads = [_as_first_read(some) for some in _wider_tools(question, read_tools)]
            tools |= {"written-rows"}
        first = [[_as_defined()], about_reads, [_saw_what_it_wrote()]]
    elif question.every_version_read:
        of_order = (_reader, _missed, _next, _log)
        first = [[_next_is_first()], *([lemma(orders[0])] for lemma in of_order)]
        tools = PLAIN
    else:
        first = [[_rows(orders[0])], [_first_committer(orders[0])]]
        tools = PLAIN
    wider = [tools] if orders else _wider_tools(question, tools)
    goals = [
        [lemma for some in wider for lemma in _goal(axiom, orders, question.transactions, some)]
        for axiom in question.b.axioms
    ]
    return [*first, *goals]


def _wider_tools(question: Question, tools: AbstractSet[str]) -> list[frozenset[str]]:
    """Return the tools; if files are merged or moved, then also with the premise of no RESTORE,
    which brings rows back in such files.
    """
    plain = frozenset(tools)
    below = question.merges_files or question.moves_files
    return [plain, plain | {"no-restores"}] if below else [plain]


def _goal(axiom: Axiom, orders: list[str], most: int | None, tools: frozenset[str]) -> list[Lemma]:
    """Return lemmas for an axiom, each of which suffices: one per order for ``acyclic``."""
    name = axiom.name
    match axiom.test:
        case "empty":
            return [Lemma(name, f"no edges in {axiom.expr}", tools, _empty(axiom))]
        case "irreflexive":
            words = f"{axiom.expr} relates no transaction to itself"
            return [Lemma(name, words, tools, _irreflexive(axiom))]
        case "acyclic":
            choices = []
            for order in [*orders, "log"]:
                where = "the log" if order == "log" else f"the order by {order}"
                words = f"every edge of {axiom.expr} follows {where}"
                choices.append(Lemma(name, words, tools, _steps(axiom, order)))
            if most is None:
                words = (
                    f"every edge of {axiom.expr}, or every two edges that begin with it, follow"
                    " the log"
                )
                return [*choices, Lemma(name, words, tools, _leaps(axiom, "log"))]
            words = f"{axiom.expr} has no cycle of at most {most} transactions"
            return [*choices, Lemma(name, words, tools, _no_cycle(axiom, most))]


def _empty(axiom: Axiom) -> FormulaClaim:
    """Return the claim that the axiom's relation is empty."""

    def claim(theory: Theory) -> Z3Expr:
        tables, r = theory.tables, theory.relation(axiom)
        return tables.domain.forall((T, T), lambda i, j: tables.z3.Not(r(i, j)))

    return claim


def _irreflexive(axiom: Axiom) -> FormulaClaim:
    """Return the claim that the axiom's relation relates no transaction to itself."""

    def claim(theory: Theory) -> Z3Expr:
        tables, r = theory.tables, theory.relation(axiom)
        return tables.domain.forall((T,), lambda i: tables.z3.Not(r(i, i)))

    return claim


def _steps(axiom: Axiom, order: str) -> FormulaClaim:
    return lambda theory: inclusion_formula(
        theory.tables, theory.relation(axiom), theory.order(order)
    )


def _leaps(axiom: Axiom, order: str) -> FormulaClaim:
    """Return the claim that an edge, or it and any next edge together, follow the order."""

    def claim(theory: Theory) -> Z3Expr:
        tables, r, up = theory.tables, theory.relation(axiom), theory.order(order)
        z3 = tables.z3
        return tables.domain.forall(
            (T, T, T),
            lambda i, j, k: z3.Implies(z3.And(r(i, j), z3.Not(up(i, j)), r(j, k)), up(i, k)),
        )

    return claim


def _no_cycle(axiom: Axiom, most: int) -> FormulaClaim:
    """Return the claim that the axiom's relation has no cycle of at most ``most`` transactions."""

    def claim(theory: Theory) -> Z3Expr:
        tables, r = theory.tables, theory.relation(axiom)
        z3 = tables.z3

        def none(*cycle: Z3Expr) -> Z3Expr:
            steps = zip(cycle, [*cycle[1:], cycle[0]], strict=True)
            return z3.Not(z3.And([r(i, j) for i, j in steps]))

        return z3.And([tables.domain.forall((T,) * k, none) for k in range(1, most + 1)])

    return claim


def _as_defined() -> Lemma:
    """Return the lemma that writers see every change of the table's definition before them."""

    def claim(theory: Theory) -> Z3Expr:
        tables = theory.tables
        z3 = tables.z3
        return tables.domain.forall(
            (T, T, ROW),
            lambda i, j, x: z3.Implies(
                z3.And(tables.definition(x), tables.writes(i, x), tables.writer(j)),
                z3.Not(tables.relation("unseen")(i, j)),
            ),
        )

    words = "no writer commits without seeing a change of the columns or constraints of its table"
    return Lemma("as-it-was-defined", words, DEFINITIONS, claim, claim, helps=True)


def _as_read() -> Lemma:
    """Return the lemma that writers see every earlier write of a row that they read."""
    words = "no writer commits without seeing a concurrent write of a row that it read"
    claim = _sees_writes(first_only=False)
    return Lemma("as-it-was-read", words, FILES, claim, claim, helps=True)


def _as_first_read(tools: frozenset[str]) -> Lemma:
    """Return the lemma that writers see the first write of a row that they read.

    Rules below the level of files know the row by its values, which only that write found.
    """
    words = (
        "no writer commits without seeing the first concurrent write of a row that it read, and so"
        " any"
    )
    claim, given = _sees_writes(first_only=True), _sees_writes(first_only=False)
    return Lemma("as-it-was-read", words, tools, claim, given, helps=True)


def _sees_writes(*, first_only: bool) -> FormulaClaim:
    """Return the claim that a writer has seen the writes of rows that it read, or the first."""

    def claim(theory: Theory) -> Z3Expr:
        tables = theory.tables
        z3 = tables.z3

        def missed(i: Z3Expr, j: Z3Expr, p: Z3Expr, x: Z3Expr) -> Z3Expr:
            written = tables.first(i, x, tables.read(j)) if first_only else tables.writes(i, x)
            return z3.And(
                tables.writer(j),
                tables.matches(j, p, x, tables.read(j)),
                written,
                tables.relation("unseen")(i, j),
            )

        return tables.domain.forall(
            (T, T, PREDICATE, ROW), lambda i, j, p, x: z3.Implies(missed(i, j, p, x), False)
        )

    return claim


def _saw_what_it_wrote() -> Lemma:
    """Return the lemma that writers see every earlier write of a row that they write."""

    def claim(theory: Theory) -> Z3Expr:
        tables = theory.tables
        z3 = tables.z3
        return tables.domain.forall(
            (T, T, ROW),
            lambda i, j, x: z3.Implies(
                z3.And(tables.writes(i, x), tables.writes(j, x)),
                z3.Not(tables.relation("unseen")(i, j)),
            ),
        )

    words = "no writer commits without seeing a concurrent write of a row that it writes"
    return Lemma("first-committer-wins", words, ROWS, claim, claim, helps=True)


def _rows(order: str) -> Lemma:
    """Return the lemma that the writers of a row are ordered by version (by induction)."""

    def claim(theory: Theory) -> Z3Expr:
        tables, before = theory.tables, theory.order(order)
        z3, version = tables.z3, tables.version

        def step(a: Z3Expr, k: Z3Expr, b: Z3Expr, x: Z3Expr) -> Z3Expr:
            next_one = z3.And(
                tables.first(k, x, version(a)), z3.Or(k == b, version(k) < version(b))
            )
            so_far = z3.Or(k == b, before(k, b))
            return z3.Implies(z3.And(_both(tables, a, b, x), next_one, so_far), before(a, b))

        return tables.domain.forall((T, T, T, ROW), step)

    def hence(theory: Theory) -> Z3Expr:
        tables, before = theory.tables, theory.order(order)
        return tables.domain.forall(
            (T, T, ROW),
            lambda a, b, x: tables.z3.Implies(_both(tables, a, b, x), before(a, b)),
        )

    words = (
        f"a writer of a row precedes each later writer in the order by {order}, if it precedes the"
        " next one"
    )
    return Lemma("row-order", words, frozenset(), claim, hence, helps=True)


def _both(tables: TableVocabulary, a: Z3Expr, b: Z3Expr, x: Z3Expr) -> Z3Expr:
    return tables.z3.And(
        a != b, tables.writes(a, x), tables.writes(b, x), tables.version(a) < tables.version(b)
    )


def _first_committer(order: str) -> Lemma:
    """Return the lemma that writers see every earlier write of their rows, by an acyclic order."""

    def missed(theory: Theory, i: Z3Expr, j: Z3Expr, x: Z3Expr) -> Z3Expr:
        tables = theory.tables
        unseen = tables.relation("unseen")(i, j)
        return tables.z3.And(tables.writes(i, x), tables.writes(j, x), unseen)

    def claim(theory: Theory) -> Z3Expr:
        tables = theory.tables
        z3 = tables.z3
        return tables.domain.forall(
            (T, T, T, ROW),
            lambda i, j, k, x: z3.Implies(
                z3.And(
                    missed(theory, i, j, x),
                    tables.first(k, x, tables.read(j)),
                    z3.Or(k == i, tables.version(k) < tables.version(i)),
                ),
                False,
            ),
        )

    def hence(theory: Theory) -> Z3Expr:
        tables = theory.tables
        return tables.domain.forall(
            (T, T, ROW), lambda i, j, x: tables.z3.Not(missed(theory, i, j, x))
        )

    words = (
        f"no writer commits without seeing the first write of a row that it writes: else the order"
        f" by {order} would have a cycle"
    )
    return Lemma(
        "first-committer-wins", words, ROWS | {"snapshot", "no-restores"}, claim, hence, helps=True
    )


def _next_is_first() -> Lemma:
    """Return the lemma that relates adjacent versions to the last and the first writer of a row."""

    def claim(theory: Theory) -> Z3Expr:
        tables = theory.tables
        z3, version = tables.z3, tables.version

        def of_two(i: Z3Expr, j: Z3Expr, x: Z3Expr) -> Z3Expr:
            return z3.Implies(
                z3.And(_next_to(tables, i, j), tables.writes(j, x)), tables.first(j, x, version(i))
            )

        def of_one(i: Z3Expr, x: Z3Expr) -> Z3Expr:
            return z3.Implies(tables.writes(i, x), tables.last(i, x, version(i)))

        return z3.And(
            tables.domain.forall((T, T, ROW), of_two), tables.domain.forall((T, ROW), of_one)
        )

    words = (
        "a row's last writer up to its version and, if it is the next one, first after a version"
    )
    return Lemma("next-is-first", words, frozenset(), claim, claim)


def _next_to(tables: TableVocabulary, i: Z3Expr, j: Z3Expr) -> Z3Expr:
    z3, version = tables.z3, tables.version
    return z3.And(tables.relation("log")(i, j), version(j) == version(i) + 1)


def _reader(order: str) -> Lemma:
    """Return the lemma that a writer precedes each reader of all of its version."""

    def claim(theory: Theory) -> Z3Expr:
        tables, before = theory.tables, theory.order(order)
        z3 = tables.z3
        return tables.domain.forall(
            (T, T, PREDICATE),
            lambda i, r, p: z3.Implies(
                z3.And(tables.writer(i), tables.reads_all(r, p, i)), before(i, r)
            ),
        )

    words = f"a writer precedes each reader that sees its whole version in the order by {order}"
    return Lemma("before-its-reader", words, WRITTEN, claim, claim)


def _missed(order: str) -> Lemma:
    """Return the lemma that a reader of all of a version precedes the next version's writer."""

    def claim(theory: Theory) -> Z3Expr:
        tables, before = theory.tables, theory.order(order)
        z3 = tables.z3
        return tables.domain.forall(
            (T, T, T, PREDICATE),
            lambda i, j, r, p: z3.Implies(
                z3.And(_next_to(tables, i, j), tables.reads_all(r, p, i)), before(r, j)
            ),
        )

    words = f"such a reader precedes the next writer in the order by {order}"
    return Lemma("behind-its-reader", words, WRITTEN, claim, claim)


def _next(order: str) -> Lemma:
    """Return the lemma that a writer precedes the writer of the next version."""

    def claim(theory: Theory) -> Z3Expr:
        tables, before = theory.tables, theory.order(order)
        return tables.domain.forall(
            (T, T), lambda i, j: tables.z3.Implies(_next_to(tables, i, j), before(i, j))
        )

    words = f"a writer precedes the next one in the order by {order}"
    return Lemma("next-version", words, frozenset({"readers"}), claim, claim)


def _log(order: str) -> Lemma:
    """Return the lemma that the order contains the log; by induction on the writers in between."""

    def claim(theory: Theory) -> Z3Expr:
        tables, before = theory.tables, theory.order(order)
        z3, log = tables.z3, tables.relation("log")

        def step(i: Z3Expr, j: Z3Expr) -> Z3Expr:
            between = tables.domain.forall(
                (T,), lambda k: z3.Implies(z3.And(log(i, k), log(k, j)), before(k, j))
            )
            return z3.Implies(z3.And(log(i, j), between), before(i, j))

        return tables.domain.forall((T, T), step)

    def hence(theory: Theory) -> Z3Expr:
        tables = theory.tables
        return inclusion_formula(tables, tables.relation("log"), theory.order(order))

    words = (
        f"the order by {order} agrees with the log on two writers if it does on those between them"
    )
    return Lemma("whole-log", words, frozenset({"gapless"}), claim, hence)
