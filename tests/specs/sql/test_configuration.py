"""Properties of tables: which are modelled, said by a litmus file and by SQL alike."""

import re

import pytest

from isolitmus.checker.execution.run_result import run
from isolitmus.model.errors import IsolitmusError, LitmusError, UndeterminedError, near
from isolitmus.specs import protocol
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.files.scope_file import read_scope
from isolitmus.specs.sql.configuration import MADE, SETTABLE, conf_problem, unmodelled_property

VALUES = {
    "delta.checkpointInterval": "3",
    "delta.deletedFileRetentionDuration": "interval 1 week",
    "delta.isolationLevel": "Serializable",
    "delta.logRetentionDuration": "interval 30 days",
    "delta.randomPrefixLength": "4",
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


@pytest.mark.parametrize("key", SETTABLE)
def test_a_statement_may_set_it(key):
    statement = f"ALTER TABLE t SET TBLPROPERTIES ('{key}' = '{value(key, SETTABLE)}')"
    assert test(statement=statement).transactions["a"].change.properties == {
        key: value(key, SETTABLE)
    }


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ('"delta.appendOnly" = "yes"', "delta.appendOnly is 'yes'; known: 'true' or 'false'"),
        ('"delta.appendOnly" = true', "delta.appendOnly is True; expected a string"),
        ('"delta.apendOnly" = "true"', "Delta has no property 'delta.apendOnly' (DELTA_UNKNOWN_CONFIGURATION); did you mean 'delta.appendOnly'?"),
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


OTHERS = """
    autoOptimize castIcebergTimeType columnMapping.maxColumnId compatibility.symlinkFormatManifest.enabled
    coordinatedCommits.commitCoordinator-preview coordinatedCommits.tableConf-preview
    dataSkippingStatsColumns dataSkippingStringPrefixLength enableChangeDataCapture
    enableIcebergCompatV1 enableIcebergCompatV2 enableIcebergCompatV3 enableMaterializePartitionColumnsFeature enableTypeWidening
    enableVariantShredding ignoreIcebergBucketPartition ignoreProtocolDefaults inCommitTimestampEnablementTimestamp
    inCommitTimestampEnablementVersion minReaderVersion minWriterVersion parquet.format.version
    requireCheckpointProtectionBeforeVersion rowTrackingSuspended universalFormat.enabledFormats
    universalFormat.iceberg.atomicConversion.supported universalFormat.config.iceberg.x writePartitionColumnsToParquet
"""
"""What Delta has besides (DeltaConfig.scala)."""


@pytest.mark.parametrize("key", OTHERS.split())
def test_what_else_delta_has_is_refused_with_the_reason(key):
    assert re.fullmatch(
        rf"the property 'delta\.{key}' is not modelled: .+",
        unmodelled_property(f"delta.{key}", "1", made=True),
    )


RETENTIONS = [
    ("delta.logRetentionDuration", "7 days", True),
    ("delta.logRetentionDuration", "INTERVAL 168 hours", True),
    ("delta.logRetentionDuration", "interval 6 days", False),
    ("delta.deletedFileRetentionDuration", "interval 30 days", True),
    ("delta.deletedFileRetentionDuration", "interval 5 weeks", False),
]


@pytest.mark.parametrize(("key", "span", "taken"), RETENTIONS)
@pytest.mark.parametrize("by_sql", [False, True])
def test_logs_are_kept_as_long_as_files(key, span, taken, by_sql):
    said = {"statement": f"ALTER TABLE t SET TBLPROPERTIES ('{key}' = '{span}')"}
    said = said if by_sql else {"properties": f'"{key}" = "{span}"'}
    if taken:
        assert test(**said)
    else:
        with pytest.raises(IsolitmusError, match=r"is shorter than .*, which Delta rejects"):
            test(**said)


CONF_TEST = """
title = "t"
schedule = "a"
[table]
columns = "id INT"
[transactions]
a = {{ sql = "DELETE FROM t WHERE id = 1", before = ["SET {key} = {value}"], conf = {{ "{key}" = "{value}" }} }}
"""
ASIDES = {
    "spark.sql.shuffle.partitions": "200",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.databricks.delta.commitInfo.userMetadata": "nightly",
    "spark.databricks.delta.checkpoint.partSize": "5",
    "team.owner": "eu",
}


@pytest.mark.parametrize(("key", "value"), ASIDES.items())
def test_a_conf_that_takes_no_part_is_kept(key, value):
    client = read_litmus(CONF_TEST.format(key=key, value=value), "t").client("a")
    assert client.conf == {client.before[0].key: client.before[0].value} == {key: value}


LEVEL = '"delta.isolationLevel" = "writeSerializable"'


def test_a_level_is_refused_by_those_who_cannot_have_it():
    """A litmus file may declare it, for delta-rs takes it, and so does Databricks, by any
    spelling.
    """
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


def test_an_engine_is_not_asked_about_a_level_that_it_refuses(call):
    for engine in ("delta", "model,delta"):
        status, _, err = call(
            "run",
            "delta-rs-level-misspelled",
            "--protocol",
            "delta-serializable",
            "--engine",
            engine,
        )
        assert (status, err.count("Delta takes only 'Serializable' from a user")) == (3, 1)


def test_a_level_is_refused_where_there_is_no_run():
    scope = (
        'title = "x"\n[scope]\ntransactions = 1\nstatements = ["DELETE FROM t"]\n[table]\ncolumns'
        f' = "id INT"\nproperties = {{ {LEVEL} }}'
    )
    with pytest.raises(LitmusError, match="takes only 'Serializable' from a user; leave it out"):
        read_scope(scope, "x")


def test_only_near_names_are_proposed():
    assert "did you mean" not in near("delta.checkpointInterval", ["delta.checkpointPolicy", "x"])
    assert near("delta.apendOnly", MADE) == "; did you mean 'delta.appendOnly'?"
    assert near("detla.appendOnly", MADE) == "; did you mean 'delta.appendOnly'?"


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("allFilesInCrc.verificationMode.enabled", ""),
        ("lastCheckpoint.checksum.enabled", ""),
        ("commitMetrics.threadPoolSize", ""),
        ("maxSnapshotLineageLength", ""),
        ("uniform.iceberg.retry.times", ""),
        ("write.txnVersion.autoReset.enabled", "by app = "),
        ("rowTracking.backfill.enabled", "in how many commits"),
        ("generatedColumn.partitionFilterOptimization.enabled", "the files that a statement reads"),
        ("generatedColumn.validateOnWrite.enabled", "which writes fail"),
        ("replaceWhere.dataColumns.enabled", "an INSERT that replaces rows"),
        ("streaming.schemaTracking.enabled", "what a stream reads"),
        ("delta.log.cacheSize", "it is static"),
        ("convertEmptyToNullForStringPartitionCol", "how a partition column stores a value"),
        ("vacuum.lite.enabled", "which files VACUUM removes"),
        ("coordinatedCommits.ignoreMissingCoordinatorImplementation", "by a coordinator"),
        ("alwaysCollectStats.enabled", "whether it affects conflicts is unknown"),
    ],
)
def test_a_conf_of_delta_takes_no_part_or_is_refused_with_the_reason(key, why):
    problem = conf_problem(f"spark.databricks.delta.{key}", "true")
    assert bool(problem) == bool(why)
    assert why in problem
    assert "did you mean" not in problem
