"""Proofs about scans: what they take of protocols and statements, and that nothing that ships
refutes them.
"""

import pytest

from isolitmus.checker.search.unbounded_separation import separate_unbounded
from isolitmus.databases.locking import scan_proof as scans
from isolitmus.databases.locking.protocol_rules import rules_of
from isolitmus.model.errors import Disagreement, IsolitmusError
from isolitmus.specs import level, protocol, scope
from isolitmus.specs.disk.input_files import shipped_files

RC = "locking-read-committed"
PROTOCOLS = [name for name in shipped_files("protocols") if protocol(name).format == "locking"]
DIRTY = {"locking-read-uncommitted", "derby-read-uncommitted"}


@pytest.mark.slow
@pytest.mark.parametrize("under", PROTOCOLS)
def test_with_keys_that_stay_each_row_is_emitted_once_unless_what_is_not_committed_is_seen(under):
    """All litmus tests that ship are asked whether they refute it."""
    answer = separate_unbounded(
        protocol(under), level("row-once"), scope("fixed-keys"), transactions=[1]
    )
    assert answer.proved == (under not in DIRTY)
    if answer.proved:
        assert answer.found is False
        assert [step.lemma for step in answer.proof.steps][-1] == "row-missed-end"
        assert {"scan-of-fixed-keys", "scan-twice"} & {
            t.litmus for t in answer.outside if t.fails
        } <= {"scan-twice"}
    else:
        assert answer.found is None
        assert answer.proof.failed[0].lemma == "row-missed"
        assert rules_of(protocol(under)).reads is None


@pytest.mark.slow
@pytest.mark.parametrize("universe", ["scans", None])
def test_where_a_key_changes_the_proof_fails_and_the_search_finds_it(universe):
    inside = None if universe is None else scope(universe)
    answer = separate_unbounded(protocol(RC), level("row-once"), inside)
    assert (answer.found, answer.proved, answer.transactions) == (True, False, 2)
    (failed,) = answer.proof.failed
    assert failed.lemma == "row-twice-writer"
    assert "moved" in failed.counterexample[0]


@pytest.mark.slow
def test_a_level_without_an_argument_is_searched():
    answer = separate_unbounded(protocol(RC), level("one-moment"), scope("fixed-keys"))
    assert (answer.found, answer.proof.failed[0].outcome) == (True, "unknown")


def test_a_litmus_test_that_refutes_a_proof_is_a_disagreement(monkeypatch):
    """As if no statement changed a key."""
    monkeypatch.setattr(scans, "_moves", lambda *_: iter(()))
    with pytest.raises(Disagreement, match="though it changes no key"):
        separate_unbounded(protocol(RC), level("row-once"), scope("fixed-keys"))


@pytest.mark.parametrize(
    ("universe", "options", "message"),
    [
        ("table", {}, "name a scope of format locking"),
        ("fixed-keys", {"every_version_read": True}, "is about versions of a log, which format locking"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked(universe, options, message):
    with pytest.raises(IsolitmusError, match=message):
        separate_unbounded(protocol(RC), level("row-once"), scope(universe), **options)
