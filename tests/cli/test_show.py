"""``isolitmus show`` of litmus tests: their frames, and what a spec's statements denote on them."""

import json
from pathlib import Path

import pytest
from case_checks import check_cases

from isolitmus.checker.execution.commit_loop import execute, execution_frame
from isolitmus.checker.execution.denotation import denote
from isolitmus.checker.search.triviality import find_triviality
from isolitmus.specs import level, litmus
from isolitmus.specs.files.catalogue import litmus_names
from isolitmus.specs.files.spec_catalogue import every_level

SPECS = Path(__file__).parents[2] / "specs"
KINDS = {
    "levels": "level",
    "protocols": "protocol",
    "litmus": "litmus",
    "scopes": "scope",
    "matrices": "matrix",
    "workloads": "workload",
}
NOT_IN_FILES = ("engine", "exception", "anomaly", "claim")
"""Kinds without a file for each of their things."""


@pytest.mark.slow
def test_everything_that_ships_is_listed(call):
    """Each folder of specs/ is a kind; a name of it is listed, and shown in full."""
    status, out, _ = call("show", "--json")
    listed = {(entry["kind"], entry["name"]) for entry in json.loads(out)}
    files = (f.relative_to(SPECS) for kind in KINDS for f in (SPECS / kind).rglob("*.*"))
    shipped = {(KINDS[file.parts[0]], file.stem) for file in files}
    assert status == 0
    assert shipped == {(kind, name) for kind, name in listed if kind not in NOT_IN_FILES}


@pytest.mark.slow
def test_a_matrix_in_full(call):
    status, out, _ = call("show", "pairs")
    assert status == 0
    assert out.startswith("pairs (matrix): Which pairs of statements conflict\n")
    assert "[statements]" in out


def test_a_limit_ends_a_list(call):
    status, out, err = call("show", "litmus", "--time", "0")
    assert (status, out) == (3, "")
    assert err == "isolitmus: the time limit of 0 s ended it; the list is incomplete\n"


def test_a_test_in_full_ends_with_its_frame(call):
    status, out, err = call("show", "reorder-reader")
    assert (status, err) == (0, "")
    text, frame = out.split("\nDependency graph:\n")
    assert "[expect.delta-write-serializable]" in text
    assert (
        frame
        == """\
  txn2    Writer, Blind, ChangesData, Partitioned, Appending, AppendOnly
  reader  Reader, NoData, Empty
  txn1    Writer, ChangesData, Partitioned, Deleting

  wr                txn2 → reader  reader read row (100, 0), which txn2 wrote
  rw                reader → txn1  reader read row (1, 0), which txn1 then deleted
  rw                txn1 → txn2    txn1 read t WHERE part = 0 at version 0, without row (100, 0), which txn2 added
  log               txn2 → txn1    in the log txn2 is version 1, txn1 version 2
  vis               txn2 → reader  reader read version 1
  unseen            txn2 → txn1    txn1 read version 0, before txn2 committed version 1
  adds-meets-reads  txn2 → txn1    txn2 added a file to partition part=0 of t, where txn1 read t WHERE part = 0
"""
    )


def test_a_spec_sees_its_own_names_only_and_says_what_it_makes_of_them(call):
    status, out, _ = call("show", "history-write-skew", "--spec", "update-serializable")
    assert status == 0
    assert (
        out
        == """\
history-write-skew (litmus): Write skew
Source: Berenson et al., A critique of ANSI SQL isolation levels, 1995, A5B; Adya, Liskov, O'Neil, Generalized isolation level definitions, 2000, G2-item

Dependency graph:
  T1  Writer
  T2  Writer

  rw  T1 → T2  T1 read y0 and T2 wrote the next version y2
  rw  T2 → T1  T2 read x0 and T1 wrote the next version x1

  let update                     T1 → T2, T2 → T1
  empty no-aborted-read          nothing
  acyclic order-of-writers       T1 → T2, T2 → T1
  irreflexive each-reader-alone  nothing
"""
    )


def test_what_is_not_in_the_frame_or_not_known_is_said(call):
    _, out, _ = call("show", "statements-that-fail")
    assert "without insert, set, merged, ambiguous, arithmetic, which failed" in out
    _, out, _ = call("show", "history-lost-update")
    assert "(the order of x1 and x2 was not observed: one case is shown)" in out


