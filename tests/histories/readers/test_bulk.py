"""The bulk readers give what the exact readers give: the same history, or the same sentence."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from isolitmus.histories.readers import bulk, recorded_history
from isolitmus.histories.readers.awdit import read_awdit
from isolitmus.histories.readers.blackbox_history import RegisterHistory
from isolitmus.histories.readers.plume import read_plume
from isolitmus.model.errors import RecordingError

BULK = {
    "plume": (bulk.read_plume_in_bulk, read_plume),
    "awdit": (bulk.read_awdit_in_bulk, read_awdit),
}
NUMBERS = st.integers(0, 3) | st.sampled_from([10, 4095, 10**9, 10**18 - 1, 10**18, 2**63 - 1])
OPERATIONS = st.tuples(st.sampled_from("rw"), NUMBERS, NUMBERS)
SESSIONS = st.lists(
    st.lists(st.lists(OPERATIONS, min_size=1, max_size=3), min_size=1, max_size=3), max_size=4
)
ENDS = st.sampled_from(["", "\n", "\n\n", " "])


@st.composite
def plume(draw):
    """Texts of Plume's format: transactions of sessions side by side, or in turns."""
    sessions = draw(SESSIONS)
    runs = [
        [(s, 10 * s + t, operation) for operation in operations]
        for s, session in enumerate(sessions)
        for t, operations in enumerate(session)
    ]
    order = draw(st.permutations(range(len(runs)))) if draw(st.booleans()) else range(len(runs))
    lines = [
        f"{word}({key},{value},{s},{t})" for k in order for s, t, (word, key, value) in runs[k]
    ]
    return ("\n".join(lines) + draw(ENDS)).encode()


@st.composite
def awdit(draw):
    """Texts of AWDIT's format, with an initial transaction or without, and empty parts."""
    sessions = draw(SESSIONS)
    keys = sorted({key for session in sessions for part in session for _, key, _ in part})
    if keys and draw(st.booleans()):
        sessions.insert(draw(st.integers(0, 2)), [[("w", key, 0) for key in keys]])
    dashes, lines = draw(st.sampled_from(["-----", "-"])), draw(st.sampled_from(["=====", "="]))
    parts = [
        f"\n{dashes}\n".join(
            "\n".join(f"{word} {key} {value}" for word, key, value in part) for part in session
        )
        for session in sessions
    ]
    text = f"\n{lines}\n".join(parts) + draw(st.sampled_from(["", f"\n{lines}", f"\n{dashes}"]))
    return (text + draw(ENDS)).encode()


SIGNS = st.sampled_from([*b"rw(), -=\n\r\0019\xff", *b"\xc3"]).map(lambda sign: bytes([sign]))
EDITS = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 3), SIGNS | st.binary(max_size=3)), max_size=3
)


def edited(data, edits):
    for where, length, piece in edits:
        at = int(where * len(data))
        data = data[:at] + piece + data[at + length :]
    return data


def outcome(data, form):
    """Return every column of a history, or the sentence of the error."""
    try:
        found = recorded_history.read_recorded(data, Path("h"), form)
    except RecordingError as error:
        return str(error)
    assert isinstance(found, RegisterHistory)
    columns = {field.name: getattr(found, field.name) for field in fields(found)}
    return {
        name: (column.dtype, column.tolist()) if isinstance(column, np.ndarray) else column
        for name, column in columns.items()
        if name not in ("keys", "sessions", "values")
    } | {name: tuple(columns[name]) for name in ("keys", "sessions", "values")}


@pytest.mark.parametrize("form", BULK)
@pytest.mark.parametrize("piece", [None, 8, 40])
def test_both_readers_of_a_text_agree(form, piece, monkeypatch):
    read = 0

    @given({"plume": plume(), "awdit": awdit()}[form], EDITS)
    @example({"plume": b"r(0,1,0,0)", "awdit": b"w 0 -\n-5-\n"}[form], [])
    @example({"plume": b"w(0,0,0,0)\n", "awdit": b"w 1 0\n=\nr 1 0\n"}[form], [])
    def agree(data, edits):
        nonlocal read
        changed = edited(data, edits)
        found = outcome(changed, form)
        read += not isinstance(found, str) and BULK[form][0](changed) is not None
        with monkeypatch.context() as patch:
            patch.setattr(recorded_history, "REGULAR", {})
            assert outcome(changed, form) == found

    if piece is not None:
        monkeypatch.setattr(bulk, "PIECE", piece)
    agree()
    assert read or piece is not None


@pytest.mark.parametrize("form", BULK)
def test_a_regular_text_is_read_in_bulk(form, monkeypatch):
    lines = {
        "plume": "r(5,0,0,0)\nw(5,1,0,0)\nr(5,1,1,1)\n",
        "awdit": "w 5 1\n-\nr 5 1\n=\nr 5 0\n",
    }
    monkeypatch.setattr(f"isolitmus.histories.readers.{form}.read_{form}", None)
    for text in (lines[form], lines[form].replace("\n", "\r\n"), lines[form][:-1]):
        found = recorded_history.read_recorded(text.encode(), Path("h"))
        assert (len(found.session), len(found.sessions), found.keys) == (
            2 + (form == "awdit"),
            2,
            ("5",),
        )
