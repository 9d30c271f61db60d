"""Serial orders by two executors, and what they explain of a run that a level forbids.

Every permutation of the writers up to a version is executed one by one from the initial tables, and
the tables are compared as bags. Two executors that share nothing do so: the model's own, and that
of the format (DuckDB for SQL). A disagreement between them is a defect of one, and is raised.

Levels judge conflicts (Adya): a row that was inserted and deleted unseen makes a dependency from a
reader that missed it, although its result would have been the same without the row. So a history
that a level forbids may still have a serial order in a weaker form of docs/semantics.md, 3.2. These
forms are no levels here:

- *view*, ``write-serializable-view``: in some serial order, all transactions read what they did
  read, and the final table equals the observed one;
- *state*, ``write-serializable-state``: some order produces the final table, whatever would have
  been read; ``…-coherent``: its prefixes produce every version.

The witnesses here are orders with names, readers included; ``tests/level_forms.py`` does the same
for writers alone, for theorems.

The level decides which transactions and which orders count. ``serializable``: all transactions,
with the results of readers, each after those before it in its session. ``log-serializable``: only
the order of the log. ``write-serializable``: the writers. ``update-serializable``: the writers and
one reader at a time. A read consists of row versions, by writer and values, and of the columns and
constraints of the tables.

View and state forms can be checked by name. A form is no text over relations: statements are
executed in other orders, so it needs statements, which a history of reads and writes does not have.
An order produces the table only if both executors say so.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING

from isolitmus.checker.execution.commit_loop import initial_stages, observed_run
from isolitmus.checker.judge.level_forms import NAMED_FORMS, STATE, STATES, VIEW, VIEWS
from isolitmus.model.errors import Disagreement, IsolitmusError
from isolitmus.model.execution import Event
from isolitmus.model.run import same_bag
from isolitmus.model.verdict import Allowed, Forbidden, Unknown, Violation
from isolitmus.specs.registries import format_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from isolitmus.checker.judge.level_forms import NamedForm
    from isolitmus.model.execution import Database, Effect, Execution
    from isolitmus.model.format import Executor
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.run import Run
    from isolitmus.model.sql.values import Rows
    from isolitmus.model.verdict import Verdict

MOST_WRITERS = 8
"""Maximum number of writers: 8 have 40,320 serial orders, and 9 take minutes."""


class ModelExecutor:
    """Model's own executor of serial orders; prefixes are shared between orders."""

    def __init__(self, litmus: Litmus) -> None:
        self._litmus, self._form = litmus, format_named(litmus.format)
        self._inits = initial_stages(self._form, litmus.tables, litmus.init)
        self._states: dict[tuple[str, ...], Database | None] = {(): self._inits[-1]}
        self._effects: dict[tuple[str, ...], Effect] = {}

    def after(self, order: tuple[str, ...]) -> Mapping[str, Rows] | None:
        """Return the tables after these transactions in this order; None if one of them fails."""
        state = self.state(order)
        return None if state is None else {name: table.rows() for name, table in state.items()}

    def state(self, order: tuple[str, ...]) -> Database | None:
        """Return the model's state after these transactions; None if one of them fails."""
        if order not in self._states:
            before = self.state(order[:-1])
            self._states[order] = None if before is None else self._step(order, before)
        return self._states[order]

    def _step(self, order: tuple[str, ...], before: Database) -> Database | None:
        """Return the tables after an order's last transaction; None if it fails."""
        done = self._effects[order] = self._form.alone(self._litmus, order[-1], before, self._inits)
        return (
            None if done.error is not None else self._form.after(before, Event(order[-1], done, 0))
        )

    def effect(self, order: tuple[str, ...]) -> Effect | None:
        """Return the effect of the last transaction after the others; None if one fails."""
        self.state(order)
        return self._effects.get(order)


@dataclass(frozen=True, slots=True)
class SerialOrders:
    """Serial orders of the writers that produce the final tables.

    ``unexplained`` are the versions whose tables no order of the writers so far produces.
    """

    orders: tuple[str, ...]
    unexplained: tuple[int, ...]


def writers(litmus: Litmus, run: Run, last: int | None = None) -> tuple[str, ...]:
    """Return the transactions that recorded a version, up to ``last``, in log order.

    A statement of several commits counts once, with its last one: in a serial order it is whole.
    """
    recorded = [
        (min(t.commits), name)
        for name, t in run.transactions.items()
        if t.commits and litmus.client(name).commit_of is None
    ]
    return tuple(name for first, name in sorted(recorded) if last is None or first <= last)


