"""``isolitmus explain`` as a user sees it: a text, a table, both, and what is neither."""

import io
import json
import sys
from itertools import product

import pytest
from case_checks import check_cases

from isolitmus.checker.auditing.diagnosis import explain
from isolitmus.checker.auditing.winning_commits import winning_commits_after
from isolitmus.checker.render.diagnosis import diagnosis_lines
from isolitmus.model.errors import TimeLimit
from isolitmus.specs.files.exceptions_file import exception_table

MESSAGE = (
    "delta.exceptions.ConcurrentAppendException: [DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT]"
    " Transaction conflict detected. a concurrent {operation} added data to table t committed at"
    " version {version}. The concurrent operation modified data in the partition [part={part}] that"
    " should have been read by this operation.\n\tat"
    " org.apache.spark.sql.delta.commands.DeleteCommand.run(DeleteCommand.scala:1)\n"
)


def message(operation="WRITE", version=2, part=0):
    return MESSAGE.format(operation=operation, version=version, part=part)


@pytest.fixture
def pasted(tmp_path, monkeypatch):
    """A function that makes a file of a text."""
    monkeypatch.chdir(tmp_path)

    def paste(text):
        (tmp_path / "error.txt").write_text(text, "utf-8")
        return "error.txt"

    return paste


@pytest.fixture
def table(delta):
    """A delete of partition 0 was refused for version 2; it was run again as version 4."""
    return delta.table(
        delta.append(0, "f1"),
        delta.append(1, "f2", ids=(5,)),
        delta.append(2, "f3", part=1),
        delta.delete(3, "(part#1 = 0)", "f1", "f2"),
        level="Serializable",
    )


def give(monkeypatch, text):
    data = io.BytesIO(text if isinstance(text, bytes) else text.encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(data))


def test_a_text_alone(call, pasted):
    status, out, err = call("explain", pasted(message()))
    assert (status, err) == (0, "")
    answer, cause, change, retry, empty, details, error_class, engine, check, where, mine, *_ = (
        out.splitlines()
    )
    assert (
        answer
        == "ConcurrentAppendException: a concurrent commit added a file to data that your job read."
        " Retry: yes."
    )
    assert cause == "Cause: version 2 of t (WRITE), in partition part=0."
    assert change.startswith(
        "Change: If your job needs another partition than the one in the message: compare"
    )
    assert retry.startswith("When you retry: The statement then also reads the rows of the winning")
    assert (empty, details) == ("", "Details:")
    assert error_class == "  Error class: DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT"
    assert engine == "  Engine: Delta"
    assert (
        check == "  Check: the winning commit added a file that matches the read set of your commit"
        " (docs/delta.md, 2.3; ConflictChecker.scala 1134-1161 in Delta 4.4.0)."
    )
    assert (where, mine) == (
        "  Partition: part=0",
        "  Your job: DELETE (according to the stack trace)",
    )
    assert (
        "Example of DELETE in conflict with WRITE: litmus test reorder under delta-serializable"
        in out
    )
    assert "delete aborts with ConcurrentAppendException" in out
    assert "Retry of delete: succeeds." in out
    assert "Next: isolitmus explain FILE --table PATH finds the winning commit" in out
    assert "Next: isolitmus predict --table PATH yours.sql other.sql --remedies" in out
    assert "docs/conflicts.md#concurrentappendexception" in out


def test_what_delta_rs_says_is_not_taken_for_deltas(call, pasted):
    text = (
        "Failed to commit transaction: 15\nCaused by: a concurrent transaction deleted data this"
        " operation read"
    )
    _, out, _ = call("explain", pasted(text))
    assert "Engine: delta-rs, whose check of this name may compare other files" in out
    assert "by the rules of open-source Delta on Spark" in out
    assert "in Delta on Spark: docs/delta.md, 2.3" in out
    _, out, _ = call("explain", pasted(message()))
    assert "delta-rs, whose" not in out


