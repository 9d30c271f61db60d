"""Docstrings of what the packages offer have NumPy's sections, as numpydoc checks them.

A dataclass documents its fields below each of them; these count as its parameters.
"""

import ast
import inspect
import warnings
from dataclasses import fields, is_dataclass
from importlib import import_module
from itertools import pairwise

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from numpydoc.validate import validate

PACKAGES = ["", ".model", ".specs", ".checker", ".conformance", ".pipeline"]
OFFERED = [
    f"isolitmus{package}.{name}"
    for package in PACKAGES
    for name in import_module(f"isolitmus{package}").__all__
]
CHECKED = {
    "GL08": "a docstring",
    "SS01": "a summary",
    "SS03": "a period behind the summary",
    "SS05": "the imperative",
    "SS06": "a summary of one line",
    "PR01": "all parameters",
    "PR02": "no other parameters",
    "PR03": "parameters in their order",
    "PR07": "a description of each parameter",
    "RT01": "a section Returns",
    "RT03": "a description of what is returned",
    "YD01": "a section Yields",
    "EX01": "a section Examples",
}
"""What numpydoc is asked for, by its codes."""


def documented_fields(cls):
    """Return the fields of a class, and of those it inherits from, with a docstring below."""
    classes = [each for each in cls.__mro__ if each.__module__.startswith("isolitmus.")]
    bodies = [ast.parse(inspect.getsource(each)).body[0].body for each in classes]
    return {
        part.target.id
        for body in bodies
        for part, below in pairwise(body)
        if isinstance(part, ast.AnnAssign)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
    }


def lacking(name):
    """Return what numpydoc finds wrong with a docstring, without what is not asked for."""
    module, _, attribute = name.rpartition(".")
    of = getattr(import_module(module), attribute)
    every = validate(f"{of.__module__}.{of.__qualname__}")["errors"]
    found = {code: text for code, text in every if code in CHECKED}
    if is_dataclass(of):
        public = {field.name for field in fields(of) if field.name[0] != "_"}
        bare = public - documented_fields(of)
        found.pop("PR01", None)
        if bare and len(public) > 2:
            found["PR01"] = f"no docstring below {', '.join(sorted(bare))}"
    return found


@pytest.mark.parametrize("name", OFFERED)
def test_what_a_package_offers_is_documented(name):
    assert lacking(name) == {}


def test_a_docstring_without_sections_is_found():
    assert {"PR01", "RT01"} <= {*lacking("isolitmus.model.display.count_of")}
