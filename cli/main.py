"""The shell: one thin command each, no logic. Heavy imports wait until a command runs."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

from isolitmus.model.errors import EngineUnavailable, IsolitmusError, TimeLimit

__all__ = ["app", "main"]

app = typer.Typer(
    name="isolitmus",
    help="What does an isolation level of a lakehouse table really allow?",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]


def main() -> None:
    """The entry point: an error is one message on standard error and an exit status (2 bad input,
    3 a limit was reached, 4 an engine could not be started), never a traceback.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal may not have every sign of a picture
    try:
        app()
    except EngineUnavailable as error:
        _fail(error, 4)
    except TimeLimit as error:
        _fail(error, 3)
    except IsolitmusError as error:
        _fail(error, 2)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)


def _fail(error: IsolitmusError, status: int) -> None:
    sys.stderr.write(f"isolitmus: {error}\n")
    sys.exit(status)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder for the report.")] = Path(
        "report"
    ),
    no_spark: Annotated[bool, typer.Option("--no-spark", help="Predict only.")] = False,
    as_json: Json = False,
) -> None:
    """Find the delete/insert reorder and the hole of WriteSerializable, and replay both on Delta."""
    from isolitmus.cli.demo import demo as command

    raise typer.Exit(command(out, spark=not no_spark, as_json=as_json))


@app.command()
def show(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Names, or a kind: levels, …")
    ] = None,
    spec: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Litmus tests as this spec sees them, with what its statements denote.",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="E[,E...]",
            help="Carry out what a protocol's portrait shows on these engines: model, delta, …",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """What is in the catalogue: levels, protocols, litmus tests, scopes, engines."""
    from isolitmus.cli.show import show as command

    raise typer.Exit(command(names or [], spec, engine, as_json=as_json))


@app.command()
def separate(
    a: Annotated[
        str, typer.Argument(metavar="A", help="The spec that admits (a name or a .cat file).")
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="The spec that forbids.")],
    *,
    both: Annotated[bool, typer.Option("--both", help="Also the reverse.")] = False,
    unexplained: Annotated[
        bool, typer.Option("--unexplained", help="Only what no serial order explains.")
    ] = False,
    unbounded: Annotated[
        bool,
        typer.Option("--unbounded", help="A proof, on tables, for any number of transactions."),
    ] = False,
    every_version_read: Annotated[
        bool,
        typer.Option(
            "--every-version-read", help="With --unbounded: suppose a reader of every version."
        ),
    ] = False,
    universe: Annotated[
        str | None,
        typer.Option(
            metavar="table|abstract|FILE",
            help="table (or another scope, or a scope file), or abstract.",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="symbolic|exhaustive", help="symbolic (a solver) or exhaustive (enumeration)."
        ),
    ] = None,
    transactions: Annotated[
        str | None, typer.Option(metavar="N|N..M", help="How many, readers among them: N or N..M.")
    ] = None,
    time: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Give up after so many seconds.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the litmus file here.")
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="E[,E...]", help="Carry out what is found on these engines: model, delta, …"
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """The smallest history that A admits and B forbids."""
    from isolitmus.cli.separate import separate as command

    raise typer.Exit(
        command(
            a,
            b,
            both=both,
            unexplained=unexplained,
            unbounded=unbounded,
            every_version_read=every_version_read,
            universe=universe,
            by=by,
            transactions=transactions,
            seconds=time,
            save=save,
            engine=engine,
            as_json=as_json,
        )
    )


@app.command()
def sweep(
    scope: Annotated[str, typer.Argument(metavar="SCOPE", help="A scope's name, or a scope file.")],
    *,
    transactions: Annotated[
        str | None, typer.Option(metavar="N|N..M", help="How many; default: the scope's.")
    ] = None,
    limit: Annotated[
        int, typer.Option(metavar="N", help="The most candidates to sweep.")
    ] = 20_000_000,
    cores: Annotated[
        int | None, typer.Option(metavar="N", help="How many processes; default: one a core.")
    ] = None,
    spark: Annotated[bool, typer.Option("--spark", help="Count on Spark.")] = False,
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="With --spark: where; default: local[2].")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE",
            help="With --spark: the folder of a Delta table for the counts; if some are there, go on.",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="E[,E...]",
            help="Carry out the first of what is forbidden on these engines: model, delta, …",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Count every candidate of a scope: what each protocol admits, and what levels say of that."""
    from isolitmus.cli.sweep import sweep as command

    raise typer.Exit(
        command(
            scope,
            transactions,
            limit,
            cores=cores,
            spark=spark,
            master=master,
            out=out,
            engine=engine,
            as_json=as_json,
        )
    )


@app.command()
def run(
    tests: Annotated[
        list[str],
        typer.Argument(metavar="LITMUS", help="Names of litmus tests, files, folders."),
    ],
    engine: Annotated[
        str, typer.Option(metavar="E[,E...]", help="Engines, with commas: model, delta, deltalake.")
    ] = "model",
    protocol: Annotated[
        str | None,
        typer.Option(metavar="P[,P...]", help="Protocols, with commas; default: those expected."),
    ] = None,
    table: Annotated[
        bool,
        typer.Option("--table", help="Only a table in Markdown: allowed, aborted, anomaly."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Carry litmus tests out, and compare with what they expect and with the model."""
    from isolitmus.cli.run import run as command

    raise typer.Exit(command(tests, engine, protocol, as_json=as_json, as_table=table))


