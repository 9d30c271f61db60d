"""Each regular expression takes time linear in its text, however the text is made to repeat.

The expressions are found by walking the modules: those that a module holds, and those that it
writes in a call of `re`, with a word in the place of each local name. A text is a sample of what
stands before a repetition, a fragment many times, and an end that does not match.
"""

from __future__ import annotations

import ast
import importlib
import re
from itertools import chain, islice, product
from pathlib import Path
from random import Random
from re import _constants as code
from re import _parser as parser
from time import process_time

import pytest

from isolitmus import model

ROOT = Path(model.__file__).parents[1]
FOLDERS = ("model", "specs", "checker", "cli", "jobs", "histories", "databases/locking", "claims")
METHODS = ("match", "fullmatch", "search", "finditer", "findall", "sub", "subn")
READS_ON = {"sub", "subn", "split", "findall", "finditer"}
"""Methods that search again after each match."""
SIZE, GROWTH, SOON = 5_000, 4, 0.005
"""Characters of a text, factor of the longer one, and seconds below which none is slow."""
TEXTS = 10
"""Texts of an expression: so many with the simplest fragments, and so many others."""


class Word(str):
    """The value of a local name, an attribute or a call within an expression: a word."""

    __slots__ = ()

    def __new__(cls, *_, **__):
        return super().__new__(cls, "name")

    def __getattr__(self, _):
        return Word()

    def __call__(self, *_, **__):
        return Word()

    def __getitem__(self, _):
        return Word()


class Names(dict):
    """The names of a module; any other name is a word."""

    def __missing__(self, name):
        import builtins

        return getattr(builtins, name) if hasattr(builtins, name) else Word()


def held(value, depth=0):
    """The compiled expressions in a value of a module."""
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict) and depth < 3:
        yield from chain.from_iterable(held(part, depth + 1) for part in value.values())
    elif isinstance(value, tuple | list | set | frozenset) and depth < 3:
        yield from chain.from_iterable(held(part, depth + 1) for part in value)


def written(call, names):
    """The expression that a call of `re` compiles; None if only its caller knows it."""
    first, *rest = call.args
    flags = [part for part in rest if "re." in ast.unparse(part)]
    flags += [word.value for word in call.keywords if word.arg == "flags"]
    pattern, *given = (eval(compile(ast.Expression(p), "", "eval"), names) for p in (first, *flags))
    if isinstance(pattern, Word | re.Pattern) or str(pattern) == "name":
        return None
    return re.compile(str(pattern), sum(given) if given else 0)


def expressions():
    """Each expression, with the methods that are called on it and its place."""
    found = {}
    trees = {
        name.replace("/", "."): ast.parse(path.read_text("utf-8"))
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        if (name := path.relative_to(ROOT).with_suffix("").as_posix())
    }
    calls = []
    for name, tree in trees.items():
        module = importlib.import_module(f"isolitmus.{name}".removesuffix(".__init__"))
        for variable, value in vars(module).items():
            for pattern in held(value):
                found.setdefault((pattern.pattern, pattern.flags), [f"{name}.{variable}", set()])
        inner = {
            id(node)
            for function in ast.walk(tree)
            if isinstance(function, ast.FunctionDef)
            for node in ast.walk(function)
        }
        others = set()  # methods of what is no expression of the module, perhaps a loop's variable
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=method)) if (
                    node.args
                ):
                    # what a module compiles is among its values
                    if method in {*METHODS, "split"} or (method == "compile" and id(node) in inner):
                        pattern = written(node, Names(vars(module)))
                        if pattern is not None:
                            calls.append((pattern, f"{name}:{node.lineno}", method, others))
                case ast.Attribute(value=ast.Name(id=variable), attr=method) if variable != "re":
                    value = vars(module).get(variable)
                    if isinstance(value, re.Pattern) and method in {*METHODS, "split"}:
                        calls.append((value, f"{name}.{variable}", method, others))
                    elif method in METHODS:
                        others.add(method)
    for pattern, place, method, others in sorted(calls, key=lambda call: call[2] == "compile"):
        _, methods = found.setdefault((pattern.pattern, pattern.flags), [place, set()])
        if method != "compile":
            methods.add(method)
        elif not methods:
            methods |= others
    return [
        pytest.param(pattern, flags, sorted(methods or {"match", "fullmatch"}), id=f"{place}-{k}")
        for k, ((pattern, flags), (place, methods)) in enumerate(found.items())
        if isinstance(pattern, str)
    ]


SIGNS = " \n\tanA0_9.'\"`/*-(),=:;#[]{}<>|\\é%$"
CLASSES = {
    code.CATEGORY_DIGIT: "7", code.CATEGORY_SPACE: " ", code.CATEGORY_WORD: "a",
    code.CATEGORY_NOT_DIGIT: "a", code.CATEGORY_NOT_SPACE: "a", code.CATEGORY_NOT_WORD: "-",
}  # fmt: skip
REPEATS = (code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT)


