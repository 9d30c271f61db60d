"""The README is true: its commands are run, its output compared."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from isolitmus.cli.main import main

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
CONSOLE = re.findall(r"```console\n\$ (isolitmus [^\n]*)\n(.*?)```", README, re.DOTALL)
DEMO = CONSOLE.pop(0)
LEVEL = re.search(r"```cat\n(.*?)```\n\nSave it as `([a-z.-]+)`", README, re.DOTALL)


def without_times(text):
    return re.sub(r"\d+\.\d s\b", "… s", text)


@pytest.mark.parametrize(
    ("command", "output"),
    CONSOLE,
    ids=[command for command, _ in CONSOLE],
)
def test_what_the_readme_shows_is_what_one_sees(command, output, tmp_path, monkeypatch, capsys):
    text, name = LEVEL.groups()
    (tmp_path / name).write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", shlex.split(command))
    with pytest.raises(SystemExit):
        main()
    assert without_times(capsys.readouterr().out) == without_times(output)


@pytest.mark.spark
def test_what_the_readme_shows_of_the_demo_is_what_one_sees(tmp_path):
    """In a process of its own: this one may have a Spark session already."""
    program = Path(sys.executable).with_name("isolitmus")
    done = subprocess.run(
        [program, *DEMO[0].split()[1:]], cwd=tmp_path, check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == DEMO[1]


def test_the_readme_shows_all_that_it_promises():
    shown = [command.split()[1] for command, _ in [DEMO, *CONSOLE]]
    assert shown == ["demo", "separate", "check", "run"]
