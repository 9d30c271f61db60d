"""The reader of specs: what it reads, and what it says to what it cannot read."""

import re

import pytest
from case_checks import check_cases
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.model.errors import SpecError, UnknownName
from isolitmus.model.spec import Binary, Binder, Bracket, Label, Name, Unary
from isolitmus.model.vocabulary import BINDERS, RELATIONS, SETS, relations_of, sets_of
from isolitmus.specs.files import spec_catalogue
from isolitmus.specs.files.spec_reader import read_spec
from isolitmus.specs.language.printer import spec_text

wr, ww, rw, so = map(Name, ["wr", "ww", "rw", "so"])


LACKING = {
    "delta": (*relations_of("delta-rs"), *sets_of("delta-rs")),
    "delta-rs": relations_of("delta-rows"),
}
"""Names of the vocabulary that a format does not have."""


def expr_of(text, form="delta"):
    return read_spec(f'"T" format {form} empty {text} as x', "t.cat").axioms[0].expr


def sets(form):
    return st.recursive(
        st.sampled_from(sorted(SETS.keys() - {*LACKING[form]})).map(Name),
        lambda inner: st.one_of(
            inner.map(lambda e: Unary("~", e)),
            st.builds(Binary, st.sampled_from("|&\\"), inner, inner),
        ),
        max_leaves=4,
    )


def relations(form):
    names = sorted(RELATIONS.keys() - {*LACKING[form]})
    return st.recursive(
        st.one_of(st.sampled_from(names).map(Name), sets(form).map(Bracket)),
        lambda inner: st.one_of(
            st.builds(Unary, st.sampled_from(["+", "*", "?", "^-1"]), inner),
            st.builds(Binary, st.sampled_from("|;&\\"), inner, inner),
        ),
        max_leaves=8,
    )


@pytest.mark.slow
@pytest.mark.parametrize("form", LACKING)
@given(st.data())
def test_an_expression_reads_as_it_prints(form, data):
    expr = data.draw(relations(form))
    assert expr_of(str(expr), form) == expr


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("wr | ww ; rw \\ so & log", "(wr | (ww ; (rw \\ (so & log))))"),
        ("log & so \\ rw ; ww | wr", "((((log & so) \\ rw) ; ww) | wr)"),
        ("wr \\ ww \\ rw", "((wr \\ ww) \\ rw)"),
        ("wr ; ww+", "(wr ; ww+)"),
        ("(wr ; ww)+", "(wr ; ww)+"),
        ("wr & ww?^-1", "(wr & ww?^-1)"),
        ("[~Blind & Writer] ; wr", "([(~Blind & Writer)] ; wr)"),
        ("[~(Blind | Writer)]", "[~(Blind | Writer)]"),
        ("wr(* a comment *)|(* and * another *)ww*", "(wr | ww*)"),
    ],
)
def test_precedence(text, meaning):
    assert str(expr_of(text)) == meaning


def test_every_part_of_a_spec():
    spec = read_spec(
        """"My level"
(* Me, a paper
   of mine *)
let depends = wr | ww   (* used *)
let unused-one = log
let Quiet = Empty \\ ChangesData
with ww from versions
acyclic depends as some-order
irreflexive depends+ ; rw? as ConcurrentAppendException
empty [Quiet] ; depends as quiet
show Quiet as no-op
""",
        "mine",
    )
    assert spec.name == "mine"
    assert spec.title == "My level"
    assert spec.source == "Me, a paper of mine"
    assert [a.name for a in spec.axioms] == ["some-order", "ConcurrentAppendException", "quiet"]
    assert [a.test for a in spec.axioms] == ["acyclic", "irreflexive", "empty"]
    assert list(spec.definitions) == ["depends", "unused-one", "Quiet"]
    assert spec.definitions["depends"] == Binary("|", wr, ww)
    assert spec.binders == (Binder("ww", "versions"),)
    assert spec.labels == (Label(Name("Quiet"), "no-op"),)
    assert spec.needs == {"wr", "ww", "rw", "Empty", "ChangesData"}


