"""Answers are kept where only the user writes, for one repository and release, whole or not at all."""

import os
import signal
import subprocess
import sys
from importlib.metadata import version

import pytest

from isolitmus.jobs.lint import answer_cache
from isolitmus.jobs.lint.answer_cache import AnswerCache


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """The working folder."""
    (tmp_path / "repository").mkdir()
    monkeypatch.chdir(tmp_path / "repository")
    return tmp_path / "repository"


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """The folder of answers in the user's cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "isolitmus" / "lint"


def save(repository, word="when"):
    answers = AnswerCache(repository)
    answers.put("key", {"word": word})
    answers.save()


def kept_word(repository):
    answer = AnswerCache(repository).get("key")
    return answer and answer["word"]


def test_answers_of_a_repository(repository, kept):
    save(repository)
    assert kept_word(repository) == "when"
    assert kept_word(repository.parent) is None
    assert [one.stat().st_mode & 0o777 for one in (kept.parent, kept)] == [0o700, 0o700]
    (repository.parent / "link").symlink_to("repository")
    assert kept_word(repository.parent / "link") == "when"


def contents(folder):
    """The files and folders below a folder, with what is in the files."""
    return {path: path.is_file() and path.read_bytes() for path in folder.rglob("*")}


DAMAGES = (
    "cut", "edited", "release", "repository", "code", "binary", "link", "pipe", "linked folder",
    "other user", "folder of all", "large",
)  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_foreign_cache_is_ignored(repository, kept, monkeypatch, damage):
    save(repository)
    (path,) = kept.iterdir()
    text = path.read_text("utf-8")
    changes = {
        "cut": (text[len(text) // 2 :], ""),
        "edited": ('"when"', '"never"'),
        "release": (f'"release": "{version("isolitmus")}"', '"release": "0.0.1"'),
        "repository": (str(repository), f"{repository}2"),
    }
    match damage:
        case "cut" | "edited" | "release" | "repository":
            old, new = changes[damage]
            assert old in text
            path.write_text(text.replace(old, new), "utf-8")
        case "code":
            monkeypatch.setattr(answer_cache, "code_digest", lambda: "other")
        case "binary":
            path.write_bytes(b"\xff\x00")
        case "link":
            path.rename(kept.parent / "answers")
            path.symlink_to(kept.parent / "answers")
        case "pipe":
            path.unlink()
            os.mkfifo(path)
        case "linked folder":
            kept.rename(kept.parent / "other")
            kept.symlink_to("other")
        case "other user":
            monkeypatch.setattr(os, "getuid", lambda: 12345)
        case "folder of all":
            kept.chmod(0o777)
        case "large":
            monkeypatch.setattr(answer_cache, "SIZE", 10)
    assert kept_word(repository) is None


@pytest.mark.parametrize("given", ["{0}", "{0}/.cache", "{1}/link", "relative", "", "home"])
def test_a_cache_in_the_repository_is_not_read_or_written(repository, kept, monkeypatch, given):
    """A commit can hold it, whatever its digests are."""
    save(repository)
    (path,) = kept.iterdir()
    (repository.parent / "link").symlink_to("repository")
    monkeypatch.setenv("HOME", str(repository if given in {"", "home"} else kept.parents[1]))
    monkeypatch.setenv("XDG_CACHE_HOME", given.format(repository, repository.parent))
    if given == "home":
        monkeypatch.delenv("XDG_CACHE_HOME")
    for cache in (repository, repository / ".cache", repository / "relative"):
        inside = cache / "isolitmus" / "lint"
        inside.mkdir(mode=0o700, parents=True)
        (inside / path.name).write_bytes(path.read_bytes())
    assert kept_word(repository) is None
    before = contents(repository)
    save(repository, "never")
    assert contents(repository) == before


@pytest.mark.parametrize("obstacle", ["file", "link", "file of the link"])
def test_a_cache_that_cannot_be_written_changes_nothing(repository, kept, obstacle):
    kept.parent.mkdir(parents=True)
    if obstacle == "file":
        kept.write_text("a file", "utf-8")
    elif obstacle == "link":
        kept.symlink_to(repository)
    else:
        save(repository)
        (path,) = kept.iterdir()
        path.unlink()
        path.symlink_to(repository / "start-up")
    save(repository)
    assert [*repository.iterdir()] == []
    assert kept_word(repository) is None


def test_a_folder_that_others_could_write_to_becomes_the_users(repository, kept):
    kept.mkdir(parents=True)
    kept.parent.chmod(0o775)
    kept.chmod(0o775)
    save(repository)
    assert kept_word(repository) == "when"


@pytest.mark.slow
@pytest.mark.parametrize("step", ["fsync", "fchmod", "replace"])
def test_two_kills_while_a_cache_is_written(repository, kept, step):
    """The old answers are left; what the killed processes left goes later."""
    save(repository)
    (path,) = kept.iterdir()
    old = path.read_text("utf-8")
    code = (
        "import os, signal\n"
        "from pathlib import Path\n"
        "from isolitmus.jobs.lint.answer_cache import AnswerCache\n"
        f"answers = AnswerCache(Path({str(repository)!r}))\n"
        "answers.put('key', {'word': 'never'})\n"
        f"owner = Path if {step!r} == 'replace' else os\n"
        f"setattr(owner, {step!r}, lambda *_: os.kill(os.getpid(), signal.SIGKILL))\n"
        "answers.save()\n"
    )
    for _ in range(2):
        done = subprocess.run([sys.executable, "-P", "-c", code], check=False)
        assert done.returncode == -signal.SIGKILL
        assert path.read_text("utf-8") == old
    left = [one for one in kept.iterdir() if one != path]
    assert [one.suffix for one in left] == [".new", ".new"]
    assert kept_word(repository) == "when"
    save(repository, "always")
    assert kept_word(repository) == "always"
    assert {*left} < {*kept.iterdir()}
    for one in left:
        os.utime(one, (0, 0))
    save(repository)
    assert [*kept.iterdir()] == [path]
