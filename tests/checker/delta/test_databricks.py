"""Databricks' matrices of conflicts, cell by cell, edition by edition; and what the editions are
worth.
"""

from itertools import product

import pytest

from isolitmus.checker import run, separate, sweep
from isolitmus.checker.execution.commit_loop import execute, observed_run
from isolitmus.checker.judge.graph_semantics import judge
from isolitmus.checker.universes.tables import candidates
from isolitmus.model.errors import LitmusError, UnknownName
from isolitmus.model.run import SeveralRuns
from isolitmus.specs import litmus, protocol, scope, spec
from isolitmus.specs.disk.input_files import HOME
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.files.spec_catalogue import protocols
from isolitmus.specs.files.spec_reader import read_spec

TABLE = """
title = "A pair of statements"
schedule = "loser.start winner loser.commit"
[table]
columns = "id INT, x INT"
partitioned_by = {partitions}
properties = {{ "delta.enableDeletionVectors" = "{vectors}" }}
init = ["INSERT INTO t VALUES (1, 10), (2, 10)", "INSERT INTO t VALUES (3, 10)"]
[transactions]
loser = "{loser}"
winner = "{winner}"
"""
INSERT = "INSERT INTO t VALUES (9, 10)"
ONE, OTHER = "DELETE FROM t WHERE id = 1", "UPDATE t SET id = 8 WHERE id = 2"
SAME = "DELETE FROM t WHERE x = 10"
OPTIMIZE, ORDERED = "OPTIMIZE t", "OPTIMIZE t ZORDER BY (id)"
LEVELS, EDITIONS = ("serializable", "write-serializable"), ("oldest", "middle", "newest")
DATABRICKS = [name for name in protocols() if name.startswith("databricks-")]
EVERY = list(product(LEVELS, EDITIONS, (False, True)))


def outcome(name, loser, winner, *, vectors, partitioned=False):
    partitions = '["x"]' if partitioned else "[]"
    text = TABLE.format(
        loser=loser, winner=winner, vectors=str(vectors).lower(), partitions=partitions
    )
    test = read_litmus(text, "pair")
    done = observed_run(test, execute(test, protocol(name)), name).transactions
    assert done["winner"].outcome == "committed"
    return done["loser"].outcome


def cell(level, edition, rows, loser, winner, **table):
    """What becomes of the loser: committed, a conflict, or silent."""
    suffix = "-rows" if rows else ""
    found = outcome(f"databricks-{level}-{edition}{suffix}", loser, winner, **table)
    return "conflict" if found.endswith("Exception") else found


@pytest.mark.slow
@pytest.mark.parametrize(("level", "edition", "rows"), EVERY)
def test_what_is_inserted(level, edition, rows):
    """D7, D8, D9, D11, D14, D15, D17: an INSERT beside an INSERT, a DELETE, an OPTIMIZE."""
    for vectors in (False, True):
        asked = {"vectors": vectors}
        assert cell(level, edition, rows, INSERT, INSERT, **asked) == "committed"
        assert cell(level, edition, rows, INSERT, SAME, **asked) == "committed"
        assert cell(level, edition, rows, INSERT, OPTIMIZE, **asked) == "committed"
        assert cell(level, edition, rows, OPTIMIZE, INSERT, **asked) == "committed"
        beside = "conflict" if level == "serializable" else "committed"
        assert cell(level, edition, rows, SAME, INSERT, **asked) == beside
        by_row = rows and vectors
        other = "committed" if by_row else beside
        assert cell(level, edition, rows, ONE, INSERT, **asked) == other


@pytest.mark.slow
@pytest.mark.parametrize(("level", "edition", "rows"), EVERY)
def test_what_is_changed(level, edition, rows):
    """D10, D16, D20, D26: changes of the same row, and of different rows in one file."""
    for vectors, partitioned in product((False, True), repeat=2):
        asked = {"vectors": vectors, "partitioned": partitioned}
        assert cell(level, edition, rows, ONE, SAME, **asked) == "conflict"
        by_row = rows and vectors and not partitioned
        other = "committed" if by_row else "conflict"
        assert cell(level, edition, rows, ONE, OTHER, **asked) == other
        assert cell(level, edition, rows, OTHER, ONE, **asked) == other


