"""Compile the code of Delta's pull requests into a folder for the engine ``delta:FOLDER``.

The changed main files of each pull request are merged (``git merge-file``) into those of the
release, with the commit at which the pull request left the trunk as their base. The Scala compiler
of PySpark compiles them against Delta's released jars, which Ivy's cache has after the first start
of Spark. The folder gets the classes, changed resources, and ``classes.toml``, which says what they
were made of. Nothing is downloaded.

    python bench/pull_classes.py --git DELTA.git --out FOLDER 7359
    python bench/pull_classes.py --git DELTA.git --out FOLDER 7331 7466 7359
    python bench/pull_classes.py --git DELTA.git --fork sezruby/delta=FORK.git --out FOLDER \
sezruby/delta#9

A repository needs the references ``refs/pull/N/head``: ``git fetch origin pull/N/head:\
refs/pull/N/head``.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyspark

from isolitmus.conformance.class_folder import MANIFEST, delta_jars
from isolitmus.conformance.delta.session import PACKAGES
from isolitmus.conformance.java import find_java
from isolitmus.model.errors import IsolitmusError

DELTA = "delta-io/delta"
"""Repository of the release, and of a pull request that is a number only."""
PULL = re.compile(r"(?:(?P<repository>[\w.-]+/[\w.-]+)#)?(?P<number>\d+)")
MAIN = re.compile(r".*/src/main/(?P<kind>[^/]+)/(?P<path>.+)")
"""Path of a file of the product, as opposed to a test."""
CONF = re.compile(
    r'\b(?P<builder>buildConf|buildStaticConf|SQLConf\.buildConf)\(\s*"(?P<key>[^"]+)"'
)
"""Registration of a conf in ``CONFS``."""
CONFS = "DeltaSQLConf.scala"
"""File with Delta's confs."""
BOTH_INSERT = re.compile(
    rb"^<<<<<<< [^\n]*\n(?P<ours>(?:(?![<|=>]{7})[^\n]*\n)*)\|{7}[^\n]*\n={7}\n"
    rb"(?P<theirs>(?:(?![<|=>]{7})[^\n]*\n)*)>>>>>>> [^\n]*\n",
    re.MULTILINE,
)
"""Conflict of a merge whose base is empty: two insertions at one place."""
PREFIX = "spark.databricks.delta."
"""DeltaSQLConfBase.SQL_CONF_PREFIX."""
SHOWN_LINES = 12
"""Number of lines of the compiler that an error shows."""


class Failed(Exception):
    """Error of this script: one sentence, or one and the lines of the compiler."""


@dataclass(frozen=True, slots=True)
class Repository:
    """Git directory, read by Git's commands."""

    name: str
    directory: Path

    def git(self, *words: str) -> bytes:
        """Return what a Git command prints; CalledProcessError if it fails."""
        asked = ["git", "--git-dir", str(self.directory), *words]
        return subprocess.run(asked, capture_output=True, check=True).stdout

    def resolve(self, reference: str, fix: str) -> str:
        """Return the commit of a reference, or raise Failed with the fix."""
        try:
            return self.git("rev-parse", "--verify", f"{reference}^{{commit}}").decode().strip()
        except (subprocess.CalledProcessError, FileNotFoundError):
            raise Failed(f"{self.directory}: no {reference} of {self.name}; {fix}") from None

    def read(self, commit: str, path: str) -> bytes | None:
        """Return a file of a commit; None if the commit does not have it."""
        if not self.git("ls-tree", commit, "--", path):
            return None
        return self.git("cat-file", "blob", f"{commit}:{path}")

    def changed(self, base: str, head: str) -> Iterator[tuple[str, str]]:
        """Yield Git's letter and the path of each file that differs between two commits."""
        lines = self.git("diff", "--no-renames", "--name-status", base, head).decode()
        for line in lines.splitlines():
            letter, _, path = line.partition("\t")
            yield letter, path


