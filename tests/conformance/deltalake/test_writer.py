"""The engine deltalake: what it is told, what it refuses, and that delta-rs does what its protocols
say.

Of the catalogue on both releases see ``test_recorded_catalogue``.
"""

import re
from contextlib import ExitStack
from functools import cache
from itertools import product
from zipfile import ZipFile

import duckdb
import pytest
from case_checks import sample

from isolitmus.checker.execution.run_diff import run_differences
from isolitmus.checker.execution.run_result import RunResult, run
from isolitmus.conformance import deltalake
from isolitmus.conformance.deltalake import environment
from isolitmus.conformance.deltalake.engine import _DeltalakeReplay
from isolitmus.conformance.deltalake.environment import EngineError
from isolitmus.conformance.deltalake.writer import api_call
from isolitmus.model.delta.log import live_files
from isolitmus.model.errors import EngineUnavailable, Refused, UnknownName
from isolitmus.model.sql.schema import Column, Schema
from isolitmus.model.sql.values import sort_rows
from isolitmus.specs import litmus, protocol
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.logs.delta_log import commits_since
from isolitmus.specs.registries import engine_named
from isolitmus.specs.sql.statements import read_statement

T = Schema("t", (Column("id", "INT"), Column("part", "INT")), ("part",))
NEWEST = deltalake.RELEASES[0]


@pytest.fixture(scope="module")
def worker():
    """worker(release): a running one; a test that asks for one that is not installed is skipped."""
    with ExitStack() as stack:

        @cache
        def opened(release):
            return stack.enter_context(deltalake.open_worker(release))

        def ask(release):
            try:
                return opened(release)
            except EngineUnavailable as error:
                pytest.skip(str(error))

        yield ask


# What needs no environment


def test_what_is_not_installed_says_the_line_that_installs_it(tmp_path, monkeypatch, call):
    monkeypatch.setenv("ISOLITMUS_ENGINES", str(tmp_path))
    status, out, err = call("run", "reorder", "--engine", "deltalake")
    assert (status, out) == (4, "")
    assert "`isolitmus install deltalake-1.6.6`" in err


@pytest.mark.slow
def test_a_file_with_another_digest_is_not_installed(tmp_path, monkeypatch, call):
    monkeypatch.setenv("ISOLITMUS_ENGINES", str(tmp_path / "engines"))
    offered = tmp_path / "offered"
    offered.mkdir()
    with ZipFile(offered / "deltalake-1.6.6-py3-none-any.whl", "w") as wheel:
        wheel.writestr("deltalake/__init__.py", "raise SystemExit('it runs')")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(offered))
    status, out, err = call("install", "deltalake-1.6.6")
    assert (status, out) == (4, "")
    assert "was not installed: the SHA-256 of a downloaded file is not in wheels.txt" in err
    assert not [*(tmp_path / "engines").iterdir()]


def test_every_release_has_digests_of_all_that_it_installs():
    for release in deltalake.RELEASES:
        lines = environment.requirements(release).splitlines()
        pins = [line.split(" ")[0] for line in lines]
        assert pins == [f"deltalake=={release}", *environment.PINS]
        assert all(re.search(r"( --hash=sha256:[0-9a-f]{64})+$", line) for line in lines)


def test_a_release_that_is_not_known_is_refused(call):
    status, _, err = call("run", "reorder", "--engine", "deltalake-9.9.9")
    assert status == 2
    assert "unknown engine 'deltalake-9.9.9'" in err
    with pytest.raises(UnknownName, match="unknown engine 'deltalake-0'"):
        engine_named("deltalake-0")
    assert engine_named("deltalake-1.6.6") is engine_named("deltalake")


