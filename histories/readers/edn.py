"""Parser of EDN, in which Jepsen writes its histories: forms of a text with their lines.

A keyword, a quoted text, a symbol, a number that is not an integer, and a character become the
string in the file (``:ok``, ``"x"``), so that no two of them are equal. Lists and vectors are
tuples, sets are frozensets. The tag of a form is dropped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NoReturn

from isolitmus.model.errors import RecordingError
from isolitmus.specs.disk.input_files import DEEPEST

TOKEN = re.compile(
    r"""(?:[\s,]|;[^\n]*)*
    (?: (?P<flat> \[ [^\s,;"()\[\]{}\\\#]++ (?: \x20 [^\s,;"()\[\]{}\\\#]++ )*+ \] )
      | (?P<open> \#\{ | [\[({] )
      | (?P<close> [\])}] )
      | (?P<text> "[^"\\]*(?:\\.[^"\\]*)*" )
      | (?P<discard> \#_ )
      | (?P<tag> \#[A-Za-z][\w.*+!?$%&=<>/-]* )
      | (?P<character> \\(?:[a-z]+|u[0-9A-Fa-f]{4}|\S) )
      | (?P<atom> [^\s,;"()\[\]{}\\\#]+ )
      | (?P<end> \Z )
      | (?P<other> . ) )""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
WHOLE = re.compile(r"[+-]?[0-9]+N?", re.ASCII)
NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?M?|[+-]?[0-9]+/[0-9]+", re.ASCII)
LIKE_NUMBER = re.compile(r"[+-]?[0-9]")
LONGEST = 1_000
"""Maximum number of digits of a number."""
CLOSES = {"[": "]", "(": ")", "{": "}", "#{": "}"}
WORDS = {"nil": None, "true": True, "false": False}


@dataclass(slots=True)
class _Form:
    """Form that is not closed yet; for the whole text, ``opened`` is empty."""

    opened: str
    at: int
    items: list[Any] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    dropped: int = 0
    """Number of next forms that are left out."""
    tagged: bool = False


def read_edn_forms(text: str, file: str) -> list[tuple[int, Any]]:
    """Return the forms of a text with the lines where they begin.

    If the text is a single vector or list, return its elements instead.

    Examples
    --------
    >>> read_edn_forms('{:f :txn, :value [[:r 3 nil]]} ; read', "h.edn")
    [(1, {':f': ':txn', ':value': ((':r', 3, None),)})]
    >>> read_edn_forms("[1 [2", "h.edn")
    Traceback (most recent call last):
    isolitmus.model.errors.RecordingError: h.edn:1: this '[' is never closed
    """
    return _Nesting(text, file).read()


def write_edn(form: Any) -> str:
    """Return a form in EDN.

    Examples
    --------
    >>> write_edn({":value": ((":r", 3, None),)})
    '{:value [[:r 3 nil]]}'
    """
    match form:
        case dict():
            return "{" + ", ".join(f"{write_edn(k)} {write_edn(v)}" for k, v in form.items()) + "}"
        case tuple():
            return "[" + " ".join(map(write_edn, form)) + "]"
        case frozenset():
            return "#{" + " ".join(sorted(map(write_edn, form))) + "}"
        case bool() | None:
            return next(word for word, value in WORDS.items() if value is form)
        case _:
            return str(form)


class _Nesting:
    def __init__(self, text: str, file: str) -> None:
        self.text, self.file = text, file
        self.stack = [_Form("", 0)]

    def read(self) -> list[tuple[int, Any]]:
        """Return the forms with their lines; if the text is one list or vector, its elements."""
        inner: tuple[str, list[int]] = "", []
        atoms: dict[str, Any] = {}
        stack = self.stack
        for token in TOKEN.finditer(self.text):
            kind, at = str(token.lastgroup), token.start(token.lastindex or 0)
            if kind in ("atom", "flat"):  # by far the most tokens, and mostly the same words
                words = (token[kind],) if kind == "atom" else token[kind][1:-1].split(" ")
                for word in words:
                    if word not in atoms:
                        atoms[word] = self.atom(word, at)
                every = tuple(map(atoms.__getitem__, words))
                value = every[0] if kind == "atom" else every
                form = stack[-1]
                if len(stack) > 2 and not (form.dropped or form.tagged):
                    form.items.append(value)
                    continue
                if kind == "flat" and len(stack) == 1:
                    inner = "[", [at] * len(every)
                self.put(value, at)
                continue
            match kind:
                case "open":
                    if len(self.stack) > DEEPEST:
                        self.refuse(at, f"this is nested more than {DEEPEST} levels deep")
                    self.stack.append(_Form(token[kind], at))
                case "close":
                    if len(self.stack) == 2:
                        inner = self.stack[-1].opened, self.stack[-1].places
                    value, start = self.close(token[kind], at)
                    self.put(value, start)
                case "text" | "character":
                    self.put(token[kind], at)
                case "discard":
                    self.stack[-1].dropped += 1
                case "tag":
                    self.stack[-1].tagged = True
                case "end":
                    break
                case _:
                    what = "this text in quotes is never closed"
                    self.refuse(
                        at, what if token[kind] == '"' else f"'{token[kind]}' is not a form of EDN"
                    )
        last = self.stack[-1]
        if last.opened:
            self.refuse(last.at, f"this '{last.opened}' is never closed")
        self.refuse_open(last, len(self.text))
        if len(last.items) == 1 and isinstance(last.items[0], tuple) and inner[0] in ("[", "("):
            return self.lined(inner[1], list(last.items[0]))
        return self.lined(last.places, last.items)

    def put(self, value: Any, at: int) -> None:
        """Add a value to the innermost open form, unless a discard sign (`#_`) precedes it."""
        form = self.stack[-1]
        form.tagged = False
        if form.dropped:
            form.dropped -= 1
            return
        form.items.append(value)
        if len(self.stack) <= 2:
            form.places.append(at)

    def close(self, sign: str, at: int) -> tuple[Any, int]:
        """Close the innermost form and return its value and start."""
        form = self.stack[-1]
        if not form.opened:
            self.refuse(at, f"this '{sign}' closes nothing")
        if CLOSES[form.opened] != sign:
            self.refuse(at, f"expected '{CLOSES[form.opened]}', found '{sign}'")
        self.refuse_open(form, at)
        self.stack.pop()
        if form.opened == "#{":  # a set has no order that a read could observe
            try:
                return frozenset(form.items), form.at
            except TypeError:
                self.refuse(form.at, "a map is in this set")
        if form.opened != "{":
            return tuple(form.items), form.at
        if len(form.items) % 2:
            self.refuse(form.at, "this map has a key without a value")
        try:
            found = dict(zip(form.items[::2], form.items[1::2], strict=True))
        except TypeError:
            self.refuse(form.at, "a map is a key of this map")
        if 2 * len(found) < len(form.items):
            self.refuse(form.at, "this map has a key twice")
        return found, form.at

    def atom(self, word: str, at: int) -> Any:
        """Return the value of an atom: an integer, a constant, or the word itself."""
        if WHOLE.fullmatch(word):
            if len(word) > LONGEST:
                self.refuse(at, f"this number has more than {LONGEST:,} digits")
            return int(word.removesuffix("N"))
        if word in WORDS:
            return WORDS[word]
        if word == ":" or (LIKE_NUMBER.match(word) and not NUMBER.fullmatch(word)):
            self.refuse(at, f"'{word}' is not a form of EDN")
        return word

    def refuse_open(self, form: _Form, at: int) -> None:
        """Refuse a tag or ``#_`` that no form follows."""
        if form.tagged or form.dropped:
            self.refuse(at, "a form is missing after '#'")

    def lined(self, places: list[int], items: list[Any]) -> list[tuple[int, Any]]:
        """Return the items with their line numbers, counted in one pass over the text."""
        found, line, before = [], 1, 0
        for at, item in zip(places, items, strict=True):
            line += self.text.count("\n", before, at)
            before = at
            found.append((line, item))
        return found

    def refuse(self, at: int, why: str) -> NoReturn:
        raise RecordingError(f"{self.file}:{self.text.count(chr(10), 0, at) + 1}: {why}")
