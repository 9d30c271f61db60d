"""``isolitmus claims``: the list, and what comes out when evidence is run."""

import json

import pytest

from isolitmus.claims.claim_evidence import verify_claims
from isolitmus.claims.claims_file import claims

CLAIM = """\
title = "A part"
[D46]
says     = "Such transactions fail."
where    = "the levels"
editions = ["PT"]
when     = "an INSERT committed while the delete ran"
reading  = "the delete is refused"
verdict  = "confirmed"
[[D46.evidence]]
run     = "reorder"
under   = "delta-write-serializable"
claimed = { outcome = { delete = "aborted" } }
"""


@pytest.mark.slow
def test_claims_are_listed_by_edition_verdict_and_word(call):
    listed = {
        words: [line.split()[0] for line in call("claims", *words)[1].splitlines()]
        for words in (
            (),
            ("--edition", "SQL"),
            ("--verdict", "refuted,not semantic"),
            ("--word", "t0"),
            ("--edition", "PT,JA", "--verdict", "undecided", "--word", "photon"),
        )
    }
    every, article, refuted, word, all_three = listed.values()
    assert every == list(claims())
    assert article == [name for name, claim in claims().items() if claim.editions == ("SQL",)]
    assert {"D52", "D63"} <= set(refuted) < set(every)
    assert {"D54"} <= set(word)
    assert set(all_three) <= {"D23"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--edition", "FR"), "--edition is 'FR'; known: AR, EN, EN1, EN2, EN3, JA, PT, SQL"),
        (("--verdict", "refutd"), "--verdict is 'refutd'; did you mean 'refuted'?"),
        (("D146",), "unknown claim 'D146'; did you mean 'D46'?"),
        (("verify", "D46", "--engine", "dleta"), "unknown engine 'dleta'; did you mean 'delta'?"),
        (("D46", "--engine", "model"), "--engine needs verify"),
    ],
)
def test_what_is_asked_wrongly_is_told(call, words, problem):
    status, _, err = call("claims", *words)
    assert (status, problem in err) == (2, True)


@pytest.mark.slow
def test_a_verdict_comes_out_and_what_was_not_run_is_told(call):
    status, out, _ = call("claims", "verify", "D46", "D52", "D63")
    assert (status, out.splitlines()) == (
        0,
        [
            "D46: confirmed (model); not run here: delta",
            "D52: refuted (model); not run here: delta",
            "D63: not semantic",
            "3 claims: 3 as recorded.",
        ],
    )


@pytest.mark.slow
def test_without_its_engine_a_claim_is_undecided(call):
    status, out, _ = call("claims", "verify", "D2", "D46")
    assert (
        status,
        "D2: undecided\n  observe job-of-several-queries: not run here (delta)\n" in out,
    ) == (3, True)
    assert out.endswith("2 claims: 1 undecided, 1 as recorded.\n")


def test_a_run_that_contradicts_an_entry_is_told_with_both_values(call, tmp_path):
    path = tmp_path / "part.toml"
    path.write_text(CLAIM, "utf-8")
    status, out, _ = call("claims", "verify", str(path))
    assert status == 1
    assert out.splitlines() == [
        "D46: recorded verdict 'confirmed', the runs give 'differs in open-source Delta':",
        (
            "  run reorder --protocol delta-write-serializable on model: delete: expected aborted,"
            " got committed"
        ),
        "1 claim: 1 contradicted.",
    ]
    (done,) = json.loads(call("claims", "verify", str(path), "--json")[1])
    assert (done["recorded"], done["verdict"]) == ("confirmed", "differs in open-source Delta")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"reorder"', '"reordre"', "part.toml:10: D46.evidence[1].run names no litmus test: 'reordre'; did you mean 'reorder'?"),
        ('["PT"]', '["FR"]', "part.toml:5: D46.editions names no edition: 'FR'; known: AR, EN, EN1, EN2, EN3, JA, PT, SQL"),
        ('"confirmed"', '"refuted"', "part.toml:8: D46.verdict is 'refuted', and its evidence says 'confirmed': for it run reorder"),
    ],
)  # fmt: skip
def test_a_claim_that_is_written_wrong_is_refused_at_its_line(call, tmp_path, old, new, problem):
    path = tmp_path / "part.toml"
    path.write_text(CLAIM.replace(old, new), "utf-8")
    status, out, err = call("claims", "verify", str(path))
    assert (status, out, err.startswith(f"isolitmus: {problem}")) == (2, "", True), err


def test_a_run_that_does_not_meet_the_condition_contradicts_the_entry(call, tmp_path):
    path = tmp_path / "part.toml"
    met = "met = { log = { insert = { blind = false } } }\n"
    path.write_text(CLAIM.replace("write-", "") + met, "utf-8")
    status, out, _ = call("claims", "verify", str(path))
    assert status == 1
    assert "the condition is not met: insert: expected blind False, got True" in " ".join(
        out.split()
    )


def test_what_speaks_for_a_claim_that_is_recorded_as_refuted_contradicts_it(call, tmp_path):
    path = tmp_path / "part.toml"
    against = 'found = { outcome = { insert = "committed" } }'
    text = (
        CLAIM.replace("write-", "").replace('"confirmed"', '"differs in open-source Delta"')
        + against
    )
    path.write_text(text, "utf-8")
    status, out, _ = call("claims", "verify", str(path))
    assert (
        status,
        "recorded verdict 'differs in open-source Delta', the runs give 'confirmed'" in out,
    ) == (
        1,
        True,
    )
    assert "on model: agrees with the claim, but the record says otherwise" in out


@pytest.mark.slow
def test_an_engine_that_cannot_be_started_has_no_answer(monkeypatch):
    from isolitmus.claims import claim_evidence as verifying
    from isolitmus.model.errors import EngineUnavailable

    def none(_, tests):
        yield from [EngineUnavailable("no Java")] * len(tests)

    monkeypatch.setattr(verifying, "run_cases", none)
    (done,) = verify_claims([claims()["D34"]], ["delta"])
    assert [a.engine for of in done.answers for a in of] == ["delta", *["model"] * 3]
    assert (done.verdict, done.status, done.unanswered) == (
        "undecided", 3, ("run overwrite-beside-append --protocol delta-serializable: delta: no Java",)
    )  # fmt: skip


def test_what_several_claims_cite_is_carried_out_once(monkeypatch):
    from isolitmus.checker import run
    from isolitmus.claims import claim_evidence as verifying

    carried = []

    def once(_, tests):
        for test, under in tests:
            carried.append((test.name, under.name))
            yield run(test, under).run

    monkeypatch.setattr(verifying, "run_cases", once)
    done = list(verify_claims([claims()[name] for name in ("D34", "D46", "D48", "D55")], ["delta"]))
    assert [one.status for one in done] == [0, 0, 0, 0]
    asked = [a.engine for one in done for answers in one.answers for a in answers]
    assert asked.count("delta") == 6 and len(asked) == sum(len(one.answers) for one in done)
    assert sorted(carried) == [
        ("level-declared", "delta-serializable"),
        ("overwrite-beside-append", "delta-serializable"),
        ("reorder", "delta-serializable"),
        ("reorder-reader", "delta-serializable"),
        ("reorder-reader", "delta-write-serializable"),
    ]


@pytest.mark.slow
def test_every_claim_is_as_recorded_on_the_model():
    """What the model can be asked of; each of those that have evidence is decided by it."""
    every = [
        claim
        for claim in claims().values()
        if claim.evidence and all("model" in piece.engines for piece in claim.evidence)
    ]
    assert [one for one in verify_claims(every) if one.status] == []
