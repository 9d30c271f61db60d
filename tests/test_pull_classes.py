"""Folders of classes from pull requests: what is merged and refused; the compiler is not started."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from isolitmus.conformance.class_folder import read_class_folder
from isolitmus.conformance.delta.session import PACKAGES

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))
import pull_classes
from pull_classes import (
    DELTA,
    Failed,
    PullRequest,
    Repository,
    build_folder,
    compile_scala,
    manifest_text,
    merge_file,
    merge_pulls,
    new_confs,
    registered_confs,
)

RELEASE = PACKAGES["delta-spark"]
MAIN = "spark/src/main/scala/org/apache/spark/sql/delta"
CHECKER, CONFS = f"{MAIN}/ConflictChecker.scala", f"{MAIN}/sources/DeltaSQLConf.scala"
LINES = [f"line {n}" for n in range(9)]
TRUNK = "refs/heads/master"


def text(*lines):
    return "".join(f"{line}\n" for line in lines)


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A repository with a release, which changed line 0, and pull requests by what they change."""
    folder = tmp_path_factory.mktemp("delta")

    def git(*words):
        options = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        asked = ["git", "-C", folder, *options, *words]
        return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()

    def commit(files):
        for path, content in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(content)
        git("add", "-A")
        git("commit", "-q", "-m", "x")

    git("init", "-q", "-b", "master")
    commit({CHECKER: text(*LINES), CONFS: text("object {", "}")})
    git("branch", "left")
    commit({CHECKER: text("released", *LINES[1:])})
    git("tag", f"v{RELEASE}")
    conf = {n: f'  val C{n} = buildConf("c{n}.enabled")' for n in (1, 2)}
    pulls = {
        1: {CHECKER: text(*LINES[:8], "first"), CONFS: text("object {", conf[1], "}")},
        2: {CHECKER: text(*LINES[:4], "second", *LINES[5:]), CONFS: text("object {", conf[2], "}")},
        3: {CHECKER: text(*LINES[:8], "third")},
        4: {f"{MAIN.replace('main', 'test')}/Suite.scala": "test"},
        5: {f"{MAIN}/X.java".replace("scala", "java"): "class X {}"},
        6: {f"{MAIN}/New.scala": "object New", "spark/src/main/resources/error/a.json": "{}"},
    }
    for number, files in pulls.items():
        git("checkout", "-q", "left")
        git("checkout", "-q", "-b", f"pull{number}")
        commit(files)
        git("update-ref", f"refs/pull/{number}/head", "HEAD")
    git("checkout", "-q", "-b", "pull7", "left")
    git("rm", "-q", CHECKER)
    git("commit", "-q", "-m", "x")
    git("update-ref", "refs/pull/7/head", "HEAD")
    return Repository(DELTA, folder / ".git")


@pytest.fixture
def pulls(repository):
    """pulls("1", "2"): these pull requests."""

    def find(*numbers):
        return [PullRequest.find(each, {DELTA: repository}, TRUNK) for each in numbers]

    return find


def merged_by(repository, pulls):
    return merge_pulls(repository, f"v{RELEASE}", pulls)


def test_changes_of_release_and_pull_requests_are_all_there(repository, pulls):
    merged = merged_by(repository, pulls("1", "2"))
    assert merged[CHECKER].decode() == text("released", *LINES[1:4], "second", *LINES[5:8], "first")
    lines = merged[CONFS].decode().splitlines()
    assert (lines[0], lines[-1], len(lines)) == ("object {", "}", 4)
    keys = ["spark.databricks.delta.c1.enabled", "spark.databricks.delta.c2.enabled"]
    assert new_confs(repository, f"v{RELEASE}", merged) == keys
    assert merged_by(repository, pulls("4")) == {}


def test_a_conflict_is_named_with_its_file_and_line(repository, pulls):
    said = rf"pull 3 of {DELTA} at \w{{8}}: {CHECKER}: conflict with the release .* at line 9 of"
    with pytest.raises(Failed, match=said):
        merged_by(repository, pulls("1", "3"))


def test_two_insertions_are_both_kept_only_in_the_list_of_confs():
    ours, base, theirs = (text("a", *each, "b").encode() for each in (["x"], [], ["y"]))
    assert (
        merge_file(ours, base, theirs, "pull: a/DeltaSQLConf.scala")
        == text("a", "x", "y", "b").encode()
    )
    with pytest.raises(Failed, match=r"conflict .* at line 2"):
        merge_file(ours, base, theirs, "pull: a/Other.scala")
    with pytest.raises(Failed, match=r"conflict .* at line 2"):
        merge_file(ours, text("a", "z", "b").encode(), theirs, "pull: a/DeltaSQLConf.scala")


