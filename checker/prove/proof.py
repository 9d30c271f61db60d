"""Proofs that a spec admits nothing that another forbids, for any number of transactions.

A solver looks for a counterexample to each lemma of the argument. If none exists, the lemma holds
for any number of transactions. If the solver gives no answer, it looks for a counterexample with
few transactions, rows and files, which is decidable. Such a counterexample refutes the lemma, not
necessarily the claim: whether a history exists is for the search to decide.

A lemma may use all lemmas before it. Where one of these is not proved, a graph that breaks it is no
counterexample to a later lemma, and neither is one that breaks a premise of any lemma. A lemma that
follows from unproved ones is not derived; what fails, if anything, is a lemma that it rests on.

A premise about statements, such as that all their reads are tracked, bounds a proof as a number of
transactions would. It is therefore stated in the headline, and every litmus test of the catalogue
is checked. A test that the first spec admits and the second forbids must violate some premise:
otherwise it would refute the proof.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

from isolitmus.checker.delta.frame import delta_frame
from isolitmus.checker.execution.commit_loop import execute, unfit_table
from isolitmus.checker.judge.compiled_semantics import compile_spec
from isolitmus.checker.judge.read_nodes import needs_reads
from isolitmus.checker.prove.arguments import Question, Theory, arguments
from isolitmus.checker.prove.formula_semantics import BoundedDomain, UnboundedDomain, Z3Expr
from isolitmus.checker.prove.premises import find_violated_premises
from isolitmus.checker.prove.structural_implication import derive_from_texts
from isolitmus.checker.solver.refutation import Refutation
from isolitmus.checker.solver.smt import ask_solver as answer_of
from isolitmus.model.budget import Budget
from isolitmus.model.display import ReadableRepr, first_lines
from isolitmus.model.errors import Disagreement, Limit, UndeterminedError
from isolitmus.model.litmus import Litmus
from isolitmus.specs.files.catalogue import litmus, litmus_names

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from isolitmus.checker.prove.arguments import Lemma
    from isolitmus.checker.prove.formula_semantics import Domain
    from isolitmus.checker.prove.premises import Premise

DEPENDENCIES = ("wr", "ww", "rw")

SMALL = ((2, 1, 1), (3, 1, 1), (3, 2, 2), (4, 2, 2))
"""Numbers of transactions, rows and files of a counterexample to a lemma, tried in this order."""
SECONDS = 20.0
QUICK = 2_000_000
"""Solver units spent on a lemma before a counterexample is searched.

