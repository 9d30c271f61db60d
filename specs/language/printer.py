"""Printer of specs: text that parses to the same spec, with minimal parentheses and lets in one
file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.spec import Binary, Bracket, Name, Unary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isolitmus.model.spec import CatExpr, Spec

LOOSE = {"|": 0, ";": 1, "\\": 2, "&": 3}
"""Precedence of operators, the loosest first."""
POSTFIX, ATOM = 4, 5


def expr_text(expr: CatExpr) -> str:
    r"""Return an expression in cat.

    Examples
    --------
    >>> from isolitmus.specs.language.parser import read
    >>> text = "(so | [Reader] ; (wr ; rw)?)+ ; (ww \\ (wr \\ so)) & rw"
    >>> expr_text(read(f'"Mine" empty {text} as mine', "mine").axioms[0].expr)
    '(so | [Reader] ; (wr ; rw)?)+ ; (ww \\ (wr \\ so)) & rw'
    """
    return _text(expr, 0)


def _text(expr: CatExpr, least: int) -> str:
    """Return the expression, in parentheses if it binds more loosely than `least`."""
    match expr:
        case Name(name):
            return name
        case Bracket(operand):
            return f"[{_text(operand, 0)}]"
        case Unary("~", operand):
            return f"~{_text(operand, ATOM)}"
        case Unary(op, operand):
            text, binds = f"{_text(operand, POSTFIX)}{op}", POSTFIX
        case Binary(op, left, right):
            binds = LOOSE[op]
            text = f"{_text(left, binds)} {op} {_text(right, binds + 1)}"
    return f"({text})" if binds < least else text


def spec_text(spec: Spec) -> str:
    """Return the whole spec as one file; included files and the file of its runtime are part of it.

    Examples
    --------
    >>> from isolitmus.specs import level
    >>> from isolitmus.specs.language.parser import read
    >>> mine = level("snapshot-isolation")
    >>> again = read(spec_text(mine), mine.name)
    >>> (again.axioms, again.definitions) == (mine.axioms, mine.definitions)
    True
    """
    return "\n".join(_lines(spec)) + "\n"


def _lines(spec: Spec) -> Iterator[str]:
    """Yield the lines of the text of a spec, one statement a line."""
    yield f'"{spec.title}"'
    if spec.source:
        yield f"(* {spec.source} *)"
    if spec.format is not None:
        yield f"format {spec.format}"
    if spec.at_most:
        yield f'at-most "{spec.at_most}"'
    yield from (f"promises {name}" for name in spec.promises)
    if spec.setting:
        yield f'set "{spec.setting}"'
    yield from (f'set "{key} = {value}"' for key, value in spec.confs.items())
    yield from (f"with {binder.name} from {binder.source}" for binder in spec.binders)
    yield from (f'given {name} "{meaning}"' for name, meaning in spec.given.items())
    yield from (f"let {name} = {expr_text(of)}" for name, of in spec.definitions.items())
    for axiom in spec.axioms:
        yield f"{axiom.test} {expr_text(axiom.expr)} as {axiom.name}"
    yield from (f"silent {expr_text(one.expr)} as {one.name}" for one in spec.silences)
    yield from (f"show {expr_text(label.expr)} as {label.name}" for label in spec.labels)
    yield from map(str, spec.clauses)
