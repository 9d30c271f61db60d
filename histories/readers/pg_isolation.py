"""Reader of PostgreSQL's isolation tests: ``NAME.spec``, and isolationtester's output ``NAME.out``.

The layout of a spec is that of src/test/isolation/README in PostgreSQL's sources. The permutations
are taken from the output: a spec that lists none has all of them. The output has, for each
permutation, its steps when they are sent and when they end, rows of queries, and errors.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.model.errors import RecordingError, brief, near
from isolitmus.specs.disk.input_files import is_file, read_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class SqlBlock:
    """SQL between braces, and the line of its file on which it begins."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class SpecStep:
    """Step: its name, the index of its session, and its SQL."""

    name: str
    session: int
    sql: SqlBlock


@dataclass(frozen=True, slots=True)
class SpecSession:
    """Session: its setup before each permutation, and its steps."""

    name: str
    setup: SqlBlock | None
    steps: tuple[SpecStep, ...]


@dataclass(frozen=True)
class IsolationSpec:
    """Isolation test without its permutations."""

    file: str
    """Name of the file in messages."""
    setup: tuple[SqlBlock, ...]
    """Setup of the tables, run before each permutation."""
    sessions: tuple[SpecSession, ...]
    """Sessions in the order of the file."""

    @cached_property
    def steps(self) -> Mapping[str, SpecStep]:
        """Steps of all sessions, by name."""
        return {step.name: step for session in self.sessions for step in session.steps}


@dataclass(frozen=True, slots=True)
class Printed:
    """Rows that a query printed, as strings; NULL is the empty string."""

    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Happening:
    """Reported event of a step: it was sent, it ended, or both at once."""

    step: str
    """Name of the step."""
    sent: bool
    """True if the step was sent now."""
    ended: bool
    """True if the step ended now; otherwise it waits."""
    printed: tuple[Printed, ...]
    """Results of its queries."""
    error: str
    """Error message; empty if there was none."""


@dataclass(frozen=True, slots=True)
class Permutation:
    """One order of the steps, and its results."""

    number: int
    """Number from 1, in the order of the file."""
    steps: tuple[str, ...]
    """Names of the steps, in the order in which they are sent."""
    printed: tuple[Printed, ...]
    """Results of the queries in the setups."""
    happenings: tuple[Happening, ...]
    """Reported events, in order."""
    problem: str = ""
    """Line of the report that is not understood; empty if there is none."""


BEGINNING = re.compile(r"Parsed test spec with ([0-9]+) sessions?")
PERMUTATION = "starting permutation:"
ENDED = re.compile(r"step (\S+): <\.\.\. completed>")
SENT = re.compile(r"step (\S+):(?: |$)")
WAITING = " <waiting ...>"
RULE = re.compile(r"-*(\+-*)*")
COUNT = re.compile(r"\(([0-9]+) rows?\)")
IDLE = re.compile(r"\S+: (NOTICE|WARNING):  .*")


def read_pg_output(text: str, file: str, spec: IsolationSpec) -> tuple[Permutation, ...]:
    r"""Return the permutations in an output; RecordingError if it does not belong to the spec.

    A line of a permutation that is not understood becomes that permutation's ``problem``.

    Examples
    --------
    >>> from isolitmus.histories.readers.pg_isolation import read_pg_spec
    >>> spec = read_pg_spec("session a\nstep r { SELECT 1; }", "h.spec")
    >>> said = (
    ...     "Parsed test spec with 1 sessions\n\nstarting permutation: r\n"
    ...     "step r: SELECT 1;\n?\n-\n1\n(1 row)\n"
    ... )
    >>> read_pg_output(said, "h.out", spec)[0].happenings
    (Happening(step='r', sent=True, ended=True, printed=(Printed(rows=(('1',),)),), error=''),)
    """
    lines = text.split("\n")
    first = BEGINNING.fullmatch(lines[0])
    if first is None or int(first[1]) != len(spec.sessions):
        raise RecordingError(
            f"{file}:1: '{brief(lines[0], 60)}' stands where 'Parsed test spec with"
            f" {len(spec.sessions)} sessions' would be right, as {spec.file} has them"
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
                    f"{file}:{start + 1}: there is no step '{name}' in"
                    f" {spec.file}{near(name, spec.steps)}"
                )
        found.append(_Report(spec, file, lines[:end], start + 1).permutation(number, steps))
    return tuple(found)


class _Report:
    """Lines of one permutation, with the position of the parser."""

    def __init__(self, spec: IsolationSpec, file: str, lines: list[str], at: int) -> None:
        self.spec, self.file, self.lines, self.at = spec, file, lines, at

    def permutation(self, number: int, steps: tuple[str, ...]) -> Permutation:
        """Return the permutation up to the first unreadable line, with the problem there."""
        happenings: list[Happening] = []
        setups: tuple[Printed, ...] = ()
        problem = ""
        try:
            setups, _ = self._results()
            while self.at < len(self.lines):
                happenings.append(self._happening())
        except ValueError as unread:
            line = brief(self.lines[self.at], 60) if self.at < len(self.lines) else "the end"
            problem = f"{self.file}:{self.at + 1}: expected {unread}, found '{line}'"
        return Permutation(number, steps, setups, tuple(happenings), problem)

    def _happening(self) -> Happening:
        """Return the next start or completion of a step with its results, or raise ValueError."""
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
        """Return the rows printed up to the next step, and the error."""
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
        """Return the rows of a printed query result, or raise ValueError with the expected part."""
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


TOKEN = re.compile(
    r"(?P<blank>\s+|\#[^\n]*)|\{(?P<sql>[^}]*)\}|(?P<word>[A-Za-z0-9_]+)"
    r'|"(?P<quoted>(?:[^"\n]|"")*)"|(?P<sign>[(),*])'
)
PARTS = ("setup", "teardown", "session", "step", "permutation")


