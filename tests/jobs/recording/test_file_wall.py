"""Nothing is written outside a folder: by the guard of Python, and by the wall of the machine."""

import os  # noqa: F401 - effects use it, and shutil
import shutil  # noqa: F401
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from isolitmus.jobs.recording.file_wall import (
    build_wall,
    unwalled_effects,
    wall_version,
)
from isolitmus.jobs.recording.sandbox import ForbiddenEffectError, guard_machine


@pytest.fixture
def folders(tmp_path):
    """A folder to write to with the file `own`, and one outside with the file `kept`."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (inside / "own").write_text("own")
    (outside / "kept").write_text("kept")
    return inside, outside


def send(address):
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as one:
        one.sendto(b"x", address)


EFFECTS = """
os.replace(i / "own", o / "kept")
os.rename(str(i / "own"), str(o / "new"))
(i / "own").rename(o / "new")
os.rename(o / "kept", i / "new")
shutil.move(i / "own", o / "new")
shutil.copyfile(i / "own", o / "new")
os.symlink("/", o / "new")
os.symlink(o / "kept", i / "link"); (i / "link").write_text("lost")
os.link(o / "kept", i / "link")
os.chmod(o / "kept", 0o600)
os.chmod(os.open(o / "kept", os.O_RDONLY), 0o600)
os.utime(o / "kept", (1, 1))
os.truncate(o / "kept", 0)
os.remove("kept", dir_fd=os.open(o, os.O_RDONLY))
os.open(o / "new", os.O_CREAT)
sqlite3.connect(o / "new")
subprocess.run(["touch", o / "new"], check=True)
send(("192.0.2.1", 9))
send(str(o / "kept"))
""".strip().split("\n")


@pytest.mark.parametrize("effect", EFFECTS)
def test_the_guard_refuses_what_python_reports(folders, effect):
    inside, outside = folders
    times = (outside / "kept").stat()
    with pytest.raises(ForbiddenEffectError), guard_machine(inside):
        exec(effect, {**globals(), "i": inside, "o": outside})
    now = (outside / "kept").stat()
    assert [*outside.iterdir()] == [outside / "kept"]
    assert (outside / "kept").read_text() == "kept"
    assert (now.st_mode, now.st_mtime, now.st_nlink) == (times.st_mode, times.st_mtime, 1)


def test_the_guard_lets_a_function_use_its_folder(folders):
    inside, outside = folders
    with guard_machine(inside):
        (inside / "own").replace(inside / "new")
        (inside / "new").chmod(0o600)
        (inside / "link").symlink_to(outside / "kept")
        assert (inside / "link").read_text() == "kept"
        memory = sqlite3.connect(":memory:")
        assert memory.execute("SELECT 1").fetchone() == (1,)
        memory.close()
    (outside / "kept").write_text("changed")


WALLED = """
import ctypes, multiprocessing, os, sqlite3, subprocess, sys, threading
from pathlib import Path
from isolitmus.jobs.recording.file_wall import build_wall
inside, outside = map(Path, sys.argv[1:])

def write(name):
    (outside / name).write_text("lost")

def duckdb():
    import duckdb
    duckdb.sql(f"COPY (SELECT 1 AS x) TO '{outside / 'duckdb'}' (FORMAT csv)")

def arrow():
    import pyarrow
    pyarrow.OSFile(str(outside / "arrow"), "wb").write(b"lost")

def libc():
    c = ctypes.CDLL(None)
    c.unlink(str(outside / "kept").encode())
    c.rename(str(inside / "own").encode(), str(outside / "libc").encode())

def spawn():
    one = multiprocessing.get_context("fork").Process(target=write, args=("fork",))
    one.start()
    one.join()

def thread():
    one = threading.Thread(target=write, args=("thread",))
    one.start()
    one.join()

EFFECTS = [
    lambda: write("python"), lambda: os.truncate(outside / "kept", 0), duckdb, arrow, libc, spawn,
    thread, lambda: subprocess.run(f"echo lost > {outside}/shell", shell=True),
    lambda: sqlite3.connect(outside / "sqlite").execute("CREATE TABLE t (x INT)"),
    lambda: os.mkfifo(outside / "fifo"), lambda: os.symlink("/", outside / "symlink"),
    lambda: os.mkdir(outside / "folder"), lambda: os.replace(inside / "own", outside / "kept"),
]
assert build_wall([inside], signals=True)
for effect in EFFECTS:
    try:
        effect()
    except Exception as error:
        print(type(error).__name__)
os.replace(inside / "own", inside / "new")
subprocess.run(f"echo more >> {inside}/new; echo x > /dev/null", shell=True, check=True)
try:
    os.kill(os.getppid(), 0)
    print("signal")
except PermissionError:
    print("no signal")
"""


@pytest.mark.slow
@pytest.mark.skipif(not wall_version(), reason="this machine has no Landlock")
def test_the_wall_holds_for_libraries_threads_and_processes(folders):
    inside, outside = folders
    done = subprocess.run(
        [sys.executable, "-c", WALLED, inside, outside], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert [*outside.iterdir()] == [outside / "kept"]
    assert (outside / "kept").read_text() == "kept"
    assert (inside / "new").read_text() == "ownmore\n"
    assert done.stdout.endswith("no signal\n" if wall_version() >= 6 else "\n")


def test_what_is_not_walled_is_said(monkeypatch, folders):
    assert "the network" in unwalled_effects(0)
    assert "shorten files" in unwalled_effects(2)
    assert "shorten files" not in unwalled_effects(3)
    monkeypatch.setattr(sys, "platform", "darwin")
    assert (wall_version(), build_wall([folders[0]])) == (0, False)
    Path(folders[1], "kept").write_text("written")