@dataclass(frozen=True, slots=True)
class PullRequest:
    """Pull request: its repository, number, head, and the commit at which it left the trunk."""

    repository: Repository
    number: int
    head: str
    base: str
    date: str
    """Day of the head's commit."""

    def __str__(self) -> str:
        return f"pull {self.number} of {self.repository.name} at {self.head[:8]}"

    @classmethod
    def find(cls, text: str, repositories: Mapping[str, Repository], trunk: str) -> "PullRequest":
        """Return the pull request of an argument, ``NUMBER`` or ``OWNER/NAME#NUMBER``."""
        found = PULL.fullmatch(text)
        if found is None:
            raise Failed(f"'{text}' is not a pull request; write 7359, or sezruby/delta#9")
        name, number = found["repository"] or DELTA, found["number"]
        if name not in repositories:
            raise Failed(f"no repository {name}; name its Git directory: --fork {name}=DIRECTORY")
        repository = repositories[name]
        reference = f"refs/pull/{number}/head"
        head = repository.resolve(reference, f"git fetch origin pull/{number}/head:{reference}")
        main = repository.resolve(trunk, "name the branch that the pull request left with --trunk")
        base = repository.git("merge-base", head, main).decode().strip()
        date = repository.git("show", "-s", "--format=%cs", head).decode().strip()
        return cls(repository, int(number), head, base, date)

    def main_files(self) -> Iterator[str]:
        """Yield the files of the product that it adds or changes; Failed for what cannot be
        compiled.
        """
        for letter, path in self.repository.changed(self.base, self.head):
            main = MAIN.fullmatch(path)
            if main is None:
                continue
            if letter not in "AM":
                raise Failed(f"{self}: it deletes {path}; a folder of classes can only replace")
            if main["kind"] not in ("scala", "resources"):
                raise Failed(f"{self}: it changes {path}; only Scala files and resources are built")
            yield path


def merge_pulls(release: Repository, tag: str, pulls: Iterable[PullRequest]) -> dict[str, bytes]:
    """Return the content of all files that the pull requests change, merged into the release.

    Raises Failed for the first file with a conflict.
    """
    merged: dict[str, bytes] = {}
    for pull in pulls:
        for path in pull.main_files():
            theirs = pull.repository.read(pull.head, path)
            assert theirs is not None
            ours = merged.get(path, release.read(tag, path))
            if ours is None:
                merged[path] = theirs
                continue
            base = pull.repository.read(pull.base, path) or b""
            merged[path] = merge_file(ours, base, theirs, f"{pull}: {path}")
    return merged


def merge_file(ours: bytes, base: bytes, theirs: bytes, what: str) -> bytes:
    """Return the three-way merge of a file, or raise Failed with the lines of its conflicts.

    Insertions at one place of the list of confs are both kept; their order means nothing there.
    """
    with tempfile.TemporaryDirectory() as name:
        paths = [Path(name, each) for each in ("ours", "base", "theirs")]
        for path, content in zip(paths, (ours, base, theirs), strict=True):
            path.write_bytes(content)
        done = subprocess.run(
            ["git", "merge-file", "-p", "--diff3", *map(str, paths)],
            capture_output=True,
            check=False,
        )
    merged = done.stdout
    if done.returncode and what.endswith(f"/{CONFS}"):
        merged = BOTH_INSERT.sub(rb"\g<ours>\g<theirs>", merged)
    lines = merged.splitlines()
    conflicts = [n for n, line in enumerate(lines, 1) if line.startswith(b"<<<<<<< ")]
    if conflicts:
        raise Failed(
            f"{what}: conflict with the release or an earlier pull request at line"
            f" {', '.join(map(str, conflicts))} of the merged file; build these pull requests"
            " apart, or merge them by hand into a branch of a fork"
        )
    return merged


def registered_confs(text: str) -> set[str]:
    """Return the confs that the text of ``CONFS`` registers."""
    return {
        found["key"] if found["builder"].startswith("SQLConf") else PREFIX + found["key"]
        for found in CONF.finditer(text)
    }


def new_confs(release: Repository, tag: str, merged: Mapping[str, bytes]) -> list[str]:
    """Return the confs that the merged files register and the release does not, sorted."""
    found: set[str] = set()
    for path, content in merged.items():
        if path.endswith(f"/{CONFS}"):
            before = (release.read(tag, path) or b"").decode()
            found |= registered_confs(content.decode()) - registered_confs(before)
    return sorted(found)


