"""Entries of the catalogue in full, for ``isolitmus show``."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from isolitmus.checker.auditing.diagnosis import run_example
from isolitmus.checker.execution.denotation import denote
from isolitmus.checker.execution.dependency_graph import dependency_edges, graph
from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.checker.render.diagnosis import example_lines, general_lines
from isolitmus.checker.render.history_notation import adya_notation
from isolitmus.checker.render.page_parts import figure, render_template
from isolitmus.checker.render.search_results import portrait_lines
from isolitmus.checker.render.text_pictures import denotations, timeline
from isolitmus.checker.render.verdicts import axiom_lines
from isolitmus.checker.search.discovered_tests import distinct_tests, portrait_tests
from isolitmus.checker.search.portrait import portray
from isolitmus.checker.search.triviality import find_triviality
from isolitmus.cli.engine_runs import EngineRun, refuse_engines, report_refusals, run_found
from isolitmus.cli.options import split_names
from isolitmus.cli.output import made_by_command, progress, say, say_file, say_text, warn
from isolitmus.model.dependency_graph import GraphResult
from isolitmus.model.errors import IsolitmusError, Limit, UnknownName, near
from isolitmus.model.litmus import HistoryTest, Litmus
from isolitmus.model.records import Records, Tabular
from isolitmus.specs.files import catalogue, spec_catalogue
from isolitmus.specs.files.anomaly_file import anomalies_called, anomaly
from isolitmus.specs.files.catalogue_titles import CATALOGUE, names_of_kind, tagged
from isolitmus.specs.files.exceptions_file import exception_of
from isolitmus.specs.registries import engine_named, format_named

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from isolitmus.checker.execution.denotation import SpecDenotation
    from isolitmus.checker.render.page_parts import GraphFigure
    from isolitmus.checker.search.portrait import Portrait
    from isolitmus.cli.conversion import OutputForm
    from isolitmus.model.anomaly import TransactionKind
    from isolitmus.model.budget import Budget
    from isolitmus.model.dependency_graph import DependencyGraph
    from isolitmus.model.spec import Spec

KIND_WORDS: Mapping[TransactionKind, str] = {
    "statements": "a transaction is one statement of Delta",
    "clients": "a client of Delta that reads, then writes",
    "scans": "transactions of several statements under locks",
}
"""What a transaction is in a test of an anomaly."""
PROSE = ("engine", "exception", "anomaly")
"""Kinds whose text is wrapped; that of the others is a file."""


@dataclass(frozen=True, slots=True)
class Entry(GraphResult, Tabular):
    """One thing of the catalogue; fields that its kind does not have are empty."""

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
            replace(seen, edges=tuple(self.denoted.frame.edges()))
            if self.denoted.values or self.kind == "anomaly"
            else seen
        )

    @property
    def records(self) -> Records:
        """Entry as a record of the catalogue."""
        columns = ("name", "kind", "title", "source")
        return Records(columns, (tuple(getattr(self, column) for column in columns),))

    @property
    def figure(self) -> GraphFigure | None:
        """Picture of a litmus test's dependencies, with the reasons of its edges."""
        if self.test is None or self.denoted is None:
            return None
        frame = self.denoted.frame
        return figure(dict.fromkeys(frame.nodes, ""), dependency_edges(frame))

    def to_markdown(self) -> str:
        """Return the entry as a section of Markdown, with its picture as a Mermaid diagram."""
        source = [f"Source: {self.source}", ""] if self.source else []
        drawn = [] if self.test is None else _fenced(self.graph.to_mermaid(), "mermaid")
        head = [f"## {self.title}", "", f"`{self.name}` ({self.kind})", ""]
        return "\n".join((*head, *source, *_fenced(self.text, ""), *drawn))

    @staticmethod
    def to_html(entries: Sequence[Entry]) -> str:
        """Return a page with these entries."""
        return render_template("entry.html.j2", entries=entries, made=made_by_command())

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


