"""Every command as a program calls it: words, JSON, exit status."""

import html
import json
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from time import sleep

import pytest

from isolitmus.conformance.engines import open_engine
from isolitmus.model.errors import EngineUnavailable
from isolitmus.specs import litmus
from isolitmus.specs.files.spec_catalogue import levels, protocols, related_protocols
from isolitmus.specs.registries import ENGINES, engine_named


@pytest.mark.slow
def test_separate_prints_the_answer_and_exits_1(call):
    status, out, err = call("separate", "delta-write-serializable", "log-serializable")
    assert (status, err) == (1, "")
    assert "delete before insert, because delete read t WHERE part = 0 at version 0" in out
    assert "The final table equals that of the serial order delete → insert." in out


@pytest.mark.slow
def test_separate_as_json_has_the_contract_s_keys(call):
    status, out, _ = call("separate", "delta-write-serializable", "log-serializable", "--json")
    answer = json.loads(out)
    assert status == 1
    assert set(answer) >= {
        "a", "b", "universe", "found", "transactions", "litmus", "violation", "explained_by",
        "bound", "proved", "assumptions", "examined", "seconds",
    }  # fmt: skip
    assert answer["found"] is True
    assert answer["proved"] is False
    assert set(answer["violation"]["cycle"][0]) == {"from", "to", "kind", "why"}


@pytest.mark.slow
def test_a_proof_exits_0_and_says_what_it_took(call):
    question = ("delta-serializable", "log-serializable", "--unbounded")
    status, out, err = call("separate", *question, "--json")
    answer = json.loads(out)
    assert (status, err) == (0, "")
    assert (answer["found"], answer["proved"], answer["examined"]) == (False, True, None)
    scope = "any number of transactions, statements on one Delta table, with tracked reads only"
    assert answer["bound"].startswith(scope)
    assert [lemma["outcome"] for lemma in answer["lemmas"]] == ["holds"] * 4
    assert "all reads are tracked" in " ".join(answer["assumptions"])


@pytest.mark.slow
def test_what_is_not_proved_is_searched_for(call):
    question = ("delta-write-serializable", "write-serializable", "--unbounded")
    status, out, _ = call("separate", *question)
    assert status == 1
    assert "lemma order-of-writers fails.\n" in out
    assert "\nFound: 3 transactions that " in out
    assert "  order-of-writers: fails: " in out


@pytest.mark.slow
def test_what_is_neither_proved_nor_found_is_unknown(call):
    question = ("log-serializable", "read-atomic", "--unbounded", "--transactions", "2")
    status, out, _ = call("separate", *question, "--json")
    answer = json.loads(out)
    assert (status, answer["found"], answer["proved"]) == (3, None, False)
    assert answer["lemmas"][0]["outcome"] == "unknown"
    status, out, _ = call("separate", *question)
    assert "Not proved that log-serializable admits nothing that read-atomic forbids" in out
    assert "No counterexample with up to 2 transactions" in out


@pytest.mark.slow
def test_separate_asks_abstract_histories_where_no_side_needs_a_table(call, tmp_path):
    path = tmp_path / "skew.toml"
    question = ("snapshot-isolation", "serializable")
    status, out, _ = call("separate", *question, "--save", path)
    assert status == 1
    assert "in search space 'abstract'" in out
    assert "T1  r(x0) w(y1)\nT2  r(y0) w(x2)\n" in out
    assert "T1 before T2, because T1 read x0 and T2 wrote the next version x2" in out
    assert call("check", path, "--level", ",".join(question))[0] == 1
    status, out, _ = call("separate", *question, "--universe", "table", "--json")
    assert json.loads(out)["universe"] == "table"