def compile_scala(sources: Sequence[Path], jars: Sequence[Path], out: Path) -> None:
    """Compile Scala files with PySpark's compiler; Failed with the compiler's first lines."""
    spark = Path(pyspark.__file__).parent / "jars"
    path = ":".join([*map(str, jars), f"{spark}/*"])
    command = [find_java().command, "-Xss8m", "-Xmx2g", "-cp", f"{spark}/*", "scala.tools.nsc.Main"]
    command += ["-nowarn", "-classpath", path, "-d", str(out), *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stdout + done.stderr).splitlines()
        more = len(lines) - SHOWN_LINES
        rest = [f"... and {more} more lines"] if more > 0 else []
        raise Failed("\n".join(["these files do not compile:", *lines[:SHOWN_LINES], *rest]))


def manifest_text(
    version: str, pulls: Sequence[PullRequest], confs: Sequence[str], files: Sequence[str]
) -> str:
    """Return the text of ``classes.toml``; JSON's strings and lists are TOML's, too."""
    lines = [f"release = {json.dumps(version)}"]
    for key, items in (("confs", confs), ("files", files)):
        lines += [f"{key} = [", *(f"    {json.dumps(item)}," for item in items), "]"]
    for pull in pulls:
        lines += ["", "[[pulls]]", f"number = {pull.number}"]
        lines += [f"repository = {json.dumps(pull.repository.name)}"]
        lines += [f"head = {json.dumps(pull.head)}", f"date = {json.dumps(pull.date)}"]
    return "\n".join(lines) + "\n"


def build_folder(
    release: Repository, version: str, pulls: Sequence[PullRequest], jars: Sequence[Path], out: Path
) -> list[str]:
    """Write the folder of classes; return the files that it was made of.

    An existing folder is replaced if it has a manifest. Nothing is written if something fails.
    """
    tag = release.resolve(f"refs/tags/v{version}", "fetch the tags, or name another --release")
    merged = merge_pulls(release, tag, pulls)
    if not merged:
        raise Failed(f"{', '.join(map(str, pulls))}: no file of the product is changed")
    if out.exists() and not (out / MANIFEST).is_file():
        raise Failed(f"{out} exists and has no {MANIFEST}; name another folder")
    with tempfile.TemporaryDirectory() as name:
        sources, classes = Path(name, "sources"), Path(name, "classes")
        classes.mkdir()
        scala = []
        for path, content in merged.items():
            main = MAIN.fullmatch(path)
            assert main is not None
            to = (sources / path) if main["kind"] == "scala" else (classes / main["path"])
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(content)
            if main["kind"] == "scala":
                scala.append(to)
        if scala:
            compile_scala(scala, jars, classes)
        text = manifest_text(version, pulls, new_confs(release, tag, merged), sorted(merged))
        (classes / MANIFEST).write_text(text, "utf-8")
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(classes, out)
    return sorted(merged)


def main() -> None:
    asked = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    asked.add_argument("pulls", nargs="+", metavar="PULL", help="NUMBER, or OWNER/NAME#NUMBER")
    asked.add_argument("--git", type=Path, required=True, help=f"Git directory of {DELTA}")
    asked.add_argument("--fork", action="append", default=[], metavar="OWNER/NAME=DIRECTORY")
    asked.add_argument("--out", type=Path, required=True, help="folder for the classes")
    asked.add_argument("--release", default=PACKAGES["delta-spark"])
    asked.add_argument("--trunk", default="refs/heads/master", help="branch that the pulls left")
    given = asked.parse_args()
    repositories = {DELTA: Repository(DELTA, given.git)}
    for fork in given.fork:
        name, _, directory = fork.partition("=")
        repositories[name] = Repository(name, Path(directory))
    try:
        pulls = [PullRequest.find(text, repositories, given.trunk) for text in given.pulls]
        jars = delta_jars(given.release)
        files = build_folder(repositories[DELTA], given.release, pulls, jars, given.out)
    except (Failed, IsolitmusError) as error:
        sys.exit(f"pull_classes: {error}")
    lines = [f"{given.out}: Delta {given.release} with {', '.join(map(str, pulls))}"]
    sys.stdout.write("\n".join([*lines, *(f"  {path}" for path in files)]) + "\n")


if __name__ == "__main__":
    main()
