"""Command line: verbs, help, errors and exit statuses.

A verb is imported when it is called. Values that already have the type of their option are not
passed to typer for conversion: typer would import pydantic, which takes longer than many verbs.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
import warnings
from contextlib import contextmanager, suppress
from inspect import getdoc
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, get_type_hints

try:
    import typer
    from typer.core import TyperCommand, TyperGroup
    from typer.main import get_command
except KeyboardInterrupt:  # it takes most of a start
    sys.exit(130)

from isolitmus.model.budget import raised_again
from isolitmus.model.errors import Ended, IsolitmusError, SpecWarning, near
from isolitmus.model.registry import PACKAGES, Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

USAGE: Any = typer.BadParameter.__mro__[2]
"""Base class of typer's own errors, which it takes from click and does not export."""


def usage_error(error: Any) -> IsolitmusError:
    """Return a usage error as one sentence, with a suggestion or a reference to the help.

    Examples
    --------
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


VERBS_BY_DOOR = {
    "Start": {
        "demo": "Find two anomalies of WriteSerializable, explain them, replay them on Delta.",
        "show": "Show the catalogue: levels, protocols, litmus tests, exceptions, and more.",
    },
    "I got a conflict": {
        "explain": "Explain a Delta conflict: what happened, whether to retry, what to change.",
        "predict": "Predict which of your jobs can abort each other, and when.",
        "robust": "Prove your jobs safe at a level, or find the smallest schedule that breaks it.",
        "lint": "Lint a folder of jobs: conflicts, broken invariants, runs without a serial order.",
        "matrix": "Show which kinds of statements conflict.",
    },
    "I test jobs that write to one table": {
        "run": "Run litmus tests on the model or on real engines, and compare.",
        "export": "Write litmus tests as Python: for pytest, or as a PySpark script.",
        "explore": "Run random litmus tests on a real engine, and compare with the model.",
        "audit": "Find anomalies in the logs of Delta tables.",
        "install": "Install what an engine needs, or what makes it start faster.",
    },
    "I compare levels": {
        "separate": (
            "Find the smallest history that A admits and B forbids, or prove there is none."
        ),
        "repair": "Find the weakest clauses with which a protocol's rule keeps a level.",
        "compare": "Compute which levels imply which, with the smallest history between two.",
        "check": "Judge histories: litmus tests, Delta logs, histories that other tools recorded.",
        "sweep": "Count all candidates of a scope: admitted by protocols, forbidden by levels.",
        "report": "Write a page about the results of a sweep on Spark.",
        "claims": "Verify what documents claim about isolation.",
    },
}
"""Verbs by group of the help, each with one line of help."""

VERBS = {verb: line for door in VERBS_BY_DOOR.values() for verb, line in door.items()}
"""Line of help of each verb of ours."""

FUNCTIONS: Registry[Callable[..., int]] = Registry("verb")
"""Function of each verb: the signature is the command line, the docstring the rest of the help."""

TRACEBACK = "ISOLITMUS_TRACEBACK"
"""Environment variable that requests the traceback of an internal error."""
COLLECTED = 50_000, 50, 50
"""Thresholds of garbage collection: questions to a solver make many objects that live for a while,
and Python's own thresholds cost a tenth of their time.
"""
DEFECT = 70
"""Exit status of an internal error, EX_SOFTWARE of sysexits.h."""


TEXTS = (list[str], list[str] | None)
PATHS = (Path, Path | None)


def help_text(verb: str, docstring: str) -> str:
    r"""Return the help of a verb: its line, then its docstring, whose indented lines are kept.

    Examples
    --------
    >>> line, *rest = help_text("report", "Write it.\n\nExamples:\n  isolitmus").split("\n\n")
    >>> line
    'Write a page about the results of a sweep on Spark.'
    >>> rest
    ['Write it.', '\x08\nExamples:\n  isolitmus']
    """
    paragraphs = docstring.split("\n\n")
    kept = (f"\b\n{one}" if "\n " in one else one for one in paragraphs)
    ours = [VERBS[verb]] if verb in VERBS else []
    return "\n\n".join([*ours, *kept])


class _Given:
    """Command whose parameters use typer only for values to convert or missing values."""

    callback: Any

    def get_params(self, context: Any) -> list[Any]:
        """Return the parameters, whose values typer converts only if missing or of another type."""
        kinds = {} if self.callback is None else get_type_hints(self.callback)
        parameters: list[Any] = super().get_params(context)  # type: ignore[misc] # the other base class has it
        for parameter in parameters:
            if "process_value" not in vars(parameter):
                parameter.process_value = _processing(parameter, kinds.get(parameter.name))
        return parameters


def _processing(parameter: Any, kind: Any) -> Callable[[Any, Any], Any]:
    """Return a ``process_value`` for a parameter that keeps values already of type `kind`."""
    process, called = parameter.process_value, parameter.callback is not None

    def processed(context: Any, value: Any) -> Any:
        if called and value:
            return process(context, value)
        if kind in TEXTS:
            if value:
                return list(value)
            if not parameter.required and parameter.default is None:
                return None
            return process(context, value)
        if kind in PATHS and value and isinstance(value, str):
            return Path(value)
        given = isinstance(value, kind or bool | None)
        return value if given else process(context, value)

    return processed


class Verb(_Given, TyperCommand):
    """Command of a verb."""


class Group(_Given, TyperGroup):
    """Command with verbs."""


def _typer(**more: Any) -> typer.Typer:
    """Return a Typer application without completion, Rich markup and Typer's tracebacks."""
    return typer.Typer(
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        **more,
    )


