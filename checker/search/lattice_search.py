"""The verb ``compare``: the implication lattice of levels with few questions.

Who implies whom in one universe, by asking as little as possible.

What histories there are to ask is asked of all: a history says which levels admit it, and of any
two of which one does and the other does not it says that the first does not imply the second. What
no history so far speaks against is a preorder, and of that only the neighbours are asked: is it in
the texts (``prove.structural_implication``), by the laws of histories (``prove.history_proof``) or
by a theorem on tables (``prove.proof``), or is there nothing up to the bound (``separate``)?
Whatever is found is asked of all again. So the rest follows, because implying is transitive. What
was proved and found all the same ends in an error.

Choices. Of abstract histories the version orders may be open or observed; what a level says of the
one says little of the other, so both are searched. Of two histories with as many transactions the
one that needs no observer is shown. If some level cannot do without version orders, only what is
observed is searched. A search of few transactions is fast, a proof takes seconds, a search of more
may take a minute: so it is in that order that they are tried.

The verb ``compare``: which levels imply which, with the smallest history on every step down.
"""

from __future__ import annotations

from collections import deque
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise, permutations, product
from time import monotonic
from typing import TYPE_CHECKING, Literal, NamedTuple

from isolitmus.checker.execution.commit_loop import judge_execution
from isolitmus.checker.execution.worker_processes import ignore_interrupts, process_pool
from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.checker.prove.history_proof import derive_inclusion
from isolitmus.checker.prove.structural_implication import derive_from_texts
from isolitmus.checker.search.lattice import BY_TEXT, Inclusion, Lattice, Lattices, history_size
from isolitmus.checker.search.separation import (
    ABSTRACT,
    ABSTRACT_SIZES,
    same_format,
    scope_words,
    separate,
)
from isolitmus.checker.universes import abstract
from isolitmus.checker.universes.abstract import with_serial_time
from isolitmus.checker.universes.catalogue_histories import shipped_histories
from isolitmus.model.budget import Budget
from isolitmus.model.display import count_of
from isolitmus.model.errors import Disagreement, IsolitmusError, Limit
from isolitmus.model.litmus import HistoryTest, Litmus
from isolitmus.model.verdict import Needs
from isolitmus.specs.files.catalogue import scope as named_scope
from isolitmus.specs.files.catalogue import spec as named
from isolitmus.specs.registries.formats import format_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import ProcessPoolExecutor

    from networkx import DiGraph

    from isolitmus.checker.search.separation_result import Separation
    from isolitmus.model.execution import Execution
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec
    from isolitmus.model.verdict import Verdict
    from isolitmus.specs.files.spec_catalogue import NameOrPath, SpecLike

__all__ = ["LatticeSearch", "compare"]

ANSWERS = {"allowed": True, "forbidden": False}
PROOF_SECONDS = 5.0
"""What a theorem on tables may take, where it is looked for beside a search that found nothing."""
SMALL = 3
"""So many transactions are searched before a proof is tried."""


@dataclass(frozen=True, slots=True)
class _Told:
    """A history, and which specs admit it, of those that it has the names for."""

    test: HistoryTest | Litmus
    admits: dict[str, bool]

    def against(self, a: str, b: str) -> bool:
        """Whether it shows that one spec does not imply another."""
        return self.admits.get(a) is True and self.admits.get(b) is False


class _Found(NamedTuple):
    """What is known of a pair once it was asked."""

    answer: Separation
    """What the search says."""
    proof: str = ""
    """Why the first implies the second, if that is proved."""


