"""``isolitmus run``: litmus tests on engines, compared with expectations and the model."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isolitmus.checker.execution.commit_loop import ENGINE as MODEL
from isolitmus.checker.execution.run_result import run as predict
from isolitmus.checker.render.expectation_report import expected_protocols
from isolitmus.checker.render.text_pictures import markdown_grid
from isolitmus.cli.conversion import PICTURES, OutputForms
from isolitmus.cli.engine_runs import EngineRun, EngineTask, refuse_engines, run_tasks
from isolitmus.cli.options import Json, Memory, Time, check_at_least, read_budget, split_names
from isolitmus.cli.output import Refusal, print_json, progress, say, say_text
from isolitmus.model.errors import IsolitmusError, Limit, NoLitmusTest
from isolitmus.model.litmus import Litmus
from isolitmus.specs import litmus
from isolitmus.specs import protocol as read_protocol
from isolitmus.specs.disk.input_files import is_folder
from isolitmus.specs.files.catalogue import litmus_files
from isolitmus.specs.registries import format_named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.cli.conversion import OutputForm
    from isolitmus.model.budget import Budget
    from isolitmus.model.spec import Spec

FORMS = OutputForms(*PICTURES)
ABSTRACT = "an abstract history, which no engine can run; use isolitmus check"


def run(
    tests: Annotated[
        list[str],
        typer.Argument(metavar="LITMUS", help="Names of litmus tests, files or folders."),
    ],
    *,
    engine: Annotated[
        str, typer.Option(metavar="E[,E...]", help="Engines: model, delta, deltalake, …")
    ] = "model",
    protocol: Annotated[
        str | None,
        typer.Option(
            metavar="P[,P...]", help="Protocols; default: those with expectations in the file."
        ),
    ] = None,
    at_once: Annotated[
        int | None,
        typer.Option(metavar="N", help="Number of concurrent replays on Delta (default 3)."),
    ] = None,
    table: Annotated[
        bool,
        typer.Option(
            "--table", help="Print only a table in Markdown: allowed, aborted or anomaly."
        ),
    ] = False,
    interleavings: Annotated[
        bool,
        typer.Option(
            "--interleavings",
            help="Run all interleavings of the steps, and count their outcomes.",
        ),
    ] = False,
    time: Time = None,
    memory: Memory = None,
    as_: Annotated[str | None, FORMS.option] = None,
    as_json: Json = False,
) -> int:
    """Each run is compared with what its file expects and, on an engine, with the model. Tests that
    cannot be run are skipped and named at the end.

    Exit status, the first that applies in the order 2, 4, 1, 3, 0:
      0  all runs passed
      1  a run FAILED: it differs from the file or from the model
      2  a test could not be read or run
      3  a run is undecided or took too long, or a limit ended the work
      4  an engine could not be started, or failed

    Examples:
      isolitmus run reorder
      isolitmus run mytest.toml --engine model,delta

    """
    within = read_budget(time, memory)
    form = FORMS.chosen(as_, as_json=as_json)
    as_json = form.word == "json"
    specs = (
        None if protocol is None else [read_protocol(p) for p in split_names("protocol", protocol)]
    )
    carriers = split_names("engine", engine)
    refuse_engines(carriers, [spec.name for spec in specs or []])
    check_at_least(1, at_once=at_once)
    if at_once is not None and set(carriers) == {MODEL}:
        raise IsolitmusError("--at-once needs an engine; add --engine delta")
    if interleavings:
        if set(carriers) != {MODEL} or table or at_once is not None:
            raise IsolitmusError(
                "--interleavings runs on the model; leave out --engine, --table and --at-once"
            )
        return _interleaved(tests, specs, within, as_json=as_json)
    if form.draws:
        return _draw(tests, specs, carriers, form)
    done = EngineRun()
    tasks: list[EngineTask] = []
    try:
        with within.interrupting():
            tasks += _tasks(tests, done)
            run_tasks(tasks, carriers, specs, done, quiet=as_json or table, at_once=at_once)
    except Limit as limit:
        done.ended = limit
    except BaseException:  # mostly a Ctrl-C: print the results so far
        if done.total:
            _close(done, as_json=as_json, as_table=table, whole=False)
        raise
    _close(done, as_json=as_json, as_table=table, whole=done.ended is None)
    if not done.total and not done.refused and done.ended is None:
        raise IsolitmusError(f"{', '.join(tests)}: nothing there could be run")
    return done.status


def _interleaved(
    tests: list[str], specs: list[Spec] | None, within: Budget, *, as_json: bool
) -> int:
    """Run all interleavings of each test under each protocol; return the exit status."""
    done = EngineRun()
    found: list[dict[str, object]] = []
    try:
        with within.interrupting():
            _interleave(tests, specs, done, found, quiet=as_json)
    except Limit as limit:
        done.ended = limit
    done.tell()
    if as_json and found:
        print_json(found[0] if len(found) == 1 else found)
    return done.status


def _interleave(
    tests: list[str],
    specs: list[Spec] | None,
    done: EngineRun,
    found: list[dict[str, object]],
    *,
    quiet: bool,
) -> None:
    """Interleave the steps of each test under each spec; append the answers to `found`."""
    for task in _tasks(tests, done):
        form = format_named(task.test.format)
        if form.interleave is None:
            raise IsolitmusError(
                f"{task.name} is of format {form.name}, whose transactions have no steps to"
                " interleave"
            )
        for spec in specs or expected_protocols(task.test, MODEL):
            with progress(f"{task.name} under {spec.name}"):
                answer = form.interleave(task.test, spec)
            found.append(answer.to_json())
            if not quiet:
                say_text(str(answer))


def _draw(tests: list[str], specs: list[Spec] | None, carriers: list[str], form: OutputForm) -> int:
    """Draw the dependencies of one test's run on the model under one protocol."""
    if carriers != [MODEL]:
        raise IsolitmusError(f"--as {form.word} draws a run of the model; leave out --engine")
    files = [path for name in tests for path in litmus_files(name)]
    form.refuse(len(files))
    test = litmus(files[0])
    if not isinstance(test, Litmus):
        raise IsolitmusError(f"{test.name}: {ABSTRACT}")
    under = specs or expected_protocols(test, MODEL)
    if len(under) > 1:
        raise IsolitmusError(
            f"--as {form.word} draws one run, and {test.name} has {len(under)}; add --protocol"
            f" {under[0].name}"
        )
    form.show([predict(test, under[0])], lambda: None)
    return 0


