"""Certificates are refuted by programs that did not search: another solver, and a check of each step of the refutation."""

import sys

import pytest
import z3
from pysat.solvers import Solver

from isolitmus.cli.main import main


@pytest.fixture
def certified(monkeypatch, capsys, tmp_path):
    """A function that runs ``separate`` with a folder for its certificate, and gives status, output, errors and files."""

    def run(*words):
        folder = tmp_path / "certificate"
        monkeypatch.setattr(
            sys, "argv", ["isolitmus", "separate", *words, "--certificate", str(folder)]
        )
        with pytest.raises(SystemExit) as end:
            main()
        found = {path.name: path.read_text("utf-8") for path in folder.glob("*")}
        return end.value.code or 0, *capsys.readouterr(), found

    return run


def clauses(text):
    """The clauses of a DIMACS text whose head is right."""
    lines = text.splitlines()
    said = [line for line in lines if line[0] == "c"]
    assert said[-1] == "c to be refuted: unsatisfiable"
    head, *rest = lines[len(said) :]
    found = [[int(word) for word in line.split()] for line in rest]
    assert all(clause[-1] == 0 and 0 not in clause[:-1] for clause in found)
    variables = max(abs(literal) for clause in found for literal in clause)
    _, _, most, count = head.split()
    assert variables <= int(most) and int(count) == len(found)
    return [clause[:-1] for clause in found]


def follows(known, clause):
    """Whether a clause follows by unit propagation alone (RUP): what a checker of DRAT asks of each step."""
    with Solver("minisat22", bootstrap_with=known) as solver:
        consistent, _ = solver.propagate([-literal for literal in clause])
    return not consistent


SMALL = ["serializable", "snapshot-isolation", "--transactions", "1..2"]


def test_another_solver_refutes_the_clauses_and_each_step_follows(certified):
    status, _, _, files = certified(*SMALL)
    assert status == 0
    names = [f"serializable-snapshot-isolation-{n}" for n in (1, 2)]
    assert sorted(files) == sorted(f"{name}.{end}" for name in names for end in ("cnf", "drat"))
    for name in names:
        known = clauses(files[f"{name}.cnf"])
        with Solver("cadical153", bootstrap_with=known) as other:
            assert not other.solve()
        derived = []
        for step in files[f"{name}.drat"].splitlines():
            if step.startswith("d"):
                continue
            clause = [int(word) for word in step.split()][:-1]
            assert follows([*known, *derived], clause)
            derived.append(clause)
        assert derived[-1] == []


def test_half_of_the_clauses_are_satisfied(certified):
    """A certificate is about something."""
    *_, files = certified(*SMALL)
    known = clauses(files["serializable-snapshot-isolation-2.cnf"])
    with Solver("cadical153", bootstrap_with=known[: len(known) // 2]) as other:
        assert other.solve()


def test_what_is_found_is_certified_below(certified):
    status, _, _, files = certified("snapshot-isolation", "serializable")
    assert status == 1
    assert sorted(files) == [f"snapshot-isolation-serializable-1.{end}" for end in ("cnf", "drat")]


def test_a_proof_is_refuted_lemma_by_lemma(certified):
    status, _, _, files = certified("write-serializable", "snapshot-isolation", "--unbounded")
    assert status == 0 and len(files) == 4
    for text in files.values():
        assert text.splitlines()[1] == "; to be refuted: unsat"
        solver = z3.Solver(ctx=z3.Context())
        solver.from_string(text)
        assert str(solver.check()) == "unsat"


def test_another_solver_than_that_of_the_proof_refutes_each_lemma(certified):
    """cvc5, which chooses instances by their terms, since it is not told which."""
    cvc5 = pytest.importorskip("cvc5", reason="cvc5 is not installed: the extra 'test' has it")
    *_, files = certified("write-serializable", "snapshot-isolation", "--unbounded")
    for text in files.values():
        solver = cvc5.Solver(cvc5.TermManager())
        solver.setOption("enum-inst", "true")
        parser = cvc5.InputParser(solver)
        whole = f"(set-logic ALL)\n{text}"
        parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, whole, "certificate")
        said = []
        while not (command := parser.nextCommand()).isNull():
            said.append(command.invoke(solver, parser.getSymbolManager()).strip())
        assert [one for one in said if one] == ["unsat"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["serializable", "causal", "--by", "exhaustive"], "gives no certificate"),
        (["serializable", "causal", "--universe", "table"], "gives no certificate"),
    ],
)
def test_what_gives_none(words, said, certified):
    status, _, errors, files = certified(*words)
    assert (status, files) == (2, {}) and said in errors


def test_nothing_refuted_is_told(certified):
    words = ["snapshot-isolation", "serializable", "--transactions", "2"]
    status, _, errors, files = certified(*words)
    assert (status, files) == (1, {}) and "nothing was refuted" in errors
