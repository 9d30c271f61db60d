"""The reader of specs: a text in the fragment of herd's cat that ``cat.lark`` defines, to a Spec.

A name must be defined before it is used, once, and must not be one of the base vocabulary; what
herd's cat has beyond the fragment is refused by its name. An included file may hold everything that
a spec holds except that its title is optional; a file that was included already is not read again.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from isolitmus.model.combine import names_in
from isolitmus.model.errors import near
from isolitmus.model.spec import Axiom, Binary, Binder, Bracket, Expr, Label, Name, Spec, Unary
from isolitmus.model.vocabulary import BASE, BINDERS, RELATIONS, SETS
from isolitmus.specs.files import is_file
from isolitmus.specs.syntax import Source

if TYPE_CHECKING:
    from collections.abc import Collection

    from lark import Token, Tree

    from isolitmus.model.spec import BinaryOp, Kind, UnaryOp

    Node = Tree[Token] | Token

__all__ = ["read"]

BINARY: dict[str, BinaryOp] = {
    "union": "|",
    "compose": ";",
    "difference": "\\",
    "intersection": "&",
}
DEEPEST = 100
UNARY: dict[str, UnaryOp] = {"plus": "+", "star": "*", "reflexive": "?", "inverse": "^-1"}


def read(text: str, name: str, path: Path | None = None) -> Spec:
    """The spec that a text defines.

    ``name`` is what the catalogue calls it; ``path`` the file it came from, if any: includes are
    looked up beside it first and then in the package. Raises SpecError, with the place.

    >>> spec = read('"Mine" (* after Adya *) acyclic wr | ww as order', "mine")
    >>> spec.title, spec.source, str(spec.axioms[0]), sorted(spec.needs)
    ('Mine', 'after Adya', 'acyclic (wr | ww) as order', ['wr', 'ww'])
    """
    source = Source(str(path or name), text)
    reader = _Reader(source, path)
    citation = source.first_comment()
    title = reader.file()
    if title is None:
        raise source.error(1, 1, "a spec starts with its title in double quotes")
    if not reader.axioms:
        raise source.error(
            1, 1, "a spec has at least one axiom: acyclic, irreflexive or empty … as NAME"
        )
    used = [a.expr for a in reader.axioms] + [label.expr for label in reader.labels]
    return Spec(
        name=name,
        title=title,
        source=citation,
        text=text,
        axioms=tuple(reader.axioms),
        definitions=reader.definitions,
        binders=tuple(reader.binders),
        labels=tuple(reader.labels),
        promises=tuple(reader.promises),
        needs=names_in(used, reader.definitions),
        path=path,
    )


class _Reader:
    """One text and what it includes, statement by statement."""

    def __init__(self, source: Source, path: Path | None) -> None:
        self.axioms: list[Axiom] = []
        self.definitions: dict[str, Expr] = {}
        self.binders: list[Binder] = []
        self.labels: list[Label] = []
        self.promises: list[str] = []
        self._source = source
        self._path = path
        self._lets: set[str] = set()
        self._defined: dict[str, str] = {}
        self._depths: dict[str, int] = {}
        self._included: set[Path] = set() if path is None else {path.resolve()}

    def file(self) -> str | None:
        """Read the current text; its title, if it has one."""
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
        children = node.children
        first, last = cast("Token", children[0]), cast("Token", children[-1])
        match str(node.data):
            case "include":
                self._include(first)
            case "let":
                self._let(first, children[1])
            case "binder":
                self._binder(first, last)
            case "promise":
                self.promises.append(str(first))
            case "label":
                self.labels.append(Label(self._whole(children[0], "set"), str(last)))
            case "axiom":
                test = cast("Tree[Token]", children[0]).children[0]
                kind = cast("Literal['acyclic', 'irreflexive', 'empty']", str(test))
                self.axioms.append(Axiom(kind, self._whole(children[1], "relation"), str(last)))

    def _include(self, string: Token) -> None:
        wanted = string[1:-1]
        library = Path(__file__).parent
        folders = [library] if self._path is None else [self._path.parent, library]
        path = next((f / wanted for f in folders if is_file(f / wanted)), None)
        if path is None:
            known = {file.name for folder in folders for file in folder.glob("*.cat")}
            raise self._error(string, f"no file '{wanted}' to include{near(wanted, known)}")
        if path.resolve() in self._included:
            return
        self._included.add(path.resolve())
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise self._error(string, f"cannot read '{wanted}' as UTF-8 text") from None
        outer = self._source, self._path, self._lets
        self._source, self._path = Source(str(path), text), path
        self._source.first_comment()
        self.file()
        self._source, self._path, self._lets = outer

    def _let(self, token: Token, body: Node) -> None:
        name = Name(str(token))
        if name.name in BASE:
            raise self._error(token, f"'{name}' is a base {name.kind}; define another name")
        if name.name in self.definitions:
            raise self._error(token, f"'{name}' is already defined at {self._defined[name.name]}")
        self.definitions[name.name] = self._whole(body, name.kind)
        self._depths[name.name] = self._depth(body)
        self._defined[name.name] = f"{self._source.file}:{token.line}"

    def _binder(self, name: Token, source: Token) -> None:
        bound = BINDERS.get(str(source))
        if bound is None:
            raise self._error(source, f"no orders '{source}' to bind from{near(source, BINDERS)}")
        if name != bound:
            raise self._error(name, f"'{source}' binds '{bound}', not '{name}'")
        self.binders.append(Binder(bound, str(source)))

    def _whole(self, node: Node, kind: Kind) -> Expr:
        """The expression of a statement, if all that reads it can go down to its leaves."""
        if self._depth(node) > DEEPEST:
            raise self._error(node, f"this is nested more than {DEEPEST} deep, lets unfolded")
        return self._typed(node, kind)

    def _depth(self, node: Node) -> int:
        deepest, todo = 0, [(node, 1)]
        while todo:
            part, depth = todo.pop()
            if isinstance(part, str):
                deepest = max(deepest, depth + self._depths.get(str(part), 0))
            else:
                todo += ((child, depth + 1) for child in part.children)
        return deepest

    def _typed(self, node: Node, kind: Kind) -> Expr:
        expr = self._expr(node)
        if expr.kind != kind:
            raise self._error(node, f"type {kind} expected, {expr.kind} found: {expr}")
        return expr

    def _expr(self, node: Node) -> Expr:
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
        name = Name(str(token))
        if name.name not in BASE and name.name not in self.definitions:
            if name.name in self._lets:
                raise self._error(token, f"'{name}' is used before its let ends; move the let up")
            known = [n for n in self.definitions if Name(n).kind == name.kind]
            known += SETS if name.kind == "set" else RELATIONS
            raise self._error(token, f"no {name.kind} '{name}'{_suggest(name.name, known)}")
        return name

    def _error(self, node: Node, message: str) -> Exception:
        place = node if isinstance(node, str) else node.meta
        return self._source.error(place.line or 1, place.column or 1, message)


def _suggest(name: str, known: Collection[str]) -> str:
    """As ``near``, but names of two and three letters count as close if one letter differs."""
    for other in sorted(known):
        if (
            len(other) == len(name) <= 3
            and sum(a != b for a, b in zip(other, name, strict=True)) == 1
        ):
            return f"; did you mean '{other}'?"
    return near(name, known)
