"""A workload's tables from their logs: what they are, and what is refused of them in a sentence."""

import json
from pathlib import Path

import pytest

from isolitmus.jobs.readers.declared_tables import read_declared_table
from isolitmus.jobs.readers.workload_file import read_workload
from isolitmus.jobs.readers.workload_sources import workload
from isolitmus.model.errors import IsolitmusError

DAY = {"name": "day", "type": "date", "nullable": False, "metadata": {"comment": "of the order"}}
ID = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
IDENTITY = {f"delta.identity.{key}": value for key, value in (("start", 5), ("step", 2))}
SQL = "DELETE FROM events WHERE day = :day"


def write(folder, columns=(ID, DAY), partitions=("day",), features=(), **configuration):
    """A table of one commit, written by hand."""
    log = folder / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": []}
    metadata = {
        "schemaString": json.dumps({"type": "struct", "fields": list(columns)}),
        "partitionColumns": list(partitions),
        "configuration": configuration,
    }
    actions = [
        {"protocol": protocol | {"writerFeatures": ["appendOnly", "invariants", *features]}},
        {"metaData": metadata},
    ]
    (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)), "utf-8")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "events")
    (tmp_path / "a.sql").write_text(SQL, "utf-8")
    return tmp_path


NESTED = {
    "type": "struct",
    "fields": [{"name": "a", "type": {"type": "array", "elementType": "short"}}],
}


@pytest.mark.usefixtures("folder")
def test_types_that_are_not_modelled_are_those_that_a_ddl_has():
    Path("t.sql").write_text(
        "CREATE TABLE events (id BIGINT, day DATE, m MAP<STRING, STRUCT<a: ARRAY<SHORT>>>, n"
        " SMALLINT, v VARCHAR(9)) USING delta PARTITIONED BY (day)",
        "utf-8",
    )
    length = {"__CHAR_VARCHAR_TYPE_STRING": "varchar(9)"}
    types = {"m": {"type": "map", "keyType": "string", "valueType": NESTED}, "n": "short"}
    others = [{"name": name, "type": type_} for name, type_ in types.items()]
    write(Path("events"), [ID, DAY, *others, {"name": "v", "type": "string", "metadata": length}])
    (schema,) = workload("a.sql", tables=["events"]).tables.values()
    assert schema.columns[2].type == "MAP<STRING, STRUCT<a: ARRAY<SMALLINT>>>"
    (same,) = workload("a.sql", tables=["events"], ddl=Path("t.sql")).tables.values()
    assert same.ddl() == schema.ddl()


@pytest.mark.usefixtures("folder")
def test_a_log_says_what_a_ddl_would():
    write(
        Path("events"),
        [{**ID, "metadata": {**IDENTITY, "delta.identity.allowExplicitInsert": False}}, DAY, {"name": "x", "type": "decimal(9,2)"}],
        features=("deletionVectors", "identityColumns"),
        **{"delta.enableDeletionVectors": "true", "delta.isolationLevel": "writeSerializable", "team": "eu"},
    )  # fmt: skip
    found = workload("a.sql", tables=["events"])
    (schema,) = found.tables.values()
    assert (
        schema.ddl()
        == "id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 5 INCREMENT BY 2), day DATE, x"
        " DECIMAL(9,2)"
    )
    assert (schema.name, schema.partitioned_by, schema.vectors) == ("events", ("day",), True)
    assert found.level == "WriteSerializable"
    assert found.statements[0].types == {"day": "DATE"}


def test_the_newest_metadata_counts(folder):
    commit = {"metaData": {"schemaString": json.dumps({"fields": [ID, DAY]}), "configuration": {}}}
    (folder / "events/_delta_log" / f"{1:020}.json").write_text(json.dumps(commit), "utf-8")
    found = workload("a.sql", tables=["events"])
    assert (found.tables["events"].partitioned_by, found.level) == ((), "Serializable")


def test_a_workload_file_needs_no_ddl(folder):
    (folder / "jobs.toml").write_text(f'[jobs.a]\nsql = "{SQL}"', "utf-8")
    assert workload("jobs.toml", tables=["events"]).tables["events"].partitioned_by == ("day",)
    with pytest.raises(IsolitmusError) as refused:
        workload("jobs.toml")
    assert (
        str(refused.value)
        == 'jobs.toml: no table is declared; write ddl = "CREATE TABLE …", or give a Delta table:'
        " --table FOLDER"
    )


