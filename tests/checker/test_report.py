"""The report, word for word. After a wanted change: ISOLITMUS_UPDATE=1 pytest tests/checker/test_report.py."""

import os
import re
from pathlib import Path

from isolitmus.checker import run, separate
from isolitmus.checker.report import Finding, Replay, report
from isolitmus.specs import protocol, scope, spec

GOLDEN = Path(__file__).parents[1] / "golden" / "report.md"


def test_the_report_reads_as_it_should():
    found = separate(
        spec("delta-write-serializable"),
        spec("write-serializable"),
        scope("table"),
        unexplained=True,
    )
    replays = tuple(
        Replay(predicted, predicted, ())
        for predicted in (
            run(found.litmus, protocol(name))
            for name in ("delta-serializable", "delta-write-serializable")
        )
    )
    text = report([Finding(found, replays)], "The model replayed on itself.")
    text = re.sub(r"examined in \d+\.\d s", "examined in … s", text)
    if os.environ.get("ISOLITMUS_UPDATE"):
        GOLDEN.write_text(text, "utf-8")
    assert text == GOLDEN.read_text("utf-8")
