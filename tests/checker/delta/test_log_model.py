"""Logs as Delta would write them of what the model does: what a level says of the log is never more
than what it says of the rows.
"""

import json
import re
from collections import Counter
from dataclasses import replace

import pytest
from case_checks import check_cases
from hypothesis import assume, given
from hypothesis import event as told
from hypothesis import strategies as st

from isolitmus.checker.auditing.log_audit import audit
from isolitmus.checker.checks.log_check import check_log
from isolitmus.checker.delta.format import DELTA
from isolitmus.checker.execution.commit_loop import execute, judge_execution
from isolitmus.checker.execution.run_result import run
from isolitmus.checker.strategies import litmus_tests
from isolitmus.model.litmus import Litmus
from isolitmus.model.schedule import Schedule
from isolitmus.specs import level, litmus, protocol
from isolitmus.specs.files.catalogue import litmus_names as names

LEVELS = ("log-serializable", "write-serializable", "snapshot-isolation")
UNDER = {
    "delta-serializable": "Serializable",
    "delta-write-serializable": "WriteSerializable",
    "": "Serializable",  # every commit as it stands, by a writer that checks nothing
}
WHERE = re.compile(r"\bWHERE\b(.*)", re.IGNORECASE | re.DOTALL)


def action(kind, file, schema, data_change=True):
    columns = list(enumerate(schema.columns))
    parted = [column.name for _, column in columns if column.name in schema.partitioned_by]
    known = [(c.name, file.stats[k]) for k, c in columns if file.stats[k] is not None]
    stats = {
        "numRecords": len(file.rows) + file.dead,
        "minValues": {n: s.least for n, s in known if s.least is not None},
        "maxValues": {n: s.greatest for n, s in known if s.greatest is not None},
        "nullCount": {n: s.nulls for n, s in known},
    }
    values = {n: None if v is None else str(v) for n, v in zip(parted, file.partition, strict=True)}
    fields = {"path": file.path, "partitionValues": values, "dataChange": data_change}
    vector = {"storageType": "u", "pathOrInlineDv": str(file.dead), "cardinality": file.dead}
    dead = {"deletionVector": vector} if file.dead else {}
    return {kind: fields | {"stats": json.dumps(stats, default=str)} | dead}


def claims(event, statement):
    """What Delta logs of a statement: the predicate of a DELETE and UPDATE."""
    where = WHERE.search(statement.sql)
    said = {"predicate": json.dumps([where[1].strip()] if where else [])}
    level_used = [name for name in event.labels if name[0].isupper()]
    checked = {"isolationLevel": level_used[0]} if level_used else {}
    return checked | {
        "operation": event.effect.operation,
        "operationParameters": said if event.effect.operation in ("DELETE", "UPDATE") else {},
        "readVersion": event.read_version,
        "isBlindAppend": event.effect.footprint.claims_blind,
        "engineInfo": "Apache-Spark/4.2.0 Delta-Lake/4.4.0" if level_used else "Kernel",
    }


def write_log(folder, test, execution, table_level):
    """The log of the one table of an execution; version 0 has the rows from before the schedule."""
    (name,) = test.tables
    schema = test.tables[name]
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    types = {"INT": "integer", "BIGINT": "long", "STRING": "string", "DATE": "date"}
    fields = [
        {"name": c.name, "type": types.get(c.type, c.type.lower()), "metadata": {}}
        for c in schema.columns
    ]
    metadata = {
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": list(schema.partitioned_by),
        "configuration": {"delta.isolationLevel": table_level},
    }
    actions = [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}]
    actions += [action("add", file, schema) for file in execution.states[0][name].files]
    commits = [actions]
    for event in execution.events:
        if event.version is None:
            continue
        before = {f.path: f for f in execution.states[event.read_version][name].files}
        said = event.effect.footprint
        removed = [before[path] for path in sorted(event.effect.removes)]
        commits.append(
            [
                {"commitInfo": claims(event, test.transactions[event.name])},
                *(action("remove", file, schema, said.data_change) for file in removed),
                *(action("add", file, schema, said.data_change) for file in event.effect.adds),
            ]
        )
    for version, lines in enumerate(commits):
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (log / f"{version:020}.json").write_text(text)
    return folder


def logged(folder, test, under):
    return write_log(folder, test, carried_out(test, under), UNDER[under])


def carried_out(test, under):
    return execute(test, protocol(under) if under else None)


