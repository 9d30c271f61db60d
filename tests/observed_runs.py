"""Runs that engines were observed to make, a file for each engine, with a digest of all that the
engine was asked with.

A line of a file is a case: a litmus test under a protocol. Its digest is of the text of the test,
the protocol, the engine's release and the harness: the code of ``conformance`` that executes tests
on that engine. While the digest is the same, the engine would be asked the same question again;
what it answered is compared with the model without it.
"""

import ast
import json
from dataclasses import MISSING, dataclass, fields, replace
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from isolitmus.model.display import text_digest
from isolitmus.model.errors import LitmusError
from isolitmus.model.run import Run, TransactionRun, Wait
from isolitmus.specs.registries import ENGINES

HARNESS = (
    "isolitmus.conformance", "isolitmus.databases.sessions", "isolitmus.databases.derby",
    "isolitmus.databases.postgres",
)  # fmt: skip
"""Packages of the code that executes litmus tests on engines."""


@dataclass(frozen=True, slots=True)
class ObservedRun:
    """What an engine did with a litmus test under a protocol."""

    litmus: str
    """The name of the litmus test."""
    protocol: str
    """The name of the protocol."""
    digest: str
    """That of the case when the engine was asked."""
    run: Run | None
    """What was observed; None if the engine refuses the test, or executes it in another way than it
    says.
    """

    @property
    def case(self):
        """The names of litmus test and protocol."""
        return self.litmus, self.protocol


def read_runs(path):
    """Return the observed runs of a file by litmus test and protocol; none if there is no file.

    Raises
    ------
    LitmusError
        If a line is no observed run.
    """
    found = {}
    if not path.exists():
        return found
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        try:
            one = _from_json(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            raise LitmusError(f"{path.name}:{number}: not an observed run: {error!r}") from None
        found[one.case] = one
    return found


def write_runs(path, runs):
    """Write observed runs to a file, sorted, a line each."""
    lines = [
        json.dumps(_to_json(one), ensure_ascii=False, separators=(",", ":"))
        for one in sorted(runs, key=lambda one: one.case)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


# Digests


def case_digest(engine, release, litmus, protocol):
    """Return the digest of all that an engine is asked with; a title or a source is not.

    Parameters
    ----------
    engine : str
        The name of the engine.
    release : str
        What its runs say of its version.
    litmus : Litmus
        The litmus test.
    protocol : str
        The name of the protocol.
    """
    module = ENGINES.shipped[engine].partition(":")[0]
    bare = replace(litmus, title="", source="", tags=())
    asked = [str(bare), protocol, engine, release, harness_digest(module)]
    return text_digest(json.dumps(asked))


@cache
def harness_digest(module):
    """Return the digest of the code by which a module of this package executes litmus tests.

    It is that of the module and of all modules of the harness that it imports, directly or not, and
    of the Java files beside them. Docstrings and comments do not count.
    """
    seen = {}
    left = [module]
    while left:
        name = left.pop()
        if name in seen:
            continue
        spec = find_spec(name)
        if spec is None or spec.origin is None:  # a class or function of a module
            continue
        path = Path(spec.origin)
        tree = ast.parse(path.read_text("utf-8"))
        seen[name] = "".join(
            [_code(tree), *(file.read_text("utf-8") for file in sorted(path.parent.glob("*.java")))]
        )
        left += _imported(tree)
    return text_digest(json.dumps(sorted(seen.items())))


def _imported(tree):
    """The modules of the harness that a module imports, anywhere in it."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in HARNESS:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name for name in names if name.startswith(tuple(f"{one}." for one in HARNESS))}


def _code(tree):
    """A module without comments and without strings that stand alone, such as docstrings."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            body[:] = [
                each
                for each in body
                if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
            ] or [ast.Pass()]
    return ast.unparse(tree)


# Text: of each version the tables that differ from the version before, null where one is not there
# or not readable

DEFAULTS = {
    field.name: field.default for field in fields(TransactionRun) if field.default is not MISSING
}
TYPES = {"timestamp": datetime, "date": date, "decimal": Decimal}
"""Types that JSON does not have, by what marks a value; a timestamp before a date, of which it is
one.
"""


def _to_json(one):
    head = {"litmus": one.litmus, "protocol": one.protocol, "digest": one.digest}
    run = one.run
    if run is None:
        return head | {"run": None}
    versions, before = [], {}
    for tables in run.versions:
        changed = {name: _rows(rows) for name, rows in tables.items() if before.get(name) != rows}
        versions.append(changed | dict.fromkeys(before.keys() - tables.keys()))
        before = tables
    return head | {
        "engine": run.engine,
        "version": run.engine_version,
        "base": run.base,
        "transactions": {name: _transaction(done) for name, done in run.transactions.items()},
        "versions": versions,
        "unread": sorted(run.unread),
    }


def _transaction(done):
    found = {}
    for field in fields(TransactionRun):
        value = getattr(done, field.name)
        if field.name == "message" or (field.name in DEFAULTS and value == DEFAULTS[field.name]):
            continue
        match field.name:
            case "rows" | "emitted":
                value = _rows(value)
            case "waits":
                value = [[wait.step, *wait.behind] for wait in value]
            case "unsaid":
                value = sorted(value)
        found[field.name] = value
    return found


def _rows(rows):
    return [[_value(value) for value in row] for row in rows]


def _value(value):
    for mark, kind in TYPES.items():
        if isinstance(value, kind):
            return {mark: str(value)}
    return value


def _from_json(line):
    head = (line["litmus"], line["protocol"], line["digest"])
    if "run" in line:
        return ObservedRun(*head, None)
    versions, tables = [], {}
    for changed in line["versions"]:
        tables = tables | {
            name: None if rows is None else _read_rows(rows) for name, rows in changed.items()
        }
        tables = {name: rows for name, rows in tables.items() if rows is not None}
        versions.append(tables)
    run = Run(
        litmus=head[0],
        engine=line["engine"],
        engine_version=line["version"],
        protocol=head[1],
        base=line["base"],
        transactions={name: _read_transaction(done) for name, done in line["transactions"].items()},
        versions=tuple(versions),
        unread=frozenset(line["unread"]),
    )
    return ObservedRun(*head, run)


def _read_transaction(done):
    found = {}
    for key, value in done.items():
        match key:
            case "rows" | "emitted":
                found[key] = _read_rows(value)
            case "waits":
                found[key] = tuple(Wait(step, tuple(behind)) for step, *behind in value)
            case "commits":
                found[key] = tuple(value)
            case "unsaid":
                found[key] = frozenset(value)
            case _:
                found[key] = value
    return TransactionRun(**found)


def _read_rows(rows):
    return tuple(tuple(map(_read_value, row)) for row in rows)


def _read_value(value):
    if not isinstance(value, dict):
        return value
    ((mark, text),) = value.items()
    kind = TYPES[mark]
    return kind(text) if kind is Decimal else kind.fromisoformat(text)
