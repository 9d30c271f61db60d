"""Texts of exceptions as people paste them: in the words of several releases, of Databricks and of delta-rs.

They are made up, in the form that the sources give them (DeltaErrors.scala, delta-error-classes.json, conflict_checker.rs).
"""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from isolitmus.model.conflict import CONFLICTS
from isolitmus.model.conflict_exception import PastedException
from isolitmus.specs.exceptions_file import exception_table
from isolitmus.specs.pasted import NoConflict, conflict_in, read_pasted

INFO = (
    '{"timestamp":1728639379364,"operation":"WRITE","operationParameters":{"mode":Append,"partitionBy":[]},'
    '"readVersion":4,"isolationLevel":"Serializable","isBlindAppend":true,"operationMetrics":{"numFiles":"3"},'
    '"engineInfo":"Apache-Spark/3.5.0 Delta-Lake/3.1.0","txnId":"27fd-66c8"}'
)
OLD = f"""
org.apache.spark.SparkException: Job aborted.
Caused by: io.delta.exceptions.ConcurrentAppendException: Files were added to partition [day=3, part=0] by a concurrent
update. Please try the operation again.
Conflicting commit: {INFO}
Refer to https://docs.delta.io/latest/concurrency-control.html for more details.
\tat org.apache.spark.sql.delta.DeltaErrorsBase.concurrentAppendException(DeltaErrors.scala:2300)
\tat org.apache.spark.sql.delta.ConflictChecker.checkForAddedFiles(ConflictChecker.scala:305)
\tat org.apache.spark.sql.delta.commands.merge.ClassicMergeExecutor.writeAllChanges(ClassicMergeExecutor.scala:1)
\tat org.apache.spark.sql.delta.commands.MergeIntoCommand.run(MergeIntoCommand.scala:1)
"""
NEW = """pyspark.errors.exceptions: [DELTA_CONCURRENT_DELETE_READ.WITH_PARTITION_HINT] Transaction conflict detected, a
concurrent OPTIMIZE deleted data from table spark_catalog.shop.orders (committed at version 12) that this transaction
read. The concurrent operation deleted data in the partition [day=2026-01-02] that was read by this operation. Please
retry the operation. SQLSTATE: 2D521"""
DATABRICKS = """
ConcurrentAppendException: [DELTA_CONCURRENT_APPEND.ROW_LEVEL_CHANGES] Transaction conflict detected. A concurrent MERGE
added data to table main.shop.orders committed at version 77. The concurrent operation modified the same rows that this
transaction attempted to modify. Please retry the operation.
\tat com.databricks.sql.transaction.tahoe.commands.MergeIntoCommandEdge.run(MergeIntoCommandEdge.scala:1)
"""
ROOT = """com.databricks.sql.transaction.tahoe.ConcurrentAppendException: Files were added to the root of the table by a
concurrent update. Please try the operation again."""
RUST = """_internal.CommitFailedError: Failed to commit transaction: Commit failed: a concurrent transaction deleted the
same data your transaction deletes.
Help: you should retry this write operation."""
FILE = """ConcurrentDeleteDeleteException: This transaction attempted to delete one or more files that were deleted (for
example org=15/day=3/part-0.c000.snappy.parquet) by a concurrent update. Please try the operation again."""
EMPTY = """delta.exceptions.ProtocolChangedException: The protocol version of the Delta table has been changed by a
concurrent update. This happens when multiple writers are writing to an empty directory. Creating the table ahead of
time will avoid this conflict."""
ALTERED = "[DELTA_METADATA_CHANGED] MetadataChangedException: The metadata of the Delta table main.t has been changed by"
STREAM = "This error occurs when multiple streaming queries are using the same checkpoint to write into this table."
LARGE = "A concurrent transaction has written new data since the current transaction read the table. Please"


def said(text):
    """What is read of a text, without what is not there."""
    found = read_pasted(text)
    fields = {name: getattr(found, name) for name in PastedException.__slots__}
    return {name: value for name, value in fields.items() if value and name != "commit"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (OLD, {"name": "ConcurrentAppendException", "wording": "Delta", "operation": "WRITE",
               "partition": "day=3, part=0", "mine": "MERGE"}),
        (NEW, {"name": "ConcurrentDeleteReadException", "wording": "Delta", "operation": "OPTIMIZE",
               "error_class": "DELTA_CONCURRENT_DELETE_READ.WITH_PARTITION_HINT",
               "table": "spark_catalog.shop.orders", "version": 12, "partition": "day=2026-01-02"}),
        (DATABRICKS, {"name": "ConcurrentAppendException", "wording": "Databricks", "operation": "MERGE",
                      "error_class": "DELTA_CONCURRENT_APPEND.ROW_LEVEL_CHANGES",
                      "table": "main.shop.orders", "version": 77, "mine": "MERGE"}),
        (ROOT, {"name": "ConcurrentAppendException", "wording": "Databricks", "everywhere": True}),
        (RUST, {"name": "ConcurrentDeleteDeleteException", "wording": "delta-rs"}),
        (FILE, {"name": "ConcurrentDeleteDeleteException", "wording": "Delta",
                "partition": "org=15, day=3", "file": "org=15/day=3/part-0.c000.snappy.parquet"}),
        (ALTERED, {"name": "MetadataChangedException", "wording": "Delta", "table": "main.t",
                   "error_class": "DELTA_METADATA_CHANGED"}),
        (STREAM, {"name": "ConcurrentTransactionException", "wording": "Delta"}),
        (LARGE, {"name": "ConcurrentWriteException", "wording": "Delta"}),
        ("ConcurrentWriteException", {"name": "ConcurrentWriteException", "wording": "Delta"}),
    ],
)  # fmt: skip
def test_what_a_text_says(text, expected):
    assert said(text) == expected
    log = "".join(f"26/11/23 10:00:0{k} ERROR Executor: {line}\n" for k, line in enumerate("abc"))
    assert said(f"{log}{text}\n{log}") == expected


