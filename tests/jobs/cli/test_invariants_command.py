"""``isolitmus robust --keeps``: words, JSON, pages, files, and mistakes."""

from __future__ import annotations

import json

import pytest
import z3

WORK = """
title = "Loading <b>by</b> lookup"
ddl = "CREATE TABLE t (id INT, v STRING) USING delta"
[jobs.load]
sql = "INSERT INTO t SELECT :id, :v WHERE :n = 0"
let = { n = "SELECT count(*) FROM t WHERE id = :id" }
parameters = { id = "INT NOT NULL", v = "STRING" }
"""


@pytest.fixture
def work(tmp_path):
    path = tmp_path / "work.toml"
    path.write_text(WORK)
    return path


@pytest.mark.slow
def test_only_the_invariants_are_asked_for(work, call):
    status, out, _ = call("robust", work, "--keeps", "unique(id)")
    assert status == 1
    assert "unique(id) is broken at Serializable and WriteSerializable." in out
    by_overlap = "Two runs of load that overlap violate it. No statement violates it by itself, so"
    assert by_overlap in " ".join(out.split())
    assert "with :n from SELECT count(*) FROM t WHERE id = 1" in out
    assert "Promises" not in out


@pytest.mark.slow
def test_promises_and_invariants_of_a_file(work, call):
    work.write_text(WORK + '[invariants]\nkey = "unique(id)"\nnamed = "not null(id)"\n')
    status, out, _ = call("robust", work, "--level", "Serializable")
    assert status == 1
    assert "Promises kept by any number of runs." in out
    assert "key is broken at Serializable; named is kept at Serializable." in out


def test_a_kept_invariant_ends_well(work, call):
    status, out, _ = call("robust", work, "--keeps", "not null(id)")
    assert (status, "id) is kept at Serializable and WriteSerializable" in out) == (0, True)


@pytest.mark.slow
def test_json(work, call):
    status, out, _ = call("robust", work, "--keeps", "unique(id)", "--repairs", "--json")
    first, second = json.loads(out)
    assert status == 1
    assert first["word"] == second["word"] == "broken"
    assert first["query"].startswith("SELECT id, count(*) FROM t")
    assert [one["jobs"] for one in first["violations"]] == [["load", "load"]]
    assert first["keeps_alone"] is True
    assert [one["title"][:9] for one in first["repairs"]] == ["never run", "write loa"]


@pytest.mark.slow
def test_a_page_escapes_what_a_file_says(work, call, tmp_path):
    page = tmp_path / "page.html"
    for more in ((), ("--promise", "write-serializable")):
        call("robust", work, "--keeps", "check(v <> '<i>')", *more, "--html", page)
        text = page.read_text()
        assert "<b>by</b>" not in text
        assert "<i>" not in text
        assert "check(v &lt;&gt; &#39;&lt;i&gt;&#39;)" in text


@pytest.mark.slow
def test_violations_are_written_and_run(work, call, tmp_path):
    folder = tmp_path / "saved"
    call("robust", work, "--keeps", "unique(id)", "--save", folder)
    files = sorted(folder.iterdir())
    assert [one.name for one in files] == [
        "unique-id-delta-serializable-1.toml",
        "unique-id-delta-write-serializable-1.toml",
    ]
    status, out, _ = call("run", *files)
    assert status == 0
    assert "2 of 2 runs passed" in out


def test_a_certificate_of_a_kept_invariant(work, call, tmp_path):
    folder = tmp_path / "proof"
    status, _, _ = call("robust", work, "--keeps", "not null(id)", "--certificate", folder)
    assert status == 0
    inside = sorted(folder.iterdir())
    assert [one.name for one in inside] == [
        "not-null-id-delta-serializable",
        "not-null-id-delta-write-serializable",
    ]
    (question,) = inside[0].glob("*.smt2")
    solver = z3.Solver()
    solver.from_string(question.read_text())
    assert solver.check() == z3.unsat


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("unique(x)", "t has no column 'x'"),
        ("u", "is no invariant"),
        ("q: unique(id)", "table 'q'"),
    ],
)
def test_mistakes(work, call, text, said):
    status, _, err = call("robust", work, "--keeps", text)
    assert status == 2
    assert said in err
    work.write_text(f"{WORK}[invariants]\nkey = '{text}'\n")
    status, _, err = call("robust", work)
    assert status == 2
    assert "work.toml:9" in err
    assert said in err
    work.write_text(f"{WORK}[invariants]\nkey = 3\n")
    status, _, err = call("robust", work)
    assert (status, "write an invariant" in err) == (2, True)
