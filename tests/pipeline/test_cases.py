"""The Delta table of a matrix: what is in it is not asked again."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from isolitmus.checker import audit
from isolitmus.model.errors import IsolitmusError
from isolitmus.pipeline.cases import refuse_other
from isolitmus.pipeline.location import Location

ISOLITMUS = Path(sys.executable).parent / "isolitmus"
SMALL = """
title = "Small"
tables.t = { columns = "id INT, part INT", init = ["INSERT INTO t VALUES (1, 0)"] }
layouts.whole = { winner = 0 }
statements.insert = "INSERT INTO t VALUES ({new}, {p})"
statements.delete = "DELETE FROM t WHERE id = 1"
"""


def test_a_table_of_something_else_is_refused_before_spark_starts(call, delta):
    table = delta.table(delta.append(0, "f"))
    with pytest.raises(IsolitmusError, match="this table holds no cases of a matrix"):
        refuse_other(Location(str(table)))
    status, _, err = call("matrix", "--engine", "delta", "--out", table)
    assert status == 2
    assert "holds no cases of a matrix; name a folder that is not there yet" in err


@pytest.mark.spark
def test_a_matrix_goes_on_where_its_table_ends(tmp_path):
    out, file = tmp_path / "cases", tmp_path / "small.toml"
    file.write_text(SMALL)
    words = [ISOLITMUS, "matrix", file, "--engine", "delta", "--out", out]
    words += ["--protocol", "delta-serializable"]
    half = subprocess.run(
        [*words, "--shard", "1/2", "--json"], capture_output=True, text=True, check=True
    )
    assert [(c["a"], c["observed"]) for c in json.loads(half.stdout)] == [
        ("insert", "committed"),
        ("delete", "ConcurrentAppendException"),
    ]
    whole = subprocess.run(words, capture_output=True, text=True, check=True)
    assert whole.stdout.splitlines()[2:4] == ["  1  insert . .", "  2  delete A R"]
    assert "4 of 4 cases as predicted." in whole.stdout
    done = audit(out)
    assert (done.commits, done.findings) == (3, ())  # made, and written twice
