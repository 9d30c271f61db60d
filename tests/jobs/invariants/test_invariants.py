"""Invariants of workloads: answers, proofs, violations, repairs, and what they assume."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isolitmus.checker.execution.commit_loop import execute
from isolitmus.jobs.invariant import TableVersions
from isolitmus.jobs.invariants.invariant_repairs import find_invariant_repairs
from isolitmus.jobs.invariants.invariants import decide_invariants
from isolitmus.jobs.readers.workload_file import read_workload
from isolitmus.jobs.render.invariants import invariant_cell
from isolitmus.jobs.sql.invariant_text import read_invariant
from isolitmus.jobs.workload import UnreadStatement

BOTH = ("delta-serializable", "delta-write-serializable")
ROW = "SELECT :id AS id, :v AS v, :day AS day"
STAGED = "SELECT id, max(v) AS v, max(day) AS day FROM s GROUP BY id"
MERGE = (
    "MERGE INTO t USING ({}) n ON t.id = n.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN"
    " INSERT *"
)
LAYOUTS = ("", " PARTITIONED BY (day)")


def jobs(*texts, invariants=("unique(id)",), layout="", more="", top="", look="count(*)"):
    """Return a workload; each text is a job, of several statements if it is a list."""
    columns = "(id INT, v STRING, day DATE) USING delta"
    lines = [top, f'ddl = ["CREATE TABLE t {columns}{layout}", "CREATE TABLE s {columns}"]']
    for k, text in enumerate(texts):
        every = [text] if isinstance(text, str) else text
        types = {"id": "INT", "old": "INT", "v": "STRING", "day": "DATE"}
        used = {name: kind for name, kind in types.items() if f":{name}" in " ".join(every)}
        lines.append(f"[jobs.{'abc'[k]}]")
        lines.append(f"sql = [{', '.join(map(repr, every))}]")
        if ":n" in " ".join(every):
            lines.append(f'let = {{ n = "SELECT {look} FROM t WHERE id = :id" }}')
        lines.append(f"parameters = {{ {', '.join(f'{n} = {k!r}' for n, k in used.items())} }}")
    lines += [more, "[invariants]", *(f"i{k} = {text!r}" for k, text in enumerate(invariants))]
    return read_workload("\n".join(lines), "jobs")


def words(workload, protocols=BOTH):
    return [answer.not_null or answer.word for answer in decide_invariants(workload, protocols)]


KEPT = (
    MERGE.format(ROW),
    MERGE.format(STAGED),
    MERGE.format("SELECT DISTINCT id, 'x' AS v, DATE '2026-01-01' AS day FROM s"),
    MERGE.format(
        "SELECT id, v, day FROM s QUALIFY row_number() OVER (PARTITION BY id ORDER BY v) = 1"
    ),
    MERGE.format(
        "SELECT id, v, day FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY v) AS rn"
        " FROM s) WHERE rn = 1"
    ),
    f"INSERT INTO t {ROW} WHERE NOT EXISTS (SELECT 1 FROM t WHERE id = :id)",
    "UPDATE t SET v = :v WHERE id = :id",
    "DELETE FROM t WHERE day = :day",
    "OPTIMIZE t",
    f"INSERT OVERWRITE t {STAGED}",
)


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("text", KEPT)
def test_statements_that_keep_a_key(text, layout):
    assert words(jobs(text, layout=layout)) == ["kept", "kept"]


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_statements_that_keep_a_key_together(layout):
    work = jobs(KEPT[0], KEPT[5], KEPT[6], layout=layout)
    assert words(work) == ["kept", "kept"]


ALONE = (
    "INSERT INTO t VALUES (:id, :v, :day)",
    "INSERT INTO t SELECT * FROM s",
    MERGE.format("SELECT * FROM s"),
    MERGE.format(
        "SELECT id, v, day FROM (SELECT *, rank() OVER (PARTITION BY id ORDER BY v) AS rn FROM s)"
        " WHERE rn = 1"
    ),
    f"MERGE INTO t USING ({ROW}) n ON t.id = n.id AND t.day = n.day WHEN NOT MATCHED THEN INSERT *",
    "UPDATE t SET id = :id WHERE id = :old",
    f"INSERT INTO t REPLACE WHERE day = :day {ROW}",
    "INSERT OVERWRITE t SELECT * FROM s",
)


@pytest.mark.slow
@pytest.mark.parametrize("text", ALONE)
def test_statements_that_break_a_key_by_themselves(text):
    for answer in decide_invariants(jobs(text, layout=LAYOUTS[1]), BOTH):
        assert answer.word == "broken"
        assert answer.violation.alone
        assert not answer.violation.half_done
        assert not answer.keeps_alone


@pytest.mark.slow
def test_a_lookup_by_the_client_breaks_a_key_only_by_overlap():
    for answer in decide_invariants(jobs(f"INSERT INTO t {ROW} WHERE :n = 0"), BOTH):
        assert answer.word == "broken"
        assert answer.violation.jobs == ("a", "a")
        assert answer.keeps_alone


@pytest.mark.slow
def test_a_job_of_two_commits_breaks_a_key_by_overlap():
    work = jobs(["DELETE FROM t WHERE id = :id", "INSERT INTO t VALUES (:id, :v, :day)"])
    for answer in decide_invariants(work, BOTH):
        assert answer.word == "broken"
        assert answer.violation.jobs == ("a", "a")
        assert not answer.violation.half_done


def test_a_version_between_two_statements_is_half_done():
    texts = ["INSERT INTO t VALUES (1, NULL, :day)", "DELETE FROM t WHERE v IS NULL"]
    for answer in decide_invariants(jobs(texts, invariants=["not null(v)"]), BOTH):
        assert answer.word == "broken"
        assert answer.violation.alone
        assert answer.violation.half_done


@pytest.mark.slow
def test_the_level_matters_for_a_blind_append():
    """At WriteSerializable, a statement that reads does not abort for a concurrent blind append."""
    guarded = f"INSERT INTO t {ROW} WHERE NOT EXISTS (SELECT 1 FROM t WHERE id = :id)"
    work = jobs(guarded, "INSERT INTO t SELECT :id, :v, :day WHERE :n = 0")
    pairs = [answer.pairs for answer in decide_invariants(work, BOTH)]
    assert "b commits while a runs" in pairs[0]
    assert "b commits while a runs" not in pairs[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "invariant", "word"),
    [
        ("INSERT INTO t VALUES (:id, :v, :day)", "not null(v)", "kept"),
        ("INSERT INTO t SELECT * FROM s", "not null(v)", "broken"),
        ("INSERT INTO t SELECT * FROM s WHERE v IS NOT NULL", "not null(v)", "kept"),
        ("UPDATE t SET v = NULL WHERE id = :id", "not null(v)", "broken"),
        ("UPDATE t SET id = id + 1", "check(id > 0)", "kept"),
        ("UPDATE t SET id = id - 1 WHERE id > 3", "check(id > 0)", "kept"),
        ("UPDATE t SET id = id - 1", "check(id > 0)", "broken"),
        ("INSERT INTO t VALUES (:id, :v, :day)", "count per day <= 2", "broken"),
        ("INSERT INTO t VALUES (7, :v, :day)", "count per day <= 2 where id < 7", "kept"),
        ("UPDATE t SET v = :v WHERE id = :id", "count per day <= 2", "kept"),
        ("UPDATE t SET day = :day WHERE id = :id", "count per day <= 2", "broken"),
        ("DELETE FROM t", "SELECT * FROM t WHERE id < 0", "kept"),
    ],
)
def test_other_invariants(text, invariant, word):
    assert words(jobs(text, invariants=[invariant])) == [word, word]


def test_an_invariant_of_a_source_is_used_and_kept():
    work = jobs(MERGE.format("SELECT * FROM s"), invariants=["t: unique(id)", "s: unique(id)"])
    found = list(decide_invariants(work, BOTH))
    assert {answer.word for answer in found} == {"kept"}
    assert found[0].given == ("i1",)
    assert found[1].given == ()


@pytest.mark.slow
def test_a_proof_uses_no_invariant_that_is_broken():
    """The key of the source is not kept, so that of the target is not proved by it."""
    texts = (MERGE.format("SELECT * FROM s"), "INSERT INTO s VALUES (:id, :v, :day)")
    work = jobs(*texts, invariants=["t: unique(id)", "s: unique(id)"])
    found = {(a.invariant.table, a.protocol): a.word for a in decide_invariants(work, BOTH)}
    assert {found["s", name] for name in BOTH} == {"broken"}
    assert "kept" not in {found["t", name] for name in BOTH}


@pytest.mark.slow
def test_a_violation_starts_with_what_is_given():
    """Two rows of one key cannot be staged if the source has a key."""
    texts = (MERGE.format("SELECT * FROM s"), "INSERT INTO t SELECT :id, :v, :day WHERE :n = 0")
    work = jobs(*texts, invariants=["t: unique(id)", "s: unique(id)"])
    for answer in decide_invariants(work, BOTH):
        for violation in answer.violations:
            start = execute(violation.test).states[0]
            given = [one for one in work.invariants if one.table in start]
            rows = TableVersions({name: table.rows() for name, table in start.items()}, {})
            assert not any(one.violations(rows) for one in given)


def test_what_is_not_understood_leaves_the_answer_open():
    work = jobs(KEPT[0], "INSERT INTO t SELECT * FROM s PIVOT (max(v) FOR id IN (1))")
    assert work.unread
    for answer in decide_invariants(work, BOTH):
        assert answer.word == "unknown"
        assert "not understood: b" in answer.why[0]


def test_without_examples_nothing_is_broken():
    work = jobs("INSERT INTO t VALUES (:id, :v, :day)")
    (answer,) = decide_invariants(work, BOTH[:1], examples=False)
    assert (answer.word, answer.violations) == ("unknown", ())


def test_runs_that_never_overlap_read_what_they_change():
    text = "INSERT INTO t SELECT :id, :v, :day WHERE :n = 0"
    assert words(jobs(text, more="alone = true")) == ["kept", "kept"]


@pytest.mark.slow
@pytest.mark.parametrize("looked", ["count(*)", "max(id)", "id", "1"])
@pytest.mark.parametrize(
    ("other", "word"),
    [
        ("DELETE FROM t WHERE id = :id", "kept"),
        ("UPDATE t SET v = :v WHERE id = :id", "kept"),
        ("INSERT INTO t VALUES (NULL, :v, :day)", "kept"),
        ("UPDATE t SET id = :id WHERE v = :v AND id = :old", "broken"),
        (MERGE.format(ROW), "broken"),
    ],
)
def test_a_lookup_stays_true_beside_jobs_that_add_no_such_row(looked, other, word):
    """A client that finds no row finds none later, if no job that may overlap it adds one."""
    none = "COALESCE(:n, 0) = 0" if looked == "count(*)" else ":n IS NULL"
    register = f"INSERT INTO t SELECT :id, :v, :day WHERE {none}"
    work = jobs(register, other, top="apart = [['a', 'a']]", look=looked)
    answers = [*decide_invariants(work, BOTH)]
    assert [one.word for one in answers] == [word] * 2
    assert [one.lasting for one in answers] == [("a",) if word == "kept" else ()] * 2
    assert all(one.keeps_alone for one in answers if word == "broken" and "MERGE" in other)


def test_a_lookup_of_a_column_that_may_be_null_tells_nothing():
    register = "INSERT INTO t SELECT :id, :v, :day WHERE :n IS NULL"
    for looked, word in (("v", "broken"), ("max(v)", "broken")):
        assert words(jobs(register, more="alone = true", look=looked)) == [word] * 2


@pytest.mark.slow
def test_a_violation_that_duckdb_does_not_find_is_a_defect():
    work = jobs("INSERT INTO t VALUES (:id, :v, :day)")
    other = replace(work.invariants[0], query="SELECT * FROM t WHERE id IS NULL AND id = 1")
    answers = list(decide_invariants(work, BOTH[:1], [other]))
    assert [one.word for one in answers] == ["unknown"]
    assert "a defect of isolitmus" in answers[0].why[0]
    assert "DuckDB finds no rows" in answers[0].why[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "invariant", "repairs"),
    [
        (
            "INSERT INTO t SELECT :id, :v, :day WHERE :n = 0",
            "unique(id)",
            ["never run at the same time: two runs of a", "write a as MERGE INTO t"],
        ),
        ("INSERT INTO t VALUES (:id, :v, :day)", "unique(id)", ["write a as MERGE INTO t"]),
        (
            MERGE.format("SELECT * FROM s"),
            "unique(id)",
            ["let a source have one row for each key: s: unique(id)"],
        ),
        ("INSERT INTO t SELECT * FROM s", "not null(v)", ["write a as INSERT INTO t SELECT id, v"]),
        (
            MERGE.format("SELECT * FROM s"),
            "check(id > 0)",
            [
                "write a as MERGE INTO t USING (SELECT * FROM s) AS n ON t.id = n.id WHEN MATCHED AND"
            ],
        ),
    ],
)
def test_repairs_are_proved(text, invariant, repairs):
    work = jobs(text, invariants=[invariant])
    for answer in decide_invariants(work, BOTH):
        found = list(find_invariant_repairs(answer, work.invariants))
        assert [one.title[: len(said)] for one, said in zip(found, repairs, strict=True)] == repairs
        for one in found:
            given = [*work.invariants]
            if "s: unique(id)" in one.title:
                continue
            (again,) = decide_invariants(one.workload, [one.protocol], given)
            assert again.word == "kept"


@pytest.mark.slow
def test_the_table_of_the_page_is_true():
    """docs/invariants.md, Where released Delta keeps unique keys and counts, and where not."""
    rows = {
        (KEPT[0],): "kept",
        (KEPT[0], KEPT[5]): "kept",
        ("INSERT INTO t VALUES (:id, :v, :day)",): "alone",
        ("INSERT INTO t SELECT :id, :v, :day WHERE :n = 0",): "overlap",
        (("DELETE FROM t WHERE id = :id", "INSERT INTO t VALUES (:id, :v, :day)"),): "two",
        (f"INSERT INTO t REPLACE WHERE day = :day {ROW}",): "alone",
    }
    for texts, said in rows.items():
        for answer in decide_invariants(jobs(*map(list_or_text, texts)), BOTH):
            if said == "kept":
                assert answer.word == "kept"
            else:
                assert answer.violation.alone == (said == "alone")
                assert answer.keeps_alone == (said == "overlap")


def list_or_text(given):
    return given if isinstance(given, str) else list(given)


def test_parameters_of_other_statements_of_a_job_have_some_value():
    """The day of the UPDATE plays no part in the violation."""
    texts = [MERGE.format("SELECT * FROM s"), "UPDATE t SET day = :day WHERE id = 7"]
    (answer,) = decide_invariants(jobs(texts), BOTH[:1])
    assert answer.word == "broken"


@pytest.mark.slow
def test_repairs_of_several_changes():
    """A source with duplicates and a lookup by the client: neither change suffices alone."""
    work = jobs(MERGE.format("SELECT * FROM s"), "INSERT INTO t SELECT :id, :v, :day WHERE :n = 0")
    (answer,) = decide_invariants(work, BOTH[:1])
    (repair,) = find_invariant_repairs(answer, work.invariants)
    assert repair.title.startswith("let a source have one row for each key: s: unique(id); ")
    source = read_invariant("s: unique(id)", work.tables, ["s"])
    given = [*work.invariants, source]
    again = decide_invariants(repair.workload, [repair.protocol], given)
    assert {one.word for one in again} == {"kept"}


def test_a_count_may_be_older_than_an_earlier_statement_of_its_job():
    texts = ["DELETE FROM t WHERE v = 'x'", "INSERT INTO t SELECT :id, :v, :day WHERE :n = 0"]
    work = jobs(texts, more="alone = true")
    assert "kept" not in words(work)


def test_two_changed_rows_may_be_too_many_together():
    work = jobs(
        "UPDATE t SET id = 1 WHERE day = :day", invariants=["count per v <= 1 where id = 1"]
    )
    assert words(work) == ["broken", "broken"]


AT_MOST = "count per day <= 2 where v = 'open'"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("condition", "word"),
    [
        ("(SELECT count(*) FROM t WHERE day = :day AND v = 'open') < 2", "kept"),
        ("1 >= (SELECT count(*) FROM t WHERE day = :day)", "kept"),
        ("NOT (SELECT count(*) FROM t) > 1", "kept"),
        ("NOT EXISTS (SELECT 1 FROM t WHERE day = :day)", "kept"),
        ("(SELECT count(*) FROM t WHERE day = :day AND v = 'open') <= 2", "broken"),
        ("(SELECT count(*) FROM t WHERE day = :day AND id = :id) < 2", "broken"),
        ("(SELECT count(*) FROM t WHERE day = :day AND id > 1) < 2", "broken"),
        ("(SELECT count(v) FROM t WHERE day = :day) < 2", "broken"),  # by NULL as :day
    ],
)
def test_a_count_of_the_statement_limits_what_it_adds_to(condition, word):
    """It has to count all rows that the invariant counts, and fewer than it allows."""
    row = f"INSERT INTO t SELECT :id, 'open', :day WHERE {condition}"
    assert words(jobs(row, "DELETE FROM t WHERE id = :id", invariants=[AT_MOST])) == [word] * 2


@pytest.mark.slow
def test_rows_of_one_group_that_a_statement_adds_together_are_too_many():
    both = "INSERT INTO t SELECT id, 'open', day FROM s WHERE (SELECT count(*) FROM t) = 0"
    answer, _ = decide_invariants(jobs(both, invariants=[AT_MOST]), BOTH)
    assert answer.word == "broken"
    assert answer.violation is not None
    assert len(answer.violation.versions.now["t"]) == 3
    moved = "UPDATE t SET v = 'open' WHERE day = :day"
    assert words(jobs(moved, invariants=[AT_MOST])) == ["broken"] * 2
    assert (
        words(jobs("UPDATE t SET id = :id WHERE day = :day", invariants=[AT_MOST])) == ["kept"] * 2
    )


@pytest.mark.slow
def test_a_count_that_a_client_reads_is_broken_by_overlap_only():
    row = "INSERT INTO t SELECT :id, 'open', DATE '2026-01-01' WHERE :n < 2 AND :id IS NOT NULL"
    answers = [*decide_invariants(jobs(row, invariants=["count per id <= 2"]), BOTH)]
    assert [(one.word, one.keeps_alone) for one in answers] == [("broken", True)] * 2


def two_tables(*texts, invariant, let=""):
    """Return jobs on orders and customers."""
    lines = [
        (
            'ddl = ["CREATE TABLE o (id INT, customer INT, amount INT) USING delta",'
            ' "CREATE TABLE c (id INT, name STRING) USING delta"]'
        )
    ]
    for k, text in enumerate(texts):
        every = [text] if isinstance(text, str) else text
        types = {"id": "INT", "customer": "INT", "other": "INT", "x": "INT"}
        used = {name: kind for name, kind in types.items() if f":{name}" in " ".join((*every, let))}
        lines.append(f"[jobs.{'abcdef'[k]}]")
        lines.append(f"sql = [{', '.join(map(repr, every))}]")
        if ":n" in " ".join(every):
            lines.append(f'let = {{ n = "{let}" }}')
        lines.append(f"parameters = {{ {', '.join(f'{n} = {k!r}' for n, k in used.items())} }}")
    return read_workload("\n".join((*lines, "[invariants]", f'it = "{invariant}"')), "jobs")


REFERENCE = "o: customer references c(id)"
ADDED = "INSERT INTO o SELECT :id, {} {}"
FOUND = ADDED.format(":customer, 1", "WHERE EXISTS (SELECT 1 FROM c WHERE id = :customer)")
PURGE = ("DELETE FROM o WHERE customer = :customer", "DELETE FROM c WHERE id = :customer")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("texts", "cell"),
    [
        ([FOUND], "kept"),
        ([ADDED.format("id, :x", "FROM c WHERE id = :customer")], "kept"),
        ([ADDED.format("c.id, amount", "FROM o JOIN c ON o.amount = c.id")], "kept"),
        ([ADDED.format("customer, amount", "FROM o WHERE id = :other")], "kept"),
        ([ADDED.format("NULL, 1", "")], "kept"),
        (["UPDATE o SET amount = :x WHERE id = :id", "UPDATE c SET name = 'x' WHERE id = :id"], "kept"),
        ([FOUND, "INSERT INTO c VALUES (:id, 'a')"], "kept"),
        ([ADDED.format(":customer, 1", "")], "broken alone"),
        (["UPDATE o SET customer = :other WHERE customer = :customer"], "broken alone"),
        ([ADDED.format("amount, customer", "FROM o")], "broken alone"),
        ([FOUND, "DELETE FROM c WHERE id = :id"], "broken alone"),
        ([FOUND, "UPDATE c SET id = :other WHERE id = :id"], "broken alone"),
        ([FOUND, "TRUNCATE TABLE c"], "broken alone"),
        ([FOUND, PURGE], "broken"),
        ([PURGE], "unknown"),
        ([FOUND, PURGE[::-1]], "half done"),
    ],
)  # fmt: skip
def test_references(texts, cell):
    """A row that is read stays, unless a job removes it; no check of Delta compares two tables."""
    answers = [*decide_invariants(two_tables(*texts, invariant=REFERENCE), BOTH)]
    assert [invariant_cell(one) for one in answers if one.word] == [cell] * 2 or (
        cell == "half done" and {invariant_cell(one) for one in answers} <= {cell, "broken"}
    )


@pytest.mark.slow
def test_a_row_that_the_client_has_read_stays_if_none_is_removed():
    count = "SELECT count(*) FROM c WHERE id = :customer"
    looked = ADDED.format(":customer, 1", "WHERE :n > 0")
    assert words(two_tables(looked, invariant=REFERENCE, let=count)) == ["kept"] * 2
    never = ADDED.format(":customer, 1", "WHERE :n = 0")
    assert words(two_tables(never, invariant=REFERENCE, let=count)) == ["broken"] * 2
    gone = two_tables(looked, PURGE, invariant=REFERENCE, let=count)
    assert words(gone) == ["broken"] * 2


def test_rows_of_an_example_refer_to_rows_that_are_there():
    """The reference is an invariant as well, so the tables of an example satisfy it."""
    work = two_tables("DELETE FROM o WHERE id = :id", invariant=REFERENCE)
    total = read_invariant("o: count(*) >= before", work.tables, ["o"])
    answers = [*decide_invariants(work, BOTH[:1], (*work.invariants, total))]
    assert [one.word for one in answers] == ["kept", "broken"]
    assert {"INSERT INTO c VALUES (1, 'a')"} <= {s.sql for s in answers[1].violation.test.init}


def test_a_reference_within_one_table():
    """A statement that removes the row to which its own new row refers would violate it."""
    within = "o: customer references o(id)"
    assert words(two_tables(ADDED.format("id, 1", "FROM o"), invariant=within)) == ["kept"] * 2
    moved = "UPDATE o SET customer = id, id = id + 1 WHERE customer IS NULL"
    assert words(two_tables(moved, invariant=within)) == ["broken"] * 2


@pytest.mark.parametrize(
    ("texts", "invariant", "word"),
    [
        (["UPDATE o SET customer = :x WHERE id = :id"], "o: sum(amount) unchanged", "kept"),
        (["UPDATE o SET amount = amount + 0 WHERE id = :id", "OPTIMIZE o"], "o: sum(amount) unchanged", "kept"),
        (["INSERT INTO o VALUES (:id, :x, 0)", "DELETE FROM o WHERE amount = 0"], "o: sum(amount) unchanged", "kept"),
        (["INSERT INTO o VALUES (:id, :x, 0)"], "o: count(*) >= before", "kept"),
        (["INSERT INTO o VALUES (:id, :x, 0)"], "o: count(*) unchanged where amount > 0", "kept"),
        (["UPDATE o SET amount = amount + 1 WHERE id = :id"], "o: sum(amount) >= before", "kept"),
        (["UPDATE o SET amount = NULL WHERE amount < 0"], "o: sum(amount) >= before", "kept"),
        (["UPDATE o SET amount = amount + 1 WHERE id = :id"], "o: sum(amount) unchanged", "broken"),
        (["UPDATE o SET amount = amount + 1 WHERE id = :id"], "o: sum(amount) <= before", "broken"),
        (["DELETE FROM o WHERE amount IS NULL"], "o: count(*) >= before", "broken"),
        (["MERGE INTO o USING c ON o.customer = c.id WHEN MATCHED THEN DELETE"], "o: sum(amount) unchanged", "broken"),
        (["INSERT OVERWRITE o SELECT * FROM o"], "o: sum(amount) unchanged", "unknown"),
    ],
)  # fmt: skip
def test_totals(texts, invariant, word):
    assert words(two_tables(*texts, invariant=invariant)) == [word] * 2


def test_a_transfer_by_two_statements():
    """Between them the sum differs; for good, if one of the accounts is missing."""
    moves = [
        "UPDATE o SET amount = amount - 1 WHERE id = :id",
        "UPDATE o SET amount = amount + 1 WHERE id = :other",
    ]
    (answer, _) = decide_invariants(two_tables(moves, invariant="o: sum(amount) unchanged"), BOTH)
    assert invariant_cell(answer) == "broken alone"


# Queries that tables of any rows stand for

NUMBERED = "SELECT *, row_number() OVER (PARTITION BY id ORDER BY v) AS n FROM s"
FIRST = "INSERT INTO t SELECT id, first_value(v) OVER (PARTITION BY id ORDER BY day), day FROM s"
BY_DAY = MERGE.format(f"SELECT id, v, day FROM ({NUMBERED} WHERE day = :day) WHERE n = 1").replace(
    "t.id = n.id", "t.id = n.id AND t.day = :day"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "invariant", "word"),
    [
        (BY_DAY, "unique(id, day)", "kept"),
        (BY_DAY, "not null(day)", "kept"),
        (BY_DAY, "not null(v)", "broken"),
        (MERGE.format(f"SELECT id, v, day FROM ({NUMBERED}) WHERE n <= 1"), "unique(id)", "kept"),
        (MERGE.format(f"SELECT id, v, day FROM ({NUMBERED}) WHERE n <= 2"), "unique(id)", "broken"),
        (
            MERGE.format(
                "SELECT id, v, day FROM s WHERE id IS NOT NULL QUALIFY row_number() OVER (PARTITION"
                " BY id ORDER BY v) = 1"
            ),
            "not null(id)",
            "kept",
        ),
        ("INSERT INTO t SELECT coalesce(id, 0), lag(v) OVER (ORDER BY day), day FROM s", "not null(id)", "kept"),
        ("INSERT INTO t SELECT id, lag(v) OVER (ORDER BY day), day FROM s", "not null(v)", "broken"),
        (f"{FIRST} WHERE v IS NOT NULL", "not null(v)", "unknown"),
        (FIRST, "not null(v)", "broken"),
        ("INSERT INTO t FROM s |> WHERE v = 'x'", "not null(v)", "unknown"),
        ("INSERT INTO t SELECT id, v, add_months(current_date(), -1) FROM s", "not null(day)", "kept"),
        ("INSERT INTO t SELECT id, v, add_months(current_date(), -1) FROM s", "not null(v)", "broken"),
        ("INSERT INTO t SELECT 1, 'x', last_day(date_sub(:day, 3))", "check(day > DATE '2026-01-01')", "broken"),
        ("INSERT INTO t SELECT * FROM s VERSION AS OF 3", "not null(v)", "broken"),
        (
            (
                "INSERT INTO t SELECT s.id, u.v, u.day FROM s JOIN (SELECT DISTINCT id, v, day FROM"
                " s) AS u ON s.id = u.id AND u.v = 'x'"
            ),
            "unique(id)",
            "broken",
        ),
    ],
)  # fmt: skip
def test_a_violation_has_rows_that_its_query_returns(text, invariant, word):
    """DuckDB executes the query; rows that it cannot return make no violation."""
    assert words(jobs(text, invariants=(invariant,))) == [word] * 2


@pytest.mark.slow
def test_what_a_query_was_not_shown_to_return_is_named():
    text = f"{FIRST} WHERE v IS NOT NULL"
    (found, _) = decide_invariants(jobs(text, invariants=("not null(v)",)), BOTH)
    assert found.why[0].startswith(
        "a run was found that violates it if the query (SELECT id, FIRST_VALUE(v)"
    )
    assert found.why[0].endswith("no rows of its tables were found for which it does")


@pytest.mark.slow
def test_source_tables_of_a_violation_satisfy_the_invariants():
    text = "INSERT INTO t SELECT id, lag(v) OVER (ORDER BY day), day FROM s WHERE id IS NOT NULL"
    one = "s: unique(id)"
    broken, kept = decide_invariants(jobs(text, invariants=("t: not null(v)", one)), BOTH[:1])
    assert (broken.word, kept.word) == ("broken", "kept")
    again = MERGE.format("SELECT id, lag(v) OVER (ORDER BY day) AS v, day FROM s")
    found, _ = decide_invariants(jobs(again, invariants=("t: unique(id)", one)), BOTH[:1])
    assert found.word == "unknown"


@pytest.mark.parametrize(("table", "word"), [("t", "unknown"), ("s", "broken")])
def test_a_run_whose_other_statements_are_not_understood_violates_nothing(table, word):
    work = jobs("INSERT INTO t VALUES (:id, :v, :day)")
    unread = UnreadStatement("a_1", "a", "not understood", "a:1", frozenset((table,)))
    (found, _) = decide_invariants(replace(work, unread=(unread,)), BOTH)
    assert found.word == word
    if word == "unknown":
        assert "a run of a executes a_1, too, which is not understood" in found.why