@dataclass
class LatticeSearch:
    """One universe, what is known in it so far, and what is still to be asked."""

    specs: Sequence[Spec]
    """What is compared."""
    universe: Scope | Literal["abstract"]
    """Where."""
    transactions: int | None
    """How many a history has at most; None: what the universe says."""
    budget: Budget
    """What it may take."""
    progress: Callable[[str], None] | None
    """Who is told what is asked."""
    pool: ProcessPoolExecutor | None = None
    """Other processes, if there are any."""
    processes: int = 1
    """How many."""
    told: list[_Told] = field(default_factory=list)
    """What histories say of every spec."""
    proofs: dict[tuple[str, str], str] = field(default_factory=dict)
    """Who is proved to imply whom, and why."""
    answers: dict[tuple[str, str], Separation] = field(default_factory=dict)
    """What was asked, by pair."""
    assumed: dict[str, None] = field(default_factory=dict)
    """What the answers rest on."""
    ended: str | None = None
    """The limit that ended the search."""

    def __post_init__(self) -> None:
        self.by_name = {spec.name: spec for spec in self.specs}
        self.observed = abstract.observes_versions(*self.specs)
        form = format_named(same_format(*self.specs))
        self.reads = self.universe != ABSTRACT and form.carry_out is not None
        self.start = monotonic()

    def lattice(self, focus: tuple[str, ...]) -> Lattice:
        """What comes of it; what is still to be asked once the budget is spent is unknown."""
        try:
            with self.budget.interrupting():
                self.search()
        except Limit as limit:
            self.ended = str(limit)
        return self.done(focus)

    def search(self) -> None:
        """Ask what is to be asked."""
        for first, second in permutations(self.specs, 2):
            proof = derive_from_texts(first, second, reads=self.reads)
            if proof is not None:
                self.proofs[first.name, second.name] = f"{BY_TEXT}: {proof}"
        if self.universe == ABSTRACT:
            for test in shipped_histories():
                self.tell(test, None)
        possible = self.possible()
        while unasked := self.unasked():
            self.ask(unasked, lambda pair: self.possible().has_edge(*pair))
        possible = self.possible()
        down = [(other[0], one[0]) for one, other in self.steps(possible)]
        down = [pair for pair in down if not possible.has_edge(*pair)]
        self.ask(down, lambda pair: pair not in self.answers)
        if self.universe != ABSTRACT:
            self.prove_shown()

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
        return ABSTRACT, f"search space 'abstract' (at most {keys} keys, version orders {orders})"

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
        """What is proved. A theorem on tables has its premises: what is outside of them may speak
        against it.
        """
        return [pair for pair in self.proofs if not any(one.against(*pair) for one in self.told)]

    def unasked(self) -> list[tuple[str, str]]:
        """Neighbours of which it is open whether one implies the other: if all do, the rest
        follows. What is left after that, as where a history says nothing to those that look at
        time, is asked pair by pair.
        """
        settled = self.settled()
        possible = self.possible()
        wanted: list[tuple[str, str]] = []
        for node in _equals(possible):
            if len(node) > 1:
                wanted += [*pairwise(node), (node[-1], node[0])]
        for one, other in self.steps(possible):
            wanted.append(next(pair for pair in product(one, other) if possible.has_edge(*pair)))
        open_still = [
            pair
            for pair in possible.edges
            if not settled.has_edge(*pair) and pair not in self.answers
        ]
        first = [pair for pair in dict.fromkeys(wanted) if pair in {*open_still}]
        ended = any(one.found is None for one in self.answers.values())
        return first if first or ended else open_still

    def steps(self, possible: DiGraph) -> Iterator[tuple[list[str], list[str]]]:
        """Neighbours among those that may be equal, the stronger first."""
        from networkx import DiGraph, transitive_reduction

        nodes = _equals(possible)
        graph = DiGraph()
        graph.add_nodes_from(range(len(nodes)))
        for (i, one), (j, other) in permutations(enumerate(nodes), 2):
            if any(possible.has_edge(*pair) for pair in product(one, other)):
                graph.add_edge(i, j)
        for i, j in sorted(transitive_reduction(graph).edges):
            yield nodes[i], nodes[j]

    def ask(
        self, pairs: Sequence[tuple[str, str]], worth: Callable[[tuple[str, str]], bool]
    ) -> None:
        """What the first of each pair admits and the second forbids, if it is still worth asking:
        so many at a time as there are processes, but one after the other in what follows from it.
        """
        begun: deque[tuple[tuple[str, str], Callable[[], _Found]]] = deque()
        todo = deque(pairs)
        while todo or begun:
            while todo and len(begun) < self.processes:
                pair = todo.popleft()
                if worth(pair):
                    begun.append((pair, self.begin(*pair)))
            if begun:
                pair, answer = begun.popleft()
                self.say(f"{' and '.join(pair)}, {len(todo) + len(begun)} pairs left")
                self.learn(*pair, answer())

    def begin(self, a: str, b: str) -> Callable[[], _Found]:
        """The question asked, of another process if there is one: what gives the answer. What
        happens on tables does not go from one process to another.
        """
        question = self.by_name[a], self.by_name[b], self.universe, self.sizes
        if self.pool is None or self.universe != ABSTRACT:
            return partial(_found, *question, self.budget, observed=self.observed)
        seconds = None if self.budget.seconds is None else self.budget.left
        with ignore_interrupts():
            asked = self.pool.submit(
                _found_within, question, seconds, self.budget.memory, observed=self.observed
            )
        return asked.result

    def learn(self, a: str, b: str, found: _Found) -> None:
        """What follows from an answer."""
        one, other = self.by_name[a], self.by_name[b]
        answer, proof = found
        self.answers[a, b] = answer
        if proof:
            self.proofs[a, b] = f"{BY_TEXT} and {proof}"
        self.assumed |= dict.fromkeys(answer.assumptions)
        if answer.litmus is not None:
            self.tell(answer.litmus, answer.execution)
        elif answer.found is False and self.universe != ABSTRACT:
            self.prove(one, other)

    def prove(self, one: Spec, other: Spec) -> bool:
        """Whether a theorem on tables says so, if it is found fast."""
        from isolitmus.checker.prove.arguments import Question
        from isolitmus.checker.prove.proof import prove, scope_of_statements

        if format_named(same_format(one, other)).carry_out is not None:
            return False
        proof = prove(Question(one, other), budget=self.budget.within(PROOF_SECONDS))
        if proof.holds:
            said = f"for any {scope_of_statements(proof.premises)}"
            self.proofs[one.name, other.name] = said
            self.assumed |= dict.fromkeys(premise.sentence for premise in proof.premises)
        return proof.holds

    def prove_shown(self) -> None:
        """Theorems on tables for what is shown and has no proof yet: round in a circle for equals,
        and for neighbours any pair of their equals.
        """
        possible = self.possible()
        settled = self.settled()
        asked = [
            [pair]
            for node in _equals(possible)
            if len(node) > 1
            for pair in (*pairwise(node), (node[-1], node[0]))
        ]
        asked += [[*product(one, other)] for one, other in self.steps(possible)]
        for pairs in asked:
            held = [pair for pair in pairs if settled.has_edge(*pair)]
            if not any(self.chain(held)):
                next(
                    (pair for pair in held if self.prove(*map(self.by_name.__getitem__, pair))),
                    None,
                )

    def chain(self, pairs: Sequence[tuple[str, str]]) -> Iterator[bool]:
        """Of each pair whether proofs lead from the one to the other, step by step."""
        from networkx import DiGraph, has_path

        graph = DiGraph(self.proved)
        for a, b in pairs:
            yield a in graph and b in graph and has_path(graph, a, b)

    def tell(self, test: HistoryTest | Litmus, execution: Execution | None) -> None:
        """What every spec says of a history, if each says something, or needs what it does not
        have; and of one in time, for those that need that, if it has none.
        """
        said = {spec.name: self.verdict(test, execution, spec) for spec in self.specs}
        asked = {name: str(verdict) for name, verdict in said.items() if not _untimed(verdict)}
        if {*asked.values()} <= ANSWERS.keys():
            one = _Told(test, {name: ANSWERS[word] for name, word in asked.items()})
            for (a, b), proof in self.proofs.items():
                if proof.startswith(BY_TEXT) and one.against(a, b):
                    raise Disagreement(
                        f"{a} implies {b} by their texts, and a history tells them apart:\n{test}"
                    )
            self.told.append(one)
            if (
                len(asked) < len(said)
                and isinstance(test, HistoryTest)
                and not test.history.schedule
            ):
                timed = with_serial_time(test.history)
                if timed is not None:
                    self.tell(replace(test, history=timed), None)
        elif execution is not None or test.path is None:
            raise Disagreement(f"{test.name} has no verdict of some: {asked}")

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
        bound = f"up to {count_of(max(self.sizes), 'transaction')}"
        ended = next((one.ended for one in self.answers.values() if one.ended), self.ended)
        inclusions: dict[tuple[str, str], Inclusion] = {}
        for a, b in permutations(self.by_name, 2):
            answer = self.answers.get((a, b))
            apart = [one for one in self.told if one.against(a, b)]
            if apart:
                found = answer is not None and answer.litmus is not None
                test = answer.litmus if found and answer is not None else None
                least = min((one.test for one in apart), key=history_size)
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
                known = Inclusion(a, b, holds=None, bound=why or "not checked")
            inclusions[a, b] = known
        return Lattice(
            *self.called,
            tuple(self.by_name),
            inclusions,
            tuple(self.assumed),
            focus,
            ended,
            monotonic() - self.start,
            self.sizes,
        )