def test_a_protocol_of_another_engine_is_refused(call):
    status, _, err = call(
        "run", "reorder", "--engine", "deltalake", "--protocol", "delta-serializable"
    )
    assert status == 2
    assert "deltalake 1.6.6 does not implement the protocol 'delta-serializable'" in err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("DELETE FROM t WHERE t.PART = 0", {"do": "delete", "predicate": '"part" = 0'}),
        ("DELETE FROM t", {"do": "delete", "predicate": None}),
        ("TRUNCATE TABLE t", {"do": "delete", "predicate": None}),
        (
            "UPDATE t SET id = id + 1 WHERE part IN (0, 1)",
            {"do": "update", "sets": {"id": '"id" + 1'}, "predicate": '"part" IN (0, 1)'},
        ),
        (
            "OPTIMIZE t WHERE part = 0",
            {"do": "optimize", "partitions": [("part", "=", "0")], "zorder": []},
        ),
        ("OPTIMIZE t ZORDER BY (ID)", {"do": "optimize", "partitions": [], "zorder": ["id"]}),
    ],
)
def test_a_statement_becomes_a_call(sql, wanted):
    assert api_call(read_statement(sql, {"t": T}), {"t": T}, duckdb.connect()) == wanted


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "mode", "predicate", "rows"),
    [
        ("INSERT INTO t VALUES (7, 1)", "append", None, [[7, 1]]),
        ("INSERT INTO t SELECT count(*), 1 FROM t", "append", None, [[2, 1]]),
        ("INSERT OVERWRITE t SELECT id, part FROM t WHERE id > 1", "overwrite", None, [[2, 1]]),
        ("INSERT OVERWRITE t PARTITION (part = 0) VALUES (7)", "overwrite", '"part" = 0', [[7, 0]]),
        ("INSERT INTO t REPLACE WHERE id < 5 VALUES (3, 0)", "overwrite", '"id" < 5', [[3, 0]]),
    ],
)
def test_the_client_computes_the_rows_of_an_insert(sql, mode, predicate, rows):
    duck = duckdb.connect()
    duck.execute("CREATE TABLE t (id INT, part INT); INSERT INTO t VALUES (1, 0), (2, 1)")
    request = api_call(read_statement(sql, {"t": T}), {"t": T}, duck)
    assert (request["mode"], request["predicate"], request["rows"]) == (mode, predicate, rows)


def test_a_merge_keeps_its_clauses_in_order():
    sql = (
        "MERGE INTO t USING (SELECT 1 AS id, 0 AS part) AS s ON t.id = s.id"
        " WHEN MATCHED AND t.part = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET part = s.part"
        " WHEN NOT MATCHED THEN INSERT *"
    )
    request = api_call(read_statement(sql, {"t": T}), {"t": T}, duckdb.connect())
    assert request["clauses"] == [
        ("when_matched_delete", '"t"."part" = 1', None),
        ("when_matched_update", None, {"part": '"s"."part"'}),
        ("when_not_matched_insert", None, {"id": '"s"."id"', "part": '"s"."part"'}),
    ]
    assert (request["columns"], request["rows"]) == ([("id", "INT"), ("part", "INT")], [[1, 0]])


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql",
    [
        "VACUUM t",
        "ALTER TABLE t ADD COLUMNS (x INT)",
        "INSERT INTO t SELECT 1, 0 UNION ALL SELECT 2, 0",
        "REORG TABLE t APPLY (PURGE)",
        "OPTIMIZE t WHERE part > 0",
    ],
)
def test_what_it_has_no_call_for_is_refused_with_the_statement(sql):
    with pytest.raises(Refused) as refused:
        api_call(read_statement(sql, {"t": T}), {"t": T}, duckdb.connect())
    assert f"'{sql}'" in str(refused.value)


# On delta-rs


@pytest.mark.slow
@pytest.mark.deltalake
def test_an_expectation_may_name_what_its_caller_catches(worker):
    """A conflict has Delta's name as its outcome, and as its exception the class that Python
    sees.
    """
    expected = litmus("reorder").text.split("[expect.")[0]
    for option in ("CommitFailedError", "ConcurrentAppendException"):
        more = f'[expect.delta-rs-serializable]\noutcome = {{ delete = "{option}" }}'
        test = read_litmus(expected + more, "reorder")
        seen = RunResult(test, deltalake.replay(test, "delta-rs-serializable", worker(NEWEST)))
        assert seen.run.transactions["delete"].exception == "CommitFailedError"
        assert (seen.expected, seen.differences) == ("met", ())


LEVELS = {
    "Serializable": False,
    "WriteSerializable": False,
    "writeserializable": False,
    "SnapshotIsolation": False,
    "writeSerializable": True,
    "snapshotIsolation": True,
}
"""Spellings of the level, and whether a DELETE passes over an append that says that it is blind."""


@pytest.mark.parametrize(("spelling", "passes"), LEVELS.items())
@pytest.mark.deltalake
@pytest.mark.slow
def test_only_some_spellings_of_a_level_are_read(worker, tmp_path, spelling, passes):
    ask = worker(NEWEST).ask
    path, columns = str(tmp_path), [(c.name, c.type) for c in T.columns]
    level = {"delta.isolationLevel": spelling}
    ask("create", path=path, columns=columns, partitioned_by=["part"], configuration=level)
    row = {"mode": "append", "columns": columns, "rows": [[1, 0]]}
    ask("open", handle="first", path=path)
    ask("write", handle="first", **row)
    ask("open", handle="delete", path=path)
    ask("open", handle="append", path=path)
    ask("write", handle="append", says={"isBlindAppend": True}, **row)
    if passes:
        ask("delete", handle="delete", predicate="part = 0")
        assert ask("open", handle="last", path=path) == 3
    else:
        with pytest.raises(EngineError, match="concurrent transactions added new data"):
            ask("delete", handle="delete", predicate="part = 0")


