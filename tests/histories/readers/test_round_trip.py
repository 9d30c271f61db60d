"""What a tool writes is what is read, in each format; and of bytes that were tampered with nothing
but one sentence comes.
"""

import json
import struct
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.histories.blackbox.check import check_recorded
from isolitmus.histories.readers import RECORDED
from isolitmus.histories.readers.blackbox_history import (
    ABORTED,
    COMMITTED,
    INITIAL,
    UNKNOWN,
    ListHistory,
)
from isolitmus.histories.readers.cobra import read_cobra
from isolitmus.histories.readers.elle import WITHOUT_PROCESS
from isolitmus.histories.readers.recorded_history import read_recorded
from isolitmus.model.errors import RecordingError

# A history is a list of sessions, a session a list of transactions, a transaction its end and its
# operations, an operation
# whether it writes, a key and a value: of reads None where nothing was found.

KEYS = st.integers(0, 3)
WRITES = st.tuples(st.just(True), KEYS, st.integers(1, 5))
READS = st.tuples(st.just(False), KEYS, st.none() | st.integers(1, 6))
LISTS = st.tuples(st.just(False), KEYS, st.lists(st.integers(1, 6), max_size=4).map(tuple))


def histories(*ends, reads=READS):
    """Histories whose transactions end so."""
    transactions = st.tuples(
        st.sampled_from(ends), st.lists(WRITES | reads, min_size=1, max_size=4)
    )
    return st.lists(st.lists(transactions, min_size=1, max_size=3), min_size=1, max_size=3)


def told(history, values=lambda each: each):
    """A history that was read, as it was drawn."""
    sessions = [[] for _ in history.sessions]
    for t, session in enumerate(history.session):
        steps = []
        for i in range(history.first[t], history.first[t + 1]):
            value = None if history.value[i] == INITIAL else values(int(history.value[i]))
            steps.append((bool(history.is_write[i]), int(history.keys[history.key[i]]), value))
        sessions[session].append((int(history.status[t]), steps))
    return sessions


def read(data, form="auto"):
    return read_recorded(data if isinstance(data, bytes) else data.encode(), Path("h"), form)


# Writers


def awdit(sessions):
    keys = sorted({key for session in sessions for _, steps in session for _, key, _ in steps})
    whole = [[(COMMITTED, [(True, key, None) for key in keys])], *sessions]
    return "\n=====\n".join(
        "\n-----\n".join(
            "\n".join(f"{'rw'[w]} {key} {value or 0}" for w, key, value in steps)
            for _, steps in session
        )
        for session in whole
    )


def plume(sessions):
    lines, number = [], 0
    for s, session in enumerate(sessions):
        for status, steps in session:
            for w, key, value in steps:
                txn = number if status == COMMITTED else -1
                lines.append(f"{'rw'[w]}({key},{value or 0},{s},{txn})\n")
            number += 1
    return "".join(lines)


def number(value):
    return struct.pack("<Q", value)


def event(w, key, value, success=1):
    return struct.pack("<BQQB", w, key, value or 0, success)


def dbcop(sessions):
    texts = b"".join(number(len(text)) + text for text in (b"tool", b"2026", b""))
    out = number(0) * 5 + texts + number(len(sessions))
    for session in sessions:
        out += number(len(session))
        for status, steps in session:
            out += number(len(steps)) + b"".join(event(*step) for step in steps)
            out += bytes([status == COMMITTED])
    return out


def dbcop_json(sessions, short=False):
    def one(w, key, value):
        if short:
            return ["rw"[w], key, value]
        return {["Read", "Write"][w]: {"variable": key, "version": value}}

    data = [
        [
            {"events": [one(*step) for step in steps], "committed": status == COMMITTED}
            for status, steps in session
        ]
        for session in sessions
    ]
    return json.dumps(data if short else {"params": {}, "info": "", "data": data})


def dbcop_text(sessions):
    """Keys are words in this text."""
    return "// sessions\n" + "\n---\n".join(
        "\n".join(
            "["
            + " ".join(
                f"k{key}{':' if w else '='}={'?' if value is None else value}"
                for w, key, value in steps
            )
            + ("]" if status == COMMITTED else "] !")
            for status, steps in session
        )
        for session in sessions
    )


