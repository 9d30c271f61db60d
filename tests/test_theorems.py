"""The theorems of docs/semantics.md: each status of the list is true, and the Coq scripts prove what
the page states, from the premises of the product's own proofs.
"""

import ast
import os
import re
import shutil
import subprocess
from functools import cache

import pytest
from theorem_status import ROOT, THEOREMS

from isolitmus.checker.prove.premises import PREMISES
from isolitmus.specs import spec

PAGE = (ROOT / "docs" / "semantics.md").read_text("utf-8")
COMPARING = (ROOT / "docs" / "comparing-levels.md").read_text("utf-8")
PROOFS = ROOT / "proofs"
CHECKER = ROOT / ".ci" / "proofs"
SCRIPTS = {name: status.script for name, status in THEOREMS.items() if status.script}
BY_COMMAND = {name: status.command for name, status in THEOREMS.items() if status.command}


def statements():
    """Each theorem and corollary of the page with its statement."""
    rows = re.findall(r"^\| (Theorem \w+) \| ([^|]+) \|$", PAGE, re.MULTILINE)
    paragraphs = re.findall(r"^\*\*(Corollary \w+)\.\*\* (.+?)\n\n", PAGE, re.MULTILINE | re.DOTALL)
    return dict([*rows, *paragraphs])


@cache
def script(name):
    return (PROOFS / f"{name}.v").read_text("utf-8")


@cache
def functions(file):
    nodes = ast.walk(ast.parse((ROOT / file).read_text("utf-8")))
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef)}


def plain(text):
    """A statement without Markdown, its arrows and spaces as in a script."""
    return " ".join(
        re.sub(r"[`–]", lambda m: "-" if m[0] == "–" else "", text).replace("→", "->").split()
    )


def test_the_list_has_every_theorem_and_each_is_known_somehow():
    assert set(THEOREMS) == set(statements())
    for name, status in THEOREMS.items():
        assert status.tests or status.command or status.script, name
        assert bool(status.tests) == bool(status.scope), name


CITING = [name for name, status in THEOREMS.items() if status.tests or status.paper]


@pytest.mark.parametrize("name", CITING)
def test_what_a_status_cites_is_there(name):
    status = THEOREMS[name]
    for file, test in status.tests:
        assert test in functions(file), test
    if status.paper.endswith(".py"):
        head = ast.get_docstring(ast.parse((ROOT / status.paper).read_text("utf-8")))
        assert f"({name})" in head
    elif status.paper:
        assert f"\n#### {status.paper}\n" in PAGE


@pytest.mark.parametrize("name", BY_COMMAND)
def test_a_cited_command_is_one_that_the_tests_of_pages_run(name):
    """The table of proved implications, of which test_docs.py runs each row."""
    verb, a, b, unbounded, *options = BY_COMMAND[name].split()
    assert (verb, unbounded) == ("separate", "--unbounded")
    asked = f"`{' '.join(options)}` " if options else ""
    assert f"\n| `{a}` | `{b}` | {asked}|\n" in COMPARING


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_states_its_theorem_in_the_words_of_the_page(name):
    text = script(SCRIPTS[name])
    assert text.startswith(f"(* {name}. docs/semantics.md, section 3.4:\n")
    statement = plain(statements()[name]).partition(" This check is ")[0]
    assert statement in plain(text[: text.index("*)")])
    assert f"\nTheorem {SCRIPTS[name]} (h : history)" in text
    assert f"\nPrint Assumptions {SCRIPTS[name]}.\n" in text


def premises_of(name):
    """The premises of the theorem that a script is named after, as Coq reads them, in order."""
    statement = re.search(
        rf"^Theorem {name} .*?:\n(.*?)\.\nProof", script(name), re.MULTILINE | re.DOTALL
    )
    *assumed, _conclusion = statement[1].split("forall i,")[0].split("->")
    return [words[0] for words in map(str.split, assumed) if words]


OF_THE_SOLVER = {
    "theorem_5": "theorem-5",
    "theorem_7": "theorem-7",
    "corollary_6b": "corollary-6b",
}
"""Scripts of what the product's prover proves as well, by its name in its tests."""


@pytest.mark.parametrize(("script_name", "proof"), OF_THE_SOLVER.items())
def test_a_script_has_the_premises_of_the_proof_by_the_solver(script_name, proof):
    path = ROOT / "tests" / "checker" / "prove" / "test_proofs.py"
    (named,) = [
        ast.literal_eval(node.value)
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.Assign) and node.targets[0].id == "PREMISE_NAMES"
    ]
    mine = {name.replace("_", "-") for name in premises_of(script_name)}
    of_scripts = {"finite", "two-writers"}
    checks = {"delta-serializable", "delta-write-serializable", "delta-write-serializable-repaired"}
    assert mine - of_scripts - checks == set(named[proof].split())