@pytest.mark.slow
@pytest.mark.parametrize(("level", "rows"), list(product(LEVELS, (False, True))))
def test_what_is_compacted(level, rows):
    """D12, D13, D18, D19, D22, D28: OPTIMIZE beside a change, and beside itself."""
    for edition, vectors in product(("oldest", "newest"), (False, True)):
        asked = {"vectors": vectors, "partitioned": True}
        plain = "committed" if vectors else "conflict"
        # in the oldest edition ZORDER sends to the other matrix only, which says the same (D28)
        spared = vectors and edition == "oldest"
        ordered = "committed" if spared else "conflict"
        for loser, winner in ((SAME, OPTIMIZE), (OPTIMIZE, SAME), (OPTIMIZE, OPTIMIZE)):
            assert cell(level, edition, rows, loser, winner, **asked) == plain
        beside = ((SAME, ORDERED), (ORDERED, SAME), *product((OPTIMIZE, ORDERED), repeat=2))
        for loser, winner in beside:
            expected = plain if (loser, winner) == (OPTIMIZE, OPTIMIZE) else ordered
            assert cell(level, edition, rows, loser, winner, **asked) == expected


PAIRS = ((SAME, OPTIMIZE), (OPTIMIZE, SAME), (OPTIMIZE, OPTIMIZE))


@pytest.mark.slow
@pytest.mark.parametrize(("level", "rows"), list(product(LEVELS, (False, True))))
def test_of_what_an_edition_has_lost_it_is_silent_but_for_what_it_says_elsewhere(level, rows):
    """D12, D13, D18, D19; D22 of partitioned tables with deletion vectors."""
    for loser, winner in PAIRS:
        assert cell(level, "middle", rows, loser, winner, vectors=True) == "silent"
        assert cell(level, "middle", rows, loser, winner, **SETTLED) == "committed"


SETTLED = {"vectors": True, "partitioned": True}
ORDERED_PAIRS = ((SAME, ORDERED), (ORDERED, SAME), (OPTIMIZE, ORDERED), (ORDERED, OPTIMIZE))


@pytest.mark.slow
@pytest.mark.parametrize(("level", "rows"), list(product(LEVELS, (False, True))))
def test_the_middle_edition_does_not_say_whether_d22_holds_for_zorder(level, rows):
    """Its cells, where PT names ZORDER BY, are lost; beside an INSERT it has the cell."""
    for loser, winner in ORDERED_PAIRS:
        assert cell(level, "middle", rows, loser, winner, **SETTLED) == "silent"
    for loser, winner in ((INSERT, ORDERED), (ORDERED, INSERT)):
        assert cell(level, "middle", rows, loser, winner, **SETTLED) == "committed"


# What the page says of other statements, and what it does not

RESTORE = "RESTORE TABLE t TO VERSION AS OF {init[1]}"
REPLACE = "REPLACE TABLE t (id INT, x INT) USING delta"
PROPERTY = "ALTER TABLE t SET TBLPROPERTIES ('team' = 'us')"
COLUMN = "ALTER TABLE t ADD COLUMNS (y INT)"
OTHERS = (INSERT, SAME, ONE, OTHER, OPTIMIZE, RESTORE, "VACUUM t")


def fate(name, loser, winner):
    text = TABLE.format(loser=loser, winner=winner, vectors="false", partitions="[]")
    test = read_litmus(text, "pair")
    done = observed_run(test, execute(test, protocol(name)), name).transactions["loser"].outcome
    return "conflict" if done.endswith("Exception") else done


