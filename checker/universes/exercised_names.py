"""Names of specs that candidates exercise: relations, sets, definitions, axioms and silences.

A part of a spec is exercised if some candidate makes it non-empty. A search that found nothing says
nothing about a part that no candidate exercised: its axiom could not fail. `ExerciseRecord` watches
the candidates of a search and keeps the parts that are still empty.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from isolitmus.checker.judge.compiled_semantics import compile_presence
from isolitmus.checker.judge.read_nodes import READ_BY_READ, READ_RELATIONS
from isolitmus.model.errors import UndeterminedError
from isolitmus.model.spec import Axiom, Binary, Bracket, CatExpr, Name, Spec
from isolitmus.model.spec_algebra import definitions_in, names_in, unfold
from isolitmus.model.vocabulary import BASE
from isolitmus.specs.files.spec_emptiness import find_emptiness, find_empty_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from isolitmus.model.execution import Event
    from isolitmus.model.format import BuildsFrame
    from isolitmus.model.frame import Frame

Kind = Literal["relation", "set", "let", "axiom", "silence"]
BASE_KINDS = ("relation", "set")
EMPTY: dict[str, CatExpr] = {"relation": Name("-"), "set": Name("S-")}
"""Names of no vocabulary: ``- \\ -`` is the empty relation, ``S- \\ S-`` the empty set."""
NO_CANDIDATE = "no candidate has such a transaction or pair"
EVERYTHING = Spec("everything", "Everything", "", "", (), {})
"""Level that allows every history."""


class SpecPart(NamedTuple):
    """Named part of a spec that candidates can make non-empty."""

    kind: Kind
    name: str
    expr: CatExpr
    """Expression of the part, in the definitions of its spec."""
    spec: Spec
    """Spec that names it, the first one if several do."""

    @property
    def emptiness(self) -> Axiom:
        """Axiom that the part is empty, without names of definitions."""
        relation = self.expr if self.expr.kind == "relation" else Bracket(self.expr)
        return Axiom("empty", unfold(relation, self.spec.definitions), self.name)


class UnexercisedName(NamedTuple):
    """Part of a spec that no candidate made non-empty."""

    kind: Kind
    name: str
    because: tuple[str, ...] = ()
    """Base names that no candidate made non-empty, and that alone make this part empty."""
    is_inner: bool = False
    """True if every axiom and silence that uses this definition is listed as well."""

    def to_json(self) -> dict[str, object]:
        """Return the name in the form of docs/interface.md, 6."""
        return {"kind": self.kind, "name": self.name, "because": list(self.because)}


@dataclass(frozen=True, slots=True)
class Unexercised:
    """Parts of specs that no candidate of a search made non-empty.

    Examples
    --------
    >>> names = UnexercisedName("set", "Meta"), UnexercisedName("axiom", "Changed", ("Meta",))
    >>> print(Unexercised(names).words)
    Never exercised: Meta (no candidate has such a transaction or pair); always empty without it: \
