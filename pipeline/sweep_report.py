"""The report of a sweep's tables: what their rows say, by queries, and the page of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.render.sweeps import CountedPair, FoundKind, Stops, SweepPage, sweep_page
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.litmus import Litmus
from isolitmus.specs.files.litmus_file import read_litmus

if TYPE_CHECKING:
    from isolitmus.checker.render.page_parts import Made
    from isolitmus.pipeline.sweep_folder import SweepFolder

__all__ = ["page_of", "summed"]

COUNTS = """
    SELECT size, sum(candidates), protocol, level, sum(admitted), sum(forbidden), sum(unexplained), sum(not_log_order)
    FROM counts GROUP BY size, protocol, level ORDER BY size, protocol, level
"""
STOPS = """
    SELECT protocol, level, steps[stopped].statement, steps[stopped_by].statement, count(*),
           count(*) FILTER (verdict = 'allowed')
    FROM executions e JOIN candidates USING (size, rank) JOIN verdicts USING (size, rank)
    WHERE e.outcome = 'aborted' AND stopped_by IS NOT NULL
    GROUP BY ALL ORDER BY ALL
"""
KINDS = """
    SELECT size, protocol, level, axiom, relations, candidates, litmus
    FROM findings ORDER BY size, protocol, level, rank
"""


def summed(folder: SweepFolder) -> SweepPage:
    """What the tables say; IsolitmusError if they are damaged, or nothing was counted."""
    with folder.reading():
        page = _summed(folder)
    if not page.counts:
        raise IsolitmusError(
            f"{folder.path}: nothing in it was counted; sweep the scope again with --out {folder.path}, which goes on"
        )
    return page


def _summed(folder: SweepFolder) -> SweepPage:
    stops = folder.rows(STOPS) if folder.has("verdicts") else []
    kinds = folder.rows(KINDS) if folder.has("findings") else []
    patterns = [sql for (sql,) in folder.rows("SELECT sql FROM statements ORDER BY statement")]
    stopped = [Stops(*row) for row in stops]
    for one in stopped:
        assert max(one.loser, one.winner) < len(patterns), "statements are missing"
    return SweepPage(
        folder.scope.title,
        folder.scope.source,
        patterns,
        [CountedPair(*row) for row in folder.rows(COUNTS)],
        stopped,
        [FoundKind(*row) for row in kinds],
    )


def page_of(folder: SweepFolder, page: SweepPage, made: Made) -> str:
    """The page of the tables in a folder; IsolitmusError if they are damaged."""
    with folder.reading():
        tests = [_test(kind.litmus, f"kind-{k}") for k, kind in enumerate(page.kinds)]
        return sweep_page(page, tests, folder.specs(), made)


def _test(text: str, name: str) -> Litmus:
    test = read_litmus(text, name)
    assert isinstance(test, Litmus)
    return test
