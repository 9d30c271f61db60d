"""Every litmus test of the catalogue on real Delta: what is expected, what the model predicts, and
what happens are one."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from isolitmus.checker import run
from isolitmus.checker.auditing.judging import check_log
from isolitmus.checker.runs import Judged
from isolitmus.conformance import replay
from isolitmus.conformance.agreement import unlike
from isolitmus.conformance.delta import AT_ONCE
from isolitmus.conformance.engines import joined
from isolitmus.conformance.tables import PROTOCOLS
from isolitmus.model.errors import EngineUnavailable
from isolitmus.model.litmus import Litmus
from isolitmus.specs import level, litmus, protocol
from isolitmus.specs.catalogue import litmus_names
from isolitmus.specs.delta_log import open_log


def cases():
    """Each test under each protocol that Delta has; ``wide`` where another one is to give the same."""
    for test in map(litmus, litmus_names()):
        seen = []
        for under in PROTOCOLS if isinstance(test, Litmus) else ():
            expected = test.expect.get(under)
            if expected is not None:
                marks = [pytest.mark.wide] if expected in seen else []
                seen.append(expected)
                yield pytest.param(test.name, under, marks=marks)


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """The folder of the logs that a replay leaves."""
    folder = tmp_path_factory.mktemp("logs")
    return lambda name, under: folder / f"{name.replace('/', '-')}-{under}"


@pytest.fixture(scope="module")
def replays(session, request, logs):
    """The replays of the selected cases, several at a time on tables of their own: each waits for
    Spark more than it keeps a processor busy."""
    selected = [
        (item.callspec.params["name"], item.callspec.params["under"])
        for item in request.session.items
        if item.path == request.path
    ]

    def carried(name, under):
        """Without the other writer that a test has, the test is skipped."""
        for client in getattr(litmus(name), "clients", {}).values():
            if client.protocol is not None:
                try:
                    joined(client.protocol).ready()
                except EngineUnavailable as error:
                    pytest.skip(str(error))
        return replay(litmus(name), under, session, logs=logs(name, under))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {case: pool.submit(carried, *case) for case in dict.fromkeys(selected)}
        pool.shutdown(cancel_futures=True)


@pytest.mark.spark
@pytest.mark.parametrize(("name", "under"), list(cases()))
def test_predicted_equals_observed_equals_expected(replays, name, under):
    test = litmus(name)
    observed = Judged(test, replays[name, under].result())
    predicted = run(test, protocol(under))
    assert unlike(predicted, observed) == ()
    assert observed.differences == ()


JUDGED = ("log-serializable", "write-serializable", "snapshot-isolation")
UNTRACKED = ("lost-update-by-client", "set-from-subquery", "set-from-subquery-merge")
"""Reads by the client, and of subqueries in SET: see tests/checker/test_log_model.py."""
SAID = ("read_version", "blind", "isolation_level", "operation")


@pytest.mark.spark
@pytest.mark.parametrize(("name", "under"), list(cases()))
def test_what_the_log_says_is_what_was_scheduled(replays, logs, name, under):
    """The log that a replay leaves, read without Spark, against the model: what each commit says of
    itself; and no level allows or forbids by the log what it does not by the rows, unless reads were
    untracked, as the litmus test says.
    """
    test = litmus(name)
    seen = replays[name, under].result()
    if len(test.tables) != 1:
        pytest.skip("the versions of several tables are not those of one log")
    (table,) = test.tables
    folder = logs(name, under) / table
    if not folder.exists():
        pytest.skip("no table was made")
    log = open_log(folder)
    predicted = run(test, protocol(under))
    for who, transaction in predicted.run.transactions.items():
        if transaction.outcome != "committed" or transaction.version is None:
            continue
        commit = log.commit(seen.base + transaction.version)
        said = (commit.read_version, commit.blind, commit.level, commit.operation)
        wanted = [seen.base + transaction.read_version]
        wanted += [getattr(transaction, field) for field in SAID[1:]]
        if len(transaction.commits) == 1 and commit.read_version is not None:
            for field, theirs, ours in zip(SAID, said, wanted, strict=True):
                assert field in seen.transactions[who].unsaid or theirs == ours, field
    by_log = check_log(folder, [level(judged) for judged in JUDGED]).levels
    tracked = "untracked" not in test.tags and name not in UNTRACKED
    for judged in JUDGED if tracked else ():
        by_rows = str(predicted.levels[judged])
        assert by_rows == "unknown" or str(by_log[judged]) in ("unknown", by_rows), judged
