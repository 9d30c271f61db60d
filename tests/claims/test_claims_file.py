"""The claims are read, whole, and what is wrong with one is refused in a sentence."""

import re

import pytest

from isolitmus.claims.claim import AskedObservation, ClaimEvidence, FigureStatement, derived
from isolitmus.claims.claims_file import claims, read_claims
from isolitmus.databases.observations import observation_named
from isolitmus.model.errors import LitmusError

ENTRY = {
    "says": '"At Serializable such transactions fail."',
    "where": '"the levels"',
    "editions": '["PT", "JA"]',
    "when": '"an INSERT committed while the delete ran"',
    "reading": '"the delete is refused"',
    "verdict": '"confirmed"',
}
PIECE = {
    "run": '"reorder"',
    "under": '"delta-serializable"',
    "claimed": '{ outcome = { delete = "aborted" } }',
}


def text(entry=None, piece=None):
    """A file with one claim and one piece of evidence, some keys of which are others."""
    lines = {**ENTRY, **(entry or {})}
    of_piece = {**PIECE, **(piece or {})} if piece != {} else {}
    return "\n".join(
        [
            'title = "A part"',
            "[D46]",
            *(f"{key} = {value}" for key, value in lines.items() if value is not None),
            *["[[D46.evidence]]"][: len(of_piece)],
            *(f"{key} = {value}" for key, value in of_piece.items() if value is not None),
        ]
    )


@pytest.mark.slow
def test_all_claims_are_there():
    numbers = {
        kind: {int(re.sub(r"\D", "", name)) for name in claims() if name[0] == kind}
        for kind in "DQN"
    }
    assert numbers == {
        "D": set(range(1, 73)),
        "Q": set(range(1, 27)),
        "N": {*range(1, 20)} - {6},  # 6 was the sentence of D67
    }
    assert {"D32b", "D32c"} <= claims().keys()


@pytest.mark.slow
def test_what_is_observed_has_a_name_and_facts():
    for claim in claims().values():
        for piece in claim.evidence:
            if isinstance(piece.question, AskedObservation):
                facts = observation_named(piece.question.name).expected
                assert {count.name for count in (*piece.claimed, *(piece.found or ()))} <= {*facts}


AGAINST = '{ outcome = { delete = "committed" } }'


@pytest.mark.parametrize(
    ("entry", "piece", "problem"),
    [
        (
            {"editions": '["FR"]'},
            None,
            "D46.editions names no edition: 'FR'; known: AR, EN, EN1, EN2, EN3, JA, PT, SQL",
        ),
        ({"editions": "[]"}, None, "D46 needs 'editions' (of EN, EN3, EN2, EN1, PT, JA, AR, SQL)"),
        ({"apart": '{ PR = "x" }'}, None, "D46.apart names no edition: 'PR'; "),
        ({"verdict": '"confirmd"'}, None, "D46.verdict is 'confirmd'; did you mean 'confirmed'?"),
        (
            {"verdict": '"refuted"'},
            None,
            "D46.verdict is 'refuted', and its evidence says 'confirmed': for it run reorder",
        ),
        (
            None,
            {"claimed": AGAINST, "found": PIECE["claimed"]},
            (
                "D46.verdict is 'confirmed', and its evidence says 'differs in open-source Delta':"
                " against it run reorder"
            ),
        ),
        ({"verdict": '"corrected"'}, None, "D46 is corrected, and needs 'remark' (a string)"),
        (None, {}, "D46.verdict is 'confirmed', and it has no evidence; expected 'undecided'"),
        ({"reading": None}, None, "[D46] needs 'reading' (a string)"),
        ({"when": None}, None, "D46 has evidence, and needs 'when' (a string): the condition"),
        ({"when": '""'}, None, "D46 has evidence, and needs 'when' (a string): the condition"),
        (None, {"met": "{}"}, ".met is empty, so every run would agree with it"),
        (None, {"met": '{ outcome = { insrt = "committed" } }'}, "did you mean 'insert'?"),
        ({"shows": '"x"'}, None, "[D46] has no key 'shows'"),
        (None, {"run": '"reordr"'}, ".run names no litmus test: 'reordr'; did you mean 'reorder'?"),
        (None, {"run": '"history-phantom"'}, "which is an abstract history"),
        (None, {"under": '"delta-serialisable"'}, "did you mean 'delta-serializable'?"),
        (
            None,
            {"under": '"databricks-*-rows@14.9"'},
            (
                ".under names no protocol: 'databricks-*-rows@14.9'; no release '14.9' of"
                " Databricks Runtime; known"
            ),
        ),
        (None, {"under": '"nothing-*"'}, ".under names no protocol: 'nothing-*'"),
        (
            None,
            {"run": None},
            "has no question; one of run, matrix, separate, sweep, interleavings, observe",
        ),
        (None, {"sweep": '["rows"]'}, "has run and sweep; one of"),
        (None, {"universe": '"rows"'}, "has no key 'universe'"),
        (
            None,
            {"engines": '["dleta"]'},
            ".engines names no engine: 'dleta'; did you mean 'delta'?",
        ),
        (None, {"claimed": None}, "needs 'claimed': what comes out if the claim is true"),
        (None, {"claimed": '{ outcome = { delte = "aborted" } }'}, "did you mean 'delete'?"),
        (None, {"claimed": "{}"}, ".claimed is empty, so every run would agree with it"),
        (None, {"claimed": "[]"}, ".claimed is empty, so every run would agree with it"),
        (None, {"found": "{}"}, ".found is empty, so every run would agree with it"),
        (None, {"claimed": "{ fails = [] }"}, "expects nothing, so no run could be otherwise"),
        (None, {"claimed": "{ outcome = {} }"}, ".outcome is empty, and expects nothing"),
        (None, {"claimed": "{ log = { delete = {} } }"}, ".log.delete is empty, and expects"),
        (None, {"under": "[]"}, ".under is empty, so nothing would be asked"),
    ],
)
def test_what_is_wrong_is_refused(entry, piece, problem):
    with pytest.raises(LitmusError, match=re.escape(problem)) as refused:
        read_claims(text(entry, piece), "part.toml")
    assert str(refused.value).startswith("part.toml:")


