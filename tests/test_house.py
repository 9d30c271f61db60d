"""The house is in order: documentation runs, the wheel is whole, nothing depends on one machine."""

import ast
import doctest
import importlib
import os
import pkgutil
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from contextlib import suppress
from importlib import metadata
from itertools import chain
from pathlib import Path
from types import ModuleType

import pytest
from _pytest.config import _iter_rewritable_modules

import isolitmus
from isolitmus.model.plugins import PLUGINS

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


@pytest.fixture(scope="session")
def files() -> list[str]:
    """What git tracks or would track, as paths from the root; what is deleted is left out."""
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
    return [name for name in names if (ROOT / name).is_file()]


@pytest.mark.slow
@pytest.mark.parametrize("name", modules())
def test_examples_in_docstrings_run(name):
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in doctest.DocTestFinder().find(importlib.import_module(name)):
        # For each test without one, too, the runner would look at every file that was read.
        if test.examples:
            runner.run(test)
    assert runner.summarize().failed == 0


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
    assert {"isolitmus", *(f"isolitmus.{room.replace('/', '.')}" for room in rooms)} == set(EVERY)
    assert set(tool["ruff"]["lint"]["flake8-tidy-imports"]["banned-api"]) == set(FOLDERS)
    assert tool["importlinter"]["root_package"] == "isolitmus"
    assert tool["mypy"]["packages"] == PACKAGES
    assert tool["mypy"]["modules"] == ["isolitmus"]
    contracts = {c["name"]: c for c in tool["importlinter"]["contracts"]}
    layers = contracts["Arrows point one way"]["layers"]
    assert sorted(name for row in layers for name in row.split(" | ")) == sorted(PACKAGES)
    for layer in FOLDERS:
        rows = contracts[f"Rooms of the {layer}"]["layers"]
        known = [name for row in rows for name in re.split(" [|:] ", row)]
        home = importlib.import_module(f"isolitmus.{layer}")
        rooms = [f"isolitmus.{layer}.{info.name}" for info in pkgutil.iter_modules(home.__path__)]
        assert sorted(known) == sorted(rooms)
    for folder in FOLDERS:
        assert (ROOT / folder / "py.typed").exists()


@pytest.mark.parametrize("package", EVERY)
def test_what_a_package_offers_is_never_a_module(package):
    """A submodule takes the place of a name that is spelled like it as soon as it is imported."""
    home = importlib.import_module(package)
    offered = getattr(home, "__all__", [])
    assert set(offered).isdisjoint(info.name for info in pkgutil.iter_modules(home.__path__))
    assert [name for name in offered if isinstance(getattr(home, name), ModuleType)] == []


def test_packages_alone_list_their_names(files):
    """Elsewhere a name without an underscore is one that others may import."""
    modules = [name for name in files if name.endswith(".py") and shipped(name)]
    listing = [name for name in modules if "\n__all__ = " in (ROOT / name).read_text("utf-8")]
    assert [name for name in listing if not name.endswith("__init__.py")] == []
    assert listing


def test_the_package_offers_each_function_once_and_imports_none_before_it_is_used():
    """Its three lists agree; `import isolitmus` is in every script, and is to cost nothing."""
    root = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))
    (typed,) = [node for node in root.body if isinstance(node, ast.If)]
    homes = {
        alias.asname or alias.name: f"{node.module.removeprefix('isolitmus.')}:{alias.name}"
        for node in typed.body
        for alias in node.names
    }
    assert homes == isolitmus.HOMES
    assert sorted(homes) == isolitmus.__all__ == dir(isolitmus)
    for name, home in homes.items():
        module, _, attribute = home.partition(":")
        offered = getattr(isolitmus, name)
        assert offered is getattr(importlib.import_module(f"isolitmus.{module}"), attribute)
        assert offered.__doc__
    code = "import sys, isolitmus; print([n for n in sys.modules if n.startswith('isolitmus.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    with pytest.raises(AttributeError, match="has no attribute 'predictt'"):
        isolitmus.predictt  # noqa: B018


def test_nothing_that_is_committed_is_a_link(files):
    """Windows makes a text file of one."""
    assert [name for name in files if (ROOT / name).is_symlink()] == []


@pytest.mark.skipif(not (ROOT / ".venv").exists(), reason="installed otherwise than by make env")
def test_tools_that_read_see_the_checkout_under_the_name_of_the_package():
    assert (ROOT / ".venv" / "types" / "isolitmus").resolve() == ROOT


