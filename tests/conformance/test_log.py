"""Commits read from a log that no Spark wrote."""

import json

import pytest

from isolitmus.conformance.log import latest, live_files, read_commits


@pytest.fixture
def table(tmp_path):
    """table(commit, …): a table whose versions are these lists of actions."""

    def build(*commits):
        log = tmp_path / "_delta_log"
        log.mkdir()
        for version, actions in enumerate(commits):
            text = "\n".join(map(json.dumps, actions)) + "\n"
            (log / f"{version:020}.json").write_text(text)
        (log / "_last_checkpoint").write_text("{}")
        (log / f"{0:020}.crc").write_text("{}")
        return tmp_path

    return build


def add(path, vector=None):
    action = {"path": path, "partitionValues": {}, "dataChange": True}
    return {"add": action | ({"deletionVector": vector} if vector else {})}


def remove(path, vector=None):
    action = {"path": path, "dataChange": True}
    return {"remove": action | ({"deletionVector": vector} if vector else {})}


VECTOR = {"storageType": "u", "pathOrInlineDv": "ab", "offset": 1, "cardinality": 1}
INFO = {
    "commitInfo": {
        "operation": "DELETE",
        "readVersion": 0,
        "isolationLevel": "Serializable",
        "isBlindAppend": False,
    }
}


def test_what_a_commit_says_of_itself(table):
    path = table([add("f")], [INFO, remove("f"), add("g")])
    (commit,) = read_commits(path, since=0)
    assert (commit.version, commit.read_version, commit.operation) == (1, 0, "DELETE")
    assert (commit.isolation_level, commit.blind) == ("Serializable", False)
    assert [f["path"] for f in commit.adds] == ["g"]
    assert [f["path"] for f in commit.removes] == ["f"]


def test_what_a_writer_leaves_out_is_none(table):
    (commit,) = read_commits(table([add("f")]))
    assert (commit.read_version, commit.blind, commit.isolation_level) == (None, None, None)


def test_latest(table, tmp_path):
    assert latest(tmp_path / "nowhere") == -1
    assert latest(table([add("f")], [add("g")])) == 1


def test_live_files_with_deletion_vectors(table):
    path = table([add("f"), add("g")], [remove("f"), add("f", VECTOR)], [remove("g")])
    commits = read_commits(path)
    assert [f["path"] for f in live_files(commits[:1])] == ["f", "g"]
    assert live_files(commits[:2]) == (add("g")["add"], add("f", VECTOR)["add"])
    assert live_files(commits) == (add("f", VECTOR)["add"],)