class _Verbs(Group):
    """Group of the verbs that imports a verb when it is requested, and none to list them."""

    def list_commands(self, _: Any) -> list[str]:
        names = FUNCTIONS.names()
        return [*(name for name in VERBS if name in names), *(n for n in names if n not in VERBS)]

    def get_command(self, _: Any, cmd_name: str) -> Any:
        """Return the command of a verb, importing its module; None for an unknown verb."""
        if cmd_name not in FUNCTIONS:
            return None
        with _without_collection():
            verb = FUNCTIONS.named(cmd_name)
        alone = _typer()
        alone.command(cmd_name, cls=Verb, help=help_text(cmd_name, getdoc(verb) or ""))(verb)
        return get_command(alone)

    def format_commands(self, _: Any, formatter: Any) -> None:
        names = self.list_commands(None)
        others = [name for name in names if name not in VERBS]
        for door, verbs in VERBS_BY_DOOR.items():
            with formatter.section(door):
                formatter.write_dl([(verb, verbs[verb]) for verb in verbs if verb in names])
        if others:
            with formatter.section("Of other packages"):
                formatter.write_dl([(verb, f"isolitmus {verb} --help") for verb in others])


@contextmanager
def _without_collection() -> Iterator[None]:
    """Import without garbage collection, which would find nothing and take a tenth of the time.

    What was imported stays, so later collections skip it.
    """
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()


ROOT = Path(__file__).resolve().parents[1]
"""The checkout, or the installed package; both have the pages of the documentation in ``docs``."""

app = _typer(
    name="isolitmus",
    cls=_Verbs,
    help="Find out what an isolation level of a lakehouse table really allows.",
    epilog=f"\b\nPages: docs/index.md; terms: docs/glossary.md; the folder docs is in\n{ROOT}",
    no_args_is_help=True,
)


def _version(*, wanted: bool) -> None:
    """Print the version and exit if ``--version`` is given."""
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
    """Run the command line.

    An error is one message on standard error and an exit status, never a traceback. The statuses
    are 2 for bad input, 3 if a limit or something else ended the work, 4 if an engine could not be
    started, and 70 for a defect of isolitmus.
    """
    before = signal.getsignal(signal.SIGINT)  # that of cli/__init__.py
    try:
        if before is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        _run()
    except KeyboardInterrupt:  # while an error message is printed
        sys.exit(130)
    finally:
        # what Python does at its end cannot be interrupted by an exception
        signal.signal(signal.SIGINT, before)