def test_a_sub_condition_by_row_says_nothing_of_files(call, pasted):
    """Case k5: rows were compared, so no remedy by partitions, no row-level concurrency to turn on,
    no example by file.
    """
    text = (
        "[DELTA_CONCURRENT_APPEND.ROW_LEVEL_CHANGES] Transaction conflict detected. A concurrent"
        " MERGE added data to table shop.orders committed at version 412. The concurrent operation"
        " modified the same rows that this transaction attempted to modify. Please retry the"
        " operation. SQLSTATE: 2D521"
    )
    status, out, _ = call("explain", pasted(text))
    assert status == 0
    answer, cause, change, *_ = out.splitlines()
    assert (
        answer
        == "ConcurrentAppendException: a concurrent commit wrote the same rows as your job. Retry:"
        " yes."
    )
    assert cause == "Cause: version 412 of shop.orders (MERGE)."
    assert "its own keys" in change
    assert "Row-level concurrency is enabled" in out
    assert "INSERT" not in out
    assert (
        "Example with other commands (by the rules of open-source Delta on Spark, which compares"
        " files): litmus test two-updates" in out
    )
    for wrong in ("does not check whether", "deletion vectors", "Partition:", "predict"):
        assert wrong not in out


CLASSES = (
    "DELTA_CONCURRENT_APPEND",
    "DELTA_CONCURRENT_DELETE_READ",
    "DELTA_CONCURRENT_DELETE_DELETE",
)
BY_ROWS = ("ROW_LEVEL_CHANGES", "ALLOTTED_TIME_EXCEEDED")


def answers_in_agreement(error_class, hint, winner):
    text = (
        f"[{error_class}.{hint}] Transaction conflict detected. A concurrent {winner} added data to"
        " table t committed at version 4."
    )
    found = explain(text)
    out = "\n".join(diagnosis_lines(found))
    first = [line.partition(":")[0] for line in out.splitlines()[:5]]
    assert first[:3] == [found.known.name, "Cause", "Change"]
    assert first[3] in ("When you retry", "Before you retry")
    assert first[4] == ""
    assert f"version 4 of t ({winner})" in out.splitlines()[1]
    by_rows, by_files = hint in BY_ROWS, hint in ("WITHOUT_HINT", "WITH_PARTITION_HINT")
    assert not (
        by_rows
        and any(
            words in out
            for words in ("any file", "does not check whether", "enableDeletionVectors")
        )
    )
    example = found.example and found.example.example
    assert example is None or (example.winner == "OPTIMIZE") == (winner == "OPTIMIZE")
    assert (
        example is None
        or "by the rules of open-source Delta on Spark, which compares files" in out
        or by_files
    )
    assert ("predict" in out) == by_files
    return True


def test_no_line_of_an_answer_contradicts_another_one_whatever_the_sub_condition():
    hints = [
        name for name, one in exception_table().conditions.items() if len(one.of) == len(CLASSES)
    ]
    cases = product(CLASSES, (*hints, "WITHOUT_HINT", "WITH_PARTITION_HINT"), ("MERGE", "OPTIMIZE"))
    assert len(check_cases(answers_in_agreement, cases)) == 72


def test_a_compaction_that_lost_by_rows_is_told_to_wait(call, pasted):
    text = (
        "[DELTA_CONCURRENT_DELETE_READ.ROW_LEVEL_CHANGES] Transaction conflict detected, a"
        " concurrent DELETE deleted data from table a.b.c (committed at version 5) that this"
        " transaction read. SQL: OPTIMIZE a.b.c ZORDER BY (id);"
    )
    _, out, _ = call("explain", pasted(text))
    assert "Change: Postpone your compaction" in out
    assert "its own keys" not in out
    assert "two-deletes" not in out


def test_a_level_that_open_source_delta_does_not_set_is_no_contradiction(call, pasted):
    text = (
        "io.delta.exceptions.ConcurrentAppendException: Files were added to the root of the table"
        " by a concurrent update. Conflicting commit:"
        ' {"operation":"MERGE","isolationLevel":"WriteSerializable"}\n at'
        " org.apache.spark.sql.delta.commands.UpdateCommand.run"
    )
    _, out, _ = call("explain", pasted(text))
    assert (
        "At that level a blind append (an INSERT that read nothing of the table) does not count"
        in out
    )
    assert "accepts only the level" not in out
    _, out, _ = call("explain", pasted(text.replace("WriteSerializable", "Serializable")))
    assert "accepts only the level Serializable" in out


