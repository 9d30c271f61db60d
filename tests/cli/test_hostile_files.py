"""Files that never end, are too large or too deep, or speak to the terminal: refused with a
sentence, soon.
"""

import io
import json
import os
from pathlib import Path

import pytest

from isolitmus.checker.render.timeline import marked_up
from isolitmus.cli import output
from isolitmus.model import History, HistoryTest
from isolitmus.model.display import ReadableRepr
from isolitmus.model.errors import LogError, SpecError, printable
from isolitmus.specs.disk import input_files as limits
from isolitmus.specs.disk.input_files import paths_below, read_lines
from isolitmus.specs.disk.output_files import write_whole
from isolitmus.specs.files.catalogue import matrix
from isolitmus.specs.files.evidence_files import ExplorationEvidence, MatrixEvidence
from isolitmus.specs.files.spec_catalogue import protocols, spec
from isolitmus.specs.files.spec_reader import read_spec

PAIR = (
    'title = "T"\nschedule = "{schedule}"\n[table]\ncolumns = "{columns}"\ninit ='
    " {init}\n[transactions]\n{text}\n"
)
ROW = ["INSERT INTO t VALUES (1)"]


@pytest.fixture
def refusal(call, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def refusal(*words):
        status, out, err = call(*words)
        assert (status, out) == (2, "")
        return err.removeprefix("isolitmus: ").rstrip("\n")

    return refusal


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["run", "x.toml"], ["sweep", "x.toml"], ["matrix", "x.toml"], ["check", "reorder", "--level", "x.cat"],
        ["check", "reorder", "--level", "inner.cat"], ["explore", "--evidence", "x.toml"],
        ["matrix", "--engine", "delta", "--evidence", "x.toml"],
    ],
)  # fmt: skip
@pytest.mark.parametrize("make", [os.mkfifo, lambda name: Path(name).symlink_to("/dev/zero")])
def test_a_pipe_and_a_device_are_no_files(refusal, words, make):
    Path("inner.cat").write_text('"T" include "x.cat" acyclic wr as x')
    make("x.toml")
    make("x.cat")
    said = refusal(*words).split("\n")[0]
    linked = Path("x.toml").is_symlink()
    if linked and "--evidence" in words:
        assert said.endswith("through which nothing is written; remove it, or name another file")
    elif linked and "inner.cat" in words:
        assert said.endswith("where reading ends")
    else:
        assert said.endswith("it is not a regular file")


@pytest.mark.parametrize(
    "name", [f"{1:020}.json", "_last_checkpoint", f"{1:020}.checkpoint.parquet"]
)
def test_a_log_with_a_pipe_in_it(refusal, delta, name):
    table = delta.table([delta.info("WRITE", 0, True)], delta.append(1, "f"))
    path = table / "_delta_log" / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    if name.endswith("parquet"):
        (table / "_delta_log" / f"{0:020}.json").unlink()
    assert refusal("audit", table) == f"cannot read {path}: it is not a regular file"


def test_a_file_as_large_as_memory(refusal, tmp_path, monkeypatch):
    for name in ("large.toml", "large.cat"):
        with Path(tmp_path, name).open("wb") as file:
            file.truncate(2**40)  # takes no room
    assert (
        refusal("run", "large.toml") == "cannot read large.toml: it is larger than 1,048,576 bytes"
    )
    assert refusal("check", "reorder", "--level", "large.cat").startswith(
        "cannot read large.cat: it is larger"
    )
    monkeypatch.setattr("isolitmus.specs.disk.input_files.LINE", 8)
    monkeypatch.setattr("isolitmus.specs.disk.input_files.SMALL", 4)
    Path("lines.json").write_bytes(b"12345678\n1\xff\n")
    with pytest.raises(LogError, match=r"a line in it is longer than 8 bytes"):
        list(read_lines(Path("lines.json"), LogError))
    Path("lines.json").write_bytes(b"1234567\n1\xff\n")
    for small in (4, 64):
        monkeypatch.setattr("isolitmus.specs.disk.input_files.SMALL", small)
        with pytest.raises(LogError, match=r"it is not UTF-8 text \(byte 10\)"):
            list(read_lines(Path("lines.json"), LogError))
    Path("lines.json").write_bytes(b"1\r\n\n2\n")
    for small in (4, 64):
        monkeypatch.setattr("isolitmus.specs.disk.input_files.SMALL", small)
        assert list(read_lines(Path("lines.json"), LogError)) == ["1", "", "2"]


