"""Jobs with few parameters, of which a search sees all that may become of them."""

from __future__ import annotations

import itertools
from typing import NamedTuple

from isolitmus.checker import separate, sweep
from isolitmus.jobs.readers.workload_file import read_workload
from isolitmus.jobs.robust.robustness import decide_all
from isolitmus.specs import level, protocol
from isolitmus.specs.files.scope_file import read_scope
from isolitmus.specs.sql.parameters import bind_text

PROMISES = ("write-serializable", "log-serializable")
APPENDS = {
    "ingest": "INSERT INTO t VALUES (:k, 1, :p)",
    "fixed": "INSERT INTO t VALUES (1, 1, 0)",
    "twice": "INSERT INTO t VALUES (:k, 1, 0), (:k, 1, 1)",
}
OTHERS = {
    "cleanup": "DELETE FROM t WHERE part = :p",
    "erase": "DELETE FROM t WHERE id = :k",
    "erase_in": "DELETE FROM t WHERE id = :k AND part = :p",
    "erase_or": "DELETE FROM t WHERE id = :k OR part = :p",
    "old": "DELETE FROM t WHERE part < :p",
    "report": "INSERT INTO t SELECT 0, sum(x), 9 FROM t WHERE part = :p",
    "total": "INSERT INTO t SELECT 0, sum(x), :p FROM t WHERE part = :p",
    "copy": "INSERT INTO t SELECT id, x, 1 FROM t WHERE part = 0",
    "raise": "UPDATE t SET x = x + 1 WHERE part = :p",
    "move": "UPDATE t SET part = :p WHERE id = :k",
    "set": "UPDATE t SET x = :k WHERE part = :p AND x < 5",
    "upsert": (
        "MERGE INTO t USING (SELECT :k AS id, :p AS part) AS s ON t.id = s.id AND t.part = :p WHEN"
        " MATCHED THEN UPDATE SET x = 5 WHEN NOT MATCHED THEN INSERT (id, x, part) VALUES (s.id, 7,"
        " s.part)"
    ),
    "new": (
        "MERGE INTO t USING (SELECT :k AS id) AS s ON t.id = s.id"
        " WHEN NOT MATCHED THEN INSERT (id, x, part) VALUES (s.id, 7, 1)"
    ),
    "expire": (
        "MERGE INTO t USING (SELECT :k AS id) AS s ON t.id = s.id AND t.part = 0"
        " WHEN MATCHED AND t.x > 1 THEN DELETE WHEN MATCHED THEN UPDATE SET x = 0"
    ),
    "overwrite": "INSERT OVERWRITE t SELECT id, 0, part FROM t WHERE part = :p",
    "blank": "INSERT OVERWRITE t SELECT id, 0, part FROM t",
    "replace": "INSERT INTO t REPLACE WHERE part = 0 VALUES (3, 3, 0)",
    "once": (
        "INSERT INTO t SELECT :k, 1, :p WHERE NOT EXISTS (SELECT 1 FROM t WHERE id = :k AND part"
        " = :p)"
    ),
    "compact": "OPTIMIZE t",
    "truncate": "TRUNCATE TABLE t",
}
ALTERING = {
    "property": "ALTER TABLE t SET TBLPROPERTIES ('team' = 'web')",
    "vectors": "ALTER TABLE t SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    "constraint": "ALTER TABLE t ADD CONSTRAINT few CHECK (x < 99)",
    "unconstrained": "ALTER TABLE t DROP CONSTRAINT IF EXISTS few",
    "comment": "COMMENT ON TABLE t IS 'mine'",
    "remake": "CREATE OR REPLACE TABLE t USING delta{parts} AS SELECT id, x, part FROM t WHERE x > 1",
    "refill": "CREATE OR REPLACE TABLE t USING delta{parts} AS SELECT :k AS id, 1 AS x, :p AS part",
}
STATEMENTS = {**APPENDS, **OTHERS, **ALTERING}
ROWS = ((), ((0, 1, 0),), ((0, 1, 0), (1, 2, 1)), ((1, 1, 0), (0, 2, 0), (1, 3, 1)))
Domains = dict[str, tuple[int, ...]]


class SmallJobs(NamedTuple):
    """Jobs, by name, each with the values that its parameters may have."""

    partitioned: bool
    jobs: dict[str, Domains]

    @property
    def table(self) -> str:
        parts = '\npartitioned_by = ["part"]' if self.partitioned else ""
        return f'[table]\ncolumns = "id INT, x INT, part INT"{parts}\n'

    def sql(self, name: str) -> str:
        """The statement of a job."""
        parts = " PARTITIONED BY (part)" if self.partitioned else ""
        return STATEMENTS[name].replace("{parts}", parts)

    @property
    def workload(self):
        text = self.table
        for name, domains in self.jobs.items():
            text += f'[jobs.{name}]\nsql = "{self.sql(name)}"\n'
            if domains:
                types = ", ".join(f'{p} = "INT"' for p in domains)
                known = " AND ".join(
                    f"{p} >= {min(d)} AND {p} <= {max(d)}" for p, d in domains.items()
                )
                text += f'parameters = {{ {types} }}\nwhere = "{known}"\n'
        return read_workload(text, "small")

    def scope(self, *readers: str, noops: str = "keep"):
        statements = [
            bind_text(self.sql(name), dict(zip(domains, values, strict=True)))
            for name, domains in self.jobs.items()
            for values in itertools.product(*domains.values())
        ]
        inits = [
            [f"INSERT INTO t VALUES {', '.join(map(str, rows))}"] if rows else [] for rows in ROWS
        ]
        return read_scope(
            f'title = "small"\n{self.table}init = {inits}\n[scope]\ntransactions = [2, 3]\nnoops ='
            f' "{noops}"\nstatements = {statements}\nreaders = {list(readers)}\n',
            "small",
        )

    def broken(self, under: str, *runs: int) -> set[str]:
        """The promises that so many runs break; two or three, where no number is given."""
        found = set()
        for many in runs or (2, 3):
            done = sweep(
                self.scope(), many, protocols=[protocol(under)], levels=[level(p) for p in PROMISES]
            )
            assert done.ended is None
            found |= {p for p, count in done.protocols[under].forbidden.items() if count}
        return found

    def seen_to_break(self, under: str, promise: str, *runs: int) -> bool:
        """Whether so many runs break a promise; some read the whole table, the others each find
        something to do.
        """
        found = separate(
            protocol(under),
            level(promise),
            self.scope("SELECT * FROM t", noops="skip"),
            transactions=runs,
            shipped=False,
        ).found
        assert found is not None
        return found


def witnesses(many: int) -> list:
    """So many counterexamples of small jobs at WriteSerializable: always the same ones."""
    under = protocol("delta-write-serializable")
    promises = ("update-serializable", "log-serializable", "write-serializable")
    found = {}
    others = sorted(OTHERS.keys() - {"compact"})
    for other, append, partitioned in itertools.product(others, ("ingest", "twice"), (True, False)):
        jobs = {
            name: {p: (0, 1) for p in "kp" if f":{p}" in STATEMENTS[name]}
            for name in (other, append)
        }
        for answer in decide_all(SmallJobs(partitioned, jobs).workload, (under,), promises):
            for one in answer.counterexamples:
                found.setdefault(str(one.test), one.test)
        if len(found) >= many:
            break
    return list(found.values())[:many]
