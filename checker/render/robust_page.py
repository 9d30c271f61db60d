"""The page of what jobs keep: promises and levels, the smallest schedule that breaks each, proofs, and repairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.execution.run_result import run
from isolitmus.checker.render.page_parts import render_template
from isolitmus.checker.render.robustness import (
    LEMMAS,
    across_words,
    end_words,
    level_word,
    need_lines,
    pair_words,
    pattern_words,
)
from isolitmus.checker.render.timeline import timeline_svg
from isolitmus.specs.files.catalogue import protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from isolitmus.checker.render.page_parts import Made
    from isolitmus.checker.workloads.repairs import Repair
    from isolitmus.checker.workloads.robustness import Robustness
    from isolitmus.model.litmus import Litmus

__all__ = ["robust_page"]


def robust_page(
    answers: Sequence[Robustness],
    repairs: Mapping[tuple[str, str], Sequence[Repair]],
    made: Made,
) -> str:
    """The page: no script, nothing loaded from anywhere, every text escaped. ``repairs``: those of an answer, by
    promise and commit check, if they were asked for.
    """
    return render_template(
        "robust.html.j2",
        workload=answers[0].workload,
        answers=answers,
        repairs=repairs,
        made=made,
        promises=list(dict.fromkeys(one.promise for one in answers)),
        levels=list(dict.fromkeys(one.protocol for one in answers)),
        cells={(one.promise, one.protocol): one for one in answers},
        need=list(need_lines(answers)),
        assumptions=list(dict.fromkeys(one for answer in answers for one in answer.assumptions)),
        lemmas=LEMMAS,
        level_words=level_word,
        patterns=pattern_words,
        pairs=pair_words,
        end=end_words,
        across=across_words,
        statements=_statements,
        picture=_picture,
    )


def _statements(test: Litmus) -> dict[str, str]:
    several = len(test.init) > 1
    rows = {
        f"at the start{f' {k}' if several else ''}": one.sql for k, one in enumerate(test.init, 1)
    }
    return rows | {name: one.sql for name, one in test.transactions.items()}


def _picture(answer: Robustness) -> str:
    """The smallest schedule that breaks it, with what became of each transaction."""
    assert answer.worst is not None
    test = answer.worst.test
    return timeline_svg(test.schedule, run(test, protocol(answer.protocol)).run)
