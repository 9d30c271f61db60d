"""Hypothesis strategies for raw transactions: what no SQL reaches, drawn as the text of a litmus file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import reject
from hypothesis import strategies as st

from isolitmus.model.errors import IsolitmusError
from isolitmus.model.litmus import Litmus
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.sql.configuration import ATTEMPTS, RESOLUTION, SKIPPING, STRICT_FEATURES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hypothesis.strategies import DrawFn

__all__ = ["raw_tests"]

READS = (
    '"true"', '"part = 0"', '"part > 0"', '"id = 1"', '"part = 1 AND id = 2"', "{ whole_table = true }",
    '{ sql = "SELECT count(*) FROM t" }', '{ sql = "SELECT id FROM t WHERE part = 1" }',
    '{ app_id = "a" }', '{ app_id = "b" }',
)  # fmt: skip
METADATA = (
    "{}", '{ configuration = { "team" = "us" } }', '{ description = "ours" }',
    '{ configuration = { "delta.enableDeletionVectors" = "true" } }',
    '{ configuration = { "delta.appendOnly" = "true" } }', '{ unset = ["delta.enableDeletionVectors"] }',
)  # fmt: skip
PROTOCOL = (
    "", "deletionVectors", "domainMetadata", "rowTracking", "clustering", "columnMapping", "checkConstraints",
    "v2Checkpoint", "typeWidening", "identityColumns",
)  # fmt: skip
"""Features that come: some require others, some fail others where those ask for it."""
FEATURES: tuple[tuple[str, ...], ...] = (
    (), (), ("domainMetadata",), ("rowTracking",), ("clustering",), ("deletionVectors",),
)  # fmt: skip
OPERATIONS = (
    "Truncate", "Truncate", "Delete", "ManualUpdate", "SetTableProperties", "ComputeStats", "Optimize",
    "UpgradeProtocol",
)  # fmt: skip
CONFS = ((RESOLUTION, "false"), (STRICT_FEATURES, "true"), (SKIPPING, "false"), (ATTEMPTS, "0"))
STATS = (
    "{ numRecords = 1 }",
    "{ numRecords = 2, minValues = { id = 0 }, maxValues = { id = 1 }, nullCount = { id = 0 } }",
    "{ numRecords = 2, minValues = { id = 2 }, maxValues = { id = 3 }, nullCount = { id = 0 } }",
)
SOME = st.integers(0, 7).map(lambda k: k == 0)
HALF = st.booleans()


@dataclass(frozen=True, slots=True)
class _Table:
    """What a drawn transaction knows of its table."""

    partitions: tuple[str, ...]
    vectors: bool
    features: tuple[str, ...]
    files: tuple[str, ...]


@st.composite
def raw_tests(draw: DrawFn) -> Litmus:
    """Two to five raw transactions on one table, in any schedule: with two or three files that are said to
    be there, or with real ones; with partitions, without, or with nothing else.
    """
    partitions = draw(st.sampled_from([(), ("part",), ("part",), ("id", "part")]))
    table = _Table(
        partitions,
        draw(HALF),
        draw(st.sampled_from(FEATURES)),
        tuple(f"f{k}" for k in range(draw(st.integers(2, 3)))),
    )
    names = ["a", "b", "c", "d", "e"][: draw(st.sampled_from([2, 2, 3, 3, 4, 5]))]
    order = draw(st.permutations([name for name in names for _ in range(2)]))
    steps = [f"{name}.{'commit' if name in order[:k] else 'start'}" for k, name in enumerate(order)]
    properties = [f'"delta.feature.{name}" = "supported"' for name in table.features]
    if table.vectors:
        properties.append('"delta.enableDeletionVectors" = "true"')
    real = len(partitions) < 2 and "clustering" not in table.features and draw(SOME)
    files = [_file(draw, table, path, there=True) for path in table.files]
    held = 'init = ["INSERT INTO t VALUES (1, 0), (2, 1)"]' if real else f"files = {_listed(files)}"
    text = [
        'title = "Drawn"',
        f'schedule = "{" ".join(steps)}"',
        "[table]",
        'columns = "id INT, part INT"',
        f"partitioned_by = {json.dumps(list(partitions))}",
        held,
        f"properties = {{ {', '.join(properties)} }}",
    ]
    for name in names:
        text += [f"[transactions.{name}]", *_keys(draw, name, table, real=real)]
    try:
        test = read_litmus("\n".join(text), "drawn")
    except IsolitmusError:
        reject()
    assert isinstance(test, Litmus)
    return test


def _listed(items: Iterable[str]) -> str:
    return f"[{', '.join(items)}]"


def _file(draw: DrawFn, table: _Table, path: str, *, there: bool = False) -> str:
    """A file, ``there`` from the start or not; of some nobody knows how many rows they have, some have
    a vector, though the table may have none.
    """
    parts = [f"{column} = {draw(st.integers(0, 2))}" for column in table.partitions]
    keys = [f'path = "{path}"']
    keys += [f"partition = {{ {', '.join(parts)} }}"] if parts else []
    whole = STATS if "id" not in table.partitions else STATS[:1]
    marked = draw(HALF) if table.vectors else not there and draw(SOME)
    vector = draw(st.sampled_from(["d1", "d2"])) if marked else None
    if vector is not None or not draw(SOME) or "rowTracking" in table.features:
        keys.append(f"stats = {draw(st.sampled_from(whole))}")
    keys += [f'dv = "{vector}"'] if vector is not None else []
    return f"{{ {', '.join(keys)} }}"


def _keys(draw: DrawFn, name: str, table: _Table, *, real: bool) -> list[str]:
    """What a transaction has; most have reads and files, few the rest."""
    parts = ", ".join(f"{column} = 1" for column in table.partitions)
    looks = (*READS, *([f"{{ partitions = [{{ {parts} }}] }}"] if parts else []))
    reads = draw(st.lists(st.sampled_from(looks), max_size=2))
    # now and then a file of another transaction, or of the table, and now and then one path twice
    mine = [f"{name}0", f"{name}1"]
    paths = st.sampled_from([*mine, *mine, *table.files]) if draw(SOME) else st.sampled_from(mine)
    twice = draw(SOME)
    adds = draw(st.lists(paths, max_size=2, unique_by=None if twice else str))
    removes = _removes(draw, table, real=real, twice=twice)
    lines = [
        f"reads = {_listed(reads)}",
        f"adds = {_listed(_file(draw, table, path) for path in adds)}",
        f"removes = {_listed(removes)}",
    ]
    if "rowTracking" in table.features and draw(SOME):
        return [*lines[:2], 'operation = "RowTrackingBackfill"', "data_change = false"]
    lines.append(f'operation = "{draw(st.sampled_from(OPERATIONS))}"')
    lines += ["data_change = false"] if draw(SOME) else []
    large = draw(SOME)
    if large:
        lines = [*lines[1:], "large = true"]
    elif draw(SOME):
        lines.append(f'app = {{ id = "{draw(st.sampled_from("ab"))}", version = 1 }}')
    lines += [f"metadata = {draw(st.sampled_from(METADATA))}"] if draw(SOME) else []
    if draw(SOME):
        features = draw(st.lists(st.sampled_from(PROTOCOL), max_size=2, unique=True))
        lines.append(f"protocol = {{ features = {json.dumps([*filter(None, features)])} }}")
    if draw(SOME):
        domains = draw(st.lists(st.sampled_from(["one", "two"]), min_size=1, max_size=2))
        lines.append(f"domains = {json.dumps(domains)}")
    if not large and draw(SOME):
        lines.append(f"blind = {json.dumps(draw(HALF))}")
    if draw(SOME):
        key, value = draw(st.sampled_from(CONFS))
        lines.append(f'conf = {{ "{key}" = "{value}" }}')
    return lines


def _removes(draw: DrawFn, table: _Table, *, real: bool, twice: bool) -> list[str]:
    """Files that go: the table's own, or, taken literally, with another vector than they have."""
    paths = st.sampled_from(table.files)
    found = draw(st.lists(paths, max_size=2, unique_by=None if twice else str))
    own = not real and not draw(SOME)
    return [json.dumps(path) if own else _file(draw, table, path) for path in found]