AXIOM = "acyclic wr as x"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"A"\nacyclic so | wx as s', "2:14: unknown relation 'wx'; did you mean 'wr'?"),
        ('"A" empty [Riter] ; wr as s', "1:12: unknown set 'Riter'; did you mean 'Writer'?"),
        ('"A" acyclic add-meets-reads as s', "1:13: unknown relation 'add-meets-reads'; did you mean 'adds-meets-reads'?"),
        ('"A" acyclic wr | Writer as x', "1:18: type relation expected, set found: Writer"),
        ('"A" given Mine "who" empty [Mien] ; wr as x', "1:29: unknown set 'Mien'; did you mean 'Mine'?"),
        ('"A" given Writer "who" empty wr as x', "1:11: 'Writer' is a base set; define another name"),
        ('"A" given Mine "who" given Mine "who" empty wr as x', "1:28: 'Mine' is already defined at t.cat:1"),
        ('"A" given Mine "who" let Mine = Writer empty wr as x', "1:26: 'Mine' is already defined at t.cat:1"),
        ('"A" given mine "who" empty wr as x', "1:11: expected a name with a capital, found 'mine'"),
        ('"A" given Mine empty wr as x', "1:16: expected a string in double quotes, found 'empty'"),
        ('"A" empty [Writers] ; wr as x given Writers "who"', "1:12: unknown set 'Writers'; did you mean 'Writer'?"),
        ('"A" acyclic Writer+ as x', "1:13: type relation expected, set found: Writer"),
        ('"A" acyclic Writer ; wr as x', "1:13: type relation expected, set found: Writer"),
        ('"A" acyclic Writer as x', "1:13: type relation expected, set found: Writer"),
        ('"A" empty [wr | ww] as x', "1:12: type set expected, relation found: (wr | ww)"),
        ('"A" empty ~wr as x', "1:12: type set expected, relation found: wr"),
        ('"A" empty [Writer & wr] as x', "1:21: type set expected, relation found: wr"),
        ('"A" show so as x', "1:10: type set expected, relation found: so"),
        ('"A" let Foo = wr', "1:15: type set expected, relation found: wr"),
        ('"A" let foo = Writer', "1:15: type relation expected, set found: Writer"),
        ('"A" let wr = so', "1:9: 'wr' is a base relation; define another name"),
        ('"A"\nlet a = wr\nlet a = so', "3:5: 'a' is already defined at t.cat:2"),
        ('"A" acyclic late as x let late = wr', "1:13: 'late' is used before its let ends; move the let up"),
        ('"A" let deep = wr ; deep', "1:21: 'deep' is used before its let ends; move the let up"),
        ('"A" with ww from version', "1:18: unknown orders 'version'; did you mean 'versions'?"),
        ('"A" with co from versions', "1:10: 'versions' binds 'ww', not 'co'"),
        ('"A" with vis from snapshots', "1:19: 'vis from snapshots' wants 'with co from linearisations' before it"),
        ('"A" with ww from co', "1:18: 'ww from co' wants 'with co from linearisations' before it"),
        ('"A" with ww from versions with co from linearisations with ww from co', "1:68: 'ww' is bound from versions already"),
        ('"A" with ww from versions of so', "1:18: 'of' follows linearisations only, not versions"),
        ('"A" with co from linearisations of Writer', "1:36: type relation expected, set found: Writer"),
        ('"A" with co from linearisations of wx', "1:36: unknown relation 'wx'; did you mean 'wr'?"),
        ('"A" include "stdlb.cat"', "1:13: no file 'stdlb.cat' to include; did you mean 'stdlib.cat'?"),
        (AXIOM, "1:1: a spec starts with its title in double quotes"),
        ("Title " + AXIOM, "1:1: expected a string in double quotes or a statement, found 'Title'"),
        ('"A" let a = wr', "1:1: a spec has at least one axiom: acyclic, irreflexive or empty … as NAME"),
        ('"A" acyclic wr', "1:15: the text ends where an operator or 'as NAME' was expected"),
        ('"A" acyclic wr as', "1:18: the text ends where a name was expected"),
        ('"A" slient wr as x ' + AXIOM, "1:5: expected a statement, found 'slient'; did you mean 'silent'?"),
        ('"A" empty wr as x slient ww as y', "1:19: expected a statement, found 'slient'; did you mean 'silent'?"),
        ('"A" runtime "14.9" ' + AXIOM, "1:13: no runtime '14.9'; known: 13.3, 14.1-preview, 14.1-preview-photon, 14.2, 14.2-photon, 14.3, 14.3-photon"),
        ('"A" runtime "14.2" runtime "14.3" ' + AXIOM, "1:28: the runtime is 14.2 already; a spec has one"),
        ('"A" runtime wr ' + AXIOM, "1:13: expected a string in double quotes, found 'wr'"),
        ('"A" at-mots "x" ' + AXIOM, "1:5: expected a statement, found 'at-mots'; did you mean 'at-most'?"),
        ('"A" silent wr as x', "1:1: a spec has at least one axiom: acyclic, irreflexive or empty … as NAME"),
        ('"A" silent Writer as x ' + AXIOM, "1:12: type relation expected, set found: Writer"),
        ('"A" silent wx as x ' + AXIOM, "1:12: unknown relation 'wx'; did you mean 'wr'?"),
        ('"A" silent wr ' + AXIOM, "1:15: expected an operator or 'as NAME', found 'acyclic'"),
        ('"A" acyclic as x', "1:13: expected an expression, found 'as'"),
        ('"A" acyclic wr ww as x', "1:16: expected an operator or 'as NAME', found 'ww'"),
        ('"A" acyclic (wr as x', "1:17: expected an operator or ')', found 'as'"),
        ('"A" acyclic wr) as x', "1:15: expected an operator or 'as NAME', found ')'"),
        ('"A" empty [Writer as x', "1:19: expected an operator or ']', found 'as'"),
        ('"A" let a wr', "1:11: expected '=', found 'wr'"),
        ('"A" with Ww from versions', "1:10: expected a name in lower case, found 'Ww'"),
        ('"A" with ww versions', "1:13: expected 'from', found 'versions'"),
        ('"A" include stdlib', "1:13: expected a string in double quotes, found 'stdlib'"),
        ('"A" wr', "1:5: expected a statement, found 'wr'"),
        ('"A" acyclic wr^+ as x', "1:15: no part of a spec: '^'"),
        ('"A', "1:1: this text in quotes is never closed"),
        ('"A" (* foo', "1:5: this comment is never closed; end it with *)"),
        ('"A" (* (* *) *)', "1:8: a comment inside a comment; close the outer one first"),
    ],
)  # fmt: skip
def test_errors_say_where_and_what_would_have_been_right(text, message):
    with pytest.raises(SpecError) as error:
        read_spec(text, "t.cat")
    first, line, caret = str(error.value).split("\n")
    assert first == f"t.cat:{message}"
    row, column = map(int, message.split(":")[:2])
    assert line == "  " + text.split("\n")[row - 1]
    assert caret == " " * (column + 1) + "^"


