"""The verb ``compare``: which levels imply which, with the smallest history on every step down.

What histories there are to ask is asked of all: a history says which levels admit it, and of any two of which one
does and the other does not it says that the first does not imply the second. What no history so far speaks
against is a preorder, and of that only the neighbours are asked: is it in the texts (``proving.implication``), or by a
theorem on tables (``proving.proof``), or is there nothing up to the bound (``separate``)? Whatever is found
is asked of all again. So the rest follows, because implying is transitive. What was proved and found all the
same ends in an error.

Choices. Of abstract histories the version orders may be open or observed; what a level says of the one says
little of the other, so both are searched. Of two histories with as many transactions the one that needs no
observer is shown. If some level cannot do without version orders, only what is observed is searched.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise, permutations
from time import monotonic
from typing import TYPE_CHECKING, Literal

from isolitmus.checker.lattice import BY_TEXT, Inclusion, Lattice, Lattices, size_of
from isolitmus.checker.proving.implication import structural
from isolitmus.checker.reading.histories import check_history
from isolitmus.checker.running.execute import judge_execution
from isolitmus.checker.searching import abstract
from isolitmus.checker.searching.shipped import shipped_histories
from isolitmus.checker.separation import (
    ABSTRACT,
    ABSTRACT_SIZES,
    same_format,
    scope_words,
    separate,
)
from isolitmus.model.budget import Budget
from isolitmus.model.errors import Disagreement, IsolitmusError
from isolitmus.model.litmus import HistoryTest, Litmus
from isolitmus.model.number import many
from isolitmus.specs.catalogue import scope as named_scope
from isolitmus.specs.formats import format_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from networkx import DiGraph

    from isolitmus.checker.answer import Separation
    from isolitmus.model.execution import Execution
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec
    from isolitmus.model.verdict import Verdict

__all__ = ["compare"]

ANSWERS = {"allowed": True, "forbidden": False}
PROOF_SECONDS = 5.0
"""What a theorem on tables may take, where it is looked for beside a search that found nothing."""


def compare(
    specs: Sequence[Spec],
    universe: Scope | Literal["abstract"] | None = None,
    *,
    focus: Sequence[str] = (),
    transactions: int | None = None,
    budget: Budget | None = None,
    progress: Callable[[str], None] | None = None,
) -> Lattices:
    """Which of the specs imply which others, and the smallest histories that tell neighbours apart.

    ``universe``: a scope over tables, or ``"abstract"`` (default: in both, whatever can be asked there).
    ``focus``: names of the specs that are to be placed among the others, which the answer's words are about
    (default: all). ``transactions``: how many a history has at most (default: what the universe says). ``budget``: once it is spent the rest is
    unknown. ``progress`` is told what is asked. IsolitmusError if fewer than two are given, two have one name, or no
    two can be asked of one universe.

    >>> from isolitmus.specs import level
    >>> names = ["serializable", "snapshot-isolation", "prefix-consistency"]
    >>> found = compare([level(name) for name in names], "abstract")
    >>> [edge.forward.evidence for edge in found.lattices[0].edges]
    ['proved', 'proved']
    >>> [str(t) for t in found.lattices[0].edges[1].back.test.history.transactions]
    ['r(x0) w(x1)', 'r(x0) w(x2)']
    """
    _refuse(specs)
    form = format_named(same_format(*specs))
    inside: dict[str, frozenset[str]] = {}
    if universe in (None, ABSTRACT) and not any(spec.format for spec in specs):
        inside[ABSTRACT] = abstract.NAMES
    scopes: dict[str, Scope] = {}
    if universe != ABSTRACT:
        over = universe or (named_scope(form.universe) if form.universe else None)
        if over is not None:
            scopes[over.name] = over
            inside[over.name] = frozenset(form.terms)
    fitting = {
        where: [spec for spec in specs if not _lacked(spec, where, known)]
        for where, known in inside.items()
    }
    placed = {spec.name for some in fitting.values() if len(some) > 1 for spec in some}
    apart = {spec.name: _lacking(spec, inside) for spec in specs if spec.name not in placed}
    if not placed:
        said = "; ".join(f"{name} {why}" for name, why in apart.items())
        raise IsolitmusError(f"no two of these can be asked in one universe: {said}")
    budget = budget or Budget()
    lattices = []
    for where, some in fitting.items():
        if len(some) > 1:
            searched = scopes.get(where, ABSTRACT)
            placing = _Placing(some, searched, transactions, budget, progress)
            chosen = tuple(name for name in focus if name in {spec.name for spec in some})
            lattices.append(placing.lattice(chosen))
    return Lattices(tuple(lattices), apart)


def _refuse(specs: Sequence[Spec]) -> None:
    if len(specs) < 2:
        raise IsolitmusError(f"{many(len(specs), 'level')} to compare; two at least are wanted")
    names = [spec.name for spec in specs]
    for spec in specs:
        if names.count(spec.name) > 1:
            raise IsolitmusError(f"two of the levels are called {spec.name}; rename a file")
        if spec.silences:
            raise IsolitmusError(
                f"{spec.name} is silent on some histories, so of them nobody can say who implies whom; ask"
                f" isolitmus separate {spec.name} OTHER"
            )


def _lacked(spec: Spec, where: str, known: frozenset[str]) -> list[str]:
    """The names that a universe does not have, nor the spec binds there."""
    return sorted(spec.needs - (abstract.names_for(spec) if where == ABSTRACT else known))


def _lacking(spec: Spec, inside: dict[str, frozenset[str]]) -> str:
    lacks = [
        f"universe '{where}' does not have {', '.join(lacked)}"
        if (lacked := _lacked(spec, where, known))
        else f"in universe '{where}' it is alone"
        for where, known in inside.items()
    ]
    return "; ".join(lacks)


@dataclass(frozen=True, slots=True)
class _Told:
    """A history, and which specs admit it."""

    test: HistoryTest | Litmus
    admits: dict[str, bool]

    def against(self, a: str, b: str) -> bool:
        """Whether it shows that one spec does not imply another."""
        return self.admits[a] and not self.admits[b]


@dataclass
class _Placing:
    """One universe, what is known in it so far, and what is still to be asked."""

    specs: Sequence[Spec]
    universe: Scope | Literal["abstract"]
    transactions: int | None
    budget: Budget
    progress: Callable[[str], None] | None
    told: list[_Told] = field(default_factory=list)
    proofs: dict[tuple[str, str], str] = field(default_factory=dict)
    answers: dict[tuple[str, str], Separation] = field(default_factory=dict)
    assumed: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.by_name = {spec.name: spec for spec in self.specs}
        self.observed = abstract.observes_versions(*self.specs)
        self.start = monotonic()

    def lattice(self, focus: tuple[str, ...]) -> Lattice:
        """What comes of it."""
        for first, second in permutations(self.specs, 2):
            proof = structural(first, second)
            if proof is not None:
                self.proofs[first.name, second.name] = f"{BY_TEXT}: {proof}"
        if self.universe == ABSTRACT:
            for test in shipped_histories():
                self.tell(test, None)
        possible = self.possible()
        while unasked := self.unasked():
            for k, (a, b) in enumerate(unasked):
                self.say(f"{a} and {b}, {len(unasked) - k} to be asked")
                if possible.has_edge(a, b):
                    self.ask(a, b)
                possible = self.possible()
        for one, other in self.steps(possible):
            if (other[0], one[0]) not in self.answers and not possible.has_edge(other[0], one[0]):
                self.say(f"the smallest between {one[0]} and {other[0]}")
                self.ask(other[0], one[0])
        return self.done(focus)

    @property
    def sizes(self) -> Sequence[int]:
        """How many transactions the histories have that are searched."""
        usual = ABSTRACT_SIZES if self.universe == ABSTRACT else self.universe.transactions
        if self.transactions is None:
            return usual
        return range(min(*usual, self.transactions), self.transactions + 1)

    @property
    def called(self) -> tuple[str, str]:
        """The universe, in a word and in words."""
        if self.universe != ABSTRACT:
            return self.universe.name, scope_words(self.universe)
        orders = "observed" if self.observed else "open or observed"
        keys = len(abstract.KEYS)
        return ABSTRACT, f"universe 'abstract' (at most {keys} keys, version orders {orders})"

    def say(self, text: str) -> None:
        if self.progress is not None:
            self.progress(text)

    def possible(self) -> DiGraph:
        """Who implies whom for all that is known: no history speaks against it."""
        from networkx import DiGraph

        graph = DiGraph()
        graph.add_nodes_from(self.by_name)
        graph.add_edges_from(
            (a, b)
            for a, b in permutations(self.by_name, 2)
            if not any(one.against(a, b) for one in self.told)
        )
        return graph

    def settled(self) -> DiGraph:
        """Who is proved, or found, to imply whom, and all that follows."""
        from networkx import DiGraph, transitive_closure

        graph = DiGraph()
        graph.add_nodes_from(self.by_name)
        graph.add_edges_from(self.proved)
        graph.add_edges_from(pair for pair, one in self.answers.items() if one.found is False)
        return transitive_closure(graph)

    @property
    def proved(self) -> list[tuple[str, str]]:
        """What is proved. A theorem on tables has its premises: what is outside of them may speak against it."""
        return [pair for pair in self.proofs if not any(one.against(*pair) for one in self.told)]

    def unasked(self) -> list[tuple[str, str]]:
        """Neighbours of which it is open whether one implies the other: if all do, the rest follows."""
        settled = self.settled()
        possible = self.possible()
        wanted: list[tuple[str, str]] = []
        for node in _equals(possible):
            if len(node) > 1:
                wanted += [*pairwise(node), (node[-1], node[0])]
        wanted += [(one[0], other[0]) for one, other in self.steps(possible)]
        return [pair for pair in wanted if not settled.has_edge(*pair) and pair not in self.answers]

    def steps(self, possible: DiGraph) -> Iterator[tuple[list[str], list[str]]]:
        """Neighbours among those that may be equal, the stronger first."""
        from networkx import DiGraph, transitive_reduction

        nodes = _equals(possible)
        graph = DiGraph()
        graph.add_nodes_from(range(len(nodes)))
        for (i, one), (j, other) in permutations(enumerate(nodes), 2):
            if possible.has_edge(one[0], other[0]):
                graph.add_edge(i, j)
        for i, j in sorted(transitive_reduction(graph).edges):
            yield nodes[i], nodes[j]

    def ask(self, a: str, b: str) -> None:
        """What the first admits and the second forbids: the smallest, or none, or unknown."""
        one, other = self.by_name[a], self.by_name[b]
        answer = self.separated(one, other)
        self.answers[a, b] = answer
        self.assumed |= dict.fromkeys(answer.assumptions)
        if answer.litmus is not None:
            self.tell(answer.litmus, answer.execution)
        elif answer.found is False and self.universe != ABSTRACT:
            self.prove(one, other)

    def separated(self, one: Spec, other: Spec) -> Separation:
        """The answer of ``separate``; of abstract histories, whether the version orders are observed or not."""
        sizes = self.sizes
        first = separate(
            one,
            other,
            self.universe,
            observed=self.observed,
            transactions=sizes,
            budget=self.budget,
        )
        looks = abstract.uses_versions(one) or abstract.uses_versions(other)
        if self.universe != ABSTRACT or self.observed or not looks or first.found is None:
            return first
        if first.transactions is not None and first.ships is None:
            if first.transactions <= min(self.sizes):
                return first
            sizes = range(min(self.sizes), first.transactions)
        second = separate(
            one,
            other,
            self.universe,
            observed=True,
            transactions=sizes,
            shipped=False,
            budget=self.budget,
        )
        if second.litmus is None:
            return first if second.found is False else second
        return second

    def prove(self, one: Spec, other: Spec) -> None:
        """A theorem on tables, if it is found fast."""
        from isolitmus.checker.proving.arguments import Question
        from isolitmus.checker.proving.proof import prove
        from isolitmus.checker.proving.scope import statements

        if format_named(same_format(one, other)).carry_out is not None:
            return
        proof = prove(Question(one, other), budget=self.budget.within(PROOF_SECONDS))
        if proof.holds:
            said = f"for any {statements(proof.premises)}"
            self.proofs[one.name, other.name] = said
            self.assumed |= dict.fromkeys(premise.sentence for premise in proof.premises)

    def tell(self, test: HistoryTest | Litmus, execution: Execution | None) -> None:
        """What every spec says of a history, if each says something."""
        said = {spec.name: str(self.verdict(test, execution, spec)) for spec in self.specs}
        if {*said.values()} <= ANSWERS.keys():
            one = _Told(test, {name: ANSWERS[word] for name, word in said.items()})
            for (a, b), proof in self.proofs.items():
                if proof.startswith(BY_TEXT) and one.against(a, b):
                    raise Disagreement(
                        f"{a} implies {b} by their texts, and a history tells them apart:\n{test}"
                    )
            self.told.append(one)
        elif execution is not None or test.path is None:
            raise Disagreement(f"{test.name} has no verdict of some: {said}")

    def verdict(
        self, test: HistoryTest | Litmus, execution: Execution | None, spec: Spec
    ) -> Verdict:
        if isinstance(test, HistoryTest):
            return check_history(test.history, spec)
        assert execution is not None
        return judge_execution(execution, spec)

    def done(self, focus: tuple[str, ...]) -> Lattice:
        """The lattice of what is known now."""
        from networkx import DiGraph, transitive_closure

        settled = self.settled()
        texts = [pair for pair in self.proved if self.proofs[pair].startswith(BY_TEXT)]
        chains = {
            how: transitive_closure(DiGraph(pairs))
            for how, pairs in ((BY_TEXT, texts), ("by theorems", self.proved))
        }
        bound = f"up to {many(max(self.sizes), 'transaction')}"
        ended = next((one.ended for one in self.answers.values() if one.ended), None)
        inclusions: dict[tuple[str, str], Inclusion] = {}
        for a, b in permutations(self.by_name, 2):
            answer = self.answers.get((a, b))
            apart = [one for one in self.told if one.against(a, b)]
            if apart:
                found = answer is not None and answer.litmus is not None
                test = answer.litmus if found and answer is not None else None
                least = min((one.test for one in apart), key=size_of)
                smallest = found and answer is not None and answer.ships is None
                known = Inclusion(a, b, holds=False, test=test or least, smallest=smallest)
            elif settled.has_edge(a, b):
                proof = self.proofs.get((a, b), "")
                by = next((how for how, chain in chains.items() if chain.has_edge(a, b)), "")
                if not proof and by:
                    proof = f"{by}, step by step"
                known = Inclusion(a, b, holds=True, proof=proof, bound="" if proof else bound)
            else:
                why = ended if answer is None else answer.bound
                known = Inclusion(a, b, holds=None, bound=why or "it was not asked")
            inclusions[a, b] = known
        return Lattice(
            *self.called,
            tuple(self.by_name),
            inclusions,
            tuple(self.assumed),
            focus,
            ended,
            monotonic() - self.start,
        )


def _equals(possible: DiGraph) -> list[list[str]]:
    """The specs, those together that imply each other, in the order of the graph."""
    place = {name: k for k, name in enumerate(possible)}
    seen: dict[str, list[str]] = {}
    for name in possible:
        both = [o for o in possible[name] if possible.has_edge(o, name)]
        node = sorted([name, *both], key=place.__getitem__)
        seen.setdefault(node[0], node)
    return list(seen.values())
