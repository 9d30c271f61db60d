"""``check`` of histories that other tools recorded: each format, folders, levels, exit status, and
what is refused.
"""

import json
import struct
import tracemalloc
from pathlib import Path

import pytest

from isolitmus.histories.blackbox.check import ASKED
from isolitmus.specs.files.spec_catalogue import levels

ELLE = """\
{:index 0, :type :invoke, :process 0, :f :txn, :value [[:r :x nil] [:w :x 1]]}
{:index 1, :type :invoke, :process 1, :f :txn, :value [[:r :x nil] [:w :x 2]]}
{:index 2, :type :ok, :process 0, :f :txn, :value [[:r :x nil] [:w :x 1]]}
{:index 3, :type :ok, :process 1, :f :txn, :value [[:r :x nil] [:w :x 2]]}
"""
EVENTS = [[["r", 0, None], ["w", 0, 1]], [["r", 0, None], ["w", 0, 2]]]


def number(*them):
    return struct.pack(f"<{len(them)}Q", *them)


def bincode():
    """The lost update in dbcop's layout."""
    data = number(0, 2, 1, 1, 2) + 3 * number(0) + number(2)
    for value in (1, 2):
        data += number(1, 2)
        for word, is_value in ((0, 0), (1, value)):
            data += bytes([word]) + number(0, is_value) + b"\1"
        data += b"\1"
    return data


def cobra(transaction, write):
    """A session that reads what nobody wrote, and writes it."""

    def big(*them):
        return struct.pack(f">{len(them)}Q", *them)

    read = b"R" + big(0xBEBEEBEE, 0xBEBEEBEE, 7, 0)
    return b"S" + big(transaction) + read + b"W" + big(write, 7, write) + b"C" + big(transaction)


LOST = {
    "awdit": {"h.txt": "w 0 0\n=====\nr 0 0\nw 0 1\n=====\nr 0 0\nw 0 2\n"},
    "cobra": {"h/a.log": cobra(1, 1), "h/b.log": cobra(2, 2)},
    "dbcop": {"h/history.bincode": bincode()},
    "elle": {"h.edn": ELLE},
    "plume": {"h.txt": "r(0,0,0,0)\nw(0,1,0,0)\nr(0,0,1,1)\nw(0,2,1,1)\n"},
}
"""A lost update in each format."""


def written(files):
    for name, content in files.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return next(iter(files)).split("/")[0]


@pytest.fixture
def call(call, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return call


@pytest.fixture
def refusal(call):
    """What one message on standard error says."""

    def refusal(*words):
        status, out, err = call("check", *words)
        assert (status, out, err.count("\n")) == (2, "", 1)
        return err.removeprefix("isolitmus: ").rstrip("\n")

    return refusal


@pytest.mark.slow
@pytest.mark.parametrize("said", ["auto", "its own"])
@pytest.mark.parametrize("form", LOST)
def test_a_lost_update_is_one_in_each_format(call, form, said):
    path = written(LOST[form])
    status, out, err = call("check", path, "--format", "auto" if said == "auto" else form)
    assert (status, err) == (1, "")
    assert out.startswith(f"{path}: 2 transactions in 2 sessions, 4 operations on 1 key\n")
    assert "Strongest level that holds: prefix-consistency;" in out
    assert "Weakest level that fails: snapshot-isolation (lost update);" in out


@pytest.mark.slow
def test_the_short_json_of_dbcop_is_read(call):
    sessions = [[{"events": events, "committed": True}] for events in EVENTS]
    Path("h.json").write_text(json.dumps(sessions), "utf-8")
    assert "(lost update)" in call("check", "h.json")[1]
    assert "record 4)" in call("check", "h.json")[1]


def test_levels_are_asked_by_name(call):
    path = written(LOST["plume"])
    status, out, _ = call("check", path, "--level", "causal,prefix-consistency")
    assert status == 0
    assert "  Causal consistency allows it.\n  Prefix consistency allows it, for example in" in out
    assert call("check", path, "--level", "serializable")[0] == 1
    assert call("check", path, "--time", "0")[0] == 3


@pytest.mark.slow
def test_a_folder_is_all_the_histories_in_it(call):
    Path("all").mkdir()
    for form in ("cobra", "elle", "plume"):
        for name, content in LOST[form].items():
            place = Path("all") / form / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content if isinstance(content, bytes) else content.encode())
    status, out, _ = call("check", "all", "--json")
    assert status == 1
    assert [each["history"] for each in json.loads(out)] == [
        "all/cobra/h",
        "all/elle/h.edn",
        "all/plume/h.txt",
    ]