def test_premises_have_the_names_of_the_prover():
    defined = set(re.findall(r"^  Definition (\w+)", script("tables"), re.MULTILINE))
    known = {premise.name.replace("-", "_") for premise in PREMISES}
    assert known - defined == {"sessions", "no_restores"}  # of Theorem 4 alone


@pytest.mark.parametrize(
    ("needed", "theorems"),
    [
        ("premises_needed", ("theorem_5", "theorem_6")),
        ("row_level_premises_needed", ("row_level_repair",)),
    ],
)
def test_each_premise_but_finite_has_a_history_that_needs_it(needed, theorems):
    claims = set(re.findall(r"^  \| \w+ => (\w+) h(?: v)?$", script(needed), re.MULTILINE))
    used = {name for theorem in theorems for name in premises_of(theorem)}
    checks = {"delta_serializable", "delta_write_serializable", "row_level_rule_repaired"}
    assert used - checks - {"finite"} == claims


@pytest.mark.parametrize(
    ("script_name", "protocol"),
    [
        ("theorem_5", "delta-serializable"),
        ("theorem_6", "delta-write-serializable"),
        ("row_level_repair", "delta-serializable"),
    ],
)
def test_a_script_has_the_axioms_of_the_protocol(script_name, protocol):
    """But those that concern no row; the second of a name has a number."""
    record = re.search(r"Record \w+ : Prop := \{(.*?)\n  \}\.", script(script_name), re.DOTALL)[1]
    fields = re.findall(r"^    (\w+?)(?:_2)? :", record, re.MULTILINE)
    others = {"ProtocolChangedException", "ConcurrentTransactionException"}
    axioms = [axiom.name for axiom in spec(protocol).axioms if axiom.name not in others]
    assert fields == ["no_op", *axioms]


def check(folder, path=None):
    """What the checker of scripts prints for a folder; the path has the programs that it finds."""
    environment = os.environ | ({"PATH": str(path)} if path else {})
    done = subprocess.run(
        [CHECKER, folder], env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_without_coq_one_sentence_says_how_to_get_it(tmp_path):
    for program in ("sh", "dirname"):
        (tmp_path / program).symlink_to(shutil.which(program))
    status, out, error = check("proofs", tmp_path)
    assert (status, error) == (0, "")
    assert out.count("\n") == 1
    assert "apt-get install coq" in out


needs_coq = pytest.mark.skipif(not shutil.which("coqc"), reason="Coq is not installed")
WRONG = {
    "Theorem t : 1 = 2.\nProof. Admitted.\nPrint Assumptions t.\n": "assumes what is to be proved",
    "Axiom a : 1 = 2.\nTheorem t : 1 = 2.\nProof. exact a. Qed.\nPrint Assumptions t.\n": "assumes",
    "Hypothesis a : 1 = 2.\nTheorem t : 1 = 2.\nProof. exact a. Qed.\nPrint Assumptions t.\n": "Axioms:",
    "Theorem t : 1 = 1.\nProof. reflexivity. Qed.\n": "'Print Assumptions t.' is missing",
    "Theorem t : 1 = 2.\nProof. reflexivity. Qed.\nPrint Assumptions t.\n": "Unable to unify",
}


@needs_coq
@pytest.mark.slow
@pytest.mark.parametrize(("text", "why"), WRONG.items())
def test_what_is_no_proof_is_refused(tmp_path, text, why):
    (tmp_path / "wrong.v").write_text(f"(* A theorem. It is wrong. *)\n{text}", "utf-8")
    status, out, error = check(tmp_path)
    assert (status, out) == (1, "")
    assert error.startswith("not proved: ")
    assert why in error
    assert error.endswith("/wrong.v)\n")


@needs_coq
@pytest.mark.slow
def test_the_scripts_prove_their_theorems():
    status, out, error = check("proofs")
    assert (status, error) == (0, "")
    lines = out.splitlines()
    assert len(lines) == len([*PROOFS.glob("*.v")])
    for name, file in SCRIPTS.items():
        assert f"proved: {name} (proofs/{file}.v)" in lines
    assert [line for line in lines if not line.startswith("proved: ")] == [
        line for line in lines if "tables.v" in line
    ]