OTHER = {"run": None, "under": None}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("piece", "problem"),
    [
        ({"separate": '["serializable"]'}, ".separate names 1 specs; expected two"),
        ({"separate": '["a", "serializable"]'}, ".separate names no level or protocol: 'a'"),
        ({"separate": '["causal", "serializable"]', "universe": '"row"'}, "did you mean 'rows'?"),
        (
            {"separate": '["causal", "serializable"]', "claimed": '"none"'},
            "expected 'NAME = VALUE'",
        ),
        ({"separate": '["causal", "serializable"]', "claimed": '"foud = no"'}, "mean 'found'?"),
        ({"sweep": '["row"]', "transactions": "2"}, ".sweep names no scope: 'row'"),
        ({"sweep": '["rows"]', "transactions": "2", "claimed": '"x = 1"'}, "gives no figure 'x'"),
        ({"sweep": '["rows"]'}, "needs 'transactions' (an integer)"),
        ({"sweep": "[]", "transactions": "2"}, ".sweep is empty, so nothing would be asked"),
        ({"separate": '["causal", "serializable"]', "claimed": "[]"}, ".claimed is empty"),
        (
            {"separate": '["causal", "serializable"]', "claimed": '"transactions >= 0"'},
            "is true of any figures",
        ),
        (
            {"separate": '["causal", "serializable"]', "transactions": "-1"},
            ".transactions is -1; expected an integer of at least 1",
        ),
        (
            {"interleavings": '"scan-twice"', "under": "[]"},
            ".under is empty, so nothing would be asked",
        ),
        ({"matrix": '"pears"'}, ".matrix names no matrix: 'pears'"),
        ({"matrix": '"pairs"', "parked": '["insrt"]'}, "matrix pairs has no 'insrt'"),
        ({"matrix": '"pairs"', "parked": '["insert"]'}, "needs 'winners' (a list of names)"),
    ],
)
def test_what_is_wrong_with_other_questions_is_refused(piece, problem):
    with pytest.raises(LitmusError, match=re.escape(problem)):
        read_claims(text(piece={**OTHER, "claimed": '"found = no"', **piece}), "part.toml")


def test_what_is_no_claim_is_refused():
    with pytest.raises(LitmusError, match="X1 is not a claim; write D, Q or N and a number"):
        read_claims('title = "A part"\n[X1]\n', "part.toml")


SECOND = """
[[D46.evidence]]
run     = "insert-last"
under   = "delta-serializable"
claimed = { outcome = { delete = "aborted" } }
found   = { outcome = { delete = "committed" } }
"""


def test_one_case_has_evidence_on_one_side():
    """What the runs of a corrected claim differ in is said."""
    corrected = {"verdict": '"corrected"', "remark": '"Not if the INSERT commits last."'}
    with pytest.raises(LitmusError, match="evidence on both sides of one case") as refused:
        read_claims(text(corrected) + SECOND, "part.toml")
    assert "for it run reorder" in str(refused.value)
    assert "against it run insert-last" in str(refused.value)
    told = text(corrected) + SECOND + 'when = "the INSERT commits last"'
    (claim,) = read_claims(told, "part.toml")
    assert claim.derived((piece, piece.agrees) for piece in claim.evidence) == "corrected"
    assert claim.derived((piece, True) for piece in claim.evidence) == "confirmed"