@pytest.mark.slow
@pytest.mark.parametrize("universe", ["table", "abstract"])
def test_separate_by_enumeration_says_the_same(call, universe):
    answers = []
    for by in ("symbolic", "exhaustive"):
        _, out, _ = call(
            "separate", "snapshot-isolation", "serializable",
            "--universe", universe, "--by", by, "--json",
        )  # fmt: skip
        answers.append(json.loads(out))
    assert [answer["by"] for answer in answers] == ["symbolic", "exhaustive"]
    for key in ("found", "transactions", "litmus", "violation", "assumptions"):
        assert answers[0][key] == answers[1][key]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--by", "symbolc"], "--by is 'symbolc'; did you mean 'symbolic'?"),
        (["--time", "nan"], "--time is nan; expected a number of seconds from 0"),
        (["--time", "-1"], "--time is -1; expected a number of seconds from 0"),
        (["--save", "no/such/folder.toml"], "cannot write no/such/folder.toml: there is no folder no/such"),
        (["--unexplained", "--universe", "abstract"], "--unexplained asks for statements, which search space 'abstract' does not have; try --universe table"),
        (["--transactions", "13"], "13 transactions are too many; 1 to 12 can be searched in search space 'abstract' (at most 3 keys)"),
        (["--unbounded", "--unexplained"], "--unbounded proves what relations say, --unexplained asks for serial orders; leave out one"),
        (["--unbounded", "--universe", "abstract"], "--unbounded proves claims about tables, and search space 'abstract' has none; leave it out"),
        (["--unbounded", "--transactions", "9"], "9 transactions were asked for; --unbounded takes 1 to 8, or any number without --transactions"),
        (["--every-version-read"], "--every-version-read is a premise of proofs; add --unbounded"),
        (["--transactions", "9", "--universe", "table"], "9 transactions are too many; 1 to 8 can be searched in search space 'table'"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)  # fmt: skip
def test_what_cannot_be_asked_of_separate_is_one_sentence(call, words, message):
    status, out, err = call("separate", "snapshot-isolation", "serializable", *words)
    assert (status, out) == (2, "")
    assert message in err


def test_separate_says_what_it_supposes_and_shows_every_order(call):
    _, out, _ = call("separate", "prefix-consistency", "snapshot-isolation")
    assert "If x1 came before x2:\n  T1 before T2, because" in out
    assert "If x2 came before x1:\n  T2 before T1, because" in out


@pytest.mark.slow
def test_sweep_counts_every_candidate(call):
    status, out, _ = call("sweep", "two-partitions", "--transactions", "2")
    assert status == 1
    assert "196 candidates with 2 transactions" in out
    assert "8 are forbidden by log-serializable    (7.84 %)" in out
    status, out, _ = call("sweep", "two-partitions", "--json")
    assert [document["candidates"] for document in json.loads(out)] == [196, 4116]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["two-partition"], "unknown scope 'two-partition'; did you mean 'two-partitions'?"),
        (["two-partitions", "--transactions", "4", "--limit", "1000"], "has 115,248 candidates with 4 transactions, more than the limit of 1,000"),
        (["two-partitions", "--transactions", "0"], "--transactions is '0'"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)  # fmt: skip
def test_what_cannot_be_swept_is_one_sentence(call, words, message):
    status, out, err = call("sweep", *words)
    assert (status, out) == (2, "")
    assert message in err


def test_an_engine_is_asked_what_it_implements(call, monkeypatch):
    monkeypatch.setattr(
        "isolitmus.cli.engine_runs.is_implemented", lambda _, name: name == "delta-serializable"
    )
    status, out, _ = call("run", "reorder", "--engine", "model")
    asked = [line for line in out.splitlines() if line.startswith("reorder on")]
    assert status == 0
    assert asked == ["reorder on the model under delta-serializable: passed"]