They take about two seconds on one machine.
A lemma that holds needs fewer. Units, unlike seconds, are the same on all machines.
"""
HINT = 500_000
"""Solver units spent on a lemma that may fail."""
BRIEF = 100_000
"""Solver units spent on whether a lemma holds without one of its premises."""
LONGER = 1_000_000
"""The same without an earlier lemma, which brings all premises of its own."""


Outcome = Literal["holds", "fails", "not derived", "unknown"]
OUTCOMES: dict[str, Outcome] = {"unsat": "holds", "sat": "fails", "unknown": "unknown"}


@dataclass(frozen=True, slots=True)
class ProofStep:
    """Result of the attempt to prove a lemma."""

    lemma: str
    """Name of the lemma."""
    words: str
    """Statement of the lemma."""
    outcome: Outcome
    """Whether it holds, fails, is not derived because it rests on an unproved lemma, or unknown."""
    seconds: float
    """Run time in seconds."""
    took: frozenset[str] = frozenset()
    """Names of the premises and lemmas that the solver used."""
    counterexample: tuple[str, ...] = ()
    """Counterexample as text; empty if there is none."""
    refutation: Refutation | None = None
    """Solver question that establishes it, if there is one."""
    rests_on: tuple[str, ...] = ()
    """Names of the unproved lemmas from which it would follow, if it is not derived."""

    @property
    def status(self) -> str:
        """Outcome in words, as the predicate of the lemma.

        Examples
        --------
        >>> ProofStep("log-order", "", "not derived", 0.0, rests_on=("as-it-was-read",)).status
        'is not derived: it rests on as-it-was-read'
        """
        if self.outcome == "not derived":
            return f"is not derived: it rests on {' and '.join(self.rests_on)}"
        return "is unknown" if self.outcome == "unknown" else self.outcome

    def to_json(self) -> dict[str, object]:
        """Return the step in the form of ``separate --json``."""
        return {
            "lemma": self.lemma,
            "words": self.words,
            "outcome": self.outcome,
            "rests_on": list(self.rests_on),
            "counterexample": list(self.counterexample),
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True, slots=True)
class Proof(ReadableRepr):
    """Proof that a spec admits nothing that another forbids, or an attempt at one."""

    question: Question
    """Claim to be proved."""
    steps: tuple[ProofStep, ...]
    """Results of the lemmas."""
    premises: tuple[Premise, ...]
    """Premises that the proof used, or that an attempt could have used."""
    seconds: float
    """Run time in seconds."""
    holds: bool
    """True if it is a proof."""

    def __repr__(self) -> str:
        """Return the claim and its lemmas as text."""
        claim = f"{self.question.a.name} admits nothing that {self.question.b.name} forbids"
        steps = (f"  {step.lemma}, {step.outcome}: {step.words}" for step in self.steps)
        return first_lines([f"{'proved' if self.holds else 'not proved'}: {claim}", *steps])

    @property
    def failed(self) -> tuple[ProofStep, ...]:
        """Lemmas that were not proved."""
        return tuple(step for step in self.steps if step.outcome != "holds")


@dataclass(frozen=True, slots=True)
class ProofAttempt:
    """Proof, or an attempt at one, with what it covers."""

    proof: Proof
    """The proof with its lemmas, proved or not."""
    universe: str
    """Search space of the claim."""
    statements: str
    """Statements that the claim covers, as text."""
    assumed: tuple[str, ...]
    """Assumptions of the proof."""
    outside: Callable[[], tuple[OutsideTest, ...]]
    """Function that returns the litmus tests outside of the proof's scope."""


def prove(
    question: Question, *, without: Collection[str] = (), budget: Budget | None = None
) -> Proof:
    """Return a proof of the claim, or the lemmas of a failed attempt.

    Parameters
    ----------
    question : Question
        Claim to be proved.
    without : collection of str
        Names of premises that must not be used.
    budget : Budget, optional
        Limit of all lemmas together; lemmas after it is spent are unknown. Without a time limit,
        each solver question has SECONDS.

    Examples
    --------
    >>> from isolitmus.specs import level
    >>> question = Question(level("write-serializable"), level("snapshot-isolation"))
    >>> proof = prove(question)
    >>> proof.holds, [step.lemma for step in proof.steps]
    (True, ['row-order', 'first-committer-wins', 'no-aborted-read', 'snapshot'])
    >>> prove(question, without=["snapshot"]).failed[0].lemma
    'snapshot'
    """
    start = monotonic()
    budget = budget or Budget()
    premises = tuple(p for p in question.premises if p.name not in without)
    steps: list[ProofStep] = []
    for spec in (question.a, question.b):
        if needs_reads(spec):
            words = f"{spec.name} constrains single reads; no argument does"
            steps.append(ProofStep("reads", words, "unknown", 0.0))
            return Proof(question, tuple(steps), premises, 0.0, holds=False)
    known: list[Lemma] = []
    unproved: list[Lemma] = []
    for choices in arguments(question):
        for lemma in choices:
            obligation = _Obligation(
                question, lemma, tuple(known), premises, budget, tuple(unproved)
            )
            step = obligation.step(last=lemma is choices[-1] and not lemma.helps)
            if step.outcome == "holds":
                known.append(lemma)
                break
        steps.append(step)
        if step.outcome != "holds" and lemma.hence is not None:
            unproved.append(lemma)
        if step.outcome != "holds" and not lemma.helps:
            steps = _with_counterexamples(steps, step, unproved, obligation)
            return Proof(question, tuple(steps), premises, monotonic() - start, holds=False)
    used = _used(steps, {axiom.name for axiom in question.b.axioms})
    took = frozenset[str]().union(*(step.took for step in used))
    if not question.every_version_read and _reads_one_version(question):
        took |= {"snapshot"}
    needed = tuple(p for p in premises if p.name in took)
    return Proof(question, used, needed, monotonic() - start, holds=True)


