"""``isolitmus explain`` as a user sees it: a text, a table, both, and what is neither."""

import io
import json
import sys

import pytest

MESSAGE = (
    "delta.exceptions.ConcurrentAppendException: [DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT] Transaction conflict"
    " detected. a concurrent {operation} added data to table t committed at version {version}. The concurrent operation"
    " modified data in the partition [part={part}] that should have been read by this operation.\n"
    "\tat org.apache.spark.sql.delta.commands.DeleteCommand.run(DeleteCommand.scala:1)\n"
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
    first, _, third, where, mine, *_ = out.splitlines()
    assert first == (
        "ConcurrentAppendException (DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT): Another job added a file where yours"
        " had read"
    )
    assert third == "  stopped by: version 2 of t (WRITE)"
    assert (where, mine) == ("  where: partition part=0", "  your job: DELETE, by the stack trace")
    assert "Run it again? Yes." in out
    assert "so delete cannot commit: ConcurrentAppendException" in out
    assert "Run after the others, delete commits." in out
    assert "docs/conflicts.md#concurrentappendexception" in out


def test_what_delta_rs_says_is_not_taken_for_deltas(call, pasted):
    text = "Failed to commit transaction: 15\nCaused by: a concurrent transaction deleted data this operation read"
    _, out, _ = call("explain", pasted(text))
    assert "said by delta-rs, whose check of this name may compare other files" in out
    _, out, _ = call("explain", pasted(message()))
    assert "delta-rs, whose" not in out


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
    assert lines[2:8] == [
        "  stopped by: version 2 (WRITE: 1 file added in part=0, a blind append)",
        "    it had read version 1, was checked at WriteSerializable, by Apache-Spark/4.2.0 Delta-Lake/4.4.0",
        "    mode: Append",
        "  where: partition part=0",
        "  file: f2",
        "  your job: DELETE, by the stack trace",
    ]
    assert (
        lines[8]
        == "  since then: version 4 (DELETE: 2 files removed in part=0); perhaps your job, run again"
    )


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


def test_a_message_without_a_version_is_found_by_what_it_says_of_the_commit(call, pasted, delta):
    info = delta.append(1, "f2", timestamp=17)
    info[0]["commitInfo"] |= {"timestamp": 17, "txnId": "abc"}
    path = delta.table(delta.append(0, "f1"), info, delta.append(2, "f3"))
    old = (
        "ConcurrentAppendException: Files were added to partition [part=0] by a concurrent update.\n"
        'Conflicting commit: {"timestamp":17,"operation":"WRITE","txnId":"abc"}'
    )
    status, out, _ = call("explain", pasted(old), "--table", path, "--json")
    assert (status, json.loads(out)["winner"]["version"]) == (0, 2)
    other = old.replace("abc", "xyz").replace("17", "18")
    status, _, err = call("explain", pasted(other), "--table", path)
    assert status == 2
    assert "no commit from version 0 to 3 has txnId 'xyz', as the message says" in err


def test_a_file_that_is_named_is_the_file(call, pasted, delta):
    """Two commits of one time: the one that has the file is it."""
    delete = delta.delete(1, "(part#1 = 0)", "f1")
    other = delta.delete(2, "(part#1 = 0)", "f2")
    for one in (delete, other):
        one[0]["commitInfo"]["timestamp"] = 17
    path = delta.table(delta.append(0, "f1"), delta.append(1, "f2"), delete, other)
    said = (
        "This transaction attempted to read one or more files that were deleted (for example {}) by a concurrent update."
        'Conflicting commit: {{"timestamp":17,"operation":"DELETE"}}'
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
    assert (status, "name it with --version" in err) == (2, True)
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
        "version 4 (DELETE: 2 files removed in part=0)",
        "  it had read version 3, was checked at WriteSerializable, by Apache-Spark/4.2.0 Delta-Lake/4.4.0",
        '  predicate: ["(part#1 = 0)"]',
        "  ConcurrentDeleteReadException: whoever read a file that it removed, in partition part=0, at every level",
        "  ConcurrentDeleteDeleteException: who removes one of the files that it removed, without having read it",
        "  ConcurrentWriteException: a RESTORE, CLONE or CONVERT TO DELTA that was under way",
    ]
    status, out, _ = call("explain", "--table", table, "--failed-after", "2", "--json")
    found = json.loads(out)
    assert [one["version"] for one in found["commits"]] == [3, 4]
    status, out, _ = call("explain", "--table", table, "--failed-after", "4")
    assert (status, "nothing was committed after version 4" in out) == (0, True)
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
    assert "whoever had begun before" in second["MetadataChangedException"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "words", "reason"),
    [
        ("hello", (), "error.txt: this is none of Delta's conflicts"),
        ("", (), "error.txt: there is nothing in it"),
        (message(version=9), ("--table", "t"), "there is no version 9 in the log; it has 0 to 4"),
        (message(part=1), ("--table", "t"), "has no file in partition part=1, which the message names"),
        (message(operation="MERGE"), ("--table", "t"), "version 2 (WRITE) is no MERGE"),
        (message(version=4, operation="DELETE"), ("--table", "t"), "cannot have caused ConcurrentAppendException"),
        (message(), ("--table", "nowhere"), "there is no such folder"),
        (message(), ("--table", "."), "this is no Delta table: it has no folder _delta_log"),
        (message(), ("--table", "s3://bucket/t"), "only its folder _delta_log is needed"),
        (message(), ("--version", "2"), "--version needs --table"),
        (message(), ("--failed-after", "2"), "--failed-after needs --table"),
        (message(), ("--table", "t", "--version", "2", "--failed-after", "1"), "give one of them"),
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
    assert (status, "isolitmus show ConcurrentAppendException" in err) == (2, True)
    status, _, err = call("explain", "nothing.txt")
    assert (status, "cannot read nothing.txt" in err) == (2, True)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ConcurrentWriteException", "DELTA_CONCURRENT_WRITE"])
def test_show_says_it_in_general(call, name):
    status, out, _ = call("show", name)
    assert status == 0
    assert out.startswith("ConcurrentWriteException (exception): Any other commit came between")
    assert "so restore cannot commit: ConcurrentWriteException" in out
    status, out, _ = call("show", "exceptions")
    assert out.count("Exception ") == 7
