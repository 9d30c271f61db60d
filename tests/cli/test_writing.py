"""What a command writes is there as a whole or not at all, and one process writes at a time."""

import errno
import os
import re
import resource
import signal
import subprocess
import sys
import time
from inspect import signature
from pathlib import Path

import pytest
from pages import FOLDERS

from isolitmus.cli.main import FUNCTIONS, VERBS
from isolitmus.specs.disk import output_files as writing
from isolitmus.specs.disk.output_files import LineAppender, only_writer, write_whole

WRITERS = {
    ("separate", "save"): ["serializable", "causal"],
    ("separate", "certificate"): ["serializable", "causal"],
    ("separate", "suite"): ["serializable", "--mutants"],
    ("compare", "html"): ["causal", "read-atomic", "--universe", "abstract"],
    ("compare", "certificate"): ["causal", "read-atomic", "--universe", "abstract"],
    ("predict", "save"): ["shop"],
    ("predict", "html"): ["shop"],
    ("robust", "html"): ["shop"],
    ("robust", "save"): ["shop"],
    ("robust", "certificate"): ["shop"],
    ("lint", "save"): ["shop"],
    ("repair", "save"): ["case-2-serializable", "--keeps", "log-serializable"],
    ("lint", "out"): ["shop"],
    ("lint", "html"): ["shop"],
    ("audit", "html"): ["t"],
    ("audit", "evidence"): ["t"],
    ("audit", "metrics"): ["t"],
    ("audit", "jsonl"): ["t"],
    ("audit", "out"): ["t", "--spark"],
    ("sweep", "out"): ["two-partitions", "--spark"],
    ("check", "out"): ["reorder", "--spark"],
    ("report", "html"): ["data"],
    ("matrix", "evidence"): ["--engine", "delta"],
    ("matrix", "out"): ["--engine", "delta"],
    ("explore", "evidence"): ["--count", "1"],
    ("explore", "out"): ["--count", "1"],
    ("demo", "out"): ["--no-spark"],
    ("export", "pytest"): ["reorder"],
    ("export", "pyspark"): ["reorder"],
    ("export", "elle"): ["history-long-fork"],
    ("export", "awdit"): ["history-long-fork"],
}
"""Every option that names what is written, and a use of its command."""
CHOSEN = {pair for pair in WRITERS if pair[1] == "out" and pair[0] != "lint"} | {
    ("lint", "save"),
    ("predict", "save"),
    ("repair", "save"),
    ("robust", "save"),
    ("robust", "certificate"),
    ("separate", "certificate"),
    ("separate", "suite"),
    ("compare", "certificate"),
}


def test_every_option_that_is_written_is_here():
    found = {
        (verb, name)
        for verb in VERBS
        for name, parameter in signature(FUNCTIONS.named(verb)).parameters.items()
        if re.search("Path|Location", str(parameter.annotation))
    }
    assert found == set(WRITERS)


@pytest.mark.slow
@pytest.mark.parametrize(("command", "option"), WRITERS)
def test_the_second_writer_is_refused(call, tmp_path, monkeypatch, command, option):
    monkeypatch.chdir(tmp_path)
    folder = (command, option) in CHOSEN
    words = command, *WRITERS[command, option], f"--{option}", "there"
    with only_writer(Path("there"), folder=folder):
        status, out, err = call(*words)
    assert (status, out) == (2, "")
    assert (
        err
        == "isolitmus: cannot write there: another isolitmus is writing there; wait for its end, or"
        " name another\n"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_lock_of_a_process_that_was_killed_holds_nobody_up(tmp_path):
    target = tmp_path / "page.html"
    code = f"""if 1:
        import time
        from pathlib import Path
        from isolitmus.specs.disk.output_files import only_writer
        with only_writer(Path({str(target)!r})), only_writer(Path({str(tmp_path / "t")!r}), folder=True):
            print("held", flush=True)
            time.sleep(60)
    """
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        process.kill()
    with only_writer(target), only_writer(tmp_path / "t", folder=True):
        write_whole(target, "new")
    assert target.read_text() == "new"


def test_a_folder_is_made_and_goes_if_nothing_came_to_be_in_it(tmp_path):
    with only_writer(tmp_path / "a" / "b", folder=True):
        assert (tmp_path / "a" / "b").is_dir()
    assert not (tmp_path / "a" / "b").exists()
    with only_writer(tmp_path / "a", folder=True):
        (tmp_path / "a" / "file").touch()
    with only_writer(tmp_path / "a", folder=True):
        pass
    assert (tmp_path / "a" / "file").exists()


@pytest.mark.parametrize("fails", ["fsync", "fchmod", "replace"])
def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch, fails):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    target = tmp_path / "page.html"
    target.write_text("old")
    monkeypatch.setattr(*((Path, fails) if fails == "replace" else (os, fails)), full)
    with pytest.raises(writing.Ended, match=r"cannot write .*page.html: No space left on device"):
        write_whole(target, "new")
    monkeypatch.undo()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_stop_in_the_middle_leaves_the_old_file(tmp_path, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", stopped)
    (tmp_path / "a").write_text("old")
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "a", "new")
    assert [f.read_text() for f in tmp_path.iterdir()] == ["old"]