def _fenced(text: str, language: str) -> list[str]:
    """Return the lines of a code block of Markdown, with a fence that the text does not have."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return [f"{fence}{language}", text.rstrip("\n"), fence, ""]


def show_entries(
    names: Sequence[str],
    form: OutputForm,
    within: Budget,
    *,
    tag: str | None,
    spec: str | None,
    engine: str | None,
) -> int:
    """Show things in full, or kinds in another form than text; return the exit status."""
    asked = None if spec is None else spec_catalogue.spec(spec)
    carriers = [] if engine is None else split_names("engine", engine)
    refuse_engines(carriers)
    entries: list[Entry] = []
    limit = None
    for name in names:
        if name in CATALOGUE.own_names():
            limit = _list(name, entries, within, tag)
            if limit is not None:
                break
        else:
            entry = _with_frame(_one(name), asked)
            whole = carriers or form.word in {None, "json"}
            entries.append(_portrayed(name, entry, within) if whole else entry)
    if asked is not None and not all(entry.denoted for entry in entries):
        raise IsolitmusError("--spec is for litmus tests; name litmus tests only")
    if carriers and not all(entry.portrait for entry in entries):
        raise IsolitmusError(
            "--engine runs the histories of protocols; name protocols only, and run litmus tests"
            " with isolitmus run"
        )
    done: list[EngineRun] = []
    for k, entry in enumerate(entries):
        if k and not form.quiet:
            say()
        if not form.quiet:
            _print(entry)
        if carriers:
            entries[k] = _carried(entry, carriers, done, quiet=form.quiet)
    if form.quiet:
        form.show(entries, lambda: [entry.to_json() for entry in entries])
    if limit is not None:
        warn(f"{limit}; the list is incomplete")
        return Limit.status
    if status := report_refusals(done):
        return status
    if any(carried.failed for carried in done):
        return 1
    return 0 if all(e.portrait is None or e.portrait.whole for e in entries) else 3


def _list(kind: str, entries: list[Entry], budget: Budget, tag: str | None) -> Limit | None:
    """Add all entries of a kind, or those with a tag; return the limit that ended it, if any."""
    entry_of = _reader(kind)
    try:
        with budget.interrupting():
            for one in names_of_kind(kind) if tag is None else tagged(tag):
                entries.append(entry_of(one))  # noqa: PERF401 - what has come stays when it is interrupted
    except Limit as limit:
        return limit
    return None


def _one(name: str) -> Entry:
    """Return the entry of a name, synonym, error class, claim or file.

    Raises
    ------
    UnknownName
        If there is none, or if several have the name.
    """
    name = spec_catalogue.databricks_protocol(name)
    plain, _, _ = name.partition("@")  # a runtime may follow the name
    kinds = CATALOGUE.own_names()
    for kind in kinds:
        if plain in names_of_kind(kind):
            return _reader(kind)(name)
    if exception_of(name) is not None:  # an error class, or a class with its package
        return _exception(name)
    if name.endswith(".cat"):
        return _spec("protocol" if spec_catalogue.is_rule(spec_catalogue.spec(name)) else "level")(
            name
        )
    if name.endswith(".toml"):
        return _litmus(name)
    meanings: list[tuple[str, Callable[[str], Entry]]] = [
        (one.name, _anomaly) for one in anomalies_called(name)
    ]
    if (meant := spec_catalogue.meant_spec(name)) is not None:
        meanings.append((meant, READERS["levels"]))
    if len(meanings) > 1:
        names = " or ".join(f"isolitmus show {meant}" for meant, _ in meanings)
        raise UnknownName(f"'{name}' has {len(meanings)} meanings; {names}")
    for meant, read in meanings:
        return read(meant)
    known = [known for kind in kinds for known in names_of_kind(kind)]
    raise UnknownName(f"unknown name '{name}'{near(name, [*known, *kinds])}")


def _with_frame(entry: Entry, spec: Spec | None) -> Entry:
    return entry if entry.test is None else replace(entry, denoted=denote(entry.test, spec))


def _portrayed(name: str, entry: Entry, budget: Budget) -> Entry:
    """Return a protocol with its guarantees, or a level with what makes it trivial, if any."""
    if entry.kind == "level":
        return replace(entry, trivial=find_triviality(spec_catalogue.spec(name), budget=budget))
    if entry.kind != "protocol":
        return entry
    spec = spec_catalogue.protocol(name)
    if spec.format is not None and format_named(spec.format).carry_out is not None:
        return entry
    with progress(f"show {entry.name}") as tell:
        return replace(entry, portrait=portray(spec, tell, budget=budget))


def _carried(entry: Entry, carriers: list[str], done: list[EngineRun], *, quiet: bool) -> Entry:
    """Return a protocol with the runs of all histories of its guarantees."""
    assert entry.portrait is not None
    tests = list(distinct_tests(portrait_tests(entry.portrait)))
    return replace(entry, carried=run_found(tests, carriers, done, quiet=quiet))


def _spec(kind: str) -> Callable[[str], Entry]:
    """Return a function that reads a spec as an entry of this kind."""

    def read(name: str) -> Entry:
        spec = spec_catalogue.spec(name)
        return Entry(
            spec.name, kind, spec.title, spec.source, spec.text, "\n".join(axiom_lines(spec))
        )

    return read


def _litmus(name: str) -> Entry:
    test = catalogue.litmus(name)
    picture = timeline(test.schedule) if isinstance(test, Litmus) else ""
    return Entry(test.name, "litmus", test.title, test.source, test.text, picture, test)


def _scope(name: str) -> Entry:
    scope = catalogue.scope(name)
    return Entry(scope.name, "scope", scope.title, scope.source, scope.text)


def _matrix(name: str) -> Entry:
    matrix = catalogue.matrix(name)
    return Entry(matrix.name, "matrix", matrix.title, matrix.source, matrix.text)


def _engine(name: str) -> Entry:
    engine = engine_named(name)
    return Entry(engine.name, "engine", engine.title, "", engine.title)


def _anomaly(name: str) -> Entry:
    """Return the entry of an anomaly: definition, smallest history, levels, tests in real SQL."""
    known = anomaly(name)
    lines = [f"Also called: {', '.join(known.synonyms)}."] if known.synonyms else []
    lines += ["", known.means]
    history = None
    if known.history:
        history = catalogue.litmus(known.history)
        assert isinstance(history, HistoryTest)
        verdicts = {
            level: str(check_history(history.history, spec_catalogue.level(level)))
            for level in spec_catalogue.levels()
        }
        lines += ["", f"Smallest history ({known.history}): {adya_notation(history.history)}"]
        for word in ("forbidden", "allowed"):
            names = [level for level, verdict in verdicts.items() if verdict == word]
            lines += [f"{word.capitalize()} by: {', '.join(names)}."] if names else []
    if known.absent:
        lines += ["", f"Axiom that forbids it: {known.absent} (level without-{known.name})"]
    lines += ["", "In real SQL:" if known.tests else f"Not run on an engine: {known.no_run}."]
    for test in known.tests:
        condition = f", when {test.when}" if test.when else ""
        lines.append(f"  isolitmus run {test.litmus}   ({KIND_WORDS[test.kind]}{condition})")
    return Entry(known.name, "anomaly", known.title, known.source, "\n".join(lines), test=history)


def _exception(name: str) -> Entry:
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
    return Entry(known.name, "exception", known.title, known.place, "\n".join(lines))


READERS: dict[str, Callable[[str], Entry]] = {
    "levels": _spec("level"),
    "protocols": _spec("protocol"),
    "litmus": _litmus,
    "scopes": _scope,
    "matrices": _matrix,
    "engines": _engine,
    "exceptions": _exception,
    "anomalies": _anomaly,
}
"""Readers of entries by kind; other kinds describe theirs."""


def _reader(kind: str) -> Callable[[str], Entry]:
    """Return what reads an entry of a kind."""
    describe = CATALOGUE.named(kind).describe
    if describe is None:
        return READERS[kind]

    def read(name: str) -> Entry:
        one = describe(name)
        return Entry(one.name, one.kind, one.title, one.source, one.text)

    return read


def _print(entry: Entry) -> None:
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
