"""Logs that are read: from JSON, from a checkpoint on, while they are written; and those that are
not.
"""

import json

import duckdb
import pytest

from isolitmus.model.delta.log import LogFile, LogMetadata, LogProtocol, live_files
from isolitmus.model.errors import LogError
from isolitmus.specs.logs.delta_log import commits_since, latest_version, open_log

VECTOR = {"storageType": "u", "pathOrInlineDv": "ab", "offset": 1, "cardinality": 3}


def checkpoint(path, *actions):
    """A Parquet checkpoint with these actions, a row each."""
    texts = "\n".join(map(json.dumps, actions))
    source = path.with_suffix(".source")
    source.write_text(texts)
    with duckdb.connect() as database:
        columns = {
            "add": (
                "STRUCT(path VARCHAR, partitionValues MAP(VARCHAR, VARCHAR), dataChange BOOLEAN,"
                " stats VARCHAR)"
            ),
            "metaData": (
                "STRUCT(schemaString VARCHAR, partitionColumns VARCHAR[],"
                " configuration MAP(VARCHAR, VARCHAR))"
            ),
            "protocol": (
                "STRUCT(minReaderVersion INT, minWriterVersion INT, readerFeatures VARCHAR[],"
                " writerFeatures VARCHAR[])"
            ),
            "checkpointMetadata": "STRUCT(version BIGINT)",
        }
        database.execute(
            f"COPY (SELECT * FROM read_json('{source}', format = 'newline_delimited',"
            f" columns = {columns!r})) TO '{path}' (FORMAT parquet)"
        )
    source.unlink()


def cut(table, first):
    """The log as a clean-up leaves it: commits before ``first`` are gone."""
    for version in range(first):
        (table / "_delta_log" / f"{version:020}.json").unlink()
    return table


def live(log):
    return [part.path for part in log.begin() if isinstance(part, LogFile)]


def test_commits_in_order_with_what_they_say(delta):
    actions = [
        delta.info("DELETE", 1, False, predicate='["(part#1 = 0)"]'),
        {"remove": {"path": "f", "dataChange": True, "deletionVector": VECTOR, "fresh": 1}},
        delta.add("g", part=1, dataChange=False),
        {"cdc": {"path": "c"}},
        {"txn": {"appId": "a", "version": 1}},
        {"domainMetadata": {"domain": "d"}},
    ]
    table = delta.table(delta.append(0, "f"), actions)
    first, _, last = open_log(table).commits()
    assert first.metadata == LogMetadata(
        {"id": ("id", "integer"), "part": ("part", "integer")},
        ("part",),
        {"delta.isolationLevel": "WriteSerializable"},
    )
    assert first.protocol == LogProtocol(3, 7)
    assert (last.version, last.read_version, last.blind, last.changes) == (2, 1, False, 1)
    assert last.removes == (LogFile("f", "uab@1", 3),)
    assert [file.action["path"] for file in (*last.removes, *last.adds)] == ["f", "g"]
    assert (last.adds[0].partition, last.adds[0].data_change) == ({"part": "1"}, False)


def test_what_a_writer_leaves_out_is_none(delta):
    table = delta.table([{"add": {"path": "f"}}])
    *_, commit = open_log(table).commits()
    said = commit.operation, commit.read_version, commit.blind, commit.level, commit.engine
    assert said == (None,) * 5


def test_what_no_verdict_rests_on_may_be_anything(delta):
    said = delta.info("WRITE", 0, True)
    said["commitInfo"] |= {"timestamp": "noon", "txnId": "it"}
    *_, commit = open_log(delta.table([said])).commits()
    assert (commit.timestamp, commit.transaction) == (0, "it")


def test_the_newest_version_and_the_commits_after_one(delta, tmp_path):
    assert (latest_version(tmp_path / "nowhere"), commits_since(tmp_path / "nowhere")) == (-1, ())
    table = cut(delta.table(*(delta.append(k, f"f{k}") for k in range(3))), 1)
    (table / "_delta_log" / "_last_checkpoint").write_text("{}")
    (table / "_delta_log" / f"{9:020}.crc").write_text("{}")
    assert latest_version(table) == 3
    assert [c.version for c in commits_since(table)] == [1, 2, 3]
    assert [c.version for c in commits_since(table, 2)] == [3]


def test_live_files_with_deletion_vectors(delta):
    marked = [delta.remove("f"), delta.add("f", deletionVector=VECTOR)]
    table = delta.table([delta.add("f"), delta.add("g")], marked, [delta.remove("g")])
    commits = commits_since(table)
    assert [file.entry for file in live_files(commits[:2])] == [("f", ""), ("g", "")]
    assert [file.entry for file in live_files(commits[:3])] == [("g", ""), ("f", "uab@1")]
    assert [file.entry for file in live_files(commits)] == [("f", "uab@1")]


