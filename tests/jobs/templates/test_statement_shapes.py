"""Statements that differ only in literals share formulas, and every answer is as without that."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from isolitmus.jobs.predict.prediction import predict_pair, predict_workload
from isolitmus.jobs.questions.instances import Instances
from isolitmus.jobs.readers.workload_file import read_workload
from isolitmus.jobs.robust.robustness import PROMISES, decide_all
from isolitmus.jobs.templates.instance_frames import SymbolicFrame
from isolitmus.specs import protocol

TABLE = """
ddl = [
  "CREATE TABLE t (id INT, part INT, day DATE, kind STRING, x DECIMAL(9,2)) USING delta \
PARTITIONED BY (part, kind)",
  "CREATE TABLE s (id INT, kind STRING) USING delta",
]
"""
TEMPLATES = (
    "DELETE FROM t WHERE part = {a}",
    "DELETE FROM t WHERE part = {a} AND id <> {b}",
    "DELETE FROM t WHERE part IN ({a}, {b}) AND kind <> '{s}'",
    "DELETE FROM t WHERE part = {a} OR part = {b}",
    "DELETE FROM t WHERE part > {a} AND part < {b}",
    "DELETE FROM t WHERE kind LIKE '{s}%'",
    "DELETE FROM t WHERE id % 3 = {a} AND part * {b} > :k",
    "DELETE FROM t WHERE day < DATE '20{c}-01-01' AND kind = '{s}'",
    "DELETE FROM t WHERE coalesce(part, {a}) = {b}",
    "DELETE FROM t WHERE x > {a}.5 AND part = :k",
    "UPDATE t SET x = x + {a}, kind = '{s}' WHERE kind = '{u}'",
    "UPDATE t SET part = {a} WHERE part = {b}",
    "UPDATE t SET part = CASE WHEN id > {a} THEN {b} ELSE part END WHERE kind = '{s}'",
    "INSERT INTO t VALUES (:k, {a}, DATE '20{c}-01-01', '{s}', {b})",
    "INSERT INTO t SELECT count(*), {a}, DATE '20{c}-01-01', '{s}', 0 FROM t WHERE part = {b}",
    "INSERT INTO t REPLACE WHERE part = {a} SELECT id, {a}, day, kind, x FROM t WHERE part = {a}",
    (
        "MERGE INTO t USING (SELECT :k AS id, {a} AS part) AS n ON t.id = n.id AND t.part = {a}"
        " WHEN MATCHED AND t.kind = '{s}' THEN UPDATE SET x = {b}"
        " WHEN NOT MATCHED THEN INSERT (id, part, day, kind, x) VALUES (n.id, n.part, NULL, '{u}', {b})"
    ),
    "MERGE INTO t USING s ON t.id = s.id AND t.part = {a} WHEN MATCHED THEN DELETE",
    "OPTIMIZE t WHERE part = {a}",
)
LITERALS = st.fixed_dictionaries(
    {
        "a": st.integers(0, 3),
        "b": st.integers(0, 3),
        "c": st.integers(24, 27),
        "s": st.sampled_from(("a", "b", "ab", "m")),
        "u": st.sampled_from(("a", "b", "z")),
    }
)


def job(name, sql):
    names = "k" * (":k" in sql)
    parameters = ", ".join(f'{p} = "INT"' for p in names)
    return f'[jobs.{name}]\nsql = "{sql}"\nparameters = {{ {parameters} }}\n'


def jobs(*statements):
    text = TABLE + "".join(job(f"j{k}", sql) for k, sql in enumerate(statements))
    return read_workload(text, "drawn")


def formulas(instances, under, loser, winner):
    """All that a pair's question is made of, with names of our own."""
    roles = [instances.role(one, name) for one, name in ((winner, "winner"), (loser, "loser"))]
    frame = SymbolicFrame([role.instance for role in roles], alone=True)
    stops = frame.stops(under, loser=1)
    said = [role.instance.busy for role in roles] + [role.domain for role in roles]
    values = [one for role in roles for one in (*role.terms.bounds, *role.terms.usual)]
    return [str(one) for one in (*stops, *frame.given, *said, *values)]


