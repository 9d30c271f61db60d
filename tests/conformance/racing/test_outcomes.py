"""What an ending says follows from what its transactions read and made, and from nothing else."""

import pytest

from isolitmus.conformance.delta.parking import CommitAttempt, version_read_by, versions_made_by
from isolitmus.conformance.racing.races import RaceOutcome, concurrent_commits
from isolitmus.specs.logs.delta_log import commits_since

NO_COMMIT = ("no-op", None)
FAILED = ("ConcurrentAppendException", ValueError())


def attempt(read, version=None, failed_at=None, phase="commit"):
    return CommitAttempt("id", read, phase, version, failed_at)


def ended(*attempts, outcome="committed", error=None):
    tried = tuple(a for a in attempts if a.tried)
    return RaceOutcome("it", outcome, None, version_read_by(attempts), tried, (), error)


COMMITTED = attempt(1, 2)
SAID = {
    "began no transaction on the table": ((), *NO_COMMIT),
    "ended with error:ValueError and began no transaction on the table": (
        (),
        "error:ValueError",
        ValueError(),
    ),
    "read version 1 and committed nothing": ((attempt(1, phase="prepare"),), *NO_COMMIT),
    "read version 1 and ended with error:ValueError": (
        (attempt(1, phase="init"),),
        "error:ValueError",
        ValueError(),
    ),
    "read version 1 and ended with ConcurrentAppendException": (
        (attempt(1, failed_at=2),),
        *FAILED,
    ),
    "read no version and committed as version 0, then read version 0 and committed as version 1": (
        (attempt(-1, 0), attempt(0, 1)),
        "committed",
        None,
    ),
    "read version 1 and failed to commit": ((attempt(1, failed_at=2),), *NO_COMMIT),
    "read version 1 and committed as version 2": (
        (attempt(0, phase="prepare"), COMMITTED),
        "committed",
        None,
    ),
    "read version 1 and committed as version 2, then ended with error:ValueError": (
        (COMMITTED,),
        "error:ValueError",
        ValueError(),
    ),
    "read version 1 and committed as version 2, then read version 4 and committed as version 5": (
        (COMMITTED, attempt(4, 5)),
        "committed",
        None,
    ),
    "read version 1, retried on version 2 and committed as version 3": (
        (attempt(1, failed_at=2), attempt(2, 3)),
        "committed",
        None,
    ),
    "read version 1, and read version 1 and committed as version 2": (
        (attempt(1, failed_at=2), COMMITTED),
        "committed",
        None,
    ),
    "read version 1 and committed as version 3, and read version 1 and ended with ConcurrentAppendException": (
        (attempt(1, 3), attempt(1, failed_at=2)),
        *FAILED,
    ),
}


@pytest.mark.parametrize("said", SAID)
def test_what_an_ending_says(said):
    attempts, outcome, error = SAID[said]
    assert str(ended(*attempts, outcome=outcome, error=error)) == f"it {said}"


def test_an_attempt_that_was_not_a_second_one():
    """Two threads: the second had begun when the first failed."""
    assert ended(attempt(1, failed_at=2), attempt(1, 3)).again is None
    assert ended(attempt(1, failed_at=2), attempt(2, 3)).again == 2


@pytest.mark.parametrize(
    ("attempts", "overtook"),
    [
        ((attempt(1, 2),), []),
        ((attempt(1, 4),), [2, 3]),
        ((attempt(1, failed_at=3),), [2, 3]),  # but not version 4, which came after its failure
        ((attempt(1, 2), attempt(2, 4)), [3]),
        ((attempt(1, 2), attempt(3, 4)), []),  # it has seen version 3
        ((attempt(3, phase="prepare"), attempt(1, phase="init")), []),
        ((attempt(-1, 1),), [0]),
    ],
)
def test_who_overtook_committed_between_what_was_read_and_what_was_made(delta, attempts, overtook):
    table = delta.table(*(delta.append(k, f"f{k}") for k in range(4)))
    found = concurrent_commits(commits_since(table), attempts)
    assert [commit.version for commit in found] == overtook


def test_an_own_commit_that_overtook_is_called_its_own(delta):
    _, commit = commits_since(delta.table(delta.append(0, "f")))
    two = (attempt(0, 1), attempt(0, 2))
    assert versions_made_by(two) == (1, 2)
    said = str(RaceOutcome("it", "committed", None, 0, two, (commit,)))
    assert said.endswith(
        "concurrent commit (its own): version 1 (WRITE: 1 file added in part=0, a blind append)"
    )


LONG = (
    "[DELTA_CONCURRENT_APPEND] Transaction conflict detected.\nPlease retry. Conflicting commit:"
    ' {"version": 2}\nRefer to\n\nJVM stacktrace:\nat io.delta'
)


def test_an_ending_is_a_line_and_as_a_text_it_has_what_was_raised():
    raised = ended(
        attempt(1, failed_at=2), outcome="ConcurrentAppendException", error=ValueError(LONG)
    )
    assert repr(raised) == "it read version 1 and ended with ConcurrentAppendException"
    assert (
        raised.message == "[DELTA_CONCURRENT_APPEND] Transaction conflict detected. Please retry."
    )
    assert str(raised).splitlines() == [repr(raised), f"  {raised.message}"]
    assert raised.printed == str(raised)


@pytest.mark.parametrize(
    ("outcome", "committed", "conflict"),
    [
        ("committed", True, False),
        ("no-op", False, False),
        ("error:ValueError", False, False),
        ("ConcurrentAppendException", False, True),
    ],
)
def test_only_a_conflict_is_raised_as_one(outcome, committed, conflict):
    error = None if outcome in ("committed", "no-op") else ValueError("so")
    ending = ended(COMMITTED, outcome=outcome, error=error)
    assert (ending.committed, ending.conflict) == (committed, conflict)
    if conflict:
        with pytest.raises(ValueError, match="so"):
            ending.raise_if_conflict()
    else:
        ending.raise_if_conflict()
