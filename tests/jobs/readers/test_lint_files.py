"""Files of the linter, damaged and drawn: settings, comments, baselines."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.jobs.lint_rule import RULES, chosen_codes, codes_of
from isolitmus.jobs.readers.baseline_file import BaselineEntry, baseline_text, read_baseline
from isolitmus.jobs.readers.ignore_comments import (
    IgnoreComment,
    concerned_statement,
    read_ignore_comments,
)
from isolitmus.jobs.readers.lint_settings import (
    default_root,
    find_settings,
    path_matches,
    read_settings,
)
from isolitmus.model.assumption import Place
from isolitmus.model.errors import IsolitmusError

SETTINGS = """\
paths = ["models"]
level = "Serializable"
select = ["ISO2", "ISO301"]
extend-select = ["ISO302"]
ignore = ["ISO201"]
strict = true
baseline = "b.json"
ddl = "t.sql"
tables = ["a=x/y"]
exclude = ["**/old"]
[per-file-ignores]
"a/*.sql" = ["ISO2"]
[schedule]
apart = [["a", "b"]]
shared = { today = "DATE" }
distinct = ["day"]
"""


@st.composite
def damaged(draw, text):
    """A text with a few spans replaced."""
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        put = draw(st.sampled_from(["", "[", "]", '"', "=", "\0", "1", "{}", "\n", "é", "ISO9"]))
        text = text[:start] + put + text[end:]
    return text


def refused(read, *args):
    """What a reader gives, or the sentence with which it refuses."""
    try:
        return read(*args)
    except IsolitmusError as error:
        return str(error)


@given(damaged(SETTINGS))
def test_damaged_settings_are_read_or_refused(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("s") / "isolitmus.toml"
    path.write_text(text, "utf-8")
    found = refused(read_settings, path)
    if isinstance(found, str):
        assert "isolitmus.toml" in found
    else:
        assert found.codes <= set(RULES)
        assert found.root == path.parent


ENTRY = BaselineEntry("0123456789abcdef", "ISO201", ("a.sql", "b.sql"), "a and b", 2)
ENTRIES = st.lists(
    st.builds(
        BaselineEntry,
        st.from_regex("[0-9a-f]{16}", fullmatch=True),
        st.sampled_from(list(RULES)),
        st.lists(st.text()).map(tuple),
        st.text(),
        st.integers(1, 9),
    ),
    unique_by=lambda one: one.fingerprint,
)


@given(ENTRIES)
def test_a_baseline_is_read_as_it_was_written(tmp_path_factory, entries):
    path = tmp_path_factory.mktemp("b") / "b.json"
    path.write_text(baseline_text(entries), "utf-8")
    assert read_baseline(path) == {one.fingerprint: one for one in entries}
    assert baseline_text(read_baseline(path).values()) == path.read_text("utf-8")


@given(damaged(baseline_text([ENTRY])))
def test_a_damaged_baseline_is_read_or_refused(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("b") / "b.json"
    path.write_text(text, "utf-8")
    found = refused(read_baseline, path)
    if isinstance(found, str):
        assert str(path) in found
    else:
        assert all(one.code in RULES for one in found.values())


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=4)


@given(st.fixed_dictionaries(dict.fromkeys(("fingerprint", "rule", "files", "title"), JSON)))
def test_a_baseline_with_other_values_is_refused(tmp_path_factory, finding):
    path = tmp_path_factory.mktemp("b") / "b.json"
    path.write_text(json.dumps({"isolitmus_baseline": 1, "findings": [finding]}), "utf-8")
    with pytest.raises(IsolitmusError, match="finding 1: "):
        read_baseline(path)


WORDS = st.sampled_from(
    ["--", "/*", "*/", "#", "isolitmus:", "ignore", "ignore-file", "[", "ISO201", "]", "\n", "'"]
)


@given(st.lists(WORDS | st.text(max_size=3), max_size=12).map(" ".join), st.booleans())
def test_comments_of_any_text_have_a_place_in_it(text, toml):
    label = "a.toml" if toml else "a.sql"
    lines = text.split("\n")
    found = list(read_ignore_comments(text, label))
    for one in found:
        assert one.place.file == label
        assert lines[one.place.line - 1][one.place.column - 1 :].startswith("isolitmus:")
        assert one.selectors or one.problems
    assert all(codes_of(selector) for one in found for selector in one.selectors)


@given(st.integers(1, 9), st.booleans(), st.lists(st.integers(1, 3), min_size=1, max_size=3))
def test_a_comment_concerns_the_statement_beside_or_after_it(line, alone, sizes):
    places, start = [], 1
    for size in sizes:
        places.append(Place("a.sql", start, 1, start + size - 1))
        start += size + 1
    comment = IgnoreComment(Place("a.sql", line, 1, line), ("ISO201",), file=False, alone=alone)
    found = concerned_statement(comment, places)
    assert len(found) <= 1
    for one in found:
        assert one.line <= line <= one.end_line or (alone and line < one.line)
        assert not any(line < other.line < one.line for other in places)


SELECTORS = st.lists(st.sampled_from([*RULES, "ISO", "ISO2", "ISO20", "ISO3", "ALL"]))


@given(SELECTORS, SELECTORS, SELECTORS)
def test_selecting_more_gives_more_and_ignoring_more_gives_less(select, extend, ignore):
    found = chosen_codes(select, extend, ignore)
    assert found <= chosen_codes(select, [*extend, "ISO201"], ignore)
    assert found >= chosen_codes(select, extend, [*ignore, "ISO201"])
    assert chosen_codes(select, extend, []) == {
        code for one in (*select, *extend) for code in codes_of(one)
    }


def test_the_default_is_what_the_rules_say():
    assert chosen_codes(None, (), ()) == {code for code, rule in RULES.items() if rule.default}


@pytest.mark.parametrize(
    ("pattern", "path", "does"),
    [
        ("a.sql", "x/a.sql", True),
        ("x", "x/y/a.sql", True),
        ("x/*.sql", "x/y/a.sql", False),
        ("x/**", "x/y/a.sql", True),
        ("**/y", "x/y/a.sql", True),
        ("y/*", "x/y/a.sql", False),
        ("?.sql", "ab.sql", False),
        ("a.sq", "a.sql", False),
        ("[a].sql", "a.sql", False),
    ],
)
def test_patterns(pattern, path, does):
    assert path_matches(pattern, path) is does


def test_the_nearest_settings_win_up_to_a_repository(tmp_path):
    inner = tmp_path / "repo" / "models" / "x"
    inner.mkdir(parents=True)
    outer = tmp_path / "isolitmus.toml"
    outer.write_text("strict = true", "utf-8")
    assert find_settings(inner) == outer.resolve()
    (tmp_path / "repo" / ".git").mkdir()
    assert find_settings(inner) is None
    assert default_root(inner) == (tmp_path / "repo").resolve()
    common = tmp_path / "repo" / "pyproject.toml"
    common.write_text("[project]\nname = 'x'", "utf-8")
    assert find_settings(inner) is None
    common.write_text("[tool.isolitmus]\nddl = 'd.sql'", "utf-8")
    assert find_settings(inner) == common.resolve()
    assert read_settings(common).ddl == common.resolve().parent / "d.sql"
    own = tmp_path / "repo" / "models" / "isolitmus.toml"
    own.write_text("", "utf-8")
    assert find_settings(inner / "a.sql") == own.resolve()
    assert read_settings(own).root == Path(own.resolve().parent)