def explain_serially(
    litmus: Litmus, run: Run, executor: ModelExecutor | None = None
) -> SerialOrders:
    """Return the serial orders that explain a run, found by both executors.

    Parameters
    ----------
    litmus : Litmus
        The test.
    run : Run
        Its run.
    executor : ModelExecutor, optional
        The model's executor, with the orders that it has executed already.

    Raises
    ------
    Disagreement
        If the executors differ.
    IsolitmusError
        If the run has more than `MOST_WRITERS` writers.
    """
    count = len(writers(litmus, run))
    if count > MOST_WRITERS:
        raise IsolitmusError(
            f"{litmus.name}: {count} transactions write; the serial orders of at most"
            f" {MOST_WRITERS} are tried"
        )
    own = _explain(executor or ModelExecutor(litmus), litmus, run)
    theirs = _explain(format_named(litmus.format).independent(litmus), litmus, run)
    if own != theirs:
        raise Disagreement(
            f"{litmus.name}: the model's executor finds the serial orders {list(own.orders)}"
            f" (unexplained versions {list(own.unexplained)}), the independent one"
            f" {list(theirs.orders)} (unexplained {list(theirs.unexplained)})"
        )
    return own


def _explain(executor: Executor, litmus: Litmus, run: Run) -> SerialOrders:
    """Return the serial orders that produce the final tables, and the unexplained versions."""
    names = writers(litmus, run)
    versions = run.versions
    orders = _orders(executor, names, versions[-1])
    so_far = [writers(litmus, run, k) for k in range(len(versions))]
    return SerialOrders(
        tuple(" ".join(order) for order in orders), unexplained_versions(executor, so_far, versions)
    )


def _orders(
    executor: Executor, names: Sequence[str], seen: Mapping[str, Rows]
) -> list[tuple[str, ...]]:
    return [order for order in permutations(names) if is_serial_order(executor, order, seen)]


def is_serial_order(executor: Executor, order: tuple[str, ...], seen: Mapping[str, Rows]) -> bool:
    """Return whether the transactions in this order produce the observed tables."""
    tables = executor.after(order)
    return (
        tables is not None
        and tables.keys() >= seen.keys()
        and all(same_bag(tables[name], seen[name]) for name in seen)
    )


def unexplained_versions(
    executor: Executor, so_far: Sequence[tuple[str, ...]], versions: Sequence[Mapping[str, Rows]]
) -> tuple[int, ...]:
    """Return the versions whose tables no serial order of the writers so far produces.

    Parameters
    ----------
    executor : Executor
        Executes the orders.
    so_far : sequence of tuple of str
        The writers up to each version.
    versions : sequence of mapping
        The tables at each version.
    """
    return tuple(
        k
        for k, (names, seen) in enumerate(zip(so_far, versions, strict=True))
        if not any(is_serial_order(executor, order, seen) for order in permutations(names))
    )


CONFLICT = ("serializable", "log-serializable", "write-serializable", "update-serializable")
"""Levels that are defined by a serial order, and judge it by conflicts."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Explanation by serial orders of a history that a level forbids.

    ``orders`` produce the final table; if it is empty, no order does. ``reads`` says whether they
    also explain all reads, ``versions`` whether they produce every version of the table. For
    ``update-serializable`` there may be several orders, for different readers.
    """

    level: str
    orders: tuple[tuple[str, ...], ...]
    reads: bool = False
    versions: bool = False

    @property
    def name(self) -> str | None:
        """Form of the level that the history has, by the names of docs/semantics.md, 3.2.

        >>> Explanation("serializable", (("a", "b"),), reads=True).name
        'serializable-view'
        """
        if self.reads:
            return f"{self.level}-view"
        if self.level == "log-serializable":
            return f"{self.level}-state" if self.versions else None
        coherent = "-coherent" if self.versions else ""
        return f"{self.level}-state{coherent}" if self.orders else None

    def to_json(self) -> dict[str, object]:
        """Return the sense, the orders, and whether they produce every version."""
        orders = [" ".join(order) for order in self.orders]
        return {"sense": self.name, "orders": orders, "every_version": self.versions}


