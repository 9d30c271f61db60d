"""Table hints of Transact-SQL, ``FROM t WITH (UPDLOCK, HOLDLOCK)``: one scan locks otherwise than its level says.

What each hint does is Microsoft's, Table Hints (Transact-SQL): NOLOCK reads what is there; READCOMMITTEDLOCK,
REPEATABLEREAD and SERIALIZABLE (HOLDLOCK) lock as those levels do; UPDLOCK and XLOCK take another mode, until the end;
TABLOCK and TABLOCKX lock the table, the one until the statement ends; READPAST passes over what others have locked.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from sqlglot import expressions as exp
from sqlglot.errors import SqlglotError

from isolitmus.checker.locking.protocol_rules import Held
from isolitmus.model.errors import Refused, SqlError, near
from isolitmus.specs.sql.quiet_sqlglot import parse_one
from isolitmus.specs.sql.unsupported_pairs import OUTSIDE

if TYPE_CHECKING:
    from isolitmus.checker.locking.protocol_rules import Rules

__all__ = ["ScanLocks", "scan_hints", "scan_locks", "takes_hints"]

SAME = {"READUNCOMMITTED": "NOLOCK", "HOLDLOCK": "SERIALIZABLE"}
"""Hints that say what others do."""
UNTIL_COMMIT = {"REPEATABLEREAD", "SERIALIZABLE", "UPDLOCK", "XLOCK", "TABLOCKX"}
PLACE = re.compile(r"\bWITH\s*\(|\(\s*(?:NOLOCK|HOLDLOCK|UPDLOCK)\s*\)", re.IGNORECASE)
"""Where a hint may be."""
KNOWN = (
    "NOLOCK", "READUNCOMMITTED", "READCOMMITTEDLOCK", "REPEATABLEREAD", "SERIALIZABLE", "HOLDLOCK",
    "UPDLOCK", "XLOCK", "ROWLOCK", "TABLOCK", "TABLOCKX", "READPAST",
)  # fmt: skip
CONTRARY = (
    ({"NOLOCK"}, {*KNOWN} - {"NOLOCK", "READUNCOMMITTED"}),
    ({"SERIALIZABLE"}, {"READPAST"}),
    ({"ROWLOCK"}, {"TABLOCK", "TABLOCKX"}),
)
"""Hints that SQL Server does not take together."""
NOT_WRITTEN = {"NOLOCK", "TABLOCK"}
"""Hints that are not modelled of the table that an UPDATE or DELETE changes, the first of which SQL Server refuses."""


class ScanLocks(NamedTuple):
    """What a scan sees and locks."""

    sight: str
    """What it sees (``rules``)."""
    held: Held | None
    """What it locks; None: nothing."""
    ranges: bool
    """Whether it locks the gaps between the rows that it comes to."""
    skips: bool = False
    """Whether it passes over rows that others have locked."""


@cache
def scan_hints(sql: str, label: str = "SQL") -> tuple[frozenset[str], ...]:
    """The hints of each scan of a statement, its own first, then those of its subqueries from left to right.

    Raises
    ------
    SqlError
        For a hint that is not modelled, or does not go with another.

    Examples
    --------
    >>> [sorted(hints) for hints in scan_hints("SELECT id FROM t WITH (UPDLOCK, READPAST) WHERE k > 0")]
    [['READPAST', 'UPDLOCK']]

    """
    if PLACE.search(sql) is None:
        return ()
    try:
        tree = parse_one(sql, "tsql")
    except (SqlglotError, ValueError):
        return ()
    tables = [
        table
        for table in tree.find_all(exp.Table)
        if isinstance(table.parent, exp.From | exp.Update | exp.Delete)
    ]
    own = tree.expression if isinstance(tree, exp.Insert) else tree
    tables.sort(
        key=lambda table: (
            table.parent is not tree and table.find_ancestor(exp.Select) is not own,
            table.this.meta["start"],
        )
    )
    return tuple(_hints(table, label) for table in tables)


def _hints(table: exp.Table, label: str) -> frozenset[str]:
    written = table.find_ancestor(exp.Select) is None
    named = [
        hint.sql().upper() for part in table.args.get("hints") or () for hint in part.expressions
    ]
    for name in named:
        if name not in KNOWN:
            raise SqlError(f"{label}: hint {name} {OUTSIDE}{near(name, KNOWN)}")
    found = frozenset(SAME.get(name, name) for name in named)
    for some, others in CONTRARY:
        if found & some and found & others:
            one, other = min(found & some), min(found & others)
            raise SqlError(f"{label}: hints {one} and {other} do not go together; leave one out")
    if written and found & NOT_WRITTEN:
        name = min(found & NOT_WRITTEN)
        raise SqlError(
            f"{label}: hint {name} {OUTSIDE} of a table that is changed"
            + ("; write TABLOCKX" if name == "TABLOCK" else "")
        )
    return found


def takes_hints(rules: Rules) -> bool:
    """Whether scans under a protocol may have hints: statements lock, or have a snapshot each."""
    return rules.see in {"current", "statement"} and not rules.threads


def scan_locks(usual: ScanLocks, hints: frozenset[str], rules: Rules, *, writes: bool) -> ScanLocks:
    """What a scan with some hints sees and locks, where without them it is as ``usual``; Refused where a protocol has
    other locks than SQL Server.
    """
    if not hints:
        return usual
    if not takes_hints(rules):
        raise Refused(
            "table hints are of SQL Server; they are modelled under protocols of locks, and of a snapshot for each statement"
        )
    if "NOLOCK" in hints:
        return ScanLocks("current", None, ranges=False)
    before = usual.held or Held("U" if writes else "S", rules.writes.granule, "next-asked")
    until = (
        "commit"
        if hints & UNTIL_COMMIT or before.until == "commit"
        else "statement"
        if "TABLOCK" in hints
        else "next-asked"
        if "READCOMMITTEDLOCK" in hints
        else before.until
    )
    mode = "X" if hints & {"XLOCK", "TABLOCKX"} else "U" if "UPDLOCK" in hints else before.mode
    granule = "table" if hints & {"TABLOCK", "TABLOCKX"} else before.granule
    held = replace(before, mode=mode, granule=granule, until=until)
    return ScanLocks("current", held, "SERIALIZABLE" in hints or usual.ranges, "READPAST" in hints)
