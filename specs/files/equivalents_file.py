"""Reader of arguments why mutants of a spec are equivalent to it: ``equivalent/NAME.toml``.

For a spec outside the package, the file is ``NAME.equivalent.toml`` next to it. Its form::

    # also use the arguments of equivalent/delta.toml where this spec has their statements
    like = ["delta"]

    [[equivalent]]
    argument = "why no history distinguishes them"
    # each change: the original statement, and the mutated one (empty if it was dropped)
    changes  = [{ was = "empty ww as lost", becomes = "" }]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.errors import LitmusError, near
from isolitmus.specs.disk.input_files import HOME, is_there, read_text, shipped_files
from isolitmus.specs.files.toml_reader import Source, show_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from isolitmus.model.spec import Spec
    from isolitmus.specs.files.toml_reader import Node
    from isolitmus.specs.language.mutants import Mutant


def equivalents_path(spec: Spec) -> Path | None:
    """Return the file with the arguments on a spec's mutants, or None.

    Examples
    --------
    >>> from isolitmus.specs import level
    >>> equivalents_path(level("update-serializable")).name
    'update-serializable.toml'
    """
    path = spec.path
    if path is None or path.is_relative_to(HOME):
        return shipped_files("equivalent").get(spec.name.partition("@")[0])
    beside = path.with_name(f"{path.stem}.equivalent.toml")
    return beside if is_there(beside) else None


def equivalents(spec: Spec, mutants: Sequence[Mutant]) -> Mapping[int, str]:
    """Return the argument for each mutant that is declared equivalent, by its number.

    Examples
    --------
    >>> from isolitmus.specs import level
    >>> from isolitmus.specs.files.spec_reader import PACKAGE
    >>> from isolitmus.specs.language.mutants import make_mutants
    >>> update = level("update-serializable")
    >>> len(equivalents(update, make_mutants(update, PACKAGE)))
    3
    """
    path = equivalents_path(spec)
    if path is None:
        return {}
    return read_equivalents(read_text(path, LitmusError), str(path), mutants)


def read_equivalents(text: str, label: str, mutants: Sequence[Mutant]) -> Mapping[int, str]:
    """Return the arguments in a text, by the numbers of their mutants; LitmusError describes a
    problem.
    """
    document = Source(label, text).node()
    document.keys(("like", "equivalent"))
    known = {(mutant.was, mutant.becomes): mutant.number for mutant in mutants}
    found: dict[int, str] = {}
    if "like" in document:
        found = _alike(document, known)
    for entry, argument, change in _arguments(document):
        number = known.get(change)
        if number is None:
            entry.refuse(f"{entry} is about no mutant of this spec: {_unknown(change, known)}")
        if number in found:
            entry.refuse(f"{entry} is about mutant {number}, which has an argument already")
        found[number] = argument
    return found


def _alike(document: Node, known: Mapping[tuple[str, str], int]) -> dict[int, str]:
    """Return the arguments of the files named in `like` that apply to known mutants, by number."""
    found, files = dict[int, str](), shipped_files("equivalent")
    for name in document.strings("like"):
        if name not in files:
            document.refuse(f"like names no file of arguments: '{name}'{near(name, files)}")
        other = Source(str(files[name]), read_text(files[name], LitmusError)).node()
        other.keys(("equivalent",))
        arguments = _arguments(other)
        found |= {known[change]: argument for _, argument, change in arguments if change in known}
    return found


def _arguments(document: Node) -> Iterator[tuple[Node, str, tuple[str, str]]]:
    """Yield each change (original and mutated statement) with its entry and argument."""
    for entry in document.entries("equivalent", ("argument", "changes")):
        argument = " ".join(entry.get("argument", str).split())
        if not argument:
            entry.refuse(f"{entry.under('argument')} is empty; say why no history tells them apart")
        changes = entry.get("changes", list)
        if not changes:
            entry.refuse(f"{entry.under('changes')} is empty; name at least one mutant")
        for change in changes:
            each = entry.at("changes", change)
            if not isinstance(change, dict):
                entry.refuse(f"{each} holds {show_value(change)}; expected tables")
            each.keys(("was", "becomes"))
            yield entry, argument, (each.get("was", str), each.get("becomes", str))


def _unknown(change: tuple[str, str], known: Mapping[tuple[str, str], int]) -> str:
    """Return the reason why no mutant has this change, with the closest known statement."""
    was, becomes = change
    statements = {was for was, _ in known}
    if was not in statements:
        return f"it has no statement '{was}'{near(was, statements)}"
    others = {becomes for old, becomes in known if old == was}
    return f"'{was}' does not become '{becomes}'{near(becomes, others)}"
