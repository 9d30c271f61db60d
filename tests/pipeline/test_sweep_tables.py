"""The tables of a sweep hold what was counted, and what each candidate is by itself."""

import json
from collections import Counter, defaultdict
from itertools import pairwise, product

import pytest

from isolitmus.checker import check, run
from isolitmus.checker.execution.commit_loop import execute
from isolitmus.checker.sweeps.pair_frames import BrokenAxiom
from isolitmus.checker.sweeps.table_sweep import finish_sweep, sweep, sweep_work
from isolitmus.checker.sweeps.tally import make_shards
from isolitmus.checker.universes.tables import candidate
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.run import TOOK_EFFECT
from isolitmus.specs import protocol, scope
from isolitmus.specs.files.spec_reader import read_spec

pa = pytest.importorskip("pyarrow", reason="the extra spark is not installed")

from isolitmus.pipeline import sweep as on_spark  # noqa: E402
from isolitmus.pipeline import sweep_shards as worker  # noqa: E402
from isolitmus.pipeline.sweep_job import (  # noqa: E402
    finding_rows,
    rank_within_size,
    refuse_unlisted,
)
from isolitmus.pipeline.sweep_shards import (  # noqa: E402
    ShardTask,
    count_function,
    tallies_from_rows,
)
from isolitmus.pipeline.sweep_tables import KEEP, VERSION, kept_tables, sweep_tables  # noqa: E402

QUIET = read_spec(
    '"Quiet" format delta empty unseen & ww as lost silent unseen & rw as missed', "quiet"
)


def rows_of(work, keep, largest=500):
    """The rows of each table, as workers give them, in two tasks."""
    cut = make_shards(work.scope, work.n, largest)
    every = sweep_tables(work.scope)
    tables = {name: every[name] for name in kept_tables(keep)}
    task = ShardTask(
        f"{work.scope.name} {work.n} {keep} {len(work.protocols)}",
        work,
        cut,
        tables,
        kinds=keep != "counts",
    )
    wanted = list(range(len(cut)))
    batches = iter([pa.RecordBatch.from_pydict({"id": part}) for part in (wanted[:3], wanted[3:])])
    found = defaultdict(list)
    for batch in count_function(task, wanted)(batches):
        for row in batch.to_pylist():
            ((name, values),) = ((n, v) for n, v in row.items() if v is not None)
            found[name].append(values)
    return found