def _close(done: EngineRun, *, as_json: bool, as_table: bool, whole: bool) -> None:
    """Print the output that is known only at the end; on standard error, what was not run."""
    done.tell()
    if as_json:
        aside = {(refusal.name, refusal.engine) for refusal in (*done.refused, *done.left_out)}
        if done.total or done.ended is not None or len(aside) > 1:
            print_json(_document(done, whole=whole))
    elif done.total:
        for line in markdown_grid(done.words) if as_table else ():
            say(line)
        say(str(done) if whole else f"Stopped. {done}")


def _document(done: EngineRun, *, whole: bool) -> object:
    """Return the JSON document of the tests, with those that were not run, if any."""
    if whole and not done.refused and not done.left_out:
        return done.documents[0] if len(done.documents) == 1 else done.documents
    return {
        "tests": done.documents,
        **done.aside,
        "interrupted": not whole,
        "ended": None if done.ended is None else str(done.ended),
    }


def _tasks(names: list[str], done: EngineRun) -> Iterator[EngineTask]:
    """Yield the tests on tables for names, files and folders.

    Other litmus tests are refused if the user named them, and left out if they are from a folder.
    """
    files: dict[Path, tuple[str, bool]] = {}
    for name in names:
        try:
            found = litmus_files(name)
        except IsolitmusError as error:
            done.refused.append(Refusal(name, error))
            continue
        if is_folder(Path(name)):
            files = {path: (str(path), False) for path in found} | files
        else:
            files[found[0]] = name, True
    stems = Counter(path.stem for path in files)
    for path, (name, wanted) in files.items():
        try:
            test = litmus(str(path))
            if not isinstance(test, Litmus):
                raise NoLitmusTest(f"{path.stem}: {ABSTRACT}")  # noqa: TRY301 - as if it were no such file
        except NoLitmusTest as error:
            (done.refused if wanted else done.left_out).append(Refusal(name, error))
        except IsolitmusError as error:
            done.refused.append(Refusal(name, error))
        else:
            yield EngineTask(test.name if stems[path.stem] == 1 else name, test, wanted)