@app.command()
def install(
    engine: Annotated[
        str, typer.Argument(metavar="ENGINE", help="deltalake, or a release: deltalake-1.6.3.")
    ] = "deltalake",
) -> None:
    """Install an engine that has an environment of its own, below the user's cache."""
    from isolitmus.cli.install import install as command

    raise typer.Exit(command(engine))


@app.command()
def explore(
    tests: Annotated[
        str, typer.Argument(metavar="TESTS", help="tables (SQL statements) or raw (transactions).")
    ] = "tables",
    *,
    count: Annotated[int, typer.Option(metavar="N", help="So many tests.")] = 100,
    seed: Annotated[
        int, typer.Option(metavar="S", help="The first seed; there is one for each 100 tests.")
    ] = 1,
    evidence: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep which seeds agreed; if some are there, go on."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Random litmus tests on real Delta, compared with the model; the smallest that differs."""
    from isolitmus.cli.explore import explore as command

    raise typer.Exit(command(tests, count=count, seed=seed, evidence=evidence, as_json=as_json))


@app.command()
def matrix(
    name: Annotated[
        str, typer.Argument(metavar="MATRIX", help="A matrix's name, or a matrix file.")
    ] = "pairs",
    *,
    engine: Annotated[str, typer.Option(metavar="E", help="model or delta.")] = "model",
    protocol: Annotated[
        str, typer.Option(metavar="P[,P...]", help="Protocols, with commas.")
    ] = "delta-serializable,delta-write-serializable",
    layout: Annotated[
        str | None, typer.Option(metavar="L[,L...]", help="Layouts, with commas; default: all.")
    ] = None,
    shard: Annotated[
        str | None, typer.Option(metavar="K/N", help="The K-th of N parts of the cases.")
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="So many cases, which soon have every statement on either side."
        ),
    ] = None,
    evidence: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep what is seen here; if some is there, go on."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Keep every case in this Delta table; if some are there, go on."
        ),
    ] = None,
    at_once: Annotated[
        int | None, typer.Option(metavar="N", help="So many cases at a time (default 3).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Which statements conflict, by who wins, layout and protocol."""
    from isolitmus.cli.matrix import matrix as command

    raise typer.Exit(
        command(
            name,
            engine,
            protocol,
            layouts=layout,
            shard=shard,
            sample=sample,
            evidence=evidence,
            out=out,
            at_once=at_once,
            as_json=as_json,
        )
    )


@app.command()
def check(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE", help="Litmus files, names of litmus tests, folders of Delta tables."
        ),
    ],
    level: Annotated[
        str, typer.Option(metavar="L[,L...]", help="Levels, with commas (names or .cat files).")
    ],
    format_: Annotated[
        str, typer.Option("--format", metavar="auto|litmus|delta", help="What the files are.")
    ] = "auto",
    as_json: Json = False,
) -> None:
    """Judge histories: those of a litmus test's schedule, abstract ones, or a Delta table's log."""
    from isolitmus.cli.check import check as command

    raise typer.Exit(command(files, level, format_, as_json=as_json))


@app.command()
def audit(
    tables: Annotated[list[str], typer.Argument(metavar="TABLE", help="Folders of Delta tables.")],
    *,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the findings as a page, too.")
    ] = None,
    spark: Annotated[
        bool, typer.Option("--spark", help="Audit on Spark, a table each task.")
    ] = False,
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="With --spark: where; default: local[2].")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE", help="With --spark: the folder of a Delta table for the findings."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """What the logs of Delta tables show: reorders, bridges, claims that cannot be true."""
    from isolitmus.cli.audit import audit as command

    raise typer.Exit(
        command(tables, html=html, spark=spark, master=master, out=out, as_json=as_json)
    )
