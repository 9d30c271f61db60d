"""bench/constructs-on-delta.toml is what Delta says to each statement of bench/constructs.toml.

ISOLITMUS_UPDATE=1 pytest --whole tests/jobs/conformance/test_constructs.py records it; that takes
minutes.
"""

import json
import os
import re
import runpy
from datetime import date
from pathlib import Path

import pytest

from isolitmus.specs.sql.parameters import bind_text

BENCH = runpy.run_path(str(Path(__file__).parents[3] / "bench" / "constructs.py"))
VALUES = {
    "id": 1, "customer": 1, "amount": 1, "state": "open", "day": date(2026, 1, 1), "payload": "{}",
}  # fmt: skip
ROWS = {
    "orders": "(1, 1, 1, 'open', DATE '2026-01-01'), (2, 2, 20, 'late', DATE '2026-01-02')",
    "customers": "(1, 'a', 'DE', DATE '2026-01-01'), (2, 'b', 'XX', DATE '2026-01-01')",
    "staged": (
        "(1, 1, 1, 'open', DATE '2026-01-01', TIMESTAMP '2026-01-01 00:00:00'),"
        " (3, 2, 20, 'late', DATE '2026-01-02', TIMESTAMP '2026-01-01 00:00:00')"
    ),
    "events": (
        "(1, array('a'), named_struct('city', 'Ulm', 'zip', '1'), map('source', 'test'),"
        " '{\"id\": 1}', 1.5, TIMESTAMP '2026-01-01 00:00:00', DATE '2026-01-01')"
    ),
}
MADE = ("sales", "late_orders", "returns", "orders_copy", "orders_clone", "clustered", "landing")
HARMLESS = re.compile(r"\s*(INSERT|MERGE|DELETE|UPDATE|SHOW|DESC|SELECT|WITH|SET|USE|EXPLAIN)\b")
"""Statements after which the tables need not be made again."""


def fill(spark, sample, folder):
    """Make the tables, the view, and the files that statements name."""
    for name in MADE:
        spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.sql("DROP VIEW IF EXISTS late")
    for ddl in sample.tables:
        name = re.match(r"CREATE TABLE (\w+)", ddl)[1]
        spark.sql(f"DROP TABLE IF EXISTS {name}")
        changes = " TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
        spark.sql(ddl + changes if name == "staged" else ddl)
        spark.sql(f"INSERT INTO {name} VALUES {ROWS[name]}")
    spark.sql("CREATE TABLE landing USING delta AS SELECT * FROM staged")
    spark.sql("CREATE VIEW late AS SELECT id, day FROM orders WHERE state = 'late'")
    rows = spark.range(3).selectExpr(
        "id", "id AS customer", "1 AS amount", "'a' AS state", "DATE '2026-01-01' AS day"
    )
    for name in ("orders.parquet", "plain"):
        rows.write.mode("overwrite").parquet(str(folder / "files" / name))
    (folder / "raw.json").write_text('{"id": 1}\n', "utf-8")


def outcome(spark, sql, folder):
    """Return "taken", or the class of the error that a statement ends with."""
    text = bind_text(sql, VALUES).replace("'/tmp/", f"'{folder}/").replace("`/tmp/", f"`{folder}/")
    if found := re.search(r"(\w+)(?: TO)? TIMESTAMP AS OF '2026-01-01'", text):
        made = spark.sql(f"DESCRIBE HISTORY {found[1]}").orderBy("version").first().timestamp
        text = text.replace("'2026-01-01'", f"'{made}'")
    statements = [text] if text.startswith("BEGIN") else text.split(";")
    try:
        for statement in statements:
            spark.sql(statement.strip()).collect()
    except Exception as error:  # noqa: BLE001 - any error is an outcome
        named = getattr(error, "getCondition", lambda: None)()
        found = re.search(r"\[([A-Z_]+(?:\.[A-Z_]+)?)\]", str(error))
        return named or (found[1] if found else type(error).__name__)
    return BENCH["TAKEN"]


@pytest.mark.spark
@pytest.mark.wide
def test_what_delta_says_to_each_statement(session):
    sample, folder = BENCH["read_constructs"](), session.directory / "constructs"
    found, filled = {}, False
    folder.mkdir()
    for construct in sample.constructs:
        if not filled:
            fill(session.fresh(), sample, folder)
        found[construct.sql] = outcome(session.fresh(), construct.sql, folder)
        filled = HARMLESS.match(construct.sql) is not None
    for name in (*MADE, *ROWS):
        session.fresh().sql(f"DROP TABLE IF EXISTS {name}")
    if os.environ.get("ISOLITMUS_UPDATE"):
        lines = [f"{json.dumps(sql)} = {json.dumps(said)}" for sql, said in found.items()]
        head = f"# Observed on {session.version}: each statement, and the class of its error."
        BENCH["OBSERVED"].write_text("\n".join([head, *lines, ""]), "utf-8")
    assert found == BENCH["read_observed"]()


@pytest.mark.spark
@pytest.mark.parametrize(
    ("grammar", "parser"),
    [
        ("spark", "org.apache.spark.sql.catalyst.parser.SqlBaseParser"),
        ("delta", "io.delta.sql.parser.DeltaSqlBaseParser"),
    ],
)
def test_the_list_has_each_rule_of_the_grammar(session, grammar, parser):
    """The parser of the release has a class for each rule and labelled alternative."""
    loader = session.jvm.java.lang.Thread.currentThread().getContextClassLoader()
    names = [one.getSimpleName() for one in loader.loadClass(parser).getDeclaredClasses()]
    known = {
        name[0].lower() + name.removesuffix("Context")[1:]
        for name in names
        if name.endswith("Context")
    }
    sample = BENCH["read_constructs"]()
    sampled = {one.rule.partition(":")[0] for one in sample.constructs if one.grammar == grammar}
    assert sampled <= known
    assert known - sampled <= {name for names in sample.other.values() for name in names}
