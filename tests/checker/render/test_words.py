"""What isolitmus says of every litmus test that ships, word for word; ISOLITMUS_UPDATE=1 writes it
anew.
"""

import os
from functools import cache
from pathlib import Path

import pytest
from case_checks import check_cases
from catalogue_runs import predicted

from isolitmus.checker.checks.history_check import check
from isolitmus.checker.execution.commit_loop import abort_violations, execute
from isolitmus.checker.render.verdicts import because, refusal_words, serial_words, verdict_words
from isolitmus.model.reason import Edge
from isolitmus.model.verdict import Forbidden, Needs, Unknown, Violation
from isolitmus.specs import level, litmus, protocol
from isolitmus.specs.files.catalogue import litmus_names
from isolitmus.specs.files.spec_catalogue import levels, protocols
from isolitmus.specs.files.spec_reader import read_spec

GOLDEN = Path(__file__).parents[2] / "golden" / "words"


@cache
def checked(name):
    """Return what every level says of the history of a litmus test."""
    return check(litmus(name), [level(one) for one in levels()])


def verdicts(name):
    """Return the verdict of every level that the history of a litmus test has all names for, and
    what is said beside.
    """
    found = checked(name)
    told = {n: v for n, v in found.levels.items() if not isinstance(v, Needs)}
    return told, found.explained


@cache
def runs(name):
    """Return the judged run of every protocol that a litmus test expects something of, and its
    refusals.
    """
    test = litmus(name)
    asked = [protocol(one) for one in protocols() if one in getattr(test, "expect", ())]
    return [
        (one, predicted(name, one.name), abort_violations(execute(test, one), one)) for one in asked
    ]


def words_of(test):
    """Verdicts on the schedule as it stands, then what happens to it under each protocol."""
    yield test.title
    yield ""
    told, beside = verdicts(test.name)
    for name, verdict in told.items():
        yield from verdict_words(verdict, level(name), beside.get(name))
    for spec, judged, refused in runs(test.name):
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


def shown():
    """Return the names of the litmus tests whose words have a golden file."""
    return [n for n in litmus_names() if n in RAW or not getattr(litmus(n), "raw", False)]


@pytest.mark.slow
def test_the_words_are_those_of_the_golden():
    def compare(name):
        path = GOLDEN / f"{name}.txt"
        text = "\n".join(words_of(litmus(name))) + "\n"
        if os.environ.get("ISOLITMUS_UPDATE"):
            path.write_text(text, "utf-8")
        assert text == path.read_text("utf-8")

    assert len(check_cases(compare, shown())) > 240


def test_every_golden_is_of_a_litmus_test():
    assert sorted(path.stem for path in GOLDEN.iterdir()) == sorted(shown())


def look_at_chains(name):
    """Check the explanations of a litmus test, and return how many it has."""
    chains = [
        (violation, because(violation), False)
        for verdict in verdicts(name)[0].values()
        if isinstance(verdict, Forbidden)
        for violation in verdict.violations
    ]
    for _, _, refused in runs(name):
        chains += [(violation, refusal_words(violation), True) for violation in refused.values()]
    for violation, (*sentences, conclusion), refusal in chains:
        edges = violation.cycle
        assert len(sentences) == len(edges)
        if violation.kind == "flaw":  # of one read, and no chain
            assert f" of {edges[0].target} " in sentences[0]
            assert conclusion == "no order of the transactions explains this read"
            continue
        for edge, sentence in zip(edges, sentences, strict=True):
            first, reason = sentence.split(", because ", 1)
            ends = (first.split()[0], first.split()[-1])
            assert ends == ((edge.target, edge.source) if refusal else (edge.source, edge.target))
            assert edge.source in reason
            assert edge.target in reason
        if refusal:
            name = edges[-1].target
            undefined = f"the outcome of {name} is undefined ("  # an axiom that is silent
            assert conclusion.startswith((f"{name} aborts with ", undefined))
        elif violation.kind == "empty":
            assert conclusion.endswith(f" from {edges[0].source} to {edges[-1].target}")
        else:
            cycle = " → ".join([*(edge.source for edge in edges), edges[0].source])
            assert conclusion.startswith(f"cycle {cycle}: ")
    return len(chains)


@pytest.mark.slow
def test_an_explanation_is_a_chain_of_because_that_ends_with_what_is_impossible():
    chains = check_cases(look_at_chains, litmus_names())
    assert sum(map(bool, chains)) >= 200
    assert sum(chains) > 800


@pytest.mark.slow
def test_no_level_holds_where_a_weaker_one_fails():
    """Who stands where is worked out, which refuses verdicts that contradict each other."""

    def stand(name):
        assert checked(name).standing

    assert len(check_cases(stand, litmus_names())) >= 300


@pytest.mark.slow
def test_every_abort_on_a_conflict_is_explained():
    explained = 0
    for name in litmus_names():
        for _, judged, refused in runs(name):
            aborted = {
                n: t.outcome
                for n, t in judged.run.transactions.items()
                if t.outcome not in ("committed", "no-op") and not t.outcome.startswith("error:")
            }
            for n in list(aborted):  # the statement ends with the error of an earlier commit
                commits = judged.litmus.commits_of(n)
                if any(one in aborted for one in commits[: commits.index(n)]):
                    del aborted[n]
            named = {
                n: violation.kind if aborted.get(n) == violation.kind else violation.axiom
                for n, violation in refused.items()
            }
            assert named == aborted
            explained += len(aborted)
    assert explained


def test_a_chain_that_leads_back_is_a_cycle_and_one_that_must_not_be_is_refused():
    loop = (Edge("r", "w", "rw", "r missed w"), Edge("w", "r", "wr", "r read w"))
    assert because(Violation("alone", "irreflexive", loop))[-1] == (
        "cycle r → w → r: no serial order satisfies these dependencies"
    )
    alone = (Edge("a", "a", "[Blind]", ""),)
    assert because(Violation("none", "empty", alone)) == [
        "a leads to a, because that is in [Blind]",
        "none forbids an edge from a to a",
    ]


def test_the_sets_of_an_empty_axiom_are_said():
    spec = read_spec('"Mine" empty [~Blind] ; (unseen & adds-meets-reads) as Refused', "mine")
    test = litmus("two-updates-one-row")
    (violation,) = check(test, [spec]).levels["mine"].violations
    assert violation.cycle[0].why.endswith("; b is not a blind append")


def test_what_is_unknown_says_why():
    assert verdict_words(Unknown("time was up"), level("serializable")) == [
        "Serializable: unknown, because time was up."
    ]
