"""Implication lattice of levels, computed with few separation queries.

Every known history is judged by all levels. A history that one level admits and another forbids
shows that the first does not imply the second. The implications that no history excludes form a
preorder, and only its neighbouring pairs are queried, because implication is transitive. A query
looks for a derivation from the texts (``prove.structural_implication``), from the laws of histories
(``prove.history_proof``), by a theorem on tables (``prove.proof``), or for a counterexample up to
the bound (``separate``). Each counterexample is judged by all levels again. A pair that is proved
by the texts and separated by a history raises an error.

Version orders of abstract histories may be open or observed. What a level says of the one says
little of the other, so both are searched; of two histories with as many transactions, the one with
open orders is shown. If some level needs version orders, only observed ones are searched. Searches
of few transactions come first, then proofs, which take seconds, then larger searches, which may
take a minute.
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
from isolitmus.checker.search.separation import same_format, separate
from isolitmus.checker.search.space_searches import ABSTRACT, ABSTRACT_SIZES, scope_words
from isolitmus.checker.universes import abstract
from isolitmus.checker.universes.abstract import with_serial_time
from isolitmus.checker.universes.abstract_solver import watch_histories
from isolitmus.checker.universes.catalogue_histories import shipped_histories
from isolitmus.checker.universes.exercised_names import (
    NONE_OPEN,
    ExerciseRecord,
    Unexercised,
)
from isolitmus.checker.universes.scope_vocabulary import PAIR, watch_proposals, watch_scope
from isolitmus.model.budget import Budget
from isolitmus.model.display import count_of
from isolitmus.model.errors import Disagreement, IsolitmusError, Limit
from isolitmus.model.litmus import HistoryTest, Litmus
from isolitmus.model.verdict import Needs
from isolitmus.specs.files.catalogue import scope as named_scope
from isolitmus.specs.files.spec_catalogue import spec as named
from isolitmus.specs.registries import format_named

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

ANSWERS = {"allowed": True, "forbidden": False}
PROOF_SECONDS = 5.0
"""Time limit in seconds of a theorem on tables after a search that found nothing."""
SMALL = 3
"""Number of transactions that are searched before a proof is tried."""


@dataclass(frozen=True, slots=True)
class _Told:
    """History with the verdicts of the specs whose names it has."""

    test: HistoryTest | Litmus
    admits: dict[str, bool]

    def against(self, a: str, b: str) -> bool:
        """Return whether it shows that `a` does not imply `b`."""
        return self.admits.get(a) is True and self.admits.get(b) is False


class _Found(NamedTuple):
    """Answer to the query of a pair."""

    answer: Separation
    """Result of the search."""
    proof: str = ""
    """Proof that the first implies the second; empty if there is none."""


@dataclass
class LatticeSearch:
    """Search for the lattice in one search space: known facts and open queries."""

    specs: Sequence[Spec]
    """Specs to compare."""
    universe: Scope | Literal["abstract"]
    """Search space."""
    transactions: int | None
    """Greatest number of transactions of a history; None for that of the search space."""
    budget: Budget
    """Limit of time and memory."""
    progress: Callable[[str], None] | None
    """Receives a text for each query."""
    pool: ProcessPoolExecutor | None = None
    """Worker processes; None if there are none."""
    processes: int = 1
    """Number of worker processes."""
    told: list[_Told] = field(default_factory=list)
    """Histories with the verdicts of the specs."""
    proofs: dict[tuple[str, str], str] = field(default_factory=dict)
    """Proofs by pair of spec names."""
    answers: dict[tuple[str, str], Separation] = field(default_factory=dict)
    """Answers to queries by pair of spec names."""
    assumed: dict[str, None] = field(default_factory=dict)
    """Assumptions of the answers, as keys."""
    ended: str | None = None
    """Limit that ended the search; None if none did."""
    unexercised: Unexercised = NONE_OPEN
    """Parts of the specs that no history of the search space makes non-empty."""

    def __post_init__(self) -> None:
        self.by_name = {spec.name: spec for spec in self.specs}
        self.observed = abstract.observes_versions(*self.specs)
        form = format_named(same_format(*self.specs))
        self.reads = self.universe != ABSTRACT and form.carry_out is not None
        self.start = monotonic()

    def lattice(self, focus: tuple[str, ...]) -> Lattice:
        """Return the lattice; pairs not queried when the budget is spent are unknown."""
        try:
            with self.budget.interrupting():
                self.search()
                self.unexercised = self.find_unexercised()
        except Limit as limit:
            self.ended = str(limit)
        return self.done(focus)

    def search(self) -> None:
        """Query all open pairs."""
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
        """Numbers of transactions that are searched."""
        usual = ABSTRACT_SIZES if self.universe == ABSTRACT else self.universe.transactions
        if self.transactions is None:
            return usual
        return range(min(*usual, self.transactions), self.transactions + 1)

    @property
    def called(self) -> tuple[str, str]:
        """Name and description of the search space."""
        if self.universe != ABSTRACT:
            return self.universe.name, scope_words(self.universe)
        orders = "observed" if self.observed else "open or observed"
        keys = len(abstract.KEYS)
        return ABSTRACT, f"search space 'abstract' (at most {keys} keys, version orders {orders})"

    def say(self, text: str) -> None:
        if self.progress is not None:
            self.progress(text)

    def possible(self) -> DiGraph:
        """Return the graph of implications that no known history excludes."""
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
        """Return the transitive closure of the implications that are proved or found by search."""
        from networkx import DiGraph, transitive_closure

        graph = DiGraph()
        graph.add_nodes_from(self.by_name)
        graph.add_edges_from(self.proved)
        graph.add_edges_from(pair for pair, one in self.answers.items() if one.found is False)
        return transitive_closure(graph)

    @property
    def proved(self) -> list[tuple[str, str]]:
        """Proved pairs that no known history contradicts.

        A theorem on tables has premises, and histories outside of them may contradict it.
        """
        return [pair for pair in self.proofs if not any(one.against(*pair) for one in self.told)]

    def unasked(self) -> list[tuple[str, str]]:
        """Return the neighbouring pairs whose implication is open.

        If all of these hold, the rest follows by transitivity. Once they are answered, the pairs
        that are still open are queried one by one, as where a history says nothing about levels
        that refer to time.
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
        """Yield neighbours among the classes of possibly equal specs, the stronger first."""
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
        """Query, in parallel, the pairs that are worth it, and learn from the answers in order."""
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
        """Start the query of a pair, and return a function that waits for its answer.

        It runs in a worker process if there is one; queries over tables run in this process.
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
        """Record the answer of a query and its consequences."""
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
        """Return whether a theorem on tables proves the implication within a short time."""
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
        """Try theorems on tables for the implications that are shown and have no proof.

        These are a cycle through each class of equal specs, and one pair of members for neighbours.
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

    def find_unexercised(self) -> Unexercised:
        """Return the parts of the specs that no history of the search space makes non-empty.

        Of a scope that a solver cannot search, these are histories of up to PAIR transactions.
        """
        record = ExerciseRecord(*self.specs)
        if self.universe == ABSTRACT:
            needs = frozenset[str]().union(*(spec.needs for spec in self.specs))
            vary = abstract.Variation(
                "so" in needs, "Aborted" in needs, self.observed, "rt" in needs, "time" in needs
            )
            watch_histories(record, self.specs, self.sizes, vary, self.budget)
            return record.result()
        form = format_named(self.universe.format)
        if form.carry_out is not None:
            return NONE_OPEN
        watch_scope(record, self.universe, min(PAIR, max(self.sizes)), self.budget.check)
        solver = None if form.solver is None else form.solver()
        larger = [n for n in self.sizes if n > PAIR]
        if not larger or solver is None or solver.unsupported_scope(self.universe, *self.specs):
            few = f"no history with up to {PAIR} transactions has such a transaction or pair"
            return record.result(among=few)
        watch_proposals(record, solver, self.universe, larger, self.budget)
        return record.result()

    def chain(self, pairs: Sequence[tuple[str, str]]) -> Iterator[bool]:
        """Yield for each pair whether proofs lead from one to the other."""
        from networkx import DiGraph, has_path

        graph = DiGraph(self.proved)
        for a, b in pairs:
            yield a in graph and b in graph and has_path(graph, a, b)

    def tell(self, test: HistoryTest | Litmus, execution: Execution | None) -> None:
        """Record the verdicts of all specs on a history.

        It is recorded if each spec has a verdict or lacks only time. A history without time is
        judged again in a serial schedule for specs that need time.
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
        """Return the verdict of a level on an abstract history, or on the execution of a test."""
        if isinstance(test, HistoryTest):
            return check_history(test.history, spec)
        assert execution is not None
        return judge_execution(execution, spec)

    def done(self, focus: tuple[str, ...]) -> Lattice:
        """Return the lattice of the present facts."""
        from networkx import DiGraph, transitive_closure

        settled = self.settled()
        texts = [pair for pair in self.proved if self.proofs[pair].startswith(BY_TEXT)]
        chains = {
            how: transitive_closure(DiGraph(pairs))
            for how, pairs in ((BY_TEXT, texts), ("by theorems", self.proved))
        }
        bound = f"up to {count_of(self.sizes[-1], 'transaction')}"
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
            self.unexercised,
        )


def _untimed(verdict: Verdict) -> bool:
    """Return whether a level has no verdict because the history has no times."""
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
    """Return the result of ``separate``, for histories with open and observed version orders."""
    ask = partial(separate, one, other, universe, exercise=False, budget=budget)
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
    """Return the result of ``separate``, and for abstract histories a proof if one is found.

    A proof is tried after a search of few transactions; if it succeeds, no more are searched.
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
    """Return the answer of ``_found`` in another process, with a budget of its own."""
    return _found(*question, Budget(seconds, memory), observed=observed)


