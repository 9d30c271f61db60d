"""The timeline of a schedule or a run, and what it converts to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from isolitmus.checker.render.text_pictures import timeline
from isolitmus.model.display import Readable

if TYPE_CHECKING:
    from isolitmus.model.run import Run
    from isolitmus.model.schedule import Schedule

__all__ = ["Timeline"]


@dataclass(frozen=True, slots=True)
class Timeline(Readable):
    """When each transaction of a schedule starts and commits; with a run, what became of it.

    >>> from isolitmus.model.schedule import Schedule
    >>> Timeline(Schedule.parse("a.start b a.commit", ["a", "b"]))
    a  ├───────┤
    b      ●
    """

    schedule: Schedule
    run: Run | None = None

    def __repr__(self) -> str:
        return timeline(self.schedule, self.run)

    def to_svg(self) -> str:
        """A picture that stands alone, in light and in dark."""
        from isolitmus.checker.render.timeline import timeline_svg

        return timeline_svg(self.schedule, self.run)

    def to_mermaid(self) -> str:
        """A sequence diagram of Mermaid."""
        from isolitmus.checker.render.mermaid import sequence

        return sequence(self.schedule, self.run)

    def to_tikz(self) -> str:
        """A ``tikzpicture`` for LaTeX."""
        from isolitmus.checker.render.tikz import timeline_tikz

        return timeline_tikz(self.schedule, self.run)
