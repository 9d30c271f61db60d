"""Parser of specs: texts in the fragment of herd's cat that ``cat.lark`` defines.

A name must be defined once, or given by histories, before it is used, and must not belong to the
base vocabulary. Features of herd's cat outside the fragment are refused by name. An included file
may contain everything that a spec contains, but its title is optional; a file is included only
once. ``SpecText`` holds the text with places for messages. Files, runtimes and formats come from a
``Library``, so the parser opens no file of a spec; without one a text stands alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar, cast

from isolitmus.model.errors import ClauseError, SpecError, clip, near
from isolitmus.model.spec import (
    Axiom,
    Binary,
    Binder,
    Bracket,
    CatExpr,
    Clause,
    Label,
    Name,
    Spec,
    Unary,
    Unsaid,
)
from isolitmus.model.spec_algebra import names_in
from isolitmus.model.vocabulary import BASE, BINDERS, EVERYWHERE, relations_of, sets_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from lark import Lark, Token, Tree
    from lark.exceptions import UnexpectedInput
    from lark.tree import ParseTree

    from isolitmus.model.spec import BinaryOp, NameKind, UnaryOp

    Node = Tree[Token] | Token

Placed = TypeVar("Placed", Axiom, Unsaid, Label, Name)

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
    "include", "let", "with", "given", "acyclic", "irreflexive", "empty", "silent", "show",
    "promises", "format", "set", "runtime", "at-most",
)  # fmt: skip
"""Keywords that begin statements."""
EXPECTED = (
    ({"STRING"}, "a string in double quotes"),
    ({"SET", "LPAR"}, "an expression"),
    ({"VBAR"}, "an operator"),
    ({"EQUAL"}, "'='"),
    ({"RPAR"}, "')'"),
    ({"RSQB"}, "']'"),
    ({"AS"}, "'as NAME'"),
    ({"FROM"}, "'from'"),
    ({"LET", "SHOW"}, "a statement"),
)
CONF = "spark."
"""Start of the key of a conf of Spark, as opposed to a setting of a table."""
COMMENTS = re.compile(r'"[^"\n]*"|\(\*(?P<comment>.*?)(?P<end>\*\)|\Z)', re.DOTALL)


@dataclass(frozen=True, slots=True)
class SpecText:
    """Text of a spec file, and the name of the file in messages."""

    file: str
    text: str

    def error(self, line: int, column: int, message: str) -> SpecError:
        """Return the error at a place (both from 1), with the line of text and a caret below it.

        Examples
        --------
        >>> print(SpecText("mine.cat", "acyclic wx as s").error(1, 9, "unknown relation 'wx'"))
        mine.cat:1:9: unknown relation 'wx'
          acyclic wx as s
                  ^
        """
        shown, at = clip(self.text.split("\n")[line - 1].rstrip("\r"), column)
        return SpecError(f"{self.file}:{line}:{column}: {message}\n  {shown}\n  {' ' * (at - 1)}^")

    def first_comment(self) -> str:
        """Return the text of the first comment, on one line: the citation of the spec.

        Raises
        ------
        SpecError
            If a comment is never closed or contains another one.

        Examples
        --------
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
        """Return the tree of ``cat.lark``; SpecError says what was expected and what was found."""
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
        """Return the error for a character that begins no token."""
        sign = self.text[error.pos_in_stream or 0]
        if sign in HERD_SIGNS:
            return self._refused(error.line, error.column, sign, HERD_SIGNS)
        if sign == '"':
            return self.error(error.line, error.column, "this text in quotes is never closed")
        return self.error(error.line, error.column, f"no part of a spec: '{sign}'")

    def _token(self, error: UnexpectedInput, tokens: Sequence[Token]) -> SpecError:
        """Return the error for an unexpected token, which may be syntax of herd's full cat."""
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
            message = f"expected {phrase}, found '{error.token}'"
            if phrase.endswith("a statement") and (
                close := get_close_matches(error.token, WORDS, 1)
            ):
                message += f"; did you mean '{close[0]}'?"
        return self.error(error.token.line or 1, error.token.column or 1, message)


def _feature(earlier: str, before: str, here: str, after: str) -> str:
    """Return the feature of herd's cat that four tokens look like, the third being unexpected."""
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
    """Return the LALR parser of the grammar ``cat.lark``."""
    from lark import Lark

    return Lark(
        Path(__file__).with_name("cat.lark").read_text(encoding="utf-8"),
        parser="lalr",
        lexer="basic",
        propagate_positions=True,
    )


