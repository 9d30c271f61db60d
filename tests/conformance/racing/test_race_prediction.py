"""What the model says of a race: a table taken from a made-up log, the statements that met on
it.
"""

import json
from dataclasses import replace

import pytest

from isolitmus.conformance.delta.logged_table import read_logged_table
from isolitmus.conformance.racing.race_prediction import (
    RaceRecord,
    predict,
    session_settings,
    window_litmus,
)
from isolitmus.model.delta.log import LogProtocol
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.run import TransactionRun
from isolitmus.specs.files.logged_tables import NotModelled
from isolitmus.specs.logs.delta_log import commits_since

BASIC = ("appendOnly", "invariants")
SERIALIZABLE = "Serializable"


@pytest.fixture
def commits(delta):
    """commits(commit, …): those of a made-up table, at Serializable if nothing else is said."""

    def commits(*later, level=SERIALIZABLE, features=BASIC, **how):
        return commits_since(delta.table(*later, level=level, features=features, **how))

    return commits


def committed(version, read, *, blind=False, operation="WRITE", level=SERIALIZABLE):
    return TransactionRun(
        "committed",
        read_version=read,
        version=version,
        commits=(version,),
        blind=blind,
        isolation_level=level,
        operation=operation,
    )


def conflict(exception, read, error_class=None):
    return TransactionRun(exception, exception, error_class, read)


def raced(*acts):
    """The record of a race of (name, SQL, steps, how it ended): steps are positions, of the last
    one the end.
    """
    record, steps = RaceRecord(), {}
    for name, sql, began, places, seen in acts:
        told = record.add(sql, began, name)
        told.seen = seen
        words = ["both"] if len(places) == 1 else ["park-commit", "commit"]
        steps |= {place: (told, word) for place, word in zip(places, words, strict=True)}
    for place in sorted(steps):
        record.step(*steps[place])
    return record, {told.name: told for told, _ in steps.values()}


ROWS = {1: ((1, 0), (2, 1)), 2: ((1, 0), (2, 1), (100, 0)), 3: ((2, 1), (100, 0))}


@pytest.mark.parametrize(
    ("level", "seen"),
    [
        (
            SERIALIZABLE,
            conflict("ConcurrentAppendException", 1, "DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT"),
        ),
        (
            "WriteSerializable",
            committed(3, 1, operation="DELETE", level="WriteSerializable"),
        ),
    ],
)
def test_an_insert_overtakes_a_delete(delta, commits, level, seen):
    before = [delta.info("WRITE", 0, True, level), delta.add("a", 0, (1,)), delta.add("b", 1, (2,))]
    log = commits(before, delta.append(1, "c", 0, (100,)), level=level)
    delete = ("delete", "DELETE FROM t WHERE part = 0", 1, (0, 2), seen)
    insert = (
        "insert",
        "INSERT INTO t VALUES (100, 0)",
        1,
        (1,),
        committed(2, 1, blind=True, level=level),
    )
    record, told = raced(delete, insert)
    last = max(seen.commits, default=2)
    window = record.window(told["delete"], last)
    assert (window.base, window.schedule) == (1, "delete.park-commit insert delete.commit")
    logged = read_logged_table(log[:2], "t")
    test = window_litmus(window, logged, {"a": ((1, 0),), "b": ((2, 1),)}, {})
    found = predict(test, window, logged, log, ROWS)
    assert found.agrees, found.differences
    assert (found.outcome, found.run.base) == (seen.outcome, 1)
    if seen.commits:
        orders = "The final table equals that of the serial order delete → insert."
        assert str(found) == f"as predicted:\n  {orders}"
    else:
        assert found.why == (
            (
                "delete conflicts with insert, because delete read version 1, before insert"
                " committed version 2, and insert added a file to partition part=0 of t, where"
                " delete read t WHERE part = 0; delete changes data"
            ),
            "delete aborts with ConcurrentAppendException",
        )
    # what was seen is compared field by field, and row by row
    wrong = predict(test, window, logged, log, {**ROWS, 2: ()})
    assert wrong.differences == (
        "table t at version 1: predicted (1, 0) (2, 1) (100, 0), observed no rows",
    )
    assert str(wrong).startswith(
        "FAILED: not as predicted (version 0 below is the table's version 1):\n  table"
    )


def test_who_should_have_written_and_did_not_is_a_difference(delta, commits):
    before = [delta.info("WRITE", 0, True, SERIALIZABLE), delta.add("a", 0, (1,))]
    before += [delta.add("b", 1, (2,))]
    remove = [delta.info("DELETE", 1, False, SERIALIZABLE), delta.remove("a", 0, (1,))]
    log = commits(before, remove)
    seen = committed(2, 1, operation="DELETE")
    delete = ("delete", "DELETE FROM t WHERE part = 0", 1, (0, 2), seen)
    lost = (
        "lost",
        "DELETE FROM t WHERE part = 1",
        1,
        (1,),
        TransactionRun("no-op", read_version=1),
    )
    record, told = raced(delete, lost)
    told["lost"].active = True
    window, logged = record.window(told["delete"], 2), read_logged_table(log[:2], "t")
    test = window_litmus(window, logged, {"a": ((1, 0),), "b": ((2, 1),)}, {})
    found = predict(test, window, logged, log, {1: ((1, 0), (2, 1)), 2: ((2, 1),)})
    assert "lost: outcome predicted committed, observed no-op" in found.differences