def agree(folder, test, under):
    """The verdicts by the log and by the rows, for each level, after they were compared."""
    execution = carried_out(test, under)
    table = logged(folder, test, under)
    judged = check_log(table, [level(name) for name in LEVELS])
    pairs = {}
    for name in LEVELS:
        by_log, by_rows = str(judged.levels[name]), str(judge_execution(execution, level(name)))
        assert by_log in ("unknown", by_rows), (under, name, judged.levels[name])
        pairs[name] = by_log, by_rows
    missed = [f for f in audit(table).findings if f.kind in ("reorder", "missed-conflict")]
    certain = [f for f in missed if f.certainty == "certain"]
    assert not certain or pairs["log-serializable"][1] == "forbidden"
    assert missed or pairs["log-serializable"][1] == "allowed"
    return pairs


@pytest.mark.slow
@given(litmus_tests(tracked=True, most=4), st.sampled_from(sorted(UNDER)))
def test_no_level_says_more_of_a_log_than_of_the_rows(tmp_path_factory, test, under):
    agree(tmp_path_factory.mktemp("log"), test, under)


UNTRACKED = {
    "lost-update-by-client": "the client read before it wrote",
    "set-from-subquery": "a subquery in SET",
    "set-from-subquery-merge": "a subquery in SET",
    "set-from-subquery-reader": "a subquery in SET",
}
"""What no log shows, but for the litmus tests that are tagged so."""


def in_one_log():
    for test in map(litmus, names()):
        if isinstance(test, Litmus) and len(test.tables) == 1 and not test.raw:
            (schema,) = test.tables.values()
            known = "untracked" in test.tags or test.name in UNTRACKED or DELTA.unfit(schema)
            if schema.exists and not known:
                yield test


@pytest.mark.slow
def test_no_level_says_more_of_the_logs_of_litmus_tests(tmp_path):
    said = Counter()

    def look(name, under):
        test, folder = litmus(name), tmp_path / name / under
        if (name, under) == ("no-data-change-appends", "delta-serializable"):
            found = audit(logged(folder, test, under)).findings
            assert {f.kind for f in found} == {"no-data-change"}
        else:
            said.update(by_log for by_log, _ in agree(folder, test, under).values())

    every = [(test.name, under) for test in in_one_log() for under in UNDER if under]
    assert len(check_cases(look, every)) >= 300
    assert said["unknown"] < said["allowed"]
    assert said["forbidden"] >= 10


@pytest.mark.parametrize("name", list(UNTRACKED))
def test_untracked_reads_are_not_in_the_log(tmp_path, name):
    with pytest.raises(AssertionError, match="allowed"):
        agree(tmp_path, litmus(name), "delta-serializable")


def test_logs_of_the_holes(tmp_path):
    reorder = agree(tmp_path / "a", litmus("reorder"), "delta-write-serializable")
    assert reorder["log-serializable"] == ("forbidden", "forbidden")
    assert reorder["write-serializable"] == ("allowed", "allowed")
    hole = agree(tmp_path / "b", litmus("hole-unpartitioned"), "delta-write-serializable")
    assert hole["write-serializable"] == ("unknown", "forbidden")


def in_order(test, first, second):
    """The same two transactions, both under way when ``first`` commits, and then ``second``."""
    steps = f"{first}.start {second}.start {first}.commit {second}.commit"
    return replace(test, schedule=Schedule.parse(steps, test.transactions))


@pytest.mark.slow
@given(
    litmus_tests(tracked=True, most=2),
    st.sampled_from(["delta-serializable", "delta-write-serializable"]),
)
def test_a_near_miss_is_what_the_other_order_ends_with(tmp_path_factory, test, under):
    """The log of one order, audited, beside the model's run of the other one."""
    a, b = test.transactions
    test = in_order(test, a, b)
    execution = carried_out(test, under)
    assume([one.version for one in execution.events] == [1, 2])
    table = write_log(tmp_path_factory.mktemp("near"), test, execution, UNDER[under])
    near = audit(table).overview.near
    other = run(in_order(test, b, a), protocol(under)).run.transactions[a]
    assert len(near) <= 1
    for one in near:
        told(f"{one.end}, {one.certainty}")
        assert (one.first, one.second) == (1, 2)
        if one.certainty == "certain":
            assert other.outcome == ("committed" if one.end == "reorder" else one.end)
    if other.aborted:
        assert near, other.outcome
        assert near[0].end != "reorder"
