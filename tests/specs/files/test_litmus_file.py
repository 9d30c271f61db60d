"""Litmus and scope files that are wrong: one sentence each, with the file, the key and a remedy."""

import pytest

from isolitmus.checker import run
from isolitmus.checker.universes.tables import candidate
from isolitmus.model.errors import IsolitmusError
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.files.scope_file import read_scope

GOOD = {
    "title": '"T"',
    "schedule": '"a.start b a.commit"',
    "[table]": "",
    "columns": '"id INT, part INT"',
    "partitioned_by": '["part"]',
    "init": '["INSERT INTO t VALUES (1, 0)"]',
    "[transactions]": "",
    "a": '"DELETE FROM t WHERE part = 0"',
    "b": '"INSERT INTO t VALUES (2, 0)"',
    "[expect.delta-serializable]": "",
    "outcome": '{ a = "ConcurrentAppendException", b = ["committed"] }',
    "tables": "{ t = [[1, 0], [2, 0]] }",
}


def text(**changes):
    lines = {**GOOD, **changes}
    return "\n".join(
        key if key.startswith("[") else f"{key} = {value}"
        for key, value in lines.items()
        if value is not None
    )


def test_the_file_that_the_others_are_made_of_reads():
    test = read_litmus(text(), "good")
    assert test.expect["delta-serializable"].tables == {"t": ((1, 0), (2, 0))}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"title": None}, "bad.toml: the file needs 'title' (a string)"),
        ({"title": "3"}, "bad.toml:1: title is 3; expected a string"),
        ({"hold": '["x"]'}, "[expect.delta-serializable] has no key 'hold'; did you mean 'holds'?"),
        ({"schedule": '"a.start c"'}, "schedule step 'c' names no transaction; known: a, b"),
        ({"schedule": '"a.commit a.start b"'}, "schedule step 'a.commit' commits a before it starts; put a.start earlier"),
        ({"schedule": '"a b a"'}, "schedule step 'a' starts a a second time"),
        ({"schedule": '"a.start a.commit a.commit b"'}, "schedule step 'a.commit' commits a a second time"),
        ({"schedule": '"a.start b"'}, "the schedule never ends a; add 'a.commit'"),
        ({"schedule": '"a"'}, "the schedule never starts b; add 'b'"),
        ({"schedule": '"a.park a.commit b"'}, "schedule step 'a.park' is none that there is; use a.before, a.park-init, a.park-prepare, a.park-commit, a.start, a.commit or a"),
        ({"schedule": '"a.start a.park-init a.commit b"'}, "schedule step 'a.park-init' comes after a.start; the order is before, park-init, park-prepare"),
        ({"schedule": '"a.park-commit a.start a.commit b"'}, "schedule step 'a.start' starts a a second time"),
        ({"schedule": '"a.start[1] a.commit[2] b"'}, "schedule step 'a.commit[2]': a statement's commits come one right after the other; use a.commit"),
        ({"schedule": '"a.park-init[1] a.commit b"'}, "schedule step 'a.park-init[1]': only start and commit take a number"),
        ({"schedule": '"a.before a b"'}, "bad.toml:2: schedule step 'a.before': a has neither 'before' nor 'let'"),
        ({"a": '"OPTIMIZE t"', "schedule": '"a.park-init a.commit b"'}, "schedule step 'a.park-init': OPTIMIZE already has its snapshot at this step; use a.start"),
        ({"a": '"SELECT * FROM t"', "schedule": '"a.park-commit a.commit b"'}, "schedule step 'a.park-commit': a only reads, so it has no commit to park at"),
        ({"a": '{ sql = "DELETE FROM t", session = "s" }', "b": '{ sql = "DELETE FROM t", session = "s" }'}, "schedule step 'b' comes while a is under way, which is in the same session 's'; put a.commit earlier"),
        ({"a": '{ sql = "DELETE FROM t", sesion = "s" }'}, "bad.toml:8: [transactions.a] has no key 'sesion'; did you mean 'session'?"),
        ({"a": "{ }"}, "bad.toml:8: [transactions.a] needs 'sql' (a string)"),
        ({"a": '{ sql = "DELETE FROM t", session = "a b" }'}, "transactions.a.session is 'a b'; expected a name, letters, digits and _"),
        ({"a": '{ sql = "DELETE FROM t", before = ["DELETE FROM t"] }'}, "transactions.a.before holds 'DELETE FROM t'; CACHE TABLE t, UNCACHE TABLE t and SET key = value are"),
        ({"a": '{ sql = "RESTORE TABLE t TO VERSION AS OF {init[1]}", before = ["CACHE TABLE t"] }'}, "transactions.a: 'RESTORE TABLE t TO VERSION AS OF {init[1]}' together with CACHE TABLE is not modelled, because it does not refresh the cache"),
        ({"a": '{ sql = "DELETE FROM t", before = ["CACHE TABLE u"] }'}, "transactions.a.before: unknown table 'u'"),
        ({"a": '{ sql = "DELETE FROM t", before = ["SET spark.sql.x = 1"] }'}, "transactions.a.before: 'spark.sql.x' is not modelled"),
        ({"a": '{ sql = "DELETE FROM t", conf = { "spark.sql.sources.partitionOverwriteMode" = "dynamik" } }'}, "known: static, dynamic"),
        ({"a": '{ sql = "DELETE FROM t WHERE id = :k", let = { q = "SELECT max(id) FROM t" } }'}, "transactions.a: no let gives ':k'; known: q"),
        ({"a": '{ sql = "DELETE FROM t WHERE id = :k", let = { k = "SELECT * FROM t" } }'}, "transactions.a.let.k is 'SELECT * FROM t'; expected a query with one column"),
        ({"a": '{ sql = "DELETE FROM t WHERE id = :k", let = { k = "DELETE FROM t" } }'}, "transactions.a.let.k is 'DELETE FROM t'; expected a query with one column"),
        ({"a": '{ sql = "DELETE FROM t WHERE id = :k", let = { k = 1 } }'}, "transactions.a.let.k is 1; expected a string"),
        ({"a": '{ sql = "DELETE FROM t WHERE id = :k", let = { k = "SELECT prat FROM t" } }'}, "bad.toml:8, let k:1:8: unknown column 'prat'; did you mean 'part'?"),
        ({"a": '"INSERT INTO t SELECT * FROM t VERSION AS OF {init[2]}"'}, "bad.toml:8: transactions.a: unknown init statement {init[2]}; the table has 1 init statement"),
        ({"a": '"INSERT INTO t SELECT * FROM t VERSION AS OF 1"'}, "write VERSION AS OF {init[1]}: the first init statement's version"),
        ({"a": '"INSERT INTO t SELECT * FROM t TIMESTAMP AS OF {init[1]}"'}, "write VERSION AS OF {init[1]}: the first init statement's version"),
        ({"a": '"DELETE FROM t VERSION AS OF {init[1]} WHERE part = 0"'}, "bad.toml:8, transaction a"),
        ({"init": '["INSERT INTO t VALUES (1, 0)", "INSERT INTO t SELECT * FROM t VERSION AS OF {init[1]}"]'}, "init statements read current tables, not older versions or other paths"),
        ({"a": '"INSERT INTO t SELECT * FROM delta.`{alais}`"'}, "write delta.`{alias}` for another path to a table's files, or its name"),
        ({"a": '"INSERT INTO t SELECT * FROM delta.`{alias[u]}`"'}, "write delta.`{alias}` for another path"),
        ({"a": '"INSERT INTO t SELECT * FROM parquet.`{alias}`"'}, "write delta.`{alias}` for another path"),
        ({"a": '"INSERT INTO delta.`{alias}` VALUES (1, 0)"'}, "bad.toml:8, transaction a"),
        ({"a": '{ write = "upsert", query = "SELECT * FROM t" }'}, "transactions.a.write is 'upsert'; known: append, overwrite"),
        ({"a": '{ write = "append" }'}, "[transactions.a] needs 'query' (a string)"),
        ({"a": '{ write = "append", query = "SELECT * FROM t", table = "u" }'}, "transactions.a.table names the table that is written; known: t"),
        ({"a": '{ write = "append", query = "SELECT * FROM t", sql = "DELETE FROM t" }'}, "[transactions.a] has no key 'sql'"),
        ({"a": '{ write = "append", query = "SELECT * FROM t", options = { mergeschema = "true" } }'}, "transactions.a.options: 'mergeschema' is not modelled"),
        ({"a": '{ write = "append", query = "SELECT * FROM t", options = { dataChange = false } }'}, "transactions.a.options.dataChange is False; known: true, false"),
        ({"a": '{ write = "append", query = "SELECT * FROM t", options = { replaceWhere = "part = 0" } }'}, "transactions.a.options.replaceWhere needs write = 'overwrite'"),
        ({"a": '{ write = "overwrite", query = "SELECT * FROM t", options = { replaceWhere = "prat = 0" } }'}, "unknown column 'prat'; did you mean 'part'?"),
        ({"a": '{ write = "overwrite", query = "SELECT * FROM t", options = { replaceWhere = "part = 0", partitionOverwriteMode = "dynamic" } }'}, "transactions.a.options has replaceWhere and partitionOverwriteMode; one of them"),
        ({"a": '{ stream = "update", query = "SELECT * FROM t" }'}, "bad.toml:8: transactions.a.stream is 'update'; known: append, complete"),
        ({"a": '{ stream = "append" }'}, "bad.toml:8: [transactions.a] needs 'query' (a string)"),
        ({"a": '{ stream = "append", query = "DELETE FROM t" }'}, "bad.toml:8, query of a:1:6: this does not parse"),
        ({"a": '{ stream = "append", query = "SELECT * FROM t", table = "u" }'}, "transactions.a.table names the table that is written; known: t"),
        ({"a": '{ stream = "append", query = "SELECT * FROM t", options = { mergeSchema = "true" } }'}, "[transactions.a] has no key 'options'"),
        ({"a": '{ stream = "append", write = "append", query = "SELECT * FROM t" }'}, "[transactions.a] has no key 'write'"),
        ({"a": '{ stream = "append", query = "SELECT * FROM t", app = { id = "q", version = -1 } }'}, "transactions.a.app.version is -1; expected an integer"),
        ({"a": '{ stream = "append", query = "SELECT * FROM t", before = ["CACHE TABLE t"] }'}, "together with CACHE TABLE is not modelled, because it does not refresh the cache"),
        ({"columns": '"id INTERVAL"'}, "table.columns: no type 'INTERVAL'"),
        ({"columns": '"id"'}, "table.columns: 'id' is not a column; write NAME TYPE, …"),
        ({"columns": '"id INT, ID INT"'}, "table.columns names 'id' twice"),
        ({"columns": '"id BIGINT GENERATED, part INT"'}, "bad.toml:4: table.columns: 'id BIGINT GENERATED' is not a column; write NAME TYPE, or NAME BIGINT GENERATED ALWAYS AS IDENTITY"),
        ({"columns": '"id INT GENERATED ALWAYS AS IDENTITY, part INT"'}, "'id INT GENERATED ALWAYS AS IDENTITY' is not a column"),
        ({"columns": '"id BIGINT GENERATED ALWAYS AS IDENTITY (INCREMENT BY 0), part INT"'}, "is not a column; write NAME TYPE"),
        ({"columns": '"id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH -5), part INT"'}, "with numbers of at most 9 digits, both above 0 or both below"),
        ({"columns": '"id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 9999999999), part INT"'}, "with numbers of at most 9 digits"),
        ({"columns": '"id INT, part BIGINT GENERATED ALWAYS AS IDENTITY"'}, "table.partitioned_by names the identity column part, which Delta rejects"),
        ({"partitioned_by": '["prat"]'}, "table.partitioned_by names no column: 'prat'; did you mean 'part'?"),
        ({"partitioned_by": '["part"]\nclustered_by = ["id"]'}, "table.clustered_by: t has partitions, and Delta allows only one of the two"),
        ({"partitioned_by": '[]\nclustered_by = ["idd"]'}, "table.clustered_by names no column: 'idd'; did you mean 'id'?"),
        ({"partitioned_by": '[]\nclustered_by = ["id", "ID"]'}, "table.clustered_by names a column twice"),
        ({"partitioned_by": '[]\nproperties = { "delta.columnMapping.mode" = "id" }'}, "delta.columnMapping.mode is 'id'; known: 'name' or 'none'"),
        ({"a": '{ sql = "DELETE FROM t", conf = { "spark.databricks.delta.maxCommitAttempts" = "3" } }'}, "maxCommitAttempts is '3'; known: 0, 10000000"),
        ({"a": '{ sql = "DELETE FROM t", conf = { "spark.databricks.delta.stats.skiping" = "false" } }'}, "'spark.databricks.delta.stats.skiping' is not modelled; did you mean 'spark.databricks.delta.stats.skipping'?"),
        ({"a": '{ sql = "DELETE FROM t", conf = { "spark.databricks.delta.autoCompact.enabled" = "true" } }'}, "'spark.databricks.delta.autoCompact.enabled' is not modelled: an automatic compaction is a commit of its own"),
        ({"a": '{ sql = "DELETE FROM t", conf = { "spark.sql.session.timeZone" = "CET" } }'}, "timestamps are in UTC; known: UTC"),
        ({"a": '{ sql = "DELETE FROM t", conf = { "spark.sql.legacy.timeParserPolicy" = "LEGACY" } }'}, "whether it affects conflicts is unknown"),
        ({"a": '{ sql = "DELETE FROM t", conf = { "spark.executor.memory" = "1g" } }'}, "is said when an application starts, and no session can set it"),
        ({"a": '{ sql = "DELETE FROM t", conf = { "spark.sql.adaptive.enabled" = true } }'}, "spark.sql.adaptive.enabled is True; expected a string"),
        ({"a": '{ sql = "DELETE FROM t", before = ["SET spark.sql.shuffle.partitions = none"] }'}, "known: a whole number from 1"),
        ({"a": '"ALTER TABLE t DROP COLUMN id"', "b": '"INSERT INTO t VALUES (2)"', "schedule": '"a b"', "init": '["INSERT INTO t VALUES (1)"]'}, "bad.toml:6, in init:1:13: table t has 2 columns"),
        ({"a": '"ALTER TABLE t DROP COLUMN id"', "b": '{ write = "append", query = "SELECT 1, 0, 2 AS y", options = { mergeSchema = "true" } }', "schedule": '"a b"'}, "transactions.b: mergeSchema together with DROP or RENAME COLUMN is not modelled"),
        ({"a": '"ALTER TABLE t RENAME COLUMN id TO key"', "b": '{ write = "append", query = "SELECT 1, 0" }', "schedule": '"a b"'}, "transactions.b writes while another statement alters columns"),
        ({"a": '"ALTER TABLE t RENAME COLUMN id TO key"', "b": '"SELECT key FROM t"', "schedule": '"a b"'}, "a query of columns that a transaction adds or renames is not modelled"),
        ({"a": '"ALTER TABLE t RENAME COLUMN id TO key"', "b": '"REPLACE TABLE t USING delta PARTITIONED BY (part) AS SELECT 1 AS id, 0 AS part"', "schedule": '"a b"'}, "transactions.b creates or replaces a table while another statement drops or renames columns, which is not modelled"),
        ({"columns": '"part INT"', "a": '"DELETE FROM t"', "b": '"DELETE FROM t"', "init": "[]"}, "table.partitioned_by takes every column"),
        ({"init": '["INSERT INTO t VALUES (1)"]'}, "bad.toml:6, in init:1:13: table t has 2 columns, the query gives 1"),
        ({"init": '["SELECT * FROM t"]'}, "table.init holds a query, 'SELECT * FROM t'"),
        ({"init": '[["DELETE FROM t"], []]'}, "a litmus test has one initial table"),
        ({"a": '"DELETE FROM t WHERE prat = 0"'}, "bad.toml:8, transaction a:1:21: unknown column 'prat'; did you mean 'part'?"),
        ({"a": '"DELETE FORM t"'}, "bad.toml:8, transaction a:1:8: write DELETE FROM table"),
        ({"a": "3"}, "bad.toml:8: transactions.a is 3; expected a string"),
        ({"outcome": '{ c = "committed" }'}, "[expect.delta-serializable.outcome] has no key 'c'; known: a, b"),
        ({"outcome": "{ a = [] }"}, "expect.delta-serializable.outcome.a is []; expected an outcome or a list of them"),
        ({"tables": "{ u = [] }"}, "[expect.delta-serializable.tables] has no key 'u'"),
        ({"tables": "{ t = [[1]] }"}, "expect.delta-serializable.tables.t: row [1] has not 2 values"),
        ({"tables": "{ t = [[1.5, 0]] }"}, "expect.delta-serializable.tables.t: 1.5 is not of type INT"),
        ({"tables": "{ t = [[[1], 0]] }"}, "[1] is not a value; write a number, a text, a boolean, a date or { null = true }"),
        ({"versions": "{ one = {} }"}, "expect.delta-serializable.versions.one is not a version"),
        ({"serial": '["a c"]'}, "expect.delta-serializable.serial names no transaction: 'c'"),
        ({"log": '{ a = { blind = "no" } }'}, "expect.delta-serializable.log.a.blind is 'no'; expected true or false"),
    ],
)  # fmt: skip
def test_a_wrong_litmus_file_is_one_sentence(changes, message):
    with pytest.raises(IsolitmusError) as refused:
        read_litmus(text(**changes), "bad")
    assert message in str(refused.value)
    assert str(refused.value).startswith("bad.toml")