def test_a_name_that_no_file_can_have(refusal):
    assert "File name too long" in refusal("explore", "--evidence", "x" * 300)
    assert refusal("run", "a\0.toml") == r"cannot read a\x00.toml: embedded null byte"


@pytest.mark.parametrize("name", ["a\0b", "loop"])
def test_a_path_that_leads_nowhere_is_never_written(refusal, name):
    Path("loop").symlink_to("loop")
    for words in (
        ["compare", "serializable", "causal", "--html", name],
        ["sweep", "two-partitions", "--spark", "--out", name],
        ["report", name, "--html", "page.html"],
        ["predict", "shop", "--table", name],
    ):
        assert any(why in refusal(*words) for why in (printable(name), "embedded null byte"))


def test_half_a_sign_is_written_and_read(call, tmp_path):
    write_whole(tmp_path / "page", "a\udcffb")
    assert (tmp_path / "page").read_text("utf-8") == "a\\udcffb"
    pasted = tmp_path / "pasted"
    pasted.write_text("ConcurrentAppendException: \u00e4", "utf-16")
    assert call("explain", pasted)[0] == 0
    pasted.write_bytes(b"ConcurrentAppendException: \xe4")
    assert call("explain", pasted)[0] == 0


def test_what_is_gone_meanwhile_is_passed_over(monkeypatch, tmp_path):
    def gone(_):
        raise FileNotFoundError

    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "x.toml").touch()
    listed = os.scandir
    monkeypatch.setattr(
        os, "scandir", lambda path: (gone if "a" in str(path)[-1:] else listed)(path)
    )
    assert paths_below(tmp_path, ".toml") == [tmp_path / "x.toml"]


def test_json_that_is_deeper_than_the_stack(refusal, delta):
    for deep in ("[" * 100_000, '{"a":' * 300 + "1" + "}" * 300):
        table = delta.table(delta.append(0, "f"), name=f"t{len(deep)}")
        commit = table / "_delta_log" / f"{1:020}.json"
        commit.write_text(f'{{"commitInfo": {deep}}}\n')
        assert "is not an action (no JSON)" in refusal("audit", table)
        commit.write_text(json.dumps({"add": {"path": "f", "partitionValues": {"part": {"a": 1}}}}))
        assert "partitionValues is {'part': {'a': 1}}; expected an object of strings" in refusal(
            "audit", table
        )
        commit.unlink()
        (table / "_delta_log" / "_last_checkpoint").write_text(deep)


# Specs


def chain(n, of):
    for k in range(n):
        Path(f"c{k}.cat").write_text(of(k))


@pytest.mark.slow
def test_chains_and_webs_of_includes(refusal):
    chain(1200, lambda k: f'{chr(34) * 2 if not k else ""} include "c{k + 1}.cat"')
    assert "a spec includes at most 100 files" in refusal("check", "reorder", "--level", "c0.cat")
    web = [f'include "c{k}.cat"' for k in range(300)]
    chain(300, lambda k: " ".join(['""' if not k else "", *web[:k], *web[k + 1 :]]))
    assert "a spec includes at most 100 files" in refusal("check", "reorder", "--level", "c0.cat")


def test_what_is_included_many_times_is_looked_for_once(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "isolitmus.specs.files.spec_reader.is_there",
        lambda path: asked.append(path) or path.exists(),
    )
    (tmp_path / "a.cat").write_text('"T" ' + 'include "b.cat" ' * 300 + "acyclic wr as x")
    (tmp_path / "b.cat").write_text('include "a.cat" ' * 300)
    assert spec(str(tmp_path / "a.cat")).axioms
    assert len(asked) == 2


def test_lets_that_double():
    lets = "\n".join(f"let a{k} = a{k - 1} ; a{k - 1}" for k in range(1, 41))
    with pytest.raises(SpecError, match=r"t:12:11: this has more than 2,000 names, lets unfolded"):
        read_spec(f'"T" let a0 = wr\n{lets}\nacyclic a40 as x', "t")


