"""Conflicts of statements while a function is recorded.

A function may catch the exception of a commit that lost, and then do something else. So a statement
with a handler around it aborts on paths of its own: the exception is raised in its place, and the
recorder sees what the handler does. Where no handler is around it, the path would only end.

On a path, a statement aborts at its first or second attempt, once or each time (`MOST_CONFLICTS`
times). The exceptions of a path have one class: each that the program names, and another one.
"""

from __future__ import annotations

import dis
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from isolitmus.jobs.readers.recorded_functions import MOST_CONFLICTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from isolitmus.jobs.recording.path_choices import PathChoices

MOST_ATTEMPTS = 2
"""Number of commits of one statement on a path after which it does not abort."""
MESSAGES = {
    "ConcurrentAppendException": (
        "DELTA_CONCURRENT_APPEND.WITHOUT_HINT",
        "Transaction conflict detected. Files were added to the table by a concurrent update.",
    ),
    "ConcurrentDeleteReadException": (
        "DELTA_CONCURRENT_DELETE_READ.WITHOUT_HINT",
        "Transaction conflict detected. A file that it read was deleted by a concurrent update.",
    ),
    "ConcurrentDeleteDeleteException": (
        "DELTA_CONCURRENT_DELETE_DELETE.WITHOUT_HINT",
        "Transaction conflict detected. A file that it deletes was deleted by a concurrent update.",
    ),
    "MetadataChangedException": (
        "DELTA_METADATA_CHANGED",
        "The metadata of the Delta table has been changed by a concurrent update.",
    ),
    "ProtocolChangedException": (
        "DELTA_PROTOCOL_CHANGED",
        "The protocol version of the Delta table has been changed by a concurrent update.",
    ),
    "ConcurrentTransactionException": (
        "DELTA_CONCURRENT_TRANSACTION",
        "This error occurs when multiple streaming queries are using the same checkpoint.",
    ),
    "ConcurrentWriteException": (
        "DELTA_CONCURRENT_WRITE",
        "A concurrent transaction has written new data since the current transaction read it.",
    ),
}
"""Condition and message of each exception of a conflict, by its class in ``delta.exceptions``."""
CLASS_IN_TEXT = re.compile(r"""['"][^'"\n]*(?:Concurrent|Exception)""")
"""Text of a program that a message with the class of its exception may contain."""
MARK = "_isolitmus_conflict"
"""Attribute of the exceptions that are raised here."""
OF_SPARK = ("isolitmus", "pyspark", "py4j", "delta")
"""Packages whose frames handle no conflict."""


@dataclass(slots=True)
class Conflicts:
    """Conflicts of one run of a function.

    Parameters
    ----------
    choices : PathChoices
        Outcomes of the run.
    program : str
        Text of the program, which names classes of exceptions.
    """

    choices: PathChoices
    program: str = ""
    base: Any = None
    """Frame that calls the function."""
    _class: str = ""
    """Class of the exceptions of this path."""
    _aborted: Counter[Any] = field(default_factory=Counter)
    _committed: Counter[Any] = field(default_factory=Counter)

    @property
    def aborted(self) -> bool:
        """Whether a statement has aborted."""
        return bool(self._aborted)

    def next_abort(self, statement: object) -> Exception | None:
        """Return the exception with which a statement aborts on this path, or None if it commits.

        Parameters
        ----------
        statement : hashable
            Statement of the program: its place and text.
        """
        times = self._aborted[statement]
        settled = self._committed[statement] >= (1 if times else MOST_ATTEMPTS)
        if settled or times >= MOST_CONFLICTS or not (times or self._is_handled()):
            return None
        if times < 2 and not self.choices.take(False):  # once, or each time
            self._committed[statement] += 1
            return None
        self._aborted[statement] += 1
        if not self._class:
            first, *others = self._classes()
            self._class = next((one for one in others if self.choices.take(False)), first)
        return self._exception(self._class)

    def _classes(self) -> Iterator[str]:
        """Yield a class that the program does not name, if there is one, and those that it names,
        the most frequent first.
        """
        named = [
            name
            for name, (condition, _) in MESSAGES.items()
            if name in self.program or condition.partition(".")[0] in self.program
        ]
        yield from [name for name in MESSAGES if name not in named][:1]
        yield from named

    def _is_handled(self) -> bool:
        """Return whether a handler of the program, or of a library, is around the statement."""
        frame = sys._getframe()  # noqa: SLF001 - the frames of the program
        found: Any = frame
        while found is not None and found is not self.base:
            if found.f_code.co_name == "call_batch" and _package(found) == "isolitmus":
                return False  # a batch that fails ends its query
            if _package(found) not in OF_SPARK and _is_protected(found.f_code, found.f_lasti):
                return True
            found = found.f_back
        return False

    def _exception(self, name: str) -> Exception:
        """Return an exception as PySpark raises it for a conflict."""
        from delta.exceptions import captured

        condition, message = MESSAGES[name]
        take = self.choices.take

        def get_condition(_: Any) -> str | None:
            # None in PySpark's classic client, the condition in Spark Connect
            if not take(False):
                return None
            return condition.partition(".")[0] if take(False) else condition

        text = f"[{condition}] {message}"
        told = f"{text}\n\nJVM stacktrace:\nio.delta.exceptions.{name}: {text}"
        quoted = CLASS_IN_TEXT.search(self.program) is not None

        def get_text(_: Any) -> str:
            # with the class only if spark.sql.pyspark.jvmStacktrace.enabled, and in Spark Connect
            return told if quoted and take(False) else text

        base = getattr(captured, name)
        own = type(name, (base,), {
            "__module__": base.__module__, "getCondition": get_condition, "__str__": get_text,
            MARK: True,
        })  # fmt: skip
        made: Exception = own(text, f"io.delta.exceptions.{name}: {text}")
        return made


def _package(frame: Any) -> str:
    """Return the package of the code of a frame."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _is_protected(code: Any, place: int) -> bool:
    """Return whether an instruction is in a try or a with.

    An entry of the table of exceptions may also only leave a handler. It then raises again, at an
    instruction that another entry may protect.

    Examples
    --------
    >>> def f():
    ...     return 1
    >>> _is_protected(f.__code__, 2)
    False
    """
    parse: Callable[[Any], Any] = dis._parse_exception_table  # type: ignore[attr-defined]  # noqa: SLF001
    entries, seen = parse(code), set()
    while place not in seen:
        seen.add(place)
        entry = next((one for one in entries if one.start <= place < one.end), None)
        if entry is None:
            return False
        names = [dis.opname[one] for one in code.co_code[entry.target :: 2]]
        if names[0] == "PUSH_EXC_INFO" or "RERAISE" not in names:
            return True
        place = entry.target + 2 * names.index("RERAISE")
    return True


def caused_by_conflict(error: BaseException) -> bool:
    """Return whether a conflict ended the function: its exception, or one that a handler raises."""
    chain: BaseException | None = error
    seen: set[int] = set()
    while chain is not None and id(chain) not in seen:
        seen.add(id(chain))
        if hasattr(chain, MARK):
            return chain is error or _is_raised(error)
        chain = chain.__cause__ or chain.__context__
    return False


def _is_raised(error: BaseException) -> bool:
    """Return whether a statement of the program raised an exception, not a function of Python."""
    if isinstance(error, SystemExit):
        return True
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or _package(trace.tb_frame) in OF_SPARK:
        return False
    operation = trace.tb_frame.f_code.co_code[trace.tb_lasti]
    return dis.opname[operation] in {"RAISE_VARARGS", "RERAISE"}
