"""Names and paths stand for specs, litmus tests and scopes in the verbs; what is neither is refused in a sentence."""

from pathlib import Path

import pytest

from isolitmus.checker import check, compare, explain, run, separate, sweep
from isolitmus.checker.running.denoting import denote
from isolitmus.checker.triviality import triviality
from isolitmus.checker.unbounded import separate_unbounded
from isolitmus.model import History
from isolitmus.model.errors import IsolitmusError, LitmusError
from isolitmus.specs import level, litmus, protocol, scope, spec

MINE = '"Mine" empty [Aborted] ; wr as no-aborted-read acyclic wr as order'


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.cat"
    path.write_text(MINE)
    return path


def test_a_spec_is_a_name_a_path_or_itself(mine):
    for given in (mine, str(mine), spec(str(mine))):
        answer = separate(given, "snapshot-isolation", "abstract", transactions=[2])
        assert (answer.a, answer.found, answer.transactions) == ("mine", True, 2)
    assert separate_unbounded("delta-serializable", "log-serializable").proved
    assert level(level("causal")) is level("causal")
    assert protocol(protocol("delta-serializable")) is protocol("delta-serializable")
    assert litmus(litmus("reorder")) is litmus("reorder")
    assert triviality(mine) is None


def test_so_are_tests_and_scopes(mine):
    asked = check("history-write-skew", ["serializable", mine])
    assert {name: str(said) for name, said in asked.levels.items()} == {
        "serializable": "forbidden",
        "mine": "allowed",
    }
    assert list(check(Path("specs/litmus/history-write-skew.toml"), "causal").levels) == ["causal"]
    done = run("reorder", "delta-serializable")
    assert done.run.transactions["delete"].outcome == "ConcurrentAppendException"
    counted = sweep("two-partitions", 2, protocols=["delta-serializable"], levels=["serializable"])
    given = sweep(
        scope("two-partitions"),
        2,
        protocols=[protocol("delta-serializable")],
        levels=[level("serializable")],
    )
    assert counted.protocols == given.protocols
    assert list(counted.protocols["delta-serializable"].forbidden) == ["serializable"]
    placed = compare([mine, "causal"], "abstract", transactions=2)
    assert placed.lattices[0].edges
    assert denote("history-write-skew", "update-serializable").values


def test_what_is_no_name_is_refused():
    with pytest.raises(
        IsolitmusError, match=r"^3 is a int; a name such as 'serializable', or a path"
    ):
        separate(3, "serializable")
    with pytest.raises(IsolitmusError, match="did you mean 'serializable'"):
        separate("serialisable", "causal")
    with pytest.raises(IsolitmusError, match="no scope 'tabel'; did you mean 'table'"):
        separate("delta-serializable", "log-serializable", "tabel")
    with pytest.raises(LitmusError, match="history-write-skew is an abstract history"):
        run("history-write-skew", "delta-serializable")


def test_nouns_show_themselves_in_a_notebook():
    skew = History.parse("r1(x0) w1(x1) r2(x1) [x0 < x1]")
    assert skew._repr_html_() == (
        "<table><tr><th>T1</th><td>r(x0) w(x1)</td></tr><tr><th>T2</th><td>r(x1)</td></tr>"
        "<tr><th>order</th><td>x0 &lt; x1</td></tr></table>"
    )
    assert "<pre>causal: Causal" in level("causal")._repr_html_()
    found = explain("DELTA_CONCURRENT_DELETE_READ.WITH_PARTITION_HINT")
    assert "ConcurrentDeleteReadException" in found._repr_html_()
    assert '<span class="yes">allowed</span>' in check(skew, "causal")._repr_html_()
    trusted = History.parse("r1(x0)", sets={"A": ["T1"]})._repr_html_()
    assert "<tr><th>set A</th><td>T1</td></tr>" in trusted
