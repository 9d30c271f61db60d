"""Data model: relations, frames, histories, statements, tables, litmus tests and runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from isolitmus.model.budget import Budget
    from isolitmus.model.frame import Frame
    from isolitmus.model.history import History
    from isolitmus.model.litmus import HistoryTest, Litmus
    from isolitmus.model.relation import Relation
    from isolitmus.model.run import Run

__all__ = ["Budget", "Frame", "History", "HistoryTest", "Litmus", "Relation", "Run"]

__getattr__ = lazy_getattr(
    __name__,
    {
        "Budget": "budget",
        "Frame": "frame",
        "History": "history",
        "HistoryTest": "litmus",
        "Litmus": "litmus",
        "Relation": "relation",
        "Run": "run",
    },
)
