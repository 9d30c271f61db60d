"""Reasons in words: why one transaction comes before another, or conflicts with it.

A reason is data (`model.reason`): a kind and its nouns. This module has the clause of each kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isolitmus.model.reason import Item, Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from isolitmus.model.sql.values import Row


def _row_text(row: tuple[Any, ...]) -> str:
    """Return a row as text; most reasons name none, and need no types of SQL."""
    from isolitmus.model.sql.values import show_row

    return show_row(row)


def words(reason: Reason) -> str:
    """Return a reason as a clause that reads after "because".

    >>> from isolitmus.model.vocabulary import SETS
    >>> words(Reason.of("member", node="a", term=SETS["Blind"], inside=False))
    'a is not a blind append'
    >>> read = Reason.of("saw", reader="b", version=1)
    >>> wrote = Reason.of("item wrote", writer="a", version="x1")
    >>> words(Reason.of("both", parts=(read, wrote)))
    'b read version 1, and a wrote x1'
    """
    said = WORDS.get(reason.kind, reason.kind)
    if callable(said):
        return said(reason.nouns)
    return said.format_map({name: _noun(noun) for name, noun in reason.nouns.items()})


def _noun(noun: object) -> str:
    """Return a noun of a reason in words: an item, a row, or anything else as a string."""
    if isinstance(noun, Item):
        if not noun.named:
            return f"row {_row_text(noun.values)}"
        shown = _row_text(noun.values)
        return f"{noun.table} {shown}" if noun.values else f"that {noun.table} was not there"
    return _row_text(noun) if isinstance(noun, tuple) else str(noun)


def _show(row: Row | None) -> str:
    return "that is gone" if row is None else _row_text(row)


def _overwrote(said: Mapping[str, Any]) -> str:
    did = "deleted" if said["deleted"] else "rewrote"
    had = "deleted" if said["was_deleted"] else "written"
    return f"{said['writer']} {did} {_noun(said['item'])}, which {said['before']} had {had}"


def _overwritten(said: Mapping[str, Any]) -> str:
    changed = "changed to" if said["item"].values else "made"
    did = "deleted" if said["after"] is None else f"{changed} {_row_text(said['after'])}"
    return f"{said['reader']} read {_noun(said['item'])}, which {said['writer']} then {did}"


def _read_after(said: Mapping[str, Any]) -> str:
    did = "added" if said["came"] else "removed"
    item = _noun(said["item"])
    return f"{said['reader']} read {said['predicate']} after {said['writer']} {did} {item}"


def _thin_air(said: Mapping[str, Any]) -> str:
    read, writer, version = (said[noun] for noun in ("read", "writer", "version"))
    none = f"but {writer} has no w({version})" if said["there"] else f"but there is no {writer}"
    return f"{read} of {said['reader']} reads {version}, {none}"


READ = "{reader} read {predicate} at version {version}"


def _came_and_went(said: Mapping[str, Any]) -> str:
    read = f"{READ.format_map(said)}, without {_noun(said['item'])}"
    added = "added" if said["came"] else "wrote"
    return f"{read}, which {said['writer']} {added} and {said['last']} then removed"


def _changed_and_went(said: Mapping[str, Any]) -> str:
    """Return the clause of a row that was read, then changed or added again, then removed."""
    read = f"{READ.format_map(said)}, with {_noun(said['item'])}"
    verb = "added again as" if said["was_gone"] else "changed to"
    changed = f"{said['writer']} {verb} {_row_text(said['then'])}"
    return f"{read}, which {changed} and {said['last']} removed"


def _went_and_came(said: Mapping[str, Any]) -> str:
    """Return the clause of a row that was read, then removed, then added again."""
    item, now = said["item"], said["now"]
    read = f"{READ.format_map(said)}, with {_noun(item)}"
    back = "" if item.values == now else f" as {_row_text(now)}"
    return f"{read}, which {said['writer']} removed and {said['last']} added again{back}"


# Delta's conflicts


def _added(said: Mapping[str, Any]) -> str:
    """Return the clause of a file that one transaction added where another one read."""
    table, predicate = said["table"], said["predicate"]
    read = f"{table} WHERE {' AND '.join(map(str, predicate))}" if predicate else f"all of {table}"
    where = f"partition {said['folder']} of {table}"
    return f"{said['winner']} added a file to {where}, where {said['loser']} read {read}"


def _file(path: str, table: str) -> str:
    """Return a file in words: its partition, table and writer."""
    folder, _, name = path.rpartition("/")
    writer = name.rpartition("-")[0]
    if not writer:  # the operation of a raw transaction, with a name that its author chose
        return f"the file {name} of {table}"
    whose = "that was there before" if writer.startswith("+") else f"that {writer} wrote"
    place = f"partition {folder} of " if folder else ""
    return f"a file in {place}{table} {whose}"


CHANGED = {
    "id": "changed the identity of the table",
    "partitioned_by": "changed the partition columns",
    "created": "changed the time of creation",
    "levelled": "removed the isolation level",
    "reached": "recorded later values of an identity column",
    "comments": "changed the comment of a column",
}
"""Clause for each kind of metadata change; any other kind "changed the KIND"."""


def _changed(said: Mapping[str, Any]) -> str:
    what = said["what"]
    return CHANGED.get(what, f"changed the {what}")


def _removed_read(said: Mapping[str, Any]) -> str:
    read = f"the whole of {said['table']}" if said["whole"] else "it"
    file = _file(said["file"], said["table"])
    return f"{said['winner']} removed {file}, and {said['loser']} read {read}"


def _removed_removed(said: Mapping[str, Any]) -> str:
    file = _file(said["file"], said["table"])
    return f"{said['winner']} and {said['loser']} both removed {file}"


# Reads as nodes


def _item_seen(said: Mapping[str, Any]) -> str:
    row = said["item"].values
    was = f"{_row_text(row)} of {said['writer']}" if row else "not there"
    return f"{READ.format_map(said)}, which was {was}"


def _did(said: Mapping[str, Any]) -> str:
    """Return the clause of a write: the row is added, changed or removed."""
    item, first = said["item"], said["first"]
    what = item.table if item.named else "row"
    before, after = said["before"], said["after"]
    match before, after:
        case None, None if first:
            did = (
                f"had not made {what}"
                if item.named
                else f"left the table without row {_show(said['last'])}"
            )
        case None, None:
            did = f"removed row {_show(said['last'])}, which was already gone"
        case _, None:
            did = f"removed {what} {_show(before)}"
        case None, _:
            did = f"added {what} {_show(after)}"
        case _:
            did = f"changed {what} {_show(before)} to {_show(after)}"
    return f"{said['writer']} {did}"


# Abstract histories

DOUBT = ", in a version order that was not observed"


def _doubted(text: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda said: text.format_map(said) + (DOUBT if said["doubt"] else "")


def _in_order(said: Mapping[str, Any]) -> str:
    """Return the clause of versions in their order."""
    *firsts, last = map(str, said["versions"])
    if len(firsts) == 1:
        return f"{firsts[0]} came before {last}"
    return f"{', '.join(firsts)} and {last} came in this order"


# Logs of tables that other programs wrote


def _maybe(did: str, may: str, text: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda said: text.format(did=did if said["certain"] else may, **said)


# Reasons composed of other reasons


def _member(said: Mapping[str, Any]) -> str:
    told: str = said["term"].member(said["node"], inside=said["inside"])
    return told


def _joined(link: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda said: link.join(map(str, said["parts"]))


def _way(said: Mapping[str, Any]) -> str:
    """Return the clauses of a path, joined by "and", or by "but" before an alternative."""
    clause = ""
    for reason, instead in said["steps"]:
        link = ", but " if instead else ", and "
        clause += (link if clause else "") + str(reason)
    return clause


def _told_apart(said: Mapping[str, Any]) -> str:
    from isolitmus.checker.render.history_notation import one_line_of

    return "perhaps equal" if said["test"] is None else one_line_of(said["test"])


WORDS: Mapping[str, str | Callable[[Mapping[str, Any]], str]] = {
    "": "",
    "both": _joined(", and "),
    "with": _joined("; "),
    "way": _way,
    "member": _member,
    "told apart": _told_apart,
    # the log
    "one session": "in session '{session}' {first} came before {second}",
    "saw": "{reader} read version {version}",
    "log order": "in the log {first} is version {version}, {second} version {later}",
    "missed": "{reader} read version {version}, before {writer} committed version {became}",
    # rows
    "overwrote": _overwrote,
    "read item": "{reader} read {item}, which {writer} wrote",
    "read gone": "{reader} read that {item} was gone, which {writer} deleted",
    "overwritten": _overwritten,
    "brought back": "{reader} read that {item} was gone, which {writer} then brought back",
    "read after": _read_after,
    "came": READ + ", without {item}, which {writer} added",
    "came and went": _came_and_went,
    "went": READ + ", with {item}, which {writer} removed",
    "changed and went": _changed_and_went,
    "went and came": _went_and_came,
    # Delta's conflicts
    "added": "{winner} added a file to {table}, which has no partitions and which {loser} read",
    "added where": _added,
    "removed, read": _removed_read,
    "removed, removed": _removed_removed,
    "same domain": "{winner} and {loser} both set the domain {domain}",
    "looked up": "{winner} set the version of the application {app}, which {loser} had read",
    "clash": "{winner} {clash}, and {loser} had not seen that",
    "took feature": "removed the feature {feature}",
    "added feature": "added the feature {feature}, with which concurrent commits fail",
    "took property": "removed the property {key}",
    "set property": "set the property {key}",
    "wrote metadata": "wrote the metadata",
    "changed metadata": _changed,
    # Delta's commits below the level of files
    "merges-vectors": "{first} and {second} deleted different rows of one file",
    "adds-meets-reads-unmerged": "{first} added a file, not merged, that {second} could have read",
    "removes-meets-reads-unmerged": "{first} removed a file, not merged, that {second} read",
    "removes-meets-removes-unmerged": "{first} and {second} removed one file, not merged",
    "removes-meets-reads-unmoved": "{first} removed a file, not moved, that {second} read",
    "removes-meets-removes-unmoved": "{first} and {second} removed one file, not moved",
    "adds-could-match-reads": "by its statistics, {second} could match a file that {first} added",
    "adds-could-match-reads-unmerged": (
        "by its statistics, {second} could match a file, not merged, that {first} added"
    ),
    "adds-match-reads": "{second} matches a row of a file that {first} added",
    "adds-match-reads-unmerged": "{second} matches a row of a file, not merged, that {first} added",
    "removes-could-match-reads": (
        "by its statistics, {second} could match a file that {first} removed"
    ),
    "added-rows-match-reads": "{second} matches a row that {first} wrote",
    "removed-rows-match-reads": "{second} matches a row that {first} deleted or changed",
    "removes-removed-row": "{first} and {second} deleted or changed one row of a file",
    "removes-read-row": "{first} deleted or changed a row of a file, which {second} read",
    "moves-removed-row": "{first} moved a row to another file, which {second} deleted or changed",
    "removes-moved-row": "{first} deleted or changed a row, which {second} moved to another file",
    "moves-read-row": "{first} moved a row to another file, which {second} read",
    "changes-changed-row": "{first} and {second} deleted or changed one row",
    "same-merge-key": "the sources of {first} and {second} share a key",
    "ww-later": "{second} wrote a later version of a row that {first} wrote",
    "wr-earlier": "{second} read a row after a version of it that {first} wrote",
    "rw-later": "{first} read a version of a row, of which {second} wrote a later one",
    "added, read set": "{winner} added a file to {table} that may hold rows that {loser} reads",
    "removed, read set": "{winner} removed a file of {table} that may hold rows that {loser} reads",
    # recorded histories
    "recorded session": "session {session} has {first} before {second}",
    "recorded time": "{first} had ended when {second} began",
    "recorded read": "{reader} read {key} = {value}, which {writer} wrote",
    "recorded whose": "{reader} read {version}",
    "recorded unborn": "{reader} read {key} before any transaction wrote it",
    "recorded nothing": "{reader} read nothing of {key}",
    "recorded overwrote": "{writer} overwrote {key} = {value} of {other} with {later}",
    "recorded overwrote seen": (
        "{writer} overwrote {key} = {value} of {other}, which it sees, with {later}"
    ),
    "recorded listed": (
        "{reader} read a list of {key} that has {value} of {other} before {later} of {writer}"
    ),
    "recorded unlisted": (
        "{reader} read a list of {key} that has {value} of {other} and not {later} of {writer}"
    ),
    "recorded missed": "{reader} read {key} = {value}, which {writer} overwrote with {later}",
    "recorded missed all": "{reader} read nothing of {key}, and {writer} wrote {key} = {later}",
    "recorded stale": (
        "{reader} read {key} = {value} although {seeing} sees {seen}, and {writer} wrote {key} ="
        " {later}: {sees}"
    ),
    "recorded forced": "otherwise {second} came before {first}, which is impossible: {sees}",
    "recorded flaw": "{said}{more}",
    "recorded orders": "{said}: {of}",
    # reads as nodes
    "initial": "{init} is the state before {node}",
    "in": "{reader} read {predicate}",
    "had row": READ + ", with {item} of {writer}",
    "row was gone": READ + ", without {item}, which {writer} had removed",
    "row never came": READ + ", without {item}, as {writer} left the table",
    "had item": _item_seen,
    "rival": _did,
    # abstract histories
    "session": "{first} comes before {second} in their session",
    "thin air": _thin_air,
    "future read": "{read} of {reader} reads {version} before its own {write}",
    "lost own write": "{read} of {reader} reads {version} after its own {write}, which it must see",
    "read halfway": (
        "{reader} read {version}, an intermediate version that {writer} itself overwrote"
    ),
    "ended before": "{first} had ended when {second} started",
    "next version": _doubted(
        "{writer} wrote {version}, the next version after {before} of {other}"
    ),
    "read version": "{reader} read {version}, which {writer} wrote",
    "version overwritten": _doubted(
        "{reader} read {version} and {writer} wrote the next version {following}"
    ),
    "read with": "{reader} read {predicate} with {version} of {writer}",
    "saw with": "{reader} read {predicate} with {version}, which {writer} wrote",
    "after change": (
        "{reader} read {predicate} after {version} of {writer}, which changes what matches"
    ),
    "without change": (
        "{reader} read {predicate} without {version} of {writer}, which changes what matches"
    ),
    "node in": "{read} is in {reader}",
    "program order": "{read} comes before {later} in {reader}",
    "item wrote": "{writer} wrote {version}",
    "item changes": "{writer} wrote {version}, which changes what matches {predicate}",
    "same object": "{first} and {second} are both on {name}",
    "came before": "{first} came before {second}",
    "committed": "{node} committed",
    "aborted": "{node} aborted",
    "came in order": _in_order,
    "supposed co": "{first} commits before {second}, by assumption",
    "supposed vis": "{second} sees {first}, by assumption",
    "committed in order": lambda said: f"{' '.join(said['nodes'])} commit in this order",
    "sees": lambda said: f"{said['node']} sees {' '.join(said['seen'])}",
    # audits
    "earlier": "it is earlier in the log",
    "audit overwrote": _maybe(
        "changed", "may have changed", "{writer} {did} rows that {reader} read"
    ),
    "audit missed": _maybe(
        "changed",
        "may have changed",
        "{reader} read version {version}, and {writer} {did} rows that it read",
    ),
    "audit read": _maybe("read", "may have read", "{reader} {did} what {writer} wrote"),
    "audit wrote": "{writer} may have overwritten what {before} wrote",
}
"""Clause of each kind, with its nouns in braces, or a function that returns the clause."""