@pytest.mark.slow
@settings(max_examples=40)
@given(st.sampled_from(TEMPLATES), st.sampled_from(TEMPLATES), LITERALS, LITERALS)
@example(TEMPLATES[0], TEMPLATES[4], {"a": 0, "b": 1, "c": 24, "s": "a", "u": "b"},
         {"a": 1, "b": 0, "c": 24, "s": "a", "u": "b"})  # fmt: skip
def test_statements_of_one_shape_have_the_same_formulas(template, other, some, more):
    """Literal by literal: the formulas have unknowns in their places."""
    work = jobs(template.format(**some), template.format(**more), other.format(**some))
    one, two, three = work.statements
    instances = Instances(work)
    under = protocol("delta-write-serializable")
    if instances.shape(one).key == instances.shape(two).key:
        for pair in ((0, 1), (1, 0)):
            asked = [[(one, three)[k] for k in pair], [(two, three)[k] for k in pair]]
            assert formulas(instances, under, *asked[0]) == formulas(instances, under, *asked[1])


def test_shapes_are_shared_where_only_literals_differ():
    """How many are: else the law above compares nothing."""
    some = {"a": 1, "b": 2, "c": 24, "s": "a", "u": "b"}
    more = {"a": 2, "b": 3, "c": 26, "s": "b", "u": "z"}
    alone = []
    for template in TEMPLATES:
        work = jobs(template.format(**some), template.format(**more))
        one, two = work.statements
        if Instances(work).alike(one) == 1:
            alone.append(template)
        assert "{" not in template or Instances(work).kind(one) != Instances(work).kind(two)
    # a pattern and a factor decide the form of their formulas
    assert alone == [TEMPLATES[5], TEMPLATES[6]]


def answers(pairs):
    return [
        (one.loser, one.winner, one.word, one.condition, one.certain, one.perhaps,
         dict(one.retries), {name: len(test.init) for name, test in one.examples.items()})
        for one in pairs
    ]  # fmt: skip


@pytest.mark.slow
@settings(max_examples=6)
@given(
    st.lists(st.sampled_from(TEMPLATES), min_size=2, max_size=2, unique=True),
    st.lists(LITERALS, min_size=2, max_size=3),
    st.sampled_from(("delta-serializable", "delta-write-serializable")),
)
def test_predictions_are_those_of_each_pair_alone(templates, literals, under):
    work = jobs(*(template.format(**some) for some in literals for template in templates))
    shared = predict_workload(work, under).meetings
    alone = [
        predict_pair(Instances(work), loser, winner, under)
        for loser in work.statements
        for winner in work.statements
    ]
    assert answers(shared) == answers(alone)


@pytest.mark.slow
@settings(max_examples=5)
@given(
    st.lists(st.sampled_from(TEMPLATES), min_size=2, max_size=2, unique=True),
    st.lists(LITERALS, min_size=2, max_size=2),
)
def test_robustness_is_decided_as_without_shapes(templates, literals):
    work = jobs(*(template.format(**some) for some in literals for template in templates))
    under = (protocol("delta-write-serializable"),)

    def decided():
        return [
            (one.word, dict(one.lemmas), one.why, [c.danger.names for c in one.counterexamples])
            for one in decide_all(work, under, PROMISES)
        ]

    shared = decided()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Instances, "alike", lambda *_: 1)
        assert decided() == shared


@pytest.mark.slow
def test_processes_share_no_less():
    """An example does not depend on which pairs a process was asked about before."""
    texts = [TEMPLATES[k].format(a=1, b=k, c=24, s="abc"[k % 3], u="b") for k in (0, 1, 10, 13)]
    work = jobs(*texts, *(re.sub(r"\b1\b", "2", text).replace("'a'", "'b'") for text in texts))
    one, two = (predict_workload(work, "delta-serializable", processes=k) for k in (1, 2))
    assert one.to_json() | {"seconds": 0} == two.to_json() | {"seconds": 0}