@pytest.mark.slow
def test_a_protocol_of_one_s_own_may_admit_what_is_found(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = '"Weak" (* mine *) empty unseen & removes-meets-removes as Conflict'
    (tmp_path / "weak.cat").write_text(text)
    (tmp_path / "elsewhere").mkdir()
    saved = tmp_path / "elsewhere" / "found.toml"
    assert call("separate", "weak.cat", "write-serializable", "--save", saved)[0] == 1
    assert call("run", saved)[0] == 0
    assert call("run", saved, "--protocol", "weak.cat")[0] == 0


def test_nothing_found_is_nothing_saved(call, tmp_path):
    path = tmp_path / "none.toml"
    status, out, err = call("separate", "serializable", "snapshot-isolation", "--save", path)
    assert status == 0
    assert out.startswith("No counterexample with up to 4 transactions in search space 'abstract'")
    assert err == f"isolitmus: no counterexample was found, so {path} was not written\n"
    assert not path.exists()


def test_nine_writers_have_too_many_serial_orders(call, tmp_path):
    path = tmp_path / "nine.toml"
    names = [f"w{k}" for k in range(9)]
    lines = [f'{name} = "INSERT INTO t VALUES ({k})"' for k, name in enumerate(names)]
    path.write_text(
        f'title = "Nine"\nschedule = "{" ".join(names)}"\n[table]\ncolumns = "id INT"\n'
        "[transactions]\n"
        + "\n".join(lines)
        + '\n[expect.delta-serializable]\noutcome = { w0 = "committed" }\n'
    )
    status, _, err = call("run", path)
    assert status == 2
    assert "9 transactions write; the serial orders of at most 8 are tried" in err


def test_a_protocol_is_not_asked_of_abstract_histories(call):
    status, _, err = call(
        "separate", "delta-serializable", "serializable", "--universe", "abstract"
    )
    assert status == 2
    assert "delta-serializable needs Backfill, Empty, Large, Marked" in err
    assert "which abstract histories do not have" in err


@pytest.mark.slow
def test_separate_both_says_how_the_two_stand(call):
    status, out, _ = call(
        "separate", "serializable", "log-serializable", "--both", "--transactions", "2", "--json"
    )
    there, back = json.loads(out)
    assert status == 1
    assert (there["found"], back["found"]) == (True, False)
    assert there["relation"] == back["relation"] == "weaker"


@pytest.mark.slow
def test_separate_none_exits_0_and_a_time_limit_3(call):
    status, out, _ = call("separate", "log-serializable", "write-serializable")
    assert status == 0
    assert out.startswith("No counterexample ")
    status, out, _ = call("separate", "delta-serializable", "log-serializable", "--time", "0")
    assert status == 3
    assert out.startswith("Unknown")


@pytest.mark.slow
def test_separate_goes_beyond_the_sizes_of_the_scope(call):
    status, out, _ = call(
        "separate", "delta-write-serializable", "write-serializable", "--transactions", "4..5"
    )
    assert status == 1
    assert out.startswith("Found: 4 transactions that ")


@pytest.mark.slow
def test_what_separate_saves_runs(call, tmp_path):
    path = tmp_path / "found.toml"
    call("separate", "delta-write-serializable", "serializable", "--save", path)
    status, out, _ = call("run", path)
    assert status == 0
    n = len(related_protocols())
    assert out.endswith(f"{n} of {n} runs passed.\n")


def test_run_as_json_has_the_contract_s_keys(call):
    status, out, _ = call("run", "reorder", "--protocol", "delta-write-serializable", "--json")
    document = json.loads(out)
    assert status == 0
    assert document["litmus"] == "reorder"
    (run,) = document["runs"]
    assert set(run) >= {
        "engine", "engine_version", "protocol", "base", "transactions", "versions", "tables",
        "serial", "levels", "expected", "differences",
    }  # fmt: skip
    assert run["transactions"]["delete"] == {
        "outcome": "committed", "exception": None, "error_class": None, "read_version": 0,
        "version": 2, "commits": [2], "blind": False, "isolation_level": "WriteSerializable",
        "operation": "DELETE", "rows": None,
    }  # fmt: skip
    assert run["versions"][1] == {"version": 1, "tables": {"t": [[1, 0], [2, 1], [100, 0]]}}
    assert set(run["levels"]) == set(levels())
    assert run["expected"] == "met"


def test_run_exits_1_where_a_run_is_not_as_expected(call, tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_text(litmus("reorder").text.replace('serial   = ["delete insert"]', "serial = []"))
    status, out, _ = call("run", path)
    assert status == 1
    assert "serial orders: expected none, got delete insert" in out


def test_check_judges_a_schedule_and_an_abstract_history(call):
    status, out, _ = call(
        "check", "reorder", "history-write-skew", "--level", "serializable,snapshot-isolation",
        "--json",
    )  # fmt: skip
    reorder, skew = json.loads(out)
    assert status == 1
    assert reorder["levels"]["serializable"]["verdict"] == "allowed"
    assert reorder["levels"]["serializable"]["serial"] == "delete insert"
    assert skew["levels"]["serializable"]["verdict"] == "forbidden"
    assert skew["levels"]["snapshot-isolation"]["verdict"] == "allowed"
    assert set(skew) >= {"history", "transactions", "operations", "levels", "seconds"}


@pytest.mark.slow
def test_show_lists_everything_a_line_each(call):
    status, out, _ = call("show", "--json")
    entries = json.loads(out)
    assert status == 0
    assert {e["name"] for e in entries} >= {*levels(), *protocols(), "reorder", "table", "delta"}
    assert all(set(e) == {"name", "kind", "title", "source", "text"} for e in entries)
    status, out, _ = call("show", "levels")
    assert "write-serializable" in out
    assert "delta-serializable" not in out


def test_show_prints_a_thing_in_full(call):
    status, out, _ = call("show", "write-serializable", "reorder")
    assert status == 0
    assert "acyclic [Writer] ; (wr | ww | rw) ; [Writer] as order-of-writers" in out
    assert "delete.start insert delete.commit" in out


@pytest.mark.slow
def test_demo_without_spark_writes_a_report(call, tmp_path):
    status, out, _ = call("demo", "--no-spark", "--out", tmp_path / "out", "--json")
    document = json.loads(out)
    assert status == 0
    assert [s["transactions"] for s in document["separations"]] == [2, 3]
    text = (tmp_path / "out" / "report.html").read_text()
    assert text.startswith("<!doctype html>")
    assert "No serial order of the writers produces the table at version 3." in text


def test_a_limit_ends_the_demo_with_what_was_found(call, tmp_path):
    status, out, err = call("demo", "--out", tmp_path / "out", "--time", 0, "--json")
    document = json.loads(out)
    assert (status, [s["found"] for s in document["separations"]]) == (3, [None, None])
    assert document["ended"] == document["missing"] == "the time limit of 0 s ended it"
    assert "the time limit of 0 s ended it; the remaining searches and replays are unknown" in err
    assert (tmp_path / "out" / "report.html").is_file()


def test_a_limit_ends_an_installation(call):
    slow = replace(engine_named("model"), name="slow", install=lambda: sleep(60))
    with ENGINES.offered(slow):
        status, out, err = call("install", "slow", "--time", 0.2)
    assert (status, out) == (3, "")
    assert "the time limit of 0.2 s ended it" in err


@pytest.mark.slow
@pytest.mark.parametrize("dies", [0, 3], ids=["at its start", "at its third replay"])
def test_demo_keeps_what_it_found_where_delta_cannot_be_had(call, tmp_path, monkeypatch, dies):
    """Here the model stands in for the engine, as long as that lives."""
    says = "the Python package pyspark is not installed; pip install 'isolitmus[spark]' installs it"
    left = dies

    @contextmanager
    def engine(name):
        def carry(litmus, spec):
            nonlocal left
            left -= 1
            if not left:
                raise EngineUnavailable(says)
            return replace(model(litmus, spec), engine_version="an engine")

        with open_engine("model") as model:
            if name == "delta" and not dies:
                raise EngineUnavailable(says)
            yield carry if name == "delta" else model

    monkeypatch.setattr("isolitmus.cli.demo.open_engine", engine)
    status, out, err = call("demo", "--out", tmp_path / "out")
    assert (status, err) == (4, "")
    assert out.count(says) == 1
    assert out.count(": as predicted.") == (2 if dies else 0)
    expected = (
        "As predicted: every step of 2 runs on real Delta; 2 more were only predicted ("
        if dies
        else "Predicted: 4 runs; none was replayed ("
    )
    assert expected + says in out
    text = (tmp_path / "out" / "report.html").read_text()
    assert html.escape(expected + says).replace("&#x27;", "&#39;") in text
    assert "No serial order of the writers produces the table at version 3." in text
    assert len(list((tmp_path / "out").glob("*.toml"))) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["separate", "serialisable", "x"], "unknown level or protocol 'serialisable'; did you mean 'serializable'?"),
        (["separate", "serializable", "log-serializable", "--universe", "tabel"], "unknown scope 'tabel'; did you mean 'table'?"),
        (["separate", "serializable", "log-serializable", "--transactions", "3..2"], "--transactions is '3..2'; write N or N..M, from 1 and ascending"),
        (["separate", "serializable", "log-serializable", "--transactions", "many"], "--transactions is 'many'; write N or N..M"),
        (["run", "reordr"], "unknown litmus test 'reordr'; did you mean 'reorder'?"),
        (["run", "reorder", "--engine", "dleta"], "unknown engine 'dleta'; did you mean 'delta'?"),
        (["run", "reorder", "--protocol", "serializable"], "'serializable' is a level, and a protocol is expected; did you mean 'delta-serializable'?"),
        (["run", "missing.toml"], "cannot read missing.toml: No such file or directory"),
        (["run", "history-write-skew"], "an abstract history, which no engine can run; use isolitmus check"),
        (["check", "history-write-skew", "--level", "log-serializable"], "log-serializable needs log, which this history does not have"),
        (["check", "reorder", "--level", ","], "--level is empty"),
        (["show", "levles"], "unknown name 'levles'; did you mean 'levels'?"),
    ],
)  # fmt: skip
def test_bad_input_is_one_message_and_status_2(call, words, message):
    status, out, err = call(*words)
    assert status == 2
    assert out == ""
    assert err.startswith("isolitmus: ")
    assert message in err