@pytest.mark.parametrize(
    ("text", "column", "feature"),
    [
        ("let rec r = wr", 9, "'rec' is herd's cat but not in this fragment (recursive definitions)"),
        ("let r = wr and s = ww", 16, "'and' is herd's cat but not in this fragment (recursive definitions)"),
        ("let f x = wr", 11, "functions are herd's cat but not in this fragment"),
        ("let f(x) = wr", 10, "functions are herd's cat but not in this fragment"),
        ("acyclic domain(wr) as x", 19, "functions are herd's cat but not in this fragment"),
        ("procedure p() = end", 5, "'procedure' is herd's cat but not in this fragment (procedures)"),
        ("call p()", 5, "'call' is herd's cat but not in this fragment (procedures)"),
        ("let a = match wr with end", 13, "'match' is herd's cat but not in this fragment (matching)"),
        ("flag empty wr as x", 5, "'flag' is herd's cat but not in this fragment (flagged tests)"),
        ("undefined_unless empty wr as x", 5, "'undefined_unless' is herd's cat but not in this fragment (undefined behaviour)"),
        ("~empty wr as x", 5, "negated tests are herd's cat but not in this fragment"),
        ("acyclic 0 as x", 13, "'0' is herd's cat but not in this fragment (the empty relation)"),
        ("acyclic wr & (Writer * Reader) as x", 28, "cartesian products are herd's cat but not in this fragment"),
        ("acyclic _ as x", 13, "'_' is herd's cat but not in this fragment (the set of everything; write S | ~S)"),
        ("acyclic wr \\ id as x", 18, "'id' is herd's cat but not in this fragment (the identity; write [S] of a set S)"),
        ("let S = {}", 13, "'{' is herd's cat but not in this fragment (enumerated sets)"),
    ],
)  # fmt: skip
def test_what_herd_has_and_we_lack_is_refused_by_name(text, column, feature):
    with pytest.raises(SpecError) as error:
        read_spec(f'"A" {text}', "t.cat")
    assert str(error.value).split("\n")[0] == f"t.cat:1:{column}: {feature}"