@pytest.mark.slow
def test_what_cannot_be_read_is_one_sentence_each_and_stops_nothing(call):
    allowed, lost = "w(0,1,0,0)\nr(0,1,1,1)\n", LOST["plume"]["h.txt"]
    status, out, err = call("check", written({"all/b.txt": allowed, "all/a.txt": "x(1)"}))
    assert status == 2
    assert out.startswith("all/b.txt: 2 transactions in 2 sessions")
    first = err
    assert (
        first
        == "isolitmus: all/a.txt: the file begins with 'x(1)', and no recorded history does that;"
        " known: awdit, cobra, dbcop, elle, plume\n"
    )
    not_plume = (
        "'w(0,1)' is not one of 'r(KEY,VALUE,SESSION,TRANSACTION)' and 'w(…)', all of them numbers"
    )
    written({"all/c.txt": "w(0,1,0,0)\nw(0,1)\n", "all/d.txt": "r(0,1,0,0)\nw(0,1)\n"})
    written({"all/e.txt": lost})
    status, out, err = call("check", "all", "gone.edn", "read-skew", "history-write-skew", "--json")
    assert status == 2
    assert [each["history"].rpartition("/")[2] for each in json.loads(out)] == [
        "b.txt",
        "e.txt",
        "history-write-skew.toml",
    ]
    assert [line.removeprefix("isolitmus: ") for line in err.splitlines()] == [
        first.rstrip("\n").removeprefix("isolitmus: "),
        f"{not_plume}: all/c.txt:2, all/d.txt:2",
        "cannot read gone.edn: No such file or directory",
        "unknown litmus test 'read-skew'; did you mean 'history-read-skew'?",
    ]


def test_a_history_that_lacks_what_a_level_needs_stops_nothing(call):
    status, out, err = call("check", "history-write-skew", "reorder", "--level", "log-serializable")
    assert (status, out.count("\n  Log-serializable"), err) == (
        2,
        1,
        (
            "isolitmus: history-write-skew.toml: log-serializable needs log, which this history"
            " does not have\n"
        ),
    )


def test_where_nothing_can_be_read_nothing_is_drawn(call):
    for form in ("svg", "csv", "json"):
        status, out, err = call("check", written({"h.txt": "x(1)\n"}), "--as", form)
        assert (status, out, err.count("\n")) == (2, "", 1)


def test_several_kinds_of_histories_are_checked_together(call):
    path = written(LOST["plume"])
    status, out, _ = call("check", path, "history-lost-update", "--level", "causal", "--as", "csv")
    assert status == 0
    assert (
        out == "history,level,verdict,axiom,serial\n"
        "h.txt,causal,allowed,,\n"
        f"history-lost-update,causal,allowed,,{out.rstrip().rpartition(',')[2]}\n"
    )


def test_the_document_names_strongest_weakest_and_anomalies(call):
    path = written(LOST["plume"])
    (done,) = json.loads(call("check", path, "--json")[1])
    assert (done["strongest"], done["weakest"]) == (["prefix-consistency"], ["snapshot-isolation"])
    assert list(done["levels"]) == list(ASKED)
    forbidden = done["levels"]["snapshot-isolation"]
    assert forbidden["anomalies"] == ["lost update"]
    assert [edge["kind"] for edge in forbidden["violation"]["cycle"]] == ["ww", "rw"]
    assert done["levels"]["causal"]["anomalies"] == []


