"""``isolitmus sweep``: count every candidate of a scope."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from isolitmus.checker.counting.tally import count as count_candidates
from isolitmus.checker.counting.work import cores as available
from isolitmus.checker.finds import distinct, of_sweep
from isolitmus.checker.sweep import planned
from isolitmus.checker.sweep import sweep as count_all
from isolitmus.cli.carrying import carry_found, refuse
from isolitmus.cli.output import named, print_json, progress, say
from isolitmus.cli.separate import sizes
from isolitmus.model.errors import IsolitmusError
from isolitmus.specs import scope as read_scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from isolitmus.checker.sweep import Sweep
    from isolitmus.model.scope import Scope

    Count = Callable[..., Sweep]

__all__ = ["sweep"]


def sweep(
    scope: str,
    transactions: str | None,
    limit: int,
    *,
    cores: int | None,
    spark: bool,
    master: str | None,
    out: Path | None,
    engine: str | None,
    as_json: bool,
) -> int:
    """Exit status 1 if some protocol admits what a level forbids, or, of the first such histories, some
    ``engine`` makes not what the model predicts; else 0.
    """
    _refuse(cores, spark, master, out)
    carriers = [] if engine is None else named("engine", engine)
    refuse(carriers)
    inside = read_scope(scope)
    asked = inside.transactions if transactions is None else sizes(transactions)
    cores = cores or available()
    for n in asked:
        planned(inside, n, limit=limit, cores=cores)
    swept: list[Sweep] = []
    with _spark(master, out) if spark else _cores(cores) as count:
        for n in asked:
            whole = f"{count_candidates(inside, n):,} candidates with {n} transactions"
            with progress(f"sweep {inside.name}") as tell:
                done = count(
                    inside,
                    n,
                    limit=limit,
                    progress=lambda k: tell(f"{k:,} of {whole}"),  # noqa: B023
                )
            swept.append(done)
            if not as_json:
                _print(done)
    documents = [
        {**done.to_json(), **_carried(done, inside, carriers, quiet=as_json)} for done in swept
    ]
    if as_json:
        print_json(documents[0] if len(documents) == 1 else documents)
    return int(any(any(c.forbidden.values()) for s in swept for c in s.protocols.values()))


def _carried(done: Sweep, inside: Scope, carriers: list[str], *, quiet: bool) -> dict[str, object]:
    """The first histories that a sweep found carried out, and printed unless quiet: the runs for JSON."""
    if not carriers:
        return {}
    tests = list(distinct(of_sweep(done, inside)))
    if not tests:
        return {"replays": []}
    carried = carry_found(tests, carriers, quiet=quiet)
    return {"replays": carried.documents}


def _refuse(cores: int | None, spark: bool, master: str | None, out: Path | None) -> None:
    if cores is not None and cores < 1:
        raise IsolitmusError(f"--cores is {cores}; a whole number from 1 is wanted")
    if spark and cores is not None:
        raise IsolitmusError("--cores is for a sweep without Spark; --master says how many it has")
    if not spark and (master is not None or out is not None):
        raise IsolitmusError(f"--{'master' if master is not None else 'out'} needs --spark")


@contextmanager
def _cores(cores: int) -> Iterator[Count]:
    yield partial(count_all, cores=cores)


@contextmanager
def _spark(master: str | None, out: Path | None) -> Iterator[Count]:
    from isolitmus.pipeline.jobs import MASTER, open_for_sweeps
    from isolitmus.pipeline.jobs import sweep as count_on_spark

    with open_for_sweeps(master or MASTER) as session:
        yield partial(count_on_spark, session=session, out=out)


def _print(done: Sweep) -> None:
    say(
        f"{done.scope}: {done.candidates:,} candidates with {done.transactions} transactions,"
        f" in {done.seconds:.1f} s"
    )
    for name, counts in done.protocols.items():
        say(f"  {name} admits {counts.admitted:,}, of which")
        width = max(map(len, counts.forbidden), default=0)
        for level, number in counts.forbidden.items():
            share = _share(number, counts.admitted)
            say(f"    {number:>9,} are forbidden by {level:<{width if share else 0}}{share}")
        say(
            f"    {counts.not_log_order:>9,} end with a table that the order of the log does not give"
        )
        say(
            f"    {counts.unexplained:>9,} have a version that no serial order of the writers gives"
        )
    if done.failure is not None:
        say(
            f"  {done.failed:,} are not admitted because a statement fails in them, the first:"
            f" '{done.failure.sql}' with {done.failure.exception} ({done.failure.why})"
        )


def _share(number: int, of: int) -> str:
    return f"  ({100 * number / of:.2f} %)" if number else ""
