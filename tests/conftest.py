"""What every test has in common: how hard Hypothesis tries (HYPOTHESIS_PROFILE), and the command line.

Tests that start a JVM are marked ``spark``, long ones ``slow``; `pytest -m "not spark"` runs on a
machine without Java. The default profile is deterministic: what passed passes again.
"""

import os
import signal
import sys

import pytest
from hypothesis import HealthCheck, settings

from isolitmus.cli.main import main

settings.register_profile(
    "default",
    derandomize=True,
    deadline=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "thorough",
    settings.get_profile("default"),
    derandomize=False,
    max_examples=5000,
    print_blob=True,
)
settings.register_profile("quick", settings.get_profile("default"), max_examples=10)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

if (
    signal.getsignal(signal.SIGINT) == signal.SIG_IGN
):  # a shell that starts us behind its back does that
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def call(monkeypatch, capsys):
    """call(*words): the exit status, standard output and standard error of ``isolitmus WORDS``."""

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["isolitmus", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return ended.value.code or 0, printed.out, printed.err

    return call