def test_it_runs_as_a_module_and_says_its_version(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["isolitmus", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("isolitmus", run_name="__main__")
    assert not ended.value.code
    assert capsys.readouterr().out == f"isolitmus {PYPROJECT['project']['version']}\n"


ENGINES = "conformance", "pipeline", "databases", "jobs"
"""Where what is started is imported."""
BESIDE = {
    "cvc5": "the tests have it prove lemmas again",
    "dratify": "the tests have it check proofs",
    **dict.fromkeys(
        ("googleapis-common-protos", "grpcio", "grpcio-status", "zstandard"),
        "PySpark's client of Spark Connect imports them",
    ),
    **dict.fromkeys(
        ("check-jsonschema", "junitparser", "sarif-pydantic"),
        "the tests have it check the formats of lint",
    ),
    "numpydoc": "the tests have it check docstrings",
    "deltalake": "imported by a program that runs in an environment of its own",
    "pytest-timeout": "the tests have a limit",
    "pytest-xdist": "the tests run in two processes",
    "setuptools": "the tests build what ships",
}
"""What is imported and not declared, or declared and not imported, and why."""


@pytest.mark.slow
def test_declared_is_imported_and_imported_is_declared(files):
    """Else an installation ends in a traceback, or carries what nobody needs."""
    project = PYPROJECT["project"]
    extras = {
        name: distributions(wants) for name, wants in project["optional-dependencies"].items()
    }
    declared = distributions(project["dependencies"]).union(*extras.values())
    product = imported(filter(shipped, files))
    assert set(product) ^ declared == set(BESIDE)
    outside = {
        name: {folder for folder in product.get(name, ()) if folder not in ENGINES}
        for wants in extras.values()
        for name in wants
    }
    asked = {"pandas": {"model"}}  # to_pandas() says in a sentence that it is not there
    assert {name: where for name, where in outside.items() if where} == asked
    tests = imported(name for name in files if name.split("/")[0] in ("tests", "bench"))
    own = {"formats"}  # of the tests
    own |= {normal(f.stem) for f in map(Path, files) if str(f.parent) in ("tests", "bench")}
    assert set(tests) - own <= declared


def distributions(wants) -> set[str]:
    """The distributions of a list of requirements, by their normal names."""
    return {normal(re.match(r"[\w.-]+", want)[0]) for want in wants}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def imported(names) -> dict[str, set[str]]:
    """The distributions that these files import, wherever in them, each with the folders that
    do.
    """
    homes = metadata.packages_distributions()
    found = {}
    for name in names:
        if name.endswith(".py"):
            for node in ast.walk(ast.parse((ROOT / name).read_text(encoding="utf-8"))):
                match node:
                    case ast.Import():
                        tops = [alias.name for alias in node.names]
                    case ast.ImportFrom(module=str(module), level=0):
                        tops = [module]
                    case _:
                        continue
                for top in {top.partition(".")[0] for top in tops}:
                    if top not in sys.stdlib_module_names and top != "isolitmus":
                        for home in homes.get(top, [top]):
                            found.setdefault(normal(home), set()).add(name.split("/")[0])
    return found


def test_constraints_are_names_and_versions():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.!+]+", line)] == []
    names = [normal(line.partition("==")[0]) for line in lines]
    assert len(set(names)) == len(names)
    wanted = [
        *PYPROJECT["project"]["dependencies"],
        *chain.from_iterable(PYPROJECT["project"]["optional-dependencies"].values()),
        *chain.from_iterable(PYPROJECT["dependency-groups"].values()),
    ]
    assert distributions(wanted) <= set(names), "not pinned"


@pytest.mark.slow
def test_nothing_depends_on_one_machine(files):
    found = [
        f"{name}:{number}: {line.decode(errors='replace').strip()[:100]}"
        for name in files
        for number, line in enumerate((ROOT / name).read_bytes().splitlines(), 1)
        if MACHINE.search(line) or INDEX.search(line)
    ]
    assert found == []


def shipped(name: str) -> bool:
    """Whether a file of the checkout is one of the package."""
    page = name.startswith("docs/") and name.endswith((".md", ".svg"))
    root = name in ("__init__.py", "__main__.py", "py.typed")
    return page or root or name.partition("/")[0] in FOLDERS


@pytest.fixture(scope="module")
def built(files, tmp_path_factory) -> Path:
    """A folder with the sdist of this checkout, that unpacked, and the wheel that is built of
    it.
    """
    folder = tmp_path_factory.mktemp("built")
    for name in files:
        (folder / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / "tree" / name)
    build(folder / "tree", f"build_sdist({str(folder)!r})")
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (folder / sdist.name.removesuffix(".tar.gz")).rename(folder / "sdist")
    build(folder / "sdist", f"build_wheel({str(folder)!r})")
    return folder


@pytest.mark.slow
def test_sdist_holds_every_file(files, built):
    """With it one can do what one can with a checkout: run the tests, read the pages, build."""
    made = {"PKG-INFO", "setup.cfg"}
    found = {
        str(f.relative_to(built / "sdist"))
        for f in (built / "sdist").rglob("*")
        if f.is_file() and "isolitmus.egg-info" not in f.parts and "build" not in f.parts
    }
    assert found - made == {*files}


@pytest.mark.slow
def test_wheel_holds_every_file_of_every_package(files, built):
    """By way of the sdist, as installers do; the build backend is the pinned one, no network."""
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert inside == {f"isolitmus/{name}" for name in files if shipped(name)}
    # Else pytest warns in every suite, and takes whatever is called `model` there for a part of a
    # plugin.
    assert {*_iter_rewritable_modules(inside)} == {"isolitmus"}


@pytest.fixture(scope="module")
def install(built, tmp_path_factory):
    """install(part): what `pip install` of the wheel alone would run, perhaps without one part: it,
    and what it says that it needs; nothing else is seen.

    Returns a function that calls `isolitmus` with some words in an empty folder.
    """
    (wheel,) = built.glob("*.whl")

    def unpacked(part=None):
        site = tmp_path_factory.mktemp("site")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site)
        if part is not None:
            shutil.rmtree(site / "isolitmus" / part)
        todo = list(distributions(PYPROJECT["project"]["dependencies"]))
        seen = set()
        while todo:
            if (name := todo.pop()) in seen:
                continue
            seen.add(name)
            with suppress(metadata.PackageNotFoundError):  # of another system or Python
                needed = metadata.distribution(name)
                todo += distributions(w for w in needed.requires or () if "extra ==" not in w)
                for top in {file.parts[0] for file in needed.files} - {"..", "__pycache__"}:
                    if not (site / top).exists():
                        (site / top).symlink_to(needed.locate_file(top))
        return site

    def install(part=None):
        site, empty = unpacked(part), tmp_path_factory.mktemp("empty")
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "ISOLITMUS_"))}
        clean |= {"PYTHONPATH": str(site), "XDG_CACHE_HOME": str(empty / "cache")}
        (empty / "lost.edn").write_text(LOST)
        (empty / "jobs.toml").write_text(JOBS)

        def call(*words, program=("-m", "isolitmus")):
            return subprocess.run(
                [sys.executable, "-S", *program, *words],
                cwd=empty,
                env=clean,
                capture_output=True,
                text=True,
                check=False,
            )

        return call

    return install