def test_of_two_conflicts_of_one_class_the_second_is_named(call, pasted):
    one = (
        "[DELTA_CONCURRENT_APPEND.WITHOUT_HINT] x a concurrent MERGE added data to table t"
        " committed at version {}. x"
    )
    _, out, _ = call("explain", pasted(f"{one.format(12)}\n{'at x ' * 40}\n{one.format(40)}"))
    assert "version 12 of t (MERGE)" in out
    assert "version 40" not in out
    assert "the text also contains another ConcurrentAppendException" in out


def test_a_metadata_domain_is_no_query_that_was_started_twice(call, pasted):
    """Case k3."""
    text = (
        "io.delta.exceptions.ConcurrentTransactionException: A conflicting metadata domain"
        " delta.clustering is added."
    )
    _, out, _ = call("explain", pasted(text))
    answer, cause, change, retry, *_ = out.splitlines()
    assert (
        answer
        == "ConcurrentTransactionException: two jobs set the same metadata domain of the table."
        " Retry: only after a check."
    )
    assert cause == "Cause: a concurrent commit that sets delta.clustering."
    assert change == "Change: Alter the table in one place before the jobs start, not in each job."
    assert retry.startswith("Before you retry: Look at what the other job set")
    assert "Example: litmus test clustering-twice under delta-serializable" in out
    assert "checkpoint" not in out


def test_what_another_engine_says_is_a_conflict_too(call, pasted):
    """Case k4; of what Delta on Spark has no class for there is no example."""
    text = (
        "deltalake.exceptions.CommitFailedError: Delta transaction failed, version 0 already"
        " exists."
    )
    status, out, err = call("explain", pasted(text))
    assert (status, err) == (0, "")
    answer, cause, change, retry, *_ = out.splitlines()
    assert (
        answer == "VersionAlreadyExists: two writers created the table at the same time."
        " Retry: only after a check."
    )
    assert cause == "Cause: version 0."
    assert change == "Change: Create the table once, before the jobs start."
    assert retry.startswith("Before you retry: Look at the contents of the table")
    assert "docs/conflicts.md#other-engines" in out
    _, out, _ = call("explain", pasted(text), "--json")
    found = json.loads(out)
    keys = ("exception", "condition", "engine", "example")
    assert [found[key] for key in keys] == [
        "VersionAlreadyExists",
        "TABLE_MADE_TWICE",
        "delta-rs",
        None,
    ]


COMMIT = (
    "io.delta.exceptions.{name}: {says}. Please try the operation again.\nConflicting commit:"
    ' {{"timestamp":1,"operation":"{operation}","operationParameters":{parameters},"readVersion":42,'
    '"isolationLevel":"WriteSerializable","isBlindAppend":false,"engineInfo":"{engine}"}}'
)


def commit_message(
    operation, parameters="{}", name="ConcurrentAppendException", engine="x", says=""
):
    says = says or "Files were added to the root of the table by a concurrent update"
    return COMMIT.format(
        name=name, operation=operation, parameters=parameters, engine=engine, says=says
    )


def test_the_advice_is_for_the_winner_that_the_text_names(call, pasted):
    """Case c10: the winner replaced the table."""
    engine = "Databricks-Runtime/11.3.x-cpu-ml-scala2.12"
    text = commit_message("CREATE OR REPLACE TABLE AS SELECT", engine=engine)
    status, out, err = call("explain", pasted(text))
    assert (status, err) == (0, "")
    answer, _, change, retry, *_ = out.splitlines()
    assert "replaced all rows of the table. Retry: only after a check." in answer
    assert change.startswith(
        "Change: Replace the table while no other job writes, or give each run"
    )
    assert retry.endswith("retry only if it should.")
    assert "row-level concurrency) would not help" in out
    assert "(by the winning commit alone)" in out
    assert "UPDATE" not in out
    assert "blind append:" not in out
    assert "Your job" not in out


@pytest.mark.parametrize(
    ("auto", "said", "never"),
    [
        ("true", "Turn auto compaction off", "Postpone"),
        ("false", "Postpone the compaction", "auto"),
    ],
)
def test_a_compaction_that_delta_started_cannot_be_postponed(call, pasted, auto, said, never):
    text = commit_message("OPTIMIZE", f'{{"predicate":"[]","zOrderBy":"[]","auto":"{auto}"}}')
    _, out, _ = call("explain", pasted(text))
    assert out.splitlines()[2].startswith(f"Change: {said}")
    assert never not in "".join(out.splitlines()[:3])
    assert "If the winning commit" not in out
    assert "Condition" not in out, "the list of conditions is empty"
    _, out, _ = call("explain", pasted(text), "--json")
    assert json.loads(out)["winner"]["operation"] == "OPTIMIZE"


