"""Keys of questions: digests of everything that an answer depends on.

An answer about statements does not change if tables and jobs are renamed, so a key numbers them in
the order in which they occur. Literals keep their values. A part of an unknown class has no key,
and its question is not cached.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from hashlib import sha256
from typing import TYPE_CHECKING

from isolitmus.jobs.questions.null_parameters import with_not_null
from isolitmus.jobs.questions.table_alterations import table_alterations
from isolitmus.jobs.workload import TEXTS
from isolitmus.model.sql import expression as ex
from isolitmus.specs.sql.parameters import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from isolitmus.jobs.workload import Job, JobStatement, Workload
    from isolitmus.model.spec import Spec


class _NoKeyError(Exception):
    """Part whose class has no encoding."""


class QuestionKeys:
    """Keys of the questions about one workload under one protocol."""

    def __init__(
        self, workload: Workload, protocol: Spec, tables: Mapping[str, frozenset[str]]
    ) -> None:
        self.workload = workload
        self.tables = tables
        """Tables of each statement, by its name."""
        self._alterations = table_alterations(workload)
        self._jobs = with_not_null(workload).jobs
        self._known: dict[tuple[str, tuple[str, ...]], str] = {}
        try:
            parts = (
                protocol.name, protocol.text, protocol.axioms, protocol.definitions,
                protocol.silences, protocol.binders, protocol.labels, protocol.clauses,
                protocol.format, protocol.runtime,
            )  # fmt: skip
            self._common: str | None = _encoded(parts, {})
        except _NoKeyError:
            self._common = None

    def pair(self, loser: JobStatement, winner: JobStatement) -> str | None:
        """Return the key of a question about two statements; None if it has none."""
        return self._key("pair", (loser, winner), (loser is winner,))

    def condition(self, job: Job) -> str | None:
        """Return the key of the question whether a job ever runs; None if it has none."""
        types = [one.types for one in job.statements]
        try:
            text = _encoded((job.parameters, job.where, types, self.workload.shared), {})
        except _NoKeyError:
            return None
        return sha256(f"condition\n{text}".encode("utf-8", "backslashreplace")).hexdigest()[:32]

    def component(self, statements: Sequence[JobStatement], promise: str) -> str | None:
        """Return the key of a question about all runs of some statements; None if it has none."""
        jobs = [one.job for one in statements]
        numbers = {name: k for k, name in enumerate(dict.fromkeys(jobs))}
        apart = sorted(
            (numbers[a], numbers[b])
            for a, b in self.workload.apart
            if a in numbers and b in numbers
        )
        return self._key("component", statements, (promise, [numbers[job] for job in jobs], apart))

    def _key(
        self, kind: str, statements: Sequence[JobStatement], more: tuple[object, ...]
    ) -> str | None:
        """Return the digest of a question, with tables numbered in order of occurrence."""
        names: dict[str, None] = {}
        for one in statements:
            target = getattr(one.statement, "target", None)
            names |= {} if target is None else {target: None}
            names |= dict.fromkeys(sorted(self.tables[one.name]))
        order = tuple(names)
        numbers = {name.lower(): f"table {k}" for k, name in enumerate(order)}
        if self._common is None:
            return None
        try:
            parts = [self._statement(one, order, numbers) for one in statements]
            tables, unique = self.workload.tables, self.workload.keys
            altered = self._alterations
            schemas = [
                _encoded((tables[name], unique.get(name, ()), altered.get(name, ())), numbers)
                for name in order
            ]
            work = self.workload
            shared = _encoded((work.shared, work.distinct, work.not_null), {})
        except _NoKeyError:
            return None
        text = "\n".join((kind, repr(more), self._common, *parts, *schemas, shared))
        return sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:32]

    def _statement(
        self, one: JobStatement, order: tuple[str, ...], numbers: Mapping[str, str]
    ) -> str:
        """Return the encoding of a statement with its parameters, condition and session."""
        key = one.name, tuple(name for name in order if name in self.tables[one.name])
        at = tuple(numbers[name.lower()] for name in key[1])
        known = self._known.get((one.name, (*key[1], *at)))
        if known is None:
            job = self.workload.jobs[one.job]
            known = _encoded(
                (
                    one.statement, _renamed(one_line(one.sql), numbers), one.types, one.let,
                    dict(sorted(one.conf.items())), one.reads, job.parameters, job.where,
                    ("not null", self._jobs[one.job].not_null),
                ),
                numbers,
            )  # fmt: skip
            self._known[one.name, (*key[1], *at)] = known
        return known


def _renamed(text: str, numbers: Mapping[str, str]) -> str:
    """Return a text with the numbers of its tables in place of their names."""
    if not numbers:
        return text
    pattern = "|".join(re.escape(name) for name in sorted(numbers, key=len, reverse=True))
    return re.sub(
        rf"(?<!\w)(?:{pattern})(?!\w)",
        lambda found: numbers[found[0].lower()],
        text,
        flags=re.IGNORECASE,
    )


def _encoded(part: object, numbers: Mapping[str, str]) -> str:
    """Return an encoding that differs for parts that differ in more than the names of tables."""
    match part:
        case ex.Const(value, type_):
            return f"Const({value!r}: {type_!r})"
        case ex.In(operand, values):
            return f"In({_encoded(operand, numbers)}, {[*values]!r})"
        case str():
            number = numbers.get(part.lower())
            return repr(part) if number is None else f"<{number}>"
        case None | bool() | int() | float() | Decimal() | date() | Enum():
            return f"{type(part).__name__}:{part!r}"
        case Mapping():
            return f"{{{_joined((x for item in part.items() for x in item), numbers)}}}"
        case tuple() | list():
            name = "" if type(part) in (tuple, list) else type(part).__name__
            return f"{name}({_joined(part, numbers)})"
        case frozenset() | set():
            return f"set({','.join(sorted(_encoded(one, numbers) for one in part))})"
    if is_dataclass(part) and not isinstance(part, type):
        inner = (getattr(part, f.name) for f in fields(part) if f.name not in TEXTS)
        return f"{type(part).__name__}({_joined(inner, numbers)})"
    raise _NoKeyError(type(part).__name__)


def _joined(parts: Iterable[object], numbers: Mapping[str, str]) -> str:
    return ",".join(_encoded(one, numbers) for one in parts)