@pytest.mark.slow
@pytest.mark.parametrize("name", DATABRICKS)
def test_the_page_is_silent_on_what_it_does_not_name(name):
    for winner in OTHERS:
        assert fate(name, RESTORE, winner) == "silent"
        assert fate(name, winner, RESTORE) == "silent"
    for unnamed in (REPLACE, "VACUUM t"):
        assert fate(name, unnamed, INSERT) == "silent"
    for changed in (PROPERTY, COLUMN, REPLACE):
        assert fate(name, RESTORE, changed) == "conflict"


@pytest.mark.slow
@pytest.mark.parametrize("name", DATABRICKS)
def test_a_change_of_metadata_fails_what_it_overtakes(name):
    """D3, D5, D70; D72 of two that replace a table. The change itself may be overtaken."""
    for loser, changed in product((*OTHERS, PROPERTY, COLUMN), (PROPERTY, COLUMN)):
        assert fate(name, loser, changed) == "conflict"
    assert fate(name, PROPERTY, INSERT) == "committed"
    assert fate(name, REPLACE, REPLACE) == "conflict"


# The runtime

MERGE = (
    "MERGE INTO t USING (SELECT 1 AS id, 9 AS x) AS s ON t.id = s.id{} WHEN MATCHED THEN UPDATE SET"
    " x = s.x"
)
FILTERED, UNFILTERED = MERGE.format(" AND t.id = 1"), MERGE.format("")
COPY = "INSERT INTO t SELECT 9, x FROM t WHERE id = 1"
QUERIED = "INSERT INTO t SELECT 9, 10 WHERE NOT EXISTS (SELECT 1 FROM t WHERE id = 7)"
RUNTIMES = {  # whether DELETE, UPDATE and MERGE, with a condition on the target and without, go row by row
    "13.3": (False, False, False, False),
    "14.1-preview": (True, False, False, False),
    "14.1-preview-photon": (True, True, True, False),
    "14.2": (True, True, False, False),
    "14.2-photon": (True, True, True, False),
    "14.3": (True, True, True, True),
    "14.3-photon": (True, True, True, True),
}


def test_one_edition_in_short():
    name = "databricks-serializable-oldest-rows"
    assert [fate(name, loser, INSERT) for loser in (RESTORE, SAME, COPY)] == [
        "silent",
        "conflict",
        "conflict",
    ]
    assert [fate(name, loser, PROPERTY) for loser in (RESTORE, INSERT)] == ["conflict"] * 2
    assert outcome(name, UNFILTERED, OTHER, vectors=True) == "ConcurrentAppendException"
    assert outcome(name, FILTERED, OTHER, vectors=True) == "committed"


def test_the_runtimes_are_these():
    assert {path.stem for path in HOME.glob("runtimes/*.cat")} == set(RUNTIMES)
    assert spec("databricks-serializable-newest-rows").runtime == "14.3-photon"


@pytest.mark.slow
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_what_goes_row_by_row_depends_on_the_runtime(runtime):
    """D21, D23, D29, D31."""
    for edition in EDITIONS:
        delete, update, filtered, unfiltered = RUNTIMES[runtime]
        if edition == "oldest":  # there MERGE needs Photon, and a condition, in every runtime
            filtered, unfiltered = filtered and runtime.endswith("photon"), False
        name = f"databricks-serializable-{edition}-rows@{runtime}"
        by_row = {ONE: delete, OTHER: update, FILTERED: filtered, UNFILTERED: unfiltered}
        for loser, expected in by_row.items():
            winner = ONE if loser == OTHER else OTHER
            found = outcome(name, loser, winner, vectors=True)
            assert (found == "committed") == expected, (edition, loser)


@pytest.mark.parametrize("edition", EDITIONS)
def test_a_condition_with_a_subquery_goes_by_file(edition):
    """D27."""
    name = f"databricks-write-serializable-{edition}-rows"
    assert outcome(name, QUERIED, OTHER, vectors=True) == "ConcurrentAppendException"
    assert outcome(name, COPY, OTHER, vectors=True) == "committed"


def test_what_admits_at_most_says_so():
    """D30: only where rows decide."""
    assert {name for name in DATABRICKS if spec(name).at_most} == {
        name for name in DATABRICKS if name.endswith("-rows")
    }


