"""Certificates: what our solver refuted, programs that are not ours refute again."""

import re

import cvc5
import pytest
from dratify import check_proof, parse_dimacs

from isolitmus.checker import compare, separate
from isolitmus.checker.prove.history_proof import derive_inclusion
from isolitmus.checker.search.inclusion_certificates import certify_lattice
from isolitmus.checker.search.unbounded_separation import separate_unbounded
from isolitmus.jobs.readers.workload_sources import workload
from isolitmus.jobs.robust.robustness import decide_robustness
from isolitmus.specs import protocol, scope, spec

ABSTRACT = [
    ("serializable", "snapshot-isolation"),
    ("snapshot-isolation", "prefix-consistency"),
    ("causal", "read-atomic"),
    ("serializable", "causal"),
]
TABLES = [
    ("delta-serializable", "log-serializable"),
    ("delta-write-serializable", "write-serializable"),
    ("write-serializable", "snapshot-isolation"),
]
PROVED = [
    ("delta-serializable", "log-serializable"),
    ("delta-write-serializable-repaired", "write-serializable"),
    ("write-serializable", "snapshot-isolation"),
    ("case-1-values-serializable", "log-serializable"),
    ("case-2-repaired-serializable", "log-serializable"),
    ("case-4-serializable", "log-serializable"),
]


def verified(clauses: str, proof: str) -> bool:
    """What a checker of DRAT proofs says."""
    found = check_proof(parse_dimacs(clauses), proof)
    return found.ok and found.reached_empty


def answered(question: str) -> str:
    """What another solver says of a text in SMT-LIB."""
    solver = cvc5.Solver(cvc5.TermManager())
    for option, value in (("full-saturate-quant", "true"), ("tlimit", "20000")):
        solver.setOption(option, value)
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, question, "question")
    symbols, said = parser.getSymbolManager(), ""
    while not (command := parser.nextCommand()).isNull():
        said += str(command.invoke(solver, symbols)).strip()
    return said


def pairs(certificate) -> list[tuple[str, str]]:
    """Questions and proofs, beside each other."""
    files = dict(certificate.files())
    names = [name.removesuffix(".cnf") for name in files if name.endswith(".cnf")]
    return [(files[f"{name}.cnf"], files[f"{name}.drat"]) for name in names]


@pytest.mark.slow
@pytest.mark.parametrize(("a", "b"), ABSTRACT, ids="/".join)
def test_none_up_to_a_number_of_transactions(a, b):
    answer = separate(spec(a), spec(b), transactions=range(1, 4), certify=True)
    assert answer.found is False
    found = pairs(answer.certificate)
    assert len(found) == 3
    for clauses, proof in found:
        assert verified(clauses, proof)


@pytest.mark.slow
@pytest.mark.parametrize(("a", "b"), TABLES, ids="/".join)
def test_none_up_to_a_number_of_statements(a, b):
    answer = separate(
        spec(a), spec(b), scope("two-partitions"), transactions=range(1, 3), certify=True
    )
    assert answer.found is False
    assert all(verified(clauses, proof) for clauses, proof in pairs(answer.certificate))
    assert pairs(answer.certificate)


@pytest.mark.slow
def test_clauses_that_have_a_model_have_no_proof():
    """Without what the second spec says the same proof is none."""
    answer = separate(spec("serializable"), spec("causal"), transactions=range(2, 4), certify=True)
    clauses, proof = pairs(answer.certificate)[-1]
    *lines, _last = clauses.splitlines()
    assert verified(clauses, proof)
    assert not verified("\n".join(lines), proof)


@pytest.mark.slow
def test_what_execution_refuses_is_left_out_by_name():
    """The circuit takes for forbidden what only values excuse; each such candidate is named, and
    nothing is left.
    """
    answer = separate(
        spec("delta-write-serializable"),
        spec("log-serializable"),
        scope("two-partitions"),
        transactions=range(1, 3),
        unexplained=True,
        certify=True,
    )
    assert answer.found is False
    assert answer.examined
    found = pairs(answer.certificate)
    named = [line for clauses, _ in found for line in clauses.splitlines() if "left out" in line]
    assert len(named) == answer.examined
    assert all(verified(clauses, proof) for clauses, proof in found)


@pytest.mark.slow
@pytest.mark.parametrize(("a", "b"), PROVED, ids="/".join)
def test_lemmas_are_proved_by_another_solver(a, b):
    answer = separate_unbounded(spec(a), spec(b), certify=True)
    assert answer.proved
    assert [one.name for one in answer.certificate.refutations] == [
        step.lemma for step in answer.proof.steps
    ]
    for one in answer.certificate.refutations:
        assert answered(one.text) == "unsat", one.name


@pytest.mark.slow
def test_a_lemma_needs_its_premises():
    answer = separate_unbounded(spec("delta-serializable"), spec("log-serializable"), certify=True)
    last = answer.certificate.refutations[-1].text
    assert answered(last) == "unsat"
    took = answer.proof.steps[-1].took
    without = last
    for tool in took:
        without, removed = re.subn(rf"\(assert\s+{re.escape(tool)}\)", "", without)
        assert removed == 1, tool
    assert answered(without) != "unsat"


