"""``isolitmus separate``: counterexamples or proofs for two specs, or for a spec's mutants."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from isolitmus.checker.render.search_results import separation_lines
from isolitmus.checker.search.separation import TABLE, default_universe
from isolitmus.checker.search.separation import separate as ask
from isolitmus.checker.search.space_searches import ABSTRACT
from isolitmus.checker.search.unbounded_separation import separate_unbounded
from isolitmus.checker.universes.scope_vocabulary import covering_scopes
from isolitmus.cli.conversion import HISTORIES, PICTURES, TABLES, OutputForms
from isolitmus.cli.options import (
    CERTIFICATE,
    Json,
    Memory,
    Time,
    read_budget,
    read_sizes,
    split_names,
)
from isolitmus.cli.output import (
    check_output_paths,
    progress,
    say,
    say_assumptions,
    warn,
    write_certificates,
)
from isolitmus.model.display import count_of
from isolitmus.model.errors import IsolitmusError, near
from isolitmus.model.litmus import Litmus
from isolitmus.model.scope import Scope
from isolitmus.specs import scope, spec
from isolitmus.specs.disk.output_files import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.checker.search.lattice import Strength
    from isolitmus.checker.search.separation_result import By, Separation
    from isolitmus.cli.conversion import OutputForm
    from isolitmus.cli.engine_runs import EngineRun
    from isolitmus.model.budget import Budget
    from isolitmus.model.spec import Spec

NOT_OF_MUTANTS = (
    "--both", "--unexplained", "--unbounded", "--save", "--engine", "--every-version-read",
    "--no-sessions", "--no-aborts", "--observed", "--certificate", "--no-catalogue",
)  # fmt: skip
"""Options for two specs or one history, which do not apply with --mutants."""


def refuse_beside_mutants(b: str | None, options: Mapping[str, object], form: OutputForm) -> None:
    """Raise IsolitmusError for options that do not apply with --mutants."""
    if b is not None:
        raise IsolitmusError(f"--mutants is about one spec, and '{b}' is a second; leave it out")
    for option, given in {**options, f"--as {form.word}": form.draws}.items():
        if given:
            raise IsolitmusError(f"{option} does not apply with --mutants; leave it out")


def needs_mutants(a: str, b: str | None, suite: Path | None, word: str | None) -> IsolitmusError:
    """Return the error for a command line that makes sense only with --mutants."""
    if b is None:
        return IsolitmusError(f"separate {a} needs a second spec, or --mutants")
    option = f"--as {word}" if suite is None else "--suite"
    return IsolitmusError(f"{option} needs --mutants, which is about one spec")


def report_mutants(
    of: Spec, form: OutputForm, suite: Path | None, within: Budget, search: dict[str, Any]
) -> int:
    """Print the mutants of a spec; return 3 if one survives, else 0.

    A mutant survives if it is neither distinguished nor argued to be equivalent.
    """
    from isolitmus.checker.render.search_results import mutant_lines
    from isolitmus.checker.search.conformance_suite import smallest_suite, write_suite
    from isolitmus.checker.search.mutant_separation import separate_mutants

    with progress(f"mutants of {of.name}") as tell:
        report = separate_mutants(
            of, budget=within, progress=lambda n, every: tell(f"{n} of {every}"), **search
        )
    chosen = None if suite is None else smallest_suite(report)
    files = [] if suite is None or chosen is None else write_suite(chosen, suite)

    def document() -> object:
        names = None if chosen is None else [kill.name for kill in chosen.tests]
        return {**report.to_json(), "suite": names}

    form.show([report], document)
    if not form.quiet:
        for line in mutant_lines(report):
            say(line)
        if suite is not None:
            told = count_of(len(report.told), "mutant")
            say(
                f"{suite}: {count_of(len(files), 'litmus test')} that distinguish all {told}; no"
                " smaller set does."
            )
    return 3 if report.survivors else 0


FORMS = OutputForms(*PICTURES, *HISTORIES, *TABLES)


@check_output_paths(save=False, certificate=True, suite=True)
def separate(
    a: Annotated[
        str, typer.Argument(metavar="A", help="The spec that admits (a name or a .cat file).")
    ],
    b: Annotated[
        str | None, typer.Argument(metavar="[B]", help="The spec that forbids.", show_default=False)
    ] = None,
    *,
    both: Annotated[bool, typer.Option("--both", help="Ask the reverse, too.")] = False,
    mutants: Annotated[
        bool, typer.Option("--mutants", help="Distinguish each mutant of A from A (without B).")
    ] = False,
    suite: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="With --mutants: write the fewest litmus tests that distinguish all of them.",
        ),
    ] = None,
    unexplained: Annotated[
        bool,
        typer.Option("--unexplained", help="Search for a table that no serial order produces."),
    ] = False,
    unbounded: Annotated[
        bool,
        typer.Option("--unbounded", help="Prove it on tables, for any number of transactions."),
    ] = False,
    every_version_read: Annotated[
        bool,
        typer.Option(
            "--every-version-read",
            help="With --unbounded: assume that a reader reads each version.",
        ),
    ] = False,
    no_sessions: Annotated[
        bool,
        typer.Option("--no-sessions", help="Each transaction is its own session."),
    ] = False,
    no_aborts: Annotated[
        bool, typer.Option("--no-aborts", help="Every transaction commits.")
    ] = False,
    observed: Annotated[
        bool,
        typer.Option("--observed", help="Abstract histories whose version orders are known."),
    ] = False,
    no_catalogue: Annotated[
        bool,
        typer.Option("--no-catalogue", help="Ignore the litmus tests of the catalogue."),
    ] = False,
    universe: Annotated[
        str | None,
        typer.Option(
            metavar="table|abstract|FILE",
            help="The search space: table (or another scope, or a scope file), or abstract.",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="symbolic|exhaustive",
            help="Search by a solver (symbolic) or by enumeration (exhaustive).",
        ),
    ] = None,
    transactions: Annotated[
        str | None,
        typer.Option(metavar="N|N..M", help="Number of transactions, readers included: N or N..M."),
    ] = None,
    time: Time = None,
    memory: Memory = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the counterexample to this litmus file."),
    ] = None,
    certificate: Annotated[Path | None, CERTIFICATE] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="E[,E...]", help="Run the counterexample on these engines: model, delta, …"
        ),
    ] = None,
    as_: Annotated[str | None, FORMS.option] = None,
    as_json: Json = False,
) -> int:
    """The answer is a counterexample, a proof, or a search without a counterexample up to a bound.

    Exit status:
      0  no counterexample
      1  a counterexample was found
      3  unknown: a limit ended the search; with --mutants: a mutant is not distinguished
      with --engine, that of `isolitmus run` if the counterexample could not be run

    Examples:
      isolitmus separate snapshot-isolation serializable
      isolitmus separate delta-write-serializable write-serializable --unexplained
      isolitmus separate delta-serializable log-serializable --unbounded

    """
    form = FORMS.chosen(as_, as_json=as_json)
    form.refuse(2 if both else 1)
    within = read_budget(time, memory)
    inside = None if universe is None else ABSTRACT if universe == ABSTRACT else scope(universe)
    way = _way(by)
    asked = None if transactions is None else read_sizes(transactions)
    if mutants:
        others = (
            both,
            unexplained,
            unbounded,
            save,
            engine,
            every_version_read,
            no_sessions,
            no_aborts,
            observed,
            certificate,
            no_catalogue,
        )
        refuse_beside_mutants(b, dict(zip(NOT_OF_MUTANTS, others, strict=True)), form)
        search = {"universe": inside, "by": way, "transactions": asked}
        return report_mutants(spec(a), form, suite, within, search)
    if b is None or suite is not None or form.word in TABLES:
        raise needs_mutants(a, b, suite, as_)
    specs = spec(a), spec(b)
    carriers = [] if engine is None else split_names("engine", engine)
    if carriers:
        from isolitmus.cli.engine_runs import refuse_engines

        refuse_engines(carriers)
    if carriers and universe == ABSTRACT:
        raise IsolitmusError(
            "--engine runs statements, and search space 'abstract' has none; try --universe table"
        )
    if carriers and universe is None:
        usual = default_universe(*specs, unexplained=unexplained)
        inside = scope(TABLE) if usual == ABSTRACT else None
    if every_version_read and not unbounded:
        raise IsolitmusError("--every-version-read is a premise of proofs; add --unbounded")
    verb = partial(separate_unbounded, every_version_read=every_version_read) if unbounded else ask
    answers = []
    for first, second in [specs, specs[::-1]] if both else [specs]:
        with progress(f"separate {first.name} {second.name}") as tell:
            answers.append(
                verb(
                    first,
                    second,
                    inside,
                    by=way,
                    transactions=asked,
                    unexplained=unexplained,
                    sessions=not no_sessions,
                    aborts=not no_aborts,
                    certify=certificate is not None,
                    observed=observed,
                    shipped=not no_catalogue,
                    budget=within,
                    progress=lambda n, k: tell(f"{count_of(n, 'transaction')}, {k:,} examined"),
                )
            )
    _write(answers, save, certificate)
    relation = _relation(answers) if both else None
    done: list[EngineRun] = []
    if form.quiet:
        runs = [_carried(answer, carriers, done, quiet=True) for answer in answers]

        def document() -> object:
            of = [{**answer.to_json(), **more} for answer, more in zip(answers, runs, strict=True)]
            return [{**each, "relation": relation} for each in of] if both else of[0]

        form.show(answers, document)
    else:
        for answer in answers:
            for line in (*separation_lines(answer), *_elsewhere(answer, inside)):
                say(line)
            _carried(answer, carriers, done, quiet=False)
        if relation is not None:
            narrowed = (
                no_sessions or no_aborts or observed or unexplained or unbounded or no_catalogue
            )
            wide = inside is None and way is None and not narrowed
            say(_relation_words(specs, answers, within, asked, wide=wide))
        assumed = dict.fromkeys(sentence for answer in answers for sentence in answer.assumptions)
        say_assumptions(assumed)
    if done:
        from isolitmus.cli.engine_runs import report_refusals

        if status := report_refusals(done):
            return status
    if any(answer.found for answer in answers):
        return 1
    return 3 if any(answer.found is None for answer in answers) else 0


def _elsewhere(answer: Separation, inside: Scope | Literal["abstract"] | None) -> Iterator[str]:
    """Yield the line with the scopes that ship and exercise what the given scope does not."""
    if not isinstance(inside, Scope):
        return
    covering = covering_scopes(inside.format, answer.unexercised.base_names)
    having = [f"{scope.name} ({', '.join(sorted(names))})" for scope, names in covering]
    if having:
        yield f"Scope {inside.name} has no statement for these; others have: {', '.join(having)}."


def _write(answers: list[Separation], save: Path | None, certificate: Path | None) -> None:
    """Write the requested files."""
    if save is not None:
        _save(answers[0], save)
    if certificate is not None:
        write_certificates([a.certificate for a in answers if a.certificate], certificate)


def _relation_words(
    specs: tuple[Spec, Spec],
    answers: list[Separation],
    within: Budget,
    asked: range | None,
    *,
    wide: bool,
) -> str:
    """Return the relation of two specs in words.

    They are those of ``compare``, unless the question was narrower.
    """
    from isolitmus.checker.render.lattice import STANDS, standing_words

    a, b = specs
    if wide and a.name != b.name and not a.silences and not b.silences:
        from isolitmus.checker.search.lattice_search import compare

        most = None if asked is None else max(asked)
        return standing_words(compare(specs, transactions=most, budget=within), a.name, b.name)
    bound = "" if all(answer.proved for answer in answers) else ", within these bounds"
    bound += (
        ", except candidates on which one is silent"
        if any(answer.silent for answer in answers)
        else ""
    )
    return f"{a.name} is {STANDS[_relation(answers)]} {b.name}{bound}."


def _way(by: str | None) -> By | None:
    """Return the method that ``--by`` names, or None; raise IsolitmusError if it is unknown."""
    ways: dict[str, By] = {"symbolic": "symbolic", "exhaustive": "exhaustive"}
    if by is None or by in ways:
        return ways.get(by or "")
    raise IsolitmusError(f"--by is '{by}'{near(by, ways)}")


def _relation(answers: list[Separation]) -> Strength:
    """Return the relation of the first spec to the second, as far as was searched."""
    match [answer.found if answer.ships is None else True for answer in answers]:
        case [False, False]:
            return "equal"
        case [False, True]:
            return "stronger"
        case [True, False]:
            return "weaker"
        case [True, True]:
            return "incomparable"
        case _:
            return "unknown"


def _save(answer: Separation, path: Path) -> None:
    """Write the counterexample to a file, or warn that there is none."""
    file = answer.file
    if file is None:
        warn(f"no counterexample was found, so {path} was not written")
        return
    write_whole(path, file.text)


def _carried(
    answer: Separation, carriers: list[str], done: list[EngineRun], *, quiet: bool
) -> dict[str, object]:
    """Run the counterexample on the engines, print it unless quiet, and return JSON."""
    if not carriers:
        return {}
    from isolitmus.cli.engine_runs import EngineRun, run_found

    test = answer.file
    if not isinstance(test, Litmus):
        return {"runs": [], **EngineRun().aside}
    carried = run_found([test], carriers, done, quiet=quiet)
    if not quiet:
        say()
    runs = carried.documents[0]["runs"] if carried.documents else []
    return {"runs": runs, **carried.aside}