# What the editions are worth


def found(a, b, **asked):
    return separate(spec(a), spec(b), scope("rows"), **asked)


@pytest.mark.slow
def test_row_by_row_admits_what_goes_by_file_does_not():
    rows, files = (f"databricks-write-serializable-newest{s}" for s in ("-rows", ""))
    answer = found(rows, files)
    assert answer.transactions == 2
    assert {type(s).__name__ for s in answer.litmus.transactions.values()} == {"Delete"}
    assert found(rows, "delta-write-serializable").transactions == 2


@pytest.mark.slow
def test_the_warning_of_the_newer_editions_closes_the_hole_of_the_oldest():
    """Row by row, blind appends bridge as in open-source Delta; what D35 warns of is what is
    needed.
    """
    level = "write-serializable"
    hole = found(f"databricks-{level}-oldest-rows", level, unexplained=True)
    assert hole.transactions == 3
    assert not hole.serial.orders
    for edition in ("newest", "newest-rows", "middle-rows"):
        answer = found(f"databricks-{level}-{edition}", level)
        assert (answer.found, answer.bound[:20]) == (False, "up to 3 transactions")
    for edition in ("oldest-rows", "newest-rows"):
        assert found(f"databricks-serializable-{edition}", "log-serializable").found is False


def test_read_literally_modifying_the_same_row_promises_nothing():
    literal = read_spec(
        '"Both wrote it" empty [~Blind] ; (unseen & ww) as ConcurrentModificationException',
        "literal",
    )
    answer = separate(literal, spec("write-serializable"), scope("rows"))
    assert answer.transactions == 2
    assert {edge.kind for edge in answer.violation.cycle} == {"rw"}


@pytest.mark.slow
@pytest.mark.parametrize("edition", EDITIONS)
def test_beside_who_alters_the_table_serializable_keeps_its_promise(edition):
    answer = separate(
        spec(f"databricks-serializable-{edition}"),
        spec("log-serializable"),
        scope("altered"),
        transactions=[1, 2],
    )
    assert answer.found is False


@pytest.mark.slow
@pytest.mark.parametrize(
    ("level", "edition", "sizes"), list(product(LEVELS, EDITIONS, ((2,), (3,))))
)
def test_going_by_row_never_forbids_more(level, edition, sizes):
    files = spec(f"databricks-{level}-{edition}")
    for runtime in ("", "@14.2") if sizes == (2,) else ("",):
        rows = spec(f"{files.name}-rows{runtime}")
        answer = separate(files, rows, scope("rows"), transactions=sizes, shipped=sizes == (3,))
        assert answer.found is False
        assert answer.assumptions[-1].startswith(f"{rows.name} admits at most what it says: ")


METADATA = (
    "property-during-insert",
    "column-during-insert",
    "identity-two-inserts",
    "create-beside-create",
    "idempotent-writes-meet",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", METADATA)
def test_every_edition_has_a_clause_for_what_is_no_file(name):
    """D3, D6, D70-D72."""
    test = litmus(name)
    aborted = {"identity-two-inserts": {"a"}, "idempotent-writes-meet": {"a"}}
    aborted |= {"create-beside-create": {"slow", "create"}}
    for under in DATABRICKS:
        done = run(test, protocol(under))
        found = {who for who, t in done.run.transactions.items() if t.aborted}
        assert (found, done.expected) == (aborted.get(name, {"insert"}), "met")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["databricks-serializable-middle-rows", "databricks-write-serializable-oldest"]
)
def test_a_sweep_counts_what_each_candidate_is(name):
    under, inside = spec(name), scope("rows")
    verdicts = [str(judge(c.frame, under)) for c in candidates(inside, 2, lambda _: True)]
    counts = sweep(inside, 2, protocols=[under], levels=[spec("log-serializable")])
    tally = counts.protocols[name]
    assert (tally.admitted, tally.silent) == (verdicts.count("allowed"), verdicts.count("silent"))
    assert bool(tally.silent) == ("middle" in name)
    assert counts.at_most == ((name,) if name.endswith("-rows") else ())