@pytest.fixture(scope="module")
def installed(install):
    return install()


LOST = """{:type :ok, :f :txn, :process 0, :value [[:r :x nil] [:w :x 1]], :index 0}
{:type :ok, :f :txn, :process 1, :value [[:r :x nil] [:w :x 2]], :index 1}
"""
"""A lost update in Elle's format."""
JOBS = """ddl = "CREATE TABLE t (id INT) USING delta"
[jobs]
erase = "DELETE FROM t WHERE id = 1"
"""
"""A job that aborts another run of itself."""


@pytest.mark.slow
def test_the_help_names_a_folder_with_the_pages(installed):
    text = installed("-h").stdout
    (folder,) = re.findall(r"the folder docs is in\n\s*(.*)", text)
    for page in re.findall(r"docs/\w+\.md", text):
        assert (Path(folder) / page).is_file()


ALONE = {
    "--version": 0,
    "show": 0,
    "show reorder": 0,
    "run reorder": 0,
    "check reorder --level serializable": 0,
    "separate delta-write-serializable log-serializable": 1,
    "sweep two-partitions --transactions 2": 1,
    "matrix --layout unpartitioned --sample 3": 0,
}
"""The status of what needs no engine; the demo is below, and predicts all the same."""
WITHOUT = {
    "run reorder --engine delta": "isolitmus[spark]",
    "run reorder --engine deltalake": "isolitmus install",
    "explore tables --count 1": "isolitmus[spark]",
    "sweep two-partitions --transactions 2 --spark": "isolitmus[spark]",
    "audit . --spark": "isolitmus[spark]",
    "demo": "isolitmus[spark]",
}
"""What is said of how to get an engine, by what wants one."""