def test_the_frame_as_json(call):
    status, out, _ = call("show", "history-write-skew", "--spec", "causal", "--json")
    (shown,) = json.loads(out)
    assert status == 0
    assert set(shown) == {"name", "kind", "title", "source", "text", "frame", "values"}
    assert list(shown["frame"]["nodes"]) == [
        "T1", "T2", "T0", "T1 r(x0)", "T1 r(y0)", "T2 r(x0)", "T2 r(y0)"
    ]  # fmt: skip
    assert {"from": "T1", "to": "T2 r(x0)", "kind": "rival", "why": "T1 wrote x1"} in shown[
        "frame"
    ]["edges"]
    assert shown["values"][-1] == {
        "statement": "acyclic", "name": "causal-order", "items": [["T0", "T1"], ["T0", "T2"]]
    }  # fmt: skip


def test_a_protocol_shows_what_its_labels_hold_of(call):
    _, out, _ = call("show", "reorder", "--spec", "delta-write-serializable")
    assert "show WriteSerializable                 insert, delete\n" in out
    assert "empty ConcurrentAppendException        nothing\n" in out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["reorder", "--spec", "sreializable"], "unknown level or protocol 'sreializable'; did you mean"),
        (["history-write-skew", "--spec", "log-serializable"], "log-serializable needs log, which history-write-skew does not have"),
        (["serializable", "--spec", "causal"], "--spec is for litmus tests; name litmus tests only"),
        (["--spec", "causal"], "--spec is for litmus tests; name litmus tests only"),
    ],
)  # fmt: skip
def test_bad_input_is_one_message_and_status_2(call, words, message):
    status, out, err = call("show", *words)
    assert (status, out) == (2, "")
    assert err.startswith("isolitmus: ")
    assert message in err


@pytest.mark.slow
def test_every_edge_has_a_reason_and_every_transaction_a_place():
    def look(name):
        test = litmus(name)
        seen = denote(test)
        assert all(edge.why for edge in seen.frame.edges())
        history = getattr(test, "history", None)
        known = (t.name for t in history.transactions) if history else test.transactions
        assert sorted([*seen.frame.nodes, *seen.failed]) == sorted(known)
        return len(list(seen.frame.edges()))

    edges = check_cases(look, litmus_names())
    assert sum(map(bool, edges)) >= 200


def test_without_a_spec_the_frame_is_the_one_that_is_judged():
    test = litmus("hole-partitioned")
    assert denote(test).frame == execution_frame(execute(test))
    seen = denote(test, level("causal")).frame
    assert set(seen.relations) == {"so", "wr", "rf", "in", "rival"}
    assert len(seen.nodes) > seen.transactions


@pytest.mark.slow
def test_a_protocol_in_full_ends_with_its_portrait(call, tmp_path):
    mine = tmp_path / "mine.cat"
    mine.write_text(
        '"Mine" promises snapshot-isolation empty unseen & removes-meets-removes as Twice\n'
    )
    status, out, err = call("show", str(mine))
    assert (status, err) == (0, "")
    assert "Promised level snapshot-isolation: violated by 2 transactions that mine" in out
    # not one of the catalogue that delta-serializable admits, too
    assert "then searched from 2 transactions in search space 'altered'" in " ".join(out.split())
    assert "Needless Twice: snapshot-isolation allows these 3 transactions" in out
    status, out, _ = call("show", str(mine), "--json")
    (document,) = json.loads(out)
    assert document["kind"] == "protocol"
    (promise,) = document["portrait"]["promises"]
    assert (promise["level"], promise["kept"]) == ("snapshot-isolation", False)
    shares = {(s["scope"], s["transactions"]) for s in document["portrait"]["shares"]}
    assert {("two-partitions", 2), ("two-partitions", 3), ("writers-unpartitioned", 3)} <= shares


@pytest.mark.slow
@pytest.mark.parametrize(
    ("axiom", "says"),
    [
        ("acyclic so & wr as slip", "allows every history: it forbids none up to 3 transactions"),
        ("empty [Reader | Writer] as slip", "forbids every history: it allows none up to 3 transactions"),
        ("with co from linearisations empty co \\ co as slip", "allows every history: it forbids none up to 3"),
    ],
)  # fmt: skip
def test_a_level_that_says_the_same_of_every_history_is_reported(
    call, tmp_path, monkeypatch, axiom, says
):
    monkeypatch.chdir(tmp_path)
    Path("slip.cat").write_text(f'"Slip" {axiom}', "utf-8")
    status, out, _ = call("show", "slip.cat")
    assert status == 0
    assert f"Note: slip {says}" in out
    document = json.loads(call("show", "slip.cat", "--json")[1])
    assert says in document[0]["trivial"]