def ends(text, name):
    test = read_litmus(text, "t")
    done = observed_run(test, execute(test, protocol(name)), name).transactions
    return {who: t.outcome for who, t in done.items() if t.aborted}


MOVED = """
title = "A row is moved by a compaction, then deleted"
schedule = "update.start optimize delete update.commit"
[table]
columns = "id INT, x INT"
properties = { "delta.enableDeletionVectors" = "true" }
init = ["INSERT INTO t VALUES (1, 10)", "INSERT INTO t VALUES (2, 20)"]
[transactions]
update   = "UPDATE t SET x = 0 WHERE id = 1"
optimize = "OPTIMIZE t"
delete   = "DELETE FROM t"
"""


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_by_file_a_row_is_not_lost_where_a_compaction_moved_it(level):
    for edition in ("oldest", "newest"):
        name = f"databricks-{level}-{edition}"
        assert ends(MOVED, f"{name}-rows") == {"update": "ConcurrentModificationException"}
        assert ends(MOVED, name) == {"update": "ConcurrentDeleteReadException"}


IDENTITY = """
title = "Two writers of a table with an identity column, which neither generates"
schedule = "a.start b a.commit"
[table]
columns = "id BIGINT GENERATED BY DEFAULT AS IDENTITY, x INT"
[transactions]
a = "INSERT INTO t VALUES (1, 10)"
b = "INSERT INTO t VALUES (2, 10)"
"""


def test_a_table_with_an_identity_column_has_one_writer_at_a_time():
    """D6."""
    for name in DATABRICKS:
        assert ends(IDENTITY, name) == {"a": "ConcurrentModificationException"}
        compacted = IDENTITY.replace('"INSERT INTO t VALUES (1, 10)"', '"OPTIMIZE t"')
        filled = compacted.replace(
            "[transactions]",
            'init = ["INSERT INTO t VALUES (3, 1)", "INSERT INTO t VALUES (4, 1)"]\n[transactions]',
        )
        assert set(ends(filled, name)) == {"a"}


APPENDED = """
title = "A delete that misses an append, and a commit after the append"
schedule = "delete.start append later delete.commit"
[table]
columns = "id INT, part INT, x INT"
partitioned_by = ["part"]
properties = {{ "delta.enableDeletionVectors" = "{vectors}" }}
init = ["INSERT INTO t VALUES (1, 0, 10), (2, 1, 10)"]
[transactions]
delete = "DELETE FROM t WHERE part = 0 AND {deleted}"
append = "INSERT INTO t VALUES (100, 0, 5)"
later  = "{later}"
"""
READS_IT = "INSERT INTO t SELECT 50, 1, x FROM t WHERE id = 100"
READS_ANOTHER = "INSERT INTO t SELECT 50, 1, x FROM t WHERE part = 0 AND id = 1"
READS_NONE = "UPDATE t SET x = 9 WHERE part = 1"


@pytest.mark.parametrize("rows", ["", "-rows"])
@pytest.mark.parametrize("edition", ["middle", "newest"])
def test_a_blind_append_conflicts_only_if_two_read_it(edition, rows):
    """D35, D36: somebody else has read the appended row, and the delete would have."""
    name = f"databricks-write-serializable-{edition}{rows}"
    for vectors, later, deleted in product(
        ("true", "false"), (READS_IT, READS_ANOTHER, READS_NONE), ("(x < 10 OR id = 1)", "id = 1")
    ):
        text = APPENDED.format(vectors=vectors, later=later, deleted=deleted)
        both = later == READS_IT and deleted != "id = 1"
        assert set(ends(text, name)) == ({"delete"} if both else set()), (later, deleted)


# What open-source Delta does besides its check is not the page's

