"""Bulk readers of Plume's and AWDIT's text: columns by array operations, for regular text only.

A reader returns None unless the text has the shape that the tools write: one operation a line, no
spaces but those of the format, no negative numbers, at most 18 digits a number, the operations of a
transaction side by side. Then the exact reader (``plume``, ``awdit``) reads the text, or says in a
sentence what is wrong with it. Where a bulk reader returns a history, the exact one returns the
same.

The text is taken in pieces. The positions of the bytes that are not digits show the shape of all
lines of a piece at once. A number is the sum of its digits, each place of all numbers at a time
(``_numbers``), which also shows that they are digits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isolitmus.histories.readers.blackbox_history import COMMITTED, INITIAL, RegisterHistory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy import bool_, int32, int64, uint8
    from numpy.typing import NDArray

PIECE = 2**20
"""Size of a piece in bytes; a piece ends with a line, and the columns of one fit into a cache."""
DIGITS = 18
"""Maximum number of digits of a number, so that each fits into an int64."""
WORD = 8
"""Number of digits that are read together, as bytes of one word."""
BYTE = 8
"""Number of bits of a byte."""
ZEROS, ABOVE_9, HIGH_BITS = (byte * 0x0101010101010101 for byte in (0x30, 0x76, 0x80))
"""In each byte of a word: the digit 0; what added to more than 9 sets the high bit; that bit."""
HALVES = ((8, 0x00FF00FF00FF00FF), (16, 0x0000FFFF0000FFFF), (32, 0x00000000FFFFFFFF))
"""Width of the numbers that are joined in pairs, in bits, and where the joined ones are."""
DENSE = 4
"""Numbers are ranked by a table if the greatest is at most DENSE times their count."""


class _TextColumns:
    """Operations of a text in its order, and its transactions: the lines where each begins.

    Parameters
    ----------
    lines : int
        Number of lines, which bounds the number of operations.
    """

    def __init__(self, lines: int) -> None:
        self.is_write = np.empty(lines, np.bool_)
        self.key = np.empty(lines, np.int64)
        self.value = np.empty(lines, np.int64)
        self.line = np.empty(lines, np.int32)
        self.count = 0
        self.first: list[NDArray[int64]] = []
        self.session: list[NDArray[int64]] = []
        self.transaction: list[NDArray[int64]] = []
        self.passed = 0, 0, 0
        """Lines, sessions and transactions that ended in earlier pieces, by separators."""
        self._last = (-1, -1)

    def add(
        self,
        is_write: NDArray[bool_],
        key: NDArray[int64],
        value: NDArray[int64],
        line: NDArray[int64],
        place: tuple[NDArray[int64], NDArray[int64]],
    ) -> None:
        """Add operations: columns of one length; ``place`` has their sessions and transactions."""
        size = len(key)
        if not size:
            return
        here = slice(self.count, self.count + size)
        self.is_write[here], self.key[here] = is_write, key
        self.value[here], self.line[here] = value, line
        session, transaction = place
        begins = np.empty(size, np.bool_)
        begins[0] = (int(session[0]), int(transaction[0])) != self._last
        begins[1:] = (session[1:] != session[:-1]) | (transaction[1:] != transaction[:-1])
        at = np.flatnonzero(begins)
        self.first.append(at + self.count)
        self.session.append(session[at])
        self.transaction.append(transaction[at])
        self._last = int(session[-1]), int(transaction[-1])
        self.count += size

    def trim(self) -> None:
        """Drop the room for lines that were no operations."""
        if self.count < len(self.key):
            for name in ("is_write", "key", "value", "line"):
                setattr(self, name, getattr(self, name)[: self.count].copy())


def read_plume_in_bulk(data: bytes) -> RegisterHistory | None:
    r"""Return the history in a text of Plume's format; None if the text is irregular.

    Examples
    --------
    >>> read_plume_in_bulk(b"r(5,0,0,0)\nw(5,1,0,0)\nr(5,1,1,1)\n")
    2 transactions in 2 sessions, 3 operations on 1 key
    >>> read_plume_in_bulk(b"r(5, 0, 0, 0)\n") is None
    True
    """
    columns = _read_columns(data, _add_plume)
    if columns is None:
        return None
    transaction = np.sort(np.concatenate([np.empty(0, np.int64), *columns.transaction]))
    if (transaction[1:] == transaction[:-1]).any():
        return None  # it goes on after another one, or in another session
    zero = columns.value == 0
    if bool((zero & columns.is_write).any()):
        return None
    columns.value[zero] = INITIAL
    keys, key = _renumber(columns.key)
    return _history(columns, keys, key)


def _add_plume(piece: NDArray[uint8], columns: _TextColumns) -> bool:
    """Add the operations of a piece in Plume's format; return False if it is irregular."""
    marks = np.flatnonzero((piece < ord("0")) | (piece > ord("9")))
    if len(marks) % 7:
        return False
    rows = marks.reshape(-1, 7).T
    letter = piece[rows[0]]
    widths = np.diff(rows[1:6], axis=0) - 1
    if not (
        ((letter == ord("r")) | (letter == ord("w"))).all()
        and all((piece[rows[k]] == ord(sign)).all() for k, sign in enumerate("(,,,)\n", 1))
        and rows[0, 0] == 0
        and (rows[0, 1:] == rows[6, :-1] + 1).all()
        and (rows[1] == rows[0] + 1).all()
        and (rows[6] == rows[5] + 1).all()
    ):
        return False
    numbers = [_numbers(piece, rows[k + 2], widths[k]) for k in range(4)]
    key, value, session, transaction = numbers
    if key is None or value is None or session is None or transaction is None:
        return False
    line = np.arange(columns.count + 1, columns.count + 1 + len(key))
    columns.add(letter == ord("w"), key, value, line, (session, transaction))
    return True


