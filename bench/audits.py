"""Benchmark of audits: a Markdown table. The logs are generated in a temporary folder.

Every row is a process of its own, `isolitmus audit` or `check`, so that its memory is its own, too.
The table is at WriteSerializable, in 16 partitions. Most commits are blind appends of two files;
every tenth is a DELETE of one partition or a MERGE, which has not seen the last one to five
commits; every hundredth is an OPTIMIZE, which makes one file of each partition.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ISOLITMUS = str(Path(sys.executable).parent / "isolitmus")
MEASURE = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, text=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([time.perf_counter() - start, used.ru_maxrss / 1024, done.stdout]))
"""
JSON = """
import json, sys, time
from pathlib import Path
start, number = time.perf_counter(), 0
for path in sorted(Path(sys.argv[1], "_delta_log").glob("*.json")):
    number += 1
    for line in path.read_bytes().splitlines():
        json.loads(line)
print(json.dumps([{"commits": number, "seconds": time.perf_counter() - start, "counts": []}]))
"""
"""Program that reads the files with Python's JSON reader, as a baseline for an audit."""
READ = """
import json, sys, time
from pathlib import Path
from isolitmus.specs.logs.delta_log import open_log
start = time.perf_counter()
number = sum(1 for _ in open_log(Path(sys.argv[1])).commits())
print(json.dumps([{"commits": number, "seconds": time.perf_counter() - start, "counts": []}]))
"""
"""Program that only reads the log."""
FOLLOW = """
import json, sys, time
from pathlib import Path
from isolitmus.checker.auditing.log_audit import FollowedAudit
table = Path(sys.argv[1])
log = table / "_delta_log"
there = sorted(log.glob("*.json"))
aside = log.parent / "aside"
aside.mkdir()
came = there[1:]
for path in came:
    path.rename(aside / path.name)
one = FollowedAudit(table)
one.there()
seconds = 0.0
for path in came:
    (aside / path.name).rename(path)
    start = time.perf_counter()
    for _ in one.came():
        pass
    seconds += time.perf_counter() - start
counts = one.audit().to_json()["counts"]
print(json.dumps([{"commits": len(came), "seconds": seconds, "counts": counts}]))
"""
"""Program for a table whose commits come one at a time: the work of ``--follow`` between two polls.
"""
PARTITIONS = 16