CHANGES = (
    "ALTER TABLE t SET TBLPROPERTIES ('delta.isolationLevel' = 'Serializable');",
    "ALTER TABLE t SET TBLPROPERTIES ('delta.isolationLevel' = 'WriteSerializable');",
    "ALTER TABLE t SET TBLPROPERTIES ('delta.enableDeletionVectors' = true);",
    "ALTER TABLE t DROP FEATURE deletionVectors;",
    "REORG TABLE t APPLY (UPGRADE UNIFORM(ICEBERG_COMPAT_VERSION=2));",
    "ALTER TABLE t ADD COLUMNS (col_name STRING);",
    "ALTER TABLE t SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none');",
)
"""The changes of metadata that the page prints, with their semicolons, and its other level."""


@pytest.mark.parametrize("changed", CHANGES)
def test_each_printed_change_of_metadata_fails_what_it_overtakes(changed):
    """D3, D5, D58: INSERT, DELETE and OPTIMIZE, which open-source Delta would try again."""
    for name, loser in product(DATABRICKS[::5], (INSERT, SAME, OPTIMIZE)):
        assert outcome(name, loser, changed, vectors=True).endswith("ChangedException"), name


@pytest.mark.parametrize(
    "changed", ["ALTER TABLE t DROP FEATURE deletionVectors", CHANGES[4]], ids=["drop", "upgrade"]
)
def test_of_what_delta_does_in_several_commits_it_says_so(changed):
    text = TABLE.format(loser=INSERT, winner=changed, vectors="true", partitions="[]")
    with pytest.raises(LitmusError, match=r"several commits in open-source Delta.*MetadataChanged"):
        run(read_litmus(text, "pair"), protocol("delta-serializable"))


LEVELS_SET = """
title = "A delete that an insert overtakes, on a table whose level was set"
schedule = "level delete.start insert delete.commit"
[table]
columns = "id INT"
init = ["INSERT INTO t VALUES (1)"]
[transactions]
level = "ALTER TABLE t SET TBLPROPERTIES ('delta.isolationLevel' = '{}')"
delete = "DELETE FROM t WHERE id < 9"
insert = "INSERT INTO t VALUES (2)"
"""


@pytest.mark.parametrize("name", DATABRICKS)
def test_a_level_that_a_statement_sets_holds_from_then_on(name):
    """D37, D58."""
    for level, fails in (("Serializable", {"delete"}), ("WriteSerializable", set())):
        assert set(ends(LEVELS_SET.format(level), name)) == fails


IN_OTHERS = "DELETE FROM t WHERE id IN (SELECT id + 2 FROM t WHERE x = 10)"
WITH_MAX = "UPDATE t SET x = 0 WHERE id = (SELECT max(id) FROM t)"
CORRELATED = "DELETE FROM t WHERE EXISTS (SELECT 1 FROM t AS o WHERE o.id = t.id + 1 AND o.x = t.x)"


@pytest.mark.parametrize("sql", [IN_OTHERS, WITH_MAX, CORRELATED])
def test_subqueries_in_delete_and_update_run_and_go_by_file(sql):
    """D27; open-source Delta refuses them when they run."""
    test = read_litmus(
        TABLE.format(loser=sql, winner=INSERT, vectors="true", partitions="[]"), "pair"
    )
    assert (
        run(test, protocol("delta-serializable")).run.transactions["loser"].outcome
        == "error:DeltaAnalysisException"
    )
    for edition in EDITIONS:
        name = f"databricks-write-serializable-{edition}-rows"
        assert outcome(name, sql, OTHER, vectors=True) == "ConcurrentAppendException"
        done = run(test, protocol(name))
        assert done.run.transactions["loser"].outcome == "committed"
        assert done.serial.orders


def test_what_set_reads_is_of_the_snapshot_and_recorded():
    """D38, D47: a subquery in SET, where open-source Delta has a hole (docs/delta.md, H1)."""
    for level in ("serializable", "write-serializable"):
        done = run(litmus("set-from-subquery"), protocol(f"databricks-{level}-newest"))
        assert any(t.aborted for t in done.run.transactions.values())


