"""Every defect of a recorded history is one sentence: the file, the line or record, the value, what
would be right.
"""

import gzip
import struct
import tracemalloc
from pathlib import Path

import pytest

from isolitmus.histories.readers.cobra import read_cobra
from isolitmus.histories.readers.recorded_history import read_recorded, recorded_history
from isolitmus.model.errors import RecordingError

LARGE = 2**63
OK = "{:type :ok, :process 1, :value [[:r 1 nil]]}"
ASK = "{:type :invoke, :process 1, :value [[:r 1 nil]]}"
TEXTS = {
    # AWDIT
    "w 0 1\nx 0 2": "h:2: 'x 0 2' is not one of 'r KEY VALUE', 'w KEY VALUE', '-----' and '====='",
    "w 0 1\nw -2 0": (
        "h:2: 'w -2 0' is not one of 'r KEY VALUE', 'w KEY VALUE', '-----' and '====='"
    ),
    "w 0 1\nw 0": "h:2: 'w 0' is not one of 'r KEY VALUE', 'w KEY VALUE', '-----' and '====='",
    "w 0 1\n-=-": "h:2: '-=-' is not one of 'r KEY VALUE', 'w KEY VALUE', '-----' and '====='",
    f"r 0 {LARGE}": f"h:1: '{LARGE}' is larger than {LARGE - 1}",
    f"r 0 -{LARGE}": f"h:1: '{LARGE}' is larger than {LARGE - 1}",
    "w 0 0\n=====\nw 0 1\nw 0 0": (
        "h:4: 0 is written to key 0, as the initial transaction (line 1) does: nothing says which"
        " of the two a read of 0 saw; another value would be right"
    ),
    # Plume
    "w(0,1,0,0)\nw(0,1,0)": (
        "h:2: 'w(0,1,0)' is not one of 'r(KEY,VALUE,SESSION,TRANSACTION)' and 'w(…)', all of them"
        " numbers"
    ),
    "w(0,1,0,-2)": (
        "h:1: 'w(0,1,0,-2)' is not one of 'r(KEY,VALUE,SESSION,TRANSACTION)' and 'w(…)', all of"
        " them numbers"
    ),
    f"w(0,{LARGE},0,0)": f"h:1: '{LARGE}' is larger than {LARGE - 1}",
    "r(0,0,0,0)\nw(0,0,0,0)": (
        "h:2: 0 is written to key 0, which holds 0 before anybody writes it: nothing says which of"
        " the two a read of 0 saw; another value would be right"
    ),
    "w(0,1,3,0)\nw(0,2,4,0)": (
        "h:2: transaction 0 is of session 4 here and of session 3 in line 1; a number for each"
        " transaction of the file would be right"
    ),
    "w(0,1,3,0)\nw(0,2,3,1)\nr(0,2,3,0)": (
        "h:3: transaction 0 goes on after transaction 1 of its session began (line 2); its"
        " operations side by side would be right"
    ),
    # dbcop in JSON
    "[[{": (
        "h: not valid JSON: Expecting property name enclosed in double quotes: line 1 column 4"
        " (char 3)"
    ),
    '{"data": 3}': "h: the sessions ('data'): expected a list, found '3'",
    "[[], [3]]": (
        "h: session 2, transaction 1: '3' does not say whether it is committed; a table with a list"
        " 'events' and true or false as 'committed' would be right"
    ),
    '[[{"events": [["x", 0, 1]], "committed": true}]]': (
        "h: session 1, transaction 1, event 1: '[\"x\", 0, 1]' is neither a Read nor a Write of a"
        " variable and a version"
    ),
    '[[{"events": [["w", -1, 1]], "committed": true}]]': (
        "h: session 1, transaction 1, event 1: '-1' is not a variable; expected a number from 0 to"
        " 9223372036854775807 or a text"
    ),
    '[[{"events": [["w", 0, null]], "committed": true}]]': (
        "h: session 1, transaction 1, event 1: 'null' is not a version of a write; expected a"
        " number from 0 to 9223372036854775807"
    ),
    "[[" + "[" * 200: "h: not valid JSON: Expecting value: line 1 column 203 (char 202)",
    "[[" + "[" * 200 + "]" * 202: "h: not valid JSON: nested too deeply",
    # Elle
    "{:type :invoke": "h:1: this '{' is never closed",
    '{:type "invoke': "h:1: this text in quotes is never closed",
    "\n{:type [}": "h:2: expected ']', found '}'",
    "{:type :invoke}}": "h:1: this '}' closes nothing",
    "{:type}": "h:1: this map has a key without a value",
    "{:a 1 :a 2}": "h:1: this map has a key twice",
    "{{} 1}": "h:1: a map is a key of this map",
    "{:a #_}": "h:1: a form is missing after '#'",
    "{:a 1x}": "h:1: '1x' is not a form of EDN",
    "[:a " + "[" * 200: "h:1: this is nested more than 100 levels deep",
    f"{{:index {'9' * 2000}}}": "h:1: this number has more than 1,000 digits",
    f"{ASK} {{}}": "h:1: 'nil' is not a transaction; expected a list of reads and writes",
    f"{ASK}\n{OK.replace(':process 1, ', '')}": (
        "h:2: this operation has no :process and ends no transaction without one; expected its"
        " invocation before it, with the same keys and writes"
    ),
    "[3]": "h:1: '3' is not an operation; expected a map with a type and a value",
    f"{OK}\n{ASK}": (
        "h:2: this invokes a transaction, and line 1 ends one that was not invoked; all"
        " invocations, or ends alone, would be right"
    ),
    f"{ASK}\n{ASK}": (
        "h:2: process 1 invokes a transaction while its last one (line 1) goes on; its end would be"
        " right"
    ),
    f"{ASK}\n{OK}\n{OK}": "h:3: process 1 ends a transaction (:ok) that it has not invoked",
    ASK.replace(
        ":invoke", ":begin"
    ): "h:1: ':begin' is not a type of operation; known: :invoke, :ok, :fail, :info",
    ASK.replace(":type", ":f :read, :type").replace("[[:r 1 nil]]", "[1 2]"): (
        "h:1: ':read' with the value '[1 2]' is not a transaction; expected a list of"
        " [:r KEY VALUE], [:w KEY VALUE], [:append KEY VALUE]"
    ),
    # dbcop's text
    "[x:=1 y=2]": "h:1: 'y=2' is not one of 'NAME:=NUMBER', 'NAME==NUMBER' and 'NAME==?'",
    "// a\n[x:=1]\n[x:=?]": (
        "h:3: 'x:=?' is not one of 'NAME:=NUMBER', 'NAME==NUMBER' and 'NAME==?'"
    ),
    "[x:=1]\n[x==1": (
        "h:2: '[x==1' is not a transaction '[NAME:=NUMBER NAME==NUMBER NAME==?]', perhaps with '!',"
        " in one line"
    ),
    f"[x:={LARGE}]": f"h:1: '{LARGE}' is larger than {LARGE - 1}",
    ASK.replace(
        "[[:r 1 nil]]", "nil"
    ): "h:1: 'nil' is not a transaction; expected a list of reads and writes",
    ASK.replace(
        "[:r 1 nil]", "[:cas 1 2]"
    ): "h:1: '[:cas 1 2]' is not one of [:r KEY VALUE], [:w KEY VALUE], [:append KEY VALUE]",
    ASK.replace(
        "[:r 1 nil]", "[:w 1 nil]"
    ): "h:1: 'nil' is not a value of key 1; expected a number or a word",
    ASK.replace(
        "[:r 1 nil]", "[:r 1 [2 nil]]"
    ): "h:1: 'nil' is not a value of key 1; expected a number or a word",
    ASK.replace("[:r 1 nil]", "[:r {} nil]"): "h:1: '{}' is not a key; expected a number or a word",
    ASK.replace("[:r 1 nil]", "[:w 1 2] [:append 1 2]"): (
        "h:1: this writes a register, and line 1 appends to a list; one of the two throughout would"
        " be right"
    ),
    f"{ASK}\n{OK.replace(':r 1', ':r 2')}": (
        "h:2: process 1 ends another transaction than it invoked (line 1); the same keys and writes"
        " would be right"
    ),
    f"{ASK}\n{OK.replace(':ok', ':info')}\n{ASK}": (
        "h:3: process 1 continues after a transaction whose end was not observed (line 2): the"
        " order of the two is unknown; expected another process"
    ),
    f"{ASK[:-1]}, :index 4}}\n{OK[:-1]}, :index 4}}": (
        "h:2: index 4 comes after index 4 (line 1); the operations in the order of their indexes"
        " would be right"
    ),
    f"{ASK[:-1]}, :index 4}}\n{ASK[:-1]}, :index 3}}".replace("1", "2", 1): (
        "h:2: index 3 comes after index 4 (line 1); the operations in the order of their indexes"
        " would be right"
    ),
    '{"type": "ok", "process": 1, "value": []}\n{"type"': (
        "h:2: not valid JSON: Expecting ':' delimiter: line 1 column 8 (char 7)"
    ),
    f"{ASK}\n{OK.replace('[[:r 1 nil]]', '[[:r 1 3]]')}\n{ASK.replace('[:r 1 nil]', '[:append 1 3]')}": (
        "h:1: this reads '3' of key 1 where others append to lists; expected a list"
    ),
    f"{ASK}\n{OK.replace('[[:r 1 nil]]', '[[:r 1 [3]]]')}\n{ASK.replace('[:r 1 nil]', '[:w 1 3]').replace('1,', '2,')}": (
        "h:1: this reads a list of key 1, and others write registers"
    ),
    # none
    "": (
        "h: the file is empty, and no recorded history does that; known: awdit, cobra, dbcop, elle,"
        " plume"
    ),
    "hello": (
        "h: the file begins with 'hello', and no recorded history does that; known: awdit, cobra,"
        " dbcop, elle, plume"
    ),
}


