"""What isolitmus says of every litmus test that ships, word for word; ISOLITMUS_UPDATE=1 writes it anew."""

import os
from pathlib import Path

import pytest

from isolitmus.checker.checks import check
from isolitmus.checker.running.execute import execute
from isolitmus.checker.running.refusals import refusals
from isolitmus.checker.runs import run
from isolitmus.checker.telling.words import because, refusal_words, serial_words, verdict_words
from isolitmus.model.edge import Edge
from isolitmus.model.litmus import Litmus
from isolitmus.model.verdict import Forbidden, Needs, Unknown, Violation
from isolitmus.specs import cat, level, litmus, protocol
from isolitmus.specs.catalogue import levels, litmus_names, protocols

GOLDEN = Path(__file__).parents[1] / "golden" / "words"


def verdicts(test):
    """The verdict of every level that the test's history has all names for, and what is said beside."""
    checked = check(test, [level(name) for name in levels()])
    told = {n: v for n, v in checked.levels.items() if not isinstance(v, Needs)}
    return told, checked.explained


def runs(test):
    """The judged run of every protocol that the test expects something of, and its refusals."""
    for name in protocols():
        if isinstance(test, Litmus) and name in test.expect:
            spec = protocol(name)
            yield spec, run(test, spec), refusals(execute(test, spec), spec)


def words_of(test):
    """Verdicts on the schedule as it stands, then what happens to it under each protocol."""
    yield test.title
    yield ""
    told, beside = verdicts(test)
    for name, verdict in told.items():
        yield from verdict_words(verdict, level(name), beside.get(name))
    for spec, judged, refused in runs(test):
        yield ""
        yield spec.title
        for name, transaction in judged.run.transactions.items():
            version = "" if transaction.version is None else f", version {transaction.version}"
            yield f"  {name}: {transaction.outcome}{version}"
            if name in refused:
                yield from (f"    {line}" for line in refusal_words(refused[name]))
        yield f"  {serial_words(judged.serial.orders, judged.serial.unexplained)}"


RAW = (
    "application-looked-up",
    "delete-whole-table",
    "domain-same",
    "large-loser",
    "metadata-property",
)
"""Of the raw transactions one for each kind of reason: the others say the same."""
SHOWN = [name for name in litmus_names() if name in RAW or not getattr(litmus(name), "raw", False)]


@pytest.mark.slow
@pytest.mark.parametrize("name", SHOWN)
def test_the_words_are_those_of_the_golden(name):
    path = GOLDEN / f"{name}.txt"
    text = "\n".join(words_of(litmus(name))) + "\n"
    if os.environ.get("ISOLITMUS_UPDATE"):
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


def test_every_golden_is_of_a_litmus_test():
    assert sorted(path.stem for path in GOLDEN.iterdir()) == sorted(SHOWN)


@pytest.mark.slow
@pytest.mark.parametrize("name", litmus_names())
def test_an_explanation_is_a_chain_of_because_that_ends_with_what_is_impossible(name):
    test = litmus(name)
    chains = [
        (violation, because(violation))
        for verdict in verdicts(test)[0].values()
        if isinstance(verdict, Forbidden)
        for violation in verdict.violations
    ]
    for _, _, refused in runs(test):
        chains += [(violation, refusal_words(violation)) for violation in refused.values()]
    for violation, (*sentences, conclusion) in chains:
        edges = violation.cycle
        assert len(sentences) == len(edges)
        if violation.kind == "flaw":  # of one read, and no chain
            assert f" of {edges[0].target} " in sentences[0]
            assert conclusion == "so no order of the transactions explains it"
            continue
        for edge, sentence in zip(edges, sentences, strict=True):
            first, reason = sentence.split(", because ", 1)
            assert first.split()[0] == edge.source
            assert first.split()[-1] == edge.target
            assert edge.source in reason
            assert edge.target in reason
        assert conclusion.startswith("so ")
        assert {edges[0].source, edges[-1].target} & set(conclusion.split())


@pytest.mark.slow
def test_every_abort_on_a_conflict_is_explained():
    explained = 0
    for name in litmus_names():
        for _, judged, refused in runs(litmus(name)):
            aborted = {
                n: t.outcome
                for n, t in judged.run.transactions.items()
                if t.outcome not in ("committed", "no-op") and not t.outcome.startswith("error:")
            }
            assert {n: violation.axiom for n, violation in refused.items()} == aborted
            explained += len(aborted)
    assert explained


def test_a_chain_that_leads_back_is_a_cycle_and_one_that_must_not_be_is_refused():
    loop = (Edge("r", "w", "rw", "r missed w"), Edge("w", "r", "wr", "r read w"))
    assert because(Violation("alone", "irreflexive", loop))[-1] == (
        "so r would have to come before itself: no order has that"
    )
    alone = (Edge("a", "a", "[Blind]", ""),)
    assert because(Violation("none", "empty", alone)) == [
        "a leads to a, because that is in [Blind]",
        "so a cannot be there: none refuses that",
    ]


def test_the_sets_of_an_empty_axiom_are_said():
    spec = cat.read('"Mine" empty [~Blind] ; (unseen & adds-meets-reads) as Refused', "mine")
    test = litmus("two-updates-one-row")
    (violation,) = check(test, [spec]).levels["mine"].violations
    assert violation.cycle[0].why.endswith("; b is no blind append")


def test_what_is_unknown_says_why():
    assert verdict_words(Unknown("time was up"), level("serializable")) == [
        "Serializable: unknown, because time was up."
    ]
