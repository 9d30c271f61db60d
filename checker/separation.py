"""The verb ``separate``: the smallest history that one spec admits and another forbids.

Exhaustive, in the table universe. What is found is written as a litmus file, read back, executed
anew, re-judged by the graph with reasons, and explained serially by two executors; only then is it
an answer. What is not found is "none" up to a bound that is stated, never more.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

from isolitmus.checker.admission import admission
from isolitmus.checker.execute import execute, execution_frame, observe
from isolitmus.checker.frames import RELATIONS, SETS
from isolitmus.checker.graph import judge
from isolitmus.checker.monotone import monotone
from isolitmus.checker.runs import run
from isolitmus.checker.serial import Disagreement, Serial, explain_serially
from isolitmus.checker.universe import candidates
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.litmus import Expectation, Litmus
from isolitmus.model.verdict import Forbidden
from isolitmus.specs.catalogue import protocol, protocols
from isolitmus.specs.litmus_file import read_litmus
from isolitmus.specs.litmus_text import litmus_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from isolitmus.checker.universe import Candidate
    from isolitmus.model.frame import Frame
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec
    from isolitmus.model.verdict import Violation

__all__ = ["ASSUMPTIONS", "Separation", "separate"]

ASSUMPTIONS = (
    "statements are deterministic, and each transaction is one statement in a session of its own",
    "a version of the log is written once (put if absent), and file statistics are right",
    "only the tables, statements and readers of the universe",
)


@dataclass(frozen=True, slots=True)
class Separation:
    """The answer to ``separate a b``: found, none up to the bound, or unknown (``found`` None).

    ``examined`` is the number of candidates looked at; ``serial`` explains the table that was found.
    """

    a: str
    b: str
    universe: str
    found: bool | None
    bound: str
    examined: int
    seconds: float
    unexplained: bool = False
    transactions: int | None = None
    litmus: Litmus | None = None
    violation: Violation | None = None
    serial: Serial | None = None

    def to_json(self) -> dict[str, object]:
        """The answer as interface.md has it."""
        return {
            "a": self.a,
            "b": self.b,
            "universe": self.universe,
            "found": self.found,
            "transactions": self.transactions,
            "litmus": None if self.litmus is None else self.litmus.text,
            "violation": None if self.violation is None else violation_json(self.violation),
            "explained_by": [] if self.serial is None else list(self.serial.orders),
            "unexplained_versions": [] if self.serial is None else list(self.serial.unexplained),
            "bound": self.bound,
            "proved": False,
            "assumptions": list(ASSUMPTIONS),
            "examined": self.examined,
            "seconds": round(self.seconds, 3),
        }


def violation_json(violation: Violation) -> dict[str, object]:
    """A violation as interface.md has it."""
    return {
        "axiom": violation.axiom,
        "cycle": [
            {"from": e.source, "to": e.target, "kind": e.kind, "why": e.why}
            for e in violation.cycle
        ],
    }


def separate(
    a: Spec,
    b: Spec,
    scope: Scope,
    *,
    transactions: Sequence[int] | None = None,
    unexplained: bool = False,
    seconds: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Separation:
    """The smallest history in the scope that ``a`` admits and ``b`` forbids.

    ``transactions``: the sizes to try, ascending (default: the scope's). ``unexplained``: only a
    history of which, at some version, no serial order of the writers so far gives the tables.
    ``seconds``: after so long the answer is unknown. ``progress`` is told the size and the number
    of candidates so far. IsolitmusError if a spec needs names that runs do not have.

    >>> from isolitmus.specs import scope, spec
    >>> answer = separate(spec("delta-write-serializable"), spec("log-serializable"), scope("table"))
    >>> answer.transactions, str(answer.litmus.schedule)
    (2, 'delete.start insert delete.commit')
    """
    for spec in (a, b):
        lacking = sorted(spec.needs - set(RELATIONS) - set(SETS))
        if lacking:
            raise IsolitmusError(
                f"{spec.name} needs {', '.join(lacking)}, which runs over tables do not have"
            )
    start = monotonic()
    sizes = sorted(transactions or scope.transactions)
    admits, permits = admission(a), admission(b)
    keep = admits if monotone(a) else _anything
    examined = 0
    for size in sizes:
        for candidate in candidates(scope, size, keep):
            examined += 1
            if progress is not None and examined % 500 == 0:
                progress(size, examined)
            if seconds is not None and monotonic() - start > seconds:
                return Separation(
                    a.name, b.name, scope.name, None, _bound(scope, sizes, size, seconds),
                    examined, monotonic() - start, unexplained,
                )  # fmt: skip
            if candidate is None or not admits(candidate.frame) or permits(candidate.frame):
                continue
            if unexplained and not candidate.unexplained():
                continue
            litmus, violation, serial = _checked(candidate, a, b, unexplained)
            return Separation(
                a.name, b.name, scope.name, True, _bound(scope, sizes, size, None), examined,
                monotonic() - start, unexplained, size, litmus, violation, serial,
            )  # fmt: skip
    return Separation(
        a.name, b.name, scope.name, False, _bound(scope, sizes, None, None), examined,
        monotonic() - start, unexplained,
    )  # fmt: skip


def _anything(_frame: Frame) -> bool:
    return True


def _bound(scope: Scope, sizes: Sequence[int], size: int | None, seconds: float | None) -> str:
    """How far the search went, in words."""
    parts = [
        f"{len(things)} {kind}{'' if len(things) == 1 else 's'}"
        for things, kind in (
            (scope.statements, "statement"),
            (scope.readers, "reader"),
            (scope.inits, "initial table"),
        )
    ]
    where = f"universe '{scope.name}' ({', '.join(parts)})"
    if seconds is not None:
        return f"stopped after {seconds:g} s, at {size} transactions in {where}"
    if size is None:
        return f"up to {max(sizes)} transactions, readers among them, in {where}"
    smaller = [str(n) for n in sizes if n < size]
    if not smaller:
        return f"the search of {where} starts at {size} transactions"
    return f"none with {' or '.join(smaller)} transactions in {where}"


def _checked(
    candidate: Candidate, a: Spec, b: Spec, unexplained: bool
) -> tuple[Litmus, Violation, Serial]:
    """The candidate as a litmus file, executed and judged anew from the file's text."""
    name = f"{a.name}-not-{b.name}"
    title = f"Admitted by {a.name}, forbidden by {b.name}"
    source = f"isolitmus separate {a.name} {b.name}{' --unexplained' if unexplained else ''}"
    plain = candidate.litmus(name, title, source)
    litmus = _reread(plain)
    execution = execute(litmus, a)
    seen = execution_frame(execution)
    aborted = [event.name for event in execution.events if event.aborted]
    verdict = judge(seen, b)
    if aborted or not judge(seen, a) or not isinstance(verdict, Forbidden):
        raise Disagreement(
            f"{name}: the search finds it admitted by {a.name} and forbidden by {b.name}, but its"
            f" litmus file, executed anew, is not:\n{litmus.text}"
        )
    serial = explain_serially(litmus, observe(litmus, execution, a.name))
    if unexplained and not serial.unexplained:
        raise Disagreement(f"{name}: the search finds it unexplained, its file is not")
    return _reread(_with_expectations(litmus, a)), verdict.violations[0], serial


def _reread(litmus: Litmus) -> Litmus:
    text = litmus_text(litmus)
    read = read_litmus(text, litmus.name)
    assert isinstance(read, Litmus)
    return read


def _with_expectations(litmus: Litmus, a: Spec) -> Litmus:
    """The test with what the model predicts of it under every protocol of the catalogue, and under
    ``a`` if it speaks of what a commit has not seen, as only protocols do.
    """
    specs = [protocol(name) for name in protocols()]
    expect: dict[str, Expectation] = {}
    if "unseen" in a.needs and a.name not in protocols():
        specs.append(a)
    for spec in specs:
        done = run(litmus, spec)
        verdicts = {name: str(verdict) for name, verdict in done.levels.items()}
        expect[spec.name] = Expectation(
            outcome={name: (t.outcome,) for name, t in done.run.transactions.items()},
            reads={n: t.rows for n, t in done.run.transactions.items() if t.rows is not None},
            tables=done.run.tables,
            serial=done.serial.orders,
            holds=tuple(n for n, v in verdicts.items() if v == "allowed"),
            fails=tuple(n for n, v in verdicts.items() if v == "forbidden"),
        )
    return Litmus(
        litmus.name, litmus.title, litmus.source, litmus.tables, litmus.init,
        litmus.transactions, litmus.schedule, expect,
    )  # fmt: skip