def test_include_looks_beside_the_file_then_in_the_package(tmp_path):
    (tmp_path / "mine.cat").write_text('"Mine" include "parts.cat" acyclic part | depends as x')
    (tmp_path / "parts.cat").write_text('include "stdlib.cat"\nlet part = conflict \\ so')
    spec = spec_catalogue.spec(str(tmp_path / "mine.cat"))
    assert spec.name == "mine"
    assert list(spec.definitions) == ["conflict", "depends", "part"]
    assert spec.needs == {"wr", "ww", "rw", "so"}


def test_an_error_in_an_included_file_names_that_file(tmp_path):
    (tmp_path / "mine.cat").write_text('"Mine" include "parts.cat" acyclic part as x')
    (tmp_path / "parts.cat").write_text("(* parts *)\nlet part = wx")
    with pytest.raises(SpecError) as error:
        spec_catalogue.level(str(tmp_path / "mine.cat"))
    assert str(error.value).startswith(
        f"{tmp_path / 'mine.cat'}:1:16: in the included {tmp_path / 'parts.cat'}:2:12: unknown"
        " relation 'wx'"
    )


def test_a_file_that_includes_itself_is_refused(tmp_path):
    (tmp_path / "mine.cat").write_text('"Mine"\ninclude "mine.cat"\nacyclic wr as x')
    with pytest.raises(
        SpecError, match=r"mine.cat:2:9: 'mine.cat' is this file itself; include another"
    ):
        spec_catalogue.level(str(tmp_path / "mine.cat"))


def test_what_a_text_promises_is_checked_when_it_is_read(tmp_path):
    (tmp_path / "mine.cat").write_text('"Mine" promises serialisable empty unseen as x')
    for read in (spec_catalogue.spec, spec_catalogue.protocol):
        with pytest.raises(
            SpecError, match="no level: 'serialisable'; did you mean 'serializable'"
        ):
            read(str(tmp_path / "mine.cat"))


def test_an_included_file_that_is_no_text(tmp_path):
    (tmp_path / "mine.cat").write_text('"Mine" include "parts.cat" acyclic part as x')
    (tmp_path / "parts.cat").write_bytes(b"\xff")
    with pytest.raises(
        SpecError, match=r"mine\.cat:1:16: cannot read .*parts\.cat: it is not UTF-8"
    ):
        spec_catalogue.spec(str(tmp_path / "mine.cat"))


