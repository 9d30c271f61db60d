"""The tables of a sweep: what a row and a column of each is.

A candidate is a number, its ``rank``: its initial table, its statements and the versions that they read
follow from it. All else that is kept of a candidate goes by ``size`` and ``rank``, so that tables join.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.pipeline.result_table import ResultColumn, ResultTable

if TYPE_CHECKING:
    from isolitmus.model.scope import Scope

__all__ = ["BESIDE", "FIXED", "KEEP", "VERSION", "kept", "sweep_tables"]

VERSION = 1
"""Of the columns below: tables of another version are not gone on with."""
KEEP = {
    "counts": (),
    "findings": ("findings",),
    "executions": ("findings", "candidates", "executions"),
    "verdicts": ("findings", "candidates", "executions", "histories", "verdicts"),
}
"""What ``--keep`` keeps besides ``counts``, ``statements`` and ``inits``, from little to much."""
FIXED = ("statements", "inits")
"""The tables that follow from the scope alone."""
BESIDE = ("replays",)
"""Tables of others that may lie beside them."""

_STEPS = "ARRAY<STRUCT<statement: INT, read_version: INT>>"
_FIRST = f"STRUCT<init: INT, last: INT, steps: {_STEPS}>"
_KIND = f"STRUCT<axiom: STRING, relations: ARRAY<STRING>, candidates: BIGINT, smallest: {_FIRST}>"
_FAILURE = f"STRUCT<init: INT, steps: {_STEPS}, sql: STRING, exception: STRING, why: STRING>"
_EDGES = "ARRAY<STRUCT<source: INT, target: INT, relation: STRING>>"
_TRANSACTIONS = (
    "ARRAY<STRUCT<statement: INT, read_version: INT, version: INT, blind: BOOLEAN, whole_table: BOOLEAN,"
    " changes_data: BOOLEAN, files_read: INT, files_added: INT, files_removed: INT>>"
)

_SIZE = ResultColumn("INT", "how many transactions each candidate has")
_RANK = ResultColumn("BIGINT", "the number of the candidate among those of its size, from 0")
_SHARD = ResultColumn("BIGINT", "the part of the sweep that counted it, from 0")
_PROTOCOL = ResultColumn("STRING", "the name of the protocol")
_LEVEL = ResultColumn("STRING", "the name of the level")


def kept(keep: str) -> tuple[str, ...]:
    """The tables that are written shard by shard, the counts last: they say that the others are there.

    >>> kept("executions")
    ('candidates', 'executions', 'counts')
    """
    return (*(name for name in KEEP[keep] if name != "findings"), "counts")


def sweep_tables(scope: Scope) -> dict[str, ResultTable]:
    """The tables of a sweep of a scope, by name.

    >>> from isolitmus.specs import scope
    >>> sweep_tables(scope("two-partitions"))["histories"].columns["tables"].type
    'ARRAY<STRUCT<t: ARRAY<STRUCT<id: INT, part: INT>>>>'
    """
    tables = ", ".join(
        f"{name}: ARRAY<STRUCT<{', '.join(f'{c.name}: {c.type}' for c in schema.columns if c.name)}>>"
        for name, schema in scope.tables.items()
    )
    made = (
        ResultTable(
            "statements",
            "a statement of the scope",
            {
                "statement": ResultColumn("INT", "its number, from 0"),
                "name": ResultColumn("STRING", "what its transactions are called, if the scope says", null=True),
                "sql": ResultColumn("STRING", "its text; {fresh} is 100, 200, 400, … by the place of the commit"),
            },
        ),
        ResultTable(
            "inits",
            "an initial table of the scope",
            {
                "init": ResultColumn("INT", "its number, from 0"),
                "sql": ResultColumn("ARRAY<STRING>", "the statements that make it"),
            },
        ),
        ResultTable(
            "counts",
            "a shard, a protocol and a level: what was counted of them",
            {
                "size": _SIZE,
                "shard": _SHARD,
                "candidates": ResultColumn("BIGINT", "how many candidates the shard has"),
                "protocol": _PROTOCOL,
                "level": _LEVEL,
                "admitted": ResultColumn("BIGINT", "how many of them the protocol admits"),
                "silent": ResultColumn("BIGINT", "on how many it is silent"),
                "forbidden": ResultColumn("BIGINT", "how many of the admitted ones the level forbids"),
                "unexplained": ResultColumn(
                    "BIGINT", "how many of the admitted ones have a version that no serial order gives"
                ),
                "not_log_order": ResultColumn(
                    "BIGINT", "how many of the admitted ones end as the order of the log does not"
                ),
                "failed": ResultColumn(
                    "BIGINT", "how many candidates fail at run time after commits that some protocol admits"
                ),
                "smallest": ResultColumn(
                    _FIRST,
                    "of the forbidden ones that which needs the fewest statements of the scope, then the first;"
                    " last: the last statement that it needs",
                    null=True,
                ),
                "kinds": ResultColumn(
                    f"ARRAY<{_KIND}>", "the forbidden ones by what is broken; empty if no findings are kept"
                ),
                "failure": ResultColumn(_FAILURE, "the first that fails", null=True),
            },
            by=("size",),
            checks={
                "admitted_are_candidates": "admitted + silent <= candidates",
                "forbidden_are_admitted": "forbidden <= admitted",
                "unexplained_are_admitted": "unexplained <= admitted AND not_log_order <= admitted",
            },
        ),
        ResultTable(
            "candidates",
            "a candidate",
            {
                "size": _SIZE,
                "shard": _SHARD,
                "rank": _RANK,
                "init": ResultColumn("INT", "its initial table"),
                "steps": ResultColumn(_STEPS, "for each commit in order the statement, and the version that it read"),
                "outcome": ResultColumn(
                    "STRING",
                    "history: every statement did something; idle: one had nothing to do, which is not counted;"
                    " failed: one fails at run time",
                ),
                "position": ResultColumn("INT", "of the commit, from 1, at which it is idle or fails", null=True),
                "exception": ResultColumn("STRING", "with which it fails", null=True),
            },
            by=("size",),
            checks={"outcomes": "outcome IN ('history', 'idle', 'failed')"},
        ),
        ResultTable(
            "executions",
            "a candidate that is not idle, and a protocol: what becomes of it",
            {
                "size": _SIZE,
                "protocol": _PROTOCOL,
                "shard": _SHARD,
                "rank": _RANK,
                "outcome": ResultColumn(
                    "STRING",
                    "admitted: all commit; aborted: one does not; silent: the protocol does not say; failed: a"
                    " statement fails at run time, after commits that are admitted",
                ),
                "stopped": ResultColumn("INT", "the position of the first commit that is stopped", null=True),
                "stopped_by": ResultColumn("INT", "the position of the commit that stops it, if it is one alone", null=True),
                "exception": ResultColumn(
                    "STRING", "what the stopped one gets; or the axiom or silence that it meets", null=True
                ),
            },
            by=("size", "protocol"),
            checks={
                "outcomes": "outcome IN ('admitted', 'aborted', 'silent', 'failed')",
                "stopped_unless_admitted": "(outcome = 'admitted') = (stopped IS NULL)",
            },
        ),
        ResultTable(
            "histories",
            "a candidate with all of its transactions committed, whatever a protocol says",
            {
                "size": _SIZE,
                "shard": _SHARD,
                "rank": _RANK,
                "transactions": ResultColumn(
                    _TRANSACTIONS, "by commit position what each read and wrote, as the engine sees it"
                ),
                "tables": ResultColumn(f"ARRAY<STRUCT<{tables}>>", "the rows of the tables at each version from 0"),
                "dependencies": ResultColumn(_EDGES, "wr, ww and rw between transactions, by position"),
                "serial_orders": ResultColumn(
                    "ARRAY<ARRAY<INT>>", "the orders of the writers that give the final tables, by position"
                ),
                "unexplained": ResultColumn(
                    "ARRAY<INT>", "the versions whose tables no order of the writers until then gives"
                ),
                "log_order": ResultColumn("BOOLEAN", "whether the order of the log gives the final tables"),
            },
            by=("size",),
        ),
        ResultTable(
            "verdicts",
            "a history and a level",
            {
                "size": _SIZE,
                "level": _LEVEL,
                "shard": _SHARD,
                "rank": _RANK,
                "verdict": ResultColumn("STRING", "allowed or forbidden"),
                "axiom": ResultColumn("STRING", "the axiom that is broken", null=True),
                "cycle": ResultColumn(_EDGES, "the dependencies that break it, by position", null=True),
            },
            by=("size", "level"),
            checks={"verdicts": "(verdict = 'forbidden') = (axiom IS NOT NULL)"},
        ),
        ResultTable(
            "findings",
            "a protocol, a level and a kind of what the one admits and the other forbids",
            {
                "size": _SIZE,
                "protocol": _PROTOCOL,
                "level": _LEVEL,
                "axiom": ResultColumn("STRING", "the axiom that is broken"),
                "relations": ResultColumn("ARRAY<STRING>", "the relations of the dependencies that break it, in order"),
                "candidates": ResultColumn("BIGINT", "how many candidates are of the kind"),
                "smallest": ResultColumn("BOOLEAN", "whether the first of the kind is the first of all kinds"),
                "rank": ResultColumn("BIGINT", "the first of the kind, fewest statements of the scope first"),
                "litmus": ResultColumn("STRING", "that one as a litmus file"),
            },
            by=("size",),
        ),
    )  # fmt: skip
    return {one.name: one for one in made}
