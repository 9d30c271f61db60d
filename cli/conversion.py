"""Option `--as`: the result of a verb as a picture, a table or JSON on standard output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from isolitmus.cli.output import print_json, say_file, warn
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.records import Records
from isolitmus.model.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from isolitmus.model.dependency_graph import DependencyGraph
    from isolitmus.model.history import History

PICTURES: Mapping[str, Callable[[DependencyGraph], str]] = {
    "svg": lambda graph: graph.to_svg(),
    "mermaid": lambda graph: graph.to_mermaid(),
    "tikz": lambda graph: graph.to_tikz(),
    "dot": lambda graph: graph.to_dot(),
    "graphml": lambda graph: graph.to_graphml(),
}
"""Writers of a dependency graph as a picture, by form."""
WRITERS: Registry[Callable[[History], str]] = Registry("history writer")
"""Writers of histories for other checkers, by the name of the format."""
HISTORIES = WRITERS.own_names()
"""Names of those formats."""
TABLES: Mapping[str, Callable[[Records], str]] = {"csv": Records.to_csv}
"""Writers of records as a table, by form."""
DOCUMENTS: Mapping[str, Callable[[Sequence[Any]], str]] = {
    "html": lambda results: type(results[0]).to_html(results),
    "markdown": lambda results: "\n".join(result.to_markdown() for result in results),
}
"""Writers of results as a document, by form."""


@dataclass(frozen=True, slots=True)
class OutputForm:
    """Requested form of the output; None means text, which a verb prints as it goes."""

    word: str | None

    @property
    def quiet(self) -> bool:
        """True if only the form is printed."""
        return self.word is not None

    @property
    def draws(self) -> bool:
        """True if the form is a picture or a history, which shows a single result."""
        return self.word in PICTURES or self.word in HISTORIES

    def refuse(self, count: int) -> None:
        """Raise IsolitmusError for several results in one picture or history."""
        if self.draws and count > 1:
            verb = "draws" if self.word in PICTURES else "writes"
            raise IsolitmusError(f"--as {self.word} {verb} one thing, and {count} were asked for")

    def show(self, results: Sequence[Any], document: Callable[[], object]) -> None:
        """Print the results in this form; ``document`` returns the JSON document."""
        match self.word:
            case None:
                pass
            case "json":
                print_json(document())
            case word if word in TABLES:
                every = Records.together(result.records for result in results)
                say_file(TABLES[word](every).rstrip("\n"))
            case word if word in DOCUMENTS:
                if results:
                    say_file(DOCUMENTS[word](results).rstrip("\n"))
            case word if word in HISTORIES:
                self.refuse(len(results))
                self._write_history(results[0].litmus)
            case word:
                self.refuse(len(results))
                graph = results[0].graph
                if graph.nodes or graph.every:
                    say_file(PICTURES[word](graph))
                else:
                    warn("nothing to draw: the result has no graph")

    def _write_history(self, test: object) -> None:
        """Print a history that was found, if one was; raise IsolitmusError for statements."""
        from isolitmus.model.litmus import HistoryTest

        if test is None:
            warn("nothing to write: no history was found")
        elif isinstance(test, HistoryTest):
            say_file(WRITERS.named(str(self.word))(test.history).rstrip("\n"))
        else:
            raise IsolitmusError(
                f"--as {self.word} writes reads and writes of keys, and the counterexample has"
                " statements on tables; try --universe abstract"
            )


class OutputForms:
    """Output forms of a verb: some of PICTURES, DOCUMENTS, HISTORIES, TABLES, and always JSON."""

    def __init__(self, *words: str) -> None:
        self.words = (*words, "json")

    @property
    def option(self) -> Any:
        """Option ``--as`` for the verb's signature.

        Examples
        --------
        >>> OutputForms(*TABLES).option.help
        'Print instead: a table, or the document of --json.'
        """
        kinds = [
            *(["a picture of the dependencies"] if PICTURES.keys() & self.words else []),
            *(["a document"] if DOCUMENTS.keys() & self.words else []),
            *(["a history for another checker"] if {*HISTORIES} & {*self.words} else []),
            *(["a table"] if TABLES.keys() & self.words else []),
            "the document of --json",
        ]
        *others, last = kinds
        said = f"{', '.join(others)}, or {last}" if others else last
        return typer.Option("--as", metavar="|".join(self.words), help=f"Print instead: {said}.")

    def chosen(self, word: str | None, *, as_json: bool) -> OutputForm:
        """Return the form that ``--as`` and ``--json`` request; raise IsolitmusError if invalid."""
        if word is not None and word not in self.words:
            raise IsolitmusError(f"--as is '{word}'; expected one of {', '.join(self.words)}")
        if as_json and word not in {None, "json"}:
            raise IsolitmusError(f"--json and --as {word} exclude each other; give one of them")
        return OutputForm("json" if as_json else word)
