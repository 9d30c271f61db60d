"""Invariants against brute force: every violation that small schedules show is reported, a kept
invariant is violated by none, and a reported violation is one.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import combinations, pairwise

import pytest

from isolitmus.checker.execution.commit_loop import execute
from isolitmus.checker.execution.run_result import run
from isolitmus.jobs.invariant import TableVersions, Total
from isolitmus.jobs.invariants.invariants import decide_invariants
from isolitmus.jobs.readers.workload_file import read_workload
from isolitmus.jobs.sql.job_binding import bind_job_statement
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.litmus import ClientSettings, Litmus
from isolitmus.model.schedule import Schedule
from isolitmus.specs import protocol
from isolitmus.specs.sql.statements import read_statement

PROTOCOLS = ("delta-serializable", "delta-write-serializable")
ROW = "SELECT :id AS id, :v AS v, :p AS p"
STAGED = "SELECT id, max(v) AS v, max(p) AS p FROM s GROUP BY id"
UPSERT = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
COUNT = "(SELECT count(*) FROM t"
LET_ID = 'let = { n = "SELECT count(*) FROM t WHERE id = :id" }'
LET_P = 'let = { n = "SELECT count(*) FROM t WHERE p = :p" }'
JOBS = (
    ("INSERT INTO t VALUES (:id, :v, :p)",),
    ("INSERT INTO t SELECT * FROM s",),
    ("INSERT INTO t SELECT DISTINCT id, v, p FROM s",),
    (f"INSERT INTO t {STAGED}",),
    (f"INSERT INTO t {ROW} WHERE NOT EXISTS (SELECT 1 FROM t WHERE id = :id)",),
    (f"INSERT INTO t {ROW} WHERE NOT EXISTS (SELECT 1 FROM t WHERE id = :id AND p = :p)",),
    ("INSERT INTO t SELECT * FROM s WHERE id NOT IN (SELECT id FROM t)",),
    (f"INSERT INTO t SELECT n.* FROM ({STAGED}) n LEFT ANTI JOIN t ON n.id = t.id",),
    ("INSERT INTO t SELECT id + 1, v, p FROM t WHERE id = :id",),
    (f"MERGE INTO t USING ({ROW}) n ON t.id = n.id {UPSERT}",),
    (f"MERGE INTO t USING ({ROW}) n ON t.id = n.id AND t.p = n.p {UPSERT}",),
    (f"MERGE INTO t USING ({ROW}) n ON t.id = n.id AND t.p = :p {UPSERT}",),
    (f"MERGE INTO t USING ({STAGED}) n ON t.id = n.id {UPSERT}",),
    (f"MERGE INTO t USING s n ON t.id = n.id {UPSERT}",),
    (f"MERGE INTO t USING ({ROW}) n ON t.id = n.id WHEN NOT MATCHED THEN INSERT *",),
    (f"MERGE INTO t USING ({ROW}) n ON t.id = n.id WHEN MATCHED THEN UPDATE SET v = n.v",),
    (f"MERGE INTO t USING ({ROW}) n ON t.v = n.v WHEN MATCHED THEN UPDATE SET id = n.id",),
    (f"MERGE INTO t USING ({ROW}) n ON t.id = n.id WHEN MATCHED THEN DELETE",),
    ("UPDATE t SET v = :v WHERE id = :id",),
    ("UPDATE t SET v = NULL WHERE id = :id",),
    ("UPDATE t SET id = :new WHERE id = :id",),
    ("UPDATE t SET v = v - 1 WHERE p = :p",),
    ("UPDATE t SET p = :p WHERE id = :id",),
    ("DELETE FROM t WHERE id = :id",),
    ("DELETE FROM t WHERE p = :p",),
    ("TRUNCATE TABLE t",),
    ("OPTIMIZE t",),
    ("INSERT OVERWRITE t SELECT * FROM s",),
    (f"INSERT OVERWRITE t {STAGED}",),
    ("INSERT INTO t REPLACE WHERE p = :p SELECT id, max(v), :p FROM s GROUP BY id",),
    ("INSERT INTO t REPLACE WHERE p = :p SELECT :id, :v, :p",),
    ("DELETE FROM t WHERE id = :id", "INSERT INTO t VALUES (:id, :v, :p)"),
    ("INSERT INTO t VALUES (:id, :v, :p)", "DELETE FROM t WHERE id = :id AND v = :v"),
    (LET_ID, f"INSERT INTO t {ROW} WHERE :n = 0"),
    (LET_P, f"INSERT INTO t {ROW} WHERE :n < 2"),
    (f"INSERT INTO t {ROW} WHERE {COUNT} WHERE p = :p) < 2",),
    (f"INSERT INTO t {ROW} WHERE 1 >= {COUNT})",),
    (f"INSERT INTO t {ROW} WHERE {COUNT} WHERE p = :p AND v = 1) <= 1",),
    (f"INSERT INTO t {ROW} WHERE NOT {COUNT} WHERE id = :id) > 0",),
    (f"MERGE INTO t USING ({ROW} WHERE {COUNT} WHERE p = :p) < 2) n ON t.id = n.id {UPSERT}",),
    (f"INSERT INTO t SELECT * FROM s WHERE {COUNT}) = 0",),
)
GUARDED = (
    *(each for each in JOBS if "NOT EXISTS" in each[-1] or ":n" in each[-1] or COUNT in each[-1]),
    *(each for each in JOBS if each[0] == "DELETE FROM t WHERE id = :id" and len(each) > 1),
    (LET_ID, f"INSERT INTO t {ROW} WHERE :n = 0"),
    (LET_ID, f"MERGE INTO t USING ({ROW}) n ON t.id = n.id AND t.v = n.v AND :n = 0 {UPSERT}"),
    (f"MERGE INTO t USING ({ROW}) n ON t.id = n.id {UPSERT}",),
    (f"MERGE INTO t USING ({STAGED}) n ON t.id = n.id {UPSERT}",),
    ("UPDATE t SET v = :v WHERE id = :id",),
    ("DELETE FROM t WHERE p = :p",),
)
INVARIANTS = (
    "unique(id)", "unique(id)", "unique(id)", "unique(id)", "unique(id, p)", "unique(v)", "not null(v)", "check(v > 0)",
    "check(id < 3)", "count per p <= 2", "count per p <= 2", "count <= 2 where p = 1", "count per p <= 1 where v = 1",
)  # fmt: skip
OTHER_JOBS = (
    ("INSERT INTO t VALUES (:id, :v, :p)",),
    ("INSERT INTO t VALUES (:id, 0, :p)",),
    ("INSERT INTO t SELECT id, :v, p FROM s WHERE id = :id",),
    ("INSERT INTO t SELECT n.id, NULL, n.p FROM s n JOIN s o ON n.id = o.p",),
    ("INSERT INTO t SELECT id, v, p + 1 FROM t WHERE p = :p",),
    ("INSERT INTO t SELECT :id, 0, :p WHERE EXISTS (SELECT 1 FROM s WHERE id = :id)",),
    ("INSERT INTO t SELECT :id, 0, :p WHERE :id IN (SELECT id FROM s WHERE p = :p)",),
    ("INSERT INTO t SELECT :id, :v, 1 WHERE (SELECT count(*) FROM s WHERE id = :id) > 0",),
    (
        'let = { n = "SELECT count(*) FROM s WHERE id = :id" }',
        "INSERT INTO t SELECT :id, 0, 1 WHERE :n > 0",
    ),
    ('let = { n = "SELECT max(v) FROM t WHERE id = :id" }', "UPDATE t SET v = :n WHERE id = :id"),
    ("UPDATE t SET v = v + :v WHERE id = :id",),
    ("UPDATE t SET v = coalesce(v, 0) WHERE id = :id",),
    ("UPDATE t SET p = :p WHERE id = :id",),
    ("UPDATE t SET id = :new WHERE id = :id",),
    (
        "MERGE INTO t USING s n ON t.id = n.id WHEN MATCHED THEN UPDATE SET p = n.p WHEN NOT MATCHED THEN INSERT (id, v, p) VALUES (n.id, 0, n.p)",
    ),
    ("MERGE INTO t USING s n ON t.id = n.id WHEN MATCHED AND t.v IS NULL THEN DELETE",),
    ("MERGE INTO t USING s n ON t.id = n.id WHEN MATCHED AND t.v > n.v THEN DELETE",),
    ("DELETE FROM t WHERE v IS NULL",),
    ("DELETE FROM t WHERE id = :id",),
    ("OPTIMIZE t",),
    ("TRUNCATE TABLE s",),
    ("DELETE FROM s WHERE id = :id",),
    ("DELETE FROM s WHERE p IS NULL",),
    ("UPDATE s SET v = :v WHERE id = :id",),
    ("UPDATE s SET id = :new WHERE id = :id",),
    ("INSERT INTO s VALUES (:id, :v, :p)",),
    (f"MERGE INTO s USING ({ROW}) n ON s.id = n.id {UPSERT}",),
    ("DELETE FROM t WHERE id = :id", "DELETE FROM s WHERE id = :id"),
    ("DELETE FROM s WHERE id = :id", "DELETE FROM t WHERE id = :id"),
    ("UPDATE t SET v = v - 1 WHERE id = :id", "UPDATE t SET v = v + 1 WHERE id = :new"),
)
OTHERS = (
    "t: id references s(id)", "t: id references s(id)", "t: id references s(id) where v > 0",
    "t: (id, p) references s(id, p)", "t: sum(v) unchanged", "t: sum(v) >= before",
    "t: sum(v) <= before where p = 1", "t: count(*) >= before", "t: count(*) unchanged",
)  # fmt: skip
LAYOUTS = ("", "", " PARTITIONED BY (p)")


def workload_of(draw: random.Random):
    """Return a random workload of one or two jobs with one invariant."""
    jobs = []
    other = draw.random() < 0.4
    for name in ("a", "b")[: draw.choice((1, 2, 2))]:
        texts = draw.choice(JOBS if draw.random() < 0.4 else GUARDED)
        texts = draw.choice(OTHER_JOBS) if other else texts
        let = ""
        if texts[0].startswith("let"):
            let, *texts = texts
        types = {p: "INT" for p in ("id", "v", "p", "new") if f":{p}" in " ".join((let, *texts))}
        given = ", ".join(f'{p} = "{kind}"' for p, kind in types.items())
        sql = ", ".join(f'"{text}"' for text in texts)
        jobs.append(f"[jobs.{name}]\nsql = [{sql}]\n{let}\nparameters = {{ {given} }}")
    rows = "(id INT, v INT, p INT) USING delta"
    ddl = f'["CREATE TABLE t {rows}{draw.choice(LAYOUTS)}", "CREATE TABLE s {rows}"]'
    apart = draw.choice(
        ("", "", f"apart = [['a', 'a'], ['{name}', '{name}']]", f"apart = [['a', '{name}']]")
    )
    text = "\n".join(
        (
            f"ddl = {ddl}",
            apart,
            *jobs,
            "[invariants]",
            f'it = "{draw.choice(OTHERS if other else INVARIANTS)}"',
        )
    )
    return read_workload(text, "drawn")


def brute_force(work, spec, draw, many):
    """Return executions that violate the invariant, with the jobs of each, by random small tests.

    A run is alone, or a second one takes place during the first one, and a third one around it.
    """
    (invariant,) = work.invariants
    read = lambda sql: read_statement(sql, work.tables)  # noqa: E731
    for _ in range(many):
        runs = draw.choices([*work.jobs.values()], k=draw.choice((1, 2, 2, 2, 3)))
        if not all(work.overlap(a.name, b.name) for a, b in combinations(runs, 2)):
            continue
        transactions, clients, names = {}, {}, []
        for k, job in enumerate(runs):
            values = {p: draw.choice((1, 1, 2)) for p in job.parameters}
            for one in job.statements:
                own = {p: values[p] for p in one.types if p in values}
                name = f"{one.name}_{k}"
                transactions[name], queries = bind_job_statement(one, own, work.tables, read)
                if queries:
                    clients[name] = ClientSettings(let=queries)
                names.append((k, name))
        init = []
        for table in ("t", "s"):
            for _ in range(draw.choice((0, 1, 1, 2))):
                rows = ", ".join(
                    f"({draw.choice((1, 1, 2))}, {draw.choice((1, 1, 2, 'NULL'))}, {draw.choice((1, 2))})"
                    for _ in range(draw.choice((1, 1, 2)))
                )
                init.append(read(f"INSERT INTO {table} VALUES {rows}"))
        mine = [name for k, name in names if k == 0]
        other = [name for k, name in names if k == 1]
        third = [name for k, name in names if k == 2]
        if third:  # before, after, or during the second run
            first = other[0]
            other = draw.choice(
                (
                    [*third, *other],
                    [*other, *third],
                    [f"{first}.start", *third, f"{first}.commit", *other[1:]],
                )
            )
        at = draw.randrange(len(mine))
        around = draw.choice(
            (
                f"{mine[at]}.start {' '.join(other)} {mine[at]}.commit",
                f"{' '.join(other)} {mine[at]}",
                *(
                    [f"{mine[at]}.before {' '.join(other)} {mine[at]}"]
                    if mine[at] in clients
                    else []
                ),
            )
        )
        words = " ".join((*mine[:at], around, *mine[at + 1 :]))
        schedule = Schedule.parse(words, transactions)
        test = Litmus(
            "drawn",
            "",
            "",
            work.tables,
            tuple(init),
            transactions,
            schedule,
            clients=clients,
            format=work.format,
        )
        try:
            done = execute(test, spec)
        except IsolitmusError:
            continue
        if any(event.aborted for event in done.events):
            continue
        versions = [{name: table.rows() for name, table in state.items()} for state in done.states]
        pairs = [TableVersions(now, before) for before, now in pairwise([versions[0], *versions])]
        if invariant.violations(pairs[0]):
            continue
        if any(invariant.violations(one) for one in pairs):
            yield test, {job.name for job in runs}


def judge(work, draw, many):
    """Yield each answer with a violation by brute force, if there is one."""
    for answer in decide_invariants(work, PROTOCOLS):
        spec = protocol(answer.protocol)
        yield answer, next(brute_force(work, spec, draw, many), None)


def is_violation(answer) -> bool:
    """Return whether the run of an answer violates its invariant, executed anew from its text."""
    test, invariant = answer.violation.test, answer.invariant
    done = execute(replace(test, expect={}), protocol(answer.protocol))
    versions = [
        {name: state[name].rows() if name in state else () for name in invariant.tables}
        for state in done.states
    ]
    pairs = [TableVersions(now, before) for before, now in pairwise([versions[0], *versions])]
    broken = [k for k, one in enumerate(pairs) if invariant.violations(one)]
    return bool(broken) and broken[0] == answer.violation.version and broken[0] > 0


def is_serial(answer) -> bool:
    """Return whether a serial order of the runs gives the version that violates the invariant.

    No other run commits after it.
    """
    test = replace(answer.violation.test, expect={})
    done = run(test, protocol(answer.protocol))
    last = len(done.run.versions) - 1 == answer.violation.version
    return last and bool(done.serial.orders)


@pytest.mark.slow
def test_answers_agree_with_brute_force(seed: int) -> None:
    """The answers of random workloads agree with random small executions."""
    words: Counter[str] = Counter()
    for k in range(10):
        draw = random.Random(f"{seed} {k}")
        work = workload_of(draw)
        for answer, found in judge(work, draw, 50):
            words[answer.word] += 1
            if found is not None:
                assert answer.word == "broken", (str(work), str(found[0]))
            if answer.word == "broken":
                assert is_violation(answer), str(answer.violation.test)
                if answer.keeps_alone and not isinstance(answer.invariant, Total):  # theorem 17
                    assert not is_serial(answer), str(answer.violation.test)
    assert words["unknown"] <= 0.5 * words.total()
