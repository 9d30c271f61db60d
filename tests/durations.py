"""How long modules of tests take: tracked in ``durations.csv``, reported after every run, used to
schedule.

The workers of pytest-xdist take whole modules, so that what a module sets up is set up once. The
longest start first. All modules that need Spark go to one worker: it starts Spark once, and the
others do not wait for it.
"""

import csv
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadFileScheduling

from isolitmus.model.display import count_of

ROOT = Path(__file__).parents[1]
TRACKED = Path(__file__).with_name("durations.csv")
ENGINES = ("spark", "deltalake", "derby", "postgres")
SLOWEST = 10
"""Number of modules that the end of a run lists."""
DOUBLED = 2.0
"""Factor of its tracked time from which a module is reported."""
NOTICED = 5.0
"""Seconds by which it has to be longer: shorter ones vary."""
ROOM = 8_000_000
"""Kilobytes that two workers need, one of them with Spark."""


@cache
def tracked():
    """Return the tracked seconds of each module."""
    if not TRACKED.exists():
        return {}
    with TRACKED.open(encoding="utf-8", newline="") as lines:
        return {row["module"]: float(row["seconds"]) for row in csv.DictReader(lines)}


@cache
def needs_spark(module):
    """Whether a module has tests marked ``spark``: its text says so."""
    return "mark.spark" in (ROOT / module).read_text("utf-8")


def module_of(nodeid):
    return nodeid.split("::", 1)[0]


def longest_first(items):
    """Sort items in place: modules with Spark, then the others, each group from the longest to the
    shortest.

    A module without a tracked time comes first in its group.
    """
    known = tracked()

    def place(item):
        module = module_of(item.nodeid)
        return not needs_spark(module), -known.get(module, float("inf")), module

    items.sort(key=place)


def name_engines(items):
    """Let the reports of each test name its engines, for whoever adds up times."""
    for item in items:
        engines = [name for name in ENGINES if item.get_closest_marker(name)]
        item.user_properties.append(("engines", engines))


def workers():
    """Return how many workers this machine has memory for."""
    available = [
        int(line.split()[1])
        for line in Path("/proc/meminfo").read_text("ascii").splitlines()
        if line.startswith("MemAvailable:")
    ]
    return 2 if not available or available[0] >= ROOM else 1


class ModuleScheduling(LoadFileScheduling):
    """A module at a time for each worker; the modules that need Spark all for the same one."""

    def _split_scope(self, nodeid):
        module = module_of(nodeid)
        return "spark" if needs_spark(module) else module


class Durations:
    """The seconds of this run, by module and by engine.

    Parameters
    ----------
    record : bool
        Whether ``durations.csv`` is written at the end.
    """

    def __init__(self, *, record):
        self.record = record
        self.modules, self.engines, self.tests = Counter(), Counter(), Counter()
        self.notes = []

    def pytest_runtest_logreport(self, report):
        """Add the time of a phase of a test to its module and its engines."""
        self.modules[module_of(report.nodeid)] += report.duration
        engines = dict(report.user_properties).get("engines", ())
        for engine in engines or ["no engine"]:
            self.engines[engine] += report.duration
            self.tests[engine] += report.when == "call"
        if report.when == "teardown":
            self.notes += [text for name, text in report.user_properties if name == "note"]

    def pytest_terminal_summary(self, terminalreporter):
        """Print the slowest modules, the time of each engine, and the modules that take twice their
        tracked time.
        """
        known = tracked()
        write = terminalreporter.write_line
        terminalreporter.section("time by module and engine")
        for module, seconds in self.modules.most_common(SLOWEST):
            before = f", tracked {known[module]:.1f} s" if module in known else ""
            write(f"{seconds:8.1f} s  {module}{before}")
        for engine, seconds in self.engines.most_common():
            write(f"{seconds:8.1f} s  {engine}: {count_of(self.tests[engine], 'test')}")
        for note in self.notes:
            write(note)
        for module in self.doubled():
            seconds = self.modules[module]
            write(
                f"warning: {module} took {seconds:.1f} s, tracked are {known[module]:.1f} s",
                yellow=True,
            )
        if self.record:
            self.write()

    def doubled(self):
        """Return the modules of this run that took twice their tracked time, and noticeably
        longer.
        """
        known = tracked()
        return [
            module
            for module, seconds in self.modules.items()
            if module in known
            and seconds > DOUBLED * known[module]
            and seconds > known[module] + NOTICED
        ]

    def write(self):
        """Track the times of this run; modules that did not run keep theirs, modules that are gone
        lose theirs.
        """
        asked = ["git", "rev-parse", "--short", "HEAD"]
        commit = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        rows = {}
        if TRACKED.exists():
            with TRACKED.open(encoding="utf-8", newline="") as lines:
                rows = {row["module"]: row for row in csv.DictReader(lines)}
        for module, seconds in self.modules.items():
            rows[module] = {"module": module, "seconds": f"{seconds:.1f}", "commit": commit.strip()}
        with TRACKED.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, ("module", "seconds", "commit"), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows[m] for m in sorted(rows) if (ROOT / m).exists())
