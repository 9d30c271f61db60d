"""Proofs for any number of transactions: each holds, and fails without any of its premises, or
without any axiom that it reads in the text of the protocol.
"""

from dataclasses import replace

import pytest

from isolitmus.checker.execution.commit_loop import execute, judge_execution
from isolitmus.checker.prove.arguments import Question
from isolitmus.checker.prove.proof import prove
from isolitmus.checker.search.unbounded_separation import separate_unbounded
from isolitmus.model.budget import Budget
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.spec import Binary, Bracket, Name, Unary
from isolitmus.specs import spec
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.files.spec_reader import read_spec

PROOFS = {
    "theorem-5": Question(spec("delta-serializable"), spec("log-serializable")),
    "theorem-4": Question(spec("write-serializable"), spec("snapshot-isolation")),
    "theorem-7": Question(spec("delta-write-serializable"), spec("write-serializable"), 2),
    "corollary-6b": Question(spec("delta-write-serializable-repaired"), spec("write-serializable")),
    "theorem-2": Question(spec("serializable"), spec("log-serializable"), every_version_read=True),
    "delta-snapshot": Question(spec("delta-snapshot-isolation"), spec("snapshot-isolation")),
    "case-1": Question(spec("case-1-values-serializable"), spec("log-serializable")),
    "case-2-repaired": Question(spec("case-2-repaired-serializable"), spec("log-serializable")),
    "case-4": Question(spec("case-4-serializable"), spec("log-serializable")),
    "case-4-repaired": Question(spec("case-4-repaired-serializable"), spec("log-serializable")),
}
PREMISE_NAMES = {
    "theorem-5": (
        "snapshot put-if-absent committed definitions read-files read-predicates files rows"
        " compactions backfills"
    ),
    "theorem-4": "snapshot sessions committed read-before-written no-restores born-once",
    "theorem-7": (
        "snapshot put-if-absent committed definitions metadata read-files read-predicates"
        " files rows read-before-written born-once blind compactions backfills"
    ),
    "corollary-6b": (
        "snapshot put-if-absent committed definitions metadata read-files read-predicates"
        " files rows read-before-written born-once blind compactions backfills"
    ),
    "theorem-2": "gapless something-written readers",
    "delta-snapshot": (
        "snapshot sessions committed definitions read-files files read-before-written born-once"
    ),
    "case-1": (
        "snapshot put-if-absent committed definitions read-files files rows compactions backfills"
        " written-rows"
    ),
    "case-2-repaired": (
        "snapshot put-if-absent committed definitions read-files rows compactions backfills"
        " written-rows removed-rows vectors merged-files"
    ),
    "case-4": (
        "snapshot put-if-absent committed definitions read-files read-predicates files rows"
        " no-restores compactions backfills moved-files"
    ),
    "case-4-repaired": (
        "snapshot put-if-absent committed definitions read-files read-predicates files rows"
        " compactions backfills moved-files"
    ),
}
TWINS = [(name, premise) for name, used in PREMISE_NAMES.items() for premise in used.split()]


def each_in_one():
    """Each premise in one of the theorems that use it, by turns; in the others it is ``wide``."""
    for turn, premise in enumerate(dict.fromkeys(premise for _, premise in TWINS)):
        names = [name for name, other in TWINS if other == premise]
        for k, name in enumerate(names):
            marks = [pytest.mark.wide] if k != turn % len(names) else []
            yield pytest.param(name, premise, marks=marks)


@pytest.mark.slow
def test_a_proof_says_that_it_leaves_silent_histories_out():
    """Otherwise a text that says nothing about anything would be as good as a proved one."""
    text = '"Mine" format delta empty protocol-clashes as clash silent unseen as all'
    answer = separate_unbounded(read_spec(text, "mine"), "log-serializable")
    assert answer.proof.holds
    (said,) = (one for one in answer.assumptions if "silent" in one)
    assert said.startswith("histories on which mine is silent (all) are left out: it neither")
    told = separate_unbounded("delta-serializable", "log-serializable").assumptions
    assert not any("silent" in one for one in told)


