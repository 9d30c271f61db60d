"""What to do about a history that was found: advice, and what the same search says once it is followed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from isolitmus.checker.execution.run_result import Judged, run
from isolitmus.checker.execution.serial_orders import writers
from isolitmus.checker.render.demo_page import Advice
from isolitmus.checker.render.run_panels import conclusion, decision
from isolitmus.checker.search.separation import separate
from isolitmus.model.litmus import Litmus
from isolitmus.model.run import TOOK_EFFECT
from isolitmus.model.schedule import Schedule, Step
from isolitmus.specs import protocol, spec
from isolitmus.specs.files.scope_file import with_jobs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from isolitmus.checker.search.separation_result import Separation
    from isolitmus.model.scope import Scope

__all__ = ["REMEDIES", "Remedy", "advice", "followed"]


@dataclass(frozen=True, slots=True)
class Remedy:
    """What one can do: another protocol, or other statements for some jobs."""

    title: str
    """In a few words."""
    how: str
    """In a sentence or two."""
    sql: str
    """The statement for it; empty: there is none."""
    under: str = ""
    """The protocol instead."""
    jobs: Mapping[str, str | None] = field(default_factory=dict)
    """Statements instead, by job; None: not that job."""


def _merge(day: str) -> str:
    return (
        f"MERGE INTO orders USING (SELECT {{fresh}} AS id, 25 AS amount, '{day}' AS day) AS new"
        " ON orders.id = new.id WHEN NOT MATCHED THEN INSERT *"
    )


REMEDIES = (
    Remedy(
        "Set the table to Serializable",
        "On Databricks, where WriteSerializable is the default, each table can have it. A table of"
        " open-source Delta is Serializable unless something else made it WriteSerializable, such as"
        " another writer or a conversion from Parquet: by SQL nobody can set"
        " WriteSerializable there. Runs of this page set it through Delta’s own transactions.",
        "ALTER TABLE orders SET TBLPROPERTIES ('delta.isolationLevel' = 'Serializable')",
        under="delta-serializable",
    ),
    Remedy(
        "Let jobs that add rows read the table",
        "WriteSerializable passes over blind appends: commits that add rows and read nothing. A MERGE"
        " that inserts what is not there yet reads the table, and so is none. It also adds"
        " nothing twice when it is run again.",
        _merge("mon").format(fresh=100),
        jobs={"late_order": _merge("mon"), "order": _merge("tue")},
    ),
    Remedy(
        "Clean up only what nobody adds to any more",
        "Partition the table so that whoever deletes and whoever appends never share a partition: what"
        " comes late goes into the day on which it comes, say, and a day is deleted once it is over."
        " Then these two never meet.",
        "INSERT INTO orders VALUES (100, 25, 'tue')",
        jobs={
            "late_order": "INSERT INTO orders VALUES ({fresh}, 25, 'tue')",
            "order": None,
            "purge": None,
        },
    ),
)
"""Advice for jobs such as those of the scope ``orders``."""


def advice(answer: Separation, inside: Scope) -> Iterator[Advice]:
    """Each remedy with what the search finds once it is followed, and what becomes of the history."""
    litmus = answer.litmus
    if not isinstance(litmus, Litmus):
        return
    for remedy in REMEDIES:
        under = remedy.under or answer.a
        again = separate(
            spec(under),
            spec(answer.b),
            with_jobs(inside, remedy.jobs),
            unexplained=answer.unexplained,
            shipped=False,
        )
        judged = run(followed(litmus, inside, remedy), protocol(under))
        yield Advice(
            remedy.title,
            remedy.how,
            remedy.sql,
            again.found is False,
            f"Asked again, the search finds {_found(again)} ({again.bound}).",
            f"At the same schedule it {decision(judged)}. {_retried(judged)}",
        )
    apart = replace(litmus, schedule=_one_by_one(litmus.transactions))
    judged = run(apart, protocol(answer.a))
    words, how = conclusion(judged)
    yield Advice(
        "Or let one job write at a time",
        "One writer, or a scheduler that starts a job when the one before it has ended: then there is"
        " nothing to reorder, at any level.",
        "",
        how == "good",
        f"One after another, the jobs of this history do that: {words}",
        "",
    )


def followed(litmus: Litmus, inside: Scope, remedy: Remedy) -> Litmus:
    """The history with a remedy's statements for those that it changes, at the same schedule."""
    changed = with_jobs(inside, remedy.jobs)
    instead = {changed.jobs[each[0].sql]: each for each in changed.statements}
    transactions = dict(litmus.transactions)
    for name, statement in litmus.transactions.items():
        for each in inside.statements:
            texts = [one.sql for one in each]
            job = inside.jobs[each[0].sql]
            if statement.sql in texts and job in instead:
                transactions[name] = instead[job][texts.index(statement.sql)]
    return replace(litmus, transactions=transactions, expect={})


def _found(answer: Separation) -> str:
    if answer.found is None:
        return "no answer"
    return f"one with {answer.transactions}" if answer.found else "none"


def _retried(judged: Judged) -> str:
    """What becomes of those that are refused, run again after the others."""
    seen = judged.run.transactions
    refused = [name for name, t in seen.items() if t.outcome not in TOOK_EFFECT]
    order = [*writers(judged.run), *refused]
    again = replace(judged.litmus, schedule=_one_by_one(order))
    done = run(again, protocol(judged.run.protocol)) if refused else judged
    words = conclusion(done)[0]
    if not refused:
        return words
    who = " and ".join(refused)
    if any(t.outcome not in TOOK_EFFECT for t in done.run.transactions.values()):
        return f"Run again, {who} may be refused once more."
    return f"Run again, {who} {'commits' if len(refused) == 1 else 'commit'}: {words}"


def _one_by_one(names: Iterable[str]) -> Schedule:
    return Schedule(tuple(Step(name, "both") for name in names))
