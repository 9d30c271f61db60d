"""Readings from a cache are those of the texts, whatever else changed since they were kept."""

import json
import runpy
from pathlib import Path

import pytest

from isolitmus.jobs.readers import reading_cache
from isolitmus.jobs.readers.lint_settings import LintSettings
from isolitmus.jobs.readers.lint_sources import read_lint_sources
from isolitmus.jobs.readers.reading_cache import cached_reading
from isolitmus.jobs.readers.workload_file import build_workload
from isolitmus.specs.files.toml_reader import Node, Source
from isolitmus.specs.sql.statements import syntax_of, tables_named

BENCH = runpy.run_path(str(Path(__file__).parents[3] / "bench" / "constructs.py"))


class Store(dict):
    """Store that counts what it did not have."""

    def __init__(self):
        self.missed = 0

    def get(self, key):
        found = dict.get(self, key)
        self.missed += found is None
        return found

    def put(self, key, answer):
        assert isinstance(json.loads(json.dumps(answer)), str)
        if key is not None:
            self[key] = answer


def workload_of_constructs(store):
    """A workload in which each sampled statement of Spark's and Delta's grammars is a job."""
    sample = BENCH["read_constructs"]()
    jobs, sources = {}, {}
    for k, one in enumerate(sample.constructs):
        jobs[f"c{k}"], sources[f"c{k}"] = {"sql": [one.sql]}, Source(f"c{k}.sql", one.sql)
    node = Node({"ddl": [*sample.tables], "jobs": jobs}, "", Source("constructs.toml"))
    return build_workload(node, "constructs", sources=sources, each=True, partial=True, store=store)


@pytest.mark.slow
def test_the_constructs_of_the_grammars_are_read_from_the_cache_as_from_their_texts():
    plain, store = workload_of_constructs(None), Store()
    assert workload_of_constructs(store) == plain
    kept, store.missed = len(store), 0
    again = workload_of_constructs(store)
    assert len(store) == kept
    assert again == plain
    kinds = [[one.kind for one in work.assumptions] for work in (plain, again)]
    assert kinds[0] == kinds[1]
    for one, other in zip(plain.statements, again.statements, strict=True):
        assert repr(one) == repr(other)
        assert one.statement.sql == other.statement.sql
        assert repr(one.statement) == repr(other.statement)
        assert tables_named(one.statement) == tables_named(other.statement)
        read, late = syntax_of(one.statement), syntax_of(other.statement)
        for name in ("text", "label", "values", "types", "opaque", "queried"):
            assert getattr(read, name) == getattr(late, name)
    assert store.missed <= len(plain.unread)


FILES = {
    "tables.sql": (
        "CREATE TABLE t (id BIGINT, day DATE) USING delta;\n"
        "CREATE TABLE u (id BIGINT, day DATE) USING delta"
    ),
    "a.sql": "-- :day DATE\n-- where day < DATE '2026-01-01'\nDELETE FROM t WHERE day = :day",
    "b.sql": "INSERT INTO t SELECT id, day FROM u WHERE id > 7; UPDATE u SET id = 1",
    "c.sql": "INSERT INTO t SELECT id, day FROM staging.news WHERE kind = 'x'",
    "d.sql": "CACHE TABLE u; INSERT INTO u SELECT id, max(day) FROM news GROUP BY id",
    "e.sql": "CREATE TEMP VIEW v AS SELECT 1 AS id; MERGE INTO t USING v ON t.id = v.id"
    " WHEN MATCHED THEN DELETE",
    "f.sql": "SELECT id FROM t WHERE nothing = 1",
}
CHANGES = {
    "another type": ("tables.sql", FILES["tables.sql"].replace("id BIGINT", "id INT", 1)),
    "a type of the other table": (
        "tables.sql",
        FILES["tables.sql"].replace("u (id BIGINT", "u (id INT"),
    ),
    "another partitioning": ("tables.sql", f"{FILES['tables.sql']} PARTITIONED BY (day)"),
    "a table for a source": (
        "tables.sql",
        f"{FILES['tables.sql']};\nCREATE TABLE news (id BIGINT, day DATE, kind STRING) USING delta",
    ),
    "a property": (
        "tables.sql",
        f"{FILES['tables.sql']} TBLPROPERTIES ('delta.appendOnly' = 'true')",
    ),
    "another condition of a parameter": ("a.sql", FILES["a.sql"].replace("2026", "2025")),
    "another type of a parameter": ("a.sql", FILES["a.sql"].replace(":day DATE", ":day STRING", 1)),
    "a line before": ("a.sql", f"\n{FILES['a.sql']}"),
    "a literal": ("b.sql", FILES["b.sql"].replace("7", "8")),
    "a setting": (
        "b.sql",
        f"SET spark.sql.sources.partitionOverwriteMode = dynamic; {FILES['b.sql']}",
    ),
    "no writer of a cached table": ("b.sql", FILES["b.sql"].partition(";")[0]),
    "a column of a source": ("c.sql", FILES["c.sql"].replace("kind", "sort")),
    "a source that becomes written": ("a.sql", "INSERT INTO u SELECT 1, current_date()"),
    "a view": ("e.sql", FILES["e.sql"].replace("1 AS id", "2 AS id")),
    "a mistake is mended": ("f.sql", "SELECT id FROM t"),
    "a mistake is made": ("b.sql", "INSERT INTO t SELECT nothing FROM u"),
    "a further file": ("g.sql", "OPTIMIZE u"),
    "a statement that names a view": ("g.sql", "INSERT INTO u SELECT v.id, NULL FROM news AS v"),
}


