"""Histories judged in bulk: a row for each and level, also for what does not read, and none
twice.
"""

import json
from pathlib import Path

import pytest

from isolitmus.model.errors import IsolitmusError

pa = pytest.importorskip("pyarrow", reason="the extra spark is not installed")

from isolitmus.pipeline.check_job import VERDICTS, check_all, check_function, refuse_other_check  # noqa: E402
from isolitmus.specs.disk.output_files import Location  # noqa: E402

LOST = "r(0,0,0,0)\nw(0,1,0,0)\nr(0,0,1,1)\nw(0,2,1,1)\n"
FINE = "w(0,1,0,0)\nr(0,1,1,1)\n"
LEVELS = ("snapshot-isolation", "serializable")


@pytest.fixture
def histories(tmp_path):
    """A folder with a lost update, a history that is in order, and one that is broken."""
    folder = tmp_path / "histories"
    folder.mkdir()
    for name, text in (("lost", LOST), ("fine", FINE), ("broken", "w(0,1\n")):
        (folder / f"{name}.txt").write_text(text)
    return folder


@pytest.mark.slow
def test_a_row_for_each_level_and_one_for_what_does_not_read(histories):
    files = [("auto", path) for path in sorted(histories.iterdir())]
    batches = iter([pa.RecordBatch.from_pydict({"id": part}) for part in ([0, 1], [2])])
    rows = [row for batch in check_function(files, LEVELS)(batches) for row in batch.to_pylist()]
    assert {tuple(row) for row in rows} == {tuple(VERDICTS.columns)}
    said = {(Path(row["file"]).stem, row["level"]): row["verdict"] for row in rows}
    assert said == {
        ("broken", None): "error",
        **{("fine", name): "allowed" for name in LEVELS},
        **{("lost", name): "forbidden" for name in LEVELS},
    }
    (wrong,) = (row for row in rows if row["verdict"] == "error")
    assert "broken.txt:1" in wrong["reason"]
    broken = next(row for row in rows if row["verdict"] == "forbidden")
    assert (broken["axiom"], len(broken["cycle"])) != (None, 0)
    assert "lost update" in str(broken["anomalies"])


def test_what_is_in_the_way_of_verdicts_is_said_before_spark_starts(call, delta, histories):
    table = delta.table(delta.append(0, "f"))
    with pytest.raises(IsolitmusError, match="this table holds no verdicts"):
        refuse_other_check(Location(str(table)), None)
    status, _, err = call("check", histories, "--spark", "--out", table)
    assert (status, "holds no verdicts; name a folder" in err) == (2, True)
    status, _, err = call("check", histories, "--out", table)
    assert (status, "--out needs --spark" in err) == (2, True)
    status, _, err = call("check", f"{histories}/*.edn", "--spark")
    assert (status, "no such file" in err) == (2, True)


@pytest.mark.spark
def test_on_spark_what_was_judged_is_not_judged_again(histories, tmp_path, session):
    out = tmp_path / "verdicts"
    files = [("auto", path) for path in sorted(histories.iterdir())]

    def asked(levels=LEVELS):
        done = check_all(session.spark, files, levels=levels, out=out)
        return done, len([*out.glob("_delta_log/*.json")])

    first, commits = asked()
    assert (first.files, first.judged, first.histories, first.unread) == (3, 3, 2, 1)
    assert first.levels == {name: {"allowed": 1, "forbidden": 1} for name in LEVELS}
    assert "broken.txt:1" in first.errors[0][1]
    assert asked()[1] == commits
    (histories / "broken.txt").write_text(FINE)
    again, more = asked()
    assert (again.unread, more) == (0, commits + 1)
    assert again.levels == {name: {"allowed": 2, "forbidden": 1} for name in LEVELS}
    with pytest.raises(IsolitmusError, match="verdicts are by other levels"):
        asked(["causal"])


@pytest.mark.spark
@pytest.mark.usefixtures("session")
def test_the_command_says_what_is_broken_and_goes_on(call, histories):
    words = ("check", f"{histories}/*.txt", "--level", "serializable", "--spark", "--json")
    status, out, _ = call(*words)
    document = json.loads(out)
    assert (status, document["histories"], document["unread"]) == (1, 2, 1)
    assert document["levels"] == {"serializable": {"allowed": 1, "forbidden": 1}}
