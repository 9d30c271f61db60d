"""The account of relations: what a text reads against the statement as modelled."""

from __future__ import annotations

import pytest
from drawn_relations import DDL, WRITERS, draw_job

from isolitmus.model.sql.statement import Insert, Replace
from isolitmus.specs.files.toml_reader import Node, Source
from isolitmus.specs.files.workload_file import build_workload
from isolitmus.specs.sql.relation_account import modelled_scans


def read(*drawn):
    """Return the workload of drawn jobs, x0, x1, …, beside writers of every table."""
    jobs = {f"x{k}": {"sql": one.statements} for k, one in enumerate(drawn)}
    jobs |= {f"add_{name}": {"sql": texts} for name, texts in WRITERS.items()}
    jobs |= {f"other{k}": {"sql": one.others} for k, one in enumerate(drawn) if one.others}
    document = Node({"ddl": [*DDL], "jobs": jobs}, "", Source("drawn"))
    return build_workload(document, "drawn", sources={}, each=True, partial=True)


def lost(drawn, work, job="x0"):
    """Return what the reading of a drawn job has lost of what was placed."""
    understood = [one for one in work.statements if one.job == job]
    if not understood:
        (*_, unread) = [one for one in work.unread if one.job == job]
        return set() if unread.tables is None else drawn.tables - unread.tables
    statement = understood[-1]
    scans = modelled_scans(statement.statement)
    missing = drawn.tables - {*scans, *statement.reads}
    own, modelled = drawn.scans[drawn.target], scans[drawn.target]
    whole = isinstance(statement.statement, Replace) or (
        isinstance(statement.statement, Insert)
        and statement.statement.overwrite
        and statement.statement.where is None
    )
    if own != modelled and not (whole and own and (modelled or drawn.target in statement.reads)):
        missing.add(drawn.target)
    return missing


def find_lost(seeds):
    """Yield each seed whose job has lost something, and the number of jobs that are understood."""
    for start in range(seeds.start, seeds.stop, 100):
        some = range(start, min(start + 100, seeds.stop))
        drawn = [draw_job(seed) for seed in some]
        work = read(*drawn)
        understood = {one.job for one in work.statements}
        for k, (seed, one) in enumerate(zip(some, drawn, strict=True)):
            yield seed, lost(one, work, f"x{k}"), f"x{k}" in understood


@pytest.mark.slow
def test_no_relation_is_lost_wherever_it_stands(seed):
    answers = [*find_lost(range(seed * 2_000, seed * 2_000 + 2_000))]
    assert [(one, missing) for one, missing, _ in answers if missing] == []
    assert sum(understood for *_, understood in answers) > 1_000
