r"""YAML documents, as trees of values that know their places.

PyYAML parses the text (it is imported when a YAML file is read); nothing in it is executed. A file
of a repository may come from anyone: its size, its depth, and the values to which its aliases
expand are bounded, tags other than YAML's own are refused, and so is a key that stands twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from isolitmus.model.assumption import Place
from isolitmus.model.errors import LitmusError, brief, excerpt
from isolitmus.specs.disk.input_files import DEEPEST
from isolitmus.specs.disk.repository import read_inside

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MOST = 100_000
"""Most values of a document, with those to which its aliases expand."""
MERGE = "tag:yaml.org,2002:merge"
TAGS = frozenset(
    f"tag:yaml.org,2002:{name}"
    for name in ("map", "seq", "str", "int", "float", "bool", "null", "timestamp")
)
"""Tags of values; the first two are those of mappings and lists."""
WORDS = {str: "a string", dict: "a mapping", list: "a list", bool: "true or false", int: "a number"}


@dataclass(frozen=True, slots=True)
class YamlValue:
    r"""Value in a YAML file: a mapping, a list, or a scalar.

    Examples
    --------
    >>> found = read_yaml("tasks:\n  - task_key: load\n", "jobs.yml")
    >>> task = found.list("tasks")[0]
    >>> task.get("task_key", str), str(task.location)
    ('load', 'jobs.yml:2:5')
    >>> found.get("tasks", int)
    Traceback (most recent call last):
    isolitmus.model.errors.LitmusError: jobs.yml:2:3: tasks is a list; expected a number
    """

    value: Any
    """Mapping of keys to values, list of values, text, number, boolean, date or None."""
    location: Place
    """Place at which it begins."""
    key: str = ""
    """Key under which it stands."""

    def refuse(self, problem: str) -> NoReturn:
        """Raise a LitmusError about the place of this value."""
        raise LitmusError(f"{self.location}: {brief(problem)}")

    def __contains__(self, key: str) -> bool:
        return isinstance(self.value, dict) and key in self.value

    def at(self, key: str) -> YamlValue | None:
        """Return the value of a key of this mapping, or None; null counts as missing."""
        found: YamlValue | None = self.mapping().get(key)
        return None if found is None or found.value is None else found

    def mapping(self) -> dict[str, YamlValue]:
        """Return the mapping that this value is; refuse any other value."""
        self.expect(dict)
        return dict(self.value)

    def get(self, key: str, kind: type, default: Any = None) -> Any:
        """Return the value of a key, which has to be of type `kind`, or the default."""
        found = self.at(key)
        if found is None:
            return default
        found.expect(kind)
        return found.value

    def needed(self, key: str, kind: type, of: str) -> Any:
        """Return the value of a key that `of` has to have."""
        if self.at(key) is None:
            self.refuse(f"{of} needs {key} ({WORDS[kind]})")
        return self.get(key, kind)

    def inner(self, key: str) -> YamlValue:
        """Return the mapping of a key; an empty one if it is missing."""
        found = self.at(key)
        if found is None:
            return YamlValue({}, self.location, key)
        found.expect(dict)
        return found

    def list(self, key: str) -> tuple[YamlValue, ...]:
        """Return the values in the list of a key; none if it is missing."""
        return tuple(self.get(key, list, []))

    def plain(self) -> Any:
        """Return the value without its places."""
        if isinstance(self.value, dict):
            return {key: each.plain() for key, each in self.value.items()}
        if isinstance(self.value, list):
            return [each.plain() for each in self.value]
        return self.value

    def shown(self) -> str:
        """Return the value in the form for messages."""
        for kind in (dict, list):
            if isinstance(self.value, kind):
                return WORDS[kind]
        return brief(repr(self.value), 80)

    def expect(self, kind: type) -> None:
        """Refuse a value that is not of type `kind`."""
        of_kind = isinstance(self.value, kind)
        if not of_kind or (isinstance(self.value, bool) and kind is not bool):
            name = self.key or "the document"
            self.refuse(f"{name} is {self.shown()}; expected {WORDS[kind]}")


def read_yaml(given: Path | str, label: str, *ends: Path) -> YamlValue:
    r"""Return the document of a YAML file, or of a text.

    Parameters
    ----------
    given : Path or str
        Path of the file, or a text.
    label : str
        Name of the file in messages.

    Raises
    ------
    LitmusError
        If it is not YAML, or one of the limits of this module is exceeded.

    Examples
    --------
    >>> read_yaml("a: 1\nb: [x, 2026-01-01]\n", "f.yml").plain()
    {'a': 1, 'b': ['x', datetime.date(2026, 1, 1)]}
    >>> read_yaml("a: 1\na: 2\n", "f.yml")
    Traceback (most recent call last):
    isolitmus.model.errors.LitmusError: f.yml:2:1: the key 'a' stands twice, here and in line 1
    """
    from yaml import YAMLError, compose
    from yaml.constructor import SafeConstructor
    from yaml.error import MarkedYAMLError
    from yaml.reader import ReaderError

    path = None if isinstance(given, str) else given
    text = given if isinstance(given, str) else read_inside(given, LitmusError, *ends)
    try:
        loader = _loader()
        tree = compose(text, Loader=loader)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        lines = text.rstrip().split("\n")
        if line > len(lines):
            line, column = len(lines), len(lines[-1]) + 1
        problem = " ".join(str(error.problem or error.context).split())
        said = f"{label}:{line}:{column}: not valid YAML: {problem}{excerpt(text, line, column)}"
        raise LitmusError(said) from None
    except ReaderError as error:
        place = Place(label, text.count("\n", 0, error.position) + 1, 1, 1)
        raise LitmusError(f"{place}: not valid YAML: a character that YAML forbids") from None
    except (YAMLError, ValueError) as error:
        raise LitmusError(f"{label}: not valid YAML: {error}") from None
    except RecursionError:
        raise LitmusError(f"{label}: its values are nested more than {DEEPEST} deep") from None
    if tree is None:
        return YamlValue({}, Place(label, 1, 1, 1, path))
    return _TreeReader(label, path, SafeConstructor()).value(tree, "", 0)


def _loader() -> type:
    """Return PyYAML's safe loader, the one in C if it is there."""
    import yaml

    found: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return found


