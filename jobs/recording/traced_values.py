"""Values that a program gets from Spark, which tell what the program does with them.

The result of an action (``count``, ``collect``, …) may flow into the text of a later statement, or
decide which statements follow. A traced value prints as a token of private characters, which the
recorder recognizes in statements and on the terminal. Any other use, such as a comparison, is
reported: from there on, the path of the program depends on data.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from isolitmus.jobs.recording.path_choices import SIGNS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from isolitmus.jobs.recording.path_choices import NumberOfRows

NONE = "Python would raise a TypeError; this is the path with a number"
TOKEN = re.compile("\ue000(\\d+)\ue001")
"""Text that a traced value prints as."""


class TokenTable:
    """Tokens of traced values that have been printed, and those that have arrived somewhere."""

    def __init__(self) -> None:
        self.note: Callable[[str], None] = print
        """Receives what differs between this run and one of the program."""
        self._values: list[TracedValue] = []
        self._shown: dict[int, str] = {}
        self._arrived: set[int] = set()

    def give(self, value: TracedValue, shown: str | None = None) -> str:
        """Return a new token for a value, which the program may have formatted."""
        self._values.append(value)
        if shown is not None:
            self._shown[len(self._values) - 1] = shown
        return f"\ue000{len(self._values) - 1}\ue001"

    def take(self, number: str) -> TracedValue:
        """Return the value of a token that has arrived."""
        self._arrived.add(int(number))
        return self._values[int(number)]

    def plain(self, text: str) -> str:
        """Return a text with plain values in place of tokens."""
        return TOKEN.sub(lambda found: self._text(found[1], self.take(found[1]).plain), text)

    def used(self, text: str) -> str:
        """Return a text with plain values in place of tokens, and report their use."""
        return TOKEN.sub(lambda found: self._text(found[1], self.take(found[1]).used()), text)

    def is_formatted(self, number: str) -> bool:
        """Return whether the program has formatted the value of a token."""
        return int(number) in self._shown

    def _text(self, number: str, value: Any) -> str:
        return self._shown.get(int(number), str(value))

    def lost(self) -> list[TracedValue]:
        """Return the values with a token that arrived nowhere: the program used its text."""
        return [v for k, v in enumerate(self._values) if k not in self._arrived]


class TracedValue:
    """Value from a table, with its text in SQL: a parameter, or a sum of parameters.

    Examples
    --------
    >>> tokens = TokenTable()
    >>> n = TracedValue(0, ":count_1", tokens, lambda: print("used"))
    >>> tokens.take(TOKEN.findall(f"{n + 1}")[0]).text
    '(:count_1 + 1)'
    >>> n > 3
    used
    False
    """

    __slots__ = ("_plain", "_rows", "_tokens", "_use", "text")

    def __init__(
        self,
        plain: Any,
        text: str,
        tokens: TokenTable,
        use: Callable[[], None],
        rows: NumberOfRows | None = None,
    ) -> None:
        self._plain = plain
        self._rows = rows
        self.text = text
        self._tokens = tokens
        self._use = use

    @property
    def plain(self) -> Any:
        """The value without its trace."""
        return self._plain if self._rows is None else self._rows.value

    def used(self) -> Any:
        """Report that the program depends on the value, and return it."""
        self._use()
        return self.plain

    def __str__(self) -> str:
        return self._tokens.give(self)

    __repr__ = __str__

    def __format__(self, how: str) -> str:
        return self._tokens.give(self, format(self.plain, how)) if how else str(self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.used(), name)

    def __hash__(self) -> int:
        return hash(self.used())

    def compare(self, sign: str, other: object) -> Any:
        """Return the outcome of a comparison; one of a number of rows may have both.

        Any other one is a use.
        """
        if self._rows is not None and type(other) is int:
            return self._rows.compare(sign, other)
        return SIGNS[sign](self.used(), plain_value(other))

    def __eq__(self, other: object) -> bool:
        return bool(self.compare("=", other))

    def __bool__(self) -> bool:
        return bool(self.compare("<>", 0) if self._rows is not None else self.used())


def _comparing(sign: str) -> Any:
    """Return the method of a comparison."""

    def method(self: TracedValue, other: object) -> Any:
        return self.compare(sign, other)

    return method


def _arithmetic(sign: str, apply: Callable[[Any, Any], Any], *, swapped: bool) -> Any:
    """Return the method of an operator: its result is traced as well, if its operands are
    numbers.
    """

    def method(self: TracedValue, other: object) -> Any:
        plain = other.plain if isinstance(other, TracedValue) else other
        traced = isinstance(other, TracedValue)
        none = [one is None for one in (self.plain, plain)]
        if not all(one is None or type(one) in (int, float) for one in (self.plain, plain)):
            mine, others = self.used(), plain_value(other)
            return apply(others, mine) if swapped else apply(mine, others)
        text = other.text if isinstance(other, TracedValue) else str(other)
        left, right = (text, self.text) if swapped else (self.text, text)
        if any(none):
            value = None
            null = text if none[1] else self.text
            self._tokens.note(f"{null} is NULL on empty tables, where {NONE}")
        else:
            value = apply(plain, self.plain) if swapped else apply(self.plain, plain)

        def use() -> None:
            self.used()
            if traced:
                plain_value(other)

        return TracedValue(value, f"({left} {sign} {right})", self._tokens, use)

    return method


def _revealing(apply: Callable[..., Any]) -> Any:
    """Return a method that gives the plain value away."""

    def method(self: TracedValue, *others: object) -> Any:
        return apply(self.used(), *map(plain_value, others))

    return method


for _name, _sign in (("add", "+"), ("sub", "-"), ("mul", "*")):
    _apply = getattr(operator, _name)
    setattr(TracedValue, f"__{_name}__", _arithmetic(_sign, _apply, swapped=False))
    setattr(TracedValue, f"__r{_name}__", _arithmetic(_sign, _apply, swapped=True))
for _name, _sign in (("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="), ("ne", "<>")):
    setattr(TracedValue, f"__{_name}__", _comparing(_sign))
for _name in ("truediv", "floordiv", "mod", "pow", "neg", "abs"):
    setattr(TracedValue, f"__{_name}__", _revealing(getattr(operator, _name)))
for _name in ("getitem", "contains", "index"):
    setattr(TracedValue, f"__{_name}__", _revealing(getattr(operator, _name)))
for _name, _of in (
    ("int", int), ("float", float), ("len", len), ("iter", iter),
    ("round", round), ("divmod", divmod),
):  # fmt: skip
    setattr(TracedValue, f"__{_name}__", _revealing(_of))
for _name, _apply in (
    ("rtruediv", lambda mine, other: other / mine),
    ("rfloordiv", lambda mine, other: other // mine),
    ("rmod", lambda mine, other: other % mine),
):
    setattr(TracedValue, f"__{_name}__", _revealing(_apply))


def plain_value(value: Any) -> Any:
    """Return a value as the program would have it without tracing, and report its use."""
    if isinstance(value, TracedValue | TracedRow | TracedRows):
        return value.used()
    if type(value) in (list, tuple):
        return type(value)(map(plain_value, value))
    if type(value) is dict:
        return {plain_value(key): plain_value(one) for key, one in value.items()}
    return value


class TracedRow:
    """Row of a query that always has exactly one row; its columns are traced values."""

    __slots__ = ("_columns", "_row", "_use")

    def __init__(self, row: Any, columns: Callable[[int], Any], use: Callable[[], None]) -> None:
        self._row = row
        self._columns = columns
        self._use = use

    def used(self) -> Any:
        """Report that the program depends on the row, and return it."""
        self._use()
        return self._row

    def __getitem__(self, key: int | str | slice) -> Any:
        if isinstance(key, slice):
            return self.used()[key]
        names = list(self._row.__fields__)
        place = names.index(key) if isinstance(key, str) and key in names else key
        if not isinstance(place, int) or not -len(names) <= place < len(names):
            return self.used()[key]
        return self._columns(place % len(names))

    def __getattr__(self, name: str) -> Any:
        if name in self._row.__fields__:
            return self[name]
        return getattr(self.used(), name)

    def __iter__(self) -> Iterator[TracedValue]:
        return (self._columns(place) for place in range(len(self._row)))

    def __len__(self) -> int:
        return len(self._row)

    def __eq__(self, other: object) -> bool:
        return bool(self.used() == plain_value(other))

    def __hash__(self) -> int:
        return hash(self.used())

    def __repr__(self) -> str:
        return repr(self.used())


class TracedRows(Sequence[Any]):
    """Rows of an action; whatever the program does with them is reported.

    Of a query that always has one row, that row is traced instead. Whether there is any row may
    have both outcomes.
    """

    def __init__(
        self,
        rows: list[Any],
        use: Callable[[], None],
        only: TracedRow | None = None,
        many: NumberOfRows | None = None,
    ) -> None:
        self._rows = rows
        self._use = use
        self._only = only
        self._many = many

    def used(self) -> list[Any]:
        """Report that the program depends on the rows, and return them."""
        self._use()
        return self._rows

    def __getitem__(self, key: Any) -> Any:
        if self._only is not None and type(key) is int and key in (0, -1):
            return self._only
        return self.used()[plain_value(key)]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.used() if self._only is None else [self._only])

    def __len__(self) -> int:
        if self._only is not None:
            return 1
        if self._many is not None and not self._many.compare(">", 0):
            return 0
        found = len(self.used())
        return found if self._many is None else max(found, self._many.value)

    def __bool__(self) -> bool:
        if self._only is not None:
            return True
        return bool(self.used()) if self._many is None else self._many.compare(">", 0)

    def __eq__(self, other: object) -> bool:
        if type(other) is list and not other and self._only is None:
            return not self
        return bool(self.used() == plain_value(other))

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Any) -> list[Any]:
        return [*self.used(), *plain_value(other)]

    def __radd__(self, other: Any) -> list[Any]:
        return [*other, *self.used()]

    def __repr__(self) -> str:
        return repr(self.used())