def swept_folder(folder, about, files=()):
    """A folder as a sweep leaves it, whose tables have these files of counts."""
    for name in ("counts", "statements"):
        log = folder / name / "_delta_log"
        log.mkdir(parents=True)
        actions = [
            {"commitInfo": {"operation": "CREATE TABLE"}},
            {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
            {"metaData": {"schemaString": '{"type": "struct", "fields": []}', "partitionColumns": [], "configuration": {"isolitmus.sweep": about}}},
            *({"add": {"path": file, "partitionValues": {}, "dataChange": True}} for file in files if name == "counts"),
        ]  # fmt: skip
        text = "".join(json.dumps(action) + "\n" for action in actions)
        (log / f"{0:020}.json").write_text(text)
    return folder


ABOUT = {"name": "rows", "keep": "counts", "version": VERSION, "levels": {}, "protocols": {}}


@pytest.mark.parametrize(
    ("about", "files", "message"),
    [
        ({}, (), "nothing in it was counted; sweep the scope again with --out"),
        ({}, ("part.parquet",), "its tables are damaged (Invalid Input Error"),
        ({}, ("gone.parquet",), "its tables are damaged (IO Error"),
        ({"scope": "["}, (), "rows.toml:1"),
        ({"keep": None, "version": None}, (), "its tables are of version None"),
        (None, (), "its tables are damaged ('version')"),
    ],
)
def test_tables_that_no_sweep_has_left_so_are_no_report(call, tmp_path, about, files, message):
    whole = ABOUT | {"scope": scope("rows").text}
    said = {} if about is None else whole | about
    folder = swept_folder(tmp_path / "swept", json.dumps(said), files)
    (folder / "counts" / "part.parquet").write_bytes(b"PAR1 and no more than that")
    status, out, err = call("report", folder)
    assert (status, out) == (2, "")
    assert message in err
    assert not (tmp_path / "swept.html").exists()


def without_seconds(document):
    return {key: value for key, value in document.items() if key != "seconds"}


def work_of(name, n, protocols=()):
    asked = [*map(protocol, ("delta-serializable", "delta-write-serializable")), *protocols]
    return sweep_work(scope(name), n, protocols=asked)


SWEPT = [("two-partitions", 3), ("rows", 2), ("fourteen-writers", 2), ("orders", 2)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "n"), SWEPT)
def test_the_rows_add_up_to_the_counts(name, n):
    work = work_of(name, n, [QUIET])
    rows = rows_of(work, "verdicts")
    total = tallies_from_rows(work, rows["counts"])
    counted = sweep(work.scope, n, protocols=work.protocols)
    assert without_seconds(finish_sweep(work, total, 0).to_json()) == without_seconds(
        counted.to_json()
    )
    assert [row["rank"] for row in rows["candidates"]] == list(range(counted.candidates))
    history = {row["rank"]: row for row in rows["histories"]}
    outcome = Counter(row["outcome"] for row in rows["candidates"])
    assert outcome["history"] == len(history)
    broken = {
        (row["rank"], row["level"]): row
        for row in rows["verdicts"]
        if row["verdict"] == "forbidden"
    }
    for under, tally in counted.protocols.items():
        own = [row for row in rows["executions"] if row["protocol"] == under]
        assert len(own) == outcome["history"] + outcome["failed"]
        admitted = [row["rank"] for row in own if row["outcome"] == "admitted"]
        assert len(admitted) == tally.admitted
        assert sum(row["outcome"] == "silent" for row in own) == tally.silent
        assert sum(bool(history[k]["unexplained"]) for k in admitted) == tally.unexplained
        assert sum(not history[k]["log_order"] for k in admitted) == tally.not_log_order
        for level_, number in tally.forbidden.items():
            own = [broken[k, level_] for k in admitted if (k, level_) in broken]
            assert len(own) == number
            kinds = Counter(
                BrokenAxiom(
                    row["axiom"], "acyclic", tuple(tuple(e.values()) for e in row["cycle"])
                ).kind
                for row in own
            )
            assert kinds == {
                kind: many for kind, (many, _) in total.of[under].kinds.get(level_, {}).items()
            }
    failed = {row["rank"] for row in rows["executions"] if row["outcome"] == "failed"}
    assert len(failed) == counted.failed


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two-partitions", "rows"])
def test_of_two_writers_each_row_is_what_the_candidate_is_alone(name):
    """By the litmus test that it is, carried out: apart from the kernel and what it remembers."""
    work = work_of(name, 2)
    rows = rows_of(work, "verdicts")
    executions = {(row["protocol"], row["rank"]): row for row in rows["executions"]}
    verdicts = {(row["level"], row["rank"]): row for row in rows["verdicts"]}
    histories = {row["rank"]: row for row in rows["histories"]}
    steps = [list(product(range(len(work.scope.statements)), range(k))) for k in (1, 2)]
    every = product(range(len(work.scope.inits)), *steps)
    for rank, (init, *choices) in enumerate(every):
        own = rows["candidates"][rank]
        assert own["rank"] == rank == rank_within_size(work, (init, 0, tuple(choices)))
        assert (own["init"], [tuple(step.values()) for step in own["steps"]]) == (init, choices)
        made = candidate(work.scope, work.scope.inits[init], choices, ())
        assert (made is None) == (own["outcome"] != "history")
        if made is None:
            continue
        test = made.litmus("one", "", "")
        names = [e.name for e in sorted(execute(test).events, key=lambda e: e.version)]
        history = histories[rank]
        assert [[tuple(row.values()) for row in v["t"]] for v in history["tables"]] == [
            list(state["t"].rows()) for state in made.states
        ]
        for spec in work.protocols:
            judged, row = run(test, spec), executions[spec.name, rank]
            outcomes = [judged.run.transactions[one].outcome for one in names]
            stopped = [k for k, one in enumerate(outcomes, 1) if one not in TOOK_EFFECT]
            if stopped:
                exception = row["exception"]
                assert (row["outcome"], row["stopped"], exception) == (
                    "aborted", stopped[0], outcomes[stopped[0] - 1],
                )  # fmt: skip
                continue
            assert row["outcome"] == "admitted"
            orders = {
                tuple(names.index(one) + 1 for one in o.split()) for o in judged.serial.orders
            }
            assert set(map(tuple, history["serial_orders"])) == orders
            assert history["unexplained"] == list(judged.serial.unexplained)
        for asked, said in check(test, work.levels).levels.items():
            assert verdicts[asked, rank]["verdict"] == str(said)


@pytest.mark.slow
def test_a_finding_is_the_first_of_its_kind_and_all_are_counted():
    work = work_of("two-partitions", 3)
    counted = tallies_from_rows(work, rows_of(work, "findings")["counts"])
    found = list(finding_rows(work, counted))
    for row in found:
        of = [r for r in found if (r["protocol"], r["level"]) == (row["protocol"], row["level"])]
        tally = counted.of[row["protocol"]]
        assert sum(r["candidates"] for r in of) == tally.forbidden[row["level"]]
        assert sum(r["smallest"] for r in of) == 1
        assert f"[expect.{row['protocol']}]" in row["litmus"]
    assert {row["level"] for row in found} == {"log-serializable", "write-serializable"}


