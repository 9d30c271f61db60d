"""Properties of tables: which are modelled, said by a litmus file and by SQL alike."""

import pytest

from isolitmus.checker.runs import run
from isolitmus.conformance.engines import carried_out
from isolitmus.model.errors import LitmusError, Refused, UndeterminedError, near
from isolitmus.specs import protocol
from isolitmus.specs.litmus_file import read_litmus
from isolitmus.specs.properties import MADE, SET
from isolitmus.specs.scope_file import read_scope

VALUES = {
    "delta.checkpointInterval": "3",
    "delta.deletedFileRetentionDuration": "interval 1 week",
    "delta.isolationLevel": "Serializable",
    "delta.logRetentionDuration": "interval 30 days",
}


def test(properties="", statement="DELETE FROM t"):
    text = f"""
title = "t"
schedule = "a"
[table]
columns = "id INT"
properties = {{ {properties} }}
[transactions]
a = "{statement}"
"""
    return read_litmus(text, "t")


test.__test__ = False


def value(key, known):
    return VALUES.get(key) or known[key].words.split("'")[1]


@pytest.mark.parametrize("key", MADE)
def test_a_table_may_have_it(key):
    wanted = value(key, MADE)
    assert test(f'"{key}" = "{wanted}"').tables["t"].properties == {key: wanted}


@pytest.mark.parametrize("key", SET)
def test_a_statement_may_set_it(key):
    statement = f"ALTER TABLE t SET TBLPROPERTIES ('{key}' = '{value(key, SET)}')"
    assert test(statement=statement).transactions["a"].change.properties == {key: value(key, SET)}


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ('"delta.appendOnly" = "yes"', "delta.appendOnly is 'yes'; known: 'true' or 'false'"),
        ('"delta.appendOnly" = true', "delta.appendOnly is True; a text is wanted"),
        ('"delta.apendOnly" = "true"', "the property 'delta.apendOnly' is not modelled; did you mean 'delta.appendOnly'?"),
        ('"delta.checkpointInterval" = "0"', "delta.checkpointInterval is '0'; known: a whole number from 1"),
        ('"delta.feature.rowTraking" = "supported"', "the feature 'rowTraking' is not modelled; did you mean 'rowTracking'?"),
        ('"delta.feature.rowTracking" = "true"', "delta.feature.rowTracking is 'true'; known: 'supported'"),
    ],
)  # fmt: skip
def test_what_it_may_not_be(said, sentence):
    with pytest.raises(LitmusError) as error:
        test(said)
    assert str(error.value).startswith("t.toml:6: table.properties: ")
    assert sentence in str(error.value)


LEVEL = '"delta.isolationLevel" = "writeSerializable"'


def test_a_level_is_refused_by_those_who_cannot_have_it():
    """A litmus file may declare it, for delta-rs takes it, and so does Databricks, by any spelling."""
    for under in ("delta-rs-serializable", "databricks-serializable-newest"):
        assert run(test(LEVEL), protocol(under)).run.transactions["a"].outcome == "no-op"
    with pytest.raises(
        UndeterminedError,
        match=r"^t: t\.properties: delta\.isolationLevel is 'writeSeri.* only 'Seri",
    ):
        run(test(LEVEL), protocol("delta-serializable"))
    snapshot = test(LEVEL.replace("writeSerializable", "snapshotIsolation"))
    with pytest.raises(
        UndeterminedError, match="takes only 'Serializable' and 'WriteSerializable' from"
    ):
        run(snapshot, protocol("databricks-serializable-newest"))
    (refused,) = carried_out("delta", [(test(LEVEL), protocol("delta-serializable"))])
    assert isinstance(refused, Refused)


def test_a_level_is_refused_where_there_is_no_run():
    scope = f'title = "x"\n[scope]\ntransactions = 1\nstatements = ["DELETE FROM t"]\n[table]\ncolumns = "id INT"\nproperties = {{ {LEVEL} }}'
    with pytest.raises(LitmusError, match="takes only 'Serializable' from a user; leave it out"):
        read_scope(scope, "x")


def test_only_near_names_are_proposed():
    assert "did you mean" not in near("delta.checkpointInterval", ["delta.checkpointPolicy", "x"])
    assert near("delta.apendOnly", MADE) == "; did you mean 'delta.appendOnly'?"
    assert near("detla.appendOnly", MADE) == "; did you mean 'delta.appendOnly'?"