def write(folder, files):
    for name, text in files.items():
        (folder / name).write_text(text)
    return LintSettings(folder)


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_read(change, tmp_path):
    """With the readings before the change, the workload is that of the changed files."""
    given, store = write(tmp_path, FILES), Store()
    before = read_lint_sources([str(tmp_path)], given, store=store)
    assert before == read_lint_sources([str(tmp_path)], given)
    name, text = CHANGES[change]
    write(tmp_path, {name: text})
    expected = read_lint_sources([str(tmp_path)], given)
    assert read_lint_sources([str(tmp_path)], given, store=store) == expected
    assert expected != before
    write(tmp_path, FILES)
    if name in FILES:
        assert read_lint_sources([str(tmp_path)], given, store=store) == before


def test_a_changed_job_leaves_the_others_in_the_cache(tmp_path):
    given, store = write(tmp_path, FILES), Store()
    read_lint_sources([str(tmp_path)], given, store=store)
    store.missed = 0
    read_lint_sources([str(tmp_path)], given, store=store)
    mistaken = store.missed
    write(tmp_path, {"a.sql": CHANGES["another condition of a parameter"][1]})
    read_lint_sources([str(tmp_path)], given, store=store)
    assert store.missed == 2 * mistaken + 2  # the job, and the tables that its text writes to


def test_nothing_is_parsed_again(tmp_path, monkeypatch):
    files = {name: text for name, text in FILES.items() if name != "f.sql"}
    given, store = write(tmp_path, files), Store()
    first = read_lint_sources([str(tmp_path)], given, store=store)
    monkeypatch.setattr(
        "isolitmus.specs.sql.syntax.parse_sql", lambda *_: pytest.fail("a text was parsed")
    )
    assert read_lint_sources([str(tmp_path)], given, store=store) == first


@pytest.mark.slow
@pytest.mark.parametrize(
    "damaged",
    ["", "7", "null", '["tuple"]', '["tuple", ["Job"]]', '["os.system", "x"]', "[[]]", 7.5],
)
def test_damaged_readings_are_read_anew(damaged, tmp_path):
    """Data of other classes than those of readings are none."""
    given, store = write(tmp_path, FILES), Store()
    expected = read_lint_sources([str(tmp_path)], given, store=store)
    for key in store:
        store[key] = damaged
    assert read_lint_sources([str(tmp_path)], given, store=store) == expected


def test_what_has_no_encoding_is_not_kept():
    store = Store()
    assert cached_reading(store, "kind", object(), lambda: 7) == 7
    assert cached_reading(store, "kind", "text", lambda: b"bytes") == b"bytes"
    assert not store


def test_kinds_of_values_are_kept_apart():
    keys = {reading_cache._key("kind", value) for value in (1, True, 1.0, "1", (1,), [1], None)}
    assert len(keys) == 7