def test_answers_that_disagree_on_one_case_decide_nothing():
    claim = claims()["D55"]
    assert len({piece.case for piece in claim.evidence if not piece.of_page}) == 1
    answers = [(piece, k != 0) for k, piece in enumerate(claim.evidence)]
    assert claim.derived(answers) == "undecided"


@pytest.mark.slow
def test_every_piece_of_evidence_decides():
    """With the opposite answer the verdict is another one; or the case is, if it was the only one of
    a case of a claim that does not hold in all cases.
    """
    seen = 0
    for claim in claims().values():
        if not claim.when:
            assert not claim.evidence
            continue
        for k, flipped in enumerate(claim.evidence):
            answers = [(p, p.agrees is (i != k)) for i, p in enumerate(claim.evidence)]
            alone = sum(p.case == flipped.case for p in claim.evidence) == 1
            partial = {p.agrees for p in claim.evidence} == {True, False}
            assert claim.derived(answers) != claim.verdict or (alone and partial), (
                claim.name, str(flipped.question)
            )  # fmt: skip
            seen += 1
    assert seen > 400


@pytest.mark.slow
def test_one_sentence_is_one_claim():
    entries = list(claims().values())
    words = [re.sub(r"\W+", " ", claim.says.lower()) for claim in entries]
    assert len({*words}) == len(words)
    meanings = [(claim.where, claim.when, claim.reading) for claim in entries if claim.when]
    assert len({*meanings}) == len(meanings)


def piece(*, page=False, amended=False):
    claimed = (FigureStatement("found", "=", "no"),)
    return ClaimEvidence(AskedObservation("x"), ("model",), claimed, of_page=page, amended=amended)


@pytest.mark.parametrize(
    ("answers", "verdict"),
    [
        ([], "undecided"),
        ([(piece(), True)], "confirmed"),
        ([(piece(), False), (piece(page=True), True)], "refuted"),
        ([(piece(), True), (piece(), False)], "corrected"),
        ([(piece(page=True), True)], "holds by the page's protocol"),
        ([(piece(page=True), True), (piece(page=True), False)], "corrected"),
        ([(piece(), False), (piece(amended=True), True)], "a defect of the text"),
        ([(piece(), True), (piece(amended=True), True)], "confirmed"),
        ([(piece(), False), (piece(amended=True), False)], "refuted"),
    ],
)
def test_a_verdict_comes_out_of_answers(answers, verdict):
    assert derived(answers) == verdict


def test_a_file_without_claims_is_refused():
    with pytest.raises(LitmusError, match=r"part\.toml: the file has no claim"):
        read_claims('title = "A part"', "part.toml")


def test_a_figure_that_nobody_gives_is_not_as_claimed():
    assert not FigureStatement("a", "=", "b").holds({})
    assert not FigureStatement("a", ">", 0).holds({"b": 1})


@pytest.mark.parametrize(
    ("answers", "verdict"),
    [
        ([(piece(), False)], "differs in open-source Delta"),
        ([(piece(), False), (piece(page=True), True)], "differs in open-source Delta"),
        ([(piece(), False), (piece(page=True), False)], "refuted"),
        ([(piece(), True), (piece(), False)], "corrected"),
        (
            [(piece(), True), (piece(), False), (piece(page=True), True)],
            "differs in open-source Delta",
        ),
        ([(piece(), False), (piece(page=True), True), (piece(page=True), False)], "corrected"),
        ([(piece(), True), (piece(page=True), False)], "corrected"),
        ([(piece(), True)], "confirmed"),
    ],
)
def test_no_run_of_open_source_delta_refutes_what_is_said_of_databricks(answers, verdict):
    assert derived(answers, of_databricks=True) == verdict


def test_of_what_was_not_asked_nothing_is_confirmed():
    assert derived([(piece(), True)], unasked="the rest.") == "confirmed in part"
    assert derived([(piece(), False)], unasked="the rest.") == "refuted"
    assert {name for name, claim in claims().items() if claim.verdict == "confirmed in part"} == {
        name for name, claim in claims().items() if claim.unasked and claim.verdict[:4] == "conf"
    }
    assert {"Q1", "Q7", "N2"} <= {name for name, claim in claims().items() if claim.unasked}


def test_like_statements_have_like_verdicts():
    """D10 and D20 say of one pair of commits that they both go through; D12, D13 that compactions
    do.
    """
    alike = {
        claims()[name].verdict
        for name in (
            "D9",
            "D10",
            "D12",
            "D13",
            "D18",
            "D19",
            "D20",
            "D22",
            "D27",
            "D35",
            "D37",
            "D41",
            "D49",
            "D58",
        )
    }
    assert alike == {"differs in open-source Delta"}