@pytest.mark.parametrize(("text", "sentence"), TEXTS.items(), ids=range(len(TEXTS)))
def test_texts(text, sentence):
    with pytest.raises(RecordingError) as refused:
        read_recorded(text.encode(), Path("h"))
    assert str(refused.value) == sentence


def number(value):
    return struct.pack("<Q", value)


HEAD = number(0) * 5 + number(4) + b"tool" + number(0) * 2  # 68 bytes
ONE = HEAD + number(1) + number(1) + number(1)
"""One session of one transaction of one event, which begins at byte 92."""
EVENT = struct.Struct("<BQQB")
BYTES = {
    bytes(8): "h: the file ends at byte 8, before it says the parameter 'nodes'",
    number(0) * 5 + number(2**60): (
        "h: byte 40 says 1,152,921,504,606,846,976 for the number of bytes of what it is, at least"
        " 1,152,921,504,606,846,976 bytes; 0 are left"
    ),
    HEAD + number(2**64 - 1): (
        "h: byte 68 says 18,446,744,073,709,551,615 for the number of sessions, at least"
        " 147,573,952,589,676,412,920 bytes; 0 are left"
    ),
    HEAD
    + number(1)
    + number(2): "h: byte 76 says 2 for the number of transactions, at least 18 bytes; 0 are left",
    ONE + bytes(18): "h: the file ends at byte 110, before it says whether a transaction succeeded",
    ONE + bytes(17): "h: byte 84 says 1 for the number of events, at least 18 bytes; 17 are left",
    ONE
    + EVENT.pack(1, 0, 1, 1)
    + b"\2": "h: byte 110 is 2 where whether a transaction succeeded is said with 0 or 1",
    ONE
    + EVENT.pack(1, 0, 1, 1)
    + b"\1\1": "h: the history ends at byte 111, and 1 more are there; none would be right",
    ONE
    + EVENT.pack(2, 0, 1, 1)
    + b"\1": "h: record 1: its write is 2; whether it writes is 0 or 1",
    ONE
    + EVENT.pack(1, 0, 1, 7)
    + b"\1": "h: record 1: its success is 7; whether it succeeded is 0 or 1",
    ONE
    + EVENT.pack(1, LARGE, 1, 1)
    + b"\1": f"h: record 1: its variable is {LARGE}; {LARGE - 1} is the greatest variable",
    ONE
    + EVENT.pack(1, 0, LARGE, 1)
    + b"\1": f"h: record 1: its value is {LARGE}; {LARGE - 1} is the greatest value",
    ONE + EVENT.pack(1, 3, 0, 1) + b"\1": (
        "h: record 1: 0 is written to variable 3, which holds 0 before anybody writes it: nothing"
        " says which of the two a read of 0 saw; another value would be right"
    ),
    b"\xff\xfe": "cannot read h: it is not UTF-8 text (byte 1)",
    gzip.compress(b"w(1,5,0,0)", mtime=0)[:-9]: (
        "cannot read h: as gzip it is damaged (Compressed file ended before the end-of-stream"
        " marker was reached)"
    ),
    b'[{"type": "ok", "process": 0, "process": 1, "value": []}]': (
        'h: not valid JSON: an object has the key "process" twice'
    ),
    b"{:type :ok, :process 0, :value [[:r 1 #{1 2}]]}": (
        "h:1: '#{1 2}' is not a value of key 1; expected a number or a word"
    ),
}