@pytest.mark.slow
def test_an_expression_that_is_too_deep_is_an_error_and_no_crash():
    deep = "acyclic " + " | ".join(["wr"] * 5000) + " as x"
    with pytest.raises(SpecError, match="1:13: this is nested more than 100 deep"):
        read_spec(f'"A" {deep}', "t.cat")


def test_a_file_is_included_once(tmp_path):
    (tmp_path / "mine.cat").write_text(
        '"Mine" include "stdlib.cat" include "parts.cat" acyclic depends as x'
    )
    (tmp_path / "parts.cat").write_text('include "mine.cat" include "stdlib.cat"')
    assert spec_catalogue.spec(str(tmp_path / "mine.cat")).needs == {"wr", "ww"}


def test_shipped_specs_cite_their_source():
    def look(name):
        spec = spec_catalogue.spec(name)
        assert spec.title
        assert spec.source
        assert spec.name == name
        assert {b.source: b.name for b in spec.binders}.items() <= BINDERS.items()

    assert len(check_cases(look, spec_catalogue.every_level() + spec_catalogue.protocols())) > 70


def test_the_catalogue():
    assert spec_catalogue.levels() == sorted(spec_catalogue.levels())
    assert set(spec_catalogue.levels()) >= {
        "serializable",
        "log-serializable",
        "write-serializable",
        "snapshot-isolation",
    }
    assert set(spec_catalogue.protocols()) >= {
        "delta-serializable",
        "delta-write-serializable",
        "delta-snapshot-isolation",
    }
    assert spec_catalogue.level("serializable") is spec_catalogue.spec("serializable")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"T" empty adds-could-match as x', r"1:11: the relation 'adds-could-match' is one of format delta-rs, and this is of format delta; did you mean 'adds-could-match-reads'"),
        ('"T" format delta-rs empty wr & adds-could-mach as x', r"unknown relation 'adds-could-mach'; did you mean 'adds-could-match'\?"),
        ('"T" format dleta empty wr as x', r"1:12: unknown format 'dleta'; did you mean 'delta'\?"),
        ('"T" format delta format delta-rs empty wr as x', "this is of format delta already; a spec has one"),
    ],
)  # fmt: skip
def test_a_spec_uses_the_words_of_its_format(text, message):
    with pytest.raises(SpecError, match=message):
        read_spec(text, "t.cat")


def test_a_protocol_without_a_format_is_of_delta_and_a_level_of_none(tmp_path):
    (tmp_path / "mine.cat").write_text('"Mine" empty unseen & ww as Mine')
    assert spec_catalogue.protocol(str(tmp_path / "mine.cat")).format == "delta"
    assert {spec_catalogue.level(name).format for name in spec_catalogue.every_level()} == {None}


@pytest.mark.parametrize(
    ("look", "name", "message"),
    [
        (spec_catalogue.level, "serialisable", "unknown level 'serialisable'; did you mean 'serializable'?"),
        (spec_catalogue.spec, "delta-serialisable", "unknown level or protocol 'delta-serialisable'; did you mean 'delta-serializable'?"),
        (spec_catalogue.protocol, "delta-serialzable", "unknown protocol 'delta-serialzable'; did you mean 'delta-serializable'?"),
    ],
)  # fmt: skip
def test_unknown_names(look, name, message):
    with pytest.raises(UnknownName, match=message.replace("?", r"\?")):
        look(name)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(SpecError, match=r"cannot read .*gone\.cat: No such file"):
        spec_catalogue.spec(str(tmp_path / "gone.cat"))