@pytest.mark.slow
@pytest.mark.parametrize(("words", "status"), ALONE.items())
def test_the_wheel_alone_does_what_needs_no_engine(installed, words, status):
    done = installed(*words.split())
    assert (done.returncode, done.stderr) == (status, "")
    assert done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("words", "remedy"), WITHOUT.items())
def test_the_wheel_alone_says_in_one_sentence_how_to_get_an_engine(installed, words, remedy):
    done = installed(*words.split())
    assert done.returncode == 4
    (sentence,) = [line for line in (done.stdout + done.stderr).splitlines() if remedy in line]
    assert (words == "demo") == (done.stderr == "")  # whose answer is the report
    assert done.stderr in ("", f"{sentence}\n")


SMOKES = {
    "proper": ("run reorder", 0, "reorder"),
    "jobs": ("predict jobs.toml", 1, "erase can abort."),
    "histories": ("check lost.edn --level serializable", 1, "Serializable forbids it"),
    "databases": ("run halves-of-a-sum", 0, "halves-of-a-sum"),
    "pipeline": ("report nowhere", 2, "no tables of a sweep are there"),
    "claims": ("show D9", 0, "D9 (claim)"),
}
"""What each part does without an engine: words, status, and a part of the answer."""
SPARK = "sweep two-partitions --transactions 2 --spark"


def test_every_part_has_a_smoke():
    contracts = {c["name"]: c for c in PYPROJECT["tool"]["importlinter"]["contracts"]}
    parts = contracts["Arrows point one way"]["layers"][0].split(" | ")
    assert {*SMOKES} - {"proper"} == {part.removeprefix("isolitmus.") for part in parts}


@pytest.mark.slow
@pytest.mark.parametrize("part", [part for part in SMOKES if part != "proper"])
def test_a_part_can_be_taken_away(install, part):
    """The rest imports, runs as before, and says in one sentence what is missing."""
    call = install(part)
    found = call(program=("-c", IMPORT_ALL))
    assert (found.returncode, found.stdout, found.stderr) == (0, "[]\n", "")
    assert call("--help").returncode == 0
    for name, (words, status, answer) in SMOKES.items():
        done = call(*words.split())
        said = done.stdout + done.stderr
        if name == part:
            assert done.returncode == 2
            if name != "claims":  # a name of its catalogue is unknown without it
                assert f"it is in isolitmus.{part}, a part of isolitmus that is not" in done.stderr
            assert done.stderr.count("\n") == 1
        else:
            assert (done.returncode, answer in said) == (status, True), said
    if part == "pipeline":
        assert "it is in isolitmus.pipeline, a part" in call(*SPARK.split()).stderr
    if part == "databases":  # the evidence of some claims is read with it
        said = " ".join(call("show", "Q1").stdout.split())
        assert "Verdict: undecided" in said
        assert "evidence was not read: there is no format 'locking' here" in said
    if part == "claims":
        assert "it is in isolitmus.claims, a part" in call("claims").stderr
    verbs = {name: path.split(".")[1] for name, path in PLUGINS["verb"].items()}
    lines = call("--help").stdout.splitlines()
    listed = {line.split()[0] for line in lines if re.match(r"  [a-z]+  ", line)}
    assert {verb for verb in verbs if verb in listed} == {
        v for v, of in verbs.items() if of != part
    }


IMPORT_ALL = """
import importlib, pkgutil, isolitmus
walked = pkgutil.walk_packages(isolitmus.__path__, "isolitmus.")
names = [one.name for one in walked if not one.name.endswith("__main__")]
missing = []
for name in names:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("isolitmus"):
            missing.append((name, error.name))
print(missing)
"""
"""Import every module of ours; print those that want one of ours that is not there."""


@pytest.mark.slow
def test_a_package_index_shows_no_link_that_leads_nowhere(built):
    """It has the README, and no file beside it."""
    text = (built / "sdist" / "PKG-INFO").read_text(encoding="utf-8").partition("\n\n")[2]
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert prose.startswith("# isolitmus\n")
    targets = re.findall(r"\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)", prose)
    assert [t for t in map("".join, targets) if not t.startswith("https://")] == []


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


@pytest.mark.slow
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