def test_of_two_compactions_nothing_is_said_of_overwrites(call, pasted):
    says = (
        "This transaction attempted to delete one or more files that were deleted (for example"
        " day=1/part-0.parquet) by a concurrent update"
    )
    text = commit_message(
        "OPTIMIZE", '{"predicate":[]}', "ConcurrentDeleteDeleteException", says=says
    )
    _, out, _ = call("explain", pasted(f"{text} at a.OptimizeExecutor.run(B.scala:1)"))
    assert "Change: Run only one of the two compactions" in out
    assert "overwrite" not in out


@pytest.mark.parametrize(
    ("predicate", "said"),
    [
        ('["true"]', ("(DELETE of all rows", "Condition of the winning commit: true (all rows)")),
        ('"[\\"(id#1 = 3)\\"]"', ("(DELETE,", "Condition of the winning commit: (id#1 = 3)")),
        ('"(a = 1"', ("(DELETE,", "Condition of the winning commit: (a = 1")),
        ('"[oops"', ("(DELETE,", "Condition of the winning commit: [oops")),
    ],
)
def test_the_line_of_the_commit_alone(call, pasted, predicate, said):
    """Case c11."""
    text = commit_message("DELETE", f'{{"predicate":{predicate}}}').partition("\n")[2]
    status, out, err = call("explain", pasted(text))
    assert (status, err) == (0, "")
    assert "Change: Pass the line above this one too: its class" in out
    assert "checked at WriteSerializable" in out
    for words in said:
        assert words in out


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Caused by: org.apache.iceberg.exceptions.ValidationException: Found conflicting files that can contain records matching true: [a]",
         "ValidationException is a conflict in an Iceberg table, which isolitmus does not model."),
        ("org.apache.iceberg.exceptions.CommitStateUnknownException: Read timed out",
         "CommitStateUnknownException is not a conflict of commits to a Delta table."),
        ("[DELTA_SOURCE_TABLE_IGNORE_CHANGES] Detected a data update (for example a) in the source table at version 12.",
         "DELTA_SOURCE_TABLE_IGNORE_CHANGES is not a conflict of commits to a Delta table."),
        ("WARN Attempting to write a transaction 12 but the underlying table has been updated to 49",
         "This is not a conflict of commits to a Delta table."),
    ],
)  # fmt: skip
def test_a_known_error_that_is_no_conflict_is_explained(call, pasted, text, first):
    status, out, err = call("explain", pasted(text))
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == first
    assert lines[1].startswith("Meaning: ")
    assert "Change: " in out
    status, out, _ = call("explain", pasted(text), "--json")
    found = json.loads(out)
    assert (status, sorted(found)) == (0, ["change", "error", "format", "meaning", "versions"])
    assert str(explain(text)).startswith(first)


def test_deletion_vectors_that_are_on_are_not_turned_on(call, pasted):
    engine = "Databricks-Runtime/14.3.x"
    text = commit_message("MERGE", engine=engine)
    off, on = (
        text,
        text.replace(
            '"engineInfo', '"operationMetrics":{"numTargetDeletionVectorsAdded":"3"},"engineInfo'
        ),
    )
    _, out, _ = call("explain", pasted(off))
    assert "Change: Turn on deletion vectors" in out
    _, out, _ = call("explain", pasted(on))
    assert "Change: Check why rows were not compared" in out
    assert "Turn on deletion vectors" not in out


def test_with_the_table_a_replaced_table_is_the_cause(call, pasted, delta):
    replaced = delta.append(1, "f2")
    replaced[0]["commitInfo"]["operation"] = "CREATE OR REPLACE TABLE AS SELECT"
    path = delta.table(delta.append(0, "f1"), replaced)
    text = (
        "ConcurrentAppendException: Files were added to partition [part=0] by a concurrent update."
    )
    status, out, _ = call("explain", pasted(text), "--table", path, "--version", 2)
    assert status == 0
    assert "replaced all rows of the table" in out.splitlines()[0]