def test_a_runtime_is_read_with_the_spec_and_may_be_another():
    text = '"A" runtime "14.2" at-most "under load" empty unseen ; [Photon] as x'
    spec = read_spec(text, "a")
    assert (spec.runtime, spec.at_most) == ("14.2", "under load")
    other = read_spec(text, "a@14.3-photon", runtime="14.3-photon")
    assert (other.runtime, str(other.definitions["Photon"])) == ("14.3-photon", "All")
    assert str(spec.definitions["Photon"]) == "None"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "databricks-serializable-newest-rows@14",
            "no release '14' of Databricks Runtime; known: 13.3, ",
        ),
        ("delta-serializable@14.2", "delta-serializable depends on no runtime; leave out @14.2"),
        (
            "delta-serialisable@14.2",
            "unknown protocol 'delta-serialisable'; did you mean 'delta-serializable'?",
        ),
    ],
)
def test_a_protocol_on_a_runtime_that_is_none_is_refused(name, said):
    with pytest.raises((SpecError, UnknownName), match=re.escape(said)):
        spec_catalogue.protocol(name)


def test_sets_that_histories_name():
    """They are needs, unless nothing uses them; another text may include their names."""
    spec = read_spec('"A" given Mine "who asked" given Other "nobody" empty [Mine] ; wr as x', "a")
    assert spec.given == {"Mine": "who asked", "Other": "nobody"}
    assert spec.needs == {"Mine", "wr"}
    again = read_spec(spec_text(spec), "a")
    assert (again.given, again.axioms) == (spec.given, spec.axioms)


def test_a_set_that_an_included_file_is_given(tmp_path):
    (tmp_path / "names.cat").write_text('given Mine "who asked"')
    path = tmp_path / "a.cat"
    spec = read_spec('"A" include "names.cat" empty [Mine] ; wr as x', "a", path)
    assert spec.given == {"Mine": "who asked"}
    with pytest.raises(SpecError, match=r"'Mine' is already defined at .*names\.cat:1"):
        read_spec('"A" include "names.cat" let Mine = Writer empty wr as x', "a", path)


# Settings

CONF = "spark.databricks.delta.rowLevelConcurrency.enabled"


def settings_of(*lines):
    """The spec with these ``set`` statements, one a line from line 2 on."""
    sets = "\n".join(f'set "{line}"' for line in lines)
    return read_spec(f'"T" format delta\n{sets}\nempty unseen as x', "t.cat")


@given(
    st.dictionaries(
        st.from_regex(r"spark(\.[a-z]{1,3}){1,3}", fullmatch=True),
        st.sampled_from(["true", "false", "1"]),
        max_size=4,
    ),
    st.sampled_from(["", "delta.isolationLevel = Serializable"]),
)
def test_confs_of_spark_are_read_beside_the_setting_and_printed(confs, setting):
    spec = settings_of(*([setting] if setting else []), *(f"{k} = {v}" for k, v in confs.items()))
    assert (spec.setting, spec.confs) == (setting, confs)
    again = read_spec(spec_text(spec), "t.cat")
    assert (again.setting, again.confs) == (setting, confs)


def test_a_setting_may_be_repeated_with_the_same_value():
    lines = ["delta.isolationLevel = Serializable", f"{CONF} = true"]
    spec = settings_of(*lines, f"{CONF}=true", lines[0])
    assert (spec.setting, spec.confs) == (lines[0], {CONF: "true"})


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ((f"{CONF} = true", f"{CONF} = false"), f"t.cat:3:5: {CONF} is false here and true above; keep one of the two"),
        ((f"{CONF} = ",), f"t.cat:2:5: '{CONF} = ' has no value; write \"{CONF} = true\""),
        ((CONF,), f"t.cat:2:5: '{CONF}' has no value; write \"{CONF} = true\""),
        (("spark. = 1",), "t.cat:2:5: 'spark. = 1' names no conf"),
        (("delta.isolationLevel = Serializable", "delta.isolationLevel = WriteSerializable"), "t.cat:3:5: 'delta.isolationLevel = WriteSerializable' contradicts 'delta.isolationLevel = Serializable'; a spec has one table setting"),
    ],
)  # fmt: skip
def test_settings_that_contradict_are_refused_at_their_place(lines, said):
    with pytest.raises(SpecError, match=re.escape(said)):
        settings_of(*lines)
