"""`isolitmus export`: litmus tests as Python (a test suite, a standalone script), or histories."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isolitmus.checker.render.expectation_report import expected_protocols
from isolitmus.cli.conversion import WRITERS
from isolitmus.cli.options import Json, Memory, Time, read_budget, split_names
from isolitmus.cli.output import Refusal, check_output_paths, group_refusals, print_json, say, warn
from isolitmus.conformance.delta.engine import DELTA
from isolitmus.conformance.python_export import export_tests
from isolitmus.model.display import count_of
from isolitmus.model.errors import IsolitmusError, Limit
from isolitmus.model.litmus import HistoryTest
from isolitmus.specs import litmus
from isolitmus.specs import protocol as read_protocol
from isolitmus.specs.disk.output_files import write_whole
from isolitmus.specs.files.catalogue import litmus_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.conformance.python_export import ExportForm
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.spec import Spec

PROTOCOL = "delta-serializable"


@check_output_paths(pytest=False, pyspark=False, elle=False, awdit=False)
def export(
    tests: Annotated[
        list[str],
        typer.Argument(metavar="LITMUS", help="Names of litmus tests, files or folders."),
    ],
    *,
    pytest: Annotated[
        Path | None,
        typer.Option(
            "--pytest",
            metavar="FILE",
            help="Write tests for pytest, with isolitmus' fixtures, to this file.",
        ),
    ] = None,
    pyspark: Annotated[
        Path | None,
        typer.Option(
            "--pyspark",
            metavar="FILE",
            help="Write a script that needs only PySpark and Delta to this file.",
        ),
    ] = None,
    elle: Annotated[
        Path | None,
        typer.Option(
            "--elle", metavar="FILE", help="Write an abstract history in Elle's EDN to this file."
        ),
    ] = None,
    awdit: Annotated[
        Path | None,
        typer.Option(
            "--awdit",
            metavar="FILE",
            help="Write an abstract history in AWDIT's text to this file.",
        ),
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(
            metavar="P[,P...]", help="Protocols; default: those with expectations in the file."
        ),
    ] = None,
    time: Time = None,
    memory: Memory = None,
    as_json: Json = False,
) -> int:
    """A Python file has one test for each protocol of Delta. Litmus tests that cannot be written
    are skipped and named at the end. isolitmus check reads the history files, and so do Elle and
    AWDIT.

    Exit status, the first that applies in the order 2, 3, 0:
      0  all tests were written
      2  a litmus test could not be read or written
      3  a limit ended the work

    Examples:
      isolitmus export reorder --pytest FILE
      isolitmus export reorder --pyspark FILE
      isolitmus export history-long-fork --elle FILE

    """
    within = read_budget(time, memory)
    forms: dict[ExportForm, Path | None] = {"pytest": pytest, "pyspark": pyspark}
    texts: dict[str, Path | None] = {"elle": elle, "awdit": awdit}
    if not any((*forms.values(), *texts.values())):
        raise IsolitmusError(
            "no file to write; add --pytest FILE, --pyspark FILE, --elle FILE or --awdit FILE"
        )
    specs = (
        None if protocol is None else [read_protocol(p) for p in split_names("protocol", protocol)]
    )
    for spec in specs or ():
        DELTA.refuse_unable(spec.name)
    written: list[dict[str, object]] = []
    refused: list[Refusal] = []
    ended: Limit | None = None
    for form, path in forms.items():
        if path is None:
            continue
        try:
            with within.interrupting():
                cases = list(_writable(tests, specs, form, refused))
                text = export_tests(cases, form) if cases else ""
        except Limit as limit:
            ended = limit
            warn(f"{limit}; {path} was not written")
            break
        if not cases:
            continue
        write_whole(path, text)
        pairs = [{"litmus": test.name, "protocol": spec.name} for test, spec in cases]
        written.append({"file": str(path), "form": form, "tests": pairs})
        if not as_json:
            run = f"pytest {path}" if form == "pytest" else f"python {path}"
            say(f"{path}: {count_of(len(cases), 'test')}; run it with {run}")
    for text_form, path in texts.items():
        if path is not None:
            written += _write_history(tests, text_form, path, refused, quiet=as_json)
    for message in group_refusals(refused):
        warn(message)
    if as_json:
        print_json({"written": written, "refused": [each.to_json() for each in refused]})
    return 2 if refused else 0 if ended is None else ended.status


def _write_history(
    names: list[str], form: str, path: Path, refused: list[Refusal], *, quiet: bool
) -> list[dict[str, object]]:
    """Write the one history that the names stand for; return its entry in the JSON document."""
    found: list[HistoryTest] = []
    for name in names:
        try:
            tests = [litmus(str(file)) for file in litmus_files(name)]
            found += [_history_test(test) for test in tests]
        except IsolitmusError as error:
            refused.append(Refusal(name, error))
    if len(found) > 1:
        raise IsolitmusError(f"--{form} writes one history, and {len(found)} were given")
    for test in found:
        try:
            text = WRITERS.named(form)(test.history)
        except IsolitmusError as error:
            refused.append(Refusal(test.name, IsolitmusError(f"{test.name}: {error}")))
            continue
        write_whole(path, text)
        if not quiet:
            say(f"{path}: 1 history; check it with isolitmus check {path}")
        return [{"file": str(path), "form": form, "tests": [{"litmus": test.name}]}]
    return []


def _history_test(test: Litmus | HistoryTest) -> HistoryTest:
    if isinstance(test, HistoryTest):
        return test
    raise IsolitmusError(
        f"{test.name} has statements on tables; the formats of histories have reads and writes of"
        " keys"
    )


def _writable(
    names: list[str], specs: list[Spec] | None, form: ExportForm, refused: list[Refusal]
) -> Iterator[tuple[Litmus | HistoryTest, Spec]]:
    """Yield the tests that can be written in a form, each with its protocol."""
    for name, case in _cases(names, specs, refused):
        try:
            export_tests([case], form)
        except IsolitmusError as error:
            refused.append(Refusal(name, error))
        else:
            yield case


def _cases(
    names: list[str], specs: list[Spec] | None, refused: list[Refusal]
) -> Iterator[tuple[str, tuple[Litmus | HistoryTest, Spec]]]:
    """Yield the tests, each with its protocol, by the names that the user gave."""
    for name in names:
        try:
            files = litmus_files(name)
        except IsolitmusError as error:
            refused.append(Refusal(name, error))
            continue
        for path in files:
            called = name if len(files) == 1 else str(path)
            try:
                test = litmus(str(path))
                found = specs or _expected(test)
            except IsolitmusError as error:
                refused.append(Refusal(called, error))
                continue
            yield from ((called, (test, spec)) for spec in found)


def _expected(test: Litmus | HistoryTest) -> list[Spec]:
    """Return the protocols of Delta for which a test has an expectation."""
    if isinstance(test, HistoryTest):  # refused under any protocol
        return [read_protocol(PROTOCOL)]
    return expected_protocols(test, DELTA.name)
