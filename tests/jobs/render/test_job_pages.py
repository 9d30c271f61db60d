"""Pages of jobs: coloured cells, answers folded together, examples beside the user's own SQL."""

import re
from dataclasses import replace
from functools import cache

import pytest
from html_pages import check_form, check_policy
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.checker.render.colours import DARK, LIGHT, PICTURE
from isolitmus.checker.render.page_parts import PageOrigin
from isolitmus.jobs.invariants.invariants import decide_invariants
from isolitmus.jobs.predict.prediction import PairPrediction, predict_workload
from isolitmus.jobs.readers.workload_file import read_workload
from isolitmus.jobs.readers.workload_sources import workload
from isolitmus.jobs.render.invariants import invariants_page
from isolitmus.jobs.render.job_examples import job_example
from isolitmus.jobs.render.prediction import meeting_words
from isolitmus.jobs.render.prediction_page import (
    WIDE,
    answer_folds,
    answer_key,
    conflict_matrix,
    prediction_page,
)
from isolitmus.jobs.render.robustness import robust_page
from isolitmus.jobs.robust.robustness import PROMISES, decide_all
from isolitmus.specs import protocol

MADE = PageOrigin("isolitmus 0.1.0", "2026-01-31 12:00 UTC", "isolitmus predict <script>")
LEVELS = ("delta-serializable", "delta-write-serializable")
EVIL = "<script>alert(1)</script>"


@cache
def shop():
    return predict_workload(workload("shop"), LEVELS[0])


@cache
def shop_page():
    return prediction_page(shop(), MADE)


@cache
def evil_work():
    """A workload whose title, strings, comments and comparisons would be tags."""
    return read_workload(
        f'''
title = "{EVIL}"
ddl = "CREATE TABLE t (id INT, s STRING) USING delta"
[jobs.add]
sql = """INSERT INTO t -- {EVIL}
VALUES (:id, '{EVIL}')"""
parameters = {{ id = "INT" }}
[jobs.remove]
sql = "DELETE FROM t WHERE s = '{EVIL}' AND id<:id"
parameters = {{ id = "INT" }}
[jobs.odd]
sql = "FROBNICATE {EVIL}"
[invariants]
evil = "check(s <> '{EVIL}')"
''',
        "evil",
    )


def test_colours_of_answers_can_be_read():
    """WCAG 2.2, 1.4.3: the contrast of text is at least 4.5."""
    pairs = [(name, f"{name}-page") for name in ("good", "bad", "perhaps")]
    for palette in (LIGHT, DARK):
        for ink, page in [*pairs, ("ink", "code"), ("soft", "page")]:
            lighter, darker = sorted((luminance(palette[one]) for one in (ink, page)), reverse=True)
            assert (lighter + 0.05) / (darker + 0.05) >= 4.5, (ink, page)


