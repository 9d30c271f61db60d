"""Functions of PySpark that ``--run`` names, with the arguments of their calls.

``--run FILE.py:FUNCTION`` calls the function with its defaults, and
``--run 'FILE.py:FUNCTION("2026-01-01", batch=3)'`` with these values, written as in Python. The
SparkSession is passed to a parameter that has its name or its annotation. The file is read, not
executed.
"""

from __future__ import annotations

import ast
import datetime as dt
import re
import sys
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from isolitmus.model.errors import IsolitmusError, LitmusError, near
from isolitmus.specs.disk.input_files import is_there, read_text
from isolitmus.specs.files.toml_reader import NAME

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

TARGET = re.compile(
    rf"(?:(?P<name>{NAME.pattern})=)?(?P<file>(?:(?!\.py:).)*+\.py):(?P<call>\w+\s*+(?:\(.*\)\s*)?)",
    re.DOTALL,
)
FORM = "write FILE.py:FUNCTION or 'FILE.py:FUNCTION(ARGUMENTS)'"
SESSIONS = ("spark", "sparksession", "session", "ss")
"""Names of a parameter that receives the SparkSession, in lower case and without underscores."""
VALUES = {"date": dt.date, "datetime": dt.datetime, "timedelta": dt.timedelta, "Decimal": Decimal}
"""Classes that an argument may call."""


class FunctionCall(NamedTuple):
    """Call of a function with values."""

    function: str
    positional: tuple[Any, ...] = ()
    named: Mapping[str, Any] = {}