@pytest.mark.slow
def test_help_imports_no_verb():
    script = (
        "import sys; sys.argv = ['isolitmus', '--help']\nfrom isolitmus.cli.main import main\ntry:"
        " main()\nexcept SystemExit: pass\nmine = {name for name in sys.modules if"
        " name.startswith('isolitmus.')}\nmine -= {'isolitmus.cli', *('isolitmus.cli.' + name for"
        " name in ('main', 'given', 'usage'))}\nmine -= {'isolitmus.model',"
        " 'isolitmus.model.lazy_exports', 'isolitmus.model.errors', 'isolitmus.model.budget',"
        " 'isolitmus.model.plugins', 'isolitmus.model.registry'}\nassert not mine, mine\nheavy ="
        " {'pyspark', 'sqlglot', 'duckdb', 'lark', 'networkx', 'z3', 'rich', 'jinja2'}\nassert not"
        " heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "separate" in done.stdout


@pytest.mark.slow
def test_what_separates_is_carried_out_right_away(call):
    words = ("separate", "delta-write-serializable", "log-serializable", "--engine", "model")
    status, out, _ = call(*words)
    assert status == 1
    assert "-not-log-serializable on the model under delta-write-serializable: passed\n" in out
    assert out.count(": passed\n") == 4
    assert "\n4 of 4 runs passed.\n" in out
    status, out, _ = call(*words, "--json")
    runs = json.loads(out)["runs"]
    assert status == 1
    assert {run["expected"] for run in runs} == {"met"}
    assert {run["protocol"]: run["serial"] for run in runs}["delta-serializable"] == ["insert"]


@pytest.mark.slow
def test_histories_that_look_abstract_are_looked_for_among_statements(call):
    status, out, _ = call("separate", "write-serializable", "serializable", "--engine", "model")
    assert (status, "in search space 'abstract'" in out) == (1, False)
    assert "runs passed.\n" in out


@pytest.mark.slow
def test_no_engine_is_started_if_nothing_was_found(call, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))  # no Java there
    monkeypatch.delenv("JAVA_HOME", raising=False)
    words = ("separate", "log-serializable", "write-serializable", "--transactions", "2")
    status, out, err = call(*words, "--engine", "delta")
    assert (status, err) == (0, "")
    assert out.startswith("No counterexample ")
    status, out, _ = call(*words, "--engine", "delta", "--json")
    assert (status, json.loads(out)["runs"]) == (0, [])