Changed
    """

    names: tuple[UnexercisedName, ...] = ()
    """Parts that no candidate made non-empty, base names first."""
    unknown: tuple[str, ...] = ()
    """Names of parts of which a limit left open whether a candidate does."""
    among: str = NO_CANDIDATE
    """What was looked at, and does not have them."""
    always_empty: tuple[str, ...] = ()
    """Axioms and silences that are empty by their text, in words."""

    @property
    def words(self) -> str:
        """The names in one sentence without its full stop; empty if all parts were exercised."""
        own = dict.fromkeys(
            f"{part.name} (always {refined})" if (refined := _refined(part.name)) else part.name
            for part in self.names
            if not part.because
        )
        derived = dict.fromkeys(
            part.name for part in self.names if part.because and not part.is_inner
        )
        if not own:
            return ""
        many = "them" if len(own) > 1 else "it"
        more = f"; always empty without {many}: {', '.join(derived)}" if derived else ""
        return f"Never exercised: {', '.join(own)} ({self.among}){more}"

    @property
    def base_names(self) -> frozenset[str]:
        """Relations and sets of the vocabulary that no candidate made non-empty."""
        return frozenset(part.name for part in self.names if part.kind in BASE_KINDS)

    def within(self, other: Unexercised) -> Unexercised:
        """Return the parts that neither of two searches exercised."""
        theirs = {(part.kind, part.name): part for part in other.names}
        both = [part for part in self.names if (part.kind, part.name) in theirs]
        base = {part.name for part in both if part.kind in BASE_KINDS}
        names = [
            part._replace(
                because=tuple(
                    name
                    for name in part.because
                    if name in base and name in theirs[part.kind, part.name].because
                )
            )
            for part in both
        ]
        open_here = {part.name for part in self.names}.union(self.unknown)
        open_there = {part.name for part in other.names}.union(other.unknown)
        said = {part.name for part in names}
        unknown = (*self.unknown, *other.unknown)
        left = [name for name in unknown if name in open_here & open_there and name not in said]
        return replace(self, names=tuple(names), unknown=tuple(dict.fromkeys(left)))

    def lines(self) -> Iterator[str]:
        """Yield the sentences about these parts."""
        if self.words:
            yield f"{self.words}."
        if self.unknown:
            yield f"Unknown whether exercised (limit): {', '.join(self.unknown)}."
        if self.always_empty:
            yield f"Always empty by its text, so it cannot fail: {', '.join(self.always_empty)}."

    def to_json(self) -> dict[str, object]:
        """Return the parts in the form of docs/interface.md, 6."""
        return {
            "unexercised": [part.to_json() for part in self.names],
            "exercise_unknown": list(self.unknown),
            "always_empty": list(self.always_empty),
        }


NONE_OPEN = Unexercised()
"""Record of a search whose candidates exercised every part, or were not watched."""


def always_empty(*specs: Spec) -> tuple[str, ...]:
    """Return the axioms and silences that are empty by their text, in words.

    Examples
    --------
    >>> from isolitmus.specs.language.parser import read
    >>> always_empty(read('"Mine" empty wr & [Writer] as late acyclic wr as order', "mine"))
    ('axiom late of mine',)
    """
    return tuple(
        f"{part.what} {part.name} of {spec.name}"
        for spec in specs
        for part in find_empty_parts(spec)
        if part.what in ("axiom", "silence")
    )


def spec_parts(*specs: Spec) -> list[SpecPart]:
    """Return the parts of specs that candidates can exercise, base names first, each name once.

    Definitions that no axiom, silence or label uses are left out, and so is what is empty by its
    text, which no candidate can exercise.

    Examples
    --------
    >>> from isolitmus.specs import level
    >>> [(part.kind, part.name) for part in spec_parts(level("write-serializable"))]
    [('relation', 'wr'), ('relation', 'ww'), ('relation', 'rw'), ('set', 'Writer'), \
('set', 'Aborted'), ('axiom', 'no-aborted-read'), ('axiom', 'order-of-writers')]
    """
    parts: dict[tuple[str, str], SpecPart] = {}

    def put(kind: Kind, name: str, expr: CatExpr, spec: Spec) -> None:
        parts.setdefault((kind, name), SpecPart(kind, name, expr, spec))

    order = {name: place for place, name in enumerate(BASE)}
    for spec in specs:
        for name in sorted(spec.needs, key=lambda name: (order.get(name, len(order)), name)):
            put("set" if name[0].isupper() else "relation", name, _presence(name), spec)
    for spec in specs:
        exprs = [axiom.expr for axiom in spec.axioms]
        exprs += [silence.expr for silence in spec.silences]
        exprs += [label.expr for label in spec.labels]
        for name in definitions_in(exprs, spec.definitions):
            put("let", name, spec.definitions[name], spec)
    for spec in specs:
        for axiom in spec.axioms:
            put("axiom", axiom.name, axiom.expr, spec)
        for silence in spec.silences:
            put("silence", silence.name, silence.expr, spec)
    found = sorted(parts.values(), key=lambda part: part.kind not in BASE_KINDS)
    return [
        part
        for part in found
        if part.kind in BASE_KINDS or find_emptiness(part.expr, part.spec.definitions) is None
    ]


def _refined(name: str) -> str:
    """Return the relation that a base name refines; empty if it refines none."""
    return BASE[name].refines if name in BASE else ""


def _presence(name: str) -> CatExpr:
    """Return the expression that a candidate makes non-empty if it exercises a base name.

    A relation that refines another one says something only where it lacks a pair of that one.
    """
    refined = _refined(name)
    return Binary("\\", Name(refined), Name(name)) if refined else Name(name)


class ExerciseRecord:
    """Parts of specs that no candidate has made non-empty so far.

    Examples
    --------
    >>> from isolitmus.model.frame import Frame
    >>> from isolitmus.model.relation import Relation
    >>> from isolitmus.specs.language.parser import read
    >>> record = ExerciseRecord(read('"Mine" acyclic wr | ww as order', "mine"))
    >>> read_from = {"wr": Relation.of(2, [(0, 1)]), "ww": Relation.empty(2)}
    >>> record.look(Frame(("a", "b"), read_from, {}))
    >>> [part.name for part in record.open]
    ['ww']
    """

    def __init__(self, *specs: Spec) -> None:
        self._plain: dict[tuple[str, str], _WatchedPart] = {}
        self._of_reads: dict[tuple[str, str], _WatchedPart] = {}
        self._order: list[tuple[str, str]] = []
        self._always_empty = always_empty(*specs)
        for part in spec_parts(*specs):
            needs = names_in([part.expr], part.spec.definitions)
            into = self._plain if needs.isdisjoint(READ_BY_READ) else self._of_reads
            test = compile_presence(part.expr, part.spec.definitions)
            into[part.kind, part.name] = _WatchedPart(part, test)
            self._order.append((part.kind, part.name))

    @property
    def open(self) -> list[SpecPart]:
        """Parts that are still empty, base names first."""
        left = self._plain | self._of_reads
        return [left[key].part for key in self._order if key in left]

    @property
    def watches_reads(self) -> bool:
        """True if an open part needs graphs with reads as nodes."""
        return bool(self._of_reads)

    def look(self, frame: Frame) -> None:
        """Note the parts that a graph makes non-empty; it may lack reads as nodes."""
        _look(self._plain, frame)
        if self._of_reads and READ_RELATIONS[0] in frame.relations:
            _look(self._of_reads, frame)

    def look_at(self, events: Sequence[Event], frame: Frame, build: BuildsFrame) -> None:
        """Note the parts that a candidate makes non-empty, by its events and their graph.

        The graph may lack reads as nodes; it is then built again where an open part needs them.
        """
        if self._of_reads:
            frame = build(events, reasons=False, reads=True)
        self.look(frame)

    def exercise(self, parts: Iterable[SpecPart]) -> None:
        """Note that some candidate makes these parts non-empty."""
        for part in parts:
            for left in (self._plain, self._of_reads):
                left.pop((part.kind, part.name), None)

    def result(self, unknown: bool = False, among: str = NO_CANDIDATE) -> Unexercised:
        """Return the parts that are still empty.

        Parameters
        ----------
        unknown : bool
            Whether a limit left open if some candidate makes them non-empty.
        among : str
            What was looked at, as a clause.
        """
        parts = self.open
        if unknown:
            names_of = dict.fromkeys(part.name for part in parts)
            return Unexercised((), tuple(names_of), always_empty=self._always_empty)
        base = {p.name for p in parts if p.kind in BASE_KINDS and not _refined(p.name)}
        listed = {(part.kind, part.name) for part in parts}
        names = (
            UnexercisedName(part.kind, part.name, _reasons(part, base), _is_inner(part, listed))
            for part in parts
        )
        return Unexercised(tuple(names), (), among, self._always_empty)


class _WatchedPart(NamedTuple):
    part: SpecPart
    is_present: Callable[[Frame], bool]

    def is_seen_in(self, frame: Frame) -> bool:
        """Return whether a graph makes the part non-empty, and determines that."""
        try:
            return self.is_present(frame)
        except UndeterminedError:
            return False


def _look(left: dict[tuple[str, str], _WatchedPart], frame: Frame) -> None:
    """Remove the parts that a graph makes non-empty."""
    for key in [key for key, watched in left.items() if watched.is_seen_in(frame)]:
        del left[key]


def _is_inner(part: SpecPart, listed: Collection[tuple[str, str]]) -> bool:
    """Return whether only axioms and silences that are listed use a definition."""
    if part.kind != "let":
        return False
    spec = part.spec
    users = [(("axiom", axiom.name), axiom.expr) for axiom in spec.axioms]
    users += [(("silence", silence.name), silence.expr) for silence in spec.silences]
    return all(
        key in listed
        for key, expr in users
        if part.name in definitions_in([expr], spec.definitions)
    )


def _reasons(part: SpecPart, empty: Collection[str]) -> tuple[str, ...]:
    """Return the base names among the ``empty`` ones if these alone make a part empty."""
    definitions = part.spec.definitions
    used = sorted(names_in([part.expr], definitions).intersection(empty))
    if part.kind in BASE_KINDS or not used:
        return ()
    nothing = {name: Binary("\\", EMPTY[Name(name).kind], EMPTY[Name(name).kind]) for name in used}
    emptied = find_emptiness(part.expr, {**definitions, **nothing})
    return () if emptied is None else tuple(used)
