"""``isolitmus sweep``: count every candidate of a scope."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from isolitmus.checker.execution.worker_processes import available_cores as available
from isolitmus.checker.render.sweeps import abstract_lines, listed_lines, sweep_lines
from isolitmus.checker.search.discovered_tests import distinct_tests, first_found_tests
from isolitmus.checker.search.space_searches import ABSTRACT
from isolitmus.checker.sweeps.table_sweep import LIMIT, candidates_in, sweep_work
from isolitmus.checker.sweeps.table_sweep import sweep as count_all
from isolitmus.cli.conversion import TABLES, OutputForms
from isolitmus.cli.engine_runs import EngineRun, refuse_engines, report_refusals, run_found
from isolitmus.cli.options import (
    SPARK_JOBS,
    Cores,
    Json,
    Master,
    Memory,
    Time,
    check_cores,
    needs_spark,
    read_budget,
    read_sizes,
    split_names,
)
from isolitmus.cli.output import Pace, check_output_paths, progress, say
from isolitmus.model.display import count_of
from isolitmus.model.errors import IsolitmusError, near
from isolitmus.specs import scope as read_scope
from isolitmus.specs import spec
from isolitmus.specs.disk.output_files import Location

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from isolitmus.checker.sweeps.abstract_sweep import AbstractSweep
    from isolitmus.checker.sweeps.listed_candidates import ListedCandidates
    from isolitmus.checker.sweeps.table_sweep import Sweep
    from isolitmus.cli.conversion import OutputForm
    from isolitmus.model.budget import Budget
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec

    Count = Callable[..., Sweep]

KEEP = ("counts", "findings", "executions", "verdicts")
"""Tables that ``--keep`` keeps, each with those before it."""
FORMS = OutputForms(*TABLES)


@check_output_paths(out=True)
def sweep(
    scope: Annotated[
        str,
        typer.Argument(
            metavar="SCOPE|abstract",
            help="Name of a scope, a scope file, or abstract (abstract histories).",
        ),
    ],
    *,
    transactions: Annotated[
        str | None,
        typer.Option(metavar="N|N..M", help="Number of transactions; default: that of the scope."),
    ] = None,
    keys: Annotated[
        int | None,
        typer.Option(metavar="N", help="Abstract histories: number of keys; default: 2."),
    ] = None,
    level: Annotated[
        str | None,
        typer.Option(
            metavar="L[,L...]",
            help="Abstract histories: levels, separated by commas; default: all shipped levels.",
        ),
    ] = None,
    no_sessions: Annotated[
        bool,
        typer.Option(
            "--no-sessions", help="Abstract histories: each transaction has its own session."
        ),
    ] = False,
    no_aborts: Annotated[
        bool, typer.Option("--no-aborts", help="Abstract histories: every transaction commits.")
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(metavar="N", help="Maximum number of candidates; default: 20,000,000."),
    ] = None,
    list_: Annotated[
        int | None,
        typer.Option(
            "--list",
            metavar="N",
            help="List the first N candidates of each count (of histories: of each level).",
        ),
    ] = None,
    cores: Cores = None,
    spark: Annotated[bool, typer.Option("--spark", help="Count on Spark.")] = False,
    master: Master = None,
    out: Annotated[
        Location | None,
        typer.Option(
            metavar="DIR",
            parser=Location,
            help=(
                "With --spark: folder for Delta tables of the counts; existing tables are"
                " continued."
            ),
        ),
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(KEEP),
            help="With --out: tables to write, each with those before it; default: findings.",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="E[,E...]",
            help="Run the first forbidden histories on these engines: model, delta, …",
        ),
    ] = None,
    time: Time = None,
    memory: Memory = None,
    as_: Annotated[str | None, FORMS.option] = None,
    as_json: Json = False,
) -> int:
    """A candidate is an initial table, a statement per transaction, the commit order, and the
    version each read.

    Exit status:
      0  no protocol admits a history that a level forbids
      1  some protocol does, or with --engine some engine differs from the model's prediction
      3  a limit ended the count
      other  with --engine: the status of run, if the histories could not be run

    Examples:
      isolitmus sweep orders
      isolitmus sweep two-partitions --transactions 3
      isolitmus sweep abstract --level serializable,snapshot-isolation

    """
    form = FORMS.chosen(as_, as_json=as_json)
    within = read_budget(time, memory)
    if list_ is not None and list_ < 1:
        raise IsolitmusError(f"--list is {list_}; expected a number from 1")
    if list_ is not None and form.word in TABLES:
        raise IsolitmusError(f"--list does not apply with --as {form.word}; leave it out")
    if scope == ABSTRACT:
        given = {
            "cores": cores,
            "spark": spark or None,
            "engine": engine,
            "limit": limit,
            "out": out,
            "keep": keep,
        }
        _none_of(given, "needs a scope; search space 'abstract' has no candidates")
        of = [] if level is None else [spec(name) for name in split_names("level", level)]
        few = range(2, 3) if transactions is None else read_sizes(transactions)
        return _abstract(
            form,
            of,
            few,
            keys,
            within,
            sessions=not no_sessions,
            aborts=not no_aborts,
            most_listed=list_ or 0,
        )
    given = {
        "keys": keys,
        "level": level,
        "no-sessions": no_sessions or None,
        "no-aborts": no_aborts or None,
    }
    _none_of(given, "is for abstract histories; run isolitmus sweep abstract")
    limit = LIMIT if limit is None else limit
    _refuse(cores, spark, master, out, keep)
    carriers = [] if engine is None else split_names("engine", engine)
    refuse_engines(carriers)
    inside = read_scope(scope)
    asked = inside.transactions if transactions is None else read_sizes(transactions)
    cores = cores or available()
    for n in asked:
        sweep_work(inside, n, limit=limit, cores=cores)
    swept: list[Sweep] = []
    lists: list[tuple[ListedCandidates, ...]] = []
    with SPARK_JOBS.named("sweep")(master, out, keep) if spark else _cores(cores) as count:
        for n in asked:
            pace = Pace(candidates_in(inside, n), f"candidates with {count_of(n, 'transaction')}")
            with progress(f"sweep {inside.name}") as tell:
                done = count(
                    inside,
                    n,
                    limit=limit,
                    budget=within,
                    progress=lambda k: tell(pace.words(k)),  # noqa: B023
                )
            swept.append(done)
            listed = _listed(inside, done, list_, limit=limit, within=within)
            lists.append(listed)
            if not form.quiet:
                for line in (*sweep_lines(done), *listed_lines(listed)):
                    say(line)
            if done.ended is not None:
                break
    carried: list[EngineRun] = []
    replays = [_carried(done, inside, carriers, carried, quiet=form.quiet) for done in swept]
    if out is not None and any(here.seen for here in carried):
        seen = [one for here in carried for one in here.seen]
        SPARK_JOBS.named("replays").keep(inside, seen, out, master)

    def document() -> object:
        documents = [
            {
                **done.to_json(),
                **({"listed": [one.to_json() for one in some]} if list_ else {}),
                **more,
            }
            for done, some, more in zip(swept, lists, replays, strict=True)
        ]
        return documents[0] if len(documents) == 1 else documents

    form.show(swept, document)
    if status := report_refusals(carried):
        return status
    ended = [*(done.ended for done in swept), *(one.ended for some in lists for one in some)]
    if any(why is not None for why in ended):
        return 3
    return int(any(any(c.forbidden.values()) for s in swept for c in s.protocols.values()))


def _listed(
    inside: Scope, done: Sweep, most: int | None, *, limit: int, within: Budget
) -> tuple[ListedCandidates, ...]:
    """Return the first candidates of each count, if they were asked for."""
    if most is None or done.ended is not None:
        return ()
    from isolitmus.checker.sweeps.listed_candidates import list_candidates

    with progress(f"list of {inside.name}"):
        return list_candidates(
            sweep_work(inside, done.transactions, limit=limit), done, most, within
        )


def _abstract(
    form: OutputForm,
    levels: Sequence[Spec],
    asked: Sequence[int],
    keys: int | None,
    within: Budget,
    *,
    sessions: bool,
    aborts: bool,
    most_listed: int,
) -> int:
    """Count the histories that levels admit and print the counts.

    Returns exit status 3 if a limit ended it, else 0.
    """
    from isolitmus.checker.sweeps.abstract_sweep import askable_levels, sweep_abstract

    done: list[AbstractSweep] = []
    for n in asked:
        with progress(f"sweep abstract, {count_of(n, 'transaction')}") as tell:
            found = sweep_abstract(
                levels or askable_levels(),
                n,
                2 if keys is None else keys,
                sessions=sessions,
                aborts=aborts,
                most_listed=most_listed,
                budget=within,
                progress=lambda k: tell(f"{k:,} counted"),
            )
        done.append(found)
        if not form.quiet:
            for line in abstract_lines(found):
                say(line)
        if found.ended is not None:
            break
    documents = [found.to_json() for found in done]
    form.show(done, lambda: documents[0] if len(documents) == 1 else documents)
    return 3 if any(found.ended for found in done) else 0


def _none_of(given: Mapping[str, object], why: str) -> None:
    """Raise IsolitmusError for the first of these options that has a value."""
    for name, value in given.items():
        if value is not None:
            raise IsolitmusError(f"--{name} {why}")


def _carried(
    swept: Sweep, inside: Scope, carriers: list[str], done: list[EngineRun], *, quiet: bool
) -> dict[str, object]:
    """Run the first histories that a sweep found, print them unless quiet, and return JSON."""
    if not carriers:
        return {}
    tests = list(distinct_tests(first_found_tests(swept, inside)))
    carried = run_found(tests, carriers, done, quiet=quiet) if tests else EngineRun()
    return {"replays": carried.documents, **carried.aside}


def _refuse(
    cores: int | None, spark: bool, master: str | None, out: Location | None, keep: str | None
) -> None:
    """Raise IsolitmusError if options have invalid values or exclude each other."""
    check_cores(cores)
    if keep is not None and keep not in KEEP:
        raise IsolitmusError(f"--keep is '{keep}'{near(keep, KEEP)}")
    if keep is not None and out is None:
        raise IsolitmusError("--keep needs --out; name a folder with --out")
    if spark and cores is not None:
        raise IsolitmusError("--cores excludes --spark; set the cores with --master")
    needs_spark(spark, master, out)


@contextmanager
def _cores(cores: int) -> Iterator[Count]:
    yield partial(count_all, cores=cores)
