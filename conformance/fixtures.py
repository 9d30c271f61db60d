"""For pytest: ``pytest_plugins = ["isolitmus.conformance.fixtures"]`` in a conftest.py gives the fixture
``delta_race``, which uses a fixture ``spark`` of one's own: a SparkSession with Delta.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from isolitmus.conformance.racing import race

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from isolitmus.conformance.racing import Race

__all__ = ["delta_race"]


@pytest.fixture
def delta_race(spark: Any) -> Iterator[Callable[[str | Path], Race]]:
    """``delta_race(table)``: a race for a table; what is parked at the end of the test is let go."""
    with ExitStack() as stack:
        yield lambda table: stack.enter_context(race(spark, table))