def test_a_mode_stays_what_it_was(tmp_path):
    (tmp_path / "a").write_text("old")
    (tmp_path / "a").chmod(0o640)
    write_whole(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "new"
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def names(folder):
    return sorted(path.name for path in Path(folder).iterdir())


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """The working folder, which has ``.git``, beside a file of the user."""
    (tmp_path / "user").write_text("old")
    folder = tmp_path / "repository"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("target", ["../user", "../absent", ".git/absent", "loop", "/dev/full"])
@pytest.mark.parametrize("write", [write_whole, lambda path, text: LineAppender(path).append(text)])
@pytest.mark.usefixtures("repository")
def test_nothing_is_written_through_a_link(target, write):
    Path("loop").symlink_to("loop")
    Path("page").symlink_to(target)
    with pytest.raises(
        writing.IsolitmusError, match=f"^cannot write page: it is a link to {target}"
    ):
        write(Path("page"), "new")
    with pytest.raises(writing.IsolitmusError, match="it is a link"), only_writer(Path("page")):
        pass
    assert Path("../user").read_text() == "old"
    assert names("..") == ["repository", "user"]
    assert names(".git") == []


@pytest.mark.parametrize("inside", [True, False], ids=["with .git", "without .git"])
def test_a_linked_folder_that_leads_out_is_not_written_in(repository, inside):
    if not inside:
        (repository / ".git").rmdir()
    Path("out").symlink_to("..")
    for path in (Path("out/user"), Path("out/new/user"), repository / "out" / "user"):
        with pytest.raises(writing.IsolitmusError, match=r"out is a link to \.\., through which"):
            write_whole(path, "new")
        with pytest.raises(writing.IsolitmusError), only_writer(path.parent / "x", folder=True):
            pass
    assert Path("../user").read_text() == "old"
    assert names("..") == ["repository", "user"]
    Path("build").mkdir()
    Path("report").symlink_to("build")
    write_whole(Path("report/page"), "new")
    assert Path("build/page").read_text() == "new"


@pytest.mark.usefixtures("repository")
def test_a_lock_is_no_link():
    Path(".page.lock").symlink_to("../absent")
    with (
        pytest.raises(writing.IsolitmusError, match="cannot write page"),
        only_writer(Path("page")),
    ):
        pass
    assert names("..") == ["repository", "user"]


def test_a_link_above_the_working_folder_is_the_users_own(tmp_path, monkeypatch):
    (tmp_path / "disk" / "work").mkdir(parents=True)
    (tmp_path / "home").symlink_to("disk")
    monkeypatch.chdir(tmp_path / "home" / "work")
    write_whole(tmp_path / "home" / "work" / "page", "new")
    assert (tmp_path / "disk" / "work" / "page").read_text() == "new"


def test_one_place_opens_files_for_writing():
    """Whatever a person names is written by ``output_files``; others write into folders they made."""
    others = {
        "conformance/delta/jvm.py", "conformance/delta/raw_commits.py",
        "conformance/deltalake/environment.py", "databases/observations/concurrent_writers.py",
        "databases/postgres/server.py", "jobs/recording/child.py",
        "jobs/recording/function_runs.py", "pipeline/spark.py",
    }  # fmt: skip
    root = Path(__file__).parents[2]
    pattern = r"write_text\(|write_bytes\(|open\([^)\n]*\"[waxr]b?\+?\"|O_CREAT\b(?! \|)|ZipFile\(|touch\("
    writing_files = {
        path.relative_to(root).as_posix()
        for top in FOLDERS
        for path in (root / top).rglob("*.py")
        for line in path.read_text("utf-8").splitlines()
        if (found := re.search(pattern, line))
        and '"r' not in found[0]
        and "ZipFile(jar)" not in line
        and "..." not in line
    }
    assert writing_files - {"specs/disk/output_files.py"} == others


@pytest.mark.slow
def test_a_device_is_written_as_it_is(call):
    separate = "separate", "snapshot-isolation", "serializable", "--save"
    status, out, err = call(*separate, "/dev/null")
    assert (status, err) == (1, "")
    assert out
    assert not Path("/dev/.null.lock").exists()
    status, out, err = call(*separate, "/dev/full")
    assert (status, err) == (3, "isolitmus: cannot write /dev/full: No space left on device\n")


PROGRAM = Path(sys.executable).with_name("isolitmus")


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["demo", "--no-spark", "--out", "report"],
        ["separate", "snapshot-isolation", "serializable", "--save", "found.toml"],
    ],
)
def test_a_disk_that_fills_ends_the_work_in_one_sentence(tmp_path, words):
    """A limit on the size of files stands for it: the kernel refuses to write on.

    Python, too, would compile up to that limit, and leave modules cut short for everybody: here it
    must not.
    """
    done = subprocess.run(
        [PROGRAM, *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)),
    )
    assert done.returncode == 3
    assert done.stderr.startswith("isolitmus: cannot write ")
    assert done.stderr.endswith(": File too large\n")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.slow
