"""The catalogue on real Delta: what is expected, what the model predicts, what is recorded and what
happens are one.

A run replays a sample (``catalogue_runs``), with ``--whole`` everything.
"""

from contextlib import closing

import pytest
from catalogue_runs import RecordedRuns

from isolitmus.checker.checks.log_check import check_log
from isolitmus.conformance import replay
from isolitmus.conformance.delta.engine import AT_ONCE
from isolitmus.conformance.engines import joinable_engine
from isolitmus.conformance.workers import run_together
from isolitmus.model.errors import EngineUnavailable
from isolitmus.specs import level
from isolitmus.specs.logs.delta_log import open_log


def missing(test):
    """Why the other writer that a test has is not there; None if it is, or there is none."""
    for client in test.clients.values():
        if client.protocol is not None:
            try:
                joinable_engine(client.protocol).ready()
            except EngineUnavailable as error:
                return str(error)
    return None


@pytest.fixture(params=["catalogue", "conditions"])
def known(request):
    """What is recorded of Delta."""
    if request.param == "conditions":
        return RecordedRuns.of_conditions()
    return RecordedRuns.of_catalogue("delta")


@pytest.fixture
def asked(known, seed, pytestconfig, record_property):
    """The cases about which Delta is asked."""
    cases, why = known.to_ask(seed, whole=pytestconfig.option.whole)
    record_property("note", why)
    return cases


@pytest.mark.spark
@pytest.mark.timeout(3600)
def test_delta_does_what_is_predicted_expected_and_recorded(
    session, known, asked, pytestconfig, tmp_path
):
    """In what the log says, too, read without Spark: see ``log_differences``."""
    absent = {case[0]: reason for case in asked if (reason := missing(known.tests[case]))}
    asked = [case for case in asked if case[0] not in absent]

    def logs(case):
        return tmp_path / "-".join(case).replace("/", "-")

    observed, found, read = {}, [], 0
    replays = run_together(lambda case: replay(known.tests[case], case[1], session, logs=logs(case)), asked, AT_ONCE)  # fmt: skip
    with closing(replays) as runs:
        for case, seen in zip(asked, runs, strict=True):
            observed[case] = seen
            found += known.compare(case, seen)
            tables = known.tests[case].tables
            folders = [folder for table in tables if (folder := logs(case) / table).exists()]
            if len(tables) == 1 and folders:  # versions of several tables are not those of one log
                read += 1
                found += log_differences(known, case, seen, folders[0])
    if pytestconfig.option.record_runs:
        known.record(observed)
    assert found == []
    assert read > sum(len(known.tests[case].tables) == 1 for case in asked) // 2
    if absent:
        pytest.skip("; ".join(sorted(set(absent.values()))))


JUDGED = ("log-serializable", "write-serializable", "snapshot-isolation")
UNTRACKED = (
    "lost-update-by-client", "set-from-subquery", "set-from-subquery-merge",
    "set-from-subquery-reader",
)  # fmt: skip
"""Reads by the client, and of subqueries in SET: see tests/checker/delta/test_log_model.py."""
SAID = ("read_version", "blind", "isolation_level", "operation")


def log_differences(known, case, seen, folder):
    """Return where the log that a replay leaves is not as the model says, a sentence each.

    What each commit says of itself is compared; and no level allows or forbids by the log what it
    does not by the rows, unless reads were untracked, as the litmus test says.
    """
    name, under = case
    test, judged = known.tests[case], known.predict(*case)
    log, found = open_log(folder), []
    for who, transaction in judged.run.transactions.items():
        if transaction.outcome != "committed" or transaction.version is None:
            continue
        commit = log.commit(seen.base + transaction.version)
        said = (commit.read_version, commit.blind, commit.level, commit.operation)
        wanted = [seen.base + transaction.read_version]
        wanted += [getattr(transaction, field) for field in SAID[1:]]
        if len(transaction.commits) == 1 and commit.read_version is not None:
            found += [
                f"{who}'s commit says {field} {theirs}, predicted {ours}"
                for field, theirs, ours in zip(SAID, said, wanted, strict=True)
                if field not in seen.transactions[who].unsaid and theirs != ours
            ]
    if "untracked" not in test.tags and name not in UNTRACKED:
        by_log = check_log(folder, [level(each) for each in JUDGED]).levels
        by_rows = {each: str(judged.levels[each]) for each in JUDGED}
        found += [
            f"{each} by the log: {by_log[each]}, by the rows: {by_rows[each]}"
            for each in JUDGED
            if by_rows[each] != "unknown" and str(by_log[each]) not in ("unknown", by_rows[each])
        ]
    return [f"{name} under {under}: {each}" for each in found]
