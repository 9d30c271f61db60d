"""How results print: ``telling`` has the words and the pages, and knows the results; they know it by name alone,
and it is loaded when one is printed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from isolitmus.model.display import Readable, few

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["LINES", "PAGES", "Paged", "Worded", "teller"]

LINES: Mapping[str, str] = {
    "AbstractSweep": "sweeps.abstract_lines",
    "Interleavings": "search_results.interleaving_lines",
    "Lattice": "lattice.lattice_lines",
    "Lattices": "lattice.lattices_lines",
    "MutantReport": "search_results.mutant_lines",
    "Portrait": "search_results.portrait_lines",
    "Separation": "search_results.separation_lines",
    "Sweep": "sweeps.sweep_lines",
}
"""By result, what gives its lines."""
PAGES: Mapping[str, str] = {
    "Checked": "notebook.checked_html",
    "Judged": "notebook.judged_html",
    "Lattices": "lattice_pages.lattices_html",
    "Separation": "notebook.separation_html",
}
"""By result, what gives its page."""


def teller(name: str) -> Callable[[Any], Any]:
    """What ``checker.render`` has under a name.

    >>> teller("sweeps.sweep_lines").__name__
    'sweep_lines'
    """
    home, _, function = name.partition(".")
    found: Callable[[Any], Any] = getattr(
        import_module(f"isolitmus.checker.render.{home}"), function
    )
    return found


class Worded(Readable):
    """A result that prints in lines, so many of them at ``most``."""

    __slots__ = ()
    most: ClassVar[int] = 40

    def __repr__(self) -> str:
        return few(teller(LINES[type(self).__name__])(self), self.most)


class Paged(Readable):
    """A result that a notebook shows as a page."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(teller(PAGES[type(self).__name__])(self))