def test_a_sub_condition_that_is_not_known_is_said_to_be_none(call, pasted):
    _, out, _ = call("explain", pasted("[DELTA_CONCURRENT_APPEND.SOMETHING_NEW] x"))
    assert (
        "Unknown part of the error class: SOMETHING_NEW. The following is about"
        " ConcurrentAppendException in general." in out
    )
    _, out, _ = call("explain", pasted(message()))
    assert "Unknown part" not in out


def test_few_transactions_of_a_long_example_are_shown(call, pasted):
    text = message(operation="UPDATE").replace("DeleteCommand", "MergeIntoCommand")
    _, out, _ = call("explain", pasted(text))
    assert "Example of MERGE in conflict with UPDATE: litmus test rows-of-one-file" in out
    assert "(6 other transactions not shown)" in out


def test_the_example_says_of_what_it_is_one(call, pasted):
    other = message(operation="MERGE").replace("DeleteCommand", "UpdateCommand")
    beside = (
        "ConcurrentAppendException: a concurrent OPTIMIZE added data to table t committed at"
        " version 3."
    )
    unlike = message(operation="CLONE").replace("DeleteCommand", "RestoreTableCommand")
    for text, said in (
        (other, "with other commands: "),
        (beside, "of a conflict with OPTIMIZE: "),
        (unlike, None),
    ):
        _, out, _ = call("explain", pasted(text))
        assert ("\nExample" in out) == (said is not None)
        assert said is None or f"\nExample {said}" in out


def test_the_log_says_which_commit_set_the_domain(call, pasted, delta):
    path = delta.table(
        delta.append(0, "f1"),
        [
            delta.info("CLUSTER BY", 1, True),
            {"domainMetadata": {"domain": "delta.clustering", "configuration": "{}"}},
        ],
    )
    text = (
        "ConcurrentTransactionException: A conflicting metadata domain delta.clustering is added."
    )
    status, out, _ = call("explain", pasted(text), "--table", path, "--failed-after", "1")
    assert status == 0
    assert "Cause: version 2 (CLUSTER BY" in out
    status, out, _ = call("explain", "--table", path, "--version", "2")
    assert (
        "ConcurrentTransactionException: any that sets the metadata domain delta.clustering too"
        in out
    )


def test_standard_input(call, pasted, monkeypatch):
    expected = call("explain", pasted(message()))
    for words in ((), ("-",)):
        give(monkeypatch, message())
        assert call("explain", *words) == expected
    give(monkeypatch, b"\xff\xfe" + message().encode())
    assert call("explain") == expected


def test_with_the_table_the_commit_is_named(call, pasted, table):
    status, out, _ = call("explain", pasted(message()), "--table", table)
    assert status == 0
    lines = out.splitlines()
    assert lines[1] == "Cause: version 2 (WRITE: 1 file added in part=0, a blind append)."
    assert lines[9:15] == [
        (
            "  Winning commit: read version 1, checked at WriteSerializable, by Apache-Spark/4.2.0"
            " Delta-Lake/4.4.0"
        ),
        "  Parameters: mode: Append",
        "  Partition: part=0",
        "  File: f2",
        "  Your job: DELETE (according to the stack trace)",
        (
            "  Later commit: version 4 (DELETE: 2 files removed in part=0); perhaps a retry of"
            " your job"
        ),
    ]
    assert "Next: isolitmus explain" not in out


def test_the_document(call, pasted, table):
    status, out, _ = call("explain", pasted(message()), "--table", table, "--json")
    found = json.loads(out)
    assert (status, found["exception"], found["files"], found["later"]) == (
        0,
        "ConcurrentAppendException",
        ["f2"],
        4,
    )
    assert found["winner"] == {
        "version": 2,
        "operation": "WRITE",
        "blind": True,
        "isolation_level": "WriteSerializable",
        "read_version": 1,
    }
    assert found["example"]["outcome"] == "ConcurrentAppendException"
    assert (found["engine"], found["condition"], found["title"]) == (
        "Delta",
        None,
        "A concurrent commit added a file to data that your job read",
    )
    assert [step.split()[1] for step in found["next"]] == ["predict"]


