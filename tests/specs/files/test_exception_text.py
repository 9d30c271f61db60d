"""Texts of exceptions as people paste them: in the words of several releases and engines.

They are made up, in the form that the sources give them (DeltaErrors.scala,
delta-error-classes.json, DeltaErrors.java and the exceptions of Delta Kernel,
UCTokenBasedRestClient.java, conflict_checker.rs and errors.rs of delta-rs, DeltaLakeMetadata.java
of Trino, Databricks' list of error conditions).
"""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from isolitmus.model.delta.conflict import CONFLICTS, PastedError, PastedException
from isolitmus.specs.files.exception_text import NoConflict, conflict_in, read_pasted
from isolitmus.specs.files.exceptions_file import exception_table

PART = "Files were added to partition [day=3] by a\nconcurrent update."
INFO = (
    '{"timestamp":1728639379364,"operation":"WRITE","operationParameters":{"mode":Append,"partitionBy":[]},"readVersion":4,"isolationLevel":"Serializable","isBlindAppend":true,"operationMetrics":{"numFiles":"3"},"engineInfo":"Apache-Spark/3.5.0'
    ' Delta-Lake/3.1.0","txnId":"27fd-66c8"}'
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
ALTERED = (
    "[DELTA_METADATA_CHANGED] MetadataChangedException: The metadata of the Delta table main.t has"
    " been changed by"
)
STREAM = (
    "This error occurs when multiple streaming queries are using the same checkpoint to write into"
    " this table."
)
LARGE = (
    "A concurrent transaction has written new data since the current transaction read the table."
    " Please"
)


def said(text):
    """What is read of a text, without what is not there."""
    found = read_pasted(text)
    fields = {name: getattr(found, name) for name in PastedException.__slots__}
    return {name: value for name, value in fields.items() if value and name != "commit"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (OLD, {"name": "ConcurrentAppendException", "engine": "Delta", "operation": "WRITE",
               "partition": "day=3, part=0", "mine": "MERGE", "told": "stack trace"}),
        (NEW, {"name": "ConcurrentDeleteReadException", "engine": "unknown", "operation": "OPTIMIZE",
               "error_class": "DELTA_CONCURRENT_DELETE_READ.WITH_PARTITION_HINT",
               "table": "spark_catalog.shop.orders", "version": 12, "partition": "day=2026-01-02"}),
        (DATABRICKS, {"name": "ConcurrentAppendException", "engine": "Databricks", "operation": "MERGE",
                      "error_class": "DELTA_CONCURRENT_APPEND.ROW_LEVEL_CHANGES", "condition": "ROW_LEVEL_CHANGES",
                      "table": "main.shop.orders", "version": 77, "mine": "MERGE", "told": "stack trace"}),
        (ROOT, {"name": "ConcurrentAppendException", "engine": "Databricks", "everywhere": True}),
        (RUST, {"name": "ConcurrentDeleteDeleteException", "engine": "delta-rs"}),
        (FILE, {"name": "ConcurrentDeleteDeleteException", "engine": "unknown",
                "partition": "org=15, day=3", "file": "org=15/day=3/part-0.c000.snappy.parquet"}),
        (ALTERED, {"name": "MetadataChangedException", "engine": "unknown", "table": "main.t",
                   "error_class": "DELTA_METADATA_CHANGED"}),
        (STREAM, {"name": "ConcurrentTransactionException", "engine": "unknown"}),
        (LARGE, {"name": "ConcurrentWriteException", "engine": "unknown"}),
        ("ConcurrentWriteException", {"name": "ConcurrentWriteException", "engine": "unknown"}),
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
    odd = (
        '{"operation":"DELETE","operationParameters":{"predicate":(a = \'x,'
        ' "y\'),"z":1.5},"readVersion":xxx}'
    )
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


EVERY = exception_table().every


def written(phrase):
    """A message that has a phrase of the table."""
    return phrase.replace("…", "some words of it").replace("#", "17")


@pytest.mark.parametrize("name", EVERY)
def test_each_phrase_and_each_class_is_known_by_itself(name):
    known = EVERY[name]
    phrases = [written(phrase) for phrase in known.phrases]
    names = (name, f"io.delta.exceptions.{name}: ") if name in CONFLICTS else ()
    for text in (
        *names,
        *known.classes,
        *phrases,
        *(p.lower() for p in phrases),
        *(p.upper() for p in phrases),
    ):
        assert read_pasted(f"x {text} y").name == name, text
    assert {conflict_in(phrase) for phrase in phrases} == {name if name in CONFLICTS else None}


CONDITIONS = exception_table().conditions
CLASSES = {
    "ConcurrentAppendException": "DELTA_CONCURRENT_APPEND",
    "ConcurrentDeleteReadException": "DELTA_CONCURRENT_DELETE_READ",
    "ConcurrentDeleteDeleteException": "DELTA_CONCURRENT_DELETE_DELETE",
}


@pytest.mark.parametrize(
    "name", [name for name, one in CONDITIONS.items() if set(one.of) == set(CLASSES)]
)
def test_a_sub_condition_of_databricks_is_known_by_its_name_and_by_its_words(name):
    for exception, error_class in CLASSES.items():
        found = read_pasted(f"[{error_class}.{name}] Transaction conflict detected.")
        assert (found.name, found.condition, found.engine) == (exception, name, "Databricks")
        for phrase in CONDITIONS[name].phrases:
            assert read_pasted(f"{exception}: {written(phrase)} itself.").condition == name
    assert (
        read_pasted(f"Please retry. {written(CONDITIONS[name].phrases[0])} itself.").condition
        == name
    )


KERNEL = "io.delta.kernel.exceptions."
ANY = (
    "Transaction has encountered a conflict and can not be committed. Query needs to be re-executed"
    " using the latest version of the table."
)
TWICE = (
    "A concurrent transaction removed (or updated the deletion vector of) file"
    " s3://b/t/day=3/p.parquet that this transaction (attempting version 9) also removes."
)
TRINO = (
    "io.trino.spi.TrinoException: Failed to write Delta Lake transaction log entry Caused by:"
    " Conflicting concurrent writes found. "
)


@pytest.mark.parametrize(
    ("text", "engine", "name", "condition"),
    [
        (f"{KERNEL}ConcurrentWriteException: {ANY}", "Delta Kernel", "ConcurrentWriteException", "KERNEL_CONFLICT"),
        (ANY, "Delta Kernel", "ConcurrentWriteException", "KERNEL_CONFLICT"),
        (f"{KERNEL}ConcurrentWriteException: {TWICE}", "Delta Kernel", "ConcurrentDeleteDeleteException", "KERNEL_REMOVED_TWICE"),
        (f"{KERNEL}ProtocolChangedException: {ANY}", "Delta Kernel", "ProtocolChangedException", None),
        (f"{KERNEL}MetadataChangedException: The metadata of the Delta table has been changed by a concurrent update.",
         "Delta Kernel", "MetadataChangedException", None),
        (f"{KERNEL}ConcurrentWriteException: A concurrent writer added a domainMetadata action for the same domain: mine. No",
         "Delta Kernel", "ConcurrentTransactionException", "METADATA_DOMAIN"),
        ((f"{KERNEL}ConcurrentTransactionException: This error occurs when multiple updates are using the same transaction"
         " identifier to write into this table."), "Delta Kernel", "ConcurrentTransactionException", "KERNEL_TRANSACTION"),
        ((f"{KERNEL}CommitStateUnknownException: Commit attempt 2 for version 7 failed due to a concurrent write conflict"
         " after a previous retry."), "Delta Kernel", "CommitStateUnknown", None),
        (f"{KERNEL}MaxCommitRetryLimitReachedException: Commit attempt for version 7 failed", "Delta Kernel", "CommitAttemptsExceeded", None),
        (f"org.apache.flink.x: {KERNEL}ConcurrentWriteException: {ANY}", "Flink", "ConcurrentWriteException", "KERNEL_CONFLICT"),
        ("io.delta.standalone.exceptions.ConcurrentAppendException: Files were added to the root of the table by a concurrent update.",
         "Delta Standalone", "ConcurrentAppendException", None),
        ("deltalake.exceptions.CommitFailedError: Delta transaction failed, version 0 already exists.",
         "delta-rs", "VersionAlreadyExists", "TABLE_MADE_TWICE"),
        ("_internal.DeltaError: Delta transaction failed, version 12 already exists.", "delta-rs", "VersionAlreadyExists", None),
        ("LockClientError::VersionAlreadyExists(77)", "delta-rs", "VersionAlreadyExists", None),
        ("LockClientError::VersionAlreadyExists(77). Failed to commit transaction: Metadata changed since last commit.",
         "delta-rs", "MetadataChangedException", None),
        ("_internal.CommitFailedError: Failed to commit transaction: 15", "delta-rs", "CommitAttemptsExceeded", None),
        (f"{TRINO}Expected transaction log version: 3, actual version: 4", "Trino", "VersionAlreadyExists", None),
        (f"{TRINO}Metadata changed by concurrent write operation", "Trino", "MetadataChangedException", None),
        (f"{TRINO}Protocol changed by concurrent write operation", "Trino", "ProtocolChangedException", None),
        (f"{TRINO}Data files added in the modified table by concurrent write operation.", "Trino", "ConcurrentAppendException", "TRINO_ADDED"),
        (f"{TRINO}Data files were removed from the modified table by another concurrent write operation.",
         "Trino", "ConcurrentDeleteReadException", "TRINO_REMOVED"),
        ("io.trino.x: Transaction log locked(1); lockingCluster=a", "Trino", "VersionAlreadyExists", None),
        ('io.delta.storage.commit.CommitFailedException: Commit conflict: {"error_code":"ABORTED"}', "unknown", "CommitConflict", None),
        ("CommitFailedException: Update conflict for main.shop.orders: x", "unknown", "CommitConflict", None),
        ("UC update_table error: HTTP status error (409)", "unknown", "CommitConflict", None),
        ("[DELTA_FEATURE_DROP_CONFLICT_REVALIDATION_FAIL] x", "unknown", "FeatureDropConflict", None),
        ("[DELTA_MAX_COMMIT_RETRIES_EXCEEDED] x", "unknown", "CommitAttemptsExceeded", None),
        ("Metadata of the Delta table has been changed by a concurrent update.", "unknown", "MetadataChangedException", None),
        ("ConcurrentTransactionException: A conflicting metadata domain delta.clustering is added.",
         "unknown", "ConcurrentTransactionException", "METADATA_DOMAIN"),
    ],
)  # fmt: skip
def test_each_engine_says_it_in_its_own_words(text, engine, name, condition):
    found = read_pasted(text)
    assert (found.engine, found.name, found.condition, found.others) == (
        engine,
        name,
        condition,
        (),
    )


def test_what_the_text_names_is_read():
    assert read_pasted(TWICE).file == "s3://b/t/day=3/p.parquet"
    assert read_pasted(TWICE).partition == "day=3"
    assert (
        read_pasted("A conflicting metadata domain delta.clustering is added.").domain
        == "delta.clustering"
    )
    assert read_pasted("Delta transaction failed, version 12 already exists.").version == 12
    taken = "FileAlreadyExistsException: s3a://b/t/_delta_log/00000000000000000017.json"
    assert read_pasted(taken).version == 17


@pytest.mark.parametrize(
    ("around", "mine"),
    [
        ('---> 3 spark.sql("merge into t using s on t.id = s.id")', "MERGE"),
        ('spark.sql("""UPDATE shop.orders AS o SET x = 1""")', "UPDATE"),
        ("spark.sql('OPTIMIZE events')", "OPTIMIZE"),
        ("== SQL == OPTIMIZE events ZORDER BY (id)", "OPTIMIZE"),
        ("INSERT INTO t SELECT 1", "WRITE"),
        ("target.alias('t').merge(s, 'a').whenMatchedUpdateAll().execute()", "MERGE"),
        ("write_deltalake(path, df)", "WRITE"),
        ("ours: UPDATE t SET x = 1; theirs: OPTIMIZE t;", "UPDATE"),
        ("theirs: OPTIMIZE t; ours: UPDATE t SET x = 1", "UPDATE"),
        ("please update the settings", None),
        ("", None),
    ],
)
def test_a_statement_in_the_text_says_what_the_job_was(around, mine):
    winner = (
        "ConcurrentAppendException: Transaction conflict detected. a concurrent OPTIMIZE added data"
        " to table t committed at version 3.\nConflicting commit:"
        ' {"operation":"MERGE","operationParameters":{"predicate":["DELETE FROM x"]}}'
    )
    found = read_pasted(f"{winner}\n{around}")
    assert (found.mine, found.operation) == (mine, "OPTIMIZE")
    assert found.told == (mine and "text")


OTHERS = exception_table().others


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_known_to_be_another_error_is_said_in_a_sentence(name):
    other = OTHERS[name]
    classes = (f"[{name}] x", f"[{name}.SOME_HINT] SQLSTATE: 42KDG") if name.isupper() else ()
    for text in (*classes, *other.classes, *map(written, other.phrases)):
        found = read_pasted(f"org.apache.spark.sql.delta.DeltaAnalysisException: {text}")
        assert isinstance(found, PastedError)
        assert (found.says, found.change, found.format) == (other.says, other.change, other.format)
        named = [one for one in (name, other.name, *other.classes) if one and one in text]
        assert found.name in (*named, "")
        assert found.name or text not in (*classes, *other.classes)
    with_conflict = f"DELTA_CONCURRENT_APPEND\n{name}"
    assert read_pasted(with_conflict).name == "ConcurrentAppendException"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the text is empty"),
        ("hello", "no known conflict in this text; pass the text of a conflict"),
        ("[DELTA_TABLE_NOT_FOUND] no", "(DELTA_TABLE_NOT_FOUND is unknown)"),
        ("java.lang.NullPointerException", "(NullPointerException is unknown)"),
        ("io.delta.exceptions.DeltaConcurrentModificationException: x", "is the superclass of all conflicts"),
        ("_internal.CommitFailedError: something new", "is what delta-rs raises for every failed commit"),
        ("io.delta.storage.commit.CommitFailedException: x", "is raised for every failed commit"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_refused_and_not_denied(text, reason):
    with pytest.raises(NoConflict) as refused:
        read_pasted(text, "mine.txt")
    assert str(refused.value).startswith("mine.txt: ")
    assert reason in str(refused.value)
    assert "none of" not in str(refused.value)


def each_line(before, text=PART):
    return "\n".join(before + line for line in text.split("\n"))


@pytest.mark.parametrize(
    "text",
    [
        "Concurrent\x1b[1;31mAppend\x1b[0mException: \x1b]8;;x\x1b\\" + PART,
        r"\u001b[0;31mConcurrentAppendException\u001b[0m: " + PART,
        "<pre>Concurrent<b>Append</b>Exception: Files were added to partition&nbsp;[day=3] by a<br/>concurrent update</pre>",
        each_line("> "), each_line(">> "), each_line("E       "), each_line("executor_1  | "),
        each_line("2026-01-01T10:00:00.123Z [ERROR] worker-1: "), each_line("26/01/01 10:00:00 ERROR Batch: "),
        each_line("Nov  7 10:00:00 host spark[12]: "), each_line("2026-01-01T10:00:00.1Z stderr F "),
        "2026-01-01 10:00:00,123 ERROR io.delta.exceptions.ConcurrentAppendException: " + PART,
        "Concurrent\u200bAppend\u00adException: \u202e" + PART,
        json.dumps(json.dumps({"error": f"{PART}\nConflicting commit: {INFO}"})),
        '"' + f"{PART}\nConflicting commit: {INFO}".replace('"', '""') + '"',
    ],
)  # fmt: skip
def test_what_stands_around_the_words_is_left_out(text):
    found = read_pasted(text)
    assert (found.name, found.partition) == ("ConcurrentAppendException", "day=3")
    assert found.operation == ("WRITE" if "operation" in text else None)


@pytest.mark.parametrize(
    ("text", "mine"),
    [
        ("a concurrent CREATE OR REPLACE TABLE AS SELECT added data to table t committed at version 3.", None),
        ("a concurrent DELETE deleted data from table t (committed at version 3) that this transaction read.", None),
        ("a concurrent MERGE added data to table `a`.`b` committed at version 3. MERGE INTO b USING s ON 1 = 1", "MERGE"),
        (f"{OLD} at a.hooks.AutoCompactBase.run at a.commands.OptimizeExecutor.run", "AUTO COMPACTION"),
        (f"{PART} ALTER TABLE <table-name> SET TBLPROPERTIES ('delta.isolationLevel' = 'Serializable')", None),
    ],
)  # fmt: skip
def test_the_operation_of_the_winner_is_not_that_of_the_job(text, mine):
    assert read_pasted(f"ConcurrentAppendException {text}").mine == mine


def test_the_engine_of_the_winner_is_said_to_be_that():
    info = '{"operation":"WRITE","engineInfo":"kafka/1.0 Delta-Standalone/0.6.0"}'
    alone = read_pasted(f"ConcurrentAppendException\nConflicting commit: {info}")
    beside = read_pasted(f"at io.trino.x.ConcurrentAppendException\nConflicting commit: {info}")
    assert (alone.engine, alone.is_engine_of_winner) == ("Delta Standalone", True)
    assert (beside.engine, beside.is_engine_of_winner) == ("Trino", False)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("LockClientError::VersionAlreadyExists(77)", 77),
        ("DELTA_MAX_COMMIT_RETRIES_EXCEEDED Commit started at version: 10 Commit failed at version: 17", 17),
        (f"{TRINO}Expected transaction log version: 3, actual version: 4", 4),
        ("Commit version 5 is not valid. Expected version", 5),
        ("Delta transaction failed, version 12 already exists. Spark version 3.5", 12),
    ],
)  # fmt: skip
def test_a_number_after_the_word_version_is_the_version(text, version):
    assert read_pasted(text).version == version


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("Attempting to write a transaction 12 but the underlying table has been updated to 49",
         {"version that your write tried": 12, "newest version of the table": 49}),
        ("table updated during transaction, checking for conflicts base_version=11 latest_version=49 versions_behind=38",
         {"version that your write had read": 11, "newest version of the table": 49}),
        ("[DELTA_SOURCE_IGNORE_DELETE] Detected deleted data (for example a) from streaming source at version 12.",
         {"version of the source table": 12}),
        ("[DELTA_SCHEMA_CHANGED_WITH_VERSION] Detected schema change in version 7:", {"version of the source table": 7}),
    ],
)  # fmt: skip
def test_versions_in_other_errors_are_read(text, versions):
    found = read_pasted(text)
    assert isinstance(found, PastedError)
    assert found.versions == versions


