"""What is cited is there: pages and sections, theorems, claims, litmus tests, files, modules,
links.

A citation of a page is its path and, after a comma, a section's number or title, a theorem, or a
hole: ``docs/delta.md, 2.3``, ``docs/semantics.md, Theorem 5``, ``docs/delta.md, H1``. A claim is a
number, D35, an entry of ``specs/claims``.
"""

import importlib
import os
import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path

import pytest
from level_forms import FORMS
from pages import FOLDERS as PARTS

from isolitmus.claims.claim import cited_claims
from isolitmus.claims.claims_file import claims
from isolitmus.databases.locking.protocol_rules import RANGES, RELEASES, VICTIMS
from isolitmus.databases.observations import observations
from isolitmus.histories.blackbox.check import ASKED
from isolitmus.model.vocabulary import RELATIONS
from isolitmus.specs.disk.input_files import shipped_files
from isolitmus.specs.files.catalogue import matrices, matrix
from isolitmus.specs.files.evidence_files import ExplorationEvidence
from isolitmus.specs.registries import format_named

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
LAYERS = "|".join(PARTS)

SECTION = r'(?:\d+(?:\.\d+)*\b|H\d\b|(?:Theorem|Lemma|Corollary)s? \d+\w?|"[^"]+")'
PAGE = re.compile(
    rf"(?<![\w./-])((?:docs/|bench/)?[\w-]+\.md)\b(?!#)(?:, ({SECTION}(?:(?:,| and) {SECTION})*))?"
)
STATED = re.compile(
    r"(?<!\d{4}, )\b(Theorem|Lemma|Corollary)(?:s?) (\d+\w?)(?: (?:and|to) (\d+\w?))?"
)
HOLE = re.compile(r"\bH\d\b")
PATH = re.compile(rf"(?<![\w/.}}-])((?:{LAYERS}|tests|docs|bench)/[\w./*-]*\w|proofs/\w+\.v\b)")
MODULE = re.compile(rf"`(?:isolitmus\.)?((?:{LAYERS})(?:\.\w+)+)(?:\([^`]*\))?`")
SOURCE = re.compile(r"[\w-]+\.py\b")
NAME = re.compile(r"`([a-z][a-z0-9]*(?:-[a-z0-9]+)+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")

NOT_OURS = {
    "PROTOCOL.md", "artifact.md", "base.py", "captured.py", "FILE.py", "job.py", "jobs.py", "jobs.yml",
    "jobs.NAME",
}  # fmt: skip
"""Files of Delta and of PySpark that are named, of a command, and names that stand for a user's
file.
"""
OF_THE_SITE = {"mkdocs.yml", "docs/site_hooks.py"}
"""Files that name pages by their place in the site; `make docs` fails if one is not there."""
QUOTING = ("tests/", "checker/render/", "claims/")
"""Code that names a page alone, in quotes, and knows its folder."""
FOLDERS_OF_PAGES = ("docs/", "docs/results/", "docs/results/documents/")
NO_CLAIMS = {"pyproject.toml", "conformance/evidence/pairs.toml"}
"""Files with what only looks like a claim: the rules of a linter, letters of outcomes."""


