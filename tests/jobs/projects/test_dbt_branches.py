"""Which branch compiled_code is, and the other branch that follows from the template."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Environment, TemplateSyntaxError

from isolitmus.jobs.projects.dbt_branches import find_branches, render_hook
from isolitmus.jobs.projects.dbt_manifest import DbtManifest, DbtNode, DbtSource


def project(raw, compiled, *, macros=None, calls=(), ctes=(), others=(), **more):
    """Return a model with its template and compiled code, in a project."""
    given = {
        "unique_id": "model.p.m", "resource_type": "model", "name": "m", "package_name": "p",
        "schema": "dev", "relation_name": "dev.m", "raw_code": raw, "compiled_code": compiled,
        "depends_on": {"nodes": [one.unique_id for one in others], "macros": list(calls)},
        "extra_ctes": [{"id": key, "sql": sql} for key, sql in ctes],
    }  # fmt: skip
    node = msgspec.convert(given | more, DbtNode)
    source = DbtSource("source.p.raw.e", "raw", "e", relation_name="raw.e")
    nodes = {one.unique_id: one for one in (*others, node)}
    sources = {source.unique_id: source}
    return node, DbtManifest("manifest.json", "p", "spark", nodes, sources, macros or {})


def branches(raw, compiled, **more):
    return find_branches(*project(raw, compiled, **more))


def words(text):
    return None if text is None else " ".join(text.split())


RAW = """{{ config(materialized='incremental') }}
select * from {{ source('raw', 'e') }}
{%- if is_incremental() %} where day > (select max(day) from {{ this }}) {% else %} where day > 3 {% endif %}"""
FIRST = "select * from raw.e where day > 3"
NEXT = "select * from raw.e where day > (select max(day) from dev.m)"


@pytest.mark.parametrize("compiled", [FIRST, NEXT, f"\n\n{FIRST}\n", NEXT.replace(" ", "\n  ")])
def test_both_branches_follow_from_either(compiled):
    found = branches(RAW, compiled)
    assert (words(found.first), words(found.incremental)) == (FIRST, NEXT)
    assert not found.problem
    assert not found.varies


@pytest.mark.parametrize("other", [True, False])
def test_a_negated_condition(other):
    raw = "select 1 {% if not is_incremental() %}as first{% else %}as next{% endif %}"
    found = branches(raw, "select 1 as first" if other else "select 1 as next")
    assert (found.first, found.incremental) == ("select 1 as first", "select 1 as next")


def test_without_is_incremental_both_branches_are_the_same():
    found = branches("select * from {{ source('raw', 'e') }}", "select * from raw.e")
    assert found[:2] == ("select * from raw.e",) * 2


UNKNOWN = {
    "other logic": (
        "select 1 {% if is_incremental() and var('x') %}as a{% endif %}",
        "select 1 ",
    ),
    "a variable": ("{% set now = is_incremental() %}select {{ now }}", "select True"),
    "a macro in the block": (
        "select 1 {% if is_incremental() %}{{ mine() }}{% endif %}",
        "select 1 ",
    ),
    "code of an older template": ("select 2 {% if is_incremental() %}as a{% endif %}", "select 1 "),
    "a template that does not parse": ("select {% if is_incremental() %}", "select 1"),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_a_branch_that_is_not_determined_is_unknown(case):
    found = branches(*UNKNOWN[case])
    assert found.incremental is None
    assert found.problem


def test_is_incremental_may_be_called_by_a_macro():
    macros = {"macro.p.mine": ("macro.p.deep",), "macro.p.deep": ("macro.dbt.is_incremental",)}
    found = branches("select {{ mine() }}", "select 1", macros=macros, calls=["macro.p.mine"])
    assert found.incremental is None
    assert "other logic" in found.problem


def test_a_python_model_and_code_that_is_not_compiled():
    assert "python models are unsupported" in branches("", "", language="python").problem
    assert branches("select 1", None).problem == "it has no compiled_code; run dbt compile"


def test_a_compared_variable_is_a_parameter_and_any_other_value_is_told():
    raw = "select '{{ var('kind') }}' as kind from {{ source('raw', 'e') }} where day = '{{ var('day') }}'"
    found = branches(raw, "select 'new' as kind from raw.e where day = '2026-01-01'")
    assert found.incremental == "select 'new' as kind from raw.e where day = :day"
    assert found.varies


def test_queries_of_ephemeral_models_stay_before_the_code():
    other = DbtNode(
        "model.p.o", "model", "o", package_name="p", config={"materialized": "ephemeral"}
    )
    raw = "select * from {{ ref('o') }} {% if is_incremental() %}where 1 = 2{% endif %}"
    ctes = [("model.p.o", " __dbt__cte__o as (\nselect 1\n)")]
    compiled = "with __dbt__cte__o as (\nselect 1\n) select * from __dbt__cte__o "
    found = branches(raw, compiled, ctes=ctes, others=[other])
    assert found.incremental == f"{compiled}where 1 = 2"
    joined = (
        "with __dbt__cte__o as (\nselect 1\n), x as (select * from __dbt__cte__o) select * from x "
    )
    found = branches(
        "with x as (select * from {{ ref('o') }}) select * from x {% if is_incremental() %}limit 1{% endif %}",
        joined, ctes=ctes, others=[other],
    )  # fmt: skip
    assert words(found.incremental) == words(f"{joined}limit 1")


HOOKS = {
    "optimize {{ this }}": "optimize dev.m",
    "optimize {{ this.schema }}.{{ this.name }}": "optimize dev.m",
    "insert into {{ target.schema }}.log select 1": "insert into dev.log select 1",
    "select * from {{ source('raw', 'e') }}": "select * from raw.e",
    "{{ grant() }}": None,
    "{% if target.name == 'dev' %}select 1{% endif %}": None,
    "{{": None,
}


@pytest.mark.parametrize("template", HOOKS)
def test_hooks_have_the_names_that_the_manifest_has(template):
    assert render_hook(template, *project("select 1", "select 1")) == HOOKS[template]


PIECES = st.lists(
    st.sampled_from(
        ["select ", "a, ", "\n", "where x ", "{{ mine() }}", "{{ this }}", "{% if is_incremental() %}",
         "{% else %}", "{% endif %}", "{% if not is_incremental() %}", "'s'", "{# note #}"]
    ),
    max_size=9,
)  # fmt: skip


@given(PIECES, st.sampled_from([True, False]))
def test_a_branch_that_is_found_is_the_compiled_one(pieces, incremental):
    """A template's own rendering is found again as one of its branches, or nothing is."""
    raw = "".join(pieces)
    try:
        template = Environment(autoescape=False).from_string(raw)
    except TemplateSyntaxError:
        assert find_branches(*project(raw, "select 1")) is not None
        return
    values = {"this": "dev.m", "mine": lambda: "1", "is_incremental": lambda: incremental}
    compiled = template.render(**values)
    found = branches(raw, compiled)
    mine = found.incremental if incremental else found.first
    assert mine is None or words(mine) == words(compiled)
    values["is_incremental"] = lambda: not incremental
    other = found.first if incremental else found.incremental
    assert other is None or words(other) == words(template.render(**values))
