"""Statements with relations wherever the grammar allows one, and the record of what was placed.

The drawer knows what it places and nothing of how statements are read: it is the oracle of the
account of relations (``jobs.sql.relation_account``).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

DDL = (
    "CREATE TABLE t (id BIGINT, n BIGINT, day DATE) USING delta PARTITIONED BY (day) LOCATION '/lake/t'",
    "CREATE TABLE s (id BIGINT, n BIGINT, day DATE) USING delta",
    "CREATE TABLE u (id BIGINT, n BIGINT, day DATE) USING delta LOCATION 's3://lake/u/'",
)
WRITERS = {name: [f"INSERT INTO {name} VALUES (1, 1, DATE '2026-01-01')"] for name in "tsu"}
"""Jobs that write to every table, so that each read of it counts."""
COLUMNS = ("id", "n", "day")


@dataclass
class Drawn:
    """Job that was drawn."""

    statements: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    """Statements of another file."""
    target: str = "t"
    scans: Counter[str] = field(default_factory=Counter)
    """Scans of the newest version that were placed, by table, where the text is executed."""
    unrecorded: set[str] = field(default_factory=set)
    """Tables whose changes or open versions were placed."""

    @property
    def tables(self) -> set[str]:
        return {*(+self.scans), *self.unrecorded}


class Drawer:
    """Drawer of jobs."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.seed = seed
        self.deepest = self.random.choice([1, 1, 1, 2, 3])
        self.drawn = Drawn()
        self.depth = 0
        self.visible: list[tuple[str, Counter[str], set[str]]] = []
        """Queries of WITH and views that may be named, with what they place when used."""
        self.count = 0

    def pick(self, *texts: Callable[[], str]) -> str:
        """Return one of some texts, of which only that one is drawn."""
        return self.random.choice(texts)()

    # Relations

    def spelled(self, table: str) -> str:
        """Return a spelling of a table's name."""
        return self.random.choice(
            [
                table,
                table,
                table,
                table.upper(),
                f"`{table}`",
                f"lake.{table}",
                f"`lake` . {table}",
                f"c.lake.{table}",
            ]
        )

    def placed(self, scans: Counter[str], unrecorded: set[str] = frozenset()) -> None:  # type: ignore[assignment]
        self.drawn.scans.update(scans)
        self.drawn.unrecorded |= unrecorded

    def relation(self) -> str:
        """Return an item of FROM with an alias, and record it."""
        self.count += 1
        alias = self.random.choice([f"a{self.count}", f"AS a{self.count}"])
        kind = self.random.random()
        if self.visible and kind < 0.3:
            name, scans, unrecorded = self.random.choice(self.visible)
            self.placed(scans, unrecorded)
            return f"{name} {alias}"
        if kind < 0.36 and self.depth < self.deepest:
            return f"({self.query()}) {alias}"
        table = self.random.choice("ttssu")
        if kind < 0.39:
            self.drawn.unrecorded.add(table)
            return f"table_changes('{table}', 1) {alias}"
        if kind < 0.41:
            return f"{self.spelled(table)} VERSION AS OF 3 {alias}"
        if kind < 0.43:
            self.drawn.unrecorded.add(table)
            return f"{table} TIMESTAMP AS OF (current_timestamp() - INTERVAL 1 DAY) {alias}"
        if kind < 0.45 and table != "s":
            self.placed(Counter({table: 1}))
            path = {"t": "/lake/t", "u": "s3://lake/u"}[table]
            return f"delta.`{path}` {alias}"
        if kind < 0.47:
            self.placed(Counter({table: 1}))
            return f"IDENTIFIER('{table}') {alias}"
        if kind < 0.49:
            return f"{self.random.choice(['staging.x', 'parquet.`/landing`', 'range(3)'])} {alias}"
        self.placed(Counter({table: 1}))
        return f"{self.spelled(table)} {alias}"

    # Queries

    def scalar(self) -> str:
        """Return a query with one value."""
        source = self.relation()
        more = self.pick(
            str,
            str,
            lambda: f" WHERE n < {self.value()}",
            lambda: f" HAVING max(n) > {self.value()}",
        )
        return f"(SELECT max(n) FROM {source}{more})"

    def value(self) -> str:
        """Return a value, perhaps of a subquery."""
        kind = self.random.random()
        if self.depth >= self.deepest or kind < 0.75:
            return self.random.choice(["1", "7", "length('FROM t')"])
        self.depth += 1
        inner = self.scalar()
        self.depth -= 1
        return self.random.choice(
            [
                inner,
                f"coalesce({inner}, 0)",
                f"(1 + {inner})",
                f"CASE WHEN {inner} > 1 THEN 1 ELSE 2 END",
                f"greatest({inner}, 1)",
            ]
        )

    def condition(self, column: str = "n") -> str:
        """Return a condition, perhaps with a subquery."""
        kind = self.random.random()
        if self.depth >= self.deepest or kind < 0.5:
            return f"{column} {self.random.choice(['<', '=', '>='])} {self.value()}"
        self.depth += 1
        source = self.relation()
        text = self.random.choice(
            [
                f"EXISTS (SELECT 1 FROM {source} WHERE n = 1)",
                f"{column} IN (SELECT n FROM {source})",
                f"NOT EXISTS (SELECT 1 FROM {source})",
                f"{column} NOT IN (SELECT n FROM {source} WHERE n IS NOT NULL)",
                f"({column} = 1 OR {column} IN (SELECT n FROM {source}))",
            ]
        )
        self.depth -= 1
        return text

    def query(self) -> str:
        """Return a query with the columns id, n, day."""
        self.depth += 1
        before = len(self.visible)
        kind = self.random.random()
        head = ""
        if self.depth < self.deepest and kind < 0.25:
            head = self.with_queries()
        source = self.relation()
        joins = ""
        if self.random.random() < 0.25:
            joins = (
                " "
                + self.random.choice(
                    ["JOIN", "LEFT JOIN", "CROSS JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN", ","]
                )
                + " "
                + self.relation()
            )
            if "CROSS" not in joins and not joins.startswith(" ,"):
                joins += " USING (id)"
        if self.random.random() < 0.05:
            joins += " LATERAL VIEW explode(array(1)) e AS k"
        items = "id, n, day" if not joins else "1 AS id, 2 AS n, current_date() AS day"
        tail = ""
        if self.random.random() < 0.4:
            tail += f" WHERE {self.condition() if not joins else self.condition('1')}"
        form = self.random.random()
        if form < 0.15:
            items = "max(1) AS id, count(*) AS n, max(current_date()) AS day"
            tail += self.pick(str, lambda: f" HAVING count(*) > {self.value()}")
        elif form < 0.3 and not joins:
            items = "id, sum(n) AS n, max(day) AS day"
            tail += " GROUP BY id"
            tail += self.pick(
                str, str, lambda: f", {self.scalar()}" if self.depth < self.deepest else ""
            )
            tail += self.pick(
                str,
                lambda: f" HAVING sum(n) > {self.value()}",
                lambda: f" HAVING {self.condition('max(n)')}",
            )
        elif form < 0.4 and not joins:
            items = f"id, {self.value()} AS n, day"
        elif form < 0.45 and not joins:
            tail += f" QUALIFY row_number() OVER (PARTITION BY id ORDER BY n) <= {self.value()}"
        elif form < 0.5 and not joins:
            items = "id, sum(n) OVER (PARTITION BY id) AS n, day"
        order = self.random.random()
        if order < 0.08:
            tail += f" ORDER BY {self.value()}"
        if order < 0.12:
            tail += " LIMIT 5"
        text = f"{head}SELECT {items} FROM {source}{joins}{tail}"
        del self.visible[before:]
        if self.random.random() < 0.12 and self.depth < self.deepest and not head:
            other = self.query()
            word = self.random.choice(["UNION ALL", "UNION", "EXCEPT", "INTERSECT"])
            text = f"({text}) {word} ({other})"
        self.depth -= 1
        return text + self.random.choice(["", "", "", " /* FROM t JOIN s */"])

    def with_queries(self) -> str:
        """Return a WITH, whose queries become visible."""
        parts = []
        for _ in range(self.random.choice([1, 1, 2])):
            name, text, scans, unrecorded = self.named_query(
                self.random.choice(["w", "v", "s", "x"])
            )
            parts.append(f"{name} AS ({text})")
            self.visible = [one for one in self.visible if one[0] != name]
            self.visible.append((name, scans, unrecorded))
        return f"WITH {', '.join(parts)} "

    def named_query(self, prefix: str) -> tuple[str, str, Counter[str], set[str]]:
        """Return a name and a query that counts only where it is used."""
        self.count += 1
        kept, self.drawn = self.drawn, Drawn()
        text = self.query()
        scans, unrecorded = self.drawn.scans, self.drawn.unrecorded
        self.drawn = kept
        return f"{prefix}{self.seed}_{self.count}", text, scans, unrecorded

    # Statements

    def job(self) -> Drawn:
        """Return a job."""
        for _ in range(self.random.choice([0, 0, 0, 1, 2])):
            self.view()
        self.drawn.target = target = self.random.choice("ttts")
        self.drawn.statements.append(self.statement(target))
        return self.drawn

    def view(self) -> None:
        """Add a view or function that the statement may name."""
        kind = self.random.choice(
            ["temp", "temp", "temp", "columns", "global", "other", "path", "function"]
        )
        visible = self.visible
        if kind in ("other", "function"):  # these see no temporary view
            self.visible = []
        name, text, scans, unrecorded = self.named_query("z")
        self.visible = visible
        if kind == "path":
            table, path = self.random.choice([("t", "/lake/t"), ("u", "s3://lake/u")])
            scans, unrecorded = Counter({table: 1}), set()
            self.drawn.statements.append(
                f"CREATE TEMP VIEW {name} USING delta OPTIONS (path '{path}')"
            )
        elif kind == "function":
            self.drawn.others.append(
                f"CREATE FUNCTION {name}() RETURNS TABLE (id BIGINT, n BIGINT, day DATE) RETURN {text}"
            )
            name = f"{name}()"
        elif kind == "other":
            self.drawn.others.append(f"CREATE OR REPLACE VIEW lake.{name} AS {text}")
            name = self.random.choice([name, f"lake.{name}"])
        else:
            form = {
                "temp": "OR REPLACE TEMPORARY VIEW",
                "columns": "TEMP VIEW",
                "global": "GLOBAL TEMP VIEW",
            }[kind]
            listed = " (id, n, day)" if kind == "columns" else ""
            self.drawn.statements.append(f"CREATE {form} {name}{listed} AS {text}")
            name = f"global_temp.{name}" if kind == "global" else name
        self.visible.append((name, scans, unrecorded))

    def statement(self, target: str) -> str:
        """Return a statement that writes."""
        into = self.spelled(target)
        kind = self.random.randrange(12)
        if kind < 5:
            return f"INSERT INTO {into} {self.query()}"
        if kind == 5:
            return f"INSERT OVERWRITE TABLE {into} {self.query()}"
        if kind == 6:
            return f"INSERT INTO {into} VALUES ({self.value()}, {self.value()}, current_date())"
        if kind == 7:
            return f"UPDATE {into} SET n = {self.value()} WHERE {self.condition('id')}"
        if kind == 8:
            return f"DELETE FROM {into} WHERE {self.condition('id')}"
        if kind == 9:
            return f"INSERT INTO {into} REPLACE WHERE day = DATE '2026-01-01' {self.query()}"
        if self.random.random() < 0.5:
            source = f"({self.query()})"
        else:
            source = self.spelled("u")
            self.placed(Counter({"u": 1}))
        clause = self.pick(str, str, lambda: f" AND {self.condition('m.n')}")
        return (
            f"MERGE INTO {into} m USING {source} q ON m.id = q.id{self.random.choice(['', ' AND m.day = q.day'])}"
            f" WHEN MATCHED{clause} THEN UPDATE SET n = {self.value()}"
            f" WHEN NOT MATCHED THEN INSERT (id, n, day) VALUES (q.id, {self.value()}, q.day)"
        )


def draw_job(seed: int) -> Drawn:
    """Return the job of a seed."""
    return Drawer(seed).job()