IDENTITY = """
title    = "Identity"
schedule = "a b"
[table]
columns = "id BIGINT GENERATED ALWAYS AS IDENTITY, part INT"
init    = ["INSERT INTO t (part) VALUES (0)"]
[transactions]
b = "DELETE FROM t"
a = {}
"""


@pytest.mark.parametrize(
    ("a", "message"),
    [
        ('"INSERT INTO t VALUES (1, 0)"', "bad.toml:9, transaction a:1:13: column id is GENERATED ALWAYS AS IDENTITY: list the other columns"),
        ('"INSERT INTO t (part, id) VALUES (1, 0)"', "column id is GENERATED ALWAYS AS IDENTITY"),
        ('"INSERT INTO t (part) SELECT part FROM t"', "the identity values of single rows are modelled only for VALUES"),
        ('"INSERT INTO t (part) SELECT 1 UNION ALL SELECT 2"', "the identity values of single rows"),
        ('"INSERT INTO t (part) SELECT count(*) FROM t GROUP BY part"', "the identity values of single rows"),
        ('"UPDATE t SET id = 1"', "'id' is an identity column, which Delta does not update"),
        ('"MERGE INTO t USING (SELECT 1 AS k) AS s ON t.part = s.k WHEN MATCHED THEN DELETE"', "'MERGE' on a table with identity columns"),
        ('"RESTORE TABLE t TO VERSION AS OF {init[1]}"', "'RESTORE' on a table with identity columns"),
        ('{ write = "append", query = "SELECT 1, 1" }', "transactions.a: t has identity columns, which only SQL can write here"),
        ('{ stream = "append", query = "SELECT 1, 1" }', "transactions.a: t has identity columns, which only SQL can write here"),
        ('{ reads = ["true"], adds = [] }', "transactions.a: t has identity columns, which only SQL can write here"),
    ],
)  # fmt: skip
def test_what_is_not_followed_of_identity_columns_is_refused(a, message):
    with pytest.raises(IsolitmusError) as refused:
        read_litmus(IDENTITY.format(a), "bad")
    assert message in str(refused.value)
    assert str(refused.value).startswith("bad.toml")