def test_only_the_line_of_the_commit():
    """Case c11."""
    found = read_pasted(f"Conflicting commit: {INFO}")
    assert (found.name, found.operation, found.mine) == ("ConflictingCommit", "WRITE", None)
    assert read_pasted(f"ConcurrentWriteException\nConflicting commit: {INFO}").name != found.name


def test_a_replaced_table_is_a_cause_of_its_own():
    """Case c10; an error class with a cause of its own counts more."""
    old = OLD.replace('"operation":"WRITE"', '"operation":"CREATE OR REPLACE TABLE AS SELECT"')
    assert read_pasted(old).condition == "WHOLE_TABLE_REPLACE"
    named = f"[DELTA_CONCURRENT_APPEND.METADATA_CHANGE] {old}"
    assert read_pasted(named).condition == "METADATA_CHANGE"


def test_a_file_without_a_folder_is_of_a_table_without_partitions():
    of_root = FILE.replace("org=15/day=3/", "")
    assert (read_pasted(FILE).facts.where, read_pasted(of_root).facts.where) == (
        "partition",
        "table",
    )


def test_a_text_cut_anywhere_between_its_signs_is_known():
    wrapped = "\n".join(PART.replace("\n", " ")[k : k + 7] for k in range(0, 60, 7))
    assert read_pasted(wrapped).name == "ConcurrentAppendException"
    assert (
        read_pasted("io.delta.exceptions.Concurr\nentWriteException").name
        == "ConcurrentWriteException"
    )
    assert read_pasted(PART.partition("] by")[0] + "]").name == "ConcurrentAppendException"
    assert read_pasted("delta_concurrent_append").name == "ConcurrentAppendException"
    assert read_pasted("[DELTA_CONCURRENT_APPEND.NEW_2027] x").sub_condition == "NEW_2027"


