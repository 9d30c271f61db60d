"""The house is in order: documentation runs, the wheel is whole, nothing depends on one machine."""

import doctest
import importlib
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EVERY = PYPROJECT["tool"]["setuptools"]["packages"]
PACKAGES = [package for package in EVERY if package.count(".") == 1]
FOLDERS = [package.removeprefix("isolitmus.") for package in PACKAGES]

# Folders of one machine, and the hosts and options of package indexes.
MACHINE = re.compile(rb"(?<![\w.~}-])/(?:work|root|home|Users|opt|mnt)/\w")
INDEX = re.compile(
    rb"pypi\.org|pythonhosted\.org|repo1?\.maven|maven\.org|(?:extra-)?index[-]url\b|find[-]links\b"
)


def modules() -> list[str]:
    """Every module that is installed, by name; a `__main__` would run."""
    names = list(PACKAGES)
    for package in map(importlib.import_module, PACKAGES):
        found = pkgutil.walk_packages(package.__path__, package.__name__ + ".")
        names += [info.name for info in found if not info.name.endswith(".__main__")]
    return list(dict.fromkeys(names))


SLOW = {f"isolitmus.checker.{name}" for name in ("portrait", "proving.proof", "separation")}
"""The modules whose examples take seconds."""


@pytest.fixture(scope="session")
def files() -> list[str]:
    """What git tracks or would track, as paths from the root; links and what is deleted left out."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip(f"not a checkout that git reads: {listed.stderr.strip()}")
    names = sorted(set(listed.stdout.split("\0")) - {""})
    return [name for name in names if (ROOT / name).is_file() and not (ROOT / name).is_symlink()]


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in modules()]
)
def test_examples_in_docstrings_run(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


def test_installed_modules_are_those_of_this_checkout():
    for package, folder in zip(PACKAGES, FOLDERS, strict=True):
        (path,) = importlib.import_module(package).__path__
        assert Path(path).resolve() == ROOT / folder


def test_every_package_is_known_to_every_tool(files):
    """A folder that is forgotten in one list is silently not shipped, not typed or not layered."""
    tool = PYPROJECT["tool"]
    top_level = {name.split("/")[0] for name in files if name.count("/") == 1}
    assert {f for f in top_level if (ROOT / f / "__init__.py").exists()} == set(FOLDERS)
    rooms = {name.removesuffix("/__init__.py") for name in files if name.endswith("/__init__.py")}
    assert {f"isolitmus.{room.replace('/', '.')}" for room in rooms} == set(EVERY)
    assert set(tool["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"]) == set(FOLDERS)
    assert tool["importlinter"]["root_packages"] == PACKAGES
    (layers,) = [c["layers"] for c in tool["importlinter"]["contracts"] if c["type"] == "layers"]
    assert sorted(layers) == sorted(PACKAGES)
    for folder in FOLDERS:
        assert (ROOT / folder / "py.typed").exists()


def test_links_for_tools_point_to_each_package():
    links = {link.name: link.readlink() for link in (ROOT / ".ns" / "isolitmus").iterdir()}
    assert links == {folder: Path("../..") / folder for folder in FOLDERS}


def test_constraints_are_names_and_versions():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.!+]+", line)] == []
    names = [re.sub(r"[-_.]+", "-", line.partition("==")[0]).lower() for line in lines]
    assert len(set(names)) == len(names)
    wanted = [
        *PYPROJECT["project"]["dependencies"],
        *PYPROJECT["project"]["optional-dependencies"]["spark"],
        *PYPROJECT["dependency-groups"]["dev"],
    ]
    assert {re.match(r"[\w.-]+", w)[0] for w in wanted} <= set(names), "not pinned"


def test_nothing_depends_on_one_machine(files):
    found = [
        f"{name}:{number}: {line.decode(errors='replace').strip()[:100]}"
        for name in files
        for number, line in enumerate((ROOT / name).read_bytes().splitlines(), 1)
        if MACHINE.search(line) or INDEX.search(line)
    ]
    assert found == []


@pytest.mark.slow
def test_wheel_holds_every_file_of_every_package(files, tmp_path):
    """By way of the sdist, as installers do; the build backend is the pinned one, no network."""
    tree = tmp_path / "tree"
    for name in files:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tree / name)
    build(tree, f"build_sdist({str(tmp_path)!r})")
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    build(unpacked, f"build_wheel({str(tmp_path)!r})")
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert shipped == {f"isolitmus/{name}" for name in files if name.split("/")[0] in FOLDERS}


def build(folder: Path, call: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"from setuptools import build_meta; build_meta.{call}"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Deprecat" not in done.stderr, done.stderr


JAVA = {
    'openjdk version "17.0.15" 2025-04-15': "",
    'Picked up JAVA_TOOL_OPTIONS: -Dx="3"\nopenjdk version "21" 2023-09-19': "",
    'java version "1.8.0_292"': "found 8 ",
    'openjdk version "11.0.2" 2019-01-15': "found 11 ",
    'openjdk version "25.0.1" 2025-10-21': "found 25 ",
    "Unable to locate a Java Runtime.": "found none at ",
}


@pytest.mark.parametrize(("says", "sentence"), JAVA.items())
@pytest.mark.parametrize("by", ["PATH", "JAVA_HOME"])
def test_preflight_says_in_one_sentence_which_java_is_wrong(tmp_path, by, says, sentence):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{says}\nEND\n")
    java.chmod(0o755)
    done = preflight("java", path=java.parent, **({by: str(tmp_path)} if by == "JAVA_HOME" else {}))
    assert done.returncode == (4 if sentence else 0)
    assert done.stderr.count("\n") == bool(sentence)
    assert sentence in done.stderr
    assert ("isolitmus needs Java 17 or 21" in done.stderr) == bool(sentence)


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        ("echo 3.9", "needs Python >= 3.11, found 3.9 "),
        ("exit 127", "needs Python >= 3.11, found none at PYTHON="),
        ('case "$2" in *ensurepip*) exit 1;; esac; echo 3.12', "'apt-get install python3.12-venv'"),
        ('case "$2" in *ensurepip*) exit 0;; esac; echo 3.12', ""),
    ],
)
def test_preflight_says_in_one_sentence_which_python_is_wrong(tmp_path, program, sentence):
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{program}\n")
    python.chmod(0o755)
    script = tmp_path / ".ci" / "preflight"  # of a checkout that has no .venv yet
    script.parent.mkdir()
    shutil.copy2(ROOT / ".ci" / "preflight", script)
    done = preflight("python", script=script, PYTHON=str(python))
    assert done.returncode == (2 if sentence else 0)
    assert done.stdout == ("" if sentence else f"{python}\n")
    assert done.stderr.count("\n") == bool(sentence)
    assert sentence in done.stderr


def preflight(need, path=None, script=ROOT / ".ci" / "preflight", **environment):
    clean = {k: v for k, v in os.environ.items() if k not in {"JAVA_HOME", "PYTHON"}}
    clean["PATH"] = os.pathsep.join([*([str(path)] if path else []), clean["PATH"]])
    return subprocess.run(
        [script, need], env=clean | environment, capture_output=True, text=True, check=False
    )
