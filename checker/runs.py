"""The verb ``run``: a run judged, explained serially, and compared with what is expected of it.

A run is judged by what anyone can observe of it. Its transactions are retraced: each statement is
evaluated by the model on the version that the run says it read, in the order that the run says the
log has. If the tables of the retraced execution are those of the run at every version, its frame is
the run's; if not, the levels are unknown, and why is said.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from isolitmus.checker.reading.graph import judge
from isolitmus.checker.running.clients import Clock
from isolitmus.checker.running.execute import after, execute, execution_frame, observe, stages
from isolitmus.checker.running.serial import Serial, explain_serially
from isolitmus.checker.telling.draw import dependencies, mermaid
from isolitmus.model.execution import Event, Execution
from isolitmus.model.reads import needs_reads
from isolitmus.model.run import same_bag
from isolitmus.model.values import show_row, to_json
from isolitmus.model.verdict import Unknown
from isolitmus.specs.catalogue import level, levels

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from isolitmus.model.frame import Edge, Frame
    from isolitmus.model.litmus import Expectation, Litmus
    from isolitmus.model.run import Run, TransactionRun
    from isolitmus.model.spec import Spec
    from isolitmus.model.values import Rows
    from isolitmus.model.verdict import Verdict

__all__ = ["Judged", "compare", "retrace", "run"]

TOOK_EFFECT = ("committed", "no-op")
"""The outcomes of transactions that ended well."""


def run(litmus: Litmus, protocol: Spec) -> Judged:
    """Carry a litmus test out on the model, under a protocol.

    >>> from isolitmus.specs import litmus, protocol
    >>> done = run(litmus("reorder"), protocol("delta-write-serializable"))
    >>> done.serial.orders, str(done.levels["log-serializable"])
    (('delete insert',), 'forbidden')
    """
    return Judged(litmus, observe(litmus, execute(litmus, protocol), protocol.name))


def retrace(litmus: Litmus, observed: Run) -> Execution:
    """The model's execution along a run's own read versions and log order, without any check."""
    inits = stages(litmus.tables, litmus.init)
    clock, now = Clock(litmus, inits), 0
    for step in litmus.schedule.steps:
        clock.take(step, now)
        seen = observed.transactions[step.transaction]
        if step.ends:
            now = max(now, *seen.commits, 0)
            if seen.outcome in TOOK_EFFECT:
                clock.ended(step.transaction)
    states = [inits[-1]]
    events: list[Event] = []
    by_version = sorted(
        (t.version if t.version is not None else t.read_version or 0, t.version is None, name)
        for name, t in observed.transactions.items()
        if t.outcome in TOOK_EFFECT
    )
    for _, _, name in by_version:
        seen = observed.transactions[name]
        read_version = seen.read_version or 0
        if read_version >= len(states):
            break
        done = clock.effect(name, states, read_version)
        first = min(seen.commits, default=None)
        event = Event(name, done, read_version, first, session=litmus.client(name).session)
        events.append(event)
        if first is not None and done.footprint is not None:
            states += [after(states[-1], event)] * len(event.commits)
    return Execution(tuple(events), tuple(states))


@dataclass(frozen=True)
class Judged:
    """A run with its frame, its serial explanation, its levels, and how far it met expectations."""

    litmus: Litmus
    run: Run

    @cached_property
    def serial(self) -> Serial:
        """The serial explanation, from the rows that the run shows."""
        return Serial((), ()) if self.litmus.raw else explain_serially(self.litmus, self.run)

    @cached_property
    def _retraced(self) -> tuple[Execution | None, str]:
        if self.litmus.raw:
            return None, "raw transactions have no rows"
        execution = retrace(self.litmus, self.run)
        for k, (ours, theirs) in enumerate(zip(execution.states, self.run.versions, strict=False)):
            for name, rows in theirs.items():
                if name not in ours or not same_bag(ours[name].rows(), rows):
                    return None, f"table {name} at version {k} is not what its statements give"
        if len(execution.states) != len(self.run.versions):
            return None, "the run has versions that no statement wrote"
        return execution, ""

    @cached_property
    def frame(self) -> Frame | None:
        """The frame of what took effect; None if the model cannot retrace the run."""
        execution, _ = self._retraced
        return None if execution is None else execution_frame(execution)

    @cached_property
    def _frame_with_reads(self) -> Frame | None:
        execution, _ = self._retraced
        return None if execution is None else execution_frame(execution, reads=True)

    def verdict(self, spec: Spec) -> Verdict:
        """What a spec says of the run."""
        frame = self._frame_with_reads if needs_reads(spec) else self.frame
        return Unknown(self._retraced[1]) if frame is None else judge(frame, spec)

    @cached_property
    def levels(self) -> Mapping[str, Verdict]:
        """The verdict of every level that ships."""
        return {name: self.verdict(level(name)) for name in levels()}

    @property
    def expectation(self) -> Expectation | None:
        """What the litmus test expects of this protocol, or of this engine by name and release."""
        return self.litmus.expect.get(self._release) or self.litmus.expect.get(self.run.protocol)

    @property
    def apart(self) -> bool:
        """Whether the litmus test says of this engine's release what it does: it differs from the model."""
        return self._release in self.litmus.expect

    @property
    def _release(self) -> str:
        return f"{self.run.engine}-{self.run.engine_version}"

    @property
    def word(self) -> str:
        """The run in one word: ``anomaly`` (at some version no serial order gives the table), ``aborted``
        (a conflict ended a transaction), ``error`` (something else did), or ``allowed``.
        """
        outcomes = [t.outcome for t in self.run.transactions.values()]
        if self.serial.unexplained:
            return "anomaly"
        if any(not o.startswith("error:") and o not in (*TOOK_EFFECT, "unknown") for o in outcomes):
            return "aborted"
        others = [o for o in outcomes if o not in TOOK_EFFECT]
        return "allowed" if not others else "unknown" if "unknown" in others else "error"

    @cached_property
    def differences(self) -> tuple[str, ...]:
        """Where the run is not what the litmus test expects, a sentence each."""
        return () if self.expectation is None else tuple(_unmet(self.expectation, self))

    @property
    def expected(self) -> str:
        """``met``, ``not met``, or ``none`` where nothing is expected."""
        if self.expectation is None:
            return "none"
        return "not met" if self.differences else "met"

    def to_mermaid(self, cycle: Iterable[Edge] = ()) -> str:
        """The dependency graph with the reason on every edge; the edges of ``cycle`` thick."""
        nodes = {name: statement.sql for name, statement in self.litmus.transactions.items()}
        return mermaid(nodes, [] if self.frame is None else dependencies(self.frame), cycle)

    def _repr_html_(self) -> str:
        from isolitmus.checker.telling.notebook import judged_html

        return judged_html(self)

    def to_json(self) -> dict[str, object]:
        """The run as interface.md has it."""
        observed = self.run
        return {
            "engine": observed.engine,
            "engine_version": observed.engine_version,
            "protocol": observed.protocol,
            "base": observed.base,
            "transactions": {n: _transaction_json(t) for n, t in observed.transactions.items()},
            "versions": [
                {"version": k, "tables": _tables_json(tables)}
                for k, tables in enumerate(observed.versions)
            ],
            "tables": _tables_json(observed.tables),
            "serial": list(self.serial.orders),
            "unexplained": list(self.serial.unexplained),
            "levels": {name: str(verdict) for name, verdict in self.levels.items()},
            "expected": self.expected,
            "differences": list(self.differences),
        }