@pytest.mark.slow
def test_what_is_safe_is_proved_by_another_solver():
    found = decide_robustness(
        workload("shop"), protocol("delta-write-serializable"), "write-serializable"
    )
    assert found.word == "safe"
    for one in found.certificate.refutations:
        assert answered(one.text) == "unsat", one.says


@pytest.mark.slow
def test_the_folder(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, _, err = call(
        "separate", "serializable", "snapshot-isolation", "--both", "--certificate", "proofs"
    )
    assert (status, err) == (1, "")
    (folder,) = (tmp_path / "proofs").iterdir()
    assert folder.name == "serializable-within-snapshot-isolation"
    readme = (folder / "README.md").read_text("utf-8")
    assert "up to 4 transactions in search space 'abstract'" in readme
    assert all(file.name in readme for file in folder.glob("*.cnf"))
    assert spec("serializable").text.rstrip() in readme
    for file in folder.glob("*.cnf"):
        assert verified(file.read_text("utf-8"), file.with_suffix(".drat").read_text("utf-8"))


DERIVED = [
    ("serializable", "serializable-cerone"),
    ("serializable-biswas-enea", "serializable-crooks"),
    ("prefix-consistency", "causal-in-version-order"),
    ("pl-2-plus", "pl-cs"),
    ("repeatable-read-berenson", "no-write-skew"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("a", "b"), DERIVED, ids="/".join)
def test_what_follows_by_the_laws_of_histories_is_proved_by_another_solver(a, b):
    steps = derive_inclusion(spec(a), spec(b)).steps
    assert steps
    for one in steps:
        assert answered(one.text) == "unsat", one.says


@pytest.mark.slow
def test_what_is_derived_needs_its_facts():
    """Without what the first level demands another solver finds no contradiction."""
    demanded = r"; serial-order of serializable\n\(assert .*\)\n"
    steps = derive_inclusion(spec("serializable"), spec("serializable-crooks")).steps
    (one, *_) = [step.text for step in steps if re.search(demanded, step.text)]
    assert answered(one) == "unsat"
    assert answered(re.sub(demanded, "", one)) != "unsat"


@pytest.mark.slow
def test_the_folder_of_a_comparison(call, tmp_path, monkeypatch):
    """Of each inclusion that is shown: questions that another solver refutes, clauses with a proof,
    or why it has none.
    """
    monkeypatch.chdir(tmp_path)
    names = ("serializable", "serializable-crooks", "read-atomic", "read-committed-biswas-enea")
    status, out, err = call(
        "compare", *names, "--universe", "abstract", "--transactions", 2, "--certificate", "proofs"
    )
    assert (status, err) == (0, "")
    readme = (tmp_path / "proofs" / "README.md").read_text("utf-8")
    folders = {file.name for file in (tmp_path / "proofs").iterdir() if file.is_dir()}
    shown = re.findall(r"^   ([\w-]+) implies ([\w-]+): ", out, re.MULTILINE)
    assert folders == {f"{a}-within-{b}" for a, b in shown}
    assert all(f"]({name}/README.md)" in readme for name in folders)
    searched = tmp_path / "proofs" / "read-atomic-within-read-committed-biswas-enea"
    assert {file.suffix for file in searched.iterdir()} == {".md", ".cnf", ".drat"}
    for file in (tmp_path / "proofs").glob("*/*.cnf"):
        assert verified(file.read_text("utf-8"), file.with_suffix(".drat").read_text("utf-8"))
    questions = [*(tmp_path / "proofs").glob("*/*.smt2")]
    assert questions
    for file in questions:
        assert answered(file.read_text("utf-8")) == "unsat", file


@pytest.mark.slow
def test_an_inclusion_without_a_certificate_says_why():
    """On tables the laws of histories are not used, and a theorem of tables is; what is enumerated
    has none.
    """
    specs = [
        spec(name) for name in ("write-serializable", "snapshot-isolation", "prefix-consistency")
    ]
    found = certify_lattice(compare(specs, scope("table"), transactions=2), specs)
    (theorem,) = found.certificates
    assert theorem.name == "write-serializable-within-snapshot-isolation-in-table"
    assert all(answered(one.text) == "unsat" for one in theorem.refutations)
    (words,) = found.without
    assert words.startswith(
        "snapshot-isolation implies prefix-consistency in search space 'table': proved by the texts"
    )


@pytest.mark.slow
def test_what_was_enumerated_has_no_certificate(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = "serializable", "snapshot-isolation", "--by", "exhaustive", "--certificate", "proofs"
    status, _, err = call("separate", *words)
    assert status == 2
    assert "is enumerated; leave out --certificate or --by" in err
    assert not list(tmp_path.glob("proofs/*"))
