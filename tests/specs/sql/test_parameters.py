"""Literals that stand for parameters are found again in a bound text."""

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from isolitmus.specs.sql.parameters import bind_text, bound_literals, spark_literal

TEXTS = [
    "INSERT INTO t VALUES (:a, :b, :a)",
    "UPDATE t SET x = :a - 1, s = ':b' WHERE y = -:b OR s = :a",
    "MERGE INTO t USING (SELECT :a AS a, :b AS b) AS n ON t.x = n.a WHEN NOT MATCHED THEN INSERT *",
    "DELETE FROM t WHERE day < current_date() AND x = :a AND s <> 'it''s :a' AND `:b` = :b",
]
VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(allow_nan=False)
    | st.decimals(-9, 9, places=2)
    | st.dates()
    | st.datetimes()
    | st.text("a',:b\\ )(", max_size=6)
)


@given(st.sampled_from(TEXTS), VALUES, VALUES, st.dates())
@example(TEXTS[0], "', :b, '", "(", date(2026, 1, 1))
@example(TEXTS[1], Decimal("-1.50"), -1, date(2026, 1, 1))
def test_literals_are_those_that_were_bound(sql, a, b, today):
    values = {"a": a, "b": b, "current_date()": today}
    bound = bind_text(sql, values)
    found = bound_literals(sql, bound)
    assert found.keys() >= {"a", "b"}
    assert bind_with(sql, found) == bound
    if not any(isinstance(one, str) for one in (a, b)):
        assert found == {name: spark_literal(values[name]) for name in found}


def bind_with(sql, literals):
    """Return the text with literals, bound one by one as text."""
    marks = {name: f"<{k}>" for k, name in enumerate(literals)}
    text = bind_text(sql, marks)
    for name, mark in marks.items():
        text = text.replace(spark_literal(mark), literals[name])
    return text


@pytest.mark.parametrize(
    "bound", ["INSERT INTO t VALUES (1, 2, 3)", "INSERT INTO t VALUES (1, x, 1)"]
)
def test_another_text_has_no_literals(bound):
    assert bound_literals(TEXTS[0], bound) is None


def test_a_parameter_that_stays_has_no_literal():
    assert bound_literals(TEXTS[0], "INSERT INTO t VALUES (:a, 2, :a)") == {"b": "2"}