# Litmus files


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schedule", "columns", "init", "text", "message"),
    [
        (" ".join(f"a{k}" for k in range(500)), "id INT", [], "\n".join(f'a{k} = "SELECT id FROM t"' for k in range(500)), "x.toml:6: transactions has 500 entries; at most 100 are read"),
        ("a", "id INT", ROW * 5000, 'a = "DELETE FROM t"', "x.toml:5: table.init has 5,000 entries; at most 1,000 are read"),
        ("a", "id INT", ROW * 200, 'a = "DELETE FROM t"', "x.toml:5: table.init has 200 statements; at most 100 are read"),
        ("a", ", ".join(f"c{k} INT" for k in range(101)), [], 'a = "DELETE FROM t"', "x.toml:4: table.columns has 101 columns; at most 100 are read"),
        ("a", "id INT", ["INSERT INTO t VALUES " + ", ".join(f"({k})" for k in range(600))], 'a = "DELETE FROM t"', "x: table t has 600 rows after WRITE; at most 500 are modelled"),
        ("a", "id INT", ROW + ["INSERT INTO t SELECT * FROM t"] * 60, 'a = "DELETE FROM t"', "x: table t has 512 rows after WRITE; at most 500 are modelled"),
        ("a", "id INT", [], 'a = "MERGE INTO t USING (SELECT 1 AS id) s ON t.id = s.id' + " WHEN MATCHED AND t.id > 5 THEN UPDATE SET id = 2" * 300 + '"', "x.toml:7, transaction a:1:1: a MERGE with more than 100 clauses is outside the SQL"),
    ],
    ids=["transactions", "init", "statements", "columns", "rows", "doubling", "clauses"],
)  # fmt: skip
def test_litmus_files_without_measure(refusal, schedule, columns, init, text, message):  # noqa: PLR0917
    text = PAIR.format(schedule=schedule, columns=columns, init=json.dumps(init), text=text)
    Path("x.toml").write_text(text)
    assert refusal("run", "x.toml").startswith(message)


def test_scopes_with_ways_without_measure(refusal):
    table = 'columns = "id INT"\ninit = [' + "[], " * 20 + "]\n"
    tables = "".join(f"[tables.t{k}]\n{table}" for k in range(9))
    Path("x.toml").write_text(f'title = "T"\n{tables}[scope]\ntransactions = 1\nstatements = []\n')
    assert refusal("sweep", "x.toml").startswith(
        "x.toml:7: tables.t1.init has 400 alternatives; at most 100"
    )


def test_a_history_without_transactions(call, tmp_path):
    path = tmp_path / "none.toml"
    path.write_text('title = "None"\n[history]\n')
    assert call("show", path)[0] == 0
    assert call("check", path, "--level", "serializable")[0] == 0


def test_a_column_that_is_set_by_its_full_name(call, tmp_path):
    text = PAIR.format(
        schedule="a", columns="id INT", init=json.dumps(ROW), text='a = "UPDATE t SET t.id = 7"'
    )
    (tmp_path / "x.toml").write_text(text)
    status, out, _ = call("run", tmp_path / "x.toml")
    assert status == 0
    assert "t at the end: (7)" in out


# Evidence


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("grids = 3", "grids is 3; expected a table"),
        ("grids = { delta-serializable = 3 }", "grids.delta-serializable is 3; expected a table"),
        ("grids = {}\ndifferences = 3", "differences is 3; expected a list"),
        ("grids = {}\ndifferences = [3]", "differences[1] is 3; expected a table"),
        ("grids = {}\ndifferences = [{ protocol = 'p', a = 'x' }]", "[differences[1]] needs 'winner' (a string)"),
        ("grids = {}\ndifferences = [{ a = 'x', winner = 'y', layout = [], protocol = 'p' }]", "differences[1].layout is []; expected a string"),
        ("grids = {}\ndifferences = [{ a = 'x', winner = 'y', layout = 'l', protocol = 'p', said = 3 }]", "differences[1] is of a case that the grids do not have"),
    ],
)  # fmt: skip
def test_evidence_of_another_form(tmp_path, text, message):
    pairs, path = matrix("pairs"), tmp_path / "e.toml"
    path.write_text(f'matrix = "pairs"\ntext = "{pairs.digest}"\nengine = "e"\n{text}\n')
    with pytest.raises(Exception, match=r"e\.toml:") as refused:
        MatrixEvidence.read(path, pairs, protocols())
    assert message in str(refused.value)
    path.write_text('engine = "e"\nbatches = [[1]]')
    with pytest.raises(Exception, match=r"batches\[1\] is \[1\]; expected a table"):
        ExplorationEvidence.read(path, ("tables", "raw"))