def cobra(sessions):
    """Logs by the names of their files; a write that is in none of them is of transaction 0, whose
    log was lost.
    """
    logs, transactions = [], 0
    writers = {}
    for session in sessions:
        for _, steps in session:
            transactions += 1
            writers |= {value: transactions for w, _, value in steps if w}
    transactions = 0
    for s, session in enumerate(sessions):
        out = b""
        for status, steps in session:
            transactions += 1
            out += struct.pack(">cQ", b"S", transactions)
            for w, key, value in steps:
                if w:
                    out += struct.pack(">cQQQ", b"W", value, key, 0)
                else:
                    initial = 0xBEBEEBEE, 0xDEADBEEF
                    of = initial if value is None else (writers.get(value, 0), value)
                    out += struct.pack(">cQQQQ", b"R", *of, key, 0)
            if status == COMMITTED:
                out += struct.pack(">cQ", b"C", transactions)
        logs.append((f"{s}.log", out))
    return logs


def operations(sessions, write):
    """Elle's operations; all processes are at work at once, and each has done one transaction
    before the next.
    """
    found = []
    for turn in range(max(map(len, sessions))):
        here = [(p, session[turn]) for p, session in enumerate(sessions) if turn < len(session)]
        for p, (_, steps) in here:
            asked = [[write if w else "r", key, value if w else None] for w, key, value in steps]
            found.append({"type": "invoke", "f": "txn", "process": p, "value": asked})
        for p, (status, steps) in reversed(here):
            kind = {COMMITTED: "ok", ABORTED: "fail", UNKNOWN: "info"}[status]
            done = [[write if w else "r", key, value] for w, key, value in steps]
            found.append({"type": kind, "f": "txn", "process": p, "value": done})
    return [{"index": i, **each} for i, each in enumerate(found)]


def edn(value):
    match value:
        case dict():
            return "{" + ", ".join(f":{word} {edn(each)}" for word, each in value.items()) + "}"
        case list() | tuple():
            return "[" + " ".join(map(edn, value)) + "]"
        case str():
            return f":{value}"
        case None:
            return "nil"
    return str(value)


def crashed_last(sessions):
    """A process does nothing after a transaction of which nobody saw the end."""
    ends = [[status for status, _ in session] for session in sessions]
    return [
        s[: e.index(UNKNOWN) + 1] if UNKNOWN in e else s
        for s, e in zip(sessions, ends, strict=True)
    ]


def without_reads(sessions):
    """Elle says what was read of what is committed only."""
    return [
        [(end, [s for s in steps if end == COMMITTED or s[0]]) for end, steps in session]
        for session in sessions
    ]


# Laws


@given(histories(COMMITTED))
def test_awdit(sessions):
    assert told(read(awdit(sessions))) == sessions


@given(histories(COMMITTED, ABORTED))
def test_dbcop_s_text(sessions):
    text = dbcop_text(sessions)
    for form in ("auto", "dbcop"):
        found = read(text, form)
        words = {f"k{key}": str(key) for key in range(4)}
        assert told(replace(found, keys=[words[key] for key in found.keys])) == sessions


def operation(kind, word, value, f=":txn", process=""):
    return f"{{:type {kind}, :f {f}, :value [[:{word} 3 {value}]]{process}}}\n"


def test_the_function_of_a_transaction_may_be_any():
    """Jepsen's long fork, case c12."""
    text = "".join(
        operation(kind, word, value, f, ", :process 0")
        for f, word, value in ((":write", "w", 1), (":read", "r", 1))
        for kind in (":invoke", ":ok")
    )
    assert told(read(text), lambda number: number + 1) == [
        [(COMMITTED, [(True, 3, 1)]), (COMMITTED, [(False, 3, 1)])]
    ]


