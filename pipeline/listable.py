"""Which sweeps can keep a row for each candidate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.sweeps.space import Space
from isolitmus.model.errors import IsolitmusError

if TYPE_CHECKING:
    from isolitmus.checker.sweeps.shard_runner import Work

__all__ = ["refuse_unlisted"]


def refuse_unlisted(work: Work, keep: str) -> None:
    """IsolitmusError if the candidates of a sweep cannot be kept one by one."""
    scope = work.scope
    less = "counts and findings can be kept"
    if scope.noops != "skip":
        raise IsolitmusError(
            f"--keep {keep}: scope {scope.name} has commits that find nothing to do, which some protocols record and"
            f" others do not, so that a candidate is several histories; {less}"
        )
    space = Space(scope)
    for start in space.starts:
        for statements, number in zip(scope.statements, space.options(start, 1), strict=True):
            after = space.databases[space.after(start, number)] if number >= 0 else {}
            for name, table in after.items():
                declared = scope.tables[name].columns
                if table.header is not None and table.header.metadata.columns != declared:
                    raise IsolitmusError(
                        f"--keep {keep}: '{statements[0].sql}' changes the columns of {name}, and rows are kept by"
                        f" the columns that it has at first; {less}"
                    )