BINARY: dict[str, BinaryOp] = {
    "union": "|",
    "compose": ";",
    "difference": "\\",
    "intersection": "&",
}
DEEPEST = 100
"""Maximum depth of an expression, lets unfolded; expressions are read recursively."""
LEAVES = 2_000
"""Maximum number of names in an expression, lets unfolded."""
MOST_FILES = 100
"""Maximum number of files that a spec includes."""
LARGEST = 2**20
"""Maximum number of bytes of a spec with all that it includes."""
UNARY: dict[str, UnaryOp] = {"plus": "+", "star": "*", "reflexive": "?", "inverse": "^-1"}


def _no_file(wanted: str, _beside: Path | None) -> Path:
    """Refuse an include: there are no files."""
    raise SpecError(f"no file '{wanted}' to include: this text stands alone")


@dataclass(frozen=True, slots=True)
class Library:
    """Files, runtimes and formats that the text of a spec may name, by default none of them.

    ``specs.files.spec_reader`` has that of the package. A function that refuses something raises a
    SpecError without a place; the parser adds it.
    """

    default: str = ""
    """Format of a text that names none; empty if it has the terms of histories only."""
    find: Callable[[str, Path | None], Path] = _no_file
    """Return the file of an ``include`` in the text of a file, which is None if it has no file."""
    text: Callable[[Path], str] = Path.read_text
    """Return the text of a file that was found."""
    runtimes: Callable[[], Mapping[str, Path]] = dict
    """Return the files of runtimes by name."""
    formats: Callable[[str], Collection[str]] = lambda _name: ()
    """Return the names of formats, with this one if it is known."""
    terms: Callable[[str], Collection[str]] = lambda _form: ()
    """Return the base names of a format; a spec may use those of every history as well."""
    clauses: Callable[[str | None], Callable[[Sequence[Clause]], object] | None] = lambda _form: (
        None
    )
    """Return the function that gives the clauses of a format their meaning, or raises ClauseError;
    None if the format has no clauses.
    """
    is_commit_check: Callable[[Spec], bool] = lambda _spec: False
    """Return whether a spec is a protocol whose axioms are checked at commits: no level, and no
    spec that judges the runs of an engine with locks.
    """


ALONE = Library()
"""Library of a text that stands alone."""


def read(
    text: str,
    name: str,
    path: Path | None = None,
    *,
    runtime: str | None = None,
    library: Library = ALONE,
) -> Spec:
    """Return the spec that a text defines.

    Parameters
    ----------
    text : str
        Text in the fragment of cat.
    name : str
        Name in the catalogue.
    path : Path, optional
        File of the text, beside which the library looks for includes.
    runtime : str, optional
        Runtime to read it with, instead of the one that it names.
    library : Library, optional
        Files that it may include and formats that it may name; by default none.

    Raises
    ------
    SpecError
        If the text is wrong, with the place.

    Examples
    --------
    >>> spec = read('"Mine" (* after Adya *) acyclic wr | ww as order', "mine")
    >>> spec.title, spec.source, str(spec.axioms[0]), sorted(spec.needs)
    ('Mine', 'after Adya', 'acyclic (wr | ww) as order', ['wr', 'ww'])
    """
    source = SpecText(str(path or name), text)
    reader = _TextReader(source, path, runtime, library)
    citation = source.first_comment()
    title = reader.file()
    if title is None:
        raise source.error(1, 1, "a spec starts with its title in double quotes")
    reader.check_clauses()
    if not reader.axioms and not reader.clauses:
        raise source.error(
            1, 1, "a spec has at least one axiom: acyclic, irreflexive or empty … as NAME"
        )
    if runtime is not None and reader.runtime is None:
        raise source.error(
            1, 1, f"{name.partition('@')[0]} depends on no runtime; leave out @{runtime}"
        )
    used = [axiom.expr for axiom in reader.axioms] + [one.expr for one in reader.silences]
    used += [label.expr for label in reader.labels]
    return Spec(
        name=name,
        title=title,
        source=citation,
        text=text,
        axioms=tuple(reader.axioms),
        definitions=reader.definitions,
        silences=tuple(reader.silences),
        binders=tuple(reader.binders),
        given=reader.given,
        labels=tuple(reader.labels),
        promises=tuple(reader.promises),
        clauses=tuple(Clause(tuple(map(str, words))) for words, _ in reader.clauses),
        format=reader.format,
        setting=reader.setting,
        confs=reader.confs,
        runtime=reader.runtime,
        at_most=reader.at_most,
        needs=names_in(used, reader.definitions),
        path=path,
        places=reader.places,
    )