def test_of_two_jobs_nothing_of_the_second_is_told():
    found = read_pasted(f"{FILE}\n{NEW}\n{OLD}")
    assert (found.version, found.operation, found.mine) == (None, None, None)
    assert found.others == ("ConcurrentDeleteReadException", "ConcurrentAppendException")
    again = NEW.replace("version 12", "version 40").replace("01-02", "01-03")
    found = read_pasted(f"{NEW}\n{NEW}\n at MergeIntoCommand.run\n{again}")
    assert (found.version, found.partition) == (12, "day=2026-01-02")
    assert found.others == ("ConcurrentDeleteReadException",)
    assert read_pasted(f"{NEW}\nCaused by: {NEW}").others == ()


@pytest.mark.parametrize(
    "text",
    [
        "com.acme.MetadataChangedException",
        "org.apache.hudi.exception.ConcurrentWriteException", "java.util.ConcurrentModificationException: null",
        "Merge commit conflict: CONFLICT (content)", "HTTP 409 Conflict", "SQLSTATE: 2D521",
        "409 Client Error: Conflict for url: https://example.org/x/commits", "MANAGED_COMMIT conflict: version 5",
        "javax.validation.ValidationException: x",
    ],
)  # fmt: skip
def test_what_others_say_is_no_conflict_of_delta(text):
    with pytest.raises(NoConflict):
        read_pasted(text)


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
@example("\x1b]" * 30_000)
def test_any_text_is_read_or_refused(text):
    try:
        found = read_pasted(text)
    except NoConflict:
        return
    if isinstance(found, PastedError):
        return
    assert found.name in EVERY
    assert found.condition in (None, *CONDITIONS)
    assert found.facts.where in (None, "partition", "table")