def test_several_tables_by_their_names_in_sql(folder):
    write(folder / "v1/orders")
    (folder / "b.sql").write_text(
        "INSERT INTO events SELECT id, day FROM sales WHERE day = :d", "utf-8"
    )
    found = workload("b.sql", tables=["events", "sales=v1/orders"])
    assert list(found.tables) == ["events", "sales"]


OTHER = {
    "columns": (
        "id INT, day DATE", "day", "",
        ("jobs.toml:1: events is declared with columns id INT, day DATE, and the log of events has id BIGINT, day"
        " DATE; declare what is there, or leave the declaration out"),
    ),
    "partitions": (
        "id BIGINT, day DATE", "id", "",
        ("jobs.toml:1: events is declared with partitioned_by id, and the log of events has day; declare what is"
        " there, or leave the declaration out"),
    ),
    "a property": (
        "id BIGINT, day DATE", "day", "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        ("jobs.toml:1: events is declared with delta.enableDeletionVectors true, and the log of events has false;"
        " declare what is there, or leave the declaration out"),
    ),
    "the level": (
        "id BIGINT, day DATE", "day", "TBLPROPERTIES ('delta.isolationLevel' = 'WriteSerializable')",
        ("jobs.toml: level is WriteSerializable, but the log of events says Serializable; remove the key (--level"
        " asks about another level)"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", OTHER)
def test_ddl_that_differs_from_the_log(folder, what):
    columns, partitions, more, message = OTHER[what]
    ddl = f"CREATE TABLE events ({columns}) USING delta PARTITIONED BY ({partitions}) {more}"
    (folder / "jobs.toml").write_text(f'ddl = "{ddl}"\n[jobs.a]\nsql = "DELETE FROM events"', "utf-8")  # fmt: skip
    with pytest.raises(IsolitmusError) as refused:
        workload("jobs.toml", tables=["events"])
    assert str(refused.value) == message


def test_what_is_said_and_is_so_anyway_is_no_difference(folder):
    ddl = (
        "CREATE TABLE shop.orders (id BIGINT, day DATE NOT NULL) USING delta PARTITIONED BY (day)"
        " TBLPROPERTIES ('delta.appendOnly' = 'FALSE', 'delta.checkpointInterval' = '10', 'owner' ="
        " 'me')"
    )
    (folder / "jobs.toml").write_text(f'ddl = "{ddl}"\n[jobs.a]\nsql = "DELETE FROM orders"', "utf-8")  # fmt: skip
    assert list(workload("jobs.toml", tables=["events"]).tables) == ["orders"]


MAP = {"name": "m", "type": {"type": "map", "keyType": "string", "valueType": "string"}}
REFUSED = {
    "no table": (
        ["nowhere"], {}, "nowhere: there is no such folder; expected the folder of a Delta table",
    ),
    "no log": (["."], {}, ".: not a Delta table: it has no folder _delta_log"),
    "a type that the model does not have": (
        ["events"], {"columns": [ID, DAY, {"name": "m", "type": "interval day"}]},
        ("events: its column m is of type interval day; the model has INT, BIGINT, STRING, DATE, BOOLEAN, DOUBLE,"
        " TIMESTAMP, DECIMAL(10,2)"),
    ),
    "a collation": (
        ["events"], {"columns": [{**DAY, "metadata": {"__COLLATIONS": {"day": "icu.UNICODE_CI"}}}, ID]},
        "events: its column day has __COLLATIONS, of which the model knows nothing",
    ),
    "a property": (
        ["events"], {"delta.dataSkippingNumIndexedCols": "3"},
        "events: delta.dataSkippingNumIndexedCols is '3'; known: '32'",
    ),
    "clustering": (
        ["events"], {"features": ["clustering"]},
        "events: it is clustered, and how its files are clustered is not modelled",
    ),
    "a level": (
        ["events"], {"delta.isolationLevel": "Chaos"},
        "events: its delta.isolationLevel is 'Chaos'; known: Serializable, WriteSerializable, SnapshotIsolation",
    ),
    "another table than the statement's": (
        ["orders=events"], {},
        ("a.sql:1:13: unknown table 'events'; known: orders; give its folder as well, or name the one given as in SQL:"
        " --table NAME=events\n    DELETE FROM events WHERE day = :day\n                ^"),
    ),
    "one name twice": (
        ["events", "events"], {}, "a: two tables have the name 'events'; write --table NAME=events for one of them",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_wrong_with_a_table_is_one_sentence(folder, what):
    tables, changed, message = REFUSED[what]
    write(folder / "events", **changed)
    with pytest.raises(IsolitmusError) as refused:
        workload("a.sql", tables=tables)
    assert str(refused.value) == message


def test_a_folder_that_is_no_name(folder):
    write(folder / "a-b")
    with pytest.raises(IsolitmusError) as refused:
        workload("a.sql", tables=["a-b"])
    assert str(refused.value) == "a-b: 'a-b' is not a name that a table has in SQL; write NAME=a-b"


def test_two_levels(folder):
    write(folder / "sales", **{"delta.isolationLevel": "WriteSerializable"})
    with pytest.raises(IsolitmusError) as refused:
        workload("a.sql", tables=["events", "sales"])
    assert (
        str(refused.value)
        == "a: the tables have different levels, Serializable and WriteSerializable; a workload has"
        " one level"
    )


def test_a_table_that_the_ddl_does_not_have(folder):
    write(folder / "sales")
    ddl = "CREATE TABLE events (id BIGINT, day DATE) USING delta PARTITIONED BY (day)"
    text = f'ddl = "{ddl}"\n[jobs.a]\nsql = "DELETE FROM events"'
    with pytest.raises(IsolitmusError) as refused:
        read_workload(
            text, "w", logged=[read_declared_table("events"), read_declared_table("sales")]
        )
    assert (
        str(refused.value)
        == "w.toml:1: the DDL has no table 'sales' for sales; known: events; write --table"
        " NAME=sales"
    )


@pytest.mark.parametrize("given", ["events", "events=events"])
def test_a_ddl_may_be_of_the_sources_alone(folder, given):
    """The table has a log, what its jobs read from does not."""
    (folder / "sources.sql").write_text("CREATE TABLE raw (id BIGINT, day DATE) USING csv", "utf-8")
    (folder / "put.sql").write_text("INSERT INTO shop.events SELECT id, day FROM raw", "utf-8")
    found = workload("put.sql", tables=[given], ddl=Path("sources.sql"))
    assert sorted(found.tables) == ["events", "raw"]
    assert found.formats == {"raw": "csv"}
    assert found.tables["events"].partitioned_by == ("day",)


@pytest.mark.parametrize("ddl", [False, True])
def test_a_default_in_the_log_is_known(folder, ddl):
    """Also if the DDL is given and does not name it: the log says what an omitted column is."""
    default = {**DAY, "metadata": {"CURRENT_DEFAULT": "current_date()"}}
    write(folder / "events", [ID, default], features=("allowColumnDefaults",))
    text = "CREATE TABLE events (id BIGINT, day DATE) USING delta PARTITIONED BY (day)"
    (folder / "t.sql").write_text(text, "utf-8")
    found = workload("a.sql", tables=["events"], ddl=folder / "t.sql" if ddl else None)
    assert [column.default for column in found.tables["events"].columns] == [False, True]


@pytest.mark.usefixtures("folder")
def test_a_generated_column_is_known_from_the_log():
    """A statement that does not name it has its value, and not NULL."""
    at = {"name": "at", "type": "timestamp", "nullable": True, "metadata": {}}
    day = DAY | {"metadata": {"delta.generationExpression": "CAST(at AS DATE)"}}
    write(Path("events"), [ID, at, day], features=("generatedColumns",))
    Path("b.sql").write_text("INSERT INTO events (id, at) VALUES (1, :at)", "utf-8")
    found = workload("a.sql", "b.sql", tables=["events"])
    (insert,) = found.jobs["b"].statements
    assert insert.sql == "INSERT INTO events (id, at, day) VALUES (1, :at, CAST(:at AS DATE))"
    assert any("events.day is generated from CAST(at AS DATE)" in one for one in found.assumptions)