class _TextReader:
    """Parser of one text and its includes, statement by statement."""

    def __init__(
        self, source: SpecText, path: Path | None, runtime: str | None, library: Library
    ) -> None:
        self.axioms: list[Axiom] = []
        self.definitions: dict[str, CatExpr] = {}
        self.binders: list[Binder] = []
        self.given: dict[str, str] = {}
        self.labels: list[Label] = []
        self.silences: list[Unsaid] = []
        self.promises: list[str] = []
        self.clauses: list[tuple[list[Token], SpecText]] = []
        self.places: dict[Axiom | Unsaid | Label | Name, str] = {}
        self.format: str | None = None
        self._library = library
        self._words = self._words_of(library.default)
        self._used: set[str] = set()
        self.setting = ""
        self.confs: dict[str, str] = {}
        self.at_most = ""
        self.runtime: str | None = None
        self._instead = runtime
        self._source = source
        self._path = path
        self._lets: set[str] = set()
        self._defined: dict[str, str] = {}
        self._measures: dict[str, tuple[int, int]] = {}
        self._included: set[Path] = set() if path is None else {path.resolve()}
        self._found: dict[tuple[Path | None, str], Path] = {}
        self._left = LARGEST - len(source.text)

    def file(self) -> str | None:
        """Parse the current text and return its title, if it has one."""
        title: str | None = None
        tree = self._source.parse()
        self._lets = {str(let.children[0]) for let in tree.find_data("let")}
        for node in tree.children:
            if isinstance(node, str):
                title = node[1:-1]
            else:
                self._statement(node)
        return title

    def _statement(self, node: Tree[Token]) -> None:
        """Add one parsed statement to the spec."""
        children = node.children
        first, last = cast("Token", children[0]), cast("Token", children[-1])
        match str(node.data):
            case "include":
                self._include(first)
            case "let":
                self._let(first, children[1])
            case "binder":
                self._binder(first, cast("Token", children[1]), *children[2:])
            case "given":
                self._given(first, last)
            case "promise":
                self.promises.append(str(first))
            case "format":
                self._format(first)
            case "runtime":
                self._runtime(first)
            case "at_most":
                self.at_most = first[1:-1]
            case "setting":
                self._setting(first)
            case "clause":
                self.clauses.append((cast("list[Token]", children), self._source))
            case "label":
                label = Label(self._whole(children[0], "set"), str(last))
                self.labels.append(self._placed(label, children[0]))
            case "silence":
                silence = Unsaid(self._whole(children[0], "relation"), str(last))
                self.silences.append(self._placed(silence, children[0]))
            case "axiom":
                test = cast("Tree[Token]", children[0]).children[0]
                kind = cast("Literal['acyclic', 'irreflexive', 'empty']", str(test))
                axiom = Axiom(kind, self._whole(children[1], "relation"), str(last))
                self.axioms.append(self._placed(axiom, children[1]))

    def _placed(self, statement: Placed, node: Node) -> Placed:
        """Return the statement after recording the place of a node as its own, once."""
        line, column = self._place(node)
        self.places.setdefault(statement, f"{self._source.file}:{line}:{column}")
        return statement

    def check_clauses(self) -> None:
        """Refuse clauses that the format does not support, at the wrong word."""
        meaning = self._library.clauses(self.format)
        try:
            if meaning is not None:
                meaning(tuple(Clause(tuple(map(str, words))) for words, _ in self.clauses))
        except ClauseError as error:
            words, source = self.clauses[error.clause] if self.clauses else ([], self._source)
            word = words[error.word] if words else None
            place = (1, 1) if word is None else (word.line or 1, word.column or 1)
            raise source.error(*place, str(error)) from None
        if self.clauses and meaning is None:
            words, source = self.clauses[0]
            named = self.format or self._library.default
            why = (
                f"{f'format {named}' if named else 'a spec of no format'} has no clause"
                f" '{words[0]}'; say the format of an engine that locks"
            )
            raise source.error(words[0].line or 1, words[0].column or 1, why)

    def _setting(self, string: Token) -> None:
        """Add a conf of Spark, or the setting of the table's owner; refuse another value of one."""
        text = str(string[1:-1])
        key, equals, value = (part.strip() for part in text.partition("="))
        if not key.startswith(CONF):
            if self.setting not in ("", text):
                raise self._error(
                    string, f"'{text}' contradicts '{self.setting}'; a spec has one table setting"
                )
            self.setting = text
            return
        if key == CONF:
            raise self._error(string, f"'{text}' names no conf")
        if not (equals and value):
            raise self._error(string, f"'{text}' has no value; write \"{key} = true\"")
        if self.confs.setdefault(key, value) != value:
            raise self._error(
                string, f"{key} is {value} here and {self.confs[key]} above; keep one of the two"
            )

    def _include(self, string: Token) -> None:
        """Read the included file, once."""
        asked = self._path, string[1:-1]
        if asked not in self._found:
            try:
                self._found[asked] = self._library.find(asked[1], self._path)
            except SpecError as error:
                raise self._error(string, str(error)) from None
        self._read_in(self._found[asked], string)

    def _runtime(self, string: Token) -> None:
        """Set the runtime, or the one that replaces it, and read its file."""
        if self.runtime is not None:
            raise self._error(string, f"the runtime is {self.runtime} already; a spec has one")
        known = self._library.runtimes()
        wanted = self._instead or string[1:-1]
        if wanted not in known:
            raise self._error(string, f"no runtime '{wanted}'{near(wanted, known)}")
        self.runtime = wanted
        self._read_in(known[wanted].resolve(), string)

    def _read_in(self, path: Path, string: Token) -> None:
        """Parse another file at this place, unless it was included before."""
        if path in self._included:
            return
        self._included.add(path)
        if len(self._included) > MOST_FILES:
            raise self._error(string, f"a spec includes at most {MOST_FILES} files")
        try:
            text = self._library.text(path)
        except SpecError as error:
            raise self._error(string, str(error)) from None
        self._left -= len(text)
        if self._left < 0:
            raise self._error(string, f"a spec and what it includes have at most {LARGEST:,} bytes")
        outer = self._source, self._path, self._lets
        self._source, self._path = SpecText(str(path), text), path
        self._source.first_comment()
        try:
            self.file()
        except SpecError as error:
            within = str(error).splitlines()[0]
            raise outer[0].error(*self._place(string), f"in the included {within}") from None
        self._source, self._path, self._lets = outer

    def _let(self, token: Token, body: Node) -> None:
        """Add a definition with its place."""
        name = self._new(token)
        self.definitions[name.name] = self._whole(body, name.kind)
        self._placed(name, body)
        self._measures[name.name] = self._measured(body)
        self._defined[name.name] = f"{self._source.file}:{token.line}"

    def _given(self, token: Token, meaning: Token) -> None:
        name = self._new(token)
        self.given[name.name] = meaning[1:-1]
        self._defined[name.name] = f"{self._source.file}:{token.line}"

    def _new(self, token: Token) -> Name:
        """Return a new name; refuse one that is in use."""
        name = Name(str(token))
        if name.name in BASE or name.name in self._words:
            raise self._error(token, f"'{name}' is a base {name.kind}; define another name")
        if name.name in self._defined:
            raise self._error(token, f"'{name}' is already defined at {self._defined[name.name]}")
        return name

    def _binder(self, name: Token, source: Token, agreeing: Node | None = None) -> None:
        """Bind an order, and add the axioms that this binding implies."""
        bound = BINDERS.get(str(source))
        if bound is None:
            raise self._error(source, f"unknown orders '{source}'{near(source, BINDERS)}")
        if name != bound:
            raise self._error(name, f"'{source}' binds '{bound}', not '{name}'")
        sources = {binder.name: binder.source for binder in self.binders}
        if sources.get(bound, source) != source:
            raise self._error(source, f"'{bound}' is bound from {sources[bound]} already")
        if source in ("co", "snapshots") and "co" not in sources:
            why = f"'{bound} from {source}' wants 'with co from linearisations' before it"
            raise self._error(source, why)
        if bound not in sources:
            self.binders.append(Binder(bound, str(source)))
        if source == "co":
            expr = Binary("|", Name(bound), Name("co"))
            self.axioms.append(Axiom("acyclic", expr, "order-of-versions"))
        if agreeing is not None:
            if source != "linearisations":
                raise self._error(source, f"'of' follows linearisations only, not {source}")
            expr = Binary("|", self._whole(agreeing, "relation"), Name(bound))
            self.axioms.append(Axiom("acyclic", expr, "linearisation"))

    def _format(self, name: Token) -> None:
        """Set the format; refuse one that conflicts with earlier names."""
        known = self._library.formats(name)
        if name not in known:
            raise self._error(name, f"unknown format '{name}'{near(name, known)}")
        if self.format not in (None, name):
            raise self._error(name, f"this is of format {self.format} already; a spec has one")
        self.format = str(name)
        self._words = self._words_of(self.format)
        again = sorted(self._words.intersection(self._defined))
        if again:
            raise self._error(
                name,
                f"format {name} has a base {Name(again[0]).kind} '{again[0]}', which is defined at"
                f" {self._defined[again[0]]}; define another name",
            )
        foreign = sorted(self._used - self._words)
        if foreign:
            raise self._error(
                name,
                f"format {name} has no {foreign[0]}, which is used before; say the format first",
            )

    def _whole(self, node: Node, kind: NameKind) -> CatExpr:
        """Return the expression of a statement, within the limits of nesting and size."""
        depth, leaves = self._measured(node)
        if depth > DEEPEST:
            raise self._error(node, f"this is nested more than {DEEPEST} deep, lets unfolded")
        if leaves > LEAVES:
            raise self._error(node, f"this has more than {LEAVES:,} names, lets unfolded")
        return self._typed(node, kind)

    def _measured(self, node: Node) -> tuple[int, int]:
        """Return the depth of an expression and its number of names, lets unfolded."""
        deepest, leaves, todo = 0, 0, [(node, 1)]
        while todo:
            part, depth = todo.pop()
            if isinstance(part, str):
                inner, names = self._measures.get(str(part), (0, 1))
                deepest, leaves = max(deepest, depth + inner), leaves + names
            else:
                todo += ((child, depth + 1) for child in part.children)
        return deepest, leaves

    def _typed(self, node: Node, kind: NameKind) -> CatExpr:
        """Return the expression of a node; refuse one of the other kind (set or relation)."""
        expr = self._expr(node)
        if expr.kind != kind:
            raise self._error(node, f"type {kind} expected, {expr.kind} found: {expr}")
        return expr

    def _expr(self, node: Node) -> CatExpr:
        """Return the expression of a node, with the kinds of its operands checked."""
        if isinstance(node, str):
            return self._name(node)
        op, operands = str(node.data), node.children
        if op == "complement":
            return Unary("~", self._typed(operands[0], "set"))
        if op == "bracket":
            return Bracket(self._typed(operands[0], "set"))
        if op in UNARY:
            return Unary(UNARY[op], self._typed(operands[0], "relation"))
        left = self._typed(operands[0], "relation") if op == "compose" else self._expr(operands[0])
        return Binary(BINARY[op], left, self._typed(operands[1], left.kind))

    def _name(self, token: Token) -> Name:
        """Return a defined or base name; refuse others with a suggestion."""
        name = Name(str(token))
        if name.name not in self._words and name.name not in self._defined:
            if name.name in self._lets:
                raise self._error(token, f"'{name}' is used before its let ends; move the let up")
            known = [n for n in self._defined if Name(n).kind == name.kind]
            known += [word for word in self._words if Name(word).kind == name.kind]
            suggestion = _suggest(name.name, known)
            if name.name in BASE:
                form = BASE[name.name].of.removesuffix("-rows")
                own = self.format or self._library.default
                said = f"the {name.kind} '{name}' is one of format {form}, and this is of"
                own = f"format {own}" if own else "no format"
                raise self._error(token, f"{said} {own}{suggestion}")
            raise self._error(token, f"unknown {name.kind} '{name}'{suggestion}")
        if name.name not in self._defined:
            self._used.add(name.name)
        return name

    def _words_of(self, form: str) -> frozenset[str]:
        """Return the base names that a spec of a format may use."""
        own = self._library.terms(form) if form else ()
        return frozenset((*own, *relations_of(*EVERYWHERE), *sets_of(*EVERYWHERE)))

    def _error(self, node: Node, message: str) -> Exception:
        return self._source.error(*self._place(node), message)

    def _place(self, node: Node) -> tuple[int, int]:
        """Return the line and the column of a node."""
        place = node if isinstance(node, str) else node.meta
        return place.line or 1, place.column or 1


def _suggest(name: str, known: Collection[str]) -> str:
    """Return a suggestion as ``near`` does; a name of two or three letters may differ in one
    letter.
    """
    for other in sorted(known):
        if (
            len(other) == len(name) <= 3
            and sum(a != b for a, b in zip(other, name, strict=True)) == 1
        ):
            return f"; did you mean '{other}'?"
    return near(name, known)