def _equals(possible: DiGraph) -> list[list[str]]:
    """Return the classes of specs that may imply each other, in the order of the graph."""
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
    """Return the implications between specs, and the smallest histories that separate neighbours.

    Parameters
    ----------
    specs : sequence of Spec, str or path
        Specs, their names or their files; at least two.
    universe : Scope, str or path, optional
        Scope over tables, or ``"abstract"``. By default both, as far as the specs can be judged
        there.
    focus : sequence of str
        Names of the specs to place among the others, on which the output reports; all by default.
    transactions : int, optional
        Greatest number of transactions of a history; by default that of the search space.
    budget : Budget, optional
        Limit of time and memory. Once it is spent, the remaining pairs are unknown.
    processes : int
        Number of worker processes.
    progress : callable, optional
        Receives a text for each query.

    Returns
    -------
    Lattices
        Implications in each search space, with proofs, bounds and separating histories.

    Raises
    ------
    IsolitmusError
        If there are fewer than two specs, two have the same name, one is silent on some histories,
        or no two can be judged in one search space.

    Examples
    --------
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
            # searches under way are abandoned
            pool.shutdown(wait=False, cancel_futures=True)
    return Lattices(tuple(lattices), apart)


def _ready() -> None:
    """Initialize a worker process."""


def _refuse(specs: Sequence[Spec]) -> None:
    """Raise IsolitmusError for fewer than two levels, a repeated name, or a silent spec."""
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
    """Return the reason that a level cannot be compared, per search space."""
    lacks = [
        f"search space '{where}' does not have {', '.join(sorted(lacking))}"
        if (lacking := spec.needs - known(spec))
        else f"no other level can be compared with it in search space '{where}'"
        for where, known in inside.items()
    ]
    return "; ".join(lacks)
