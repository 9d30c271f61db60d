"""Runs of pytest and of scripts inside this process, where they find the shared Spark session.

Each starts as a process of its own would: warnings as Python has them, Hypothesis without seed or
profile (but for its phase that explains a failure, which no test looks at), 80 columns, its folder
first in ``sys.path``. Modules that it imports from its folder are gone afterwards; those of
packages stay, because a second copy of a class of PySpark would not be the same class.
"""

import runpy
import sys
import warnings
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from time import monotonic

import pytest
from hypothesis import Phase, core, settings

settings.register_profile(
    "process",
    settings.get_profile("default"),
    phases=[phase for phase in Phase if phase is not Phase.explain],  # as slow as the rest
)


@contextmanager
def _as_a_process(folder):
    """Restore, after the block, what an ended process would have taken with it."""
    folder = Path(folder).resolve()
    before, path, profile = set(sys.modules), list(sys.path), settings.get_current_profile_name()
    with (
        pytest.MonkeyPatch.context() as patch,
        chdir(folder),
        warnings.catch_warnings(),
        redirect_stdout(StringIO()) as out,
        redirect_stderr(StringIO()) as err,
    ):
        patch.setenv("COLUMNS", "80")
        for name in ("COLORTERM", "FORCE_COLOR", "PY_COLORS", "PYTEST_ADDOPTS"):
            patch.delenv(name, raising=False)
        settings.load_profile("process")
        patch.setattr(core, "global_force_seed", None)
        warnings.resetwarnings()
        for ignored in (DeprecationWarning, ImportWarning, ResourceWarning):  # as Python starts
            warnings.simplefilter("ignore", ignored)
        try:
            yield out, err
        finally:
            sys.path[:] = path
            settings.load_profile(profile)
            for name in set(sys.modules) - before:
                file = getattr(sys.modules[name], "__file__", None)
                if file and Path(file).resolve().is_relative_to(folder):
                    del sys.modules[name]


def run_pytest(folder, *words):
    """Run ``pytest WORDS`` in a folder; what it prints and how it ends, as ``pytester`` has it."""
    began = monotonic()
    with _as_a_process(folder) as (out, err):
        status = pytest.main([*map(str, words)])
    lines = [stream.getvalue().splitlines() for stream in (out, err)]
    return pytest.RunResult(status, *lines, monotonic() - began)


def run_script(file, *words):
    """Run ``python FILE WORDS`` in the file's folder: its exit status, standard output and standard
    error.
    """
    file = Path(file).resolve()
    with _as_a_process(file.parent) as (out, err), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [str(file), *map(str, words)])
        patch.syspath_prepend(file.parent)
        try:
            runpy.run_path(str(file), run_name="__main__")
        except SystemExit as ended:
            status = ended.code or 0
        else:
            status = 0
    return status, out.getvalue(), err.getvalue()