def pg_test(path: Path) -> tuple[IsolationSpec, tuple[Permutation, ...]]:
    """Return a spec with the permutations in its expected output, which is beside it or in
    ``../expected``.

    Examples
    --------
    >>> from pathlib import Path
    >>> pg_test(Path("nowhere.spec"))
    Traceback (most recent call last):
    isolitmus.model.errors.RecordingError: cannot read nowhere.spec: No such file or directory
    """
    spec = read_pg_spec(read_text(path, RecordingError), str(path))
    name = path.with_suffix(".out").name
    beside = path.with_name(name)
    output = beside if is_file(beside) else path.parent.parent / "expected" / name
    if not is_file(output):
        raise RecordingError(
            f"{path}: what PostgreSQL printed is neither in {beside} nor in {output}; one of these"
            " files would be right"
        )
    return spec, read_pg_output(read_text(output, RecordingError), str(output), spec)


def read_pg_spec(text: str, file: str) -> IsolationSpec:
    r"""Return the spec in a text; RecordingError with the line and the reason if it does not parse.

    Examples
    --------
    >>> text = "setup { CREATE TABLE t (i int); }\nsession a\nstep r { SELECT i FROM t; }"
    >>> read_pg_spec(text, "h.spec").steps["r"].sql
    SqlBlock(text='SELECT i FROM t;', line=3)
    >>> read_pg_spec("session a\nstep r SELECT", "h.spec")
    Traceback (most recent call last):
    isolitmus.model.errors.RecordingError: h.spec:2: expected SQL between braces, found 'SELECT'
    """
    return _SpecReader(text, file).spec()


class _Token(NamedTuple):
    """Token: its kind (``sql``, ``word``, ``quoted``, ``sign``), its text, and its line."""

    kind: str
    text: str
    line: int


class _SpecReader:
    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.tokens = self._tokens(text)
        self.at = 0

    def _tokens(self, text: str) -> list[_Token]:
        """Return the tokens of a spec with their lines, without blanks and comments."""
        found: list[_Token] = []
        at, line = 0, 1
        while at < len(text):
            match = TOKEN.match(text, at)
            if match is None:
                rest = brief(text[at:].split("\n", 1)[0], 40)
                raise RecordingError(
                    f"{self.file}:{line}: '{rest}' is not one of a name, a comment and SQL between"
                    " braces"
                )
            kind, inside = str(match.lastgroup), match[match.lastgroup or 0]
            if kind != "blank":
                found.append(_Token(kind, inside.replace('""', '"'), line))
            line += match[0].count("\n")
            at = match.end()
        return found

    def spec(self) -> IsolationSpec:
        """Return the setups and sessions of a spec; teardowns are skipped."""
        setups: list[SqlBlock] = []
        sessions: list[SpecSession] = []
        names: set[str] = set()
        while (part := self._part()) and part.text != "permutation":
            match part.text:
                case "setup":
                    setups.append(self._sql())
                case "teardown":
                    self._sql()
                case "session":
                    sessions.append(self._session(len(sessions), names))
                case _:
                    raise self._wrong(part, "setup, teardown, session or permutation")
        if not sessions:
            raise RecordingError(
                f"{self.file}: it has no session; one, with its steps, would be right"
            )
        return IsolationSpec(self.file, tuple(setups), tuple(sessions))

    def _session(self, number: int, names: set[str]) -> SpecSession:
        """Return a session with its setup and steps; refuse a repeated step name."""
        name = self._name("the name of a session")
        setup: SqlBlock | None = None
        steps: list[SpecStep] = []
        while (part := self._part()) and part.text in {"setup", "step", "teardown"}:
            if part.text == "step":
                word = self._name("the name of a step")
                if word.text in names:
                    raise RecordingError(
                        f"{self.file}:{word.line}: '{word.text}' is the name of another step, too;"
                        " one for each would be right"
                    )
                names.add(word.text)
                steps.append(SpecStep(word.text, number, self._sql()))
            elif part.text == "setup" and setup is None:
                setup = self._sql()
            else:
                self._sql()
        if part is not None:
            self.at -= 1
        return SpecSession(name.text, setup, tuple(steps))

    def _next(self) -> _Token | None:
        self.at += 1
        return self.tokens[self.at - 1] if self.at <= len(self.tokens) else None

    def _part(self) -> _Token | None:
        """Return the word that begins the next part, or None at the end."""
        token = self._next()
        if token is not None and (token.kind, token.text in PARTS) != ("word", True):
            raise self._wrong(token, ", ".join(PARTS[:-1]) + " or permutation")
        return token

    def _name(self, what: str) -> _Token:
        """Return the next token if it is a name, or raise RecordingError."""
        token = self._next()
        if token is None or token.kind not in {"word", "quoted"}:
            raise self._wrong(token, what)
        return token

    def _sql(self) -> SqlBlock:
        """Return the next SQL block, stripped, with the line where its text starts."""
        token = self._next()
        if token is None or token.kind != "sql":
            raise self._wrong(token, "SQL between braces")
        start = token.text[: len(token.text) - len(token.text.lstrip())]
        return SqlBlock(token.text.strip(), token.line + start.count("\n"))

    def _wrong(self, token: _Token | None, right: str) -> RecordingError:
        """Return the error for an unexpected token, or for the end of the text if it is None."""
        if token is None:
            return RecordingError(f"{self.file}: it ends where {right} would be right")
        return RecordingError(
            f"{self.file}:{token.line}: expected {right}, found '{brief(token.text, 40)}'"
        )