@pytest.mark.slow
def test_a_proof_about_reads_supposes_one_version_even_if_the_solver_did_not_use_it():
    """Otherwise a client that reads in a query of its own refutes the proof."""
    no_lost_update = read_spec(
        '"No lost update"\nwith ww from versions\nirreflexive rw ; ww as no-lost-update', "mine"
    )
    answer = separate_unbounded("delta-serializable", no_lost_update)
    assert answer.proved
    assert "each of which reads one version" in answer.bound
    assert "lost-update-by-client" in [test.litmus for test in answer.outside if test.fails]


def test_a_format_that_is_not_searched_is_refused():
    with pytest.raises(IsolitmusError, match="delta-rs-serializable is of format delta-rs"):
        separate_unbounded("delta-rs-serializable", "read-committed")


@pytest.mark.slow
@pytest.mark.parametrize("name", PROOFS)
def test_a_theorem_is_proved_from_its_premises(name):
    proof = prove(PROOFS[name])
    assert proof.holds
    assert " ".join(p.name for p in proof.premises) == PREMISE_NAMES[name]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "premise"), [*each_in_one()])
def test_a_proof_fails_without_any_of_its_premises(name, premise):
    proof = prove(PROOFS[name], without=[premise])
    assert not proof.holds
    goal = proof.failed[-1]
    assert goal.outcome in ("fails", "not derived")
    assert bool(goal.rests_on) == (goal.outcome == "not derived")


def mutilated(protocol, axiom):
    """The protocol without the axiom, by its name."""
    return replace(protocol, axioms=tuple(a for a in protocol.axioms if a.name != axiom))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["theorem-5", "theorem-7"])
@pytest.mark.parametrize(
    ("axiom", "needed"),
    [
        ("ConcurrentAppendException", True),
        ("ConcurrentDeleteReadException", True),
        # A dynamic overwrite does not record the files that it removes as read.
        ("ConcurrentDeleteDeleteException", True),
        ("MetadataChangedException", True),
        ("ConcurrentWriteException", True),
        ("ProtocolChangedException", False),
        ("ConcurrentTransactionException", False),
    ],
)
def test_a_proof_reads_the_text_of_the_protocol(name, axiom, needed):
    question = PROOFS[name]
    proof = prove(replace(question, a=mutilated(question.a, axiom)))
    assert proof.holds != needed


EXCUSES = """
"Row level"
promises log-serializable
include "delta.cat"
let both-dv = [Vectors] ; (unseen & removes-meets-removes) ; [Vectors]
let union = both-dv \\ (ww | ww^-1)
empty metadata-changed as MetadataChangedException
empty added \\ union as ConcurrentAppendException
empty deleted-read \\ union as ConcurrentDeleteReadException
empty deleted-deleted \\ union as ConcurrentDeleteDeleteException
"""


@pytest.mark.slow
def test_a_lemma_that_rests_on_an_unproved_one_is_not_derived():
    """What fails is the lemma that it rests on."""
    question = PROOFS["theorem-5"]
    proof = prove(replace(question, a=mutilated(question.a, "ConcurrentDeleteReadException")))
    steps = {step.lemma: step for step in proof.steps}
    goal = steps["log-order"]
    assert (goal.outcome, goal.rests_on) == ("not derived", ("as-it-was-read",))
    assert goal.counterexample == ()
    assert goal.status == "is not derived: it rests on as-it-was-read"
    assert steps["as-it-was-read"].outcome == "fails"
    assert steps["as-it-was-read"].counterexample[-1] == "rw: t2 → t1"


@pytest.mark.slow
def test_a_counterexample_to_a_lemma_satisfies_what_unproved_lemmas_may_use():
    """Two writers of one row in one file: the rule excuses no such pair, so it is none."""
    proof = prove(Question(read_spec(EXCUSES, "row-level"), spec("log-serializable")))
    goal = proof.failed[-1]
    assert [step.outcome for step in proof.failed] == ["unknown", "unknown", "fails"]
    assert goal.lemma == "log-order"
    assert goal.counterexample[-1] == "rw: t2 → t1"
    assert not any(line.startswith("ww") for line in goal.counterexample)


