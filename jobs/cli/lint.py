"""``isolitmus lint``: findings about the jobs of a folder, for continuous integration."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from dataclasses import replace
from functools import lru_cache
from importlib.metadata import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from isolitmus.cli.options import Json, Memory, Time, read_budget, split_names
from isolitmus.cli.output import check_output_paths, print_json, progress, say, say_file, warn
from isolitmus.jobs.cli.workload_options import UNKNOWN, Ddl, Level, TableFolder
from isolitmus.jobs.lint.answer_cache import AnswerCache
from isolitmus.jobs.lint.linter import apply_baseline, lint_workload
from isolitmus.jobs.lint_rule import codes_of, unknown_code
from isolitmus.jobs.readers.baseline_file import BaselineEntry, baseline_text, read_baseline
from isolitmus.jobs.readers.lint_settings import (
    LintSettings,
    default_root,
    find_settings,
    read_settings,
)
from isolitmus.jobs.readers.lint_sources import read_lint_sources
from isolitmus.jobs.readers.workload_sources import choose_protocol
from isolitmus.jobs.render.lint import (
    finding_title,
    github_lines,
    lint_json,
    lint_lines,
    lint_markdown,
)
from isolitmus.jobs.render.lint_exchange import junit_text, sarif_document
from isolitmus.model.display import count_of
from isolitmus.model.errors import IsolitmusError, printable
from isolitmus.specs.disk.input_files import HOME, real_path, real_place
from isolitmus.specs.disk.output_files import only_writer, write_whole

if TYPE_CHECKING:
    from isolitmus.jobs.lint.finding import LintResult
    from isolitmus.model.assumption import Place

FORMS = ("sarif", "junit", "github", "markdown", "json")
FINDING = re.compile(r"^\S.*:\d+:\d+: ISO\d{3} ")
"""First line of a finding."""
RULES_HELP = "Rules that are on: codes, or beginnings of codes, separated by commas."


@check_output_paths(out=False, save=True, html=False)
def lint(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH",
            help=(
                "Folders or SQL files, or one workload, dbt project or bundle; default: the key"
                " 'paths' of the settings."
            ),
        ),
    ] = None,
    *,
    ddl: Ddl = None,
    table: TableFolder = None,
    level: Level = None,
    select: Annotated[str | None, typer.Option(metavar="CODES", help=RULES_HELP)] = None,
    extend_select: Annotated[
        str | None, typer.Option(metavar="CODES", help="Further rules that are on.")
    ] = None,
    ignore: Annotated[str | None, typer.Option(metavar="CODES", help="Rules that are off.")] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail if an answer is unknown (exit status 3).")
    ] = False,
    config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help=(
                "The settings; default: the nearest isolitmus.toml, or pyproject.toml with"
                " [tool.isolitmus]."
            ),
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Findings that are known; only others fail."),
    ] = None,
    update_baseline: Annotated[
        bool, typer.Option("--update-baseline", help="Write all findings to the baseline.")
    ] = False,
    as_: Annotated[
        str | None,
        typer.Option("--as", metavar="|".join(FORMS), help="Print this format instead of text."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the format to this file.")
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Write the smallest examples to this folder as litmus files."
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the result as an HTML page.")
    ] = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Neither read nor write answers of earlier runs.")
    ] = False,
    time: Time = None,
    memory: Memory = None,
    as_json: Json = False,
) -> int:
    """Find jobs that conflict, invariants that break, and runs that no serial order explains.

    Each finding has a stable code, such as ISO201, and a place. The comment
    "-- isolitmus: ignore[ISO201]" at a statement suppresses it, and so does a baseline.

    Exit status:
      0  no new error or warning
      1  some new error or warning
      3  otherwise, if a limit ended the work; with --strict, if an answer is unknown

    Examples:
      isolitmus lint shop
      isolitmus lint models --ddl tables.sql --baseline lint-baseline.json
      isolitmus lint models --as sarif --out lint.sarif

    """
    form = _form(as_, as_json=as_json)
    budget = read_budget(time, memory)
    settings = _settings(paths, config)
    settings = replace(
        settings,
        level=level or settings.level,
        select=settings.select if select is None else _codes("select", select),
        extend=(*settings.extend, *_codes("extend-select", extend_select)),
        ignore=(*(settings.ignore if select is None else ()), *_codes("ignore", ignore)),
        strict=strict or settings.strict,
        baseline=settings.baseline if baseline is None else Path(baseline),
        ddl=settings.ddl if ddl is None else Path(ddl),
        tables=tuple(table) if table else settings.tables,
    )
    if update_baseline and settings.baseline is None:
        raise IsolitmusError("--update-baseline needs --baseline FILE, or the key 'baseline'")
    known: dict[str, BaselineEntry] = {}
    if settings.baseline is not None and not update_baseline:
        known = read_baseline(settings.baseline)
    if not paths:
        settings.check_files("paths")
    if ddl is None:
        settings.check_files("ddl")
    names = paths or [str(path) for path in settings.paths]
    if not names:
        raise IsolitmusError("no path to lint; name a folder, or write 'paths' into the settings")
    cache = AnswerCache(None if no_cache else default_root(settings.root))
    with budget.for_reading().interrupting():
        workload, comments = read_lint_sources(
            names, settings, whole=not paths, store=None if no_cache else cache
        )
    place = settings.place_of("level") if level is None else ""
    under = choose_protocol(
        workload, settings.level, f"{place}: unknown level" if place else UNKNOWN
    )
    with progress(f"lint {workload.name}") as tell:
        result = lint_workload(
            workload, under, settings, comments, cache=cache, tell=tell, budget=budget
        )
    cache.save()
    if update_baseline and settings.baseline is not None:
        return _write_baseline(result, settings.baseline)
    result = apply_baseline(result, known)
    _show(result, form, out, baseline=settings.baseline is not None)
    if save is not None:
        _save(result, save)
    if html is not None:
        from isolitmus.cli.output import made_by_command
        from isolitmus.jobs.render.lint_page import lint_page

        page = lint_page(result, made_by_command(), _place_words, path=_path_words, budget=budget)
        write_whole(html, page)
    return _status(result, strict=settings.strict)


def _form(as_: str | None, *, as_json: bool) -> str | None:
    """Return the format that ``--as`` and ``--json`` request; None for text."""
    if as_ is not None and as_ not in FORMS:
        raise IsolitmusError(f"--as is '{as_}'; expected one of {', '.join(FORMS)}")
    if as_json and as_ not in {None, "json"}:
        raise IsolitmusError(f"--json and --as {as_} exclude each other; give one of them")
    return "json" if as_json else as_


def _settings(paths: list[str] | None, config: str | None) -> LintSettings:
    """Return the settings in the file that is named, or in the nearest one."""
    start = Path(paths[0]) if paths else Path()
    path = find_settings(start) if config is None else Path(config)
    return LintSettings(default_root(start)) if path is None else read_settings(path)


def _codes(option: str, given: str | None) -> tuple[str, ...]:
    """Return the selectors of an option; refuse one that stands for no rule."""
    found = () if given is None else tuple(split_names(option, given))
    for one in found:
        if not codes_of(one):
            raise IsolitmusError(f"--{option}: {unknown_code(one)}")
    return found


def _path_words(place: Place) -> str:
    """Return the path of a place's file, relative to the working folder if it is in it."""
    return place.file if place.path is None else _shown(place.path, real_path(Path()))