@pytest.mark.parametrize(
    ("number", "said"),
    [
        ("99", "no refs/pull/99/head of delta-io/delta; git fetch origin pull/99/head"),
        ("x", "'x' is not a pull request; write 7359, or sezruby/delta#9"),
        ("a/b#1", "no repository a/b; name its Git directory: --fork a/b=DIRECTORY"),
    ],
)
def test_a_pull_request_that_is_not_there_is_refused(pulls, number, said):
    with pytest.raises(Failed, match=said):
        pulls(number)


@pytest.mark.parametrize(
    ("number", "said"),
    [("5", "it changes .*X.java; only Scala files"), ("7", "it deletes .*Checker.scala; a folder")],
)
def test_what_a_folder_of_classes_cannot_do_is_refused(repository, pulls, number, said):
    with pytest.raises(Failed, match=said):
        merged_by(repository, pulls(number))


def test_a_trunk_that_is_not_there_is_refused(repository):
    with pytest.raises(Failed, match="name the branch that the pull request left with --trunk"):
        PullRequest.find("1", {DELTA: repository}, "refs/heads/main")


@pytest.fixture
def compiled(monkeypatch):
    """The names of the files that are handed to the compiler, which makes one class."""
    names = []

    def compile_one(sources, _jars, out):
        names.extend(source.name for source in sources)
        (out / "A.class").write_text("class")

    monkeypatch.setattr(pull_classes, "compile_scala", compile_one)
    return names


def test_a_folder_has_classes_resources_and_a_manifest(repository, pulls, compiled, tmp_path):
    out = tmp_path / "pull"
    build_folder(repository, RELEASE, pulls("6", "1"), [], out)
    assert sorted(compiled) == ["ConflictChecker.scala", "DeltaSQLConf.scala", "New.scala"]
    assert (out / "error" / "a.json").read_text() == "{}"
    read = read_class_folder(str(out))
    assert [pull.number for pull in read.pulls] == [6, 1]
    assert read.confs == ("spark.databricks.delta.c1.enabled",)
    build_folder(repository, RELEASE, pulls("1"), [], out)  # again, over the first
    assert not (out / "error").exists()


def test_a_folder_of_something_else_is_kept(repository, pulls, compiled, tmp_path):
    with pytest.raises(Failed, match=r"exists and has no classes\.toml; name another folder"):
        build_folder(repository, RELEASE, pulls("1"), [], tmp_path)
    with pytest.raises(Failed, match="no file of the product is changed"):
        build_folder(repository, RELEASE, pulls("4"), [], tmp_path / "new")
    with pytest.raises(Failed, match=r"no refs/tags/v0\.0 of delta-io/delta; fetch the tags"):
        build_folder(repository, "0.0", pulls("1"), [], tmp_path / "new")
    assert compiled == []
    assert [*tmp_path.iterdir()] == []


def test_what_the_compiler_says_is_shown(monkeypatch, tmp_path):
    said = "\n".join(["X.scala:1: error: not found: value y", *map(str, range(20))])
    monkeypatch.setattr(pull_classes, "find_java", lambda: type("Java", (), {"command": "java"}))
    monkeypatch.setattr(
        subprocess, "run", lambda asked, **_: subprocess.CompletedProcess(asked, 1, said, "")
    )
    with pytest.raises(Failed) as failed:
        compile_scala([tmp_path / "X.scala"], [], tmp_path)
    lines = str(failed.value).splitlines()
    assert lines[:2] == ["these files do not compile:", "X.scala:1: error: not found: value y"]
    assert (len(lines), lines[-1]) == (14, "... and 9 more lines")


def test_the_manifest_is_toml(pulls):
    read = tomllib.loads(manifest_text("4.4.0", pulls("1"), ["a.b"], ['x"y.scala']))
    assert (read["release"], read["confs"], read["files"]) == ("4.4.0", ["a.b"], ['x"y.scala'])
    assert read["pulls"][0]["repository"] == DELTA


def test_confs_are_found_where_they_are_registered():
    scala = """
      buildConf("a.b")
      SQLConf.buildConf("spark.x.y").doc("buildConf of z")
      buildStaticConf(
        "c")
    """
    prefix = "spark.databricks.delta"
    assert registered_confs(scala) == {f"{prefix}.a.b", "spark.x.y", f"{prefix}.c"}
