"""What ``check`` says of one history: each level that was asked, or where it stands among all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.checker.judge.anomalies import anomalies
from isolitmus.checker.render.verdicts import titled_words
from isolitmus.model.verdict import Silent, Unknown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from isolitmus.checker.checks.history_check import Checked

__all__ = ["check_lines"]


def check_lines(checked: Checked, *, every: bool = False) -> Iterator[str]:
    """The verdicts and why; ``every``: the strongest levels that hold, the weakest that fail, and why these do.

    >>> from isolitmus.checker import check
    >>> from isolitmus.model import History
    >>> from isolitmus.specs import level
    >>> skew = History.parse("r1(x0) r1(y0) w1(x1) r2(x0) r2(y0) w2(y2)")
    >>> names = "causal", "snapshot-isolation", "serializable"
    >>> for line in check_lines(check(skew, [level(name) for name in names]), every=True): print(line)
    The strongest level that holds is snapshot-isolation; so does causal.
    The weakest level that fails is serializable (write skew (G2-item)).
    Serializable forbids it (serial-order):
      T1 before T2, because T1 read y0 and T2 wrote the next version y2
      T2 before T1, because T2 read x0 and T1 wrote the next version x1
      so T1 would have to come before itself: no order has that
    """
    shown = list(checked.levels)
    if every:
        yield from _standing(checked)
        undecided = [name for name, v in checked.levels.items() if isinstance(v, (Unknown, Silent))]
        shown = [*checked.standing.weakest, *undecided]
    for name in shown:
        yield from titled_words(
            checked.levels[name], checked.titles[name], checked.explained.get(name)
        )
    if checked.assumptions:
        yield f"Assumed, because the history does not say: {'; '.join(checked.assumptions)}."


def _standing(checked: Checked) -> Iterator[str]:
    verdicts = {name: str(verdict) for name, verdict in checked.levels.items()}
    standing = checked.standing
    for word, verdict, extreme, all_of in (
        ("strongest", "allowed", standing.strongest, "hold"),
        ("weakest", "forbidden", standing.weakest, "fail"),
    ):
        others = [
            name for name, said in verdicts.items() if said == verdict and name not in extreme
        ]
        if not extreme:
            yield f"No level {all_of}s that was asked."
            continue
        named = _listed([name + _called(checked, name) for name in extreme])
        one = len(extreme) == 1
        so = f"; so {'does' if len(others) == 1 else 'do'} {_listed(others)}" if others else ""
        yield (
            f"The {word} level that {all_of}s is {named}{so}."
            if one
            else f"The {word} levels that {all_of} are {named}{so}."
        )


def _called(checked: Checked, name: str) -> str:
    """The anomalies that a level forbids: one of them in any case."""
    found = anomalies(checked.levels[name])
    return f" ({' or '.join(found)})" if found else ""


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
