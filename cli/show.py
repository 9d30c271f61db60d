"""`isolitmus show`: an index of the catalogue, a list of one kind, or one thing in full.

The index and the lists read titles only, and import little. ``cli.catalogue_entries`` reads and
prints things in full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from isolitmus.cli.conversion import DOCUMENTS, PICTURES, TABLES, OutputForms
from isolitmus.cli.options import Json, Memory, Time, read_budget
from isolitmus.cli.output import say, warn
from isolitmus.model.errors import IsolitmusError, Limit
from isolitmus.specs.files.catalogue_titles import (
    CATALOGUE,
    litmus_by_tag,
    names_of_kind,
    tagged,
    titles_of_kind,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.model.budget import Budget

FORMS = OutputForms(*PICTURES, *DOCUMENTS, *TABLES)


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
      isolitmus show "lost update"
      isolitmus show ConcurrentAppendException

    """
    form = FORMS.chosen(as_, as_json=as_json)
    within = read_budget(time, memory)
    if tag is not None and (names or ["litmus"]) != ["litmus"]:
        raise IsolitmusError("--tag is for lists of litmus tests: isolitmus show litmus --tag TAG")
    if {spec, engine, form.word} == {None}:
        if not names and tag is None:
            for line in _index_lines():
                say(line)
            return 0
        if names is None or {*CATALOGUE.own_names()} >= {*names}:
            return _print_lists(names or ["litmus"], tag, within)
    from isolitmus.cli.catalogue_entries import show_entries

    wanted = names or (list(CATALOGUE.own_names()) if tag is None else ["litmus"])
    return show_entries(wanted, form, within, tag=tag, spec=spec, engine=engine)


def _index_lines() -> Iterator[str]:
    """Yield the kinds of the catalogue with their numbers, and how to list or show them."""
    yield (
        "Catalogue: isolitmus show KIND lists a kind, isolitmus show NAME shows one thing in full."
    )
    yield ""
    for kind in CATALOGUE.own_names():
        about = CATALOGUE.named(kind).about
        yield f"  {kind:<10}  {len(names_of_kind(kind)):>3}  {about}"
    yield ""
    yield "Tags of litmus tests, for isolitmus show litmus --tag TAG:"
    yield f"  {', '.join(litmus_by_tag())}"


def _print_lists(kinds: Sequence[str], tag: str | None, budget: Budget) -> int:
    """Print names and titles in columns, grouped by kind; return the exit status."""
    found: list[tuple[str, dict[str, str]]] = []
    limit: Limit | None = None
    only = None if tag is None else tagged(tag)
    try:
        with budget.interrupting():
            for kind in kinds:
                titles: dict[str, str] = {}
                found.append((kind, titles))
                for name, title in titles_of_kind(kind, only):
                    titles[name] = title  # noqa: PERF403 - what has come stays when it is interrupted
    except Limit as ended:
        limit = ended
    width = max((len(name) for _, titles in found for name in titles), default=0)
    listed = [(kind, titles) for kind, titles in found if titles]
    for k, (kind, titles) in enumerate(listed):
        if k:
            say()
        say(kind)
        for name, title in titles.items():
            say(f"  {name:<{width}}  {title}")
    if limit is not None:
        warn(f"{limit}; the list is incomplete")
        return Limit.status
    return 0