def test_a_message_without_a_version_is_found_by_what_it_says_of_the_commit(call, pasted, delta):
    info = delta.append(1, "f2", timestamp=17)
    info[0]["commitInfo"] |= {"timestamp": 17, "txnId": "abc"}
    path = delta.table(delta.append(0, "f1"), info, delta.append(2, "f3"))
    old = (
        "ConcurrentAppendException: Files were added to partition [part=0] by a concurrent"
        ' update.\nConflicting commit: {"timestamp":17,"operation":"WRITE","txnId":"abc"}'
    )
    status, out, _ = call("explain", pasted(old), "--table", path, "--json")
    assert (status, json.loads(out)["winner"]["version"]) == (0, 2)
    other = old.replace("abc", "xyz").replace("17", "18")
    status, _, err = call("explain", pasted(other), "--table", path)
    assert status == 2
    assert "no commit from version 0 to 3 has the txnId 'xyz' of the message" in err


def test_a_file_that_is_named_is_the_file(call, pasted, delta):
    """Two commits of one time: the one that has the file is it."""
    delete = delta.delete(1, "(part#1 = 0)", "f1")
    other = delta.delete(2, "(part#1 = 0)", "f2")
    for one in (delete, other):
        one[0]["commitInfo"]["timestamp"] = 17
    path = delta.table(delta.append(0, "f1"), delta.append(1, "f2"), delete, other)
    said = (
        "This transaction attempted to read one or more files that were deleted (for example {}) by"
        ' a concurrent update.Conflicting commit: {{"timestamp":17,"operation":"DELETE"}}'
    )
    status, out, _ = call("explain", pasted(said.format("f1")), "--table", path, "--json")
    found = json.loads(out)
    assert (status, found["winner"]["version"], found["files"]) == (0, 3, ["f1"])
    status, _, err = call("explain", pasted(said.format("f9")), "--table", path)
    assert (status, "has no file f9, which the message names" in err) == (2, True)


def test_a_message_that_says_little_needs_the_version_that_was_read(call, pasted, table):
    file = pasted(
        "ConcurrentAppendException: Files were added to partition [part=1] by a concurrent update."
    )
    status, _, err = call("explain", file, "--table", table)
    assert (status, "pass its version with --version" in err) == (2, True)
    status, out, _ = call("explain", file, "--table", table, "--failed-after", "1", "--json")
    assert (status, json.loads(out)["winner"]["version"]) == (0, 3)
    status, _, err = call("explain", file, "--table", table, "--failed-after", "3")
    assert status == 2
    assert (
        "no commit after version 3 can have caused ConcurrentAppendException in partition part=1"
        in err
    )


def test_a_table_without_a_text_says_whom_its_commits_stop(call, table):
    status, out, _ = call("explain", "--table", table, "--version", "4")
    assert status == 0
    assert out.splitlines() == [
        f"{table}: concurrent transactions that version 4 can make abort:",
        "version 4 (DELETE: 2 files removed in part=0)",
        (
            "  Commit: read version 3, checked at WriteSerializable, by Apache-Spark/4.2.0"
            " Delta-Lake/4.4.0"
        ),
        '  Parameters: predicate: ["(part#1 = 0)"]',
        (
            "  ConcurrentDeleteReadException: any that read one of its removed files in partition"
            " part=0 (at every level)"
        ),
        (
            "  ConcurrentDeleteDeleteException: any that removes one of the same files without"
            " having read it"
        ),
        "  ConcurrentWriteException: a concurrent RESTORE, CLONE or CONVERT TO DELTA",
    ]
    status, out, _ = call("explain", "--table", table, "--failed-after", "2", "--json")
    found = json.loads(out)
    assert [one["version"] for one in found["commits"]] == [3, 4]
    status, out, _ = call("explain", "--table", table, "--failed-after", "4")
    assert (status, "no commit after version 4" in out) == (0, True)
    status, out, _ = call("explain", "--table", table, "--failed-after", "-1", "--json")
    stops = json.loads(out)["commits"][0]["stops"]
    assert {"MetadataChangedException", "ProtocolChangedException"} <= stops.keys()