def test_a_full_terminal_is_one_sentence():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [PROGRAM, "show", "levels"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 3
    assert done.stderr == "isolitmus: No space left on device, which ended the work\n"


# Processes


SELF = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)"


@pytest.mark.parametrize(
    ("module", "text"), [("typer", "raise KeyboardInterrupt"), ("typer", SELF), ("logging", SELF)]
)
def test_a_ctrl_c_while_the_command_starts_is_one_too(tmp_path, module, text):
    """A module that is imported early is interrupted, or sends the signal itself."""
    (tmp_path / f"{module}.py").write_text(text)
    done = subprocess.run(
        [PROGRAM, "show"],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize(
    "place", ["isolitmus.cli.main._fail", "isolitmus.cli.output.warn", "threading._shutdown"]
)
def test_a_ctrl_c_while_the_command_ends_is_one_too(tmp_path, place):
    """A Ctrl-C while an error message is printed, and while Python exits."""
    module, _, name = place.rpartition(".")
    (tmp_path / "end.py").write_text(
        f"import os, signal, sys, {module}\n"
        f"{module}.{name} = lambda *_: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.argv = ['isolitmus', 'lst']\n"
        "signal.signal(signal.SIGINT, lambda *_: os._exit(130))\n"
        "from isolitmus.cli.main import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, tmp_path / "end.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 130
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def of_group(group):
    """The processes of a group that are still there."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] not in "ZX":
            found.append(int(entry.parent.name))
    return found


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


SWEEP = ["sweep", "writers-partitioned", "--transactions", "5", "--limit", "900000000"]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc to look into")
@pytest.mark.parametrize(
    ("how", "status", "words"),
    [
        (signal.SIGINT, 130, []),
        (signal.SIGTERM, -15, []),
        (signal.SIGKILL, -9, []),
        (None, 3, ["--time", "3"]),
    ],
)
def test_a_sweep_leaves_no_process_behind(how, status, words):
    process = subprocess.Popen(
        [PROGRAM, *SWEEP, "--cores", "2", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert wait_for(lambda: len(of_group(process.pid)) >= 3)
    if how is not None:
        process.send_signal(how)
    out, err = process.communicate(timeout=60)
    assert process.returncode == status
    if how not in (
        signal.SIGTERM,
        signal.SIGKILL,
    ):  # a worker whose parent is gone at its birth says so
        assert "Traceback" not in err
    if how is None:
        assert "unknown: the time limit of 3 s ended it; " in " ".join(out.split())
    assert wait_for(lambda: not of_group(process.pid), 10)
