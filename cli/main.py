"""The shell: which verbs there are, how each is called and ends.

The shell: which verbs there are, and how each ends. A verb is read when it is asked for.

What typer finds wrong with the words on a command line, in the form of all other errors.

Values of a command line that stay as they were given, because they are of their kind already.

Typer asks pydantic of each option whether a text is a text, and pydantic's start takes longer than many a verb.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from contextlib import suppress
from importlib import import_module
from inspect import getdoc
from io import TextIOWrapper
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, get_type_hints

try:
    import typer
    from typer.core import TyperCommand, TyperGroup
    from typer.main import get_command
except KeyboardInterrupt:  # it takes most of a start
    sys.exit(130)

from isolitmus.model.errors import Ended, IsolitmusError, near

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

__all__ = ["USAGE", "VERBS", "Group", "Verb", "app", "main", "usage_error"]

USAGE: Any = typer.BadParameter.__mro__[2]
"""The root of typer's own errors, which it has from click and does not export."""


def usage_error(error: Any) -> IsolitmusError:
    """The error as one sentence, with what would have been right or where that stands.

    >>> print(usage_error(typer.BadParameter("3 is not odd.")))
    invalid value: 3 is not odd; see isolitmus --help
    """
    context = error.ctx
    text = error.format_message().rstrip(".")
    if context is not None and text.startswith("No such option"):
        named = [name for parameter in context.command.params for name in parameter.opts]
        known = [name for name in (*named, "--help") if name.startswith("-")]
        text = f"no option '{error.option_name}'{near(error.option_name, known)}"
    elif context is not None and text.startswith("No such command"):
        name = text.partition("'")[2].partition("'")[0]
        text = f"no command '{name}'{near(name, context.command.list_commands(context))}"
    command = "isolitmus" if context is None else context.command_path
    return IsolitmusError(f"{text[0].lower()}{text[1:]}; see {command} --help")


VERBS = {
    "demo": "Find the delete/insert reorder and the hole of WriteSerializable, and replay both on Delta.",
    "show": "What is in the catalogue: levels, protocols, litmus tests, scopes, matrices, engines, exceptions.",
    "separate": "The smallest history that A admits and B forbids.",
    "compare": "Which levels imply which, with the smallest histories between neighbours; where your own one stands.",
    "sweep": "Count every candidate of a scope: what each protocol admits, and what levels say of that.",
    "report": "A page of what a sweep on Spark has kept: counts, plots, needless aborts, the smallest of each kind.",
    "run": "Carry litmus tests out, and compare with what they expect and with the model.",
    "export": "Write litmus tests as Python: for pytest, or as a script that needs PySpark and Delta alone.",
    "install": "Install what an engine needs of its own, or what makes it start faster.",
    "explore": "Random litmus tests on real Delta, compared with the model; the smallest that differs.",
    "claims": "What the documents say of isolation, and what runs say of that.",
    "predict": "Which of your own jobs stop which, when, with the smallest example of each.",
    "robust": "Whether your own jobs are safe at a level, however often they run: a proof, or the smallest schedule.",
    "matrix": "Which statements conflict, by who wins, layout and protocol.",
    "explain": "Why Delta refused a commit: by the text of the exception, and by the table's log.",
    "check": "Judge histories: of litmus tests, abstract ones, Delta tables' logs, what other tools recorded.",
    "audit": "What the logs of Delta tables show: reorders, bridges, claims that cannot be true.",
}
"""What each does. A verb is the function of that name in the file of that name: its signature is the command
line's, its docstring says what its exit status means.
"""

TRACEBACK = "ISOLITMUS_TRACEBACK"
"""The variable of the environment that asks for the traceback of an internal error."""
DEFECT = 70
"""The exit status of an internal error, EX_SOFTWARE of sysexits.h."""


TEXTS = (list[str], list[str] | None)


class _Given:
    """A command whose parameters ask typer only where something is to be converted, or is missing."""

    callback: Any

    def get_params(self, context: Any) -> list[Any]:
        kinds = {} if self.callback is None else get_type_hints(self.callback)
        parameters: list[Any] = super().get_params(context)  # type: ignore[misc] # of the class beside it
        for parameter in parameters:
            if "process_value" not in vars(parameter):
                parameter.process_value = _processing(parameter, kinds.get(parameter.name))
        return parameters


def _processing(parameter: Any, kind: Any) -> Callable[[Any, Any], Any]:
    process, called = parameter.process_value, parameter.callback is not None

    def processed(context: Any, value: Any) -> Any:
        if called and value:
            return process(context, value)
        if kind in TEXTS:
            return list(value) if value else process(context, value)
        given = isinstance(value, kind or bool | None)
        return value if given else process(context, value)

    return processed


class Verb(_Given, TyperCommand):
    """A verb."""


class Group(_Given, TyperGroup):
    """What has verbs."""