def _run() -> None:
    """Run the command line, and end it with its exit status."""
    gc.set_threshold(*COLLECTED)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy starts threads, used by no verb
    _open_closed_streams()
    # py4j logs tracebacks of a Ctrl-C; its errors are raised, too
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # the terminal may lack characters of a picture
    try:
        try:
            with _spec_warnings(), raised_again(KeyboardInterrupt, _interrupt_again):
                status = app(standalone_mode=False)
        finally:
            sys.stdout.flush()
        sys.exit(status)
    except MemoryError:
        _fail(Ended("memory was used up, which ended the work"))
    except IsolitmusError as error:
        _fail(error)
    except USAGE as error:
        if len(sys.argv) == 1:  # its message is the help
            error.show()
            sys.exit(2)
        _fail(usage_error(error))
    except (KeyboardInterrupt, typer.Abort) as stopped:
        if isinstance(stopped.__cause__, EOFError):  # Python's error for a damaged .pyc file
            _fail(
                Ended(
                    f"a file that Python compiled is cut short ({stopped.__cause__}); remove the"
                    " folders __pycache__ of isolitmus and of the packages that it imports, and"
                    " run it again"
                )
            )
        sys.exit(130)
    except BrokenPipeError:
        _end_for_broken_pipe()
    except SystemExit as ended:  # typer ends with 1 after a broken pipe
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
    except Exception as defect:  # noqa: BLE001 - any other exception is a defect of isolitmus
        _report(defect)


@contextmanager
def _spec_warnings() -> Iterator[None]:
    """Print each warning about a spec once on standard error, while the context lasts."""
    printed: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        from isolitmus.cli.output import warn

        if not issubclass(category, SpecWarning):
            usual(message, category, *place, **more)
        elif str(message) not in printed:
            printed.add(str(message))
            warn(f"warning: {message}")

    with warnings.catch_warnings():
        usual = warnings.showwarning
        warnings.simplefilter("always", SpecWarning)
        warnings.showwarning = show
        yield


def _interrupt_again() -> None:
    """Send the main thread another Ctrl-C in a moment."""
    main_thread = threading.main_thread().ident or 0
    threading.Timer(0.05, signal.pthread_kill, (main_thread, signal.SIGINT)).start()


def _open_closed_streams() -> None:
    """Open the null device for each standard stream that is closed.

    Otherwise a file that is opened later would get its number. Raises Ended if standard output is
    closed.
    """
    closed = [name for name in ("stdin", "stdout", "stderr") if getattr(sys, name) is None]
    for name in closed:  # open() takes the lowest free number, the stream's
        setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: PTH123, SIM115
    if "stdout" in closed:
        _fail(
            Ended(
                "standard output is closed, and the answer would be lost; redirect it, for example"
                " to /dev/null"
            )
        )


def _end_for_broken_pipe() -> NoReturn:
    """End as a program whose reader is gone; discard what is still to be written."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(141)


def _report(defect: Exception) -> NoReturn:
    """Report an unexpected exception by its class and place, and end."""
    from traceback import print_exception, walk_tb

    from isolitmus.cli.output import warn
    from isolitmus.model.errors import brief

    passed = [
        (frame.f_globals.get("__name__", ""), line) for frame, line in walk_tb(defect.__traceback__)
    ]
    known = {"isolitmus": "", **PACKAGES}
    places = [
        (known[top], f" in {module}:{line}")
        for module, line in passed
        if (top := module.partition(".")[0]) in known and module != "isolitmus"
    ]
    package, place = places[-1] if places else ("", "")
    said = brief(str(defect), 120)
    kind = f"error of the plug-in {package}" if package else "internal error"
    warn(
        f"{kind}: {type(defect).__name__}{place}{f' ({said})' if said else ''}; please report it"
        f"{' to its authors' if package else ''}, with the input and what {TRACEBACK}=1 prints"
    )
    if os.environ.get(TRACEBACK):
        print_exception(defect)
    sys.exit(DEFECT)


def _fail(error: IsolitmusError) -> NoReturn:
    """Print an error to standard error and exit with its status."""
    from isolitmus.cli.output import warn

    warn(str(error))
    sys.exit(error.status)