def luminance(colour):
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(share * c for share, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def cells(page):
    """Class and text of each cell of the matrices."""
    found = re.findall(r'<td class="answer (\w+)"[^>]*>(.*?)</td>', page)
    return [(style, re.sub(r"<[^>]*>", "", text).strip()) for style, text in found]


@pytest.mark.slow
def test_each_cell_has_a_class_a_word_and_exceptions():
    found = cells(shop_page())
    assert len(found) == len(shop().meetings) == 25
    for (style, text), meeting in zip(found, shop().meetings, strict=True):
        word = (
            "always" if meeting.certain else {"when": "sometimes"}.get(meeting.word, meeting.word)
        )
        assert style == word
        assert text.startswith(word) or (word, text) == ("apart", "never at the same time")
        for name in meeting.exceptions:
            assert name.removesuffix("Exception") in text
    assert ("always", "always if both have the same :day ConcurrentAppend") in found


@pytest.mark.slow
def test_pages_are_well_formed_and_load_nothing():
    work = shop().workload
    answers = list(decide_all(work, map_levels(), PROMISES))
    pages = [shop_page(), robust_page(answers, {}, MADE)]
    for page in pages:
        outline = check_form(page)
        check_policy(page)
        assert "script" not in outline.tags
        assert page.count("<svg") == page.count("<figure>") > 0
        assert page.count(f".{PICTURE} text {{ font") == 1  # the style of pictures is there once
    assert pages[0].count("<svg") < sum(len(one.examples) for one in shop().meetings)


def test_an_example_has_the_text_of_the_user_beside_what_was_executed():
    pair = next(one for one in shop().meetings if (one.loser, one.winner) == ("erase", "erase"))
    shown = job_example(pair.examples["ConcurrentDeleteReadException"], LEVELS[0], shop().workload)
    first, second = shown.transactions
    assert (first.name, second.name, second.statement) == ("erase", "erase_2", "erase")
    assert first.place.startswith("shop.toml:")
    assert first.written == ("DELETE FROM orders WHERE customer = :customer AND day < :today",)
    assert first.values == (":customer = 2", ":today = DATE '2026-01-02'")
    assert first.executed == ("DELETE FROM orders WHERE customer = 2 AND day < DATE '2026-01-02'",)
    assert [table.name for table in shown.tables] == ["orders"]
    page = shop_page()
    for text in (first.executed[0], shown.text):
        assert text.replace("<", "&lt;").replace("'", "&#39;").replace('"', "&#34;") in page
    assert "aborts with ConcurrentDeleteReadException" in shown.picture


def test_a_query_of_the_client_stands_before_its_statement():
    work = read_workload(
        """
ddl = "CREATE TABLE t (id INT, day INT) USING delta"
[jobs.append]
sql = "INSERT INTO t VALUES (:seen, :day)"
let = { seen = "SELECT count(*) FROM t WHERE day = :day" }
parameters = { day = "INT" }
""",
        "let",
    )
    (answer,) = decide_all(work, (protocol(LEVELS[0]),), ("write-serializable",))
    shown = job_example(answer.worst.test, LEVELS[0], work)
    query, statement = shown.transactions[0].written
    assert query == ":seen from SELECT count(*) FROM t WHERE day = :day"
    assert statement == "INSERT INTO t VALUES (:seen, :day)"
    assert [one.partition(" = ")[0] for one in shown.transactions[0].values] == [":day"]
    assert shown.transactions[1].statement == "append"


def test_a_restore_is_of_any_version():
    """Its text has a marker of litmus tests, which no user wrote."""
    work = read_workload(
        """
ddl = "CREATE TABLE t (id INT) USING delta"
[jobs]
back = "RESTORE TABLE t TO VERSION AS OF 3"
add = "INSERT INTO t VALUES (1)"
""",
        "back",
    )
    found = predict_workload(work, LEVELS[0])
    page = prediction_page(found, MADE)
    assert "<code>RESTORE TABLE t TO VERSION AS OF (any earlier version)</code>" in page
    tests = [test for one in found.meetings for test in one.examples.values()]
    shown = [one for test in tests for one in job_example(test, LEVELS[0], work).transactions]
    assert {one.written for one in shown if one.statement == "back"} == {
        ("RESTORE TABLE t TO VERSION AS OF (any earlier version)",)
    }


@pytest.mark.slow
def test_what_a_file_says_is_escaped():
    work = evil_work()
    found = predict_workload(work, LEVELS[0])
    specs = map_levels()
    kept = list(decide_invariants(work, specs))
    answers = list(decide_all(work, specs, PROMISES))
    for page in (
        prediction_page(found, MADE),
        robust_page(answers, {}, MADE),
        invariants_page(kept, {}, MADE),
    ):
        outline = check_form(page)
        check_policy(page)
        assert "script" not in outline.tags
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    page = prediction_page(found, MADE)
    assert ("unknown", "unknown") in cells(page)
    assert ("never", "never") in cells(page)


@pytest.mark.slow
def test_equal_proofs_and_equal_counterexamples_stand_once_on_the_page():
    page = robust_page(list(decide_all(shop().workload, map_levels(), PROMISES)), {}, MADE)
    check_form(page)
    assert page.count("<p>Proved: ") == 2
    assert page.count("<svg") == 2
    two = read_workload(
        "".join(
            f'[tables.{name}]\ncolumns = "id INT"\n[jobs.to_{name}]\n'
            f'sql = "INSERT INTO {name} SELECT count(*) FROM {other}"\n'
            for name, other in (("x", "y"), ("y", "x"))
        ),
        "two",
    )
    answers = list(decide_all(two, map_levels(), PROMISES))
    page = robust_page(answers, {}, MADE)
    check_form(page)
    assert len(answers) == 6
    assert page.count("<svg") == 4
    assert (
        page.count('The smallest counterexample is that of <a href="#write-serializable-delta') == 2
    )
    assert "1 further pattern of statements, with litmus files" in page


def map_levels():
    return tuple(map(protocol, LEVELS))


WORDS = st.sampled_from(["never", "always", "when", "apart", "unknown"])
NAMES = st.lists(st.sampled_from(["a", "b", "a_2", "ab", "c", "d"]), min_size=1, unique=True)


@st.composite
def all_meetings(draw):
    """A prediction for each ordered pair of some statements."""
    names = draw(NAMES)
    found = []
    for loser in names:
        for winner in names:
            word = draw(WORDS)
            other = f"{loser}_2" if winner == loser else winner
            texts = [
                "both have the same :day",
                f"{loser}'s :x is below {other}'s :y",
                f"{other}'s :y equals :z",
            ]
            condition = tuple(draw(st.lists(st.sampled_from(texts), max_size=2, unique=True)))
            shown = ("ConcurrentAppendException",) if word in ("when", "always") else ()
            given = condition if word == "when" else ()
            certain = word == "always" or (word == "when" and draw(st.booleans()))
            why = "time limit" if word == "unknown" else ""
            found.append(PairPrediction(loser, winner, word, given, certain, why=why, shown=shown))
    return found


def test_the_name_of_a_statement_may_end_another_one():
    meeting = PairPrediction("b", "ab", "when", ("ab's :y equals :z", "b's :x is below ab's :y"))
    assert "if ab with :y = :z and with b's :x < ab's :y commits" in meeting_words(meeting)


@given(all_meetings())
def test_folds_are_the_pairs_that_can_abort_each_once(meetings):
    folds = answer_folds(meetings)
    pairs = [(one.loser, one.winner) for one in meetings if one.word not in ("never", "apart")]
    folded = [(one.loser, one.winner) for fold in folds for one in fold.meetings]
    assert sorted(folded) == sorted(pairs)
    assert [fold.number for fold in folds] == [*range(1, len(folds) + 1)]
    for fold in folds:
        every = {(a, b) for a in fold.losers for b in fold.winners}
        assert every == {(one.loser, one.winner) for one in fold.meetings}
        assert len({answer_key(one) for one in fold.meetings}) == 1
        assert "\x00" not in fold.sentence + fold.title
        if len(fold.meetings) == 1:
            assert fold.sentence == meeting_words(fold.meetings[0])
    alike = {(answer_key(fold.meetings[0]), fold.winners) for fold in folds}
    assert len(alike) == len(folds)


@given(all_meetings())
def test_a_cell_of_a_matrix_is_true_of_all_its_pairs(meetings):
    keys = {(one.loser, one.winner): answer_key(one) for one in meetings}
    names = list(dict.fromkeys(one.loser for one in meetings))
    matrix = conflict_matrix(names, lambda a, b: keys[a, b])
    assert sorted(name for row in matrix.rows for name in row) == sorted(names)
    assert sorted(name for column in matrix.columns for name in column) == sorted(names)
    for row in matrix.rows:
        for column in matrix.columns:
            assert len({keys[a, b] for a in row for b in column}) == 1


@pytest.mark.slow
def test_many_jobs_are_folded():
    """Upserts that differ in a literal are one row, and one answer; the page is small."""
    text = 'ddl = "CREATE TABLE t (id INT, n INT) USING delta"\n'
    for k in range(30):
        text += f"""[jobs.upsert{k}]
sql = "MERGE INTO t USING (SELECT :id AS id) AS new ON t.id = new.id WHEN MATCHED THEN UPDATE SET n = {k}"
parameters = {{ id = "INT" }}
"""
    found = predict_workload(read_workload(text, "many"), LEVELS[0])
    assert len(found.meetings) == 900
    page = prediction_page(found, MADE)
    assert len(cells(page)) == 1
    assert (
        "upsert0, upsert1, upsert2 and 27 others × upsert0, upsert1, upsert2 and 27 others" in page
    )
    assert "900 pairs of statements" in page
    assert page.count('<details open="open">') == len(found.meetings[0].examples)
    assert len(page) < 40_000
    check_form(page)


def test_a_wide_matrix_has_signs_that_do_not_depend_on_colour():
    names = [f"j{k}" for k in range(WIDE + 1)]
    meetings = [
        PairPrediction(
            a,
            b,
            "never" if a != b else "when",
            () if a != b else ("both have the same :day",),
            a == b and a != "j0",
            shown=() if a != b else ("ConcurrentAppendException",),
        )
        for a in names
        for b in names
    ]
    page = prediction_page(replace(shop(), meetings=tuple(meetings)), MADE)
    found = cells(page)
    assert len(found) == (WIDE + 1) ** 2
    assert {*found} == {("never", "."), ("sometimes", "A"), ("always", "A*")}
    assert "<code>*</code>: always aborts if a condition on parameters holds (proved)" in page
    assert "<code>A</code>: can abort with ConcurrentAppendException" in page
    check_form(page)
