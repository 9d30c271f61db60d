"""All interleavings of a litmus test's steps: counted exactly, and what the worked examples come
to.
"""

import json
import re
from collections import Counter
from dataclasses import replace

import pytest
from case_checks import check_cases, sample, sampled

from isolitmus.checker.execution.run_result import run
from isolitmus.checker.universes.schedules import Orders
from isolitmus.databases.locking.final_state import FinalStates
from isolitmus.databases.locking.interleavings import count_interleavings
from isolitmus.databases.locking.step_orders import free_walks
from isolitmus.model.errors import IsolitmusError
from isolitmus.specs import litmus, protocol
from isolitmus.specs.files.litmus_file import read_litmus

RC, RCSI = "locking-read-committed", "locking-read-committed-snapshot"
ROWWISE, RR = "locking-latest-committed", "locking-repeatable-read"
SERIALIZABLE, SNAPSHOT = "locking-serializable", "locking-snapshot"


def one_by_one(orders, path=()):
    """The same by going every way from the start, with nothing remembered."""
    walk = orders.walk(path)
    able = walk.able()
    if not able:
        return Counter({orders.end(walk): 1})
    return sum((one_by_one(orders, (*path, name)) for name in able), Counter())


SMALL = [
    ("quiz-stolen", RC),
    ("count-looks-right", RC),
    ("count-looks-right", RCSI),
    ("transfer-half-seen", RC),
    ("rule-declared", RC),
]
LARGER = [("quiz-two-workers", under) for under in (RC, RCSI, SERIALIZABLE)]


@pytest.mark.slow
@sampled
def test_states_are_remembered_and_nothing_is_lost(seed, whole):
    def check(name, under):
        ends = FinalStates(litmus(name))
        orders = Orders(free_walks(ends.litmus, protocol(under), ends), ends.of)
        assert {end: ways.number for end, ways in orders.ends().items()} == one_by_one(orders)

    check_cases(check, [*SMALL, *sample(LARGER, seed, whole)])


def broken(name, under):
    """What breaks in interleavings that are like no serial order, each kind once."""
    done = count_interleavings(litmus(name), protocol(under))
    for outcome in done.outcomes:
        again = run(done.test(outcome), protocol(under))
        assert again.breaks == outcome.breaks
        assert again.run.tables == dict(outcome.end.tables)
    return {outcome.breaks for outcome in done.wrong}


