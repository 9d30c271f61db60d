"""Delta table of replays: litmus tests run on an engine, with the model's prediction."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from isolitmus.checker.execution.run_result import run
from isolitmus.conformance.agreement import find_differences
from isolitmus.conformance.delta.session import shared_spark
from isolitmus.model.engine import RunsTests
from isolitmus.model.errors import TimeLimit, WaitsForEver
from isolitmus.model.matrix import MatrixCase, MatrixPlace
from isolitmus.model.run import SeveralRuns
from isolitmus.pipeline.result_table import (
    ResultColumn,
    ResultTable,
    Table,
    refuse_without,
    text_literal,
)
from isolitmus.pipeline.spark import MASTER, open_spark
from isolitmus.specs.disk.output_files import Location
from isolitmus.specs.files.matrix_file import matrix_litmus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from isolitmus.model.litmus import Litmus
    from isolitmus.model.matrix import Matrix
    from isolitmus.model.run import Run
    from isolitmus.model.scope import Scope
    from isolitmus.model.spec import Spec
    from isolitmus.specs.files.evidence_files import RandomBatch

REPLAYS = ResultTable(
    "replays",
    "a litmus test on an engine under a protocol",
    {
        "of": ResultColumn("STRING", "matrix, kind of random tests, or scope of the test"),
        "text": ResultColumn(
            "STRING",
            "digest of the matrix or scope, or of all random tests of one seed",
        ),
        "engine": ResultColumn("STRING", "version of the engine"),
        "protocol": ResultColumn("STRING", "protocol of the run"),
        "layout": ResultColumn("STRING", "of a matrix: layout of the table", null=True),
        "parked": ResultColumn(
            "STRING", "of a matrix: statement that is parked before its commit", null=True
        ),
        "winner": ResultColumn("STRING", "of a matrix: statement that commits first", null=True),
        "litmus": ResultColumn("STRING", "litmus test"),
        "predicted": ResultColumn(
            "MAP<STRING, STRING>",
            "predicted outcome by transaction; of a matrix, that of the parked one (a). NULL:"
            " several outcomes are possible, or none",
            null=True,
        ),
        "observed": ResultColumn(
            "MAP<STRING, STRING>",
            "observed outcome by transaction; NULL: not ended at the time limit",
            null=True,
        ),
        "equal": ResultColumn("BOOLEAN", "true if the observed run equals the predicted run"),
        "differences": ResultColumn("ARRAY<STRING>", "differences, one sentence each"),
    },
    checks={"equal_or_different": "equal = (size(differences) = 0)"},
)
ABOUT, SAID = "isolitmus.replays", "replays"
"""Name and value of the table property that says what the table holds."""


class Replayed(NamedTuple):
    """Litmus test that an engine has run under a protocol."""

    test: Litmus
    under: Spec
    seen: Run | TimeLimit
    """Run on the engine, or the time limit that ended it."""

    def row(self) -> tuple[Any, ...]:
        """Return the table's values from ``protocol`` on; raise the model's refusal."""
        predicted: Mapping[str, str] | None = None
        unlike: tuple[str, ...] = ()
        with suppress(SeveralRuns, WaitsForEver):
            predicted = _ends(run(self.test, self.under).run)
        with suppress(SeveralRuns):  # it is one of the predicted runs
            unlike = find_differences(self.test, self.under, RunsTests("", self.again))
        ends = None if isinstance(self.seen, TimeLimit) else _ends(self.seen)
        place = (None,) * len(MatrixPlace._fields)
        return self.under.name, *place, str(self.test), predicted, ends, not unlike, list(unlike)

    def again(self, *_: object) -> Run:
        """Return the run on the engine, or raise its TimeLimit."""
        if isinstance(self.seen, TimeLimit):
            raise self.seen
        return self.seen


class RecordedEngine:
    """Running engine whose runs are recorded for the table."""

    def __init__(self, carry: RunsTests) -> None:
        self.seen: list[Replayed] = []
        self.carry = replace(carry, carry=self._carried)
        self._own = carry

    def _carried(self, test: Litmus, under: Spec) -> Run:
        """Run a test on the engine and record the run, or the time limit before raising it."""
        try:
            seen: Run | TimeLimit = self._own(test, under)
        except TimeLimit as limit:
            seen = limit
        self.seen.append(Replayed(test, under, seen))
        return self.seen[-1].again()


class ReplayTable:
    """Table of replays at a place, created if missing.

    Raises IsolitmusError if the place holds something else.
    """

    def __init__(self, spark: Any, place: Location) -> None:
        self.refuse_others(place, spark)
        self._spark = spark
        self._table = Table(spark, place, REPLAYS, ABOUT, SAID)

    @staticmethod
    @contextmanager
    def open(out: Location | Path) -> Iterator[ReplayTable]:
        """Open the table of replays at a place.

        Raises EngineUnavailable if Spark, which writes it, cannot be started.
        """
        with shared_spark() as spark:
            yield ReplayTable(spark, Location.of(out))

    @staticmethod
    def refuse_others(out: Location | Path, spark: Any = None) -> None:
        """Raise IsolitmusError if a place holds something other than replays.

        For a folder this needs no Spark.
        """
        refuse_without("replays", Location.of(out), ABOUT, SAID, spark)

    @staticmethod
    def keep(scope: Scope, seen: Iterable[Any], out: Location, master: str | None) -> None:
        """Write runs on engines to the table of replays beside the other tables of a sweep.

        ``seen`` has the litmus test, the protocol and the run of each.
        """
        with open_spark(master or MASTER) as spark:
            replays = ReplayTable(spark, out.inside(REPLAYS.name))
            runs = list(seen)
            for version in dict.fromkeys(run.engine_version for _, _, run in runs):
                own = (Replayed(*one) for one in runs if one[2].engine_version == version)
                replays.write(scope.name, scope.digest, version, own)

    @staticmethod
    def record(carry: RunsTests) -> RecordedEngine:
        """Return a running engine whose runs are recorded."""
        return RecordedEngine(carry)

    def cells(self, matrix: Matrix, engine: str, version: str) -> list[MatrixCase]:
        """Return the recorded cases of a matrix on an engine with this name and version."""
        return [
            MatrixCase(
                MatrixPlace(row["parked"], row["winner"], row["layout"]),
                row["protocol"],
                engine,
                row["predicted"]["a"],
                row["observed"]["a"],
                tuple(row["differences"]),
            )
            for row in self._of(matrix.name, matrix.digest, version).collect()
        ]

    def append_cells(self, matrix: Matrix, version: str, cells: Iterable[MatrixCase]) -> None:
        """Append some cases of a matrix, in one commit."""
        rows = []
        for cell in cells:
            place, unlike = cell.place, list(cell.differences)
            who = (
                cell.protocol,
                place.layout,
                place.a,
                place.winner,
                str(matrix_litmus(matrix, place)),
            )
            ends = {"a": cell.predicted}, {"a": cell.observed}, not unlike, unlike
            rows.append((matrix.name, matrix.digest, version, *who, *ends))
        self._table.append(self._frame(rows))

    def agreed(
        self, batch: RandomBatch, version: str, drawn: Callable[[], Iterable[tuple[Litmus, Spec]]]
    ) -> RandomBatch | None:
        """Return the recorded batch of random tests if all of them agreed, else None.

        Parameters
        ----------
        batch : RandomBatch
            Batch to look up.
        version : str
            Version of the engine.
        drawn : callable
            Returns the tests of the batch; called only if the table has the batch.
        """
        columns = ("litmus", "protocol", "predicted", "observed", "equal")
        rows = self._of(batch.kind, batch.drawn, version).select(*columns).collect()
        if not rows or not all(row["equal"] for row in rows):
            return None
        found = {(row["litmus"], row["protocol"]): row for row in rows}
        answers = [found.get((str(test), under.name)) for test, under in drawn()]
        several = sum(
            row is not None and row["predicted"] is None and row["observed"] is not None
            for row in answers
        )
        return replace(batch, unsaid=answers.count(None), several=several)

    def write(self, of: str, text: str, version: str, seen: Iterable[Replayed]) -> None:
        """Write an engine's runs on some tests in one commit; replace existing rows of these."""
        rows = [(of, text, version, *one.row()) for one in seen]
        if rows:
            place = [*REPLAYS.columns].index("litmus")
            tests = ", ".join(sorted({text_literal(row[place]) for row in rows}))
            where = f"{_where(of, text, version)} AND litmus IN ({tests})"
            self._table.replace(where, self._frame(rows))

    def _of(self, of: str, text: str, version: str) -> Any:
        return self._table.rows(_where(of, text, version))

    def _frame(self, rows: list[tuple[Any, ...]]) -> Any:
        return self._spark.createDataFrame(rows, REPLAYS.schema)


def _where(*values: str) -> str:
    named = zip(REPLAYS.columns, map(text_literal, values), strict=False)
    return " AND ".join(f"{column} = {literal}" for column, literal in named)


def _ends(of: Run) -> Mapping[str, str]:
    return {name: one.outcome for name, one in of.transactions.items()}