OPS = (
    b'{"type": "ok", "process": 0, "value": [["w", 1, 5]]}\n{"type": "ok", "process": 1, "value":'
    b' [["r", 1, 5]]}'
)


@pytest.mark.parametrize(
    "data",
    [
        OPS, b"\xef\xbb\xbf" + OPS, gzip.compress(OPS, mtime=0), OPS.decode().encode("utf-16"), OPS.replace(b"\n", b"\r\n"),
        b"w(1,5,0,0)\nr(1,5,1,1)", b"w(1, 5, 0, 0)\r\nr(1, 5, 1, 1)", b"w(1,-5,0,0)\nr(1,-5,1,1)",
        (b'{"id": 1, "data": [[{"events": [{"write": true, "variable": 1, "value": 5, "success": true}], "success": true}],'
        b' [{"events": [{"write": true, "variable": 1, "value": 6, "success": false}, {"write": false, "variable": 1,'
        b' "value": 5, "success": true}], "success": true}]]}'),
    ],
)  # fmt: skip
def test_what_is_around_a_history_is_no_part_of_it(data):
    history = read_recorded(data, Path("h"))
    assert repr(history) == "2 transactions in 2 sessions, 2 operations on 1 key"
    assert history.is_write.tolist() == [True, False]
    assert history.value[0] == history.value[1] >= 0
    if len(history.values):
        assert history.values[history.value[0]] in (5, -5)