@pytest.mark.slow
def test_what_was_found_is_printed_and_saved_before_an_engine_cannot_be_started(
    call, monkeypatch, tmp_path
):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    saved = tmp_path / "found.toml"
    words = ("delta-write-serializable", "log-serializable", "--save", saved, "--engine", "delta")
    status, out, err = call("separate", *words)
    assert status == 4
    assert out.startswith("Found: 2 transactions that delta-write-serializable admits")
    assert saved.exists()
    assert err.startswith("isolitmus: PySpark with Delta needs Java 17 or 21")


@pytest.mark.slow
def test_a_portrait_is_carried_out(call):
    status, out, _ = call("show", "delta-write-serializable-repaired", "--engine", "model")
    assert status == 0
    assert out.endswith(" runs passed.\n")
    status, out, _ = call(
        "show", "delta-write-serializable-repaired", "--engine", "model", "--json"
    )
    (shown,) = json.loads(out)
    assert status == 0
    assert [r["litmus"] for r in shown["replays"]] == [
        f"delta-write-serializable-repaired-needless-Concurrent{kind}Exception"
        for kind in ("Append", "DeleteRead")
    ]


@pytest.mark.slow
def test_a_sweep_s_smallest_are_carried_out(call):
    words = ("sweep", "two-partitions", "--transactions", "2", "--engine", "model")
    status, out, _ = call(*words)
    assert status == 1
    assert out.endswith("4 of 4 runs passed.\n")
    status, out, _ = call(*words, "--json")
    (carried,) = json.loads(out)["replays"]
    assert carried["litmus"] == "two-partitions-2-delta-write-serializable-not-log-serializable"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["separate", "serializable", "causal", "--engine", "dleta"], "unknown engine 'dleta'; did you mean 'delta'?"),
        (["separate", "serializable", "causal", "--engine", ","], "--engine is empty; name at least one engine"),
        (["separate", "serializable", "causal", "--universe", "abstract", "--engine", "model"], "and search space 'abstract' has none; try --universe table"),
        (["show", "reorder", "--engine", "model"], "name protocols only, and run litmus tests with isolitmus run"),
        (["show", "--engine", "model"], "name protocols only"),
        (["show", "delta-serializable", "--engine", "dleta"], "unknown engine 'dleta'"),
        (["sweep", "two-partitions", "--engine", "dleta"], "unknown engine 'dleta'"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)  # fmt: skip