def compare(predicted: Run, seen: Run, unsaid: Container[str] = ()) -> tuple[str, ...]:
    """Where a real run differs from the model's, step by step; empty if in nothing.

    Of errors the class may differ in its wrapping; of a no-op, a reader and an abort the flags that
    only a commit has are None in both. ``unsaid`` are fields that the engine does not record.
    """
    found: list[str] = []
    for name, ours in predicted.transactions.items():
        theirs = seen.transactions[name]
        for field in (
            "outcome",
            "read_version",
            "version",
            "blind",
            "isolation_level",
            "operation",
        ):
            a, b = getattr(ours, field), getattr(theirs, field)
            failed = field == "outcome" and "error_class" in unsaid and _both_fail(a, b)
            if a != b and field not in unsaid and not failed:
                found.append(f"{name}: {field.replace('_', ' ')} predicted {a}, observed {b}")
        told = ours.error_class is not None and "error_class" not in unsaid
        if told and ours.error_class != theirs.error_class:
            found.append(
                f"{name}: error class predicted {ours.error_class}, observed {theirs.error_class}"
            )
        found += _rows_differ(f"{name} read", ours.rows, theirs.rows, "predicted", "observed")
    if len(predicted.versions) != len(seen.versions):
        found.append(
            f"{len(predicted.versions) - 1} versions predicted, {len(seen.versions) - 1} observed"
        )
    for k, (ours_, theirs_) in enumerate(zip(predicted.versions, seen.versions, strict=False)):
        for table in dict.fromkeys((*ours_, *theirs_)):
            what, rows, seen_ = (
                f"table {table} at version {k}",
                ours_.get(table),
                theirs_.get(table),
            )
            found += _rows_differ(what, rows, seen_, "predicted", "observed")
    return tuple(found)