@pytest.mark.parametrize("together", [True, False])
def test_which_rows_share_a_file_decides(delta, commits, together):
    """Two DELETEs of a row each: of one file, and of two."""
    files = [("a", (1, 2))] if together else [("a", (1,)), ("b", (2,))]
    adds = [delta.add(path, ids=ids, partitionValues={}) for path, ids in files]
    nothing = [delta.info("DELETE", 1, False)]
    log = commits([delta.info("WRITE", 0, True), *adds], nothing, partitioned=False)
    first = ("first", "DELETE FROM t WHERE id = 1", 1, (0, 2), committed(2, 1, operation="DELETE"))
    second = (
        "second",
        "DELETE FROM t WHERE id = 2",
        1,
        (1, 3),
        committed(3, 1, operation="DELETE"),
    )
    record, told = raced(first, second)
    logged = read_logged_table(log[:2], "t")
    rows = {path: tuple((i, 0) for i in ids) for path, ids in files}
    window = record.window(told["second"], 3)
    test = window_litmus(window, logged, rows, {})
    found = predict(test, window, logged, log, {1: ((1, 0), (2, 0)), 2: ((2, 0),), 3: ()})
    if not together:
        assert found.agrees, found.differences
        return
    assert found.outcome == "ConcurrentAppendException"
    assert found.differences[:2] == (
        "second: outcome predicted ConcurrentAppendException, observed committed",
        "second: version predicted None, observed 2",
    )


def test_statistics_are_those_of_the_log(delta, commits):
    """A deletion vector hides row 1; the file is still said to hold it, and a query reads the
    file.
    """
    vector = {"storageType": "u", "pathOrInlineDv": "x", "offset": 1, "cardinality": 1}
    file = delta.add("a", ids=(1, 9), partitionValues={}, deletionVector=vector)
    log = commits(
        [delta.info("WRITE", 0, True), file],
        partitioned=False,
        features=(*BASIC, "deletionVectors"),
    )
    copy = ("copy", "INSERT INTO t SELECT count(*), 0 FROM t WHERE id < 5", 1, (0, 2), None)
    gone = ("gone", "DELETE FROM t WHERE id = 9", 1, (1,), committed(2, 1))
    record, told = raced(copy, gone)
    window, logged = record.window(told["copy"], 2), read_logged_table(log, "t")
    test = window_litmus(window, logged, {"a": ((9, 0),)}, {})
    (held,) = test.tables["t"].held
    assert (held.stats[0].least, held.stats[0].greatest, held.dead, len(held.rows)) == (1, 9, 1, 1)
    assert test.tables["t"].properties["delta.feature.deletionVectors"] == "supported"
    told["copy"].seen = conflict("ConcurrentDeleteReadException", 1)
    found = predict(test, window, logged, log, {1: ((9, 0),), 2: ()})
    assert found.outcome == "ConcurrentDeleteReadException"


def test_rows_that_are_not_those_of_the_log_are_refused(delta, commits):
    log = commits([delta.info("WRITE", 0, True), delta.add("a", 0, (1, 2))])
    record, told = raced(("d", "DELETE FROM t", 1, (0, 1), None))
    with pytest.raises(NotModelled, match="a has 1 row, but 2 according to the log"):
        window_litmus(
            record.window(told["d"], 1), read_logged_table(log, "t"), {"a": ((1, 0),)}, {}
        )


def test_files_that_others_saw_must_be_those_of_the_model(delta, commits):
    """An INSERT that wrote two files, where the model has one, and a DELETE that saw them."""
    log = commits(
        [delta.info("WRITE", 0, True), delta.add("a", 0, (1,))],
        [delta.info("WRITE", 1, True), delta.add("b", 1, (2,)), delta.add("c", 1, (3,))],
        delta.delete(2, None, "b"),
    )
    early = (
        "early",
        "UPDATE t SET id = 5 WHERE part = 0",
        1,
        (0, 4),
        committed(4, 1, operation="UPDATE"),
    )
    insert = ("insert", "INSERT INTO t VALUES (2, 1), (3, 1)", 1, (1,), committed(2, 1, blind=True))
    delete = ("delete", "DELETE FROM t WHERE id = 2", 2, (2,), committed(3, 2, operation="DELETE"))
    record, told = raced(early, insert, delete)
    window, logged = record.window(told["early"], 4), read_logged_table(log[:2], "t")
    test = window_litmus(window, logged, {"a": ((1, 0),)}, {})
    said = "insert wrote 2 files, which delete saw, but the model writes 1 file with other contents"
    with pytest.raises(NotModelled, match=said):
        predict(test, window, logged, log, {})


