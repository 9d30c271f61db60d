"""How each theorem of docs/semantics.md is known: the data of the list "theorems" of that page.

``tests/test_theorems.py`` checks each entry: the section, the tests, the command and the script are
there, and what they are about is the theorem.
"""

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
CERTIFICATES = "tests/checker/prove/test_certificates.py"
FORMS = "tests/checker/execution/test_theorems.py"
MODEL = "tests/checker/execution/test_model_engine.py"
ROBUST = "tests/jobs/robust/test_robustness_laws.py"
LATECOMERS = "tests/checker/judge/test_spec_properties.py"
SWEEPS = "tests/checker/sweeps/test_table_sweep.py"
ROW_LEVEL = "tests/checker/search/test_proposals.py"
INVARIANTS = "tests/jobs/invariants/test_invariant_laws.py"


@dataclass(frozen=True)
class Status:
    """Evidence of one theorem; what is empty is not there."""

    paper: str = ""
    """Title of the section of the page that has the proof, or the file whose head has it."""
    scope: str = ""
    """Histories among which tests look for a counterexample."""
    tests: tuple[tuple[str, str], ...] = ()
    """The file and the name of each of these tests."""
    command: str = ""
    """Command, without ``isolitmus``, that proves it for any number of transactions."""
    script: str = ""
    """Coq script that states and proves it."""

    @property
    def is_certified(self) -> bool:
        """Return whether a test has another solver prove the lemmas of the command again."""
        _, *pair_and_options = self.command.split() or [""]
        return tuple(pair_and_options[:2]) in certified() and len(pair_and_options) == 3


@cache
def certified() -> frozenset[tuple[str, str]]:
    """The pairs of specs whose proofs another solver repeats: PROVED of the tests of certificates."""
    for node in ast.parse((ROOT / CERTIFICATES).read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "PROVED":
            return frozenset(ast.literal_eval(node.value))
    raise AssertionError(f"{CERTIFICATES} has no PROVED")


LATTICE = "scope `lattice`: all histories of up to 3 writers"
LATTICE_TEST = (FORMS, "test_the_lattice_of_the_forms")
JOBS = "random jobs, 2 and 3 runs of each"
JOBS_TESTS = (
    (ROBUST, "test_safe_is_what_a_search_says"),
    (ROBUST, "test_what_a_search_finds_is_not_safe"),
)
INVARIANTS_STATUS = {
    "scope": "random jobs and invariants: small schedules",
    "tests": ((INVARIANTS, "test_answers_agree_with_brute_force"),),
}

THEOREMS = {
    "Theorem 1": Status(scope=LATTICE, tests=(LATTICE_TEST,)),
    "Theorem 2": Status(
        paper="checker/prove/arguments.py",
        command="separate serializable log-serializable --unbounded --every-version-read",
    ),
    "Theorem 3": Status(
        scope=f"{LATTICE}; random histories of 3 and 4 transactions",
        tests=(
            (FORMS, "test_theorem_3_one_order_by_conflicts_explains_every_version"),
            (MODEL, "test_an_order_of_the_writers_explains_every_version"),
        ),
    ),
    "Theorem 4": Status(
        paper="checker/prove/arguments.py",
        scope="random histories of 3 and 4 transactions",
        tests=((MODEL, "test_an_order_of_the_writers_explains_every_version"),),
        command="separate write-serializable snapshot-isolation --unbounded",
    ),
    "Theorem 5": Status(
        paper="Why Theorem 5 holds",
        scope="random histories of up to 4 transactions with tracked reads",
        tests=((MODEL, "test_serializable_as_checked_has_no_backward_edge"),),
        command="separate delta-serializable log-serializable --unbounded",
        script="theorem_5",
    ),
    "Theorem 6": Status(
        paper="Why Theorem 6 holds",
        scope="scope `lattice`: 18 holes of 3 writers",
        tests=((FORMS, "test_theorem_6_every_hole_has_a_bridge_over_a_blind_append"),),
        script="theorem_6",
    ),
    "Corollary 6a": Status(script="corollary_6a"),
    "Corollary 6b": Status(
        command="separate delta-write-serializable-repaired write-serializable --unbounded",
        script="corollary_6b",
    ),
    "Theorem 7": Status(
        scope="random histories of up to 2 transactions with tracked reads",
        tests=((MODEL, "test_two_writers_cannot_break_write_serializable"),),
        command="separate delta-write-serializable write-serializable --unbounded --transactions 2",
        script="theorem_7",
    ),
    "Theorem 8": Status(
        scope="scope `lattice`: 986 violations",
        tests=((FORMS, "test_theorem_8_every_violation_has_a_dangerous_structure"),),
    ),
    "Theorem 9": Status(
        scope="one cycle of four", tests=((FORMS, "test_theorem_9_a_minimal_cycle_of_four"),)
    ),
    "Theorem 10": Status(
        scope="the example",
        tests=((FORMS, "test_theorem_10_tables_that_are_serializable_each_are_not_together"),),
    ),
    "Theorem 11": Status(paper="Why Theorem 11 holds", scope=JOBS, tests=JOBS_TESTS),
    "Theorem 12": Status(paper="Why Theorem 12 holds", scope=JOBS, tests=JOBS_TESTS),
    "Theorem 13": Status(
        scope="random frames; sweeps of the scopes of tests",
        tests=(
            (LATECOMERS, "test_a_latecomer_changes_nothing_where_it_is_said_to_be_ignored"),
            (SWEEPS, "test_the_kernel_counts_as_execution_one_by_one_does"),
        ),
    ),
    "Theorem 14": Status(paper="Why Theorem 14 holds", **INVARIANTS_STATUS),
    "Theorem 15": Status(paper="Why Theorems 15 and 16 hold", **INVARIANTS_STATUS),
    "Theorem 16": Status(paper="Why Theorems 15 and 16 hold", **INVARIANTS_STATUS),
    "Theorem 17": Status(paper="Why Theorems 15 and 16 hold", **INVARIANTS_STATUS),
    "Theorem 18": Status(
        paper="Why Theorem 18 holds",
        scope="scopes `vectors` and `vectors-two-files`: all histories of 2 writers",
        tests=((ROW_LEVEL, "test_a_rule_that_is_proved_admits_no_violation"),),
        command="separate case-2-repaired-serializable log-serializable --unbounded",
        script="row_level_repair",
    ),
    "Theorem 19": Status(
        paper="Why Theorem 19 holds",
        scope="scopes `vectors` and `vectors-two-files`: all histories of 2 writers",
        tests=((ROW_LEVEL, "test_a_rule_that_is_proved_admits_no_violation"),),
        command="separate case-1-values-serializable log-serializable --unbounded",
    ),
    "Theorem 20": Status(
        paper="Why Theorem 20 holds",
        scope="scopes `vectors` and `vectors-two-files`: all histories of 2 writers",
        tests=((ROW_LEVEL, "test_a_rule_that_is_proved_admits_no_violation"),),
        command="separate case-4-serializable log-serializable --unbounded",
    ),
}