def read_awdit_in_bulk(data: bytes) -> RegisterHistory | None:
    r"""Return the history in a text of AWDIT's format; None if the text is irregular.

    Examples
    --------
    >>> read_awdit_in_bulk(b"w 0 0\n=====\nr 0 0\nw 0 1\n-----\nr 0 1\n")
    2 transactions in 1 session, 3 operations on 1 key
    """
    columns = _read_columns(data, _add_awdit)
    if columns is None:
        return None
    columns.session = [_renumber(_transactions(columns)[1])[1].astype(np.int64)]
    keys, key = _renumber(columns.key)
    initial = _initial(columns, key, len(keys))
    if initial is not None:
        zero = columns.value == 0
        written = zero & columns.is_write
        written[initial] = False
        if bool(written.any()):
            return None
        columns.value[zero] = INITIAL
    return _history(columns, keys, key, initial)


def _add_awdit(piece: NDArray[uint8], columns: _TextColumns) -> bool:
    """Add the operations of a piece in AWDIT's format; return False if it is irregular."""
    ends = np.flatnonzero(piece == ord("\n"))
    starts = np.concatenate(([0], ends[:-1] + 1))
    first = piece[starts]
    is_operation = (first == ord("r")) | (first == ord("w"))
    breaks = {sign: first == ord(sign) for sign in "-="}
    if not (is_operation | breaks["-"] | breaks["="]).all():
        return False
    for sign, among in breaks.items():  # all of a sign stand in the lines that begin with it
        if np.count_nonzero(piece == ord(sign)) != (ends - starts)[among].sum():
            return False
    spaces = np.flatnonzero(piece == ord(" "))
    start, end = starts[is_operation], ends[is_operation]
    if len(spaces) != 2 * len(start):
        return False
    before, after = spaces.reshape(-1, 2).T
    if not ((before == start + 1).all() and (after < end).all()):
        return False
    key = _numbers(piece, after, after - before - 1)
    value = _numbers(piece, end, end - after - 1)
    if key is None or value is None:
        return False
    lines, sessions, transactions = columns.passed
    session = np.cumsum(breaks["="]) + sessions
    transaction = np.cumsum(breaks["="] | breaks["-"]) + transactions
    line = np.flatnonzero(is_operation) + lines + 1
    place = session[is_operation], transaction[is_operation]
    columns.add(first[is_operation] == ord("w"), key, value, line, place)
    columns.passed = lines + len(ends), int(session[-1]), int(transaction[-1])
    return True


def _initial(columns: _TextColumns, key: NDArray[int32], keys: int) -> slice | None:
    """Return the operations of the session that is the initial transaction, or None.

    It is the first one that has a single transaction, which writes 0 to each key of the file once.
    """
    if not columns.count:
        return None
    first, session, counts = _transactions(columns)
    alone = np.ones(len(session), np.bool_)
    alone[1:] &= session[1:] != session[:-1]
    alone[:-1] &= session[:-1] != session[1:]
    for k in np.flatnonzero(alone & (counts == keys)).tolist():
        here = slice(int(first[k]), int(first[k] + keys))
        if (
            columns.is_write[here].all()
            and not columns.value[here].any()
            and len(np.unique(key[here])) == keys
        ):
            return here
    return None


