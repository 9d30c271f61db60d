"""The verb ``separate --unbounded``: a proof by lemmas, and its scope.

The verb behind ``separate --unbounded``: prove the lemmas of an argument, and say what was assumed.

A lemma is denied before a solver. That there is no counterexample proves it, for any number of
transactions. Where the solver cannot say, counterexamples with a few transactions, rows and files
are looked for, which is decidable; one of these is what is shown of a lemma that fails. It is one
of the lemma, not of the question: whether there is a history is for the search to say.

What a theorem is about, in words; and which litmus tests of the catalogue are outside of that.

A premise that speaks of statements, that their reads are all tracked, bounds what is proved as much
as a number of transactions would. So it stands in the headline, and every test that ships is asked.
One that the first spec admits and the second forbids must be outside of some premise: else the
proof would be refuted.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

from isolitmus.checker.delta.frame import delta_frame
from isolitmus.checker.execution.commit_loop import execute, unfit_table
from isolitmus.checker.judge.compiled_semantics import compile_spec
from isolitmus.checker.judge.read_nodes import needs_reads
from isolitmus.checker.prove.arguments import Question, Theory, arguments
from isolitmus.checker.prove.formula_semantics import BoundedDomain, UnboundedDomain, Z3Expr
from isolitmus.checker.prove.premises import find_violated_premises
from isolitmus.checker.solver.circuits import ask_solver as answer_of
from isolitmus.checker.solver.refutation import Refutation
from isolitmus.model.budget import Budget
from isolitmus.model.display import ReadableRepr, first_lines
from isolitmus.model.errors import Disagreement, Limit
from isolitmus.model.litmus import Litmus
from isolitmus.specs.files.catalogue import litmus, litmus_names

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from isolitmus.checker.prove.arguments import Lemma
    from isolitmus.checker.prove.formula_semantics import Domain
    from isolitmus.checker.prove.premises import Premise

__all__ = ["OutsideTest", "Proof", "ProofStep", "outside_tests", "prove", "scope_of_statements"]

DEPENDENCIES = ("wr", "ww", "rw")

SMALL = ((2, 1, 1), (3, 1, 1), (3, 2, 2), (4, 2, 2))
"""So many transactions, rows and files a counterexample may have; the smallest is shown."""
SECONDS = 20.0
QUICK = 2_000_000
"""So many units of the solver's work, on one machine about two seconds, are spent before a
counterexample is looked for; a lemma that holds takes fewer. (Units, unlike seconds, count the same
on all.)
"""
HINT = 500_000
"""So many on a lemma that may fail."""
BRIEF = 100_000
"""So many on whether a lemma holds without one of its tools."""


Outcome = Literal["holds", "fails", "unknown"]
OUTCOMES: dict[str, Outcome] = {"unsat": "holds", "sat": "fails", "unknown": "unknown"}


@dataclass(frozen=True, slots=True)
class ProofStep:
    """What became of a lemma."""

    lemma: str
    """Its name."""
    words: str
    """What it says."""
    outcome: Outcome
    """Whether it was proved."""
    seconds: float
    """How long it took."""
    took: frozenset[str] = frozenset()
    """The premises and lemmas that the solver used."""
    counterexample: tuple[str, ...] = ()
    """If there is one, in words."""
    refutation: Refutation | None = None
    """The question by which it holds, where it was asked of a solver."""

    def to_json(self) -> dict[str, object]:
        """The step as ``separate --json`` has it."""
        return {
            "lemma": self.lemma,
            "words": self.words,
            "outcome": self.outcome,
            "counterexample": list(self.counterexample),
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True, slots=True)
class Proof(ReadableRepr):
    """A proof that a spec admits nothing which another forbids, or an attempt at one."""

    question: Question
    """Which spec and which other."""
    steps: tuple[ProofStep, ...]
    """What became of each lemma."""
    premises: tuple[Premise, ...]
    """What it took, or what an attempt might have used."""
    seconds: float
    """How long it took."""
    holds: bool
    """It is a proof."""

    def __repr__(self) -> str:
        """What was to be proved, and its lemmas."""
        claim = f"{self.question.a.name} admits nothing that {self.question.b.name} forbids"
        steps = (f"  {step.lemma}, {step.outcome}: {step.words}" for step in self.steps)
        return first_lines([f"{'proved' if self.holds else 'not proved'}: {claim}", *steps])

    @property
    def failed(self) -> tuple[ProofStep, ...]:
        """The lemmas that were not proved."""
        return tuple(step for step in self.steps if step.outcome != "holds")


def prove(
    question: Question, *, without: Collection[str] = (), budget: Budget | None = None
) -> Proof:
    """The proof, or how far it came; ``without``: names of premises that are not to be used.
    ``budget``: of all lemmas together; each is unknown once it is spent, and if it has no
    time of its own, after each SECONDS that the solver takes to no avail.

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
            words = f"{spec.name} looks at reads one by one, and no argument does"
            steps.append(ProofStep("reads", words, "unknown", 0.0))
            return Proof(question, tuple(steps), premises, 0.0, holds=False)
    known: list[Lemma] = []
    for choices in arguments(question):
        for lemma in choices:
            obligation = _Obligation(question, lemma, tuple(known), premises, budget)
            step = obligation.step(last=lemma is choices[-1] and not lemma.helps)
            if step.outcome == "holds":
                known.append(lemma)
                break
        steps.append(step)
        if step.outcome != "holds" and not lemma.helps:
            return Proof(question, tuple(steps), premises, monotonic() - start, holds=False)
    used = _used(steps, {axiom.name for axiom in question.b.axioms})
    took = frozenset[str]().union(*(step.took for step in used))
    needed = tuple(p for p in premises if p.name in took)
    return Proof(question, used, needed, monotonic() - start, holds=True)