def _with_counterexamples(
    steps: list[ProofStep], goal: ProofStep, unproved: Sequence[Lemma], last: _Obligation
) -> list[ProofStep]:
    """Return the steps with counterexamples to the lemmas on which a goal rests.

    They satisfy all premises, not only those that the lemma may use.
    """
    found = []
    lemmas = {lemma.name: lemma for lemma in unproved if lemma.name in goal.rests_on}
    for step in steps:
        if step.lemma in lemmas and step.outcome == "unknown":
            obligation = replace(last, lemma=lemmas[step.lemma], unproved=(), every_premise=True)
            counterexample = obligation.refute_among_few()
            if counterexample is not None:
                failed = replace(step, outcome="fails", counterexample=counterexample)
                found.append(failed)
                continue
        found.append(step)
    return found


def _reads_one_version(question: Question) -> bool:
    """Return whether a claim holds only where each transaction reads one version.

    The formulas relate one version to each transaction, whatever premises the solver used. What
    follows from the texts holds of any relations.
    """
    reads = not question.b.needs.isdisjoint({"wr", "rw"})
    return reads and derive_from_texts(question.a, question.b) is None


def _used(steps: list[ProofStep], goals: set[str]) -> tuple[ProofStep, ...]:
    """Return the steps that the goals depend on, directly or through other lemmas."""
    wanted = set(goals)
    for step in reversed(steps):
        if step.lemma in wanted:
            wanted |= step.took
    return tuple(step for step in steps if step.lemma in wanted)