def test_columns_by_their_names_in_files_and_strings_that_compare_otherwise(delta):
    columns = [
        {"name": "A", "type": "long", "metadata": {"delta.columnMapping.physicalName": "c1"}},
        {"name": "b", "type": "string", "metadata": {"__COLLATIONS": {"b": "ICU.x"}}},
        {"name": "c", "type": {"type": "array"}, "metadata": {}},
    ]
    metadata = delta.metadata()
    metadata["metaData"]["schemaString"] = json.dumps({"fields": columns})
    *_, commit = open_log(delta.table([metadata])).commits()
    assert commit.metadata.types == {
        "a": ("c1", "long"),
        "b": ("b", "special"),
        "c": ("c", "nested"),
    }


def test_versions_that_come_later_are_counted_and_not_read(delta):
    table = delta.table(delta.append(0, "f"))
    log = open_log(table)
    delta.write(table / "_delta_log", 2, delta.append(1, "g"))
    assert [commit.version for commit in log.commits()] == [0, 1]
    assert log.newer() == 1


@pytest.fixture
def cleaned(delta):
    """cleaned(*actions, name=…): a log of versions 2 and 3, and a checkpoint of 2 with the
    actions.
    """

    def build(*actions, name="00000000000000000002.checkpoint.parquet"):
        commits = [delta.append(k, f"f{k + 1}") for k in range(3)]
        table = delta.table(*commits)
        checkpoint(table / "_delta_log" / name, delta.metadata(), delta.protocol(), *actions)
        return cut(table, 2)

    return build


@pytest.mark.slow
def test_a_checkpoint_says_what_was_before(delta, cleaned):
    log = open_log(cleaned(delta.add("f1"), delta.add("f2", part=1)))
    assert (log.oldest, log.first, log.last) == (2, 3, 3)
    assert live(log) == ["f1", "f2"]
    state = list(log.begin())
    assert [part.partition for part in state if isinstance(part, LogFile)] == [
        {"part": "0"},
        {"part": "1"},
    ]
    assert any(isinstance(part, LogMetadata) and part.partitioned_by for part in state)


@pytest.mark.slow
def test_a_checkpoint_of_two_files(delta, cleaned):
    table = cleaned(
        delta.add("f1"), name="00000000000000000002.checkpoint.0000000001.0000000002.parquet"
    )
    with pytest.raises(LogError, match="no whole checkpoint of version 1 or later"):
        open_log(table)
    second = "00000000000000000002.checkpoint.0000000002.0000000002.parquet"
    checkpoint(table / "_delta_log" / second, delta.add("f2"))
    assert live(open_log(table)) == ["f1", "f2"]


def test_a_checkpoint_with_sidecars(delta):
    table = delta.table(delta.append(0, "f1"), delta.append(1, "f2"))
    sidecars = table / "_delta_log" / "_sidecars"
    sidecars.mkdir()
    checkpoint(sidecars / "s.parquet", delta.add("f1"))
    actions = [delta.metadata(), delta.protocol(), {"sidecar": {"path": "s.parquet"}}]
    actions.append({"checkpointMetadata": {"version": 1}})
    name = table / "_delta_log" / "00000000000000000001.checkpoint.80a083e8-7026.json"
    name.write_text("".join(json.dumps(a) + "\n" for a in actions))
    assert live(open_log(cut(table, 1))) == ["f1"]
    (sidecars / "s.parquet").unlink()
    with pytest.raises(LogError, match=r"its sidecar s\.parquet is not there"):
        live(open_log(table))


def test_a_checkpoint_of_another_version(delta, cleaned):
    with pytest.raises(LogError, match="not a checkpoint of version 2: it lacks f2, which"):
        live(open_log(cleaned(delta.add("f1"))))


@pytest.mark.slow
def test_a_checkpoint_that_says_that_it_is_of_another_version(delta, cleaned):
    with pytest.raises(LogError, match="is a checkpoint of version 7; its name says version 2"):
        live(open_log(cleaned(delta.add("f2"), {"checkpointMetadata": {"version": 7}})))


def test_the_last_checkpoint_is_of_another_version(delta, cleaned):
    table = cleaned(delta.add("f2"))
    (table / "_delta_log" / "_last_checkpoint").write_text('{"version": 3}')
    with pytest.raises(
        LogError, match="last checkpoint is of version 3; the newest that is there is"
    ):
        open_log(table)
    (table / "_delta_log" / "_last_checkpoint").write_text('{"version": 2, "size": 4}')
    assert open_log(table).base.version == 2
    (table / "_delta_log" / "_last_checkpoint").write_text('{"vers')  # a hint only
    assert open_log(table).base.version == 2