def listed() -> dict[str, str]:
    """Every file of text that git tracks or would track, by its path, with the text."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = f"not a checkout that git reads: {done.stderr.strip()}"
        pytest.skip(reason, allow_module_level=True)
    texts = {}
    for name in sorted(set(done.stdout.split("\0")) - {""}):
        path = ROOT / name
        if path.is_file() and not path.is_symlink():
            texts[name] = path.read_bytes().decode("utf-8", "ignore")
    return texts


TEXTS = listed()
PAGES = {name: text for name, text in TEXTS.items() if name.endswith(".md")}
FOLDERS = {str(folder) for name in TEXTS for folder in Path(name).parents}
SOURCES = {Path(name).name for name in TEXTS if name.endswith(".py")}


@cache
def sections(page: str) -> frozenset[str]:
    """What of a page can be cited: numbers and titles of its headings, and what it labels in bold
    or in a first cell.
    """
    text = FENCE.sub("", PAGES[page])
    headings = re.findall(r"^#+ (?:(\d+(?:\.\d+)*)\. )?(.*)$", text, re.MULTILINE)
    labels = re.findall(
        r"^(?:\*\*|\| )((?:Theorem|Lemma|Corollary) \d+\w?|[DHNQ]\d+[a-z]?)\b", text, re.MULTILINE
    )
    return frozenset({part for heading in headings for part in heading if part} | set(labels))


@cache
def anchors(page: str) -> frozenset[str]:
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", PAGES[page]), re.MULTILINE)
    return frozenset(re.sub(r"[^\w -]", "", h).lower().replace(" ", "-") for h in headings)


KINDS_NAMED = ("levels", "protocols", "litmus", "scopes")


@cache
def known() -> frozenset[str]:
    """What a page may name by words with hyphens between them, besides what its own lists name."""
    of_matrices = {name for each in matrices() for name in matrix(each).statements}
    of_every_format = {name for kind in KINDS_NAMED for name in shipped_files(kind)}
    names = {*of_every_format, *RELATIONS, *FORMS, *of_matrices}
    names |= {*observations(), *RELEASES, *RANGES, *VICTIMS, *ASKED}
    return frozenset(names | {"no-op", "park-init", "park-prepare", "park-commit"})


def problems(name: str, text: str) -> list[str]:
    """What a file cites and what is not there."""
    flat = re.sub(r"\s*\n\s*(?:#\s+)?", " ", text)
    found = [*in_words(name, flat), *in_code(name, flat)]
    if name.endswith(".md"):
        found += in_page(name, FENCE.sub("", text))
    return [f"{name}: {problem}" for problem in dict.fromkeys(found)]


def in_words(name: str, text: str):
    """Pages, sections, theorems, holes, claims."""
    for page, cited in PAGE.findall(text):
        named = page in PAGES or page in NOT_OURS
        beside = name.endswith(".md") and str(Path(name).parent / page).removeprefix("./") in PAGES
        alone = f'"{page}"' in text and name.startswith(QUOTING)
        alone = alone and any(f"{folder}{page}" in PAGES for folder in FOLDERS_OF_PAGES)
        if not (named or beside or alone or name in OF_THE_SITE):
            yield f"no page {page}"
        elif page in PAGES:
            for section in re.findall(SECTION, cited):
                wanted = section.strip('"').replace("Theorems", "Theorem")
                if wanted not in sections(page):
                    yield f"{page} has no {section}"
    theorems = sections("docs/semantics.md")
    for kind, first, last in STATED.findall(text):
        for number in filter(None, (first, last)):
            if f"{kind} {number}" not in theorems:
                yield f"no {kind} {number} in docs/semantics.md"
            elif "semantics.md" not in text and name != "docs/semantics.md":
                yield f"{kind} {number} of nobody; name docs/semantics.md in the file"
    for hole in HOLE.findall(text):
        if hole not in sections("docs/delta.md"):
            yield f"no hole {hole} in docs/delta.md"
    for number in () if name in NO_CLAIMS else cited_claims(text):
        if number not in claims():
            yield f"no claim {number} in specs/claims"


def in_code(name: str, text: str):
    """Files, folders and modules of the repository."""
    for path in PATH.findall(text):
        of_user = path.endswith(".sql")
        here = path in TEXTS or path in FOLDERS or ("*" in path and [*ROOT.glob(path)])
        if not (here or of_user):
            yield f"no file {path}"
    for source in SOURCE.findall(text):
        if source not in SOURCES | NOT_OURS and not name.startswith(("tests/", "docs/")):
            yield f"no file {source}"
    for dotted in MODULE.findall(text):
        if dotted not in NOT_OURS and not there(f"isolitmus.{dotted}"):
            yield f"nothing is called {dotted}"


@cache
def there(dotted: str) -> bool:
    """Whether there is such a module, or something in one."""
    parts = dotted.split(".")
    for k in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:k]))
        except ModuleNotFoundError:
            continue
        for part in parts[k:]:
            thing = getattr(thing, part, None)
        return thing is not None
    return False


def in_page(name: str, text: str):
    """Links, and names of the catalogue."""
    for target in LINK.findall(text):
        path, _, anchor = target.partition("#")
        to = os.path.normpath(Path(name).parent / path) if path else name
        if "://" in target:
            continue
        if to not in TEXTS and to not in FOLDERS:
            yield f"link to {target}"
        elif anchor and anchor not in anchors(to):
            yield f"no heading #{anchor} in {to}"
    own = set(re.findall(r"^\| `([\w-]+)` \|", text, re.MULTILINE))
    for word in NAME.findall(text):
        if word not in known() | own and f"as {word}" not in PAGES[name]:
            yield f"nothing is called {word}"


@pytest.mark.slow
def test_whatever_is_cited_is_there():
    mine = Path(__file__).relative_to(ROOT).as_posix()
    found = [p for name, text in TEXTS.items() if name != mine for p in problems(name, text)]
    assert len(TEXTS) > 300
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("model/a.py", "what interface.md says"),
        ("model/a.py", "what docs/interfaces.md says"),
        ("model/a.py", "(docs/delta.md, 2.9)"),
        ("model/a.py", "(docs/delta.md,\n# 2.3 and 99)"),
        ("model/a.py", "(docs/delta.md, H9)"),
        ("model/a.py", 'docs/transactions.md, "The key of a transaction"'),
        ("model/a.py", "(docs/semantics.md, Theorem 99)"),
        ("model/a.py", "by Theorem 5"),
        ("specs/litmus/a.toml", 'source = "Databricks (D35, D73)"'),
        ("specs/litmus/a.toml", 'source = "Databricks (D70-D73)"'),
        ("specs/a.cat", "(* as checker/reading/graphs.py *)"),
        ("specs/a.cat", "(* as graphes.py *)"),
        ("model/a.py", "see ``checker.judge.graph_semantics.judges``"),
        ("docs/delta.md", "[it](transactions.md#conf)"),
        ("docs/delta.md", "[it](transaction.md)"),
        ("docs/delta.md", "shown by `hole-in-partition`"),
    ],
)
def test_what_is_not_there_is_found(name, text):
    assert problems(name, text)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("model/a.py", "docs/delta.md, 2.3 and 3.1, or docs/delta.md, H1 (PROTOCOL.md)"),
        ("model/a.py", '(docs/semantics.md,\n    Theorems 1 and 3); docs/transactions.md, "Confs"'),
        ("specs/a.cat", "(* Cerone and Gotsman, PODC 2016, Theorem 99 *)"),
        ("specs/litmus/a.toml", 'source = "Databricks (D32c, D54-D57)"'),
        (
            "docs/delta.md",
            "[it](transactions.md#confs) and `hole-partitioned`, `isolitmus.checker.run`",
        ),
    ],
)
def test_what_is_there_is_found(name, text):
    assert problems(name, text) == []


def figure(number):
    """As a page writes it."""
    return f"{number:,}"


@pytest.mark.slow
def test_figures_of_what_was_seen_are_those_of_the_evidence():
    evidence = ROOT / "conformance" / "evidence"
    pairs = tomllib.loads((evidence / "pairs.toml").read_text("utf-8"))
    shown = matrix("pairs")
    assert pairs["cases"] == 2 * len(shown.layouts) * len(shown.statements) ** 2
    assert pairs["unlike"] == 0
    kinds = [each.name for each in format_named("delta").random]
    batches = ExplorationEvidence.read(evidence / "random.toml", kinds)
    tables, raw = (figure(batches.runs(kind)) for kind in kinds)
    for name, engine, levels, also in (
        ("derby", "Derby", "four levels", "tests with endless waits, too; "),
        ("postgres", "PostgreSQL", "three levels, drawn as Derby's", ""),
    ):
        path = evidence / f"{name}.toml"
        known = ExplorationEvidence.read(path, ["sessions"])
        asked = tomllib.loads(path.read_text("utf-8"))["batches"]
        assert not any(batch["unsaid"] for batch in asked)
        seen = (
            f"has {figure(known.runs('sessions'))} random tests on {engine} {known.engine_version}"
            f" at its {levels}, all as predicted: {also}{sum(batch['several'] for batch in asked)}"
            " as one of several"
        )
        assert seen in re.sub(r"\s+", " ", PAGES["docs/locking.md"])
    page = re.sub(r"\s+", " ", PAGES["docs/conformance.md"])
    for said in (
        f"All {figure(pairs['cases'])} cases were run, and all were as predicted",
        f"has {tables} on tables and {raw} of raw transactions, all as predicted",
        f"| each pair of {len(shown.statements)} statements, in six layouts, at both levels |",
    ):
        assert said in page
    assert f"every pair of {len(shown.statements)} statements" in PAGES["docs/conflicts.md"]
    assert len(shown.layouts) == 6
