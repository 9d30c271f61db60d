"""What was not carried out, and why: told at the end, what has one reason together."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from isolitmus.model.errors import LISTED, IsolitmusError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

__all__ = ["Refusal", "by_reason", "worst"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A file or a litmus test that was not carried out, by its name; on which engine and under which protocol
    if it was one; why.
    """

    name: str
    error: IsolitmusError
    engine: str | None = None
    protocol: str | None = None

    @property
    def place(self) -> str:
        """Where what is wrong stands, as far as the error says."""
        return f"{self.name}{self._split[0]}"

    @property
    def reason(self) -> str:
        """What is wrong, without its place."""
        return self._split[1]

    @property
    def _split(self) -> tuple[str, str]:
        text, path = str(self.error), Path(self.name)
        names = "|".join(map(re.escape, (self.name, path.name, path.stem)))
        found = re.match(rf"(?:{names})((?::\d+)*): ", text)
        return ("", text) if found is None else (found[1], text[found.end() :])

    def to_json(self) -> dict[str, object]:
        """The refusal as docs/interface.md, 6, has it."""
        return {
            "name": self.name,
            "engine": self.engine,
            "protocol": self.protocol,
            "status": self.error.status,
            "reason": str(self.error),
        }


def by_reason(refusals: Iterable[Refusal]) -> Iterator[str]:
    r"""A message for each reason, with the places that have it.

    >>> from isolitmus.model.errors import LitmusError
    >>> wrong = [Refusal(f"{n}.toml", LitmusError(f"{n}.toml:{k}: no title")) for k, n in enumerate("ab")]
    >>> print(*by_reason(wrong), sep="\n")
    no title: a.toml:0, b.toml:1
    >>> print(*by_reason(wrong[1:]))
    b.toml:1: no title
    """
    groups: dict[str, list[Refusal]] = {}
    for refusal in refusals:
        groups.setdefault(refusal.reason, []).append(refusal)
    for reason, group in groups.items():
        places = list(dict.fromkeys(refusal.place for refusal in group))
        if len(places) == 1:
            yield str(group[0].error)
            continue
        more = f" and {len(places) - LISTED} more" if len(places) > LISTED else ""
        between = "\n    " if "\n" in reason else ": "
        yield f"{reason}{between}{', '.join(places[:LISTED])}{more}"


def worst(statuses: Collection[int]) -> int:
    """The exit status of a command of which several are true (docs/interface.md, 1).

    >>> worst({1, 2, 3}), worst({3, 1}), worst(())
    (2, 1, 0)
    """
    return next((status for status in (2, 4, 1, 3) if status in statuses), 0)
