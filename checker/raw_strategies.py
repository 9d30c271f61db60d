"""Hypothesis strategies for raw transactions: what no SQL reaches, drawn as the text of a litmus file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hypothesis import reject
from hypothesis import strategies as st

from isolitmus.model.errors import IsolitmusError
from isolitmus.model.litmus import Litmus
from isolitmus.specs.litmus_file import read_litmus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hypothesis.strategies import DrawFn

__all__ = ["raw_tests"]

READS = (
    '"true"', '"part = 0"', '"part > 0"', '"id = 1"', '"part = 1 AND id = 2"', "{ whole_table = true }",
    '{ sql = "SELECT count(*) FROM t" }', '{ sql = "SELECT id FROM t WHERE part = 1" }',
    "{ partitions = [{ part = 1 }] }", '{ app_id = "a" }', '{ app_id = "b" }',
)  # fmt: skip
METADATA = (
    "{}", '{ configuration = { "team" = "us" } }', '{ description = "ours" }',
    '{ configuration = { "delta.enableDeletionVectors" = "true" } }',
)  # fmt: skip
PROTOCOL = ("{}", '{ features = ["deletionVectors"] }', '{ features = ["domainMetadata"] }')
FEATURES: tuple[tuple[str, ...], ...] = ((), ("domainMetadata",), ("domainMetadata", "rowTracking"))
OPERATIONS = ("Truncate", "Delete", "ManualUpdate", "SetTableProperties", "ComputeStats")


@st.composite
def raw_tests(draw: DrawFn) -> Litmus:
    """Two or three raw transactions on one table with two or three files, in any schedule."""
    partitioned = draw(st.booleans())
    paths = [f"f{k}" for k in range(draw(st.integers(2, 3)))]
    files = [_file(draw, path, partitioned=partitioned) for path in paths]
    names = ["a", "b", "c"][: draw(st.integers(2, 3))]
    order = draw(st.permutations([name for name in names for _ in range(2)]))
    steps = [f"{name}.{'commit' if name in order[:k] else 'start'}" for k, name in enumerate(order)]
    features = draw(st.sampled_from(FEATURES))
    asked = ", ".join(f'"delta.feature.{name}" = "supported"' for name in features)
    text = [
        'title = "Drawn"',
        f'schedule = "{" ".join(steps)}"',
        "[table]",
        'columns = "id INT, part INT"',
        f"partitioned_by = {json.dumps(['part'] if partitioned else [])}",
        f"files = [{', '.join(files)}]",
        f"properties = {{ {asked} }}",
    ]
    for name in names:
        keys = _keys(draw, name, paths, partitioned=partitioned, features=features)
        text += [f"[transactions.{name}]", *keys]
    try:
        test = read_litmus("\n".join(text), "drawn")
    except IsolitmusError:
        reject()
    assert isinstance(test, Litmus)
    return test


def _file(draw: DrawFn, path: str, *, partitioned: bool) -> str:
    part = f", partition = {{ part = {draw(st.integers(0, 2))} }}" if partitioned else ""
    return f'{{ path = "{path}"{part}, stats = {{ numRecords = 1 }} }}'


def _keys(
    draw: DrawFn, name: str, paths: Sequence[str], *, partitioned: bool, features: Sequence[str]
) -> list[str]:
    """What a transaction has; most have reads and files, few the rest."""
    some = st.integers(0, 7).map(lambda k: k == 0)
    adds = range(draw(st.integers(0, 2)))
    written = [_file(draw, f"{name}{k}", partitioned=partitioned) for k in adds]
    operations = [*OPERATIONS, *(["RowTrackingBackfill"] if "rowTracking" in features else [])]
    lines = [
        f"reads = [{', '.join(draw(st.lists(st.sampled_from(READS), max_size=2)))}]",
        f"adds = [{', '.join(written)}]",
        f"removes = {json.dumps(sorted(draw(st.sets(st.sampled_from(paths), max_size=2))))}",
        f'operation = "{draw(st.sampled_from(operations))}"',
    ]
    if 'operation = "RowTrackingBackfill"' in lines:  # which only adds files again
        return [*lines[1:2], lines[3], "data_change = false"]
    lines += ["data_change = false"] if draw(some) else []
    if draw(some):
        lines.append(f'app = {{ id = "{draw(st.sampled_from("ab"))}", version = 1 }}')
    lines += [f"metadata = {draw(st.sampled_from(METADATA))}"] if draw(some) else []
    lines += [f"protocol = {draw(st.sampled_from(PROTOCOL))}"] if draw(some) else []
    marked: bool = draw(some)
    if features and marked:
        lines.append(f'domains = ["{draw(st.sampled_from(["one", "two"]))}"]')
    lines += [f"blind = {json.dumps(draw(st.booleans()))}"] if draw(some) else []
    return lines