def test_a_file_that_is_no_toml_says_where():
    with pytest.raises(IsolitmusError, match=r"bad\.toml:2:9: not valid TOML: "):
        read_litmus("title = 'x'\nschedule\ntags = []", "bad")


def expecting(*protocols):
    """The file in which the same is expected of these protocols."""
    own = {"[expect.delta-serializable]": None, "outcome": None, "tables": None}
    more = "".join(f'\n[expect."{name}"]\noutcome = {{ b = "committed" }}' for name in protocols)
    return text(**own) + more


@pytest.mark.parametrize(
    ("written", "protocols"),
    [
        (["databricks"], ["databricks-write-serializable-newest-rows"]),
        (["databricks@15.4"], ["databricks-write-serializable-newest-rows@14.3"]),
        (
            ["databricks-serializable-oldest-rows@14.1"],
            ["databricks-serializable-oldest-rows@13.3"],
        ),
        (
            ["databricks-*-newest-rows@15.4", "databricks-serializable@15.4"],
            [
                "databricks-write-serializable-newest-rows@14.3",
                "databricks-serializable-newest-rows@14.3",
            ],
        ),
    ],
)
def test_what_is_expected_is_of_the_protocols_that_short_names_stand_for(written, protocols):
    test = read_litmus(expecting(*written), "test")
    assert list(test.expect) == protocols
    done = run(test, protocols[0])
    assert done.expected == "met"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (["databricks@9"], "[expect.databricks@9] is of no protocol; no release '9' of Databricks Runtime; known: 13.3"),
        (["delta-serializable@15.4"], "[expect.delta-serializable@15.4] is of no protocol; "),
        (["databrick"], "[expect.databrick] is of no protocol; known: databricks-serializable-middle, "),
        (
            ["databricks", "databricks-write-serializable-newest-rows"],
            "is of databricks-write-serializable-newest-rows, as [expect.databricks]; leave one of the two out",
        ),
    ],
)  # fmt: skip
def test_short_names_that_stand_for_nothing_or_for_the_same_are_refused(written, message):
    with pytest.raises(IsolitmusError) as refused:
        read_litmus(expecting(*written), "test")
    assert message in str(refused.value)


