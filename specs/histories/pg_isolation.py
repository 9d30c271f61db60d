"""PostgreSQL's isolation tests: ``NAME.spec``, and what isolationtester printed of it, ``NAME.out``.

The layout of a spec is that of src/test/isolation/README in PostgreSQL's sources. Which permutations there were is read
from what was printed: a spec that lists none has all of them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.model.errors import RecordingError, brief
from isolitmus.model.isolation_spec import IsolationSpec, SpecSession, SpecStep, SqlBlock
from isolitmus.specs.disk.input_files import is_file, read_text
from isolitmus.specs.histories.pg_output import read_pg_output

if TYPE_CHECKING:
    from pathlib import Path

    from isolitmus.model.isolation_spec import Permutation

__all__ = ["pg_test", "read_pg_spec"]

TOKEN = re.compile(
    r'(?P<blank>\s+|\#[^\n]*)|\{(?P<sql>[^}]*)\}|(?P<word>[A-Za-z0-9_]+)|"(?P<quoted>(?:[^"\n]|"")*)"|(?P<sign>[(),*])'
)
PARTS = ("setup", "teardown", "session", "step", "permutation")


def pg_test(path: Path) -> tuple[IsolationSpec, tuple[Permutation, ...]]:
    """A spec with the permutations that its expected output reports; that is beside it or in ``../expected``.

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
            f"{path}: what PostgreSQL printed is neither in {beside} nor in {output}; one of these files would be right"
        )
    return spec, read_pg_output(read_text(output, RecordingError), str(output), spec)


def read_pg_spec(text: str, file: str) -> IsolationSpec:
    r"""The sessions of a spec; RecordingError says which line of the file does not read, and why.

    >>> spec = read_pg_spec("setup { CREATE TABLE t (i int); }\nsession a\nstep r { SELECT i FROM t; }", "h.spec")
    >>> spec.steps["r"].sql
    SqlBlock(text='SELECT i FROM t;', line=3)
    >>> read_pg_spec("session a\nstep r SELECT", "h.spec")
    Traceback (most recent call last):
    isolitmus.model.errors.RecordingError: h.spec:2: 'SELECT' stands where SQL between braces would be right
    """
    return _SpecReader(text, file).spec()


class _Token(NamedTuple):
    """A token by its kind (``sql``, ``word``, ``quoted``, ``sign``), its text, and its line."""

    kind: str
    text: str
    line: int


class _SpecReader:
    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.tokens = self._tokens(text)
        self.at = 0

    def _tokens(self, text: str) -> list[_Token]:
        found: list[_Token] = []
        at, line = 0, 1
        while at < len(text):
            match = TOKEN.match(text, at)
            if match is None:
                rest = brief(text[at:].split("\n", 1)[0], 40)
                raise RecordingError(
                    f"{self.file}:{line}: '{rest}' is none of a name, a comment and SQL between braces"
                )
            kind, inside = str(match.lastgroup), match[match.lastgroup or 0]
            if kind != "blank":
                found.append(_Token(kind, inside.replace('""', '"'), line))
            line += match[0].count("\n")
            at = match.end()
        return found

    def spec(self) -> IsolationSpec:
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
        name = self._name("the name of a session")
        setup: SqlBlock | None = None
        steps: list[SpecStep] = []
        while (part := self._part()) and part.text in {"setup", "step", "teardown"}:
            if part.text == "step":
                word = self._name("the name of a step")
                if word.text in names:
                    raise RecordingError(
                        f"{self.file}:{word.line}: '{word.text}' is the name of another step, too; one for each would"
                        " be right"
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
        """What begins the next part, None at the end."""
        token = self._next()
        if token is not None and (token.kind, token.text in PARTS) != ("word", True):
            raise self._wrong(token, ", ".join(PARTS[:-1]) + " or permutation")
        return token

    def _name(self, what: str) -> _Token:
        token = self._next()
        if token is None or token.kind not in {"word", "quoted"}:
            raise self._wrong(token, what)
        return token

    def _sql(self) -> SqlBlock:
        token = self._next()
        if token is None or token.kind != "sql":
            raise self._wrong(token, "SQL between braces")
        start = token.text[: len(token.text) - len(token.text.lstrip())]
        return SqlBlock(token.text.strip(), token.line + start.count("\n"))

    def _wrong(self, token: _Token | None, right: str) -> RecordingError:
        if token is None:
            return RecordingError(f"{self.file}: it ends where {right} would be right")
        return RecordingError(
            f"{self.file}:{token.line}: '{brief(token.text, 40)}' stands where {right} would be right"
        )