def strongest_explanations(
    litmus: Litmus,
    execution: Execution,
    levels: Iterable[str],
    serial: SerialOrders | None = None,
    executor: ModelExecutor | None = None,
) -> dict[str, Explanation]:
    """Return the strongest serial explanation of an execution, for each of these levels.

    Levels that are not defined by a serial order are left out. The result is empty if the test has
    no rows, or more writers than `MOST_WRITERS`.

    Parameters
    ----------
    litmus : Litmus
        The test.
    execution : Execution
        Its execution.
    levels : iterable of str
        Names of levels that forbid the execution.
    serial : SerialOrders, optional
        Serial orders that produce the table, by both executors; computed if not given.
    executor : ModelExecutor, optional
        The model's executor, with the orders that it has executed already.

    Examples
    --------
    >>> from isolitmus.checker.execution.commit_loop import execute
    >>> from isolitmus.specs import litmus
    >>> reorder, levels = litmus("reorder"), ["log-serializable", "write-serializable"]
    >>> found = strongest_explanations(reorder, execute(reorder), levels)
    >>> [(one.level, one.name) for one in found.values()]
    [('log-serializable', None), ('write-serializable', 'write-serializable-view')]
    """
    asked = [level for level in levels if level in CONFLICT]
    executor = executor or ModelExecutor(litmus)
    found = SerialExplainer(litmus, execution, executor)
    if not asked or litmus.raw or len(found.log) > MOST_WRITERS:
        return {}
    if serial is None:
        serial = explain_serially(litmus, observed_run(litmus, execution, ""), executor)
    orders = [tuple(order.split()) for order in serial.orders]
    return {level: found.best(level, orders) for level in asked}


class SerialExplainer:
    """Explanations of an execution by orders of its transactions."""

    def __init__(self, litmus: Litmus, execution: Execution, executor: ModelExecutor) -> None:
        self.executor, self.format = executor, format_named(litmus.format)
        self.tables, self.states = litmus.tables, execution.states
        self.events = [
            event
            for event in execution.events
            if not event.aborted and litmus.client(event.name).commit_of is None
        ]
        self.writers = [event for event in self.events if event.version is not None]
        self.readers = [event for event in self.events if event.version is None]
        self.log = tuple(event.name for event in self.writers)
        shown = litmus.tables.keys() - litmus.opaque
        self.versions = [
            {name: table.rows() for name, table in state.items() if name in shown}
            for state in execution.states
        ]

    def best(self, level: str, orders: Sequence[tuple[str, ...]]) -> Explanation:
        """Return the strongest explanation by the given orders, which produce the final table."""
        if level == "log-serializable":
            orders = [order for order in orders if order == self.log]
        best = Explanation(level, ())
        for one in self.explanations(level, orders):
            if not best.orders or (one.reads, one.versions) > (best.reads, best.versions):
                best = one
            if best.reads and best.versions:
                break
        return best

    def explanations(self, level: str, orders: Sequence[tuple[str, ...]]) -> Iterator[Explanation]:
        """Yield the explanation of each order.

        For ``update-serializable``, also yield one in which each reader has its own order.
        """
        readers = [] if level == "write-serializable" else self.readers
        for order in orders:
            full = self.placed(order, readers, level)
            yield Explanation(
                level, (full or order,), reads=full is not None, versions=self.every_version(order)
            )
        if level == "update-serializable":
            each = [[self.placed(order, [reader], level) for order in orders] for reader in readers]
            found = [next(filter(None, fulls), None) for fulls in each]
            fitting = tuple(dict.fromkeys(full for full in found if full is not None))
            if fitting and None not in found:
                every = all(map(self.every_version, fitting))
                yield Explanation(level, fitting, reads=True, versions=every)

    def placed(
        self, order: tuple[str, ...], readers: Sequence[Event], level: str
    ) -> tuple[str, ...] | None:
        """Return the order with the readers in it; None if a transaction would read something else.

        Each reader is placed at its version if possible. Otherwise, except for
        ``log-serializable``, it is placed as early as possible.
        """
        full = self._placed(order, readers, level, early=False)
        if full is None and readers and level != "log-serializable":
            return self._placed(order, readers, level, early=True)
        return full

    def _placed(
        self, order: tuple[str, ...], readers: Sequence[Event], level: str, *, early: bool
    ) -> tuple[str, ...] | None:
        """Return the order with all readers placed between the writers, or None."""
        left = list(readers)
        done: list[str] = []
        by_name = {event.name: event for event in self.writers}

        def fits(event: Event, before: tuple[str, ...]) -> bool:
            in_turn = level != "serializable" or self.in_turn(event, done)
            return in_turn and self.reads_as_before(event, before)

        for k in range(len(order) + 1):
            # place readers before writer k: all that fit, or only those that read this very version
            before = order[:k]
            here = [r for r in left if early or self.so_far(r.read_version) == set(before)]
            while (reader := next((r for r in here if fits(r, before)), None)) is not None:
                here.remove(reader)
                left.remove(reader)
                done.append(reader.name)
            if k < len(order):
                if not fits(by_name[order[k]], before):
                    return None
                done.append(order[k])
        return None if left else tuple(done)

    def in_turn(self, event: Event, done: Sequence[str]) -> bool:
        """Return whether the transactions before it in its session are done."""
        earlier = self.events[: self.events.index(event)]
        mine = [e.name for e in earlier if e.session is not None and e.session == event.session]
        return all(name in done for name in mine)

    def reads_as_before(self, event: Event, before: tuple[str, ...]) -> bool:
        """Return whether a transaction reads, after these writers, what it did read."""
        effect, state = self.executor.effect((*before, event.name)), self.executor.state(before)
        if effect is None or state is None or effect.error is not None:
            return False
        seen = self.states[event.read_version]
        same = self.defined(event, state) == self.defined(event, seen)
        return same and _read(effect) == _read(event.effect)

    def defined(self, event: Event, database: Database) -> object:
        """Return the definitions of the tables that a transaction touches and so reads."""
        footprint = event.effect.footprint
        touched = {read.table for read in event.effect.reads}
        touched |= set() if footprint is None else {footprint.table}
        return self.format.definitions(database, self.tables, touched)

    def every_version(self, order: tuple[str, ...]) -> bool:
        """Return whether the prefixes of the order produce the tables at every version."""
        return all(
            is_serial_order(self.executor, tuple(n for n in order if n in self.so_far(k)), seen)
            for k, seen in enumerate(self.versions)
        )

    def views_at_every_version(self) -> bool:
        """Return whether, at each version, some order explains the writers' reads and the table."""
        for k, seen in enumerate(self.versions):
            so_far = [name for name in self.log if name in self.so_far(k)]
            if not any(
                is_serial_order(self.executor, order, seen)
                and self.placed(order, (), "write-serializable") is not None
                for order in permutations(so_far)
            ):
                return False
        return True

    def so_far(self, version: int) -> set[str]:
        """Return the writers up to a version."""
        return {e.name for e in self.writers if e.version is not None and e.version <= version}


