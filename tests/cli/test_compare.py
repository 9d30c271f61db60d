"""``isolitmus compare`` on the command line: what is placed, drawn and refused."""

import json
import re

import pytest

from isolitmus.specs.files.spec_catalogue import levels

SERIALIZABLE = """"Mine"
(* Mine. *)
with ww from versions
empty [Aborted] ; wr as no-aborted-read
acyclic (so | wr | ww | rw) as order
"""
IN_ABSTRACT = ("--universe", "abstract")


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.cat"
    path.write_text(SERIALIZABLE, "utf-8")
    return path


@pytest.mark.slow
def test_a_level_of_ones_own_is_placed_among_all_that_ship(call, mine):
    status, out, err = call("compare", mine, *IN_ABSTRACT)
    assert (status, err) == (0, "")
    assert "\nmine is equal to serializable: proved equal\n" in out
    assert "\nmine is stronger than snapshot-isolation\n" in out
    assert "snapshot-isolation admits, mine forbids: " in out


@pytest.mark.slow
def test_without_names_all_levels_are_compared(call):
    status, out, _ = call("compare", *IN_ABSTRACT, "--json")
    (lattice,) = json.loads(out)["lattices"]
    named = {name for node in lattice["nodes"] for name in node}
    assert status == 0
    assert named | {*json.loads(out)["apart"]} == {*levels()}


@pytest.mark.slow
def test_two_specs_say_the_same_by_both_commands(call):
    names = ("write-serializable", "snapshot-isolation")
    sentence = (
        "write-serializable is incomparable with snapshot-isolation in search space 'abstract', and"
        " stronger than it in search space 'table' (proved for any statements on one Delta table, "
    )
    assert sentence in call("separate", *names, "--both")[1]
    assert sentence in call("compare", *names)[1]


@pytest.mark.slow
def test_the_picture_has_every_level_and_every_step(call):
    status, picture, _ = call(
        "compare", "serializable", "causal", "read-atomic", *IN_ABSTRACT, "--as", "svg"
    )
    assert status == 0
    assert picture.startswith("<svg")
    assert re.findall(r'<text class="name middle"[^>]*>([^<]+)', picture) == [
        "serializable", "causal", "read-atomic",
    ]  # fmt: skip
    assert picture.count('<path class="edge"') == 2


@pytest.mark.slow
def test_the_page_stands_alone(call, tmp_path):
    page = tmp_path / "levels.html"
    status, _, _ = call("compare", "serializable", "causal", *IN_ABSTRACT, "--html", page)
    text = page.read_text("utf-8")
    assert status == 0
    assert "<script" not in text
    assert "http:" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https:" not in text
    assert "causal</strong>" in text


@pytest.mark.slow
def test_a_table_has_every_pair(call):
    _, out, _ = call(
        "compare", "serializable", "causal", "read-atomic", *IN_ABSTRACT, "--as", "csv"
    )
    head, *rows = out.splitlines()
    assert head == "universe,a,b,relation,forward,back"
    assert len(rows) == 3
    assert "abstract,serializable,read-atomic,stronger,proved,a history" in rows


@pytest.mark.slow
def test_a_limit_ends_it_with_status_3(call):
    status, out, _ = call("compare", "serializable", "causal", *IN_ABSTRACT, "--time", "0")
    assert status == 3
    assert "1 pair of 1 unknown" in out
    assert "the time limit of 0 s ended it" in out


@pytest.mark.slow
def test_a_level_that_no_universe_has_is_status_3(call, tmp_path):
    strange = tmp_path / "strange.cat"
    strange.write_text('"Strange"\n(* Mine. *)\nempty log as none\n', "utf-8")
    status, out, _ = call("compare", strange, "serializable", "causal", *IN_ABSTRACT)
    assert status == 3
    assert "strange was not compared: search space 'abstract' does not have log." in out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["serialisable", "causal"], "unknown level or protocol 'serialisable'; did you mean 'serializable'?"),
        (["broken.cat"], "broken.cat:2:1: expected a statement, found 'acyclc'; did you mean 'acyclic'?"),
        (["delta-serializable", "locking-serializable"], "compare protocols of one format, or one with a level"),
        (["databricks-serializable-newest", "causal"], "is silent on some histories"),
        (["serializable", "causal", "--transactions", "0"], "--transactions is 0; expected an integer of at least 1"),
        (["serializable", "causal", "--transactions", "13"], "13 transactions are too many; 1 to 8 can be searched in search space 'table'"),
        (["serializable", "causal", "--as", "png"], "--as is 'png'; expected one of svg,"),
        (["serializable", "causal", "--time", "-1"], "--time is -1; expected a number of seconds from 0"),
        (["serializable", "causal", "--html", "no/such/page.html"], "cannot write no/such/page.html: there is no folder no/such"),
        (["serializable", "causal", "--universe", "orderz"], "did you mean 'orders'?"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)  # fmt: skip
def test_what_cannot_be_compared_is_one_sentence(call, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.cat").write_text('"Broken"\nacyclc so as order\n', "utf-8")
    status, out, err = call("compare", *words)
    assert (status, out) == (2, "")
    assert message in err
