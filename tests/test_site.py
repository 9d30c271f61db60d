"""The site of docs/, as `make docs` builds it."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RELEASE = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]


def test_release_and_license_are_one():
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"version: {RELEASE}\nlicense: Apache-2.0\n" in citation
    assert f"Release {RELEASE} " in (ROOT / "docs" / "index.md").read_text("utf-8")
    assert f"## {RELEASE}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site's folder."""
    pytest.importorskip("mkdocs", reason="pip install mkdocs-material")
    folder = tmp_path_factory.mktemp("site")
    (tree := tmp_path_factory.mktemp("tree")).rmdir()
    outside = shutil.ignore_patterns(".*", "build", "report", "conformance", "checker", "specs")
    shutil.copytree(ROOT, tree, ignore=outside)
    (tree / "docs" / "__pycache__").mkdir(exist_ok=True)
    (tree / "docs" / "__pycache__" / "site_hooks.pyc").write_bytes(b"")
    words = ["mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=tree, env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return folder


@pytest.mark.slow
def test_only_pages_and_what_they_show_are_there(site):
    assert [path for path in site.rglob("*") if path.name == "__pycache__"] == []
    assert list(site.rglob("*.py*")) == []


@pytest.mark.slow
def test_pages_show_what_they_have_to(site):
    """Pictures lead to themselves and have a least width, consoles are plain, a page has a foot."""
    index = (site / "index.html").read_text("utf-8")
    assert f"isolitmus {RELEASE}, Apache License 2.0" in index
    assert "$ <strong>isolitmus demo --no-spark</strong>\n" in index
    assert "language-console" not in index
    levels = (site / "levels.html").read_text("utf-8")
    for path in ("levels-light.svg", "levels-on-tables-dark.svg"):
        assert re.search(
            rf'<a href="{path}"><img [^>]*src="{path}#only-(light|dark)"[^>]*min-width: \d+px',
            levels,
        )
        assert (site / path).is_file()
    assert 'href="docs/' not in (site / "overview.html").read_text("utf-8")


@pytest.mark.slow
def test_an_anomaly_weighs_more_than_the_levels_that_forbid_it(site):
    documents = json.loads((site / "search" / "search_index.json").read_text("utf-8"))["docs"]
    weight = {one["location"]: one.get("boost", 1) for one in documents}
    levels = {of for place, of in weight.items() if place.startswith("results/levels/")}
    assert max(levels) < 1 < weight["results/anomalies.html"]
