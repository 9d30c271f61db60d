"""Whether all that a statement read was there at one moment."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING

from isolitmus.checker.locking.events import Scanned
from isolitmus.checker.locking.row_versions import key_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.checker.locking.row_versions import Image, Store, Stored
    from isolitmus.checker.locking.scans import Trace
    from isolitmus.model.execution import Event

__all__ = ["moments", "torn"]


def torn(event: Event) -> bool:
    """Whether some statement of a transaction read what was there at no one moment, from the start to when it ended."""
    done = event.effect
    if not isinstance(done, Scanned) or done.store is None:
        return False
    by_statement = groupby(done.traces, key=lambda trace: trace.statement)
    return any(not moments(event.name, list(traces), done.store) for _, traces in by_statement)


def moments(who: str, traces: Sequence[Trace], store: Store) -> list[int]:
    """The times at which the committed rows are what scans of one statement gave; beside these the transaction
    has what it wrote itself before.
    """
    began = min(
        trace.began if not trace.passed else min(trace.began, trace.passed[0][1])
        for trace in traces
    )
    ends = [trace.passed[-1][1] for trace in traces if trace.passed]
    times = {0} | {
        image.committed
        for rows in store.rows.values()
        for row in rows
        for image in row.versions
        if image.committed is not None and image.committed <= max(ends, default=0)
    }
    return sorted(
        at for at in times if all(_gives(who, trace, store, at, began) for trace in traces)
    )


def _gives(who: str, trace: Trace, store: Store, at: int, began: int) -> bool:
    """Whether a scan gave the rows that were there at a time; if it was ended before its end, the first of them."""
    there: list[tuple[object, Stored, Image]] = []
    for row in store.rows[trace.table]:
        image = _image(who, row, at, began)
        if image is not None and image.values is not None and trace.asks(image.values):
            there.append(((key_of(trace.index, image.values), row.number), row, image))
    gave = [
        (visit.row.id, visit.version.values)
        for visit in trace.visits
        if visit.version.writer != who or visit.version.written <= began
    ]
    wanted = [(row.id, image.values) for _, row, image in sorted(there, key=lambda one: one[0])]  # type: ignore[arg-type,return-value]
    if not trace.passed or trace.passed[-1][0] is not None:
        wanted = wanted[: len(gave)]
    return Counter(gave) == Counter(wanted)


def _image(who: str, row: Stored, at: int, began: int) -> Image | None:
    own = [v for v in row.versions if v.writer == who and v.written <= began and v.undone is None]
    if own:
        return own[-1]
    return next((v for v in reversed(row.versions) if v.there(at) and v.writer != who), None)