# What a terminal obeys


@pytest.mark.slow
def test_what_a_file_says_is_never_obeyed(call, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    bad = r"\u001b[31mred\u001b[0m\nisolitmus: all is well \u202e"
    text = PAIR.format(
        schedule="a",
        columns="id INT, s STRING",
        init="[]",
        text=f"a = \"INSERT INTO t VALUES (1, '{bad}')\"",
    )
    Path("x.toml").write_text(text.replace('"T"', f'"{bad}"'))
    matrix = '[tables.t]\ncolumns = "id INT"\n[layouts.one]\nwinner = 0\n[statements]\n'
    Path("m.toml").write_text(f'title = "M"\n{matrix}"{bad}" = "DELETE FROM t"\n')
    Path("c.cat").write_text('"T\x1b[31m"\nacyclic wr as x (* \x9b31m *)')
    said = [
        call(*words.split())
        for words in (
            "run x.toml", "show x.toml", "check x.toml --level serializable", "matrix m.toml", "show c.cat",
            "run x.toml --json", "show c.cat --json", "matrix m.toml --json",
        )
    ]  # fmt: skip
    for status, out, err in said:
        assert status == 0, err
        assert err == ""
        assert out.replace("\n", "").isprintable()
        assert "\nisolitmus: all is well" not in out
    assert all(json.loads(out) for _, out, _ in said[5:])
    assert json.loads(said[6][1])[0]["title"] == "T\x1b[31m"
    status, _, err = call("run", "reor\x1b[31m\nder")
    assert err.startswith(r"isolitmus: unknown litmus test 'reor\x1b[31m der'; did you mean")


def test_progress_shows_markup_as_it_stands(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with output.progress("audit [/x] [red]\x1b[31m") as tell:
        tell("[/bold]\n")
    shown = terminal.getvalue()
    assert "audit [/x] [red]" in shown
    assert "[/bold]" in shown
    assert "\x1b[31m" not in shown


@pytest.mark.slow
def test_a_message_never_repeats_more_than_a_line(refusal):
    long = "x" * 100_000
    Path("x.toml").write_text(
        PAIR.format(schedule=long, columns="id INT", init="[]", text='a = "DELETE FROM t"')
    )
    Path("c.cat").write_text(f'"T" acyclic {long} as x')
    for words in (["run", "x.toml"], ["run", long], ["check", "reorder", "--level", "c.cat"], ["show", "reorder", f"--{long}"]):  # fmt: skip
        said = refusal(*words)
        assert len(said) < 3 * limits.DEEPEST + 700
        assert all(len(line) < 700 for line in said.split("\n"))


def test_a_page_shows_what_a_browser_would_obey(call, monkeypatch, tmp_path):
    """Directions, controls and ends of lines of Unicode, in pages, pictures and a notebook."""
    monkeypatch.chdir(tmp_path)
    bad = r"a\u202eb\u001b[31m\u2028c\u0000d\u2066"
    sql = f"INSERT INTO t VALUES (1, '{bad}')".replace(r"\u0000", "")
    ddl = "CREATE TABLE t (id INT, s STRING) USING delta"
    Path("w.toml").write_text(f'title = "{bad}"\nddl = "{ddl}"\n[jobs.a]\nsql = "{sql}"\n')
    assert call("predict", "w.toml", "--html", "p.html", "--cores", "1")[0] == 0
    page = Path("p.html").read_text("utf-8")
    assert r"a\u202eb\x1b[31m\u2028c\x00d\u2066" in page
    told = HistoryTest("x", bad, "", History.parse("r1(x0) w1(x1)"))
    texts = [page, marked_up("a\u202eb"), Shown()._repr_html_(), told.history._repr_html_()]
    assert all(text.replace("\n", "").isprintable() for text in texts)


class Shown(ReadableRepr):
    def __repr__(self):
        return "a\u202eb"