class FunctionTarget(NamedTuple):
    """Function that is to be run."""

    path: Path
    """File of the function."""
    function: str
    """Name of the function."""
    line: int
    """Line at which it begins."""
    text: str
    """Text of the file."""
    call: str = ""
    """Call in Python; empty for one without arguments."""
    session: str = ""
    """Parameter that receives the SparkSession; empty if there is none."""
    session_at: int = -1
    """Place of that parameter among those by position; -1 if it is not by position."""
    values: tuple[tuple[str, str], ...] = ()
    """Its other parameters, each with the value of this call in Python."""
    title: str = ""
    """Name of the job, if it is not that of the function."""

    @property
    def label(self) -> str:
        """Name of the file in messages."""
        return self.path.name

    @property
    def name(self) -> str:
        """Name of the job."""
        return self.title or self.function

    @property
    def place(self) -> str:
        """File and line of the function."""
        return f"{self.label}:{self.line}"

    def arguments(self, spark: Any) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments of the call by position and by name, with a SparkSession.

        Examples
        --------
        >>> FunctionTarget(Path("job.py"), "load", 3, "", "load(7, n=3)", "spark", 0).arguments("S")
        (['S', 7], {'n': 3})
        """
        call = read_call(self.call or self.function)
        positional, named = [*call.positional], dict(call.named)
        if self.session and 0 <= self.session_at <= len(positional):
            positional.insert(self.session_at, spark)
        elif self.session:
            named[self.session] = spark
        return positional, named

    def words(self) -> frozenset[str] | None:
        """Return the words of the program in lower case, among them the names of its tables; None
        if it may compute such a name.
        """
        return program_words(self.path, self.text, tuple(value for _, value in self.values))

    @property
    def shown(self) -> str:
        """Name of the job, with the values of its parameters.

        Examples
        --------
        >>> FunctionTarget(Path("job.py"), "load", 3, "", values=(("batch", "3"),)).shown
        'load(batch=3)'
        """
        if not self.values:
            return self.name
        return f"{self.name}({', '.join(f'{name}={value}' for name, value in self.values)})"


def read_call(text: str) -> FunctionCall:
    """Return the function of a call, and its arguments.

    Raises
    ------
    SyntaxError, ValueError
        If it is not a call with values.

    Examples
    --------
    >>> read_call("load(date(2026, 1, 1), batch=3)")
    FunctionCall(function='load', positional=(datetime.date(2026, 1, 1),), named={'batch': 3})
    """
    match ast.parse(text.strip(), mode="eval").body:
        case ast.Name(name):
            return FunctionCall(name)
        case ast.Call(ast.Name(name), given, named):
            keys = [one.arg for one in named]
            if None in keys or len({*keys}) < len(keys):
                raise SyntaxError("an argument is given twice, or has no name")
            return FunctionCall(
                name,
                tuple(_value(one) for one in given if not _is_session(one)),
                {str(one.arg): _value(one.value) for one in named if not _is_session(one.value)},
            )
    raise SyntaxError("not a call of a function")


def _value(node: ast.expr) -> Any:
    """Return the value of an argument; ValueError if it is not one."""
    if isinstance(node, ast.Call):
        called = ast.unparse(node.func).rpartition(".")[2]
        if called not in VALUES or any(one.arg is None for one in node.keywords):
            raise _NotValueError(ast.unparse(node))
        try:
            return VALUES[called](
                *map(_value, node.args), **{str(k.arg): _value(k.value) for k in node.keywords}
            )
        except (TypeError, ArithmeticError) as error:
            raise ValueError(str(error)) from None
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        raise _NotValueError(ast.unparse(node)) from None


class _NotValueError(ValueError):
    """Argument that is not a value."""


def _is_session(node: ast.expr) -> bool:
    """Return whether an argument is the SparkSession, which is passed anyway."""
    return isinstance(node, ast.Name) and _means_session(node.id)


def _means_session(name: str) -> bool:
    return name.replace("_", "").lower() in SESSIONS


def read_function_target(given: str) -> FunctionTarget:
    """Return the function that ``FILE.py:FUNCTION`` names, without executing the file.

    Parameters
    ----------
    given : str
        ``[NAME=]FILE.py:FUNCTION``, or ``[NAME=]FILE.py:FUNCTION(ARGUMENTS)`` as in Python.

    Raises
    ------
    IsolitmusError
        If there is no such file or function, the file is not Python, or the arguments are not those
        of the function.
    """
    found = TARGET.fullmatch(given)
    if found is None:
        raise IsolitmusError(f"--run is '{given}'; {FORM}")
    whole = Path(f"{found['name']}={found['file']}")
    name, path = found["name"] or "", Path(found["file"])
    if name and is_there(whole):
        name, path = "", whole
    try:
        call = read_call(found["call"])
    except _NotValueError as error:
        raise IsolitmusError(
            f"--run is '{given}': the argument {error} is not a value; write literals of Python, or"
            " date(2026, 1, 1)"
        ) from None
    except (SyntaxError, ValueError) as error:
        problem = error.msg if isinstance(error, SyntaxError) else str(error)
        raise IsolitmusError(f"--run is '{given}': {problem}; {FORM}") from None
    text = read_text(path, LitmusError)
    node = _definition(path, text, call.function)
    session = _session_parameter(node)
    plain = [one.arg for one in (*node.args.posonlyargs, *node.args.args)]
    return FunctionTarget(
        path,
        call.function,
        node.lineno,
        text,
        found["call"].strip() if "(" in found["call"] else "",
        session,
        plain.index(session) if session in plain else -1,
        tuple(_bound(node, call, session, f"{path.name}:{node.lineno}")),
        name,
    )


def _definition(path: Path, text: str, function: str) -> ast.FunctionDef:
    """Return the definition of a function in a text."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        place = f"{path.name}:{error.lineno or 1}:{error.offset or 1}"
        raise LitmusError(f"{place}: not Python: {error.msg}") from None
    except ValueError as error:
        raise LitmusError(f"{path.name}: not Python: {error}") from None
    found = {
        node.name: node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    if function not in found:
        known = near(function, found) if found else "; it defines no function at its top"
        raise IsolitmusError(f"{path.name} has no function '{function}'{known}")
    node = found[function]
    if isinstance(node, ast.AsyncFunctionDef):
        raise IsolitmusError(
            f"{path.name}:{node.lineno}: {function} is asynchronous; give a function that is not"
        )
    return node


def _session_parameter(node: ast.FunctionDef) -> str:
    """Return the parameter that receives the SparkSession; empty if there is none."""
    every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    for one in every:
        if one.annotation is not None and "SparkSession" in ast.unparse(one.annotation):
            return one.arg
    return next((one.arg for one in every if _means_session(one.arg)), "")


def _bound(
    node: ast.FunctionDef, call: FunctionCall, session: str, place: str
) -> Iterator[tuple[str, str]]:
    """Yield the parameters of a function, each with its value in a call.

    Raises IsolitmusError if the call has too many arguments, unknown ones, or not all that the
    function needs.
    """
    own, name = node.args, node.name
    plain = [one.arg for one in (*own.posonlyargs, *own.args)]
    defaults = dict(
        zip(plain[len(plain) - len(own.defaults) :], map(ast.unparse, own.defaults), strict=True)
    )
    defaults |= {
        one.arg: ast.unparse(value)
        for one, value in zip(own.kwonlyargs, own.kw_defaults, strict=True)
        if value is not None
    }
    plain = [one for one in plain if one != session]
    every = [*plain, *(one.arg for one in own.kwonlyargs if one.arg != session)]
    only = {one.arg for one in own.posonlyargs}
    values = dict(zip(plain, map(repr, call.positional), strict=False))
    more = call.positional[len(plain) :]
    if more and own.vararg is None:
        takes = f"{len(plain)} arguments ({', '.join(plain)})" if plain else "no arguments"
        raise IsolitmusError(
            f"{place}: {name} takes {takes} by position besides the SparkSession; "
            f"{len(call.positional)} are given"
        )
    for key, value in call.named.items():
        if key in values:
            raise IsolitmusError(f"{place}: {name} gets {key} twice; give it once")
        if own.kwarg is None and (key not in every or key in only):
            known = near(key, every) if every else "; it has no parameters but the SparkSession"
            raise IsolitmusError(f"{place}: {name} has no parameter '{key}'{known}")
        values[key] = repr(value)
    missing = [one for one in every if one not in values and one not in defaults]
    if missing:
        given = ", ".join(f"{one}=…" for one in missing)
        hint = "" if session else "; the SparkSession is passed to a parameter named spark"
        raise IsolitmusError(
            f"{place}: {name} also needs {' and '.join(missing)}; write"
            f" '{place.partition(':')[0]}:{name}({given})'{hint}"
        )
    yield from ((one, values.pop(one, defaults.get(one, ""))) for one in every)
    yield from values.items()
    if more and own.vararg is not None:
        yield f"*{own.vararg.arg}", repr(more)


NAMING = (
    "sql", "table", "saveAsTable", "insertInto", "forName", "forPath", "writeTo", "save", "load",
    "toTable", "start", "createTable", "tableName", "location",
)  # fmt: skip
"""Methods of PySpark and Delta that take the name of a table, a path, or SQL."""
NAMES = (
    "sqlQuery",
    "name",
    "tableName",
    "viewName",
    "tableOrViewName",
    "path",
    "location",
    "table",
)
"""Their parameters that receive it."""
LISTING = re.compile(
    r"\blistTables\b|\bgetattr\b|\bSHOW\s+TABLES\b|\binformation_schema\b", re.IGNORECASE
)
"""Words of a program that may find tables which it does not name."""
KEYWORD = re.compile(
    r"\b(?:(?P<table>FROM|JOIN|INTO|UPDATE|TABLE|OVERWRITE|USING|OPTIMIZE|VACUUM|VIEW|EXISTS|IDENTIFIER"
    r"|USE|IMMEDIATE)|SELECT|WHERE|SET|VALUES|ON|AND|OR|BY|HAVING|LIMIT|AS|IN|BETWEEN|WHEN|THEN)\b",
    re.IGNORECASE,
)
"""Keywords before which the last one tells whether a name of a table follows."""
GAPS = re.compile(r"%s|%\(\w+\)s|\{[^{}]*\}")
"""Places of values in a text of Python."""
PACKAGES = frozenset({"pyspark", "delta", "py4j", "pandas", "numpy", "pyarrow", "isolitmus"})
"""Packages, besides those of Python, that name no table by themselves."""


def program_words(path: Path, text: str, values: Sequence[str] = ()) -> frozenset[str] | None:
    r"""Return the words of a program in lower case, with those of the modules beside it.

    None is returned if it may compute the name of a table, or imports another module.

    Parameters
    ----------
    path : Path
        File of the program.
    text : str
        Its text.
    values : sequence of str
        Other texts that it has, such as its arguments.

    Examples
    --------
    >>> path = Path("job.py")
    >>> "sales" in program_words(path, "def f(spark):\n    spark.sql('DELETE FROM sales')")
    True
    >>> program_words(path, "def f(spark, name):\n    spark.sql(f'DELETE FROM {name}')") is None
    True
    """
    texts, todo = {path: text}, [path]
    while todo:
        of = todo.pop()
        try:
            tree = ast.parse(texts[of])
        except (SyntaxError, ValueError):
            return None
        if LISTING.search(texts[of]) or any(map(_computes_name, *_naming(tree))):
            return None
        for name in _imports(tree):
            beside = path.parent.joinpath(*name.split("."))
            files = [beside.with_suffix(".py"), beside / "__init__.py"]
            files = [one for one in files if is_there(one)]
            first = name.partition(".")[0]
            if not files and first not in sys.stdlib_module_names | PACKAGES:
                return None
            for one in files:
                if one not in texts:
                    texts[one] = read_text(one, LitmusError)
                    todo.append(one)
    every = " ".join((*texts.values(), *values))
    return frozenset(re.findall(r"\w+", every.lower()))


def _imports(tree: ast.AST) -> Iterator[str]:
    """Yield the names of the modules that a program imports, with those that may be members."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "__future__"
            if node.level:
                yield from (f"{node.module or ''}.{one.name}".lstrip(".") for one in node.names)


def _naming(tree: ast.AST) -> tuple[list[ast.expr], list[dict[str, list[ast.expr]]]]:
    """Return the expressions of a program that may name tables, and what its variables may be."""
    bound: dict[str, list[ast.expr]] = {}
    targets: list[ast.Name] = []
    for node in ast.walk(tree):
        pairs: list[tuple[ast.expr, ast.expr]] = []
        if isinstance(node, ast.Assign):
            pairs = [(one, node.value) for one in node.targets]
        elif isinstance(node, ast.AugAssign | ast.AnnAssign | ast.NamedExpr) and node.value:
            pairs = [(node.target, node.value)]
        elif isinstance(node, ast.For | ast.comprehension):
            values = node.iter.elts if isinstance(node.iter, ast.Tuple | ast.List) else [node.iter]
            pairs = [(node.target, one) for one in values]
        for target, value in pairs:
            if isinstance(target, ast.Name):
                targets.append(target)
                bound.setdefault(target.id, []).append(value)
    found: list[ast.expr] = []
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    simple = {id(one) for one in targets}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in NAMING and id(node) not in called:
            found.append(node)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            if id(node) not in simple:
                bound.setdefault(node.id, []).append(node)
        elif isinstance(node, ast.arg):
            bound.setdefault(node.arg, []).append(ast.Name("", ast.Load()))
        elif _is_text(node) or (isinstance(node, ast.Call) and _called(node) == "format"):
            found.append(node)
        elif isinstance(node, ast.Call) and _called(node) in NAMING:
            found += node.args[: 2 if _called(node) in {"forName", "forPath"} else 1]
            found += (one.value for one in node.keywords if one.arg in {None, *NAMES})
    return found, [bound] * len(found)


def _is_text(node: ast.AST) -> TypeGuard[ast.expr]:
    """Return whether an expression makes a string, as far as its text tells."""
    if not isinstance(node, ast.BinOp):
        return isinstance(node, ast.JoinedStr)
    parts = node.left, node.right
    text = any(isinstance(getattr(one, "value", None), str) or _is_text(one) for one in parts)
    return isinstance(node.op, ast.Add | ast.Mod) and text


def _called(node: ast.Call) -> str:
    """Return the last name of a function that is called."""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def _computes_name(node: ast.expr, bound: Mapping[str, Sequence[ast.expr]], depth: int = 5) -> bool:
    """Return whether an expression may be, or contain, a name that the program does not write."""
    if isinstance(node, ast.Constant):
        return False
    if isinstance(node, ast.Name):
        if _means_session(node.id):
            return False
        values = bound.get(node.id, ())
        return not (depth and values) or any(_computes_name(v, bound, depth - 1) for v in values)
    if isinstance(node, ast.Call) and _called(node) == "format":
        node = getattr(node.func, "value", node)
        return _computes_name(node, bound, depth - 1) or _has_name_at_gap(_text(node))
    if isinstance(node, ast.BinOp):
        return _has_name_at_gap(_text(node))
    return not isinstance(node, ast.JoinedStr) or _has_name_at_gap(_text(node))


def _text(node: ast.expr) -> str:
    """Return an expression of texts, with ``{}`` in place of each value."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_text, node.values))
    if isinstance(node, ast.BinOp):
        right = "" if isinstance(node.op, ast.Mod) else _text(node.right)
        return _text(node.left) + right
    return "{}"


def _has_name_at_gap(text: str) -> bool:
    """Return whether a value of a text is the name of a table, or a part of one."""
    for gap in GAPS.finditer(text):
        before = text[: gap.start()]
        last = None
        for last in KEYWORD.finditer(before):  # noqa: B007 - the last one
            pass
        follows = text[gap.end() : gap.end() + 1]
        bare = not re.search(r"\s", GAPS.sub("", text))
        if (
            (bare if last is None else last["table"])
            or re.search(r"[\w.`]$", before)
            or follows in {".", "`"}
        ):
            return True
    return False


def check_function_names(targets: Sequence[FunctionTarget]) -> None:
    """Refuse two functions of one name, which is the name of their job."""
    seen: dict[str, FunctionTarget] = {}
    for one in targets:
        if not NAME.fullmatch(one.name):
            raise IsolitmusError(f"'{one.name}' is not a name of a job; use letters, digits and _")
        other = seen.setdefault(one.name, one)
        if other is not one:
            raise IsolitmusError(
                f"two functions have the name {one.name}, in {other.path} and {one.path}; a job has"
                f" the name of its function, so write --run NAME={one.path.name}:{one.function} for"
                " one of them"
            )