ROWS = '"INSERT INTO t VALUES (1, 10), (2, 10)"'
PURGED = """
title = "A purge beside an insert and a delete"
schedule = "purge.start insert delete purge.commit"
[table]
columns = "id INT, x INT"
properties = { "delta.enableDeletionVectors" = "true" }
[transactions]
purge = "REORG TABLE t APPLY (PURGE)"
insert = "INSERT INTO t VALUES (9, 10)"
delete = "DELETE FROM t WHERE id = 2"
"""


def test_the_oldest_edition_never_names_reorg():
    """D25."""
    text = PURGED.replace("\n[transactions]", f'\ninit = [{ROWS}, "{ONE}"]\n[transactions]')
    for edition, said in (("oldest", "silent"), ("newest", "committed")):
        for suffix in ("", "-rows"):
            name = f"databricks-write-serializable-{edition}{suffix}"
            test = read_litmus(text, "purged")
            done = observed_run(test, execute(test, protocol(name)), name).transactions
            assert done["purge"].outcome == said


COMPLEX = (
    "struct(x AS v).v = 10",
    "array_contains(array(x, 1), 10)",
)


@pytest.mark.parametrize("condition", COMPLEX)
def test_a_complex_condition_goes_by_file(condition):
    """D27: whatever it gives."""
    test = read_litmus(
        TABLE.format(
            loser=f"DELETE FROM t WHERE id = 1 AND {condition}",
            winner=OTHER,
            vectors="true",
            partitions="[]",
        ),
        "pair",
    )
    known = spec("databricks-write-serializable-newest-rows")
    with pytest.raises(SeveralRuns) as caught:
        run(test, known)
    ended = {one.transactions["loser"].outcome for one in caught.value.runs}
    assert ended <= {"ConcurrentAppendException", "no-op", "error:its own"}
    assert "ConcurrentAppendException" in ended


# Names


@pytest.mark.parametrize(
    ("name", "means"),
    [
        ("databricks", "databricks-write-serializable-newest-rows"),
        ("databricks@15.4", "databricks-write-serializable-newest-rows@14.3"),
        ("databricks-rows@17.3-photon", "databricks-write-serializable-newest-rows@14.3-photon"),
        ("databricks@13.3", "databricks-write-serializable-newest-rows@13.3"),
        ("databricks@14.1", "databricks-write-serializable-newest-rows@13.3"),
        ("databricks@14.0-preview", "databricks-write-serializable-newest-rows@14.1-preview"),
        ("databricks@16.4.x-photon-scala2.12", "databricks-write-serializable-newest-rows@14.3-photon"),
        ("databricks-serializable@14.2", "databricks-serializable-newest-rows@14.2"),
        ("databricks-files@15.4", "databricks-write-serializable-newest"),
        ("databricks-serializable-oldest-rows@16.4 LTS", "databricks-serializable-oldest-rows@14.3"),
    ],
)  # fmt: skip
def test_a_release_of_the_runtime_is_the_edition_that_speaks_of_it(name, means):
    assert protocol(name).name == spec(name).name == means


def test_a_release_names_a_protocol_on_the_command_line(call):
    """``run``, ``show`` and ``robust`` ask one function."""
    asked = call("run", "vectors-one-file", "--protocol", "databricks@15.4,databricks-rows@13.3")
    assert "under databricks-write-serializable-newest-rows@14.3" in asked[1]
    assert "under databricks-write-serializable-newest-rows@13.3" in asked[1]
    assert call("show", "databricks@15.4")[1].startswith(
        "databricks-write-serializable-newest-rows@14.3 "
    )
    status, _, err = call("run", "reorder", "--protocol", "databricks@99.9")
    assert (status, "known: 13.3" in err) == (2, True)


def test_of_a_release_that_is_none_it_names_those_that_are():
    for name in ("databricks@99.9", "databricks-rows@15.9", "databricks@newest"):
        with pytest.raises(UnknownName, match=r"no release .*known: 13\.3, .*15\.4"):
            protocol(name)