def test_a_picture_has_the_cycle(call):
    out = call("check", written(LOST["plume"]), "--as", "mermaid")[1]
    assert 'n0 ==>|"ww: T2 (session 1, line 4) overwrote key 0 = 1' in out


@pytest.mark.parametrize("name", ["reorder", "history-write-skew"])
def test_all_levels_that_a_litmus_test_can_be_asked(call, name):
    (done,) = json.loads(call("check", name, "--json")[1])
    asked = set(levels()) if name == "reorder" else set(levels()) - {"log-serializable"}
    assert set(done["levels"]) == asked
    assert done["strongest"]
    assert done["weakest"]


PLUME = "w(0,1,0,0)\nr(0,1,1,1)\n"
REFUSED = {
    "a level that needs what the history cannot give": (
        ["h.txt", "--level", "log-serializable"],
        "h.txt: log-serializable needs log, which this history does not have",
    ),
    "a level that speaks of sets": (
        ["h.txt", "--level", "mixing-correct"],
        "h.txt: mixing-correct needs PL2, PL3, intermediate, which this history does not have",
    ),
    "a level that recorded histories cannot be asked yet": (
        ["h.txt", "--level", "update-serializable"],
        "h.txt: update-serializable is not asked of recorded histories yet; known: " + ", ".join(ASKED),
    ),
    "no level": (
        ["h.txt", "--level", "casual"],
        "h.txt: unknown level 'casual' for recorded histories; did you mean 'causal'?",
    ),
    "all and another": (["h.txt", "--level", "all,causal"], "--level is 'all,causal'; 'all' cannot be combined"),
    "no format": (["h.txt", "--format", "plum"], "--format is 'plum'; did you mean 'plume'?"),
    "another format": (
        ["h.txt", "--format", "awdit"],
        "h.txt:1: 'w(0,1,0,0)' is not one of 'r KEY VALUE', 'w KEY VALUE', '-----' and '====='",
    ),
    "no folder": (
        ["h.txt", "--format", "cobra"],
        "h.txt: not a folder; Cobra's logs are a folder with a file for each session",
    ),
    "an empty folder": (
        ["empty"],
        "empty: this folder holds no history: it has neither a file history.bincode (dbcop) nor files NAME.log (Cobra)",
    ),
    "a recorded history that is not there": (
        ["gone.edn"],
        "cannot read gone.edn: No such file or directory",
    ),
    "an empty file": (
        ["nothing.txt"],
        (
            "nothing.txt: the file is empty, and no recorded history does that; known: awdit, cobra, dbcop, elle,"
            " plume"
        ),
    ),
    "no history at all": (
        ["readme.txt"],
        ("readme.txt: the file begins with 'Dear reader', and no recorded history does that; known: awdit, cobra, dbcop,"
        " elle, plume"),
    ),
    "a truncated file": (
        ["cut.bincode"],
        "cut.bincode: the file ends at byte 40, before it says the number of bytes of what it is",
    ),
    "a length that lies": (
        ["lies.bincode"],
        ("lies.bincode: byte 64 says 1,152,921,504,606,846,976 for the number of sessions, at least"
        " 9,223,372,036,854,775,808 bytes; 0 are left"),
    ),
    "a truncated log": (["logs"], "logs/a.log: byte 9: the file ends in a record R, which has 33 bytes"),
    "a bracket that is never closed": (["cut.edn"], "cut.edn:1: this '{' is never closed"),
    "bytes that are no text": (
        ["noise.txt"],
        "cannot read noise.txt: it is not UTF-8 text (byte 1)",
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("what", REFUSED)
def test_what_is_wrong_is_one_sentence(refusal, what):
    written({"h.txt": PLUME})
    Path("empty").mkdir()
    Path("readme.txt").write_text("Dear reader", "utf-8")
    Path("cut.bincode").write_bytes(bincode()[:40])
    Path("lies.bincode").write_bytes(bincode()[:64] + number(2**60))
    written({"logs/a.log": cobra(1, 1)[:12]})
    Path("cut.edn").write_text(ELLE[:30], "utf-8")
    Path("noise.txt").write_bytes(b"\xff\xfe")
    Path("nothing.txt").touch()
    words, message = REFUSED[what]
    assert refusal(*words) == message


def test_a_length_that_lies_takes_no_memory(refusal):
    Path("lies.bincode").write_bytes(bincode()[:64] + number(2**40))
    refusal("lies.bincode")
    tracemalloc.start()
    refusal("lies.bincode")
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("form", ["dbcop", "elle", "awdit", "plume", "cobra"])
def test_wherever_a_file_ends_it_is_a_history_or_a_sentence(call, form):
    (name, content), *_ = LOST[form].items()
    content = content if isinstance(content, bytes) else content.encode()
    for size in range(0, len(content), 7):
        path = written({name: content[:size]})
        status, _, err = call("check", path)
        assert status in (0, 1) or (status == 2 and err.count("\n") == 1), (size, err)


@pytest.mark.slow
def test_lists(call, tmp_path, monkeypatch):
    """Two that read nothing of each other's list, and append to their own: write skew."""
    monkeypatch.chdir(tmp_path)
    Path("skew.edn").write_text(
        "{:type :invoke, :f :txn, :process 0, :value [[:r x []] [:append y 1]]}\n"
        "{:type :ok, :f :txn, :process 0, :value [[:r x []] [:append y 1]]}\n"
        "{:type :invoke, :f :txn, :process 1, :value [[:r y []] [:append x 2]]}\n"
        "{:type :ok, :f :txn, :process 1, :value [[:r y []] [:append x 2]]}\n"
        "{:type :invoke, :f :txn, :process 2, :value [[:r x [2]] [:r y [1]]]}\n"
        "{:type :ok, :f :txn, :process 2, :value [[:r x [2]] [:r y [1]]]}\n"
    )
    status, out, err = call("check", "skew.edn")
    assert (status, err) == (1, "")
    assert "Strongest level that holds: snapshot-isolation; read-committed," in out
    assert "Serializable forbids it (write skew (G2-item)):" in out
    Path("torn.edn").write_text(
        "{:type :invoke, :f :txn, :process 0, :value [[:append x 1]]}\n"
        "{:type :ok, :f :txn, :process 0, :value [[:append x 1]]}\n"
        "{:type :invoke, :f :txn, :process 1, :value [[:append x 2]]}\n"
        "{:type :ok, :f :txn, :process 1, :value [[:append x 2]]}\n"
        "{:type :invoke, :f :txn, :process 2, :value [[:r x [1 2]]]}\n"
        "{:type :ok, :f :txn, :process 2, :value [[:r x [1 2]]]}\n"
        "{:type :invoke, :f :txn, :process 3, :value [[:r x [2 1]]]}\n"
        "{:type :ok, :f :txn, :process 3, :value [[:r x [2 1]]]}\n"
    )
    status, out, err = call("check", "torn.edn")
    assert (status, err) == (1, "")
    assert (
        "Weakest levels that fail: read-committed (incompatible orders) and"
        " read-committed-biswas-enea (incompatible orders);" in out
    )
    assert "neither list begins the other: transaction 4" in out


def test_an_unknown_level_is_refused_before_a_history_is_read(call, tmp_path):
    path = tmp_path / "h.txt"
    path.write_text("r(0,0,0,0)\nr(0,5,1,1)\nnonsense")
    status, _, err = call("check", str(path), "--level", "serialisable")
    assert (status, "did you mean 'serializable'?" in err) == (2, True)
    status, _, err = call("check", str(path), "--level", "serializable")
    assert (status, "h.txt:3" in err) == (2, True)
