"""Proofs for any number of transactions: each holds, and fails without any of its premises, or
without any axiom that it reads in the text of the protocol.
"""

import pytest

from isolitmus.checker.proving.arguments import Question
from isolitmus.checker.proving.proof import prove
from isolitmus.specs import spec

PROOFS = {
    "theorem-5": Question(spec("delta-serializable"), spec("log-serializable")),
    "theorem-4": Question(spec("write-serializable"), spec("snapshot-isolation")),
    "theorem-7": Question(spec("delta-write-serializable"), spec("write-serializable"), 2),
    "corollary-6b": Question(spec("delta-write-serializable-repaired"), spec("write-serializable")),
    "theorem-2": Question(spec("serializable"), spec("log-serializable"), every_version_read=True),
}
PREMISE_NAMES = {
    "theorem-5": "snapshot put-if-absent committed read-files read-predicates files rows compactions",
    "theorem-4": "snapshot sessions committed read-before-written born-once",
    "theorem-7": "snapshot put-if-absent committed read-files read-predicates files rows"
    " read-before-written born-once blind compactions",
    "corollary-6b": "snapshot put-if-absent committed read-files read-predicates files rows"
    " read-before-written born-once blind compactions",
    "theorem-2": "gapless something-written readers",
}
TWINS = [(name, premise) for name, used in PREMISE_NAMES.items() for premise in used.split()]


@pytest.mark.parametrize("name", PROOFS)
def test_a_theorem_is_proved_from_its_premises(name):
    proof = prove(PROOFS[name])
    assert proof.holds
    assert " ".join(p.name for p in proof.premises) == PREMISE_NAMES[name]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "premise"), TWINS)
def test_a_proof_fails_without_any_of_its_premises(name, premise):
    proof = prove(PROOFS[name], without=[premise])
    assert not proof.holds
    assert proof.failed[-1].outcome == "fails"