def _untimed(verdict: Verdict) -> bool:
    """Whether a level has none because the history does not say when anything was."""
    return isinstance(verdict, Needs) and abstract.TIMES.issuperset(verdict.names)


def _separated(
    one: Spec,
    other: Spec,
    universe: Scope | Literal["abstract"],
    sizes: Sequence[int],
    budget: Budget,
    *,
    observed: bool,
) -> Separation:
    """The answer of ``separate``; of abstract histories, whether the version orders are observed or
    not.
    """
    ask = partial(separate, one, other, universe, budget=budget)
    first = ask(observed=observed, transactions=sizes).with_catalogue()
    looks = abstract.uses_versions(one) or abstract.uses_versions(other)
    if universe != ABSTRACT or observed or not looks or first.found is None:
        return first
    if first.transactions is not None and first.ships is None:
        if first.transactions <= min(sizes):
            return first
        sizes = range(min(sizes), first.transactions)
    second = ask(observed=True, transactions=sizes, shipped=False)
    if second.litmus is None:
        return first if second.found is False else second
    return second


def _found(
    one: Spec,
    other: Spec,
    universe: Scope | Literal["abstract"],
    sizes: Sequence[int],
    budget: Budget,
    *,
    observed: bool,
) -> _Found:
    """The answer of ``separate``, and of abstract histories why there is none, if that is proved;
    then no more were searched than it took to try.
    """
    few = [size for size in sizes if size <= SMALL]
    if universe != ABSTRACT or not few:
        return _Found(_separated(one, other, universe, sizes, budget, observed=observed))
    first = _separated(one, other, universe, few, budget, observed=observed)
    if first.found is not False:
        return _Found(first)
    derived = derive_inclusion(one, other, budget)
    if derived is not None:
        return _Found(first, str(derived))
    if len(few) == len(sizes):
        return _Found(first)
    return _Found(_separated(one, other, universe, sizes, budget, observed=observed))


