"""Engine record of the model."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from isolitmus.checker.execution.commit_loop import ENGINE, VERSION, execute, observed_run
from isolitmus.model.engine import Engine, RunsTests

if TYPE_CHECKING:
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.run import Run
    from isolitmus.model.spec import Spec


def _carry(litmus: Litmus, spec: Spec) -> Run:
    return observed_run(litmus, execute(litmus, spec), spec.name)


MODEL = Engine(
    ENGINE,
    "isolitmus's own executor: any protocol file, no JVM",
    lambda: nullcontext(RunsTests(VERSION, _carry)),
    hosts=True,
)
