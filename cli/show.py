"""`isolitmus show`: an index of the catalogue, a list of one kind, or one thing in full."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from isolitmus.checker.auditing.diagnosis import run_example
from isolitmus.checker.execution.denotation import denote
from isolitmus.checker.execution.dependency_graph import graph
from isolitmus.checker.render.diagnosis import example_lines, general_lines
from isolitmus.checker.render.search_results import portrait_lines
from isolitmus.checker.render.text_pictures import denotations, timeline
from isolitmus.checker.render.verdicts import axiom_lines
from isolitmus.checker.search.discovered_tests import distinct_tests, portrait_tests
from isolitmus.checker.search.portrait import portray
from isolitmus.checker.search.separation import find_triviality
from isolitmus.cli.conversion import PICTURES, TABLES, OutputForms
from isolitmus.cli.engine_runs import EngineRun, refuse_engines, report_refusals, run_found
from isolitmus.cli.options import Json, Memory, Time, read_budget, split_names
from isolitmus.cli.output import progress, say, say_file, say_text, warn
from isolitmus.model.dependency_graph import GraphResult
from isolitmus.model.errors import IsolitmusError, Limit, UnknownName, near
from isolitmus.model.litmus import Litmus
from isolitmus.model.records import Records, Tabular
from isolitmus.specs.disk.input_files import shipped_files
from isolitmus.specs.files import catalogue
from isolitmus.specs.files.exceptions_file import exception_of, exception_table
from isolitmus.specs.files.workload_sources import workload, workloads
from isolitmus.specs.registries.engines import engine_named, engines
from isolitmus.specs.registries.formats import format_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from isolitmus.checker.execution.denotation import SpecDenotation
    from isolitmus.checker.search.portrait import Portrait
    from isolitmus.model.budget import Budget
    from isolitmus.model.dependency_graph import DependencyGraph
    from isolitmus.model.litmus import HistoryTest
    from isolitmus.model.spec import Spec

__all__ = ["show"]

FORMS = OutputForms(*PICTURES, *TABLES)
PROSE = ("engine", "exception")
"""Kinds whose text is wrapped; that of the others is a file."""


@dataclass(frozen=True, slots=True)
class _Entry(GraphResult, Tabular):
    name: str
    kind: str
    title: str
    source: str
    text: str
    picture: str = ""
    test: Litmus | HistoryTest | None = None
    denoted: SpecDenotation | None = None
    portrait: Portrait | None = None
    carried: EngineRun | None = None
    trivial: str | None = None

    @property
    def graph(self) -> DependencyGraph:
        """Dependency graph of a litmus test, with the relations that the chosen spec names."""
        if self.test is None or self.denoted is None:
            raise IsolitmusError(
                f"not a litmus test: {self.name}; only litmus tests have a picture"
            )
        seen = graph(self.test)
        return (
            replace(seen, edges=tuple(self.denoted.frame.edges())) if self.denoted.values else seen
        )

    @property
    def records(self) -> Records:
        """Entry as a record of the catalogue."""
        columns = ("name", "kind", "title", "source")
        return Records(columns, (tuple(getattr(self, column) for column in columns),))

    def to_json(self) -> dict[str, object]:
        """Return the entry as a JSON object, without the parts that it does not have."""
        keys = ("name", "kind", "title", "source", "text")
        document: dict[str, object] = {key: getattr(self, key) for key in keys}
        if self.denoted is not None:
            document["frame"] = self.denoted.frame.to_json()
            document["values"] = [
                {"statement": v.statement, "name": v.name, "items": [list(i) for i in v.items]}
                for v in self.denoted.values
            ]
        if self.portrait is not None:
            document["portrait"] = self.portrait.to_json()
        if self.trivial is not None:
            document["trivial"] = self.trivial
        if self.carried is not None:
            document |= {"replays": self.carried.documents, **self.carried.aside}
        return document


def show(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Names of things, or a kind: levels, litmus, …"),
    ] = None,
    *,
    tag: Annotated[
        str | None,
        typer.Option(
            metavar="TAG", help="List only litmus tests with this tag, such as lost-update."
        ),
    ] = None,
    spec: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Show litmus tests as this spec sees them, with the values of its statements.",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="E[,E...]",
            help="Run the histories shown of a protocol on these engines: model, delta, …",
        ),
    ] = None,
    time: Time = None,
    memory: Memory = None,
    as_: Annotated[str | None, FORMS.option] = None,
    as_json: Json = False,
) -> int:
    """Without a name: an index. With a kind: a list. With names: each in full, a protocol with the
    guarantees that it keeps and breaks, a litmus test with its dependency graph.

    Exit status:
      0  everything was shown
      1  with --engine: a run differs from the model
      3  a limit ended a search or the list
      with --engine, that of `isolitmus run` if a history could not be run

    Examples:
      isolitmus show levels
      isolitmus show litmus --tag lost-update
      isolitmus show snapshot-isolation
      isolitmus show ConcurrentAppendException

    """
    form = FORMS.chosen(as_, as_json=as_json)
    within = read_budget(time, memory)
    asked = None if spec is None else catalogue.spec(spec)
    carriers = [] if engine is None else split_names("engine", engine)
    refuse_engines(carriers)
    entries: list[_Entry] = []
    full, limit = False, None
    if not names and {tag, spec, engine} == {None} and not form.quiet:
        for line in _index_lines():
            say(line)
        return 0
    if tag is not None and (names or ["litmus"]) != ["litmus"]:
        raise IsolitmusError("--tag is for lists of litmus tests: isolitmus show litmus --tag TAG")
    for name in names or (KINDS if tag is None else ["litmus"]):
        if name in KINDS:
            limit = _list(name, entries, within, tag)
            if limit is not None:
                break
        else:
            entry = _with_frame(_one(name), asked)
            whole = carriers or form.word in {None, "json"}
            entries.append(_portrayed(name, entry, within) if whole else entry)
            full = True
    if asked is not None and not all(entry.denoted for entry in entries):
        raise IsolitmusError("--spec is for litmus tests; name litmus tests only")
    if carriers and not all(entry.portrait for entry in entries):
        raise IsolitmusError(
            "--engine runs the histories of protocols; name protocols only, and run litmus tests"
            " with isolitmus run"
        )
    done: list[EngineRun] = []
    for k, entry in enumerate(entries if full else ()):
        if k and not form.quiet:
            say()
        if not form.quiet:
            _print(entry)
        if carriers:
            entries[k] = _carried(entry, carriers, done, quiet=form.quiet)
    if form.quiet:
        form.show(entries, lambda: [entry.to_json() for entry in entries])
    elif not full:
        _print_list(entries)
    if limit is not None:
        warn(f"{limit}; the list is incomplete")
        return Limit.status
    if status := report_refusals(done):
        return status
    if any(carried.failed for carried in done):
        return 1
    return 0 if all(e.portrait is None or e.portrait.whole for e in entries) else 3


def _list(kind: str, entries: list[_Entry], budget: Budget, tag: str | None) -> Limit | None:
    """Add all entries of a kind, or those with a tag; return the limit that ended it, if any."""
    known, entry_of = KINDS[kind]
    try:
        with budget.interrupting():
            for one in known() if tag is None else _tagged(tag):
                entries.append(entry_of(one))  # noqa: PERF401 - what has come stays when it is interrupted
    except Limit as limit:
        return limit
    return None


def _one(name: str) -> _Entry:
    """Return the entry of a name, error class or file; raise UnknownName if there is none."""
    name = catalogue.databricks_protocol(name)
    plain, _, _ = name.partition("@")  # a runtime may follow the name
    for names, read in KINDS.values():
        if plain in names():
            return read(name)
    if exception_of(name) is not None:  # an error class, or a class with its package
        return _exception(name)
    if name.endswith(".cat"):
        return _spec("protocol" if catalogue.spec(name).promises else "level")(name)
    if name.endswith(".toml"):
        return _litmus(name)
    known = [known for names, _ in KINDS.values() for known in names()]
    raise UnknownName(f"unknown name '{name}'{near(name, [*known, *KINDS])}")


def _with_frame(entry: _Entry, spec: Spec | None) -> _Entry:
    return entry if entry.test is None else replace(entry, denoted=denote(entry.test, spec))


def _portrayed(name: str, entry: _Entry, budget: Budget) -> _Entry:
    """Return a protocol with its guarantees, or a level with what makes it trivial, if any."""
    if entry.kind == "level":
        return replace(entry, trivial=find_triviality(catalogue.spec(name), budget=budget))
    if entry.kind != "protocol":
        return entry
    spec = catalogue.protocol(name)
    if spec.format is not None and format_named(spec.format).carry_out is not None:
        return entry
    with progress(f"show {entry.name}") as tell:
        return replace(entry, portrait=portray(spec, tell, budget=budget))


def _carried(entry: _Entry, carriers: list[str], done: list[EngineRun], *, quiet: bool) -> _Entry:
    """Return a protocol with the runs of all histories of its guarantees."""
    assert entry.portrait is not None
    tests = list(distinct_tests(portrait_tests(entry.portrait)))
    return replace(entry, carried=run_found(tests, carriers, done, quiet=quiet))


def _spec(kind: str) -> Callable[[str], _Entry]:
    """Return a function that reads a spec as an entry of this kind."""

    def read(name: str) -> _Entry:
        spec = catalogue.spec(name)
        return _Entry(
            spec.name, kind, spec.title, spec.source, spec.text, "\n".join(axiom_lines(spec))
        )

    return read


def _litmus(name: str) -> _Entry:
    test = catalogue.litmus(name)
    picture = timeline(test.schedule) if isinstance(test, Litmus) else ""
    return _Entry(test.name, "litmus", test.title, test.source, test.text, picture, test)


def _scope(name: str) -> _Entry:
    scope = catalogue.scope(name)
    return _Entry(scope.name, "scope", scope.title, scope.source, scope.text)


def _matrix(name: str) -> _Entry:
    matrix = catalogue.matrix(name)
    return _Entry(matrix.name, "matrix", matrix.title, matrix.source, matrix.text)


def _workload(name: str) -> _Entry:
    found = workload(name)
    return _Entry(found.name, "workload", found.title, "", found.text)


def _engine(name: str) -> _Entry:
    engine = engine_named(name)
    return _Entry(engine.name, "engine", engine.title, "", engine.title)


def _exception(name: str) -> _Entry:
    """Return the entry of an exception: check, error classes, and the run of its first example."""
    known = exception_of(name)
    assert known is not None
    example = next(iter(known.examples), None)
    lines = [
        f"Check: {known.check}.",
        f"Error class: {', '.join(known.classes)}",
        *general_lines(known),
        *(
            ()
            if example is None
            else example_lines(run_example(example, example.under[0], known.name))
        ),
        f"More: {known.page}; isolitmus explain FILE explains yours.",
    ]
    return _Entry(known.name, "exception", known.title, known.place, "\n".join(lines))


KINDS: dict[str, tuple[Callable[[], list[str]], Callable[[str], _Entry]]] = {
    "levels": (lambda: list(shipped_files("levels")), _spec("level")),
    "protocols": (lambda: list(shipped_files("protocols")), _spec("protocol")),
    "litmus": (lambda: list(shipped_files("litmus")), _litmus),
    "scopes": (catalogue.scopes, _scope),
    "matrices": (catalogue.matrices, _matrix),
    "workloads": (workloads, _workload),
    "engines": (lambda: list(engines()), _engine),
    "exceptions": (lambda: list(exception_table().every), _exception),
}


ABOUT = {
    "levels": "what histories an isolation level allows",
    "protocols": "what an engine checks at a commit",
    "litmus": "tables, transactions and a schedule, with the expected outcomes",
    "scopes": "statements on small tables: search spaces for separate, compare and sweep",
    "matrices": "lists of statements, each run against each other",
    "workloads": "jobs with parameters, for predict and robust",
    "engines": "what can run litmus tests",
    "exceptions": "conflicts that Delta reports, with cause and remedy",
}


def _index_lines() -> Iterator[str]:
    """Yield the kinds of the catalogue with their numbers, and how to list or show them."""
    yield (
        "Catalogue: isolitmus show KIND lists a kind, isolitmus show NAME shows one thing in full."
    )
    yield ""
    for kind, (known, _) in KINDS.items():
        yield f"  {kind:<10}  {len(known()):>3}  {ABOUT[kind]}"
    yield ""
    yield "Tags of litmus tests, for isolitmus show litmus --tag TAG:"
    yield f"  {', '.join(catalogue.litmus_by_tag())}"


def _tagged(tag: str) -> list[str]:
    """Return the names of the litmus tests with a tag; UnknownName if there is none."""
    by_tag = catalogue.litmus_by_tag()
    if tag not in by_tag:
        raise UnknownName(
            f"unknown tag '{tag}'{near(tag, by_tag) or '; isolitmus show lists all tags'}"
        )
    return by_tag[tag]


def _print_list(entries: list[_Entry]) -> None:
    """Print names and titles in columns, grouped by kind."""
    width = max((len(entry.name) for entry in entries), default=0)
    kind = ""
    for entry in entries:
        if entry.kind != kind:
            if kind:
                say()
            say(entry.kind)
            kind = entry.kind
        say(f"  {entry.name:<{width}}  {entry.title}")


def _print(entry: _Entry) -> None:
    """Print an entry in full: title, source, text, dependency graph and guarantees."""
    say(f"{entry.name} ({entry.kind}): {entry.title}")
    if entry.source:
        say(f"Source: {entry.source}")
    if entry.trivial is not None:
        say(f"Note: {entry.trivial}.")
    if entry.picture:
        say()
        say_file(entry.picture)
    if entry.denoted is None or not entry.denoted.values:
        say()
        (say_text if entry.kind in PROSE else say_file)(entry.text.rstrip())
    if entry.denoted is not None:
        _print_frame(entry.denoted)
    if entry.portrait is not None:
        say()
        for line in portrait_lines(entry.portrait):
            say(line)


def _print_frame(denoted: SpecDenotation) -> None:
    """Print the dependency graph of an entry and the values of the spec's definitions in it."""
    failed = [f"without {', '.join(denoted.failed)}, which failed"] if denoted.failed else []
    supposed = [*failed, *(f"{clause}: one case is shown" for clause in denoted.unknown)]
    say()
    say(f"Dependency graph ({'; '.join(supposed)}):" if supposed else "Dependency graph:")
    for line in denoted.frame.lines():
        say(f"  {line}".rstrip())
    if denoted.values:
        say()
        for line in denotations(denoted.values):
            say(f"  {line}")