def _found_within(
    question: tuple[Spec, Spec, Scope | Literal["abstract"], Sequence[int]],
    seconds: float | None,
    memory: float,
    *,
    observed: bool,
) -> _Found:
    """The same in another process, with a budget of its own."""
    return _found(*question, Budget(seconds, memory), observed=observed)


def _equals(possible: DiGraph) -> list[list[str]]:
    """The specs, those together that may imply each other, in the order of the graph."""
    from networkx import strongly_connected_components

    place = {name: k for k, name in enumerate(possible)}
    nodes = (
        sorted(node, key=place.__getitem__) for node in strongly_connected_components(possible)
    )
    return sorted(nodes, key=lambda node: place[node[0]])


def compare(
    specs: Sequence[SpecLike],
    universe: Scope | NameOrPath | None = None,
    *,
    focus: Sequence[str] = (),
    transactions: int | None = None,
    budget: Budget | None = None,
    processes: int = 1,
    progress: Callable[[str], None] | None = None,
) -> Lattices:
    """Which of the specs imply which others, and the smallest histories that tell neighbours apart.

    ``specs``: specs, their names or the paths of their files; so is a scope. ``universe``: a scope
    over tables, or ``"abstract"`` (default: in both, whatever can be asked there). ``focus``: names
    of the specs that are to be placed among the others, which the answer's words are about
    (default: all). ``transactions``: how many a history has at most (default: what the universe
    says). ``budget``: once it is spent the rest is unknown. ``processes``: how many search beside
    each other. ``progress`` is told what is asked. IsolitmusError if fewer than two are given, two
    have one name, or no two can be asked of one universe.

    >>> found = compare(["serializable", "snapshot-isolation", "prefix-consistency"], "abstract")
    >>> [edge.forward.evidence for edge in found.lattices[0].edges]
    ['proved', 'proved']
    >>> [str(t) for t in found.lattices[0].edges[1].back.test.history.transactions]
    ['r(x0) w(x1)', 'r(x0) w(x2)']
    """
    asked = [named(one) for one in specs]
    _refuse(asked)
    if universe is not None and universe != ABSTRACT:
        universe = named_scope(universe)
    form = format_named(same_format(*asked))
    inside: dict[str, Callable[[Spec], frozenset[str]]] = {}
    if universe in (None, ABSTRACT) and not any(one.format for one in asked):
        inside[ABSTRACT] = abstract.available_names
    scopes: dict[str, Scope] = {}
    if universe != ABSTRACT:
        over = (
            named_scope(universe)
            if universe
            else (named_scope(form.universe) if form.universe else None)
        )
        if over is not None:
            scopes[over.name] = over
            inside[over.name] = lambda _: frozenset(form.terms)
    fitting = {
        where: [one for one in asked if one.needs <= known(one)] for where, known in inside.items()
    }
    placed = {one.name for some in fitting.values() if len(some) > 1 for one in some}
    apart = {one.name: _lacking(one, inside) for one in asked if one.name not in placed}
    if not placed:
        said = "; ".join(f"{name}: {why}" for name, why in apart.items())
        raise IsolitmusError(f"no two of these levels can be compared in one search space: {said}")
    budget = budget or Budget()
    lattices = []
    with process_pool(processes, _ready) if processes > 1 else nullcontext() as pool:
        for where, some in fitting.items():
            if len(some) > 1:
                searched = scopes.get(where, ABSTRACT)
                placing = LatticeSearch(
                    some, searched, transactions, budget, progress, pool, processes
                )
                chosen = tuple(name for name in focus if name in {one.name for one in some})
                lattices.append(placing.lattice(chosen))
        if pool is not None and budget.spent() is not None:
            pool.shutdown(
                wait=False, cancel_futures=True
            )  # nobody waits for what is being searched
    return Lattices(tuple(lattices), apart)


def _ready() -> None:
    """What a process begins with."""


def _refuse(specs: Sequence[Spec]) -> None:
    if len(specs) < 2:
        raise IsolitmusError(f"{count_of(len(specs), 'level')} to compare; name at least two")
    names = [spec.name for spec in specs]
    for spec in specs:
        if names.count(spec.name) > 1:
            raise IsolitmusError(f"two of the levels are named {spec.name}; rename a file")
        if spec.silences:
            raise IsolitmusError(
                f"{spec.name} is silent on some histories, so its implications are undefined; run"
                f" isolitmus separate {spec.name} OTHER"
            )


def _lacking(spec: Spec, inside: Mapping[str, Callable[[Spec], frozenset[str]]]) -> str:
    lacks = [
        f"search space '{where}' does not have {', '.join(sorted(lacking))}"
        if (lacking := spec.needs - known(spec))
        else f"no other level can be compared with it in search space '{where}'"
        for where, known in inside.items()
    ]
    return "; ".join(lacks)
