"""Anomalies by name: the vocabulary covers what verdicts say and what litmus tests are tagged with."""

import pytest

from isolitmus.checker.execution.run_result import run
from isolitmus.checker.judge import anomalies as judge
from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.model.anomaly import plain_name
from isolitmus.model.errors import IsolitmusError, LitmusError
from isolitmus.model.verdict import Allowed, Forbidden
from isolitmus.specs import level, litmus, protocol
from isolitmus.specs.files.anomaly_file import (
    anomalies,
    anomalies_called,
    anomaly,
    read_anomalies,
    tag_meanings,
)
from isolitmus.specs.files.catalogue import litmus_names
from isolitmus.specs.files.catalogue_titles import litmus_by_tag

ONE = """\
[lost]
title = "Lost"
means = "m"
source = "s"
no_run = "why"
"""


def test_every_tag_is_an_anomaly_or_a_topic_and_every_topic_is_a_tag():
    tags = set(litmus_by_tag())
    assert tags <= tag_meanings().keys()
    assert tag_meanings().keys() - anomalies().keys() <= tags


def test_every_name_that_a_verdict_gives_belongs_to_an_anomaly():
    given = {
        *judge.FLAWS.values(),
        *judge.GUARANTEES.values(),
        *judge.MISSES,
        *(name for _, name in judge.WITHOUT_A_MISS),
        *judge.IN_TIME,
        judge.DISAGREEMENT,
        "long fork",
        *(f"write skew ({of})" for of in ("G2", "G2-item")),
        *(f"anti-dependency cycle ({of})" for of in ("G2", "G2-item", "G-nonadjacent")),
    }
    assert given == {name for one in anomalies().values() for name in one.cycles}


@pytest.mark.parametrize(
    "name", [name for name, one in anomalies().items() if one.history and one.absent]
)
def test_the_smallest_history_shows_the_anomaly(name):
    """The axiom that forbids it does not allow the history."""
    one = anomalies()[name]
    history = litmus(one.history).history
    assert not isinstance(check_history(history, level(f"without-{name}")), Allowed)


@pytest.mark.slow
@pytest.mark.parametrize("under", ["delta-serializable", "delta-write-serializable"])
def test_a_run_that_is_not_serializable_has_a_name(under):
    named = 0
    for name in litmus_names():
        test = litmus(name)
        if under not in getattr(test, "expect", {}) or not hasattr(test, "schedule"):
            continue
        try:
            judged = run(test, protocol(under))
        except IsolitmusError:
            continue
        forbidden = isinstance(judged.levels.get("serializable"), Forbidden)
        assert bool(judged.anomalies) == forbidden, name
        named += forbidden
    assert named >= 10


def test_names_without_case_spaces_and_hyphens():
    for name, one in anomalies().items():
        for word in (name, one.title, one.title.upper(), *one.synonyms):
            assert one in anomalies_called(word)
    assert anomaly("g-single").name == "read-skew"
    assert plain_name("a" * 10_000 + "(" * 100_000) == "a" * 10_000


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[lost]\ntitle = 1", "lost.title is 1; expected a string"),
        (ONE.replace("no_run", "norun"), "has no key 'norun'; did you mean 'no_run'?"),
        (ONE.replace('no_run = "why"', ""), "lost needs a litmus test"),
        (ONE + 'scans = ["skew-of-accounts"]', "not both"),
        (ONE + 'history = "why"', "lost.history names no litmus test: 'why'"),
        (ONE + '[topics]\nlost = "x"', "'lost' is a topic and an anomaly"),
        (
            '[[rows]]\ntitle = "r"\nprotocol = "delta-serialisable"\ntransaction = "scans"',
            "unknown protocol 'delta-serialisable'; did you mean 'delta-serializable'?",
        ),
        (
            '[[rows]]\ntitle = "r"\nprotocol = "delta-serializable"\ntransaction = "scan"',
            "expected statements, clients, scans",
        ),
        (
            (
                '[[rows]]\ntitle = "r"\nprotocol = "delta-serializable"\n'
                'transaction = "scans"\nengine = "delta"'
            ),
            "needs 'engine' and 'release', or 'text'",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text, problem):
    with pytest.raises(LitmusError) as raised:
        read_anomalies(text, "mine.toml")
    assert problem in str(raised.value)
    assert str(raised.value).startswith("mine.toml:")