def test_version_0_is_said_in_words():
    assert read_pasted(EMPTY).version == 0
    assert read_pasted(EMPTY).facts.version == 0


def test_what_is_said_of_the_other_commit_is_read_though_it_is_no_json():
    commit = read_pasted(OLD).commit
    assert commit["operationParameters"] == {"mode": "Append", "partitionBy": []}
    assert (commit["isBlindAppend"], commit["readVersion"], commit["txnId"]) == (
        True,
        4,
        "27fd-66c8",
    )
    odd = '{"operation":"DELETE","operationParameters":{"predicate":(a = \'x, "y\'),"z":1.5},"readVersion":xxx}'
    commit = read_pasted(f"ConcurrentAppendException\nConflicting commit: {odd}").commit
    assert commit["operationParameters"] == {"predicate": "(a = 'x, \"y')", "z": "1.5"}
    assert (commit["operation"], commit["readVersion"]) == ("DELETE", "xxx")


def test_a_text_inside_json_is_read():
    inside = json.dumps({"level": "ERROR", "message": OLD})
    assert said(inside) == said(OLD)
    assert read_pasted(inside).commit == read_pasted(OLD).commit


def test_a_message_counts_more_than_the_names_around_it():
    code = f"except (ConcurrentDeleteReadException, ConcurrentAppendException):\n{FILE}"
    found = read_pasted(code)
    assert (found.name, found.others) == ("ConcurrentDeleteDeleteException", ())
    assert read_pasted(f"{NEW}\n{OLD}").others == ("ConcurrentAppendException",)


@pytest.mark.parametrize("name", CONFLICTS)
def test_each_phrase_and_each_class_is_known_by_itself(name):
    known = exception_table().exceptions[name]
    for text in (name, f"io.delta.exceptions.{name}: ", *known.classes, *known.phrases):
        assert read_pasted(f"x {text} y").name == name
    assert {conflict_in(phrase) for phrase in known.phrases} == {name}


OTHERS = exception_table().others


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_another_error_of_delta_is_said_in_a_sentence(name):
    other = OTHERS[name]
    for text in (f"[{name}] x", f"[{name}.SOME_HINT] SQLSTATE: 42KDG", *other.phrases):
        with pytest.raises(NoConflict) as refused:
            read_pasted(f"org.apache.spark.sql.delta.DeltaAnalysisException: {text}")
        assert str(refused.value) == f"the text: {name} is no conflict of two commits: {other.says}"
    with_conflict = f"DELTA_CONCURRENT_APPEND\n{name}"
    assert read_pasted(with_conflict).name == "ConcurrentAppendException"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "there is nothing in it"),
        ("hello", "this is none of Delta's conflicts; the text of one is wanted"),
        ("[DELTA_TABLE_NOT_FOUND] no", "(DELTA_TABLE_NOT_FOUND is another error)"),
        ("java.lang.NullPointerException", "(NullPointerException is another error)"),
        (
            "io.delta.exceptions.DeltaConcurrentModificationException: x",
            "is what all conflicts share",
        ),
    ],
)
def test_what_is_none_is_refused(text, reason):
    with pytest.raises(NoConflict) as refused:
        read_pasted(text, "mine.txt")
    assert str(refused.value).startswith("mine.txt: ")
    assert reason in str(refused.value)


PIECES = st.sampled_from(
    ["Conflicting commit: ", "{", "}", "[", "]", '"', "\\", ",", ":", '"operation"', '\\"operation\\"', "\n",
     "DELTA_CONCURRENT_APPEND.", "partition ", " by a concurrent update", "(for example a=1/", "9" * 5000,
     "concurrent WRITE added data to table t committed at version ", *CONFLICTS, OLD, NEW, FILE]
)  # fmt: skip


@pytest.mark.slow
@given(st.lists(PIECES | st.text(max_size=20), max_size=12).map("".join))
@example('ConcurrentAppendException Conflicting commit: {"a"')
@example("ConcurrentAppendException Conflicting commit: " + '{"a":[' * 500)
@example("ConcurrentAppendException Conflicting commit: {,,:}")
def test_any_text_is_read_or_refused(text):
    try:
        found = read_pasted(text)
    except NoConflict:
        return
    assert found.name in CONFLICTS
    assert found.facts.where in (None, "partition", "table")