@pytest.mark.slow
def test_a_level_without_anti_dependencies_does_not_imply_first_committer_wins():
    weaker = read_spec('"A" acyclic [Writer] ; (wr | ww) ; [Writer] as order-of-writers', "a")
    proof = prove(Question(weaker, spec("snapshot-isolation")))
    assert [step.lemma for step in proof.failed] == ["first-committer-wins", "snapshot"]


@pytest.mark.slow
def test_without_a_reader_of_every_version_the_log_is_not_pinned():
    proof = prove(replace(PROOFS["theorem-2"], every_version_read=False))
    assert proof.failed[-1].lemma == "log-order"
    assert proof.failed[-1].outcome == "fails"


@pytest.mark.slow
def test_three_transactions_can_violate_write_serializable():
    proof = prove(replace(PROOFS["theorem-7"], transactions=3))
    (failed,) = proof.failed
    assert failed.lemma == "order-of-writers"
    assert failed.counterexample[0].startswith("t1: version 1, reads version 0, Blind")


@pytest.mark.slow
def test_a_lemma_that_takes_too_long_is_unknown():
    proof = prove(PROOFS["theorem-5"], budget=Budget(seconds=0))
    assert not proof.holds
    assert proof.failed[-1].outcome == "unknown"


def test_no_argument_looks_at_single_reads():
    proof = prove(Question(spec("delta-serializable"), spec("causal")))
    assert not proof.holds
    assert [step.lemma for step in proof.steps] == ["reads"]


# What delta #1305 and #7331 propose: commits without data change do not count as winners. Here
# only those that are about files: what writes metadata still counts.


def exempting(*names):
    protocol = spec("delta-serializable")
    exempt = tuple(
        replace(a, expr=Binary(";", NO_COMPACTION, a.expr)) if a.name in names else a
        for a in protocol.axioms
    )
    return replace(protocol, name="delta-serializable-1305", axioms=exempt)


COMPACTION = Binary("\\", Name("NoData"), Name("Marked"))
NO_COMPACTION = Bracket(Unary("~", COMPACTION))

MOVED = read_litmus(
    """
title    = "A compaction moves what is then deleted"
source   = "delta #1305, review"
schedule = "copy.start optimize delete copy.commit"

[table]
columns        = "id INT, part INT"
partitioned_by = ["part"]
init           = ["INSERT INTO t VALUES (1, 0)", "INSERT INTO t VALUES (2, 0)"]

[transactions]
copy     = "INSERT INTO t SELECT sum(id), 1 FROM t WHERE part = 0"
optimize = "OPTIMIZE t"
delete   = "DELETE FROM t WHERE part = 0"
""",
    "moved",
)


@pytest.mark.slow
def test_what_rewrites_add_may_be_ignored():
    protocol = exempting("ConcurrentAppendException")
    assert prove(Question(protocol, spec("log-serializable"))).holds


@pytest.mark.slow
def test_rewrites_may_not_be_ignored_as_removers():
    protocol = exempting("ConcurrentAppendException", "ConcurrentDeleteReadException")
    assert not prove(Question(protocol, spec("log-serializable"))).holds
    done = execute(MOVED, protocol)
    assert [(e.name, e.version, e.conflict) for e in done.events] == [
        ("optimize", 1, None),
        ("delete", 2, None),
        ("copy", 3, None),
    ]
    verdict = judge_execution(done, spec("log-serializable"))
    assert [(e.source, e.kind, e.target) for e in verdict.violations[0].cycle] == [
        ("delete", "log", "copy"),
        ("copy", "rw", "delete"),
    ]
    (copy,) = [e for e in execute(MOVED, spec("delta-serializable")).events if e.aborted]
    assert (copy.name, copy.conflict) == ("copy", "ConcurrentAppendException")
    (copy,) = [
        e for e in execute(MOVED, exempting("ConcurrentAppendException")).events if e.aborted
    ]
    assert (copy.name, copy.conflict) == ("copy", "ConcurrentDeleteReadException")
