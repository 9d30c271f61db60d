import pytest

"""``check`` of PostgreSQL's isolation tests: each permutation, a folder with other histories, what
is not read.
"""

SPEC = """\
setup { CREATE TABLE t (k int); }
session a
step look { SELECT k FROM t; }
step lock { SELECT k FROM t FOR UPDATE; }
session b
step fill { INSERT INTO t VALUES (1); }
"""
OUTPUT = """\
Parsed test spec with 2 sessions

starting permutation: fill look
step fill: INSERT INTO t VALUES (1);
step look: SELECT k FROM t;
k
-
1
(1 row)


starting permutation: lock fill
step lock: SELECT k FROM t FOR UPDATE;
k
-
(0 rows)

step fill: INSERT INTO t VALUES (1);
"""


@pytest.mark.slow
def test_a_folder_of_permutations_and_others(tmp_path, call):
    (tmp_path / "h.spec").write_text(SPEC)
    (tmp_path / "h.out").write_text(OUTPUT)
    (tmp_path / "a.txt").write_text("w(7,100,0,0)\nr(7,100,0,1)\n")
    status, out, err = call("check", str(tmp_path), "--level", "serializable")
    assert status == 2
    assert f"{tmp_path}/h.spec, permutation 1 (fill look): 2 transactions" in out
    assert f"{tmp_path}/a.txt: 2 transactions" in out
    assert "h.spec:4: 'SELECT k FROM t FOR UPDATE' has 'LOCKS'" in err
    _, out, _ = call("check", str(tmp_path), "--level", "serializable", "--format", "pg")
    assert "permutation 1 (fill look)" in out
    assert "a.txt" not in out


@pytest.mark.slow
def test_permutations_are_asked_what_they_have(tmp_path, call):
    (tmp_path / "h.spec").write_text(SPEC)
    (tmp_path / "h.out").write_text(OUTPUT.split("\n\n\n", maxsplit=1)[0] + "\n")
    status, out, err = call("check", str(tmp_path / "h.spec"))
    assert (status, err) == (0, "")
    assert "Strongest level that holds: serializable" in out
    status, out, err = call("check", str(tmp_path / "h.spec"), "--level", "log-serializable")
    assert (status, out) == (2, "")
    assert "needs log, which this history does not have" in err


def test_an_output_without_permutations_is_refused(tmp_path, call):
    (tmp_path / "h.spec").write_text(SPEC)
    (tmp_path / "h.out").write_text(OUTPUT.split("\n", maxsplit=1)[0] + "\n")
    status, out, err = call("check", str(tmp_path / "h.spec"))
    assert (status, out) == (2, "")
    assert "h.out:1: it reports no permutation" in err
