"""YAML is read with its places; what is no YAML, or too much of it, is refused."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.jobs.projects.yaml_tree import MOST, merge_yaml, read_yaml
from isolitmus.model.errors import LitmusError

KEYS = st.text(st.sampled_from("abc xé-:#"), min_size=1, max_size=5)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=4), st.booleans())
def test_what_is_written_is_read(value, flow):
    text = yaml.safe_dump(value, allow_unicode=True, default_flow_style=flow)
    assert read_yaml(text, "f.yml").plain() == value


def places(found):
    yield found
    inner = found.value if isinstance(found.value, list) else []
    if isinstance(found.value, dict):
        inner = found.value.values()
    for one in inner:
        yield from places(one)


WORDS = st.text("abc", min_size=1, max_size=4)


@given(st.dictionaries(KEYS, WORDS | st.lists(WORDS | st.integers()), min_size=1, max_size=4))
def test_the_place_of_a_text_is_where_it_stands(value):
    text = yaml.safe_dump(value, allow_unicode=True)
    lines = text.split("\n")
    for one in places(read_yaml(text, "f.yml")):
        if isinstance(one.value, str) and one.value.isalpha():
            there = lines[one.location.line - 1][one.location.column - 1 :]
            assert there.strip("'\"").startswith(one.value)


BOMB = "a0: &a0 [x, x]\n" + "".join(
    f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]\n" for k in range(1, 9)
)
REFUSED = {
    "not YAML": ("a: [1", "f.yml:1:6: not valid YAML: did not find expected ',' or ']'"),
    "a tab": (
        "a:\n\tb: 1",
        "f.yml:2:1: not valid YAML: found character that cannot start any token",
    ),
    "two documents": ("a: 1\n---\nb: 2", "f.yml:2:1: not valid YAML: but found another document"),
    "a control character": ("a: 1\nb: \x01", "not valid YAML"),
    "an unknown alias": ("a: *b", "f.yml:1:4: not valid YAML: found undefined alias"),
    "a key twice": ("a: 1\nb: 2\na: 3", "f.yml:3:1: the key 'a' stands twice, here and in line 1"),
    "a tag": ("a: !secret x", "f.yml:1:4: unsupported tag '!secret'; remove it"),
    "an object": (
        "a: !!python/object/apply:os.system [ls]",
        "f.yml:1:4: unsupported tag 'tag:yaml.org,2002:python/object/apply:os.system'; remove it",
    ),
    "a key that is a list": ("? [a]\n: 1", "f.yml:1:3: a key is a list or a mapping"),
    "a date that is none": ("a: 2026-99-01", "f.yml:1:4: '2026-99-01' is not a value of YAML"),
    "a merge of no mapping": ("a: &a 1\nb: {<<: *a}", "f.yml:1:4: << is 1; expected a mapping"),
    "an alias in itself": ("a: &a [*a]", "values are nested more than 100 deep here"),
    "many values by aliases": (BOMB, f"more than {MOST:,} values, with those of its aliases"),
    "deep values": ("[" * 200 + "]" * 200, "nested more than 100 deep"),
    "very deep values": ("[" * 100_000, "f.yml"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_refused_with_its_place(case):
    text, problem = REFUSED[case]
    with pytest.raises(LitmusError) as found:
        read_yaml(text, "f.yml")
    assert problem in str(found.value)
    assert str(found.value).startswith("f.yml")


def test_merged_keys_give_way_to_own_ones():
    text = "base: &base {a: 1, b: 2}\nother: &other {b: 3, c: 4}\nx: {<<: [*base, *other], a: 5}"
    assert read_yaml(text, "f.yml").inner("x").plain() == {"a": 5, "b": 2, "c": 4}


def test_an_empty_file_is_an_empty_mapping(tmp_path):
    (tmp_path / "f.yml").write_text("# nothing\n", "utf-8")
    assert read_yaml(tmp_path / "f.yml", "f.yml").plain() == {}


def test_lists_without_keys_are_appended():
    base, over = (read_yaml(text, "f.yml") for text in ("a: [1]\nb: 1", "a: [2]\nc: 3"))
    assert merge_yaml(base, over).plain() == {"a": [1, 2], "b": 1, "c": 3}