@pytest.mark.slow
def test_no_level_that_ships_says_the_same_of_every_history():
    def vary(name):
        assert find_triviality(level(name)) is None

    assert len(check_cases(vary, every_level())) >= 50


def test_the_index_counts_each_kind_and_names_the_tags(call):
    status, out, err = call("show")
    assert (status, err) == (0, "")
    for kind, files in (("litmus", len(litmus_names("delta"))), ("levels", len(every_level()))):
        (count,) = (
            int(line.split()[1]) for line in out.splitlines() if line.startswith(f"  {kind} ")
        )
        assert count >= files > 0
    assert "lost-update" in out.splitlines()[-1].split(", ")


@pytest.mark.slow
def test_a_tag_lists_the_litmus_tests_that_have_it(call):
    status, out, _ = call("show", "litmus", "--tag", "lost-update", "--json")
    listed = {entry["name"] for entry in json.loads(out)}
    assert status == 0
    assert "history-lost-update" in listed
    assert {name for name in listed if "lost-update" in litmus(name).tags} == listed
    assert not [n for n in litmus_names() if "lost-update" in litmus(n).tags and n not in listed]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("litmus", "--tag", "lost-updat"),
            "unknown tag 'lost-updat'; did you mean 'lost-update'?",
        ),
        (("levels", "--tag", "lost-update"), "--tag is for lists of litmus tests"),
    ],
)
def test_a_tag_that_lists_nothing(call, words, said):
    status, out, err = call("show", *words)
    assert (status, out) == (2, "")
    assert said in err


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("lost update", "lost-update (anomaly): Lost update"),
        ("P4", "lost-update (anomaly): Lost update"),
        ("phantom", "phantom-read (anomaly): Phantom read"),
        ("G2", "anti-dependency-cycle (anomaly): Anti-dependency cycle"),
        ("hole", "blind-append-hole (anomaly): Hole of blind appends"),
        ("WriteSerializable", "write-serializable (level): Write-serializable"),
        ("Snapshot Isolation", "snapshot-isolation (level): Snapshot isolation"),
        ("without-write-skew", "without-write-skew (level): Without write skew"),
    ],
)
def test_a_name_that_people_use_leads_to_its_entry(call, name, first):
    status, out, _ = call("show", name)
    assert (status, out.splitlines()[0]) == (0, first)


def test_an_anomaly_in_full(call):
    _, out, _ = call("show", "write skew")
    assert "Also called: A5B, skew." in out
    assert "Smallest history (history-write-skew): " in out
    assert "Forbidden by: serializable, update-serializable, write-serializable." in out
    assert "isolitmus run skew-of-accounts " in out
    assert "rw  T1 → T2" in out


def test_a_claim_is_an_entry(call):
    status, out, _ = call("show", "D36")
    assert status == 0
    assert out.startswith("D36 (claim): ")
    assert "Verdict: confirmed" in out


def test_a_name_with_two_meanings_is_refused_with_both(call):
    status, _, err = call("show", "skew")
    assert status == 2
    assert "'skew' has 2 meanings; isolitmus show read-skew or isolitmus show write-skew" in err


def test_documents_of_entries(call, tmp_path):
    """A fence of Markdown is longer than those in the text; a page escapes what comes from it."""
    file = tmp_path / "mine.toml"
    text = """\
title = "a <b> & ```` c"
schedule = "a"
[table]
columns = "id INT"
[transactions]
a = "INSERT INTO t VALUES (1)"
"""
    file.write_text(text)
    status, out, _ = call("show", str(file), "--as", "markdown")
    assert status == 0
    assert "\n`````\n" in out
    assert "````mermaid" not in out
    status, out, _ = call("show", str(file), "--as", "html")
    assert status == 0
    assert "a &lt;b&gt; &amp; ```` c" in out
    assert "<b>" not in out


def test_a_run_is_drawn(call):
    status, out, _ = call(
        "run", "hole-partitioned", "--as", "svg", "--protocol", "delta-write-serializable"
    )
    assert status == 0
    assert out.startswith("<svg ")
    assert "delete does not see append" in out
    for words, problem in (
        (["hole-partitioned"], "draws one run, and hole-partitioned has"),
        (["reorder", "hole-partitioned"], "draws one thing, and 2 were asked for"),
        (["history-lost-update"], "an abstract history"),
        (["reorder", "--engine", "delta"], "draws a run of the model"),
    ):
        status, _, err = call("run", *words, "--as", "svg")
        assert (status, problem in err) == (2, True)
