"""Row tracking enabled by ALTER TABLE beside every kind of statement, on Delta and by the model.

The scenarios are those of Delta's RowTrackingBackfillConflictsSuite: the statement begins before the
table feature or after it, and commits beside each of the commits that ALTER TABLE makes.
"""

from itertools import product

import pytest
from case_checks import PARTS, sample, sampled

from isolitmus.checker.execution.run_result import run
from isolitmus.conformance.agreement import find_mismatches
from isolitmus.conformance.delta.engine import DELTA, open_delta
from isolitmus.specs import protocol
from isolitmus.specs.files.litmus_file import read_litmus

STATEMENTS = {
    "insert": "INSERT INTO t VALUES (1337, 1)",
    "delete": "DELETE FROM t WHERE id = 1",
    "update": "UPDATE t SET id = id + 1000 WHERE id = 1",
    "merge": (
        "MERGE INTO t USING (SELECT 1 AS id UNION ALL SELECT 90 AS id) AS s ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET id = t.id + 1000"
        " WHEN NOT MATCHED THEN INSERT (id, part) VALUES (s.id, 1)"
    ),
    "merge-by-source": (
        "MERGE INTO t USING (SELECT 0 AS id UNION ALL SELECT 90 AS id) AS s ON t.id = s.id"
        " WHEN NOT MATCHED THEN INSERT (id, part) VALUES (s.id, 1)"
        " WHEN NOT MATCHED BY SOURCE AND t.part = 1 THEN DELETE"
    ),
    "optimize": "OPTIMIZE t WHERE part = 1",
    "overwrite": "INSERT OVERWRITE t VALUES (7, 7)",
    "restore": "RESTORE TABLE t TO VERSION AS OF {init[1]}",
    "set-property": "ALTER TABLE t SET TBLPROPERTIES ('team' = 'us')",
}
SCENARIOS = {
    "1": "other.start feature.start other.commit feature.commit batch enable",
    "2": "other.start feature batch.start other.commit batch.commit enable",
    "3": "other.start feature batch second.start other.commit second.commit enable",
    "4": "other.start feature batch enable other.commit",
    "5": "feature batch.start other batch.commit enable",
    "6": "feature batch.start other.start batch.commit second.start other.commit second.commit enable",
    "7": "feature batch.start other.start batch.commit enable other.commit",
    "8": "feature batch.start batch.commit enable.start other enable.commit",
}  # fmt: skip
"""Schedule of each scenario. The last is not in Delta's suite."""
ENABLE = "ALTER TABLE t SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
TWO_FILES = "spark.databricks.delta.backfill.maxNumFiles"


def case(scenario, kind, *, vectors):
    """Return the test of a statement in a scenario; two batches share four files."""
    two = "second" in SCENARIOS[scenario]
    conf = f'conf = {{ "{TWO_FILES}" = "2" }}\n' if two else ""
    second = 'second = { commit_of = "enable" }\n' if two else ""
    properties = 'properties = { "delta.enableDeletionVectors" = "true" }\n' if vectors else ""
    return read_litmus(
        f"""
        title    = "Row tracking is enabled beside {kind}, scenario {scenario}"
        schedule = "{SCENARIOS[scenario]}"
        [table]
        columns        = "id INT, part INT"
        partitioned_by = ["part"]
        {properties}
        init = ["INSERT INTO t VALUES (0, 0), (1, 1), (2, 2), (4, 0), (5, 1)", "INSERT INTO t VALUES (6, 1)"]
        [transactions]
        other   = "{STATEMENTS[kind]}"
        feature = {{ commit_of = "enable" }}
        batch   = {{ commit_of = "enable" }}
        {second}
        [transactions.enable]
        {conf}
        sql = "{ENABLE}"
        """,
        f"{kind}-{scenario}{'-vectors' if vectors else ''}",
    )


PART_OF_ENABLE = '{ commit_of = "enable" }'
OTHERS = {
    "two-backfills": (
        "feature batch.start again.start batch.commit enable again.commit other",
        {"other": f'"{ENABLE}"', "batch": PART_OF_ENABLE, "again": '{ commit_of = "other" }'},
        {},
    ),
    "after-a-failure": (
        "feature batch.start property batch.commit enable again other",
        {
            "property": "\"ALTER TABLE t SET TBLPROPERTIES ('foo' = 'bar')\"",
            "batch": PART_OF_ENABLE,
            "again": '{ commit_of = "other" }',
            "other": f'"{ENABLE}"',
        },
        {"batch": "MetadataChangedException", "enable": "MetadataChangedException"},
    ),
    "clone-wins": (
        "feature clone.start enable.start clone.commit enable.commit",
        {"clone": '"CREATE OR REPLACE TABLE t SHALLOW CLONE s"'},
        {"enable": "MetadataChangedException"},
    ),
    "clone-loses": (
        "feature clone.start enable clone.commit",
        {"clone": '"CREATE OR REPLACE TABLE t SHALLOW CLONE s"'},
        {"clone": "ConcurrentWriteException"},
    ),
}
"""Delta's other tests, RowTrackingBackfillBackfillConflictsSuite and …CloneConflictsSuite: schedule,
transactions, and what does not commit. The table of a clone is empty, so it has no batch.
"""


def other_case(name):
    """Return the test of one of the others."""
    schedule, transactions, _ = OTHERS[name]
    rows = "" if "clone" in name else 'init = ["INSERT INTO t VALUES (1, 0), (2, 1)"]'
    lines = "\n".join(f"{key} = {text}" for key, text in transactions.items())
    return read_litmus(
        f"""
title    = "Row tracking is enabled: {name}"
schedule = "{schedule}"
[tables.t]
columns = "id INT, part INT"
{rows}
[tables.s]
columns = "id INT, part INT"
init    = ["INSERT INTO s VALUES (7, 0)"]
[transactions]
{lines}
feature = {PART_OF_ENABLE}
enable  = "{ENABLE}"
""",
        name,
    )


def every_case():
    tests = [
        *map(other_case, OTHERS),
        *(
            case(scenario, kind, vectors=vectors)
            for scenario, kind, vectors in product(SCENARIOS, STATEMENTS, (False, True))
        ),
    ]
    return [(test, protocol("delta-serializable")) for test in tests]


@pytest.mark.parametrize("name", OTHERS)
def test_what_delta_asserts_is_predicted(name):
    done = run(other_case(name), "delta-serializable").run.transactions
    failed = {key: one.outcome for key, one in done.items() if one.outcome != "committed"}
    assert failed == OTHERS[name][2]


@pytest.mark.spark
@sampled
def test_delta_and_the_model_agree(session, seed, whole):
    """Outcomes, versions, logs and tables. A sample is a tenth."""
    cases = sample(every_case(), seed, whole, parts=2 * PARTS)
    assert len(cases) > 10
    found = find_mismatches(cases, open_delta(session), DELTA.at_once)
    assert [str(one) for one in found] == []