@dataclass(frozen=True, slots=True)
class _Obligation:
    """Lemma to be proved from premises and earlier lemmas."""

    question: Question
    lemma: Lemma
    known: tuple[Lemma, ...]
    premises: tuple[Premise, ...]
    budget: Budget
    unproved: tuple[Lemma, ...] = ()
    """Earlier lemmas that were not proved."""
    every_premise: bool = False
    """Whether all premises may be used, not only those of the lemma."""

    @property
    def tools(self) -> dict[str, Callable[[Theory], Z3Expr]]:
        """Premises and results of earlier lemmas that may be used, by name.

        The solver reports which of them it used.
        """
        tools: dict[str, Callable[[Theory], Z3Expr]] = {}
        for lemma in self.known:
            if lemma.hence is not None:
                tools[lemma.name] = lemma.hence
        for premise in self.premises:
            if self.every_premise or premise.name in self.lemma.tools:
                tools[premise.name] = _of_tables(premise)
        return tools

    def step(self, *, last: bool) -> ProofStep:
        """Return the result of the lemma.

        Only with ``last``, if there is no alternative lemma, a counterexample is searched.
        """
        start = monotonic()
        answer, took = self.refute_everywhere(QUICK if last else HINT)
        rests_on: tuple[str, ...] = ()
        counterexample: tuple[str, ...] = ()
        # The solver's graph may break premises of other lemmas; only a search refutes the lemma.
        outcome: Outcome = "holds" if answer == "unsat" else "unknown"
        if answer != "unsat" and last:
            outcome, took, counterexample = self.supposing_all().searched()
            names = {lemma.name for lemma in self.unproved}
            rests_on = tuple(sorted(took & names)) if outcome == "holds" else ()
            outcome = "not derived" if rests_on else outcome
        refuted = self.refutation(took) if outcome == "holds" else None
        return ProofStep(
            self.lemma.name, self.lemma.words, outcome, monotonic() - start, took, counterexample,
            refuted, rests_on,
        )  # fmt: skip

    def supposing_all(self) -> _Obligation:
        """Return the obligation in which unproved lemmas may be used as if they were proved.

        With these, all premises may be used, since an unproved lemma brings none of its own.
        """
        known = (*self.known, *self.unproved)
        return replace(self, known=known, unproved=(), every_premise=bool(self.unproved))

    def searched(self) -> tuple[Outcome, frozenset[str], tuple[str, ...]]:
        """Return the outcome, the tools used, and a counterexample if a small one exists."""
        counterexample = self.refute_among_few()
        if counterexample is not None:
            return "fails", frozenset(), counterexample
        answer, took = self.refute_everywhere()
        return OUTCOMES[answer], took, ()

    def refutation(self, took: frozenset[str]) -> Refutation:
        """Return the solver question whether the lemma can fail if the tools it used hold."""

        def text() -> tuple[str]:
            solver, tools, _ = self.denied(UnboundedDomain(self.question.transactions))
            solver.add(*(tool for tool in tools if str(tool) in took))
            return (f"(set-logic ALL)\n{solver.to_smt2()}",)

        given = f", as {', '.join(sorted(took))} say" if took else ""
        return Refutation(self.lemma.name, f"{self.lemma.words}{given}", "smt2", text)

    @property
    def part(self) -> Budget:
        """Budget of one solver question."""
        return self.budget.within(SECONDS) if self.budget.seconds is None else self.budget

    def refute_everywhere(self, units: int = 0) -> tuple[str, frozenset[str]]:
        """Return the solver's answer for counterexamples of any size, and the tools used.

        `units` limits the solver's work, 0 for no limit. Tools that turn out to be unnecessary are
        removed.
        """
        part = self.part
        solver, tools, _ = self.denied(UnboundedDomain(self.question.transactions))
        solver.set("rlimit", units)
        answer = _ask(solver, tools, part)
        if answer != "unsat":
            return answer, frozenset()
        took = list(solver.unsat_core())
        lemmas = {lemma.name for lemma in self.known}
        for tool in sorted(took, key=lambda tool: str(tool) not in lemmas):
            solver.set("rlimit", LONGER if str(tool) in lemmas else BRIEF)
            fewer = [other for other in took if str(other) != str(tool)]
            if _ask(solver, fewer, part) == "unsat":
                took = fewer
        return answer, frozenset(map(str, took))

    def refute_among_few(self) -> tuple[str, ...] | None:
        """Return a counterexample with few transactions as text; None if none is found in time."""
        part = self.part
        most = self.question.transactions
        for transactions, rows, files in SMALL:
            if most is not None and transactions > most:
                break
            domain = BoundedDomain(transactions, rows, files)
            solver, tools, theory = self.denied(domain)
            if _ask(solver, tools, part) == "sat":
                return _words(theory, domain, solver.model())
        return None

    def denied(self, domain: Domain) -> tuple[Z3Expr, list[Z3Expr], Theory]:
        """Return a solver with the negated lemma, and the assumptions that its tools hold."""
        import z3

        theory = Theory(self.question, domain)
        claim = self.lemma.claim(theory)
        solver: Any = z3.Solver(ctx=domain.context)
        solver.set("random_seed", 0)
        assumed = []
        for name, tool in self.tools.items():
            assumed.append(z3.Bool(name, domain.context))
            solver.add(z3.Implies(assumed[-1], tool(theory)))
        solver.add(*theory.facts, *theory.formulas.facts, z3.Not(claim))
        return solver, assumed, theory


def _ask(solver: Any, assumptions: list[Z3Expr], budget: Budget) -> str:
    """Return the solver's answer, or "unknown" if it reaches its limit."""
    try:
        return answer_of(solver, assumptions, budget)
    except Limit:
        return "unknown"


