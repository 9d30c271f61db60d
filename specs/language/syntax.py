"""The text of a spec and its parse: tokens, places, and what to say where they go wrong."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from isolitmus.model.errors import SpecError, clip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lark import Lark, Token
    from lark.exceptions import UnexpectedInput
    from lark.tree import ParseTree

__all__ = ["SpecText"]

HERD_WORDS = {
    "rec": "recursive definitions",
    "and": "recursive definitions",
    "fun": "functions",
    "procedure": "procedures",
    "call": "procedures",
    "match": "matching",
    "flag": "flagged tests",
    "undefined_unless": "undefined behaviour",
    "forall": "iteration",
    "try": "alternatives",
    "if": "conditions",
    "then": "conditions",
    "else": "conditions",
    "enum": "enumerations",
    "instructions": "declarations of instructions",
    "default": "declarations of instructions",
    "assert": "assertions",
    "unshow": "hiding",
    "begin": "blocks",
    "end": "blocks",
    "id": "the identity; write [S] of a set S",
    "emptyset": "the empty set",
}
HERD_SIGNS = {
    "0": "the empty relation",
    "_": "the set of everything; write S | ~S",
    "{": "enumerated sets",
    "}": "enumerated sets",
    "'": "tags",
    ",": "tuples",
    "!": "negation; write ~S",
    "#": "line comments; write (* … *)",
    "/": "line comments; write (* … *)",
}
NAMES = {"RELATION", "SET"}
TESTS = {"ACYCLIC", "IRREFLEXIVE", "EMPTY"}
OPERANDS = {"RELATION", "SET", "LPAR", "LSQB", "TILDE"}
WORDS = (
    "include", "let", "with", "given", "acyclic", "irreflexive", "empty", "silent", "show", "promises", "format",
    "set", "runtime", "at-most",
)  # fmt: skip
"""With what statements begin."""
EXPECTED = (
    ({"STRING"}, "a text in double quotes"),
    ({"SET", "LPAR"}, "an expression"),
    ({"VBAR"}, "an operator"),
    ({"EQUAL"}, "'='"),
    ({"RPAR"}, "')'"),
    ({"RSQB"}, "']'"),
    ({"AS"}, "'as NAME'"),
    ({"FROM"}, "'from'"),
    ({"LET", "SHOW"}, "a statement"),
)
COMMENTS = re.compile(r'"[^"\n]*"|\(\*(?P<comment>.*?)(?P<end>\*\)|\Z)', re.DOTALL)


@dataclass(frozen=True, slots=True)
class SpecText:
    """The text of a spec file and what messages call the file."""

    file: str
    text: str

    def error(self, line: int, column: int, message: str) -> SpecError:
        """The error at a place (both count from 1), with the line of text and a caret below it.

        >>> print(SpecText("mine.cat", "acyclic wx as s").error(1, 9, "no relation 'wx'"))
        mine.cat:1:9: no relation 'wx'
          acyclic wx as s
                  ^
        """
        shown, at = clip(self.text.split("\n")[line - 1].rstrip("\r"), column)
        return SpecError(f"{self.file}:{line}:{column}: {message}\n  {shown}\n  {' ' * (at - 1)}^")

    def first_comment(self) -> str:
        """The text of the first comment, on one line: where a spec says what it transcribes.

        Raises SpecError for a comment that is never closed or that holds another one.

        >>> SpecText("mine.cat", '"Mine"  (* after  Adya *)').first_comment()
        'after Adya'
        """
        found: list[str] = []
        for match in COMMENTS.finditer(self.text):
            comment = match["comment"]
            if comment is None:
                continue
            if not match["end"]:
                raise self._at(match.start(), "this comment is never closed; end it with *)")
            if "(*" in comment:
                place = match.start("comment") + comment.index("(*")
                raise self._at(place, "a comment inside a comment; close the outer one first")
            found.append(" ".join(comment.split()))
        return found[0] if found else ""

    def parse(self) -> ParseTree:
        """The tree of ``cat.lark``; SpecError says what stands where what was expected."""
        from lark.exceptions import UnexpectedCharacters, UnexpectedInput

        parser = _parser()
        tokens: list[Token] = []
        try:
            for token in parser.lex(self.text):
                tokens.append(token)
                if token in HERD_WORDS:
                    raise self._refused(token.line or 1, token.column or 1, token, HERD_WORDS)
            return parser.parse(self.text)
        except UnexpectedCharacters as error:
            raise self._character(error) from None
        except UnexpectedInput as error:
            raise self._token(error, tokens) from None

    def _at(self, position: int, message: str) -> SpecError:
        before = self.text[:position]
        return self.error(before.count("\n") + 1, position - before.rfind("\n"), message)

    def _refused(self, line: int, column: int, word: str, meaning: dict[str, str]) -> SpecError:
        return self.error(
            line, column, f"'{word}' is herd's cat but not in this fragment ({meaning[word]})"
        )

    def _character(self, error: UnexpectedInput) -> SpecError:
        sign = self.text[error.pos_in_stream or 0]
        if sign in HERD_SIGNS:
            return self._refused(error.line, error.column, sign, HERD_SIGNS)
        if sign == '"':
            return self.error(error.line, error.column, "this text in quotes is never closed")
        return self.error(error.line, error.column, f"no part of a spec: '{sign}'")

    def _token(self, error: UnexpectedInput, tokens: Sequence[Token]) -> SpecError:
        from lark.exceptions import UnexpectedToken

        assert isinstance(error, UnexpectedToken)
        if error.token in HERD_SIGNS:
            return self._refused(error.line, error.column, error.token, HERD_SIGNS)
        wanted = set(error.accepts or error.expected)
        phrase = " or ".join(text for names, text in EXPECTED if names <= wanted)
        if not phrase:
            one = "a name with a capital" if "SET" in wanted else "a name in lower case"
            phrase = "a name" if wanted >= NAMES else one
        if error.token.type == "$END":
            return self._at(len(self.text.rstrip()), f"the text ends where {phrase} was expected")
        here = next(i for i, token in enumerate(tokens) if token.start_pos == error.token.start_pos)
        types = ["", "", *(token.type for token in tokens), ""]
        feature = _feature(*types[here : here + 4])
        if feature:
            message = f"{feature} are herd's cat but not in this fragment"
        else:
            message = f"'{error.token}' stands where {phrase} was expected"
            if phrase.endswith("a statement") and (
                close := get_close_matches(error.token, WORDS, 1)
            ):
                message += f"; did you mean '{close[0]}'?"
        return self.error(error.token.line or 1, error.token.column or 1, message)


def _feature(earlier: str, before: str, here: str, after: str) -> str:
    """What of herd's cat four tokens in a row look like, the third being unexpected."""
    if before == "STAR" and here in OPERANDS:
        return "cartesian products"
    if (before == "TILDE" and here in TESTS) or (here == "TILDE" and after in TESTS):
        return "negated tests"
    if before in NAMES and here == "LPAR":
        return "functions"
    if earlier == "LET" and here in NAMES and after in NAMES | {"EQUAL"}:
        return "functions"
    return ""


@cache
def _parser() -> Lark:
    from lark import Lark

    return Lark(
        Path(__file__).with_name("cat.lark").read_text(encoding="utf-8"),
        parser="lalr",
        lexer="basic",
        propagate_positions=True,
    )