def test_an_application_and_metadata_stop_their_kind(call, delta):
    txn = {"txn": {"appId": "loader", "version": 3}}
    path = delta.table(
        [*delta.append(0, "f1"), txn], [delta.info("SET TBLPROPERTIES", 1, True), delta.metadata()]
    )
    _, out, _ = call("explain", "--table", path, "--failed-after", "0", "--json")
    first, second = (one["stops"] for one in json.loads(out)["commits"])
    assert first["ConcurrentTransactionException"] == "another run of loader"
    assert "ConcurrentAppendException" not in second
    assert "any that began before it" in second["MetadataChangedException"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "words", "reason"),
    [
        ("hello", (), "error.txt: no known conflict in this text"),
        ("", (), "error.txt: the text is empty"),
        (message(version=9), ("--table", "t"), "there is no version 9 in the log; it has 0 to 4"),
        (message(part=1), ("--table", "t"), "has no file in partition part=1, which the message names"),
        (message(operation="MERGE"), ("--table", "t"), "version 2 (WRITE) is not a MERGE"),
        (message(version=4, operation="DELETE"), ("--table", "t"), "cannot have caused ConcurrentAppendException"),
        (message(), ("--table", "nowhere"), "there is no such folder"),
        (message(), ("--table", "."), "not a Delta table: it has no folder _delta_log"),
        (message(), ("--table", "s3://bucket/t"), "only its folder _delta_log is needed"),
        (message(), ("--version", "2"), "--version needs --table"),
        (message(), ("--failed-after", "2"), "--failed-after needs --table"),
        (message(), ("--table", "t", "--version", "2", "--failed-after", "1"), "pass one of them"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("table")
def test_bad_input_is_one_sentence(call, pasted, text, words, reason):
    status, out, err = call("explain", pasted(text), *words)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert reason in err


@pytest.mark.parametrize("option", ["--version", "--failed-after"])
def test_a_log_without_the_version(call, table, option):
    status, _, err = call("explain", "--table", table, option, "17")
    assert (status, "there is no version 17 in the log; it has 0 to 4" in err) == (2, True)


def test_an_exception_for_a_file_leads_to_show(call):
    status, _, err = call("explain", "DELTA_CONCURRENT_APPEND")
    assert (status, "run isolitmus show DELTA_CONCURRENT_APPEND" in err) == (2, True)
    status, _, err = call("explain", "nothing.txt")
    assert (status, "cannot read nothing.txt" in err) == (2, True)


def test_show_of_a_cause_is_of_that(call):
    status, out, _ = call("show", "DELTA_CONCURRENT_APPEND.ROW_LEVEL_CHANGES")
    assert status == 0
    assert out.startswith(
        "ConcurrentAppendException (exception): A concurrent commit wrote the same rows as your job"
    )
    assert "does not check whether" not in out
    assert "Causes with" not in out


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ConcurrentWriteException", "DELTA_CONCURRENT_WRITE"])
def test_show_says_it_in_general(call, name):
    status, out, _ = call("show", name)
    assert status == 0
    assert out.startswith("ConcurrentWriteException (exception): A concurrent commit came first")
    assert "restore aborts with ConcurrentWriteException" in out
    status, out, _ = call("show", "exceptions")
    assert out.count("Exception ") == 7
    assert "VersionAlreadyExists" in out


def test_a_limit_ends_explain_with_what_the_text_says(call, pasted, table):
    file = pasted(message())
    status, out, err = call("explain", file, "--table", table, "--time", 0)
    assert (status, out.partition(":")[0]) == (3, "ConcurrentAppendException")
    assert "Example" not in out
    assert "the time limit of 0 s ended it; the rest is unknown" in err
    status, out, _ = call("explain", file, "--table", table, "--time", 0, "--json")
    document = json.loads(out)
    assert (status, document["example"]) == (3, None)
    assert document["ended"] == "the time limit of 0 s ended it"
    assert json.loads(call("explain", file, "--json")[1])["ended"] is None


def test_commits_that_were_looked_at_before_a_limit_are_told(call, table, monkeypatch):
    def some(log, after):
        yield from list(winning_commits_after(log, after))[:1]
        raise TimeLimit("the time limit of 9 s ended it")

    monkeypatch.setattr("isolitmus.checker.auditing.diagnosis.winning_commits_after", some)
    status, out, _ = call("explain", "--table", table, "--failed-after", 1, "--time", 9, "--json")
    document = json.loads(out)
    assert (status, [c["version"] for c in document["commits"]]) == (3, [2])
    assert document["ended"] == "the time limit of 9 s ended it"
    status, out, _ = call("explain", "--table", table, "--failed-after", 1, "--time", 0)
    assert (status, out) == (3, ""), "and not that nothing was committed"