def _both_fail(a: str, b: str) -> bool:
    """Whether two outcomes are errors, of whatever class."""
    return a.startswith("error:") and b.startswith("error:")


def _rows_differ(
    what: str, wanted: Rows | None, seen: Rows | None, first: str, second: str
) -> list[str]:
    if wanted is None or seen is None:
        return (
            [] if wanted == seen else [f"{what}: {first} {_rows(wanted)}, {second} {_rows(seen)}"]
        )
    if same_bag(wanted, seen):
        return []
    return [f"{what}: {first} {_rows(wanted)}, {second} {_rows(seen)}"]


def _rows(rows: Rows | None) -> str:
    if rows is None:
        return "nothing"
    return " ".join(map(show_row, rows)) or "no rows"


def _unmet(expect: Expectation, judged: Judged) -> list[str]:
    found: list[str] = []
    seen = judged.run
    for name, options in expect.outcome.items():
        outcome = seen.transactions[name].outcome
        if not any(_meets(option, seen.transactions[name]) for option in options):
            found.append(f"{name}: expected {' or '.join(options)}, got {outcome}")
    for name, wanted in expect.error_class.items():
        got = seen.transactions[name].error_class
        if got is not None and got != wanted and not got.startswith(f"{wanted}."):
            found.append(f"{name}: expected error class {wanted}, got {got}")
    for name, entry in expect.log.items():
        transaction = seen.transactions[name]
        for key, field in (
            ("blind", "blind"),
            ("level", "isolation_level"),
            ("operation", "operation"),
        ):
            if key in entry and entry[key] != getattr(transaction, field):
                found.append(
                    f"{name}: expected {key} {entry[key]}, got {getattr(transaction, field)}"
                )
    for name, rows in expect.reads.items():
        found += _rows_differ(f"{name} read", rows, seen.transactions[name].rows, "expected", "got")
    contents = [(len(seen.versions) - 1, expect.tables), *expect.versions.items()]
    for k, tables in contents:
        if k >= len(seen.versions):
            found.append(f"version {k} is expected, the run ends at {len(seen.versions) - 1}")
            continue
        for table, rows in tables.items():
            what = f"table {table} at version {k}"
            found += _rows_differ(what, rows, seen.versions[k].get(table), "expected", "got")
    if expect.serial is not None and set(expect.serial) != set(judged.serial.orders):
        found.append(
            f"serial orders: expected {_orders(expect.serial)}, got {_orders(judged.serial.orders)}"
        )
    for wanted_text, names in (("allowed", expect.holds), ("forbidden", expect.fails)):
        for name in names:
            verdict = str(judged.verdict(level(name)))
            if verdict != wanted_text:
                found.append(f"{name}: expected {wanted_text}, got {verdict}")
    return found


def _meets(option: str, transaction: TransactionRun) -> bool:
    if option == "aborted":
        return transaction.outcome not in (*TOOK_EFFECT, "unknown") and not (
            transaction.outcome.startswith("error:")
        )
    return option in (transaction.outcome, transaction.exception)


def _orders(orders: tuple[str, ...]) -> str:
    return ", ".join(orders) or "none"


def _tables_json(tables: Mapping[str, Rows]) -> dict[str, object]:
    return {name: to_json(rows) for name, rows in tables.items()}


def _transaction_json(transaction: TransactionRun) -> dict[str, object]:
    t = transaction
    return {
        "outcome": t.outcome,
        "exception": t.exception,
        "error_class": t.error_class,
        "read_version": t.read_version,
        "version": t.version,
        "commits": list(t.commits),
        "blind": t.blind,
        "isolation_level": t.isolation_level,
        "operation": t.operation,
        "rows": None if t.rows is None else to_json(t.rows),
    }