@pytest.mark.slow
def test_what_cannot_be_listed_is_refused():
    with pytest.raises(IsolitmusError, match=r"commits that find nothing to do.*can be kept"):
        refuse_unlisted(sweep_work(scope("no-ops"), 2), "verdicts")
    with pytest.raises(IsolitmusError, match="changes the columns of t"):
        refuse_unlisted(sweep_work(scope("altered"), 2), "verdicts")


def test_every_keep_keeps_what_the_one_before_keeps():
    tables = [set(names) for names in KEEP.values()]
    assert all(fewer <= more for fewer, more in pairwise(tables))


def rows_there(spark, out):
    """How many rows each table of a sweep has."""
    folders = sorted(log.parent for log in out.glob("*/_delta_log"))
    return {one.name: spark.read.format("delta").load(str(one)).count() for one in folders}


@pytest.mark.spark
@pytest.mark.slow
def test_what_is_there_is_gone_on_with_or_refused(session, tmp_path):
    """Another scope, another --keep, another version of the columns, a row that somebody took
    out.
    """
    out, one = tmp_path / "data", scope("two-partitions")
    done = on_spark(session.spark, one, 2, out=out, keep="executions")
    expected = without_seconds(sweep(one, 2).to_json())
    assert without_seconds(done.to_json()) == expected
    logs = sorted(out.glob("*/_delta_log/*.json"))
    again = on_spark(session.spark, one, 2, out=out, keep="executions")
    assert without_seconds(again.to_json()) == expected
    assert sorted(out.glob("*/_delta_log/*.json")) == logs  # nothing is left to write
    found = f"delta.`{out / 'findings'}`"
    before = session.spark.sql(f"SELECT * FROM {found}").collect()
    session.spark.sql(f"DELETE FROM {found} WHERE rank % 2 = 0")
    on_spark(session.spark, one, 2, out=out, keep="executions")
    assert sorted(session.spark.sql(f"SELECT * FROM {found}").collect()) == sorted(before)
    counts, rows = f"delta.`{out / 'counts'}`", rows_there(session.spark, out)
    session.spark.sql(
        f"DELETE FROM {counts} WHERE shard = 0"
    )  # as if it was killed before counts, the last
    again = on_spark(session.spark, one, 2, out=out, keep="executions")
    assert without_seconds(again.to_json()) == expected
    assert rows_there(session.spark, out) == rows
    for other, keep, why in (
        (
            "writers-partitioned",
            "executions",
            "another sweep .scope: not the same as those of writers-",
        ),
        ("two-partitions", "counts", "it was made with --keep executions, not counts"),
    ):
        with pytest.raises(IsolitmusError, match=why):
            on_spark(session.spark, scope(other), 2, out=out, keep=keep)
    table = f"delta.`{out / 'executions'}`"
    session.spark.sql(f"DELETE FROM {table} WHERE rank = 0 AND protocol = 'delta-serializable'")
    with pytest.raises(
        IsolitmusError, match="executions has 93 rows of delta-serializable, where 94 were"
    ):
        on_spark(session.spark, one, 2, out=out, keep="executions")
    about = session.spark.sql(f"DESCRIBE DETAIL {counts}").first()["properties"]["isolitmus.sweep"]
    older = about.replace('"version": 1', '"version": 0').replace("\\", "\\\\").replace("'", "\\'")
    session.spark.sql(f"ALTER TABLE {counts} SET TBLPROPERTIES ('isolitmus.sweep' = '{older}')")
    with pytest.raises(
        IsolitmusError, match="tables of version 0, and this isolitmus writes version 1"
    ):
        on_spark(session.spark, one, 2, out=out, keep="executions")


@pytest.mark.slow
def test_a_worker_keeps_what_it_has_found_out():
    """Spark sends the function with each task, and what that names comes as a copy."""
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    work = work_of("two-partitions", 2)
    tables = {"counts": sweep_tables(work.scope)["counts"]}
    task = ShardTask("remembered", work, make_shards(work.scope, 2, 50), tables, kinds=False)
    kernels = []
    for place in range(2):
        count = cloudpickle.loads(cloudpickle.dumps(count_function(task, [0, 1])))
        assert list(count(iter([pa.RecordBatch.from_pydict({"id": [place]})])))
        kernels.append(worker._known[task.name][0])
    assert kernels[0] is kernels[1]