def _read(effect: Effect) -> object:
    """Return the reads of a transaction: row versions, by writer and values."""
    return [
        (read.table, read.words, Counter((row.writer, row.values) for row in read.matched))
        for read in effect.reads
    ]


def form_verdicts(litmus: Litmus, execution: Execution, names: Sequence[str]) -> dict[str, Verdict]:
    """Return the verdicts of forms of levels on an execution.

    An allowed form has a serial order as witness, if one order suffices.

    Parameters
    ----------
    litmus : Litmus
        The test.
    execution : Execution
        Its execution.
    names : sequence of str
        Names in `NAMED_FORMS`.

    Raises
    ------
    KeyError
        If a name is unknown.

    Examples
    --------
    >>> from isolitmus.checker.execution.commit_loop import execute
    >>> from isolitmus.specs import litmus
    >>> reorder = litmus("reorder")
    >>> form_verdicts(reorder, execute(reorder), ["write-serializable-state"])
    {'write-serializable-state': allowed, in the order delete insert}
    >>> form_verdicts(reorder, execute(reorder), ["log-serializable-state"])
    {'log-serializable-state': forbidden
      not log-serializable-state}
    """
    forms = {name: NAMED_FORMS[name] for name in names}
    if not forms:
        return {}
    executor = ModelExecutor(litmus)
    found = SerialExplainer(litmus, execution, executor)
    if litmus.raw:
        return dict.fromkeys(forms, Unknown("raw transactions have no rows"))
    if len(found.log) > MOST_WRITERS:
        reason = (
            f"the history has {len(found.log)} writers; serial orders are tried for at most"
            f" {MOST_WRITERS}"
        )
        return dict.fromkeys(forms, Unknown(reason))
    serial = explain_serially(litmus, observed_run(litmus, execution, ""), executor)
    orders = [tuple(order.split()) for order in serial.orders]
    verdicts: dict[str, Verdict] = {}
    for name, form in forms.items():
        witness = _witness(found, form, orders, serial.unexplained)
        violation = Violation(name, "form", ())
        verdicts[name] = Forbidden((violation,)) if witness is None else Allowed(witness)
    return verdicts


def _witness(
    found: SerialExplainer,
    form: NamedForm,
    orders: Sequence[tuple[str, ...]],
    unexplained: Sequence[int],
) -> tuple[str, ...] | None:
    """Return an order that shows that an execution has a form; None if it does not have it.

    An empty order means that several orders are needed, one for each part.
    """
    if form.sense == VIEWS:
        return () if found.views_at_every_version() else None
    if form.sense == STATES:
        return () if orders and not unexplained else None
    if form.level == "log-serializable":
        orders = [order for order in orders if order == found.log]
    elif form.sense == STATE:
        return orders[0] if orders else None
    for one in found.explanations(form.level, orders):
        if one.reads if form.sense == VIEW else one.versions:
            return one.orders[0] if len(one.orders) == 1 else ()
    return None