def _typer(**more: Any) -> typer.Typer:
    return typer.Typer(
        add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, **more
    )


class _Verbs(Group):
    """The verbs as a group that imports one when it is asked for it, none to list them."""

    def list_commands(self, _: Any) -> list[str]:
        return list(VERBS)

    def get_command(self, _: Any, cmd_name: str) -> Any:
        if cmd_name not in VERBS:
            return None
        verb = getattr(import_module(f"isolitmus.cli.{cmd_name}"), cmd_name)
        alone = _typer()
        words = f"{VERBS[cmd_name]}\n\n{getdoc(verb)}"
        alone.command(cmd_name, cls=Verb, help=words)(verb)
        return get_command(alone)

    def format_commands(self, _: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


app = _typer(
    name="isolitmus",
    cls=_Verbs,
    help="What does an isolation level of a lakehouse table really allow?",
    no_args_is_help=True,
)


def _version(*, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"isolitmus {version('isolitmus')}")
        raise typer.Exit


@app.callback()
def _isolitmus(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="The version.")
    ] = False,
) -> None:
    """The options of the shell itself."""


def main() -> None:
    """The entry point: an error is one message on standard error and an exit status (2 bad input,
    3 a limit or something else ended the work, 4 an engine could not be started, 70 a defect of isolitmus), never a
    traceback.
    """
    _open_closed_streams()
    logging.getLogger("py4j").setLevel(
        logging.CRITICAL
    )  # its tracebacks of a Ctrl-C; what matters is raised, too
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal may not have every sign of a picture
    try:
        try:
            status = app(standalone_mode=False)
        finally:
            sys.stdout.flush()
        sys.exit(status)
    except MemoryError:
        _fail(Ended("memory was used up, which ended the work"))
    except IsolitmusError as error:
        _fail(error)
    except USAGE as error:
        if len(sys.argv) == 1:  # its words are then the help
            error.show()
            sys.exit(2)
        _fail(usage_error(error))
    except (KeyboardInterrupt, typer.Abort) as stopped:
        if isinstance(stopped.__cause__, EOFError):  # as Python says it of a file that it compiled
            _fail(
                Ended(
                    f"a file that Python compiled is cut short ({stopped.__cause__}); remove the folders __pycache__ of"
                    " isolitmus and of the packages that it imports, and run it again"
                )
            )
        sys.exit(130)
    except BrokenPipeError:
        _end_for_broken_pipe()
    except SystemExit as ended:  # typer's own answer to a broken pipe is 1
        if isinstance(ended.__context__, BrokenPipeError):
            _end_for_broken_pipe()
        raise
    except OSError as problem:
        from isolitmus.specs.disk.output_files import FULL

        if problem.errno not in FULL:
            _report(problem)
        with suppress(OSError):
            sys.stdout.close()
        _fail(Ended(f"{problem.strerror}, which ended the work"))
    except Exception as defect:  # noqa: BLE001 - whatever nobody foresaw is a defect, and no finding
        _report(defect)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt; in a finalizer, where Python would drop it, a moment later."""
    from isolitmus.model.budget import finalizing

    if not finalizing(frame):
        raise KeyboardInterrupt
    main_thread = threading.main_thread().ident or 0
    threading.Timer(0.05, signal.pthread_kill, (main_thread, number)).start()


def _open_closed_streams() -> None:
    """Open the null device in the place of each standard stream that is closed: a file that is opened later would
    get its number. Ended if that is standard output.
    """
    closed = [name for name in ("stdin", "stdout", "stderr") if getattr(sys, name) is None]
    for name in closed:  # the lowest number that is free is that of the stream
        setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: PTH123, SIM115
    if "stdout" in closed:
        _fail(
            Ended(
                "standard output is closed, and the answer would be lost; redirect it, for example to /dev/null"
            )
        )


def _end_for_broken_pipe() -> NoReturn:
    """End as a program does whose reader is gone: what is left to be written goes nowhere."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(141)


def _report(defect: Exception) -> NoReturn:
    """End with the class and the place of an exception that nobody foresaw."""
    from traceback import print_exception, walk_tb

    from isolitmus.cli.output import warn
    from isolitmus.model.errors import brief

    passed = [
        (frame.f_globals.get("__name__", ""), line) for frame, line in walk_tb(defect.__traceback__)
    ]
    ours = [f" in {module}:{line}" for module, line in passed if module.startswith("isolitmus.")]
    place = "".join(ours[-1:])
    said = brief(str(defect), 120)
    warn(
        f"internal error: {type(defect).__name__}{place}{f' ({said})' if said else ''}; please report it, with the input and"
        f" what {TRACEBACK}=1 prints"
    )
    if os.environ.get(TRACEBACK):
        print_exception(defect)
    sys.exit(DEFECT)


def _fail(error: IsolitmusError) -> NoReturn:
    from isolitmus.cli.output import warn

    warn(str(error))
    sys.exit(error.status)
