"""Denotation of a spec on a litmus test: its frame, and the value of each let, axiom and label."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from isolitmus.checker.execution.commit_loop import execute, execution_frame, frame_for_spec
from isolitmus.checker.judge.completion import frames
from isolitmus.checker.judge.graph_semantics import BitsetAlgebra, missing_names
from isolitmus.checker.judge.read_nodes import needs_operations, needs_reads
from isolitmus.checker.judge.total_orders import linear_completions
from isolitmus.model.display import ReadableRepr
from isolitmus.model.errors import SpecError
from isolitmus.model.litmus import HistoryTest
from isolitmus.model.relation import bits
from isolitmus.model.spec import Fold, Name
from isolitmus.model.spec_algebra import names_in
from isolitmus.specs.files.catalogue import litmus
from isolitmus.specs.files.spec_catalogue import spec as named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from isolitmus.model.frame import Frame
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.spec import CatExpr, Spec
    from isolitmus.specs.files.spec_catalogue import NameOrPath, SpecLike


@dataclass(frozen=True, slots=True)
class Denotation:
    """Value of one statement of a spec: pairs of nodes, or single nodes if it is a set.

    ``statement`` is ``let``, ``show``, ``silent`` or the test of an axiom.
    """

    statement: str
    name: str
    items: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class SpecDenotation(ReadableRepr):
    """Frame of a test, and the values of a spec on it.

    ``failed`` are transactions that are not in the frame. ``unknown`` is what the history leaves
    open, and what one completion of it settles.
    """

    frame: Frame
    values: tuple[Denotation, ...] = ()
    failed: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return repr(self.frame)


def denote(test: Litmus | HistoryTest | NameOrPath, spec: SpecLike | None = None) -> SpecDenotation:
    """Return the frame of a schedule in which every commit succeeds, or of an abstract history.

    With a spec, the frame has only the names that the spec uses, and reads as nodes if it uses
    them. A let that no axiom uses is left out if the frame lacks its names.

    Raises
    ------
    SpecError
        If the frame lacks a name that an axiom uses.

    Examples
    --------
    >>> from isolitmus.specs import level, litmus
    >>> seen = denote(litmus("history-write-skew"), level("update-serializable"))
    >>> [value.items for value in seen.values if value.name == "update"]
    [(('T1', 'T2'), ('T2', 'T1'))]
    """
    test = litmus(test)
    spec = None if spec is None else named(spec)
    reads = spec is not None and needs_reads(spec)
    operations = spec is not None and needs_operations(spec)
    failed: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    if isinstance(test, HistoryTest):
        unknown = test.history.undetermined()
        if spec is not None and "co" in spec.bound:
            frame = next(linear_completions(test.history, spec)).frame(
                reads=reads, operations=operations
            )
            unknown = (*unknown, "the order of their commits was not observed")
        else:
            frame = next(frames(test.history, reads=reads, operations=operations))
    else:
        execution = execute(test)
        frame = execution_frame(execution) if spec is None else frame_for_spec(spec, execution)
        failed = tuple(event.name for event in execution.events if event.aborted)
    if spec is None:
        return SpecDenotation(frame, (), failed, unknown)
    lacking = missing_names(frame, spec)
    if lacking:
        raise SpecError(f"{spec.name} needs {', '.join(lacking)}, which {test.name} does not have")
    lets = {name: names_in([Name(name)], spec.definitions) for name in spec.definitions}
    lets = {name: names for name, names in lets.items() if names <= set(frame.names())}
    used = spec.needs.union(*lets.values())
    seen = replace(
        frame,
        relations={
            name: frame.relations[name]
            for name in (*frame.relations, *sorted(frame.later))
            if name in used
        },
        sets={name: members for name, members in frame.sets.items() if name in used},
    )
    return SpecDenotation(seen, tuple(_values(seen, spec, lets)), failed, unknown)


def _values(frame: Frame, spec: Spec, lets: Iterable[str]) -> Iterator[Denotation]:
    """Yield the members of these lets and of all axioms, silences and labels of a spec."""
    fold = Fold(BitsetAlgebra(frame), spec.definitions)

    def items(expr: CatExpr) -> tuple[tuple[str, ...], ...]:
        if expr.kind == "set":
            return tuple((frame.nodes[i],) for i in bits(fold.members(expr)))
        pairs = fold.relation(expr).pairs()
        return tuple((frame.nodes[i], frame.nodes[j]) for i, j in pairs)

    for name in lets:
        yield Denotation("let", name, items(Name(name)))
    for axiom in spec.axioms:
        yield Denotation(axiom.test, axiom.name, items(axiom.expr))
    for silence in spec.silences:
        yield Denotation("silent", silence.name, items(silence.expr))
    for label in spec.labels:
        yield Denotation("show", label.name, items(label.expr))