def _of_tables(premise: Premise) -> Callable[[Theory], Z3Expr]:
    return lambda theory: premise.formula(theory.tables)


def _words(theory: Theory, domain: BoundedDomain, model: Z3Expr) -> tuple[str, ...]:
    """Return a counterexample as text: transactions in log order, and their dependencies."""
    tables = theory.tables

    def true(formula: Z3Expr) -> bool:
        return str(model.eval(formula, model_completion=True)) == "True"

    def number(term: Z3Expr) -> int:
        return int(str(model.eval(term, model_completion=True)))

    order = sorted(domain.transactions, key=lambda t: number(tables.position(t)))
    names = {t: f"t{k}" for k, t in enumerate(order, 1)}
    lines = []
    for t, name in names.items():
        place = f"version {number(tables.version(t))}, " if true(tables.writer(t)) else ""
        sets = [s for s in theory.sets if true(tables.members(s)(t))]
        lines.append(
            f"{name}: {place}reads version {number(tables.read(t))}"
            + "".join(f", {s}" for s in sets)
        )
    for kind in DEPENDENCIES:
        pairs = [(i, j) for i in order for j in order if true(tables.relation(kind)(i, j))]
        if pairs:
            lines.append(f"{kind}: " + ", ".join(f"{names[i]} → {names[j]}" for i, j in pairs))
    return tuple(lines)


@dataclass(frozen=True, slots=True)
class OutsideTest:
    """Litmus test outside of a theorem's scope, with the reasons, and whether the claim fails.

    The claim fails if the first spec admits the test and the second forbids it.
    """

    litmus: str
    why: tuple[str, ...]
    fails: bool

    def to_json(self) -> dict[str, object]:
        """Return the test in the form of ``separate --json``."""
        return {"litmus": self.litmus, "why": list(self.why), "fails": self.fails}


def scope_of_statements(premises: Sequence[Premise]) -> str:
    """Return the statements to which these premises restrict a proof.

    Examples
    --------
    >>> from isolitmus.checker.prove.premises import PREMISES
    >>> scope_of_statements([p for p in PREMISES if p.name in ("read-files", "sessions")])
    'statements on one Delta table, with tracked reads only, each in a session of its own'
    """
    said = dict.fromkeys(premise.scope for premise in premises if premise.scope)
    first = sorted(said, key=lambda words: not words.startswith("with "))
    return ", ".join(["statements on one Delta table", *first])


def outside_tests(question: Question, premises: Sequence[Premise]) -> tuple[OutsideTest, ...]:
    """Return the litmus tests that violate a premise or the bound under the first spec.

    Only transactions that take effect are considered.

    Raises
    ------
    Disagreement
        If a test refutes the claim and violates no premise.
    """
    admits, permits = compile_spec(question.a), compile_spec(question.b)
    found: list[OutsideTest] = []
    for name in litmus_names():
        test = litmus(name)
        if not isinstance(test, Litmus) or test.raw or unfit_table(test, question.a):
            continue
        try:
            done = execute(test, question.a)
            seen = delta_frame([event for event in done.events if not event.aborted], reasons=False)
            fails = admits(seen) and not permits(seen)
        except UndeterminedError:
            continue  # what the first spec looks at is not determined here
        why = ["spans several tables"] if len(test.tables) > 1 else []
        if not why:
            why = [p.outside or f"breaks {p.name}" for p in find_violated_premises(done, premises)]
        if question.transactions is not None and seen.transactions > question.transactions:
            why.append(f"has more than {question.transactions} transactions")
        if why:
            found.append(OutsideTest(name, tuple(dict.fromkeys(why)), fails))
        elif fails:
            raise Disagreement(
                f"{name}: {question.a.name} admits it and {question.b.name} forbids it, though it"
                " breaks no premise of the proof that there is no such history"
            )
    return tuple(found)
