"""Raw transactions on the model: what Delta prepares no commit of, files by path and vector,
confs.
"""

import pytest

from isolitmus.checker.delta.random_tests import raw_tests
from isolitmus.checker.execution.commit_loop import execute, observed_run
from isolitmus.checker.execution.run_result import run
from isolitmus.conformance.agreement import draw_tests
from isolitmus.conformance.delta.raw_commits import _written
from isolitmus.specs import protocol
from isolitmus.specs.files.litmus_file import read_litmus

SERIALIZABLE = protocol("delta-serializable")
DUPLICATE = "error:DeltaRuntimeException"
NO_VECTORS = "error:DeltaCommandUnsupportedWithDeletionVectorsException"
TABLE = """\
title = "T"
schedule = "{schedule}"
[table]
columns = "id INT"
properties = {{ {properties} }}
files = [{{ path = "f0", stats = {{ numRecords = 2 }}{vector} }}, {{ path = "f1", stats = {{ numRecords = 2 }} }}]
"""
VECTORS = '"delta.enableDeletionVectors" = "true"'
MARKED = '{ path = "f0", stats = { numRecords = 2 }, dv = "d1" }'
OTHER = '{ path = "f0", stats = { numRecords = 2 }, dv = "d2" }'


def outcomes(schedule, *transactions, properties=VECTORS, vector=', dv = "d1"'):
    """How transactions a, b, … end at Serializable, in alphabetical order."""
    text = TABLE.format(schedule=schedule, properties=properties, vector=vector)
    for name, keys in zip("abcd", transactions, strict=False):
        text += f"[transactions.{name}]\n{keys}\n"
    test = read_litmus(text, "t")
    run = observed_run(test, execute(test, SERIALIZABLE), "delta-serializable")
    return [run.transactions[name].outcome for name in sorted(run.transactions)]


@pytest.mark.parametrize(
    ("keys", "outcome"),
    [
        (f"adds = [{MARKED}, {MARKED}]", DUPLICATE),
        (f"adds = [{MARKED}, {OTHER}]", DUPLICATE),
        ('removes = ["f1", "f1"]', DUPLICATE),
        (f'removes = ["f0", {OTHER}]', DUPLICATE),
        (f'adds = [{MARKED}]\nremoves = ["f0"]', DUPLICATE),
        (f'adds = [{OTHER}]\nremoves = ["f0"]', "committed"),
        ('adds = [{ path = "f0" }]\nremoves = ["f0"]', "committed"),
        ('adds = [{ path = "f1" }]\nremoves = ["f1"]', DUPLICATE),
        ('removes = ["f1", "f1"]\nlarge = true', "committed"),
    ],
)  # fmt: skip
def test_a_commit_has_no_file_twice(keys, outcome):
    assert outcomes("a", keys) == [outcome]


def test_the_log_tells_files_apart_by_their_vectors_and_conflicts_do_not():
    reader = 'reads = ["id > 0"]\nadds = [{ path = "new" }]'
    other = 'removes = [{ path = "f0" }]'  # not the file that is there
    both = 'removes = ["f0", "f1"]'
    assert outcomes("a b.start c b.commit", other, reader, both)[1:] == [
        "ConcurrentDeleteReadException",
        "committed",
    ]
    assert outcomes("a b.start c b.commit", both, reader, other)[1:] == ["committed", "committed"]


def test_vectors_are_added_where_they_may_be():
    unset = 'metadata = { unset = ["delta.enableDeletionVectors"] }'
    adds = f"adds = [{OTHER.replace('f0', 'f9')}]"
    assert outcomes("a b", unset, adds) == ["committed", NO_VECTORS]
    in_place = f'{adds}\noperation = "ComputeStats"'
    assert outcomes("a b", unset, in_place) == ["committed", "committed"]
    assert outcomes("a", adds, properties="", vector="") == [NO_VECTORS]
    # commitLarge comes to its files when it writes them, and so after whoever overtook it
    large = f"{adds}\nlarge = true"
    assert outcomes("a b", unset, large) == ["committed", NO_VECTORS]
    assert outcomes("a b.start c b.commit", unset, large, "app = { id = 'x', version = 1 }") == [
        "committed",
        "ConcurrentWriteException",
        "committed",
    ]


def test_nothing_goes_from_a_table_that_only_grows():
    only = 'metadata = { configuration = { "delta.appendOnly" = "true" } }'
    refused = "error:DeltaUnsupportedOperationException"
    still = 'removes = ["f1"]\ndata_change = false'
    assert outcomes("a b c", only, 'removes = ["f0"]', still) == ["committed", refused, "committed"]


def test_domains_need_their_feature_and_come_once():
    domains, refused = 'domains = ["one"]', "error:DeltaIllegalArgumentException"
    assert outcomes("a", domains) == [refused]
    for feature in ("domainMetadata", "rowTracking", "clustering"):
        came = f'protocol = {{ features = ["{feature}"] }}'
        assert outcomes("a b c", came, domains, 'domains = ["one", "one"]') == [
            "committed",
            "committed",
            refused,
        ]