@lru_cache(maxsize=10_000)
def _shown(path: Path, here: Path) -> str:
    """Return a path relative to the working folder if it is in it; the name of a shipped file."""
    real = real_place(path)
    if real.is_relative_to(real_path(HOME)):
        return real.name
    return (real.relative_to(here) if real.is_relative_to(here) else real).as_posix()


def _uri(place: Place) -> str:
    """Return the URI of a place's file, relative to the working folder if it is in it."""
    path = _path_words(place)
    return Path(path).as_uri() if Path(path).is_absolute() else quote(os.fsencode(path))


def _rules_page() -> str | None:
    """Return the URL of docs/lint.md, if the metadata of the package say where its pages are."""
    given = metadata("isolitmus").get_all("Project-URL") or ()
    urls = dict(line.split(", ", 1) for line in given)
    return f"{urls['Documentation']}/lint.md" if "Documentation" in urls else None


def _place_words(place: Place) -> str:
    return f"{_path_words(place)}:{place.line}:{place.column}"


def _show(result: LintResult, form: str | None, out: Path | None, *, baseline: bool) -> None:
    """Print the result, or write it to a file."""
    match form:
        case "json":
            document: object = lint_json(result, _path_words)
        case "sarif":
            document = sarif_document(result, _uri, _rules_page(), baseline=baseline)
        case "junit":
            document = junit_text(result, _path_words).rstrip("\n")
        case "github":
            document = "\n".join(github_lines(result, _path_words))
        case "markdown":
            document = "\n".join(lint_markdown(result, _path_words))
        case _:
            document = "\n".join(map(printable, lint_lines(result, _place_words)))
            if out is None:
                _say_lines(document)
                return
    if out is not None:
        text = document if isinstance(document, str) else json.dumps(document, indent=2)
        write_whole(out, f"{text}\n")
    elif isinstance(document, str):
        say_file(document)
    else:
        print_json(document)


def _say_lines(text: str) -> None:
    """Print a result; the line of a finding is not wrapped, for programs that read it."""
    for line in text.split("\n"):
        if FINDING.search(line):
            say_file(line)
        else:
            say(line)


def _write_baseline(result: LintResult, path: Path) -> int:
    """Write the findings that are not ignored to the baseline."""
    if result.ended is not None:
        raise IsolitmusError(f"{result.ended}, so the baseline is not written; raise the limit")
    entries: dict[str, BaselineEntry] = {}
    counts: Counter[str] = Counter()
    for one in result.new:
        fingerprint = result.fingerprint(one)
        counts[fingerprint] += 1
        entries[fingerprint] = BaselineEntry(
            fingerprint,
            one.code,
            result.file_names(one),
            printable(finding_title(one)),
            counts[fingerprint],
        )
    with only_writer(path):
        write_whole(path, baseline_text(entries.values()))
    warn(f"{path} has {count_of(len(result.new), 'finding')}")
    return 0


def _save(result: LintResult, folder: Path) -> None:
    """Write a litmus file for each example of a new finding."""
    from isolitmus.jobs.lint.linter import FindingExamples

    folder.mkdir(parents=True, exist_ok=True)
    examples = FindingExamples(result)
    for k, one in enumerate(result.new, 1):
        for number, test in enumerate(examples.of(one), 1):
            named = replace(test, name=f"{one.code.lower()}-{k}-{number}")
            write_whole(folder / f"{named.name}.toml", str(named))


def _status(result: LintResult, *, strict: bool) -> int:
    """Return the exit status."""
    if any(one.rule.severity != "note" for one in result.new):
        return 1
    unknown = strict and any(one.rule.unknown for one in result.new)
    return 3 if unknown or result.ended is not None else 0