def test_a_transaction_without_a_process_is_a_session_of_its_own():
    write, reads = operation(":invoke", "w", 1), operation(":invoke", "r", "nil")
    done, seen = operation(":ok", "w", 1), operation(":ok", "r", 1)
    found = read(write + reads + done + seen)
    assert (len(found.sessions), found.assumptions) == (2, (WITHOUT_PROCESS,))
    assert (found.started.tolist(), found.ended.tolist()) == ([0, 1], [2, 3])
    ambiguous = read(write + reads + reads + done + seen + seen)
    assert (len(ambiguous.sessions), ambiguous.started) == (3, None), "either read may be the first"
    assert read(done + seen).assumptions == (WITHOUT_PROCESS,)
    assert check_recorded("h", found).assumptions[1:] == (WITHOUT_PROCESS,)


@given(histories(COMMITTED))
def test_awdit_s_negative_values(sessions):
    """-1 is a value like any other."""
    signed = [
        [(end, [(w, key, value and 2 - value) for w, key, value in steps]) for end, steps in each]
        for each in sessions
    ]
    signed = [[(end, [x for x in steps if x[2] != 0]) for end, steps in each] for each in signed]
    signed = [[part for part in each if part[1]] for each in signed]
    signed = [each for each in signed if each]
    history = read(awdit(signed), "awdit")
    assert told(history, lambda v: history.values[v] if history.values else v) == signed


@given(histories(COMMITTED, ABORTED))
def test_plume(sessions):
    """Of aborted transactions each operation is one: the format does not say which are together."""
    expected = [
        [
            part
            for end, steps in session
            for part in ([(end, steps)] if end == COMMITTED else [(end, [s]) for s in steps])
        ]
        for session in sessions
    ]
    assert told(read(plume(sessions))) == expected


@given(histories(COMMITTED, ABORTED))
def test_dbcop(sessions):
    assert told(read(dbcop(sessions))) == sessions


@given(histories(COMMITTED, ABORTED), st.booleans())
def test_dbcop_in_json(sessions, short):
    assert told(read(dbcop_json(sessions, short))) == sessions


@given(histories(COMMITTED, UNKNOWN))
def test_cobra(sessions):
    """The n-th write of all has the number n, and what is read may be in a later log, or in
    none.
    """
    writes = 0
    numbered = []
    for session in crashed_last(sessions):
        numbered.append([])
        for end, steps in session:
            numbered[-1].append((end, []))
            for w, key, value in steps:
                writes += w
                numbered[-1][-1][1].append((w, key, writes if w else value))
    history = read_cobra(cobra(numbered), "h")
    assert told(history, history.values.__getitem__) == numbered


@given(histories(COMMITTED, ABORTED, UNKNOWN).map(crashed_last))
def test_elle_s_registers(sessions):
    done = operations(sessions, "w")
    for text in ("\n".join(map(edn, done)), edn(done), json.dumps(done), one_a_line(done)):
        history = read(text, "elle")
        if isinstance(history, ListHistory):
            history = history.registers
        assert told(history, history.values.__getitem__) == without_reads(sessions)


@given(histories(COMMITTED, ABORTED, UNKNOWN, reads=LISTS).map(crashed_last))
def test_elle_s_lists(sessions):
    sessions = [
        *sessions,
        [(COMMITTED, [(True, 9, 9)])],
    ]  # without any append these may be registers
    done = operations(sessions, "append")
    for text in ("\n".join(map(edn, done)), json.dumps(done), one_a_line(done)):
        history = read(text)
        registers = history.registers
        seen = iter(tuple(map(history.list_of, range(len(registers.key)))))
        found = [
            [
                (end, [_whole(step, next(seen), registers) for step in steps])
                for end, steps in session
            ]
            for session in told(registers, registers.values.__getitem__)
        ]
        assert found == without_reads(sessions)