class Maker:
    """Generated log; ``live`` maps each partition's live files to version and number of rows."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.live: list[dict[str, tuple[int, int]]] = [{} for _ in range(PARTITIONS)]

    def make(self, commits: int) -> None:
        columns = [{"name": n, "type": "integer", "metadata": {}} for n in ("id", "part")]
        schema = json.dumps({"type": "struct", "fields": columns})
        level = {"delta.isolationLevel": "WriteSerializable"}
        metadata = {"schemaString": schema, "partitionColumns": ["part"], "configuration": level}
        protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
        start = [self.info("CREATE TABLE", None, blind=True), {"protocol": protocol}]
        self.write(0, [*start, {"metaData": metadata}])
        for version in range(1, commits):
            if version % 100 == 0:
                actions = self.optimize(version)
            elif version % 20 == 10:
                actions = self.delete(version, version - 1 - version // 20 % 5 - 1)
            elif version % 20 == 0:
                actions = self.merge(version, version - 1 - version // 20 % 5 - 1)
            else:
                actions = self.append(version)
            self.write(version, actions)

    def write(self, version: int, actions: list[dict[str, object]]) -> None:
        text = "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions)
        (self.log / f"{version:020}.json").write_text(text)

    def info(
        self, operation: str, read: int | None, *, blind: bool, **said: str
    ) -> dict[str, object]:
        level = "SnapshotIsolation" if operation == "OPTIMIZE" else "WriteSerializable"
        fields = {"timestamp": 1, "operation": operation, "operationParameters": said}
        fields |= {"isolationLevel": level, "isBlindAppend": blind, "readVersion": read}
        fields |= {"operationMetrics": {"numFiles": "2"}, "txnId": "0"}
        return {"commitInfo": fields | {"engineInfo": "Apache-Spark/4.2.0 Delta-Lake/4.4.0"}}

    def action(
        self, kind: str, path: str, part: int, rows: tuple[int, int], **more: object
    ) -> dict:
        low, high = rows
        stats = {"numRecords": high - low, "minValues": {"id": low}, "maxValues": {"id": high - 1}}
        stats["nullCount"] = {"id": 0}
        fields = {"path": path, "partitionValues": {"part": str(part)}, "size": 1}
        fields |= {"modificationTime": 1, "dataChange": True, "stats": json.dumps(stats)}
        return {kind: fields | more}

    def add(self, version: int, part: int, rows: tuple[int, int], **more: object) -> dict:
        path = f"part={part}/part-{version:05}-{part}.snappy.parquet"
        self.live[part][path] = version, rows[1] - rows[0]
        return self.action("add", path, part, rows, **more)

    def append(self, version: int) -> list[dict]:
        rows = version * 10, version * 10 + 10
        parts = version % PARTITIONS, (version + 5) % PARTITIONS
        start = self.info("WRITE", version - 1, blind=True, mode="Append", partitionBy="[]")
        return [start, *(self.add(version, part, rows) for part in parts)]

    def delete(self, version: int, read: int) -> list[dict]:
        part = version // 20 % PARTITIONS
        said = {"predicate": json.dumps([f"(part#{version} = {part})"])}
        start = self.info("DELETE", read, blind=False, **said)
        return [start, *self.remove(part, read, dataChange=True)]

    def remove(self, part: int, read: int, **more: object) -> list[dict]:
        seen = {path: size for path, (version, size) in self.live[part].items() if version <= read}
        self.live[part] = {p: v for p, v in self.live[part].items() if p not in seen}
        return [self.action("remove", p, part, (0, size), **more) for p, size in seen.items()]

    def merge(self, version: int, read: int) -> list[dict]:
        start = self.info("MERGE", read, blind=False, predicate='["(id#1 = id#2)"]')
        return [start, self.add(version, version % PARTITIONS, (version * 10, version * 10 + 10))]

    def optimize(self, version: int) -> list[dict]:
        actions = [self.info("OPTIMIZE", version - 1, blind=False, predicate="[]")]
        for part in range(PARTITIONS):
            rows = sum(size for _, size in self.live[part].values())
            gone = self.remove(part, version - 1, dataChange=False)
            if gone:
                actions += [*gone, self.add(version, part, (0, rows), dataChange=False)]
        return actions


def row(what: str, table: Path, *words: str) -> str:
    return measured(what, ISOLITMUS, *words, str(table), "--json")


def measured(what: str, *command: str) -> str:
    printed = subprocess.run(
        [sys.executable, "-c", MEASURE, *command],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    wall, memory, text = json.loads(printed)
    (document,) = json.loads(text)
    commits = document.get("commits", document.get("transactions"))
    if "counts" in document:
        counts = [f"{c['number']:,} {c['kind']}, {c['certainty']}" for c in document["counts"]]
    else:
        counts = [f"{name}: {v['verdict']}" for name, v in document["levels"].items()]
    cells = [
        what, f"{commits:,}", f"{wall:.2f} s", f"{commits / document['seconds']:,.0f}",
        f"{memory:.0f} MiB", "; ".join(counts),
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |\n"


def rows(table: Path) -> Iterator[str]:
    """Yield the rows of the benchmark for a table's log."""
    yield measured("the JSON alone", sys.executable, "-c", JSON, str(table))
    yield measured("the log alone", sys.executable, "-c", READ, str(table))
    yield row("audit", table, "audit")
    yield row("check, two levels", table, "check", "--level", "log-serializable,write-serializable")
    yield measured("audit --follow", sys.executable, "-c", FOLLOW, str(table))


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("--commits", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    sys.stdout.write(f"| what | commits | command | commits/s | memory | found |\n|{'---|' * 6}\n")
    for commits in asked.parse_args().commits:
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder, "table", "_delta_log")
            log.mkdir(parents=True)
            Maker(log).make(commits)
            for text in rows(log.parent):
                sys.stdout.write(text)
                sys.stdout.flush()


if __name__ == "__main__":
    main()
