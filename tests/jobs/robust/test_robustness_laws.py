"""Safe jobs are those of which an exhaustive search finds no broken promise: random jobs with few
parameters (docs/semantics.md, Theorem 12).

What may become of such jobs is a scope: every statement with every value of its parameters, every
order of two and of three runs, every version that each may have read, on a few tables.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_jobs import APPENDS, OTHERS, PROMISES, STATEMENTS, SmallJobs

from isolitmus.jobs.robust.robustness import decide_all
from isolitmus.specs import protocol

READ = ("update-serializable", "log-serializable")
LEVELS = ("delta-serializable", "delta-write-serializable")


@st.composite
def small_jobs(draw) -> SmallJobs:
    """One to three jobs, mostly with a blind append among them."""
    names = draw(st.lists(st.sampled_from(sorted(OTHERS)), min_size=1, max_size=2, unique=True))
    append = draw(st.sampled_from((*sorted(APPENDS), None)))
    jobs = {}
    for name in names + ([append] if append else []):
        used = [p for p in "kp" if f":{p}" in STATEMENTS[name]]
        jobs[name] = {p: draw(st.sampled_from(((0, 1), (0,), (1,)))) for p in used}
    return SmallJobs(draw(st.booleans()), jobs)


def assert_agree(small: SmallJobs) -> None:
    """Robust says safe just where the search finds nothing; what it cannot decide it does not
    say.
    """
    for under in LEVELS:
        broken = small.broken(under)
        for found in decide_all(small.workload, (protocol(under),), PROMISES):
            if found.word == "unknown":
                assert found.why
            elif found.word == "safe":
                assert found.promise not in broken, small
            elif found.promise not in broken:  # it takes more runs
                runs = len(found.worst.danger.members)
                assert runs > 3
                assert found.promise in small.broken(under, runs), small


def outcomes(example):
    """How the transactions of a counterexample end."""
    (expected,) = example.test.expect.values()
    return expected.outcome.values()


def assert_agree_on_readers(small: SmallJobs) -> None:
    """The same of what each reader sees alone, and of what all see: one of the runs reads the whole
    table.
    """
    for under in LEVELS:
        for found in decide_all(small.workload, (protocol(under),), READ):
            runs = (2, 3, 4)
            if found.word == "unknown":
                assert found.why
            elif found.word == "safe":
                assert not small.seen_to_break(under, found.promise, *runs), small
            elif all(outcome != ("no-op",) for outcome in outcomes(found.worst)):
                members = len(found.worst.danger.members)
                assert small.seen_to_break(under, found.promise, *range(2, members + 1)), small


KNOWN = (
    # who finds its row there writes nothing, and is built upon what it found all the same
    SmallJobs(partitioned=True, jobs={"once": {"k": (1,), "p": (0,)}, "twice": {"k": (1,)}}),
    SmallJobs(partitioned=True, jobs={"new": {"k": (1,)}, "fixed": {}}),
    SmallJobs(partitioned=False, jobs={"cleanup": {"p": (0,)}, "total": {"p": (0,)}, "fixed": {}}),
)


@pytest.mark.slow
@pytest.mark.parametrize("small", KNOWN, ids=lambda small: "-".join(small.jobs))
def test_what_a_search_finds_is_not_safe(small):
    assert "write-serializable" in small.broken("delta-write-serializable")
    assert_agree(small)


@pytest.mark.slow
@settings(max_examples=settings.default.max_examples // 4)
@given(small=small_jobs())
def test_safe_is_what_a_search_says(small):
    assert_agree(small)


@pytest.mark.slow
@pytest.mark.wide
@settings(max_examples=settings.default.max_examples // 8)
@given(small=small_jobs())
def test_safe_is_what_a_search_says_of_who_reads(small):
    assert_agree_on_readers(small)
