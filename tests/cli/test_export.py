"""``isolitmus export``: what is written is Python that says what the litmus test says; what cannot
be is refused.
"""

import ast
import builtins
import json
import keyword

import pytest
from case_checks import sample, sampled

from isolitmus.checker.execution.run_result import run
from isolitmus.conformance.python_export import export_tests
from isolitmus.model.litmus import Litmus
from isolitmus.model.toml_text import quoted
from isolitmus.specs import litmus, protocol
from isolitmus.specs.files.catalogue import litmus_names
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.sql.parameters import spark_literal

LEVELS = ("serializable", "snapshot_isolation", "write_serializable")
SERIALIZABLE, WEAK = protocol("delta-serializable"), protocol("delta-write-serializable")


@pytest.mark.slow
def test_both_files_are_written_and_said(call, tmp_path):
    tests, script = tmp_path / "test_reorder.py", tmp_path / "reorder.py"
    status, out, err = call("export", "reorder", "--pytest", tests, "--pyspark", script)
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        f"{tests}: 3 tests; run it with pytest {tests}",
        f"{script}: 3 tests; run it with python {script}",
    ]
    functions = [
        node.name for node in ast.parse(tests.read_text()).body if isinstance(node, ast.FunctionDef)
    ]
    assert functions == [
        "rows",
        *(f"test_reorder_at_{level}" for level in LEVELS),
    ]
    assert "isolitmus" not in script.read_text().split('"""', 2)[2]


@pytest.mark.slow
def test_what_separate_saves_is_exported(call, tmp_path):
    found, tests = tmp_path / "found.toml", tmp_path / "test_found.py"
    assert call("separate", "delta-write-serializable", "log-serializable", "--save", found)[0] == 1
    assert call("export", found, "--pytest", tests)[0] == 0
    assert (
        "def test_found_at_write_serializable(delta_spark, delta_race, delta_level):"
        in tests.read_text()
    )


@pytest.mark.slow
@pytest.mark.parametrize("form", ["pytest", "pyspark"])
@sampled
def test_what_is_written_says_what_the_litmus_test_says(form, seed, whole):
    """Every statement, every outcome and every row of whatever can be written so."""
    tests = [test for test in map(litmus, litmus_names()) if isinstance(test, Litmus)]
    count = 0
    for test in sample([t for t in tests if not t.raw and t.format == "delta"], seed, whole):
        try:
            text = export_tests([(test, SERIALIZABLE)], form)
        except Exception as error:  # noqa: BLE001
            assert str(error).startswith(test.name)
            continue
        count += 1
        said = {node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)}
        assert {t.sql for t in (*test.init, *test.transactions.values())} <= said
    assert count > (75 if whole else 10)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("reorder",),
            "no file to write; add --pytest FILE, --pyspark FILE, --elle FILE or --awdit FILE",
        ),
        (("nobody", "--pytest", "FILE"), "unknown litmus test 'nobody'"),
        (
            ("reorder", "--pytest", "FILE", "--protocol", "delta-rs-serializable"),
            "does not implement",
        ),
        (("scan-twice", "--pytest", "FILE"), "format locking is not exported"),
        (("history-write-skew", "--pytest", "FILE"), "an abstract history cannot be exported"),
        (("delete-delete", "--pyspark", "FILE"), "raw transactions are not exported"),
        (("session-order", "--pytest", "FILE"), "has more than a statement and its confs"),
        (("restore-loses", "--pytest", "FILE"), "has a placeholder"),
        (
            ("create-beside-create", "--pytest", "FILE"),
            "not a Delta table when the schedule starts",
        ),
        (
            ("vacuum-beside-writers", "--pyspark", "FILE"),
            "makes several commits, which only --pytest",
        ),
        (
            ("reorder", "reorder.toml", "--pytest", "FILE"),
            "two tests would have the name reorder_at_",
        ),
        (("wrong.toml", "--pytest", "FILE"), "fails its own expectation under delta-serializable"),
    ],
)
def test_what_cannot_be_exported_is_refused(call, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    text = str(litmus("reorder"))
    (tmp_path / "reorder.toml").write_text(text)
    wrong = '[expect.delta-serializable]\noutcome = { delete = "committed" }\n'
    (tmp_path / "wrong.toml").write_text(text[: text.index("[expect")] + wrong)
    status, out, err = call("export", *words)
    assert (status, out) == (2, "")
    assert said in err
    assert not (tmp_path / "FILE").exists()


@pytest.mark.slow
@pytest.mark.parametrize("form", ["elle", "awdit"])
def test_a_history_is_written_for_another_checker(call, tmp_path, form):
    file = str(tmp_path / "h.txt")
    status, out, err = call("export", "history-long-fork", f"--{form}", file)
    assert (status, err) == (0, "")
    assert f"check it with isolitmus check {file}" in out.replace("\n  ", " ")
    status, out, _ = call("check", file, "--level", "causal,prefix-consistency", "--json")
    (found,) = json.loads(out)
    assert {name: of["verdict"] for name, of in found["levels"].items()} == {
        "causal": "allowed",
        "prefix-consistency": "forbidden",
    }
    status, out, _ = call("export", "history-long-fork", f"--{form}", file, "--json")
    (written,) = json.loads(out)["written"]
    assert written == {"file": file, "form": form, "tests": [{"litmus": "history-long-fork"}]}


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("reorder",), "reorder has statements on tables; the formats of histories have reads and"),
        (("history-phantom",), "history-phantom: T1 reads by a predicate"),
        (
            ("history-long-fork", "history-write-skew"),
            "--elle writes one history, and 2 were given",
        ),
        (("history-log-fork",), "history-log-fork"),
    ],
)
def test_what_is_no_history_of_another_checker_is_refused(call, tmp_path, names, said):
    status, _, err = call("export", *names, "--elle", str(tmp_path / "h.edn"))
    assert (status, err.count("\n")) == (2, 1)
    assert said in err
    assert not (tmp_path / "h.edn").exists()


