"""What isolationtester prints: each permutation, its steps as they are sent and end, the rows of queries, errors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from isolitmus.model.errors import RecordingError, brief, near
from isolitmus.model.isolation_spec import Happening, Permutation, Printed

if TYPE_CHECKING:
    from isolitmus.model.isolation_spec import IsolationSpec

__all__ = ["read_pg_output"]

BEGINNING = re.compile(r"Parsed test spec with ([0-9]+) sessions?")
PERMUTATION = "starting permutation:"
ENDED = re.compile(r"step (\S+): <\.\.\. completed>")
SENT = re.compile(r"step (\S+):(?: |$)")
WAITING = " <waiting ...>"
RULE = re.compile(r"-*(\+-*)*")
COUNT = re.compile(r"\(([0-9]+) rows?\)")
IDLE = re.compile(r"\S+: (NOTICE|WARNING):  .*")


def read_pg_output(text: str, file: str, spec: IsolationSpec) -> tuple[Permutation, ...]:
    r"""The permutations that a text reports; RecordingError for a text that is not of this spec. A line in a
    permutation of which nobody knows what it says is that permutation's ``problem``.

    >>> from isolitmus.specs.histories.pg_isolation import read_pg_spec
    >>> spec = read_pg_spec("session a\nstep r { SELECT 1; }", "h.spec")
    >>> said = "Parsed test spec with 1 sessions\n\nstarting permutation: r\nstep r: SELECT 1;\n?\n-\n1\n(1 row)\n"
    >>> read_pg_output(said, "h.out", spec)[0].happenings
    (Happening(step='r', sent=True, ended=True, printed=(Printed(rows=(('1',),)),), error=''),)
    """
    lines = text.split("\n")
    first = BEGINNING.fullmatch(lines[0])
    if first is None or int(first[1]) != len(spec.sessions):
        raise RecordingError(
            f"{file}:1: '{brief(lines[0], 60)}' stands where 'Parsed test spec with {len(spec.sessions)} sessions'"
            f" would be right, as {spec.file} has them"
        )
    starts = [n for n, line in enumerate(lines) if line.startswith(PERMUTATION)]
    if not starts:
        raise RecordingError(
            f"{file}:1: it reports no permutation; '{PERMUTATION.strip()} …' begins one"
        )
    found = []
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(lines)], strict=True), 1):
        steps = tuple(lines[start].removeprefix(PERMUTATION).split())
        for name in steps:
            if name not in spec.steps:
                raise RecordingError(
                    f"{file}:{start + 1}: there is no step '{name}' in {spec.file}{near(name, spec.steps)}"
                )
        found.append(_Report(spec, file, lines[:end], start + 1).permutation(number, steps))
    return tuple(found)


class _Report:
    """The lines of one permutation, and where in them the reader is."""

    def __init__(self, spec: IsolationSpec, file: str, lines: list[str], at: int) -> None:
        self.spec, self.file, self.lines, self.at = spec, file, lines, at

    def permutation(self, number: int, steps: tuple[str, ...]) -> Permutation:
        happenings: list[Happening] = []
        setups: tuple[Printed, ...] = ()
        problem = ""
        try:
            setups, _ = self._results()
            while self.at < len(self.lines):
                happenings.append(self._happening())
        except ValueError as unread:
            line = brief(self.lines[self.at], 60) if self.at < len(self.lines) else "the end"
            problem = f"{self.file}:{self.at + 1}: '{line}' stands where {unread} would be right"
        return Permutation(number, steps, setups, tuple(happenings), problem)

    def _happening(self) -> Happening:
        line = self.lines[self.at]
        if found := ENDED.fullmatch(line):
            self.at += 1
            return Happening(found[1], False, True, *self._results())
        found = SENT.match(line)
        if found is None or found[1] not in self.spec.steps:
            raise ValueError("a step")
        name = found[1]
        words = self.spec.steps[name].sql.text.split()
        said: list[str] = []
        start, line = self.at, line.removeprefix(found[0])
        while True:
            said += line.removesuffix(WAITING).split()
            if said == words:
                break
            self.at += 1
            if said != words[: len(said)] or self.at == len(self.lines):
                self.at = start
                raise ValueError(f"the SQL of the step {name}")
            line = self.lines[self.at]
        self.at += 1
        if self.lines[self.at : self.at + 1] == [WAITING.strip()]:
            line = WAITING
            self.at += 1
        return Happening(name, True, not line.endswith(WAITING), *self._results())

    def _results(self) -> tuple[tuple[Printed, ...], str]:
        """What is printed up to the next step, and the error."""
        printed: list[Printed] = []
        error = ""
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line.startswith("step "):
                break
            if line.startswith("ERROR:  "):
                error = line.removeprefix("ERROR:  ")
                self.at += 1
            elif not line or IDLE.fullmatch(line):
                self.at += 1
            else:
                printed.append(self._table())
        return tuple(printed), error

    def _table(self) -> Printed:
        head, rule = self.lines[self.at], "".join(self.lines[self.at + 1 : self.at + 2])
        if not (RULE.fullmatch(rule) and rule):
            raise ValueError("the rows of a query, or an error,")
        columns = rule.count("+") + 1
        if head.count("|") + 1 != columns:
            raise ValueError(f"the names of {columns} columns")
        self.at += 2
        rows: list[tuple[str, ...]] = []
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if count := COUNT.fullmatch(line):
                if int(count[1]) != len(rows):
                    raise ValueError(f"({len(rows)} rows)")
                self.at += 1
                return Printed(tuple(rows))
            cells = tuple(cell.strip() for cell in line.split("|"))
            if len(cells) != columns:
                raise ValueError(f"a row of {columns} columns")
            rows.append(cells)
            self.at += 1
        raise ValueError("the number of rows")
