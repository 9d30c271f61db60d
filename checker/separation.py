"""The verb ``separate``: the smallest history that one spec admits and another forbids.

In two universes, each searched in two ways: by a solver, and by enumeration, which checks it. What is
found is written as a litmus file and judged anew from its text (``checker.searching.recheck``); only then is it
an answer. What is not found is "none" up to a bound that is stated, never more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, Protocol

from isolitmus.checker.reading.admission import admission
from isolitmus.checker.running.frames import RELATIONS, SETS, frame
from isolitmus.checker.searching import (
    abstract,
    abstract_symbolic,
    table_exhaustive,
    table_symbolic,
)
from isolitmus.checker.searching.recheck import recheck_candidate, recheck_history
from isolitmus.model.errors import IsolitmusError, TimeLimit
from isolitmus.model.reads import needs_reads
from isolitmus.specs.catalogue import scope as named_scope
from isolitmus.specs.scope_file import LARGEST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.checker.proving.proof import Proof
    from isolitmus.checker.running.serial import Serial
    from isolitmus.checker.searching.universe import Candidate
    from isolitmus.model.history import History
    from isolitmus.model.litmus import HistoryTest, Litmus
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec
    from isolitmus.model.verdict import Forbidden, Violation

__all__ = [
    "ABSTRACT",
    "TABLE",
    "By",
    "Separation",
    "separate",
    "separate_unbounded",
    "violation_json",
]

ABSTRACT: Literal["abstract"] = "abstract"
TABLE = "table"
By = Literal["symbolic", "exhaustive"]

TABLE_ASSUMPTIONS = (
    "statements are deterministic, and each transaction is one statement in a session of its own",
    "a version of the log is written once (put if absent), and file statistics are right",
    "only the tables, statements and readers of the universe",
)
ABSTRACT_LARGEST = 12
ABSTRACT_SIZES = range(1, 5)
ABSTRACT_SIZES_ENUMERATED = range(1, 4)


@dataclass(frozen=True, slots=True)
class Separation:
    """The answer to ``separate a b``: found, none up to the bound, or unknown (``found`` None).

    ``examined`` counts what was looked at: candidates, if ``by`` enumeration; proposals, if by a
    solver. ``forbidden`` is what ``b`` says of what was found, ``serial`` explains its table. With an
    attempt at a proof that failed, what the search did not find is unknown, even where it was
    ``searched`` up to its bound.
    """

    a: str
    b: str
    universe: str
    found: bool | None
    bound: str
    examined: int
    seconds: float
    by: By = "exhaustive"
    assumptions: tuple[str, ...] = TABLE_ASSUMPTIONS
    unexplained: bool = False
    transactions: int | None = None
    litmus: Litmus | HistoryTest | None = None
    forbidden: Forbidden | None = None
    serial: Serial | None = None
    proof: Proof | None = None
    searched: bool = False

    @property
    def proved(self) -> bool:
        """Whether it is a proof that there is nothing to be found."""
        return self.proof is not None and self.proof.holds

    @property
    def violation(self) -> Violation | None:
        """The first of the violations by which ``b`` forbids what was found."""
        return None if self.forbidden is None else self.forbidden.violations[0]

    @property
    def none(self) -> bool:
        """Whether nothing is to be found up to the bound, or at all."""
        return self.found is False or self.searched

    @property
    def effort(self) -> str:
        """How much was looked at, in words."""
        many = f"{self.examined:,}"
        if self.by == "exhaustive":
            return f"{many} candidate{'' if self.examined == 1 else 's'} examined"
        if not self.examined:
            nothing = "had nothing to propose" if self.none else "proposed nothing yet"
            return f"the solver {nothing}"
        proposals = f"{many} proposal{'' if self.examined == 1 else 's'} of the solver"
        return f"{proposals}, all refuted" if self.none else proposals

    def to_json(self) -> dict[str, object]:
        """The answer as interface.md has it."""
        document: dict[str, object] = {
            "a": self.a,
            "b": self.b,
            "universe": self.universe,
            "by": self.by,
            "found": self.found,
            "transactions": self.transactions,
            "litmus": None if self.litmus is None else self.litmus.text,
            "violation": None if self.violation is None else violation_json(self.violation),
            "explained_by": [] if self.serial is None else list(self.serial.orders),
            "unexplained_versions": [] if self.serial is None else list(self.serial.unexplained),
            "bound": self.bound,
            "proved": self.proved,
            "assumptions": list(self.assumptions),
            "examined": None if self.proved else self.examined,
            "seconds": round(self.seconds, 3),
        }
        if self.proof is not None:
            document["lemmas"] = [step.to_json() for step in self.proof.steps]
        return document

    def _repr_html_(self) -> str:
        from isolitmus.checker.telling.notebook import separation_html

        return separation_html(self)


def violation_json(violation: Violation) -> dict[str, object]:
    """A violation as interface.md has it."""
    return {
        "axiom": violation.axiom,
        "supposing": list(violation.supposing),
        "cycle": [
            {"from": e.source, "to": e.target, "kind": e.kind, "why": e.why}
            for e in violation.cycle
        ],
    }


def separate(
    a: Spec,
    b: Spec,
    universe: Scope | Literal["abstract"] | None = None,
    *,
    by: By | None = None,
    transactions: Sequence[int] | None = None,
    unexplained: bool = False,
    seconds: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Separation:
    """The smallest history in the universe that ``a`` admits and ``b`` forbids.

    ``universe``: a scope over tables, or ``"abstract"`` (default: abstract if both specs can be asked
    of it, else the scope "table"). ``by``: a solver, or enumeration (default: a solver where it can be
    exact). ``transactions``: the sizes to try (default: the universe's). ``unexplained``: only a
    history of which, at some version, no serial order of the writers so far gives the tables.
    ``seconds``: after so long the answer is unknown. ``progress`` is told the size and the number of
    candidates so far. IsolitmusError if a spec needs names that the universe does not have.

    >>> from isolitmus.specs import spec
    >>> answer = separate(spec("delta-write-serializable"), spec("log-serializable"))
    >>> answer.transactions, str(answer.litmus.schedule)
    (2, 'delete.start insert delete.commit')
    >>> answer = separate(spec("prefix-consistency"), spec("snapshot-isolation"))
    >>> [str(transaction) for transaction in answer.litmus.history.transactions]
    ['r(x0) w(x1)', 'r(x0) w(x2)']
    """
    if universe is None:
        asked = a.needs | b.needs
        universe = ABSTRACT if asked <= abstract.NAMES and not unexplained else named_scope(TABLE)
    search: _Search
    if universe == ABSTRACT:
        search = _Histories(a, b, by, unexplained=unexplained)
    else:
        search = _Tables(a, b, universe, by, unexplained=unexplained)
    sizes = sorted(transactions or search.sizes)
    if not 1 <= sizes[0] <= sizes[-1] <= search.largest:
        raise IsolitmusError(
            f"{_count(sizes[-1])} were asked for; 1 to {search.largest} can be searched in"
            f" {search.where}"
        )
    start = monotonic()
    search.deadline = None if seconds is None else start + seconds
    examined = 0

    def answer(found: bool | None, bound: str) -> Separation:
        return Separation(
            a.name, b.name, search.name, found, bound, examined, monotonic() - start, search.by,
            search.assumptions, unexplained,
        )  # fmt: skip

    for n in sizes:
        if progress is not None:
            progress(n, examined)
            search.tell = _teller(progress, n, examined)
        try:
            found, looked = search.find(n)
        except TimeLimit as limit:
            why = str(limit) if seconds is None else f"stopped after {seconds:g} s"
            return answer(None, f"{why}, at {_count(n)} in {search.where}")
        examined += looked
        if found is not None:
            done = replace(answer(True, _smaller(sizes, n, search.where)), transactions=n)
            return replace(found(done), seconds=monotonic() - start)
    return answer(False, f"up to {_count(max(sizes))}{search.among} in {search.where}")


def separate_unbounded(
    a: Spec,
    b: Spec,
    universe: Scope | Literal["abstract"] | None = None,
    *,
    every_version_read: bool = False,
    transactions: Sequence[int] | None = None,
    seconds: float | None = None,
    **search: Any,
) -> Separation:
    """A proof that no history over tables, with any number of transactions, is admitted by ``a`` and
    forbidden by ``b``; or, where none is known, what the search finds: if nothing, unknown.

    ``transactions``: at most so many of them, but any statements on a table, whichever. ``every_version_read``:
    only histories in which of every version somebody reads the whole table; these are not searched.
    ``seconds``: for each lemma, and for the search. The rest: as for ``separate``.

    >>> from isolitmus.specs import spec
    >>> answer = separate_unbounded(spec("delta-serializable"), spec("log-serializable"))
    >>> answer.found, answer.proved, answer.bound
    (False, True, 'any number of transactions and statements on one table')
    """
    from isolitmus.checker.proving.arguments import Question
    from isolitmus.checker.proving.proof import SECONDS, prove

    if universe == ABSTRACT:
        raise IsolitmusError(
            "--unbounded proves what holds of tables; universe 'abstract' has none; leave it out"
        )
    if search.get("unexplained"):
        raise IsolitmusError(
            "--unbounded proves what relations say, --unexplained asks for serial orders; leave out one"
        )
    most = None if transactions is None else max(transactions)
    if most is not None and most > LARGEST:
        raise IsolitmusError(
            f"{_count(most)} were asked for; --unbounded takes 1 to {LARGEST}, or any number without"
            " --transactions"
        )
    question = Question(a, b, most, every_version_read)
    proof = prove(question, seconds=SECONDS if seconds is None else seconds)
    if proof.holds or every_version_read:
        number = "any number of transactions and statements on one table"
        return Separation(
            a.name,
            b.name,
            TABLE,
            found=False if proof.holds else None,
            bound=number if most is None else f"up to {_count(most)}, any statements on one table",
            examined=0,
            seconds=proof.seconds,
            by="symbolic",
            assumptions=tuple(premise.sentence for premise in proof.premises),
            proof=proof,
        )
    inside = named_scope(TABLE) if universe is None else universe
    found = separate(a, b, inside, transactions=transactions, seconds=seconds, **search)
    return replace(
        found,
        found=found.found or None,
        searched=found.found is False,
        seconds=proof.seconds + found.seconds,
        proof=proof,
    )


def _teller(progress: Callable[[int, int], None], n: int, so_far: int) -> Callable[[int], None]:
    return lambda looked: progress(n, so_far + looked)


def _smaller(sizes: Sequence[int], n: int, where: str) -> str:
    smaller = [k for k in sizes if k < n]
    if not smaller:
        return f"the search of {where} starts at {_count(n)}"
    several = f"{smaller[0]} to {smaller[-1]} transactions"
    return f"none with {several if len(smaller) > 1 else _count(smaller[0])} in {where}"


def _count(n: int) -> str:
    return f"{n} transaction{'' if n == 1 else 's'}"


Confirm = Callable[["Separation"], "Separation"]
"""What turns an answer into one with the history that was found, judged anew."""


class _Search(Protocol):
    """One universe and one way to search it."""

    by: By
    deadline: float | None
    tell: Callable[[int], None] | None

    @property
    def name(self) -> str: ...
    @property
    def sizes(self) -> Sequence[int]: ...
    @property
    def largest(self) -> int: ...
    @property
    def assumptions(self) -> tuple[str, ...]: ...
    @property
    def where(self) -> str: ...
    @property
    def among(self) -> str: ...
    def find(self, n: int) -> tuple[Confirm | None, int]: ...


class _Tables:
    """The search of a scope over tables."""

    largest = LARGEST
    assumptions = TABLE_ASSUMPTIONS
    deadline: float | None = None
    tell: Callable[[int], None] | None = None

    def __init__(self, a: Spec, b: Spec, scope: Scope, by: By | None, *, unexplained: bool) -> None:
        _require(a, {*RELATIONS, *SETS}, "runs over tables do")
        _require(b, {*RELATIONS, *SETS}, "runs over tables do")
        why = table_symbolic.unfit(scope)
        if by == "symbolic" and why is not None:
            raise IsolitmusError(f"a solver cannot search this exactly: {why}; try --by exhaustive")
        self.a, self.b, self.scope, self.unexplained = a, b, scope, unexplained
        self.by: By = by or ("symbolic" if why is None else "exhaustive")
        self.name, self.sizes = scope.name, scope.transactions
        self.among = ", readers among them," if scope.readers else ""
        self.admits, self.permits = (_on_candidates(spec) for spec in (a, b))

    @property
    def where(self) -> str:
        parts = [
            f"{len(things)} {kind}{'' if len(things) == 1 else 's'}"
            for things, kind in (
                (self.scope.statements, "statement"),
                (self.scope.readers, "reader"),
                (self.scope.inits, "initial table"),
            )
        ]
        return f"universe '{self.scope.name}' ({', '.join(parts)})"

    def find(self, n: int) -> tuple[Confirm | None, int]:
        if self.by == "symbolic":
            found, examined = table_symbolic.search(
                self.a, self.b, self.scope, n, self.accept, deadline=self.deadline
            )
        else:
            found, examined = table_exhaustive.search(
                self.a, self.scope, n, self.accept, deadline=self.deadline, progress=self.tell
            )
        return None if found is None else partial(self.confirm, found), examined

    def accept(self, candidate: Candidate) -> bool:
        if not self.admits(candidate) or self.permits(candidate):
            return False
        return not self.unexplained or candidate.unexplained()

    def confirm(self, found: Candidate, answer: Separation) -> Separation:
        litmus, forbidden, serial = recheck_candidate(
            found, self.a, self.b, unexplained=self.unexplained
        )
        return replace(answer, litmus=litmus, forbidden=forbidden, serial=serial)


class _Histories:
    """The search of the abstract universe."""

    name = ABSTRACT
    among = ""
    largest = ABSTRACT_LARGEST
    where = f"universe 'abstract' (at most {len(abstract.KEYS)} keys)"
    deadline: float | None = None
    tell: Callable[[int], None] | None = None

    def __init__(self, a: Spec, b: Spec, by: By | None, *, unexplained: bool) -> None:
        if unexplained:
            raise IsolitmusError(
                "--unexplained asks for statements, which universe 'abstract' does not have;"
                " try --universe table"
            )
        _require(a, abstract.NAMES, "abstract histories do")
        _require(b, abstract.NAMES, "abstract histories do")
        self.a, self.b = a, b
        self.by: By = by or "symbolic"
        self.sizes = ABSTRACT_SIZES if self.by == "symbolic" else ABSTRACT_SIZES_ENUMERATED
        self.assumptions = abstract.assumptions(a, b)

    def find(self, n: int) -> tuple[Confirm | None, int]:
        if self.by == "symbolic":
            found, examined = abstract_symbolic.search(self.a, self.b, n, deadline=self.deadline)
        else:
            from isolitmus.checker.searching import abstract_exhaustive

            found, examined = abstract_exhaustive.search(
                self.a, self.b, n, deadline=self.deadline, progress=self.tell
            )
        return None if found is None else partial(self.confirm, found), examined

    def confirm(self, found: History, answer: Separation) -> Separation:
        litmus, forbidden = recheck_history(found, self.a, self.b)
        return replace(answer, litmus=litmus, forbidden=forbidden)


def _on_candidates(spec: Spec) -> Callable[[Candidate], bool]:
    admits = admission(spec)
    if needs_reads(spec):
        return lambda candidate: admits(frame(candidate.events, reasons=False, reads=True))
    return lambda candidate: admits(candidate.frame)


def _require(spec: Spec, names: set[str] | frozenset[str], who: str) -> None:
    lacking = sorted(spec.needs - names)
    if lacking:
        raise IsolitmusError(f"{spec.name} needs {', '.join(lacking)}, which {who} not have")
