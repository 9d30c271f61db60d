"""Modules and calls that a command uses: a Markdown row for each command.

A row has the modules imported, the modules entered and by how many arrows, executions of a schedule
and parses of SQL. `python bench/walks.py run hole-partitioned` prints one command and its modules.
"""

import shlex
import subprocess
import sys
from collections import Counter
from contextlib import redirect_stdout, suppress
from io import StringIO
from types import FrameType

COMMANDS = (
    "--help",
    "run hole-partitioned",
    "run hole-partitioned --protocol delta-write-serializable",
    "separate delta-write-serializable log-serializable",
    "check reorder --level serializable",
)
HEAD = "| command | imported | entered | arrows | executions | parses |\n|---|--:|--:|--:|--:|--:|"
EXECUTIONS = {
    ("isolitmus.checker.execution.commit_loop", "execute"),
    ("isolitmus.checker.execution.run_result", "retrace"),
}
PARSE = {("isolitmus.specs.sql.quiet_sqlglot", "parse_sql")}


def walk(words: list[str]) -> tuple[str, list[str]]:
    """Return a row of figures and the names of the imported modules; needs a process of its own."""
    calls, arrows, loading = Counter(), set(), 0

    def seen(frame: FrameType, event: str, _: object) -> None:
        nonlocal loading
        name = frame.f_code.co_name
        if name == "<module>":
            loading += {"call": 1, "return": -1}.get(event, 0)
        if event != "call" or loading:
            return
        here, back = frame.f_globals.get("__name__", ""), frame.f_back
        calls[here, name] += 1
        came = back.f_globals.get("__name__", "") if back else ""
        if here != came and {here.partition(".")[0], came.partition(".")[0]} == {"isolitmus"}:
            arrows.add((came, here))

    sys.argv = ["isolitmus", *words]
    from isolitmus.cli.main import main

    sys.setprofile(seen)
    with redirect_stdout(StringIO()), suppress(SystemExit):
        main()
    sys.setprofile(None)
    ours = {name for name in sys.modules if name.startswith("isolitmus.")}
    entered = {here for here, _ in calls} & ours
    figures = (
        len(ours),
        len(entered),
        len(arrows),
        sum(calls[execution] for execution in EXECUTIONS),
        sum(calls[parse] for parse in PARSE),
    )
    row = f"| `isolitmus {shlex.join(words)}` | {' | '.join(map(str, figures))} |"
    return row, sorted({*ours, *(name for name in sys.modules if "." not in name)})


if __name__ == "__main__":
    if sys.argv[1:]:
        row, names = walk(sys.argv[1:])
        sys.stdout.write("\n".join([row, *names]) + "\n")
    else:
        sys.stdout.write(HEAD + "\n")
        for command in COMMANDS:
            done = subprocess.run(
                [sys.executable, __file__, *shlex.split(command)],
                capture_output=True,
                text=True,
                check=True,
            )
            sys.stdout.write(done.stdout.splitlines()[0] + "\n")