def test_what_cannot_be_carried_out_is_one_sentence(call, words, message):
    status, out, err = call(*words)
    assert (status, out) == (2, "")
    assert message in err


@pytest.mark.slow
def test_where_nothing_is_assumed_nothing_is_said_of_that(call):
    status, out, _ = call("separate", "serializable", "snapshot-isolation", "--unbounded")
    assert status == 0
    assert "Scope: search space 'table'" in out
    assert "Assumptions" not in out


@pytest.mark.slow
def test_a_compiled_file_that_is_cut_short_is_one_sentence(tmp_path):
    """Python says of it only EOFError, and typer takes that for who ended the input."""
    command = [sys.executable, "-m", "isolitmus", "show", "serializable"]
    elsewhere = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path)}
    elsewhere.pop("PYTHONDONTWRITEBYTECODE", None)
    subprocess.run(command, env=elsewhere, capture_output=True, check=True)
    (compiled,) = (p for p in tmp_path.rglob("show.*.pyc") if p.parent.name == "cli")
    compiled.write_bytes(compiled.read_bytes()[:100])
    done = subprocess.run(command, env=elsewhere, capture_output=True, check=False, text=True)
    assert (done.returncode, done.stdout) == (3, "")
    assert "a file that Python compiled is cut short" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_what_only_the_catalogue_has_is_no_part_of_the_answer(call):
    asked = "separate", "causal", "read-committed", "--transactions", "2"
    status, out, _ = call(*asked)
    assert (status, out.splitlines()[0].partition(" ")[0]) == (0, "No")
    assert "read-committed forbids history-write-cycle of the catalogue (2 transactions):" in out
    status, out, _ = call(*asked, "--no-catalogue")
    assert status == 0
    assert "history-write-cycle" not in out
    for more, ships in (((), "history-write-cycle"), (("--no-catalogue",), None)):
        document = json.loads(call(*asked, "--json", *more)[1])
        found = document["found"], document["ships"], document["transactions"], document["litmus"]
        assert found == (False, ships, None, None)