@given(histories(COMMITTED, ABORTED, UNKNOWN).map(crashed_last), st.booleans())
def test_elle_s_ends_alone(sessions, by_process):
    """Ends say what happened, and not when; nor do indexes that begin anew for each process."""
    done = operations(sessions, "w")
    if by_process:
        for i, each in enumerate(done):
            each["index"] = sum(one["process"] == each["process"] for one in done[:i])
    else:
        done = [each for each in done if each["type"] != "invoke"]
    history = read(one_a_line(done)).registers
    found = dict(zip(history.sessions, told(history, history.values.__getitem__), strict=True))
    expected = without_reads(sessions)
    assert found == {str(p): each for p, each in enumerate(expected)}
    assert (history.started is None) == (not by_process or len(sessions) > 1)


def test_without_a_process_each_end_is_a_session():
    history = read("[{:type :ok :value [[:w 0 1]]} {:type :ok :value [[:w 0 2]]}]")
    assert history.sessions == ("of operation 1", "of operation 2")
    assert history.started is None


def test_the_first_key_does_not_make_a_format():
    data = json.loads(dbcop_json(SMALL))["data"]
    for text in ({"id": 3, "data": data}, {"name": "a", "id": 3, "data": data}):
        assert told(read(json.dumps(text))) == SMALL
    assert told(read(json.dumps({"id": 3, "data": data}, indent=2))) == SMALL


def one_a_line(values):
    return "\n".join(map(json.dumps, values))


def _whole(step, seen, registers):
    """A step with all that it saw."""
    is_write, key, value = step
    return is_write, key, value if is_write else tuple(registers.values[v] for v in seen)


# Bytes that were tampered with

SMALL = [
    [(COMMITTED, [(True, 0, 1), (False, 1, None)]), (ABORTED, [(True, 1, 2)])],
    [(COMMITTED, [(False, 0, 1), (True, 1, 3)])],
]
LISTED = [[(COMMITTED, [(True, 0, 1), (False, 0, (1,))])], [(UNKNOWN, [(True, 0, 2)])]]
FILES = [
    awdit(SMALL).encode(),
    plume(SMALL).encode(),
    dbcop(SMALL),
    dbcop_json(SMALL).encode(),
    dbcop_json(SMALL, short=True).encode(),
    edn(operations(SMALL, "w")).encode(),
    json.dumps(operations(SMALL, "w")).encode(),
    edn(operations(LISTED, "append")).encode(),
    json.dumps(operations(LISTED, "append")).encode(),
]
PIECES = st.one_of(
    st.binary(max_size=9),
    st.sampled_from(
        [b"\xff" * 8, b"9" * 5000, b"[" * 3000, b"{", b'"', b"#_", b"nil", b"-1", b"1.5"]
    ),
    st.sampled_from([b":process", b":w", b"=====", b"\n", b"w 0 0\n", b"#{", b"NaN", b"true"]),
)
EDITS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 12), PIECES), min_size=1, max_size=3)


def tampered(data, edits):
    for where, length, piece in edits:
        at = int(where * len(data))
        data = data[:at] + piece + data[at + length :]
    return data


def one_sentence(reader, *arguments):
    try:
        reader(*arguments)
    except RecordingError as error:
        assert str(error).strip()
        assert "\n" not in str(error)


@given(st.sampled_from(FILES), EDITS, st.sampled_from(("auto", *RECORDED)))
def test_what_was_tampered_with_is_read_or_refused(data, edits, form):
    one_sentence(read, tampered(data, edits), form)


@given(EDITS)
def test_so_are_logs(edits):
    """What is drawn is one log of two."""
    (_, first), second = cobra(SMALL)
    one_sentence(read_cobra, [("0.log", tampered(first, edits)), second], "h")


@pytest.mark.slow
def test_what_was_cut_is_read_or_refused():
    for data in FILES:
        for length in range(len(data)):
            one_sentence(read, data[:length])


@pytest.mark.slow
def test_binary_files_and_trees_that_were_cut_are_refused():
    """Of text each line is whole: a shorter text is another history."""
    for data in (FILES[2], FILES[3], FILES[4], FILES[5], FILES[6]):
        for length in range(1, len(data)):
            with pytest.raises(RecordingError):
                read(data[:length])


@given(st.binary(max_size=200), st.sampled_from(("auto", *RECORDED)))
def test_so_is_anything(data, form):
    one_sentence(read, data, form)