@pytest.mark.parametrize(("data", "sentence"), BYTES.items(), ids=range(len(BYTES)))
def test_bytes(data, sentence):
    with pytest.raises(RecordingError) as refused:
        read_recorded(data, Path("h"))
    assert str(refused.value) == sentence


def test_a_length_that_lies_takes_no_memory():
    for data in BYTES:
        tracemalloc.start()
        try:
            with pytest.raises(RecordingError):
                read_recorded(data, Path("h"))
            assert tracemalloc.get_traced_memory()[1] < 1_000_000
        finally:
            tracemalloc.stop()


def record(kind, *fields):
    return kind.encode() + b"".join(struct.pack(">Q", each) for each in fields)


BEGIN, END, WRITE = record("S", 1), record("C", 1), record("W", 5, 0, 0)
LOGS = {
    b"X": "h/T: byte 0: 88 begins no record; one of S, C, W and R would be right",
    BEGIN + b"W1": "h/T: byte 9: the file ends in a record W, which has 25 bytes",
    END: "h/T: byte 0: C stands outside a transaction; S would be right",
    BEGIN + END + WRITE: "h/T: byte 18: W stands outside a transaction; S would be right",
    BEGIN + BEGIN: "h/T: byte 9: S stands inside a transaction; C, W or R would be right",
    BEGIN + record("C", 2): "h/T: byte 9: transaction 2 is committed where transaction 1 began",
    BEGIN + WRITE + WRITE: (
        "h/T: byte 34: 5 is the number of another write, too; one for each would be right"
    ),
    BEGIN
    + WRITE
    + record(
        "R", 9, 5, 0, 0
    ): "h/T: byte 34: write 5 is read as one of transaction 9, and transaction 1 wrote it",
    BEGIN + record("R", 0xBEBEEBEE, 0x23332333, 0, 0): (
        "h/T: byte 9: write 0x23332333 is read as one of transaction 0xbebeebee, and only one of"
        " the two is the initial one; a log without garbage collection would be right"
    ),
}


@pytest.mark.parametrize(("data", "sentence"), LOGS.items(), ids=range(len(LOGS)))
def test_logs(data, sentence):
    with pytest.raises(RecordingError) as refused:
        read_cobra([("T", data)], "h")
    assert str(refused.value) == sentence


def test_folders(tmp_path):
    def refused(path, form="auto"):
        with pytest.raises(RecordingError) as error:
            recorded_history(path, form)
        return str(error.value).replace(str(tmp_path), "F")

    assert (
        refused(tmp_path)
        == "F: this folder holds no history: it has neither a file history.bincode (dbcop) nor"
        " files NAME.log (Cobra)"
    )
    (tmp_path / "0.log").write_bytes(BEGIN + WRITE + END)
    (tmp_path / "1.log").write_bytes(record("S", 2) + record("R", 1, 5, 0, 0) + record("C", 2))
    assert repr(recorded_history(tmp_path)) == "2 transactions in 2 sessions, 2 operations on 1 key"
    assert (
        refused(tmp_path / "0.log", "cobra")
        == "F/0.log: not a folder; Cobra's logs are a folder with a file for each session"
    )
    assert refused(tmp_path, "plume") == "cannot read F: Is a directory"
    (tmp_path / "2.log").write_bytes(BEGIN + BEGIN)
    assert (
        refused(tmp_path)
        == "F/2.log: byte 9: S stands inside a transaction; C, W or R would be right"
    )
    (tmp_path / "history.bincode").write_bytes(ONE + EVENT.pack(1, 0, 1, 1) + b"\1")
    assert repr(recorded_history(tmp_path)) == "1 transaction in 1 session, 1 operation on 1 key"
