"""isolitmus as a library: one function for each command, and the readers of what they take.

docs/python.md lists them. A name is imported when it is first used. This module itself imports
nothing, not even from Python's own library: for ``python -m isolitmus`` it is executed before
``__main__`` takes the current folder from the path.
"""

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from isolitmus.checker.auditing.diagnosis import explain
    from isolitmus.checker.auditing.log_audit import audit
    from isolitmus.checker.checks.history_check import check
    from isolitmus.checker.execution.conflict_matrix import predict_cells as matrix
    from isolitmus.checker.execution.dependency_graph import graph
    from isolitmus.checker.execution.run_result import run
    from isolitmus.checker.search.lattice_search import compare
    from isolitmus.checker.search.repair import repair
    from isolitmus.checker.search.separation import separate
    from isolitmus.checker.sweeps.table_sweep import sweep
    from isolitmus.claims.claim_evidence import verify_claims
    from isolitmus.conformance.agreement import explore
    from isolitmus.conformance.delta.engine import replay
    from isolitmus.conformance.delta.session import open_session
    from isolitmus.conformance.engines import open_engine
    from isolitmus.conformance.python_export import export_tests as export
    from isolitmus.conformance.racing.interleavings import interleave
    from isolitmus.conformance.racing.races import race
    from isolitmus.jobs.invariants.invariants import decide_jobs as robust
    from isolitmus.jobs.lint.linter import lint_paths as lint
    from isolitmus.jobs.predict.prediction import predict_workload as predict
    from isolitmus.jobs.readers.workload_sources import workload
    from isolitmus.model.budget import Budget
    from isolitmus.model.history import History
    from isolitmus.model.litmus import Litmus
    from isolitmus.pipeline.sweep_report import sum_tables as report
    from isolitmus.specs.files.catalogue import litmus, scope
    from isolitmus.specs.files.spec_catalogue import level, protocol, spec
    from isolitmus.specs.registries import install_engine as install

__all__ = [
    "Budget",
    "History",
    "Litmus",
    "audit",
    "check",
    "compare",
    "explain",
    "explore",
    "export",
    "graph",
    "install",
    "interleave",
    "level",
    "lint",
    "litmus",
    "matrix",
    "open_engine",
    "open_session",
    "predict",
    "protocol",
    "race",
    "repair",
    "replay",
    "report",
    "robust",
    "run",
    "scope",
    "separate",
    "spec",
    "sweep",
    "verify_claims",
    "workload",
]

HOMES = {
    "Budget": "model.budget:Budget",
    "History": "model.history:History",
    "Litmus": "model.litmus:Litmus",
    "audit": "checker.auditing.log_audit:audit",
    "check": "checker.checks.history_check:check",
    "compare": "checker.search.lattice_search:compare",
    "explain": "checker.auditing.diagnosis:explain",
    "explore": "conformance.agreement:explore",
    "export": "conformance.python_export:export_tests",
    "graph": "checker.execution.dependency_graph:graph",
    "install": "specs.registries:install_engine",
    "interleave": "conformance.racing.interleavings:interleave",
    "level": "specs.files.spec_catalogue:level",
    "lint": "jobs.lint.linter:lint_paths",
    "litmus": "specs.files.catalogue:litmus",
    "matrix": "checker.execution.conflict_matrix:predict_cells",
    "open_engine": "conformance.engines:open_engine",
    "open_session": "conformance.delta.session:open_session",
    "predict": "jobs.predict.prediction:predict_workload",
    "protocol": "specs.files.spec_catalogue:protocol",
    "race": "conformance.racing.races:race",
    "repair": "checker.search.repair:repair",
    "replay": "conformance.delta.engine:replay",
    "report": "pipeline.sweep_report:sum_tables",
    "robust": "jobs.invariants.invariants:decide_jobs",
    "run": "checker.execution.run_result:run",
    "scope": "specs.files.catalogue:scope",
    "separate": "checker.search.separation:separate",
    "spec": "specs.files.spec_catalogue:spec",
    "sweep": "checker.sweeps.table_sweep:sweep",
    "verify_claims": "claims.claim_evidence:verify_claims",
    "workload": "jobs.readers.workload_sources:workload",
}
"""Module and attribute behind each name."""


def __getattr__(name: str) -> object:
    if name not in HOMES:
        raise AttributeError(f"module 'isolitmus' has no attribute '{name}'")
    import isolitmus.checker  # noqa: F401 - results can show themselves
    from isolitmus.model.registry import load_part

    return load_part(f"isolitmus.{HOMES[name]}", f"function '{name}'")


def __dir__() -> list[str]:
    return __all__