def test_a_found_history_is_printed_for_another_checker(call, tmp_path):
    question = ("separate", "causal", "prefix-consistency", "--universe", "abstract")
    for form in ("elle", "awdit"):
        status, out, err = call(*question, "--as", form)
        assert (status, err) == (1, "")
        (tmp_path / "h.txt").write_text(out, "utf-8")
        levels = ("--level", "causal,prefix-consistency", "--json")
        _, found, _ = call("check", str(tmp_path / "h.txt"), *levels)
        said = {name: of["verdict"] for name, of in json.loads(found)[0]["levels"].items()}
        assert said == {"causal": "allowed", "prefix-consistency": "forbidden"}
    status, _, err = call(*question, "--as", "elle", "--both")
    assert (status, "--as elle writes one thing, and 2 were asked for" in err) == (2, True)
    none = ("separate", "serializable", "causal", *question[3:], "--transactions", "1")
    status, out, err = call(*none, "--as", "elle")
    assert (status, out, "nothing to write: no history was found" in err) == (0, "", True)


def test_what_is_refused_does_not_keep_others_from_being_written(call, tmp_path):
    file = tmp_path / "test_some.py"
    status, out, err = call("export", "reorder", "session-order", "--pytest", file, "--json")
    assert (status, err.count("session-order")) == (2, 1)
    document = json.loads(out)
    assert [test["litmus"] for test in document["written"][0]["tests"]] == ["reorder"] * 3
    assert {refused["name"] for refused in document["refused"]} == {"session-order"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["run", "rows", "spark", "held", "whole", "class", "date"])
def test_names_of_transactions_are_none_that_python_or_the_file_has(name):
    test = litmus("reorder")
    statement = test.transactions["insert"]
    changed = Litmus(
        "named", "", "", test.tables, test.init, {name: statement},
        type(test.schedule).parse(name, {name}), format=test.format,
    )  # fmt: skip
    for form in ("pytest", "pyspark"):
        tree = ast.parse(export_tests([(changed, WEAK)], form))
        nodes = [*ast.walk(tree)]
        assignments = [node for node in nodes if isinstance(node, ast.Assign)]
        (own,) = [one for one in assignments if statement.sql in ast.unparse(one.value)]
        others = {ast.unparse(one.targets[0]) for one in assignments if one is not own}
        defined = {n.name for n in nodes if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
        imported = {
            (alias.asname or alias.name).partition(".")[0]
            for node in nodes
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for alias in node.names
        }
        given = {node.arg for node in nodes if isinstance(node, ast.arg)}
        taken = {*others, *defined, *imported, *given, *dir(builtins), *keyword.kwlist}
        assert own.targets[0].id.startswith(name)
        assert own.targets[0].id not in taken


HOSTILE = [
    "a\nimport os\nos._exit(3)", "\rimport os", "\x0cimport os", "\x85import os", "\u2028import os", '"""\nimport os', "'''\nimport os",
    "\\", '\\"', "\x1b[31m", "\u202eTJ", "\x00", "\ufeff", "{{ 7 * 7 }}{% raw %}", "</script><svg onload=x>", "\\input{x}", '"];',
]  # fmt: skip


def shape(text):
    """The statements of a file in Python without the texts in them."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree)


def with_text(text):
    """A litmus test that has a text wherever a file may have any."""
    return read_litmus(
        f"""
        title      = {quoted(text)}
        source     = {quoted(text)}
        tags       = [{quoted(text)}]
        schedule   = "a.start r a.commit"
        [table]
        columns    = "id INT, s STRING"
        properties = {{ comment = {quoted(text)}, {quoted("x." + text)} = "y" }}
        init       = [{quoted(f"INSERT INTO t VALUES (1, {spark_literal(text)})")}]
        [transactions]
        a          = {quoted(f"INSERT INTO t VALUES (2, {spark_literal(text)})")}
        r          = "SELECT s FROM t"
        """,
        "2-naïve²",
    )


@pytest.mark.parametrize("form", ["pytest", "pyspark"])
def test_no_text_of_a_file_becomes_code(form):
    plain = shape(export_tests([(with_text("T"), SERIALIZABLE)], form))
    for text in HOSTILE:
        written = export_tests([(with_text(text), SERIALIZABLE)], form)
        assert shape(written) == plain, text
        assert written.replace("\n", "").isprintable()
        said = [n.value for n in ast.walk(ast.parse(written)) if isinstance(n, ast.Constant)]
        assert any(text in value for value in said if isinstance(value, str))


def test_rows_of_every_type_are_what_the_model_says():
    test = read_litmus(
        """
        title    = "Values"
        schedule = "r"
        [table]
        columns  = "d DATE, at TIMESTAMP, n DECIMAL(5, 2), x DOUBLE, s STRING, b BOOLEAN"
        init     = ["INSERT INTO t VALUES (DATE '2026-01-02', TIMESTAMP '2026-01-02 10:00:01', 1.50, CAST(1 AS DOUBLE), '2', TRUE)"]
        [transactions]
        r        = "SELECT * FROM t"
        """,
        "values",
    )
    tree = ast.parse(export_tests([(test, SERIALIZABLE)], "pytest"))
    names = {}
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    exec(compile(ast.Module(imports, []), "imports", "exec"), names)
    compared = [node for node in ast.walk(tree) if isinstance(node, ast.Compare)]
    seen = run(test, SERIALIZABLE).run
    rows = [eval(ast.unparse(node.comparators[0]), names) for node in compared]
    assert rows == [[*seen.transactions["r"].rows], [*seen.tables["t"]]]
