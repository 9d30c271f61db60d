"""How fast sweeps are: a table in Markdown; ``--five`` adds five writers, ``--spark`` four and five on Spark.

Every row is a process of its own, `isolitmus sweep`, so that its memory is its own, too.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

ISOLITMUS = str(Path(sys.executable).parent / "isolitmus")
SCOPE = "fourteen-writers"
MEASURE = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, text=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, done.stdout]))
"""


def row(what: str, *words: str) -> str:
    """One sweep: its own seconds, those of the whole command, of its processors, and memory."""
    printed = subprocess.run(
        [sys.executable, "-c", MEASURE, ISOLITMUS, "sweep", SCOPE, "--json", *words],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    wall, cpu, memory, text = json.loads(printed)
    document = json.loads(text)
    seconds, candidates = document["seconds"], document["candidates"]
    admitted = ", ".join(f"{c['admitted']:,}" for c in document["protocols"].values())
    cells = [
        f"{document['transactions']} writers, {what}", f"{candidates:,}", admitted,
        f"{seconds:.1f} s", f"{candidates / seconds:,.0f}", f"{wall:.1f} s", f"{cpu:.1f} s",
        f"{memory:.0f} MiB",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("--spark", action="store_true")
    asked.add_argument("--five", action="store_true")
    options = asked.parse_args()
    sizes = ["2", "3", "4", *(["5"] if options.five else [])]
    say = "| sweep | candidates | admitted | counting | candidates/s | command | processors | largest process |"
    sys.stdout.write(f"{say}\n|{'---|' * 8}\n")
    for n in sizes:
        limit = ("--transactions", n, "--limit", "1000000000")
        for cores in ("1", "2"):
            where = f"{cores} core{'s' if cores > '1' else ''}"
            sys.stdout.write(row(where, *limit, "--cores", cores) + "\n")
            sys.stdout.flush()
        masters = ("local[2]", "local-cluster[1,1,1024]", "local-cluster[2,1,1024]")
        for master in masters if options.spark and n >= "4" else ():
            sys.stdout.write(row(f"`{master}`", *limit, "--spark", "--master", master) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