@pytest.mark.deltalake
@pytest.mark.slow
def test_a_statement_that_the_engine_refuses_is_told_with_what_it_said(worker, call):
    worker(NEWEST)
    status, _, err = call("run", "set-from-subquery", "--engine", "deltalake")
    assert status == 2
    assert "'UPDATE t SET x = (SELECT" in err
    assert "not implemented" in err


STATEMENTS = (
    "INSERT INTO t VALUES (100, 0)",
    "INSERT INTO t SELECT count(*), 1 FROM t WHERE part = 0",
    "INSERT OVERWRITE t VALUES (200, 0)",
    "INSERT INTO t REPLACE WHERE id < 10 VALUES (5, 0)",
    "DELETE FROM t",
    "DELETE FROM t WHERE id = 1",
    "UPDATE t SET part = 1 WHERE part = 0",
    (
        "MERGE INTO t USING (SELECT 1 AS id, 0 AS part) AS s ON t.id = s.id WHEN NOT MATCHED THEN"
        " INSERT *"
    ),
    (
        "MERGE INTO t USING (SELECT 1 AS id, 0 AS part) AS s ON t.id = s.id AND t.part = 0 WHEN"
        " MATCHED THEN DELETE"
    ),
    "OPTIMIZE t",
    "OPTIMIZE t ZORDER BY (id)",
)
PAIR = """
title    = "A pair"
source   = "this test"
schedule = "a.start b a.commit"
[table]
columns = "id INT, part INT"
{partitions}
init = ["INSERT INTO t VALUES (1, 0), (2, 1)", "INSERT INTO t VALUES (3, 0)"]
[transactions]
a = "{a}"
b = "{b}"
"""


@pytest.mark.deltalake
@pytest.mark.slow
def test_of_pairs_model_and_engine_say_the_same(worker, seed, pytestconfig):
    """A fifth of all pairs in both layouts, drawn by the seed; with ``--whole`` all."""
    pairs = product(STATEMENTS, STATEMENTS, ["", 'partitioned_by = ["part"]'])
    asked = sample(pairs, seed, pytestconfig.option.whole)
    assert len(asked) > 20
    talking, under = worker(NEWEST), "delta-rs-serializable"
    found = {}
    for a, b, partitions in asked:
        test = read_litmus(PAIR.format(a=a, b=b, partitions=partitions), "pair")
        seen = deltalake.replay(test, under, talking)
        found[a, b, partitions] = run_differences(run(test, protocol(under)).run, seen)
    assert {pair: unlike for pair, unlike in found.items() if unlike} == {}


@pytest.mark.parametrize("name", ["reorder", "compacted-twice", "deleted-during-optimize"])
@pytest.mark.deltalake
@pytest.mark.slow
def test_the_rows_are_those_of_the_files_that_the_log_lists(worker, monkeypatch, name):
    """DuckDB reads the Parquet files of every version: neither delta-rs nor the model has a part in
    it.
    """
    found = {}

    def by_hand(self, path, first, last):
        commits = commits_since(path)
        columns = next(s for n, s in self._litmus.tables.items() if path.name == n.lower()).columns
        rows = found[path.name] = {}
        for version in range(first, last + 1):
            live = live_files(c for c in commits if c.version <= version)
            rows[version] = sort_rows(row for file in live for row in parquet(path, file, columns))
        return original(self, path, first, last)

    original = _DeltalakeReplay._rows_by_version
    monkeypatch.setattr(_DeltalakeReplay, "_rows_by_version", by_hand)
    seen = deltalake.replay(litmus(name), "delta-rs-serializable", worker(NEWEST))
    theirs = {k + seen.base: tables["t"] for k, tables in enumerate(seen.versions)}
    assert found["t"] == theirs


def parquet(path, file, columns):
    of_partition = file.partition
    items = [
        f"CAST('{of_partition[c.name]}' AS {c.type})" if c.name in of_partition else c.name
        for c in columns
    ]
    read = f"read_parquet('{path / file.path}', hive_partitioning = false)"
    return duckdb.connect().execute(f"SELECT {', '.join(items)} FROM {read}").fetchall()