def _history(
    columns: _TextColumns, keys: list[int], key: NDArray[int32], initial: slice | None = None
) -> RegisterHistory:
    """Return columns as a history, grouped by session, without the initial transaction."""
    first, session, counts = _transactions(columns)
    if initial is not None:
        kept = first != initial.start
        first, session, counts = first[kept], session[kept], counts[kept]
    sessions, code = _renumber(session)
    order = np.argsort(code, kind="stable")
    first, counts = first[order], counts[order]
    begins = np.concatenate(([0], np.cumsum(counts)))
    whole = len(columns.key) == begins[-1] and bool((first == begins[:-1]).all())
    at: slice | NDArray[int64] = (
        slice(None)
        if whole
        else np.repeat(first - begins[:-1], counts) + np.arange(int(begins[-1]))
    )
    return RegisterHistory(
        keys=tuple(map(str, keys)),
        sessions=tuple(map(str, sessions)),
        session=code[order],
        status=np.full(len(order), COMMITTED, np.int8),
        first=begins,
        is_write=columns.is_write[at],
        key=key[at],
        value=columns.value[at],
        line=columns.line[at],
    )


def _transactions(columns: _TextColumns) -> tuple[NDArray[int64], NDArray[int64], NDArray[int64]]:
    """Return first operation, session and number of operations of each transaction."""
    none = np.empty(0, np.int64)
    first = np.concatenate([none, *columns.first])
    return first, np.concatenate([none, *columns.session]), np.diff(first, append=columns.count)


def _numbers(
    piece: NDArray[uint8], ends: NDArray[int64], widths: NDArray[int64]
) -> NDArray[int64] | None:
    """Return the numbers that end before these positions, by their widths in digits.

    None if a number has no digits or more than DIGITS, or if a byte of it is not a digit.
    """
    if not len(ends):
        return np.zeros(0, np.int64)
    longest = int(widths.max())
    if widths.min() < 1 or longest > DIGITS or len(piece) < WORD:
        return None
    at = np.ndarray(len(piece) - WORD + 1, "<u8", piece.data, strides=(1,))
    word = at[np.maximum(ends - WORD, 0)] ^ np.uint64(ZEROS)
    # The last digit comes to the highest byte, and what stands before the number becomes 0.
    word <<= (BYTE * np.maximum(WORD - ends, 0)).astype(np.uint64)
    before = (BYTE * np.maximum(WORD - widths, 0)).astype(np.uint64)
    word >>= before
    word <<= before
    if (((word + np.uint64(ABOVE_9)) | word) & np.uint64(HIGH_BITS)).any():
        return None
    for bits, half in HALVES:  # numbers of two digits, of four, of eight
        word = word * np.uint64(10 ** (bits // BYTE)) + (word >> np.uint64(bits))
        word &= np.uint64(half)
    number = word.astype(np.int64)
    if longest > WORD:
        long = np.flatnonzero(widths > WORD)
        more = _numbers(piece, ends[long] - WORD, widths[long] - WORD)
        if more is None:
            return None
        number[long] += more * 10**WORD
    return number


def _renumber(key: NDArray[int64]) -> tuple[list[int], NDArray[int32]]:
    """Return different numbers in the order of their first places, and the rank at each place."""
    if not len(key):
        return [], key.astype(np.int32)
    if int(key.max()) > DENSE * len(key):
        names, found, code = np.unique(key, return_index=True, return_inverse=True)
        order = np.argsort(found)
        rank = np.empty(len(names), np.int32)
        rank[order] = np.arange(len(names))
        return names[order].tolist(), rank[code]
    table = np.full(int(key.max()) + 1, -1, np.int64)
    table[key[::-1]] = np.arange(len(key))[::-1]  # of a number's places the first, set last
    names = np.flatnonzero(table >= 0)
    names = names[np.argsort(table[names])]
    table[names] = np.arange(len(names))
    return names.tolist(), table.astype(np.int32)[key]


def _read_columns(
    data: bytes, add: Callable[[NDArray[uint8], _TextColumns], bool]
) -> _TextColumns | None:
    """Return the columns of a text, whose pieces ``add`` reads; None if one is irregular."""
    columns = _TextColumns(data.count(b"\n") + 1)
    for piece in _pieces(data):
        if piece is None or not add(piece, columns):
            return None
    columns.trim()
    return columns


def _pieces(data: bytes) -> Iterator[NDArray[uint8] | None]:
    """Yield a text in pieces that end with a line; None if a line is longer than a piece."""
    if not data.endswith(b"\n"):
        data += b"\n"
    begin = 0
    while begin < len(data):
        end = data.rfind(b"\n", begin, begin + PIECE) + 1
        if end == 0:
            yield None
            return
        yield np.frombuffer(data, np.uint8, end - begin, begin)
        begin = end