@pytest.mark.slow
def test_a_checkpoint_that_is_none(cleaned):
    table = cleaned()
    path = table / "_delta_log" / "00000000000000000002.checkpoint.parquet"
    path.write_text("PAR1")
    with pytest.raises(LogError, match="is no Parquet file that reads"):
        live(open_log(table))
    with duckdb.connect() as database:
        database.execute(f"COPY (SELECT 1 AS x) TO '{path}' (FORMAT parquet)")
    with pytest.raises(LogError, match="has no column 'add': it is not a checkpoint"):
        live(open_log(table))


def test_no_table_and_a_folder_that_is_no_table(tmp_path):
    with pytest.raises(LogError, match="there is no such folder"):
        open_log(tmp_path / "nowhere")
    with pytest.raises(LogError, match="not a Delta table: it has no folder _delta_log"):
        open_log(tmp_path)
    (tmp_path / "_delta_log").mkdir()
    with pytest.raises(LogError, match=r"_delta_log has no commit, such as 0{20}\.json"):
        open_log(tmp_path)


def test_a_log_with_a_gap(delta):
    table = delta.table(*(delta.append(k, f"f{k}") for k in range(4)))
    (table / "_delta_log" / f"{2:020}.json").unlink()
    with pytest.raises(LogError, match=r"has a gap: version 2 is missing .*, version 3 is there"):
        open_log(table)


def test_a_commit_that_goes_while_the_log_is_read(delta):
    table = delta.table(delta.append(0, "f"))
    log = open_log(table)
    (table / "_delta_log" / f"{1:020}.json").unlink()
    with pytest.raises(LogError, match="it was there a moment ago"):
        list(log.commits())


COLUMNS = '{"metaData": {"schemaString": "{\\"fields\\": [1]}"}}'
FEATURE = '{"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["new"]}}'


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (
            '{"add": {"path": "f"',
            r"1\.json:2: '\{\"add\": \{\"path\": \"f\"' is not an action .*cut off",
        ),
        ("[" * 50_000, "is not an action"),
        ('{"addd": {"path": "f"}}', "unknown action 'addd'; did you mean 'add'?"),
        ('{"add": {"path": "f"}, "x": 1}', "is not an action; "),
        ('{"add": 1}', "add is 1; expected an object"),
        ('{"add": {"size": 1}}', "add: path is None; expected a path"),
        (
            '{"add": {"path": "f", "partitionValues": 1}}',
            "partitionValues is 1; expected an object of strings",
        ),
        ('{"add": {"path": "f", "stats": {}}}', r"stats is \{\}; expected a string"),
        (
            '{"remove": {"path": "f", "deletionVector": 1}}',
            "deletionVector is 1; expected an object",
        ),
        ('{"remove": {"path": "f", "deletionVector": {"cardinality": "1"}}}', "cardinality is '1'"),
        ('{"metaData": {"partitionColumns": [1]}}', "expected a list of names"),
        (
            '{"commitInfo": {"readVersion": "1"}}',
            "commitInfo: readVersion is '1'; expected a version",
        ),
        ('{"commitInfo": {"isBlindAppend": 1}}', "isBlindAppend is 1; expected true or false"),
        (COLUMNS, "expected a schema in Spark's JSON"),
        (
            '{"protocol": {"minReaderVersion": 4}}',
            "minReaderVersion is 4; expected a version up to 3",
        ),
        (
            FEATURE.replace("[", "{").replace("]", ": 1}"),
            r"readerFeatures is \{.new.: 1\}; expected a list of",
        ),
        (FEATURE, "readers of this table must know the feature 'new', which isolitmus does not"),
    ],
)
def test_a_line_that_is_no_action(delta, line, sentence):
    table = delta.table(delta.append(0, "f"), delta.append(1, "g"))
    path = table / "_delta_log" / f"{1:020}.json"
    path.write_text(path.read_text().split("\n")[0] + "\n" + line)
    with pytest.raises(LogError, match=sentence) as error:
        list(open_log(table).commits())
    assert f"{1:020}.json:2" in str(error.value)
    assert "perhaps it is being written" not in str(error.value)


def test_the_newest_commit_may_be_being_written(delta):
    table = delta.table(delta.append(0, "f"))
    path = table / "_delta_log" / f"{1:020}.json"
    path.write_text(path.read_text()[:-9])
    with pytest.raises(LogError, match="perhaps it is being written"):
        list(open_log(table).commits())
    path.write_text("")
    with pytest.raises(LogError, match="this commit is empty"):
        list(open_log(table).commits())
    path.write_bytes(b"\xff")
    with pytest.raises(LogError, match="is not UTF-8 text"):
        list(open_log(table).commits())