def signs(items):
    """A few characters of a set."""
    if items[0][0] is code.NEGATE:
        inside = re.compile(negated(items))
        return [sign for sign in (*" a'(/", *SIGNS) if inside.fullmatch(sign)][:3] or ["a"]
    plain = []
    for op, value in items:
        plain.append(
            chr(value)
            if op is code.LITERAL
            else chr(value[0])
            if op is code.RANGE
            else CLASSES[value]
        )
    return [*dict.fromkeys(plain)][:4]


def negated(items):
    """The expression of a negated set."""
    words = {code.CATEGORY_DIGIT: r"\d", code.CATEGORY_SPACE: r"\s", code.CATEGORY_WORD: r"\w",
             code.CATEGORY_NOT_DIGIT: r"\D", code.CATEGORY_NOT_SPACE: r"\S",
             code.CATEGORY_NOT_WORD: r"\W"}  # fmt: skip
    inner = [
        re.escape(chr(value)) if op is code.LITERAL
        else f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}" if op is code.RANGE
        else words[value]
        for op, value in items[1:]
    ]  # fmt: skip
    return f"[^{''.join(inner)}]"


def samples(tree, groups):
    """A few texts that an expression matches."""
    texts = [""]
    for op, value in tree:
        parts = node_samples(op, value, groups)
        pairs = [
            one + part
            for (i, one), (j, part) in product(enumerate(texts), enumerate(parts))
            if not i or not j
        ]
        texts = [*dict.fromkeys(pairs)][:6]
    return texts


def node_samples(op, value, groups):
    if op is code.LITERAL:
        return [chr(value)]
    if op is code.NOT_LITERAL:
        return [sign for sign in " a'(" if sign != chr(value)][:2]
    if op is code.ANY:
        return ["a", " ", "/"]
    if op is code.IN:
        return signs(value)
    if op is code.BRANCH:
        return [*chain.from_iterable(samples(one, groups)[:2] for one in value[1])][:10]
    if op is code.SUBPATTERN:
        texts = samples(value[3], groups)
        groups[value[0]] = texts[0]
        return texts
    if op is code.ATOMIC_GROUP:
        return samples(value, groups)
    if op in REPEATS:
        least, _, body = value
        texts = samples(body, groups)
        return [text * least for text in texts] if least else [*texts, ""]
    return [groups.get(value, "")] if op is code.GROUPREF else [""]


def repetitions(tree, before, after, groups):
    """What stands before each long repetition, what it repeats, and what follows."""
    parts = list(tree)
    for i, (op, value) in enumerate(parts):
        heads = [a + b for a, b in product(before[:2], samples(parts[:i], groups)[:3])][:4]
        tails = [a + b for a, b in product(samples(parts[i + 1 :], groups)[:2], after[:2])][:3]
        inner = []
        if op in REPEATS:
            if value[1] is code.MAXREPEAT or value[1] > 40:
                yield heads, [text for text in samples(value[2], groups) if text], tails
            inner = [value[2]]
        elif op is code.SUBPATTERN:
            inner = [value[3]]
        elif op is code.ATOMIC_GROUP:
            inner = [value]
        elif op is code.BRANCH:
            inner = value[1]
        elif op in (code.ASSERT, code.ASSERT_NOT):
            inner = [value[1]]
        for one in inner:
            yield from repetitions(one, heads, tails, groups)


def pumped(tree):
    """Beginnings, fragments and ends of texts for an expression, short fragments first."""
    groups = {}
    samples(tree, groups)
    found = {}
    for heads, bodies, tails in repetitions(tree, [""], [""], groups):
        fragments = [
            *bodies,
            *(a + b for a, b in product(bodies[:3], bodies[:3]) if a != b),
            *(a + b for a, b in product(heads[:2], bodies[:2])),
            *(a + b for a, b in product(bodies[:2], tails[:2])),
            *(a + b + c for a, b, c in product(heads[:1], bodies[:2], tails[:2])),
            *heads,
        ]
        ends = ("", "\0", f"{tails[0][:-1]}\0" if tails else "\0")
        for parts in product(("", *heads[:2]), filter(None, fragments), ends):
            found[parts] = None
    return sorted(found, key=lambda parts: len(parts[1]))


def seconds(pattern, method, text):
    start = process_time()
    if method in READS_ON:
        for _ in pattern.finditer(text):
            pass
    else:
        getattr(pattern, method)(text)
    return process_time() - start


def is_slow(pattern, method, head, fragment, end):
    """Whether a text four times as long takes eight times as long."""
    once, more = (head + fragment * (size // len(fragment)) + end for size in (SIZE, GROWTH * SIZE))
    short = seconds(pattern, method, once)
    if short < SOON:
        return False
    short = min(short, seconds(pattern, method, once))
    return min(seconds(pattern, method, more) for _ in range(2)) > 2 * GROWTH * short


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("pattern", "flags", "methods"), expressions())
def test_an_expression_takes_linear_time(pattern, flags, methods, seed):
    compiled = re.compile(pattern, flags)
    parts = pumped(parser.parse(pattern, flags))
    Random(f"{pattern} {seed}").shuffle(others := parts[TEXTS:])
    texts = (*parts[:TEXTS], *islice(others, TEXTS))
    assert not [
        (method, *text)
        for method, text in product(methods, texts)
        if is_slow(compiled, method, *text)
    ]