def test_the_conf_of_one_attempt_is_not_for_large_commits():
    conf = 'conf = { "spark.databricks.delta.maxCommitAttempts" = "0" }'
    adds, winner = 'adds = [{ path = "f9" }]', 'adds = [{ path = "f8" }]'
    assert (
        outcomes("a.start b a.commit", f"{adds}\n{conf}", winner)[0]
        == "error:DeltaIllegalStateException"
    )
    assert (
        outcomes("a.start b a.commit", f"{adds}\n{conf}\nlarge = true", winner)[0]
        == "ConcurrentWriteException"
    )


@pytest.mark.parametrize(
    "keys", ['reads = ["id = 7"]', 'reads = [{ sql = "SELECT id FROM t WHERE id = 7" }]']
)
def test_without_skipping_every_file_is_read(keys):
    winner = 'removes = ["f1"]'
    table = "minValues = { id = 0 }, maxValues = { id = 1 }, nullCount = { id = 0 }"
    text = TABLE.format(schedule="a.start b a.commit", properties="", vector="")
    text = text.replace("numRecords = 2", f"numRecords = 2, {table}")
    for conf, outcome in (
        ("", "committed"),
        ('conf = { "spark.databricks.delta.stats.skipping" = "false" }', "ConcurrentDeleteReadException"),
    ):  # fmt: skip
        a = f"[transactions.a]\n{keys}\n{conf}\napp = {{ id = 'x', version = 1 }}\n"
        test = read_litmus(f"{text}{a}[transactions.b]\n{winner}\n", "t")
        assert execute(test, SERIALIZABLE).events[-1].name == "a"
        run = observed_run(test, execute(test, SERIALIZABLE), "delta-serializable")
        assert run.transactions["a"].outcome == outcome


def test_a_raw_transaction_tries_once_whatever_it_says_that_it_is():
    """OPTIMIZE tries again while its files are there; its operation does not."""
    reads = 'removes = ["f1"]\nreads = [{ app_id = \'x\' }]\noperation = "Optimize"'
    app = "app = { id = 'x', version = 1 }"
    assert outcomes("a.start b a.commit", reads, app)[0] == "ConcurrentTransactionException"


def test_a_backfill_leaves_the_files_of_winners_to_them():
    backfill = 'adds = [{ path = "f1", stats = { numRecords = 2 } }]\ndata_change = false\n'
    backfill += 'operation = "RowTrackingBackfill"\nreads = ["true"]'
    gone, reader = (
        'removes = ["f1"]',
        'reads = ["true"]\nadds = [{ path = "n", stats = { numRecords = 1 } }]',
    )
    tracked = '"delta.feature.rowTracking" = "supported"'
    found = outcomes(
        "a.start b a.commit c.start d c.commit", backfill, gone, reader, gone,
        properties=tracked, vector="",
    )  # fmt: skip
    assert found == ["committed", "committed", "committed", "committed"]


def test_a_removal_says_which_vector_the_file_has():
    text = TABLE.format(schedule="a", properties=VECTORS, vector=', dv = "d1"')
    test = read_litmus(f'{text}[transactions.a]\nremoves = ["f0", "f1", {{ path = "f2", dv = "d3" }}]\n', "t")  # fmt: skip
    written = [a["remove"] for a in _written(test.transactions["a"], None, test.tables["t"])]
    vectors = [a.get("deletionVector", {}).get("pathOrInlineDv") for a in written]
    assert vectors == ["/d1.bin", None, "/d3.bin"]


@pytest.mark.slow
def test_the_strategies_draw_all_that_a_raw_transaction_can_be():
    tests = [
        test for test, _ in draw_tests(raw_tests(), 200, 11, (protocol("delta-serializable"),))
    ]
    raws = [raw for test in tests for raw in test.transactions.values()]
    assert any(file.vector for raw in raws for file in raw.removes)
    assert any(len({f.path for f in raw.removes}) < len(raw.removes) for raw in raws)
    assert any(len({f.path for f in raw.adds}) < len(raw.adds) for raw in raws)
    assert any(raw.protocol and "rowTracking" in raw.protocol.features for raw in raws)
    assert any(len(set(raw.domains)) < len(raw.domains) for raw in raws)
    assert any(raw.large and raw.adds for raw in raws)
    assert {raw.operation for raw in raws} >= {"Optimize", "UpgradeProtocol", "RowTrackingBackfill"}
    assert any(test.init for test in tests)
    assert any(client.conf for test in tests for client in test.clients.values())
    schemas = [test.tables["t"] for test in tests]
    assert any(len(schema.partitioned_by) == len(schema.columns) for schema in schemas)
    assert any(file.vector for schema in schemas for file in schema.files)
    assert any(len(test.transactions) > 3 for test in tests)


@pytest.mark.parametrize(
    ("large", "outcome"),
    [("true", "committed"), ("false", "error:DeltaUnsupportedOperationException")],
)
def test_commit_large_takes_files_out_of_a_table_for_appends_only(large, outcome):
    """It does not ask (OptimisticTransaction.scala, assertRemovable stands in prepareCommit)."""
    test = read_litmus(
        f"""
        title = "t"
        schedule = "a"
        [table]
        columns = "id INT, part INT"
        files = [{{ path = "f0", stats = {{ numRecords = 1 }} }}]
        properties = {{ "delta.appendOnly" = "true" }}
        [transactions.a]
        operation = "Truncate"
        large = {large}
        removes = ["f0"]
        """,
        "t",
    )
    done = run(test, protocol("delta-serializable"))
    assert done.run.transactions["a"].outcome == outcome