def test_a_window_reaches_back_to_who_began_before():
    first = ("first", "DELETE FROM t", 3, (0, 3), committed(6, 3))
    old = ("old", "DELETE FROM t", 1, (1,), committed(3, 2))
    middle = ("middle", "DELETE FROM t", 4, (2,), committed(5, 4))
    late = ("late", "DELETE FROM t", 5, (4, 5), None)
    record, told = raced(first, old, middle, late)
    window = record.window(told["late"], 6)
    assert (window.base, window.last) == (3, 6)
    assert [t.name for t in window.statements] == ["first", "middle", "late"]
    assert window.schedule == "first.park-commit middle first.commit late.park-commit late.commit"


def field(name="id", kind="integer", nullable=True, **metadata):
    return {"name": name, "type": kind, "nullable": nullable, "metadata": metadata}


UNLIKE = {
    "its column id is of type struct": [field(kind={"type": "struct", "fields": []})],
    "column id is NOT NULL, which is unsupported": [field(nullable=False)],
    "column id has delta.identity.start": [field(**{"delta.identity.start": 1})],
    "delta.autoOptimize.autoCompact is 'true'; known: 'false'": {
        "delta.autoOptimize.autoCompact": "true"
    },
    "delta.isolationLevel is 'Chaos', which is unsupported": {"delta.isolationLevel": "Chaos"},
    "it is clustered": ("clustering",),
}


@pytest.mark.parametrize("said", UNLIKE)
def test_what_the_model_does_not_have_is_refused(commits, said):
    (made,) = commits(level=None)
    match UNLIKE[said]:
        case list(fields):
            changed = {"metadata": replace(made.metadata, schema=json.dumps({"fields": fields}))}
        case dict(configuration):
            changed = {"metadata": replace(made.metadata, configuration=configuration)}
        case tuple(features):
            changed = {"protocol": replace(made.protocol, writer_features=(*BASIC, *features))}
    with pytest.raises(NotModelled, match=said):
        read_logged_table([replace(made, **changed)], "t")


def test_a_log_without_its_beginning_is_refused(delta, commits):
    with pytest.raises(NotModelled, match="no longer starts with version 0"):
        read_logged_table(commits(delta.append(0, "a"))[1:], "t")


def test_properties_that_nothing_depends_on_stay(commits):
    (made,) = commits(level=None, features=())
    old = LogProtocol(1, 4)
    configuration = {
        "team": "us",
        "delta.checkpointInterval": "5",
        "delta.enableChangeDataFeed": "true",
    }
    metadata = replace(made.metadata, configuration=configuration)
    logged = read_logged_table([replace(made, metadata=metadata, protocol=old)], "t")
    supported = {
        f"delta.feature.{name}": "supported"
        for name in ("changeDataFeed", "checkConstraints", "generatedColumns")
    }
    assert logged.properties == {**configuration, **supported}
    assert logged.declared["properties"] == logged.properties


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("DELETE FROM u", "the race, transaction it:1:13: unknown table 'u'"),
        ("DELETE FROM t WHERE id = 1.5", "the race, transaction it"),
        ("SELECT * FROM t", "it only reads"),
    ],
)
def test_statements_that_the_model_does_not_have_are_refused(commits, sql, said):
    record, told = raced(("it", sql, 0, (0, 1), None))
    with pytest.raises(IsolitmusError, match=said):
        window_litmus(record.window(told["it"], 0), read_logged_table(commits(), "t"), {}, {})


def test_two_statements_of_one_name_are_refused(commits):
    record = RaceRecord()
    for _ in range(2):
        told = record.add("DELETE FROM t", 0, "it")
        told.seen = committed(1, 0)
        record.step(told, "both")
    with pytest.raises(NotModelled, match="two statements have the name it"):
        window_litmus(record.window(told, 1), read_logged_table(commits(), "t"), {}, {})


class Spark:
    """A session with these confs, that caches these tables."""

    def __init__(self, confs, *cached):
        self.conf, self.catalog, self._cached = confs, self, cached

    def isCached(self, table):  # noqa: N802 - Spark's name
        return table in self._cached


def test_the_settings_of_a_session():
    skipping = "spark.databricks.delta.stats.skipping"
    confs = {skipping: "false", "spark.sql.files.maxRecordsPerFile": "2", "mine": "x"}
    assert session_settings(Spark(confs), "t") == ({skipping: "false"}, 2)
    assert session_settings(Spark({}, "u"), "t") == ({}, None)
    with pytest.raises(NotModelled, match=r"ansi\.enabled is false; the model supports only true"):
        session_settings(Spark({"spark.sql.ansi.enabled": "false"}), "t")
    with pytest.raises(NotModelled, match="t is cached"):
        session_settings(Spark({}, "t"), "t")