class _TreeReader:
    """Reader of the nodes that PyYAML composed."""

    def __init__(self, label: str, path: Path | None, scalars: Any) -> None:
        self.label = label
        self.path = path
        self.scalars = scalars
        """Constructor of PyYAML for scalars."""
        self.count = 0

    def value(self, node: Any, key: str, depth: int) -> YamlValue:
        """Return a node as a value, with copies in the place of aliases."""
        mark = node.start_mark
        place = Place(self.label, mark.line + 1, mark.column + 1, mark.line + 1, self.path)
        found = YamlValue(None, place, key)
        self.count += 1
        if depth > DEEPEST:
            found.refuse(f"values are nested more than {DEEPEST} deep here")
        if self.count > MOST:
            found.refuse(f"the document has more than {MOST:,} values, with those of its aliases")
        if node.tag not in TAGS:
            found.refuse(f"unsupported tag '{node.tag}'; remove it")
        if isinstance(node.value, str):
            return YamlValue(self._scalar(node, found), place, key)
        if node.id == "sequence":
            return YamlValue([self.value(one, key, depth + 1) for one in node.value], place, key)
        return YamlValue(self._mapping(node, depth), place, key)

    def _scalar(self, node: Any, found: YamlValue) -> Any:
        """Return the value of a scalar: a text, a number, a boolean, a date or None."""
        try:
            return self.scalars.construct_object(node)
        except (ValueError, OverflowError):
            found.refuse(f"{brief(repr(node.value), 80)} is not a value of YAML; quote it")

    def _mapping(self, node: Any, depth: int) -> dict[str, YamlValue]:
        """Return a mapping; the keys of ``<<`` give way to its own."""
        own: dict[str, YamlValue] = {}
        merged: dict[str, YamlValue] = {}
        for first, second in node.value:
            at = first.start_mark
            here = YamlValue(None, Place(self.label, at.line + 1, at.column + 1, at.line + 1))
            if first.tag == MERGE:
                every = second.value if second.id == "sequence" else [second]
                for one in every:
                    given = self.value(one, "<<", depth + 1)
                    merged = {**given.mapping(), **merged}
                continue
            if not isinstance(first.value, str):
                here.refuse("a key is a list or a mapping; expected a string")
            if first.value in own:
                line = own[first.value].location.line
                here.refuse(f"the key '{first.value}' stands twice, here and in line {line}")
            own[first.value] = self.value(second, first.value, depth + 1)
        return {**merged, **own}


def merge_yaml(base: YamlValue, over: YamlValue, keys: tuple[str, ...] = ()) -> YamlValue:
    r"""Return a value with another one merged into it.

    Mappings are merged key by key. In lists of mappings, entries that agree in one of `keys` are
    merged, and the others are appended; other lists are appended. Any other value is replaced.

    Examples
    --------
    >>> base = read_yaml("a: 1\ntasks: [{task_key: x, retries: 1}]", "f.yml")
    >>> over = read_yaml("a: 2\ntasks: [{task_key: x, retries: 3}, {task_key: y}]", "g.yml")
    >>> merge_yaml(base, over, ("task_key",)).plain()
    {'a': 2, 'tasks': [{'task_key': 'x', 'retries': 3}, {'task_key': 'y'}]}
    """
    if isinstance(base.value, dict) and isinstance(over.value, dict):
        found = dict(base.value)
        for key, value in over.value.items():
            found[key] = merge_yaml(found[key], value, keys) if key in found else value
        return YamlValue(found, base.location, base.key)
    if isinstance(base.value, list) and isinstance(over.value, list):
        return YamlValue([*_merge_lists(base, over, keys)], base.location, base.key)
    return over


def _merge_lists(base: YamlValue, over: YamlValue, keys: tuple[str, ...]) -> Iterator[YamlValue]:
    """Yield the entries of two lists."""

    def name(entry: YamlValue) -> tuple[str, Any] | None:
        named = ((key, entry.value[key].plain()) for key in keys if key in entry)
        return next(named, None)

    left = list(over.value)
    for one in base.value:
        same = next((each for each in left if name(one) and name(each) == name(one)), None)
        if same is not None:
            left.remove(same)
        yield one if same is None else merge_yaml(one, same, keys)
    yield from left