def _used(steps: list[ProofStep], goals: set[str]) -> tuple[ProofStep, ...]:
    """The steps that the goals took, and those that these took, and so on."""
    wanted = set(goals)
    for step in reversed(steps):
        if step.lemma in wanted:
            wanted |= step.took
    return tuple(step for step in steps if step.lemma in wanted)


@dataclass(frozen=True, slots=True)
class _Obligation:
    """A lemma to be proved from premises and the lemmas before it."""

    question: Question
    lemma: Lemma
    known: tuple[Lemma, ...]
    premises: tuple[Premise, ...]
    budget: Budget

    @property
    def tools(self) -> dict[str, Callable[[Theory], Z3Expr]]:
        """What may be used, by name: premises, and what lemmas gave. The solver says what it
        took.
        """
        tools: dict[str, Callable[[Theory], Z3Expr]] = {}
        for lemma in self.known:
            if lemma.hence is not None:
                tools[lemma.name] = lemma.hence
        for premise in self.premises:
            if premise.name in self.lemma.tools:
                tools[premise.name] = _of_tables(premise)
        return tools

    def step(self, *, last: bool) -> ProofStep:
        """What becomes of it; only if nothing else would do (``last``), its failing is looked
        into.
        """
        start = monotonic()
        counterexample: tuple[str, ...] = ()
        answer, took = self.refute_everywhere(QUICK if last else HINT)
        if answer != "unsat" and last:
            found = self.refute_among_few()
            if found is not None:
                answer, counterexample = "sat", found
            elif answer == "unknown":
                answer, took = self.refute_everywhere()
        name, words = self.lemma.name, self.lemma.words
        outcome = OUTCOMES[answer]
        refuted = self.refutation(took) if outcome == "holds" else None
        return ProofStep(name, words, outcome, monotonic() - start, took, counterexample, refuted)

    def refutation(self, took: frozenset[str]) -> Refutation:
        """The question whether the lemma fails although what it took holds."""

        def text() -> tuple[str]:
            solver, tools, _ = self.denied(UnboundedDomain(self.question.transactions))
            solver.add(*(tool for tool in tools if str(tool) in took))
            return (f"(set-logic ALL)\n{solver.to_smt2()}",)

        given = f", as {', '.join(sorted(took))} say" if took else ""
        return Refutation(self.lemma.name, f"{self.lemma.words}{given}", "smt2", text)

    @property
    def part(self) -> Budget:
        """What one question to the solver may take."""
        return self.budget.within(SECONDS) if self.budget.seconds is None else self.budget

    def refute_everywhere(self, units: int = 0) -> tuple[str, frozenset[str]]:
        """What the solver says of a counterexample of any size, and the tools that exclude it; with
        ``units``, if so much work is enough.
        """
        part = self.part
        solver, tools, _ = self.denied(UnboundedDomain(self.question.transactions))
        solver.set("rlimit", units)
        answer = _ask(solver, tools, part)
        if answer != "unsat":
            return answer, frozenset()
        took = list(solver.unsat_core())
        solver.set("rlimit", BRIEF)
        for tool in tuple(took):
            fewer = [other for other in took if str(other) != str(tool)]
            if _ask(solver, fewer, part) == "unsat":
                took = fewer
        return answer, frozenset(map(str, took))

    def refute_among_few(self) -> tuple[str, ...] | None:
        """A counterexample with a few transactions, in words; None if there is none, or no time."""
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
        """A solver to which the lemma's claim is denied, and what to assume: that the tools
        hold.
        """
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
    try:
        return answer_of(solver, assumptions, budget)
    except Limit:
        return "unknown"


def _of_tables(premise: Premise) -> Callable[[Theory], Z3Expr]:
    return lambda theory: premise.formula(theory.tables)


def _words(theory: Theory, domain: BoundedDomain, model: Z3Expr) -> tuple[str, ...]:
    """A counterexample: its transactions in the order of the log, and how they depend."""
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
    """A litmus test that a theorem does not speak of: its name, why, and whether the first spec
    admits there what the second forbids.
    """

    litmus: str
    why: tuple[str, ...]
    fails: bool

    def to_json(self) -> dict[str, object]:
        """The test as ``separate --json`` has it."""
        return {"litmus": self.litmus, "why": list(self.why), "fails": self.fails}


def scope_of_statements(premises: Sequence[Premise]) -> str:
    """Return the statements to which these premises restrict a proof.

    >>> from isolitmus.checker.prove.premises import PREMISES
    >>> scope_of_statements([p for p in PREMISES if p.name in ("read-files", "sessions")])
    'statements on one Delta table, with tracked reads only, each in a session of its own'
    """
    said = dict.fromkeys(premise.scope for premise in premises if premise.scope)
    first = sorted(said, key=lambda words: not words.startswith("with "))
    return ", ".join(["statements on one Delta table", *first])


def outside_tests(question: Question, premises: Sequence[Premise]) -> tuple[OutsideTest, ...]:
    """The litmus tests with statements that break one of the premises, or the bound, in what takes
    effect under the first spec; Disagreement if one refutes what was proved and breaks none.
    """
    admits, permits = compile_spec(question.a), compile_spec(question.b)
    found: list[OutsideTest] = []
    for name in litmus_names():
        test = litmus(name)
        if not isinstance(test, Litmus) or test.raw or unfit_table(test, question.a):
            continue
        done = execute(test, question.a)
        seen = delta_frame([event for event in done.events if not event.aborted], reasons=False)
        fails = admits(seen) and not permits(seen)
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
