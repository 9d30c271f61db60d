"""Table of statements and statements in docs/conflicts.md: when does the first one abort?

``ISOLITMUS_UPDATE=1 pytest tests/jobs/test_conditions_page.py`` writes it anew.
"""

import os
import re
from pathlib import Path

import pytest

from isolitmus.jobs.predict.prediction import predict_pair
from isolitmus.jobs.questions.instances import Instances
from isolitmus.jobs.readers.workload_file import read_workload
from isolitmus.specs import protocol

PAGE = Path(__file__).parents[2] / "docs" / "conflicts.md"
WORKLOAD = re.compile(
    r"(?<=^The statements are a workload, `statements.toml`:\n\n```toml\n).*?(?=^```$)",
    re.DOTALL | re.MULTILINE,
)
MADE = re.compile(r"(?<=<!-- made: conditions -->\n\n).*?(?=\n<!-- end -->)", re.DOTALL)
LEVELS = ("delta-serializable", "delta-write-serializable")


def cell(workload, loser, winner):
    """When a statement aborts because of another one, at both levels if they differ."""
    words = dict.fromkeys(
        answer(predict_pair(Instances(workload), loser, winner, protocol(under)))
        for under in LEVELS
    )
    return "; ".join(words)


def answer(pair):
    assert pair.word in {"never", "always", "when"}
    assert not pair.perhaps
    if pair.word != "when":
        return {"never": "no", "always": "yes"}[pair.word]
    conditions = [
        str(condition)
        .replace(f"{pair.loser}'s ", "its ")
        .replace(f"{pair.loser}_2's ", "the other's ")
        .replace(f"{pair.winner}'s ", "the other's ")
        .replace("the other run's ", "the other's ")
        .replace(" equals ", " = ")
        for condition in pair.condition
    ]
    if not conditions:
        return "for some rows"
    return f"if {' and '.join(conditions)}" + ("" if pair.certain else ", for some rows")


@pytest.mark.slow
def test_the_table_has_what_is_proved_of_its_statements():
    text = PAGE.read_text("utf-8")
    (source,) = WORKLOAD.findall(text)
    workload = read_workload(source, "conflicts")
    statements = workload.statements
    head = ["", *(f"`{one.name}`" for one in statements)]
    rows = [
        [f"`{loser.name}`", *(cell(workload, loser, winner) for winner in statements)]
        for loser in statements
    ]
    assert "" not in {words for row in rows for words in row}
    assert {"no", "yes", "for some rows"} <= {words for row in rows for words in row}
    lines = [head, ["---"] * len(head), *rows]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    if os.environ.get("ISOLITMUS_UPDATE"):
        text = MADE.sub(lambda _: table, text)
        PAGE.write_text(text, "utf-8")
    assert MADE.findall(text) == [table], "ISOLITMUS_UPDATE=1 writes it anew"