def test_a_transaction_and_a_scope_name_protocols_in_short():
    own = '{ sql = "INSERT INTO t VALUES (2, 0)", protocol = "databricks@15.4" }'
    named = read_litmus(text(b=own), "test").client("b").protocol
    assert named == "databricks-write-serializable-newest-rows@14.3"
    with pytest.raises(
        IsolitmusError, match=r"\.protocol is 'delta-\*', which is \d+ protocols; name one"
    ):
        read_litmus(text(b=own.replace("databricks@15.4", "delta-*")), "test")
    with pytest.raises(IsolitmusError, match="unknown protocol 'databricks@9'; no release '9'"):
        read_litmus(text(b=own.replace("15.4", "9")), "test")
    of = SCOPE.replace("[scope]", '[scope]\nprotocols = ["databricks", "delta-write-*"]')
    assert read_scope(of, "s").protocols == (
        "databricks-write-serializable-newest-rows",
        "delta-write-serializable",
        "delta-write-serializable-repaired",
    )


SCOPE = """
title = "S"
[table]
columns = "id INT"
[scope]
transactions = [2, 3]
statements = ["INSERT INTO t VALUES ({fresh})", "DELETE FROM t WHERE id = 1"]
"""


def test_fresh_is_another_number_at_every_position():
    scope = read_scope(SCOPE, "s")
    assert [s.sql for s in scope.statements[0][:3]] == [
        "INSERT INTO t VALUES (100)",
        "INSERT INTO t VALUES (200)",
        "INSERT INTO t VALUES (400)",
    ]


