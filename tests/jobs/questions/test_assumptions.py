"""Assumptions of answers: each kind is made false, and an answer that named it is another one."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from isolitmus.checker.checks.history_check import check
from isolitmus.checker.execution.run_result import run
from isolitmus.jobs.invariants.invariants import decide_invariants
from isolitmus.jobs.predict.prediction import predict_workload
from isolitmus.jobs.readers.function_records import FunctionRecord
from isolitmus.jobs.readers.function_targets import FunctionTarget
from isolitmus.jobs.readers.workload_file import read_workload
from isolitmus.jobs.readers.workload_sources import workload
from isolitmus.jobs.robust.robustness import decide_robustness
from isolitmus.jobs.sql.invariant_text import read_invariant
from isolitmus.model.assumption import Assumption, AssumptionKind
from isolitmus.model.history import History
from isolitmus.model.verdict import Forbidden
from isolitmus.specs.files.litmus_file import read_litmus

if TYPE_CHECKING:
    from collections.abc import Callable

    from isolitmus.jobs.workload import Workload

    Reader = Callable[[Path], Workload]
    Question = Callable[[Workload], tuple[str, tuple[Assumption, ...]]]

JOBS = Path(__file__).parents[3] / "docs" / "assumptions.md"
SERIALIZABLE = "delta-serializable"
T = "CREATE TABLE t (id INT, n INT, day DATE) USING delta PARTITIONED BY (day)"
U = "CREATE TABLE u (id INT, n INT) USING delta"
ADD = "INSERT INTO t VALUES (1, 7, DATE '2026-01-01')"
ADD_NULL = "INSERT INTO t VALUES (1, NULL, DATE '2026-01-01')"
LATER = "DELETE FROM t WHERE day = DATE '2026-02-01'"
CHANGE = "DELETE FROM t WHERE n = 1"
ALL = "UPDATE t SET n = 2"
ALTER = "ALTER TABLE t SET TBLPROPERTIES ('team' = 'web')"
OVERWRITE = "INSERT OVERWRITE t SELECT id, 1, DATE '2026-01-01' FROM u"
RAW = "CREATE TABLE raw (id INT, n INT) USING {}"
FROM_RAW = "INSERT INTO t SELECT count(*), 1, DATE '2026-01-01' FROM raw"
TO_RAW = "INSERT INTO raw SELECT count(*), 1 FROM t"
TO_U = "INSERT INTO u SELECT count(*), 1 FROM t"
TIMED = "CREATE TABLE t (id INT, at TIMESTAMP, day DATE {}) USING delta PARTITIONED BY (day)"
ADD_DAY = "INSERT INTO t VALUES (1, 7, :day)"
OF_DAY = "DELETE FROM t WHERE day = :day"
NO_DAY = "DELETE FROM t WHERE day IS NULL"
BY_DAY = '[jobs.a]\nsql = "{}"\nparameters = {{ day = "DATE" }}\n'


def of(schema: str, text: str) -> str:
    """The statement with the table t of a schema."""
    return text.replace(" t ", f" {schema}.t ")


TWO = f"{of('silver', T)}; {of('bronze', T)}"


# Inputs


def toml(text: str, *more: str) -> Reader:
    return lambda folder: read_workload(f"ddl = {json.dumps([T, *more])}\n{text}", folder.name)


def files(*, given: str = "", **texts: str) -> Reader:
    """SQL files of a folder, and perhaps a DDL beside it; 'x__y' is the file y.sql in the folder
    .x.
    """

    def read(folder: Path) -> Workload:
        for name, text in ({"ddl": f"{T}; {U}"} | texts).items():
            hidden, _, plain = name.rpartition("__")
            path = folder / f".{hidden}" / f"{plain}.sql" if hidden else folder / f"{plain}.sql"
            path = folder / "isolitmus.toml" if name == "settings" else path
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")
        beside = folder.with_suffix(".given")
        beside.write_text(given, "utf-8")
        return workload(str(folder), ddl=beside if given else None)

    return read


def function(*paths: list[dict[str, object]], **beside: str) -> Reader:
    """A function with these paths, beside SQL files."""

    def read(folder: Path) -> Workload:
        for name, text in ({"ddl": f"{T}; {U}"} | beside).items():
            (folder / f"{name}.sql").write_text(text, "utf-8")
        target = FunctionTarget(folder / "job.py", "load", 1, "def load(spark):\n    f('t')\n")
        records = FunctionRecord.of_paths(target, paths)
        jobs = [str(folder / f"{name}.sql") for name in beside]
        return workload(*jobs, ddl=folder / "ddl.sql", run=lambda _: records)

    return read


def step(line: int, sql: str) -> dict[str, object]:
    return {"kind": "statement", "line": line, "sql": sql}


ABORTED: dict[str, object] = {"kind": "aborted", "line": 2, "problem": "ConcurrentAppendException"}
GAP: dict[str, object] = {"kind": "gap", "line": 4, "problem": "a pipe is not understood"}

# Questions


def pair(loser: str, winner: str) -> Question:
    def ask(work: Workload) -> tuple[str, tuple[Assumption, ...]]:
        found = predict_workload(work, SERIALIZABLE, examples=False, processes=1)
        words = {(one.loser, one.winner): one.word for one in found.meetings}
        return words.get((loser, winner), "unknown"), found.assumptions

    return ask


def keeps(text: str) -> Question:
    def ask(work: Workload) -> tuple[str, tuple[Assumption, ...]]:
        invariant = read_invariant(text, work.tables, [*work.tables], "here")
        (found,) = decide_invariants(work, [SERIALIZABLE], [invariant])
        return found.word, found.assumptions

    return ask


def promise(level: str) -> Question:
    def ask(work: Workload) -> tuple[str, tuple[Assumption, ...]]:
        found = decide_robustness(work, SERIALIZABLE, level)
        return found.word, found.assumptions

    return ask


class Flip(NamedTuple):
    """Two workloads, of which the second one makes an assumption of the first one false."""

    true: Reader
    false: Reader
    ask: Question
    words: tuple[str, str]


K = AssumptionKind
FLIPS = {
    # the function writes another day than in the run that was read
    K.STATEMENTS: Flip(
        function([step(2, ADD)], late=LATER),
        files(load="INSERT INTO t VALUES (1, 7, DATE '2026-02-01')", late=LATER),
        pair("late", "load"),
        ("never", "always"),
    ),
    K.UNKNOWN_STEPS: Flip(
        function([step(2, ADD), GAP], more="UPDATE u SET n = 2"),
        function([step(2, ADD), step(4, "UPDATE u SET n = NULL")], more="UPDATE u SET n = 2"),
        keeps("u: not null(n)"),
        ("kept", "broken"),
    ),
    # what writes the CSV files is a job, on a table with a commit protocol
    K.OTHER_WRITERS: Flip(
        toml(f'[jobs]\na = "{FROM_RAW}"\nb = "{TO_U}"', U, RAW.format("csv")),
        toml(f'[jobs]\na = "{FROM_RAW}"\nb = "{TO_RAW}"', U, RAW.format("delta")),
        promise("write-serializable"),
        ("safe", "unsafe"),
    ),
    K.NOT_READ: Flip(
        files(a=ADD, old__b=ADD_NULL),
        files(a=ADD, b=ADD_NULL),
        keeps("t: not null(n)"),
        ("kept", "broken"),
    ),
    K.SCHEDULE: Flip(
        files(a=CHANGE, b=ALL, settings='[schedule]\napart = [["a", "b"]]\n'),
        files(a=CHANGE, b=ALL),
        pair("a", "b"),
        ("apart", "always"),
    ),
    # the table is that of the file, with partitions
    K.DECLARATION: Flip(
        files(given=f"{T.partition(' PART')[0]}; {U}", ddl=U, a=f"{T}; {LATER}", b=ADD),
        files(given=f"{T}; {U}", ddl=U, a=f"{T}; {LATER}", b=ADD),
        pair("a", "b"),
        ("always", "never"),
    ),
    # the day of a row is not that of its time
    K.CONSTRAINT: Flip(
        files(
            ddl=TIMED.format("GENERATED ALWAYS AS (CAST(at AS DATE))"),
            a=LATER,
            b="INSERT INTO t (id, at) VALUES (1, TIMESTAMP '2026-01-01 10:00:00')",
        ),
        files(
            ddl=TIMED.format(""),
            a=LATER,
            b="INSERT INTO t VALUES (1, TIMESTAMP '2026-01-01 10:00:00', DATE '2026-02-01')",
        ),
        pair("a", "b"),
        ("never", "always"),
    ),
    # the session is set to what has an effect
    K.NO_EFFECT: Flip(
        files(a=f"SHOW TABLES; {OVERWRITE}", b=LATER),
        files(a=f"SET spark.sql.sources.partitionOverwriteMode = dynamic; {OVERWRITE}", b=LATER),
        pair("a", "b"),
        ("always", "never"),
    ),
    K.SHORT_NAME: Flip(
        files(ddl=of("silver", T), a=CHANGE, b=of("silver", ALL)),
        files(ddl=TWO, a=of("bronze", CHANGE), b=of("silver", ALL)),
        pair("a", "b"),
        ("always", "never"),
    ),
    K.DIFFERENT_NAMES: Flip(
        files(ddl=TWO, a=of("bronze", CHANGE), b=of("silver", ALL)),
        files(ddl=of("silver", T), a=of("silver", CHANGE), b=of("silver", ALL)),
        pair("a", "b"),
        ("never", "always"),
    ),
    K.PLACEHOLDER: Flip(
        files(ddl=of("${s}", T), a=of("${s}", CHANGE), b=of("${s}", ALL)),
        files(ddl=TWO, a=of("bronze", CHANGE), b=of("silver", ALL)),
        pair("a", "b"),
        ("always", "never"),
    ),
    K.NO_VIEW: Flip(
        files(a="INSERT INTO t SELECT id, n, day FROM v", b=CHANGE),
        files(
            a="INSERT INTO t SELECT id, n, day FROM v",
            b=CHANGE,
            v="CREATE VIEW v AS SELECT * FROM t",
        ),
        pair("a", "b"),
        ("never", "unknown"),
    ),
    # the value is a certain one
    K.ANY_VALUE: Flip(
        files(a="DELETE FROM t WHERE day = next_day(current_date(), 'TU')", b=ADD),
        files(a=LATER, b=ADD),
        pair("a", "b"),
        ("when", "never"),
    ),
    K.NOT_NULL: Flip(
        toml(
            f'{BY_DAY.format(ADD_DAY)}[jobs.b]\nsql = "{NO_DAY}"\n[invariants]\nd = "not null(day)"'
        ),
        toml(f'{BY_DAY.format(ADD_DAY)}[jobs.b]\nsql = "{NO_DAY}"'),
        pair("b", "a"),
        ("never", "when"),
    ),
    K.PARAMETERS: Flip(
        toml(f'distinct = ["day"]\n{BY_DAY.format(OF_DAY)}'),
        toml(BY_DAY.format(OF_DAY)),
        pair("a", "a"),
        ("never", "when"),
    ),
    K.NO_HANDLER: Flip(
        function([step(2, ADD)], [ABORTED, step(4, ADD_NULL)]),
        function([step(2, ADD)], [ABORTED, step(4, ADD_NULL)], more=ALTER),
        keeps("t: not null(n)"),
        ("kept", "unknown"),
    ),
    # what follows a second conflict, of another class, is a job
    K.ONE_CONFLICT: Flip(
        function([step(2, CHANGE)], [ABORTED, step(4, ADD)]),
        files(load=f"{CHANGE}; {ADD_NULL}"),
        keeps("t: not null(n)"),
        ("kept", "broken"),
    ),
}
ON_THE_MODEL = {
    K.LOG_ORDER: "a model in which a statement reads two versions has no workload",
    K.ONE_MOMENT: "nor has one in which the tables' commits have no common order",
    K.START: "a workload has no rows at the start",
}
"""Kinds that no workload makes false, with the reason: an execution or a history does."""


def test_each_kind_is_made_false():
    assert {*FLIPS, *ON_THE_MODEL} == {*AssumptionKind}
    assert not FLIPS.keys() & ON_THE_MODEL.keys()
    assert len(ON_THE_MODEL) <= 3


@pytest.mark.slow
@pytest.mark.parametrize("kind", FLIPS, ids=lambda kind: kind.name.lower())
def test_an_answer_changes_with_an_assumption_that_it_names(tmp_path_factory, kind):
    flip = FLIPS[kind]
    answers = [flip.ask(read(tmp_path_factory.mktemp("jobs"))) for read in (flip.true, flip.false)]
    assert tuple(word for word, _ in answers) == flip.words
    first, second = (assumptions for _, assumptions in answers)
    assert [one for one in first if one.kind is kind and one not in second]


def jobs(text: str, *more: str) -> Workload:
    return read_workload(f"ddl = {json.dumps([T, *more])}\n[jobs]\n{text}", "jobs")


@pytest.mark.parametrize(
    ("kind", "text", "level", "broken"),
    [
        # one statement sees one of the two changes of another one
        (
            K.LOG_ORDER,
            f'a = "{ALL}"\nb = "SELECT * FROM t"',
            "update-serializable",
            "r2(x0) w1(x1) w1(y1) c1 r2(y1) c2",
        ),
        # two readers see the changes of two tables in two orders
        (
            K.ONE_MOMENT,
            f'a = "{ADD}"\nb = "INSERT INTO u VALUES (1, 1)"\nc = "SELECT t.id FROM t, u"',
            "log-serializable",
            "w1(x1) c1 w2(y2) c2 r3(x1) r3(y0) c3 r4(x0) r4(y2) c4",
        ),
    ],
)
def test_a_history_that_an_assumption_excludes_breaks_the_promise(kind, text, level, broken):
    assert kind in ON_THE_MODEL
    found = decide_robustness(jobs(text, U), SERIALIZABLE, level)
    assert found.word == "safe"
    assert kind in {one.kind for one in found.assumptions}
    # a history without versions of the log is judged without their order
    seen = level.removeprefix("log-")
    verdict = check(History.parse(broken), seen).levels[seen]
    assert isinstance(verdict, Forbidden)


def test_a_start_that_violates_an_invariant_leaves_it_violated():
    """The run is that of a job that keeps it, with a row that none of the jobs writes."""
    work = jobs(f'a = "{LATER}"\nb = "{ADD}"')
    found = keeps("t: check(n > 0)")(work)
    assert found[0] == "kept"
    assert K.START in {one.kind for one in found[1]}
    test = """
    title = "A start"
    table.init = ["INSERT INTO t VALUES (1, -5, DATE '2026-01-01')"]
    table.columns = "id INT, n INT, day DATE"
    table.partitioned_by = ["day"]
    schedule = "a"
    [transactions]
    a = "DELETE FROM t WHERE day = DATE '2026-02-01'"
    """
    end = run(read_litmus(test, "start"), SERIALIZABLE)
    assert any(row[1] <= 0 for row in end.run.tables["t"])


def test_what_is_stated_of_parameters_is_named_and_counts():
    """One run deletes the rows of a day, the other one inserts some of a later day."""
    jobs_of = '{}[jobs.a]\nsql = "{}"\n[jobs.b]\nsql = "{}"\n{}'.format
    typed = 'parameters = { day = "DATE NOT NULL" }\n'
    known = "where = \"day > '2026-02-01'\"\n"
    limited = toml(jobs_of("", LATER, ADD_DAY, typed + known))
    free = toml(jobs_of("", LATER, ADD_DAY, typed))
    words, said = zip(
        *(pair("a", "b")(read(Path("jobs"))) for read in (limited, free)), strict=True
    )
    assert (words, said) == (("never", "when"), (("day > '2026-02-01' in each run of b.",), ()))
    shared = toml(
        '[shared]\nday = "DATE NOT NULL"\n[jobs]\na = "DELETE FROM t WHERE day < :day"\n'
        f'b = "{ADD_DAY}"'
    )
    own = toml(
        jobs_of("", "DELETE FROM t WHERE day < :day", ADD_DAY, typed).replace(
            ':day"\n[jobs.b', f':day"\n{typed}[jobs.b'
        )
    )
    words, said = zip(*(pair("a", "b")(read(Path("jobs"))) for read in (shared, own)), strict=True)
    assert (words, said) == (("never", "when"), (("All concurrent runs have the same :day.",), ()))


def test_the_page_of_jobs_lists_the_kinds():
    rows = [f"| {kind.name.lower().replace('_', ' ')} | {kind.value} |" for kind in K]
    assert "\n".join(["|---|---|", *rows]) in JOBS.read_text("utf-8")


def test_an_assumption_is_a_sentence_with_its_kind():
    one = K.START.says("At the start.")
    assert one == "At the start."
    assert json.dumps([one]) == '["At the start."]'
    again = pickle.loads(pickle.dumps(one))
    assert (again, again.kind) == (one, K.START)