OWNER, CAP, OLDEST = ("unique_owner",), ("at_most_three",), ("oldest_first",)
ONE, PROGRESS = ("one_case",), ("progress",)
FOUND = {
    "quiz-two-workers": {RC: {OWNER}, RCSI: {OWNER}, ROWWISE: {OWNER}},
    "quiz-stolen": {RC: {OWNER}, RCSI: {OWNER}, ROWWISE: {OWNER}},
    "quiz-fourth-case": {RC: {OWNER, CAP}, RCSI: {OWNER}, ROWWISE: {OWNER, CAP}, RR: {CAP}},
    "quiz-fourth-case-from-end": {RC: {OWNER, CAP}, RCSI: {OWNER}, ROWWISE: {OWNER, CAP}},
    "quiz-fourth-case-top": {RC: {OWNER}, RCSI: {OWNER}, ROWWISE: {OWNER}},
    "quiz-fourth-case-freed": {
        RC: {OWNER, CAP},
        RCSI: {OWNER, CAP},
        ROWWISE: {OWNER, CAP},
        SNAPSHOT: {CAP},
    },
    "quiz-fourth-case-moved": {RC: {CAP}, ROWWISE: {CAP}},
    "quiz-refused": {RC: {PROGRESS}, ROWWISE: {PROGRESS}},
    "quiz-not-oldest": {RC: {OLDEST}, ROWWISE: {OLDEST}, RR: {OLDEST}},
    "quiz-not-oldest-by-area": {RC: {OLDEST}, ROWWISE: {OLDEST}, RR: {OLDEST}},
    "quiz-released": {},
    "quiz-none-free": {},
    "quiz-vanished": {RC: {PROGRESS}, RCSI: {PROGRESS}, ROWWISE: {PROGRESS}},
    "quiz-three-moments": {RC: {OWNER}, ROWWISE: {OWNER}},
    "quiz-each-row": {RC: {ONE}, ROWWISE: {ONE}, RR: {ONE}},
    "quiz-each-row-of-area": {RC: {ONE}, ROWWISE: {ONE}, RR: {ONE}},
}
"""What each test of the quiz breaks, by protocol; under the others no interleaving is wrong."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "under"),
    [(name, under) for name in FOUND for under in (RC, RCSI, ROWWISE, RR, SERIALIZABLE, SNAPSHOT)],
)
def test_the_quiz_goes_wrong_in_these_ways(name, under):
    assert broken(name, under) == FOUND[name].get(under, set())


CHOICE = re.compile(
    r"\(SELECT (?:TOP \(1\) )?id FROM cases WHERE (.*?ORDER BY created)(?: LIMIT 1)?\)"
)
HINTED = {
    "quiz-two-workers": {},
    "quiz-stolen": {},
    "quiz-fourth-case": {RC: {CAP}, RCSI: {CAP}},
    "quiz-fourth-case-from-end": {RC: {CAP, OLDEST}, RCSI: {CAP, OLDEST}},
    "quiz-fourth-case-top": {RC: {CAP, OLDEST}, RCSI: {CAP}},
    "quiz-fourth-case-freed": {RC: {CAP}, RCSI: {CAP}},
    "quiz-fourth-case-moved": {RC: {CAP}},
    "quiz-refused": {RC: {PROGRESS}},
    "quiz-not-oldest": {RC: {OLDEST}, RCSI: {OLDEST}},
    "quiz-not-oldest-by-area": {RC: {OLDEST}, RCSI: {OLDEST}},
    "quiz-released": {},
    "quiz-vanished": {},
    "quiz-three-moments": {},
    "quiz-each-row": {RC: {ONE}, RCSI: {ONE}},
    "quiz-deadlock": {RC: {ONE}, RCSI: {ONE}},
}
"""The same with UPDLOCK and READPAST on the choice."""
DEADLOCKED = {"quiz-deadlock", "quiz-fourth-case-from-end"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "under"), [(name, under) for name in HINTED for under in (RC, RCSI)]
)
def test_hints_on_the_choice_forbid_some_failures_and_permit_others(name, under):
    text = litmus(name).text.partition("[expect")[0]
    hinted, number = CHOICE.subn(
        r"(SELECT TOP (1) id FROM cases WITH (UPDLOCK, READPAST) WHERE \1)", text
    )
    assert number == sum("LIMIT 1" in one.sql for one in litmus(name).transactions.values())
    done = count_interleavings(read_litmus(hinted, name), protocol(under))
    assert {outcome.breaks for outcome in done.wrong} == HINTED[name].get(under, set())
    assert (done.figures["deadlocks"] > 0) == (name in DEADLOCKED)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind"), [("quiz-fourth-case-with-hints", CAP), ("quiz-refused-with-hints", PROGRESS)]
)
@pytest.mark.parametrize("under", [RC, RCSI])
def test_without_its_hints_a_test_of_hints_does_not_go_wrong_so(name, kind, under):
    text = litmus(name).text.partition("[expect")[0]
    bare = text.replace(" WITH (UPDLOCK, READPAST)", "")
    assert bare != text
    hinted, without, serial = (
        {o.breaks for o in count_interleavings(read_litmus(each, name), protocol(level)).wrong}
        for each, level in ((text, under), (bare, under), (bare, SERIALIZABLE))
    )
    assert kind in hinted and kind not in without and serial == set()


BOTH = ("quiz-fourth-case-with-hints", "quiz-fourth-case-freed")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("choice", "count", "wrong", "deadlocks"),
    [
        ("UPDLOCK", "", ({RCSI: {CAP}}, {RCSI: {CAP}}), False),
        ("UPDLOCK", " WITH (READCOMMITTEDLOCK)", ({}, {}), False),
        (
            "UPDLOCK, READPAST",
            " WITH (UPDLOCK, SERIALIZABLE)",
            ({RC: {OLDEST}, RCSI: {OLDEST}}, {RC: {PROGRESS}, RCSI: {PROGRESS}}),
            True,
        ),
    ],
)
@pytest.mark.parametrize("under", [RC, RCSI])
def test_which_hints_keep_the_limit(choice, count, wrong, deadlocks, under):
    """Without READPAST the second session waits, and then counts what the first was given."""
    for name, breaks in zip(BOTH, wrong, strict=True):
        text = litmus(name).text.partition("[expect")[0].replace(" WITH (UPDLOCK, READPAST)", "")
        text = text.replace("TOP (1) id FROM cases", f"TOP (1) id FROM cases WITH ({choice})")
        text = text.replace("COUNT_BIG(*) FROM cases", f"COUNT_BIG(*) FROM cases{count}")
        done = count_interleavings(read_litmus(text, name), protocol(under))
        assert {outcome.breaks for outcome in done.wrong} == breaks.get(under, set())
        assert (done.figures["deadlocks"] > 0) == deadlocks


ROWS = re.compile(r"VALUES (\(.*\))")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "quiz-fourth-case",
        "quiz-fourth-case-freed",
        "quiz-fourth-case-moved",
        "quiz-refused",
        "quiz-not-oldest",
        "quiz-vanished",
        "quiz-each-row",
    ],
)
def test_with_a_case_less_the_quiz_does_not_go_wrong_so(name):
    text = litmus(name).text.partition("[expect")[0]
    text = text.replace(str(litmus(name).schedule), " ".join(litmus(name).transactions))
    (kind,) = FOUND[name][RC] - {OWNER} or {OWNER}
    rows = re.findall(r"\([^)]*\)", ROWS.search(text)[1])
    assert len(rows) > 1
    for row in rows:
        if (name, row) == ("quiz-vanished", "(3, 7, 30)"):
            continue  # only counted
        rest = ", ".join(other for other in rows if other != row)
        less = read_litmus(text.replace(", ".join(rows), rest), "less")
        done = count_interleavings(less, protocol(RC))
        assert kind not in {outcome.breaks for outcome in done.wrong}


@pytest.mark.slow
def test_subqueries_at_each_row_may_wait_for_each_other():
    assert count_interleavings(litmus("quiz-deadlock"), protocol(RC)).figures["deadlocks"] == 5
    assert count_interleavings(litmus("quiz-deadlock"), protocol(RCSI)).figures["deadlocks"] == 0


@pytest.mark.slow
def test_descending_gives_the_newest_in_the_only_serial_order_too():
    done = count_interleavings(litmus("quiz-newest"), protocol(RC))
    assert (done.number, done.wrong, done.alone) == (1, (), {"a": OLDEST})


@pytest.mark.parametrize(
    ("index", "given"), [("created", 1), ("created, id desc", 2)], ids=["first", "last"]
)
def test_the_index_decides_between_cases_of_one_date(index, given):
    text = litmus("quiz-two-workers").text.partition("[expect")[0]
    text = text.replace("(2, 7, 20)", "(2, NULL, 10)")
    text = text.replace('by_created = "created"', f'by_created = "{index}"')
    alone = read_litmus(text.replace("a.scan[2] b.scan[2] a b", "a b"), "made-up")
    assert alone.text != litmus("quiz-two-workers").text
    first = run(alone, protocol(RC)).execution.states[1]["cases"].rows()
    assert [row[0] for row in first if row[1] == 7] == [given]


@pytest.mark.parametrize(
    ("name", "under", "wrong", "breaks"),
    [
        ("invoice-moved", RC, True, {("paid_in_full",)}),
        ("invoice-moved", RCSI, False, set()),
        ("invoice-moved", RR, True, {("paid_in_full",)}),
        ("invoice-moved", SERIALIZABLE, False, set()),
        ("invoice-paid-meanwhile", RC, False, {("paid_in_full",)}),
        ("invoice-paid-meanwhile", SERIALIZABLE, False, {("paid_in_full",)}),
        ("transfer-half-seen", RC, True, set()),
        ("transfer-half-seen", RCSI, False, set()),
        ("transfer-half-seen", RR, False, set()),
        ("linked-accounts", RC, True, {("covered",)}),
        ("linked-accounts", SNAPSHOT, True, {("covered",)}),
        ("linked-accounts", SERIALIZABLE, False, set()),
        ("rule-by-hand", RC, True, {("one_guest",)}),
        ("rule-by-hand", SNAPSHOT, True, {("one_guest",)}),
        ("rule-by-hand", SERIALIZABLE, False, set()),
        ("rule-declared", RC, False, set()),
        ("rule-declared", RCSI, False, set()),
        ("rule-declared", SNAPSHOT, False, set()),
    ],
)
@pytest.mark.slow
def test_the_examples_go_wrong_where_the_article_says(name, under, wrong, breaks):
    done = count_interleavings(litmus(name), protocol(under))
    assert bool(done.wrong) == wrong
    assert {outcome.breaks for outcome in done.outcomes if outcome.breaks} == breaks


@pytest.mark.slow
def test_some_wrong_counts_are_those_of_another_order():
    done = count_interleavings(litmus("count-looks-right"), protocol(RC)).to_json()
    assert (done["interleavings"], done["wrong"], done["timeless"], done["plausible"]) == (
        226,
        18,
        28,
        10,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("SELECT seat FROM", "SELECT sat FROM"), "made-up: postconditions.one_guest: Binder Error"),
        (('[postconditions]\none_guest = "', '[postconditions]\none_guest = 7 # "'), "one_guest"),
        (('breaks   = ["one_guest"]', 'breaks   = ["one_gust"]'), "names no postcondition: 'one_gust'; did you mean 'one_guest'?"),
    ],
)  # fmt: skip
def test_bad_postconditions(change, message):
    text = litmus("rule-by-hand").text
    assert change[0] in text
    with pytest.raises(IsolitmusError) as caught:
        count_interleavings(read_litmus(text.replace(*change), "made-up"), protocol(RC))
    assert message in str(caught.value)


def test_what_cannot_be_interleaved():
    with pytest.raises(IsolitmusError, match="reorder is of format delta, whose transactions have"):
        count_interleavings(litmus("reorder"), protocol(RC))
    seven = {f"t{k}": litmus("quiz-two-workers").transactions["a"] for k in range(7)}
    with pytest.raises(IsolitmusError, match="has 7 transactions; at most 6 are interleaved"):
        count_interleavings(replace(litmus("quiz-two-workers"), transactions=seven), protocol(RC))


@pytest.mark.slow
def test_the_command(call):
    status, out, _ = call(
        "run", "quiz-stolen", "--interleavings", "--protocol", f"{RC},{SERIALIZABLE}"
    )
    assert status == 0
    assert "47  equal to no serial order, violates unique_owner: a.step[2] other a" in out
    assert "14  equal to other, a Deadlock: " in out
    _, out, _ = call("run", "quiz-newest", "--interleavings", "--protocol", RC, "--json")
    assert json.loads(out)["serial"] == {"a": ["oldest_first"]}
    status, _, told = call("run", "quiz-newest", "--interleavings", "--table")
    assert (status, "leave out --engine, --table" in told) == (2, True)
    status, _, told = call("run", "reorder", "--interleavings")
    assert (status, "no steps to interleave" in told) == (2, True)