LIST = 'statements = ["INSERT INTO t VALUES ({fresh})", "DELETE FROM t WHERE id = 1"]'
JOBS = """[scope.statements]
ingest = "INSERT INTO t VALUES ({fresh})"
cleanup = "DELETE FROM t WHERE id = 1"
"""


def test_statements_with_names_are_jobs():
    """Transactions of what is found are called after them, numbered where there are several."""
    texts = SCOPE, SCOPE.replace(LIST, JOBS)
    listed, named = (read_scope(text.replace("id = 1", "id > 1"), "s") for text in texts)
    assert named.statements == listed.statements
    for scope, names in (
        (listed, ["insert1", "delete", "insert2"]),
        (named, ["ingest1", "cleanup", "ingest2"]),
    ):
        found = candidate(scope, scope.inits[0], [(0, 0), (1, 1), (0, 2)], []).litmus("x", "", "")
        assert list(found.transactions) == names


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (LIST, JOBS.replace("cleanup", "clean-up"), "s.toml:9: job 'clean-up': a name is letters, digits and _, and ends with no digit"),
        (LIST, JOBS.replace("cleanup", "cleanup2"), "s.toml:9: job 'cleanup2': a name is letters"),
        (LIST, JOBS.replace('"DELETE FROM t WHERE id = 1"', "1"), "s.toml:9: scope.statements.cleanup is 1; expected a string"),
        (LIST, JOBS.replace("id = 1", "ix = 1"), "s.toml:9, in statements:1:21: "),
        (LIST, "[scope.statements]", "scope.statements is empty"),
        ("[2, 3]", "0", "scope.transactions is 0; expected an integer from 1 to 8, or a list of them"),
        ("transactions =", "transaction =", "[scope] has no key 'transaction'; did you mean 'transactions'?"),
        ("DELETE FROM t WHERE id = 1", "SELECT * FROM t", "put it into scope.readers"),
        ("DELETE FROM t WHERE id = 1", "INSERT INTO t SELECT id FROM t VERSION AS OF {init[1]}", "scope has 'INSERT INTO t SELECT id FROM t VERSION AS OF {init[1]}'; older versions and other paths of a table are supported only in litmus tests"),
        ("statements = [", "readers = ['DELETE FROM t']\nstatements = [", "scope.readers holds a statement that writes"),
        ("statements = [", "noops = 'drop'\nstatements = [", "scope.noops is 'drop'; expected 'skip' or 'keep'"),
        ("({fresh})", "({frehs})", "s.toml:7, in statements:1:24: "),
    ],
)  # fmt: skip
def test_a_wrong_scope_file_is_one_sentence(old, new, message):
    with pytest.raises(IsolitmusError) as refused:
        read_scope(SCOPE.replace(old, new), "s")
    assert message in str(refused.value)
