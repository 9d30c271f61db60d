"""Static table of our own plug-ins: what each part of isolitmus adds, by kind and name.

A name that is in this table is imported from its path on first use. Any other name is looked for in
the metadata of installed packages (``model.registry``), which takes longer to read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

PLUGINS: Mapping[str, Mapping[str, str]] = {
    "format": {
        "delta": "isolitmus.checker.delta.format:DELTA",
        "databricks": "isolitmus.checker.delta.format:DATABRICKS",
        "delta-rs": "isolitmus.checker.delta.format:DELTA_RS",
        "locking": "isolitmus.databases.locking.format:LOCKING",
    },
    "engine": {
        "model": "isolitmus.checker.execution.run_result:MODEL",
        "delta": "isolitmus.conformance.delta.engine:DELTA",
        "deltalake": "isolitmus.conformance.deltalake.engine:NEWEST",
        "deltalake-1.6.3": "isolitmus.conformance.deltalake.engine:OLDER",
        "derby": "isolitmus.databases.derby.server:DERBY",
        "postgres": "isolitmus.databases.postgres.engine:POSTGRES",
    },
    "engine builder": {"delta": "isolitmus.conformance.patched_delta:patched_engine"},
    "history source": {
        "auto": "isolitmus.histories.sources:AUTO",
        "litmus": "isolitmus.checker.checks.history_sources:LITMUS",
        "delta": "isolitmus.checker.checks.history_sources:DELTA_LOG",
        "pg": "isolitmus.histories.sources:PERMUTATIONS",
        "awdit": "isolitmus.histories.sources:AWDIT",
        "cobra": "isolitmus.histories.sources:COBRA",
        "dbcop": "isolitmus.histories.sources:DBCOP",
        "elle": "isolitmus.histories.sources:ELLE",
        "plume": "isolitmus.histories.sources:PLUME",
    },
    "history writer": {
        "elle": "isolitmus.histories.readers.written_history:write_elle",
        "awdit": "isolitmus.histories.readers.written_history:write_awdit",
    },
    "catalogue kind": {
        "levels": "isolitmus.specs.files.catalogue_titles:LEVELS",
        "protocols": "isolitmus.specs.files.catalogue_titles:PROTOCOLS",
        "litmus": "isolitmus.specs.files.catalogue_titles:LITMUS",
        "scopes": "isolitmus.specs.files.catalogue_titles:SCOPES",
        "matrices": "isolitmus.specs.files.catalogue_titles:MATRICES",
        "workloads": "isolitmus.jobs.readers.workload_sources:WORKLOADS",
        "engines": "isolitmus.specs.files.catalogue_titles:ENGINES",
        "exceptions": "isolitmus.specs.files.catalogue_titles:EXCEPTIONS",
        "anomalies": "isolitmus.specs.files.catalogue_titles:ANOMALIES",
        "claims": "isolitmus.claims.claim_words:CLAIMS",
    },
    "instance": {"delta": "isolitmus.jobs.templates.delta_instance:DELTA"},
    "observer": {"databases": "isolitmus.databases.observations:observe"},
    "renderer": {
        "AbstractSweep.text": "isolitmus.checker.render.sweeps:abstract_lines",
        "ConflictingCommits.text": "isolitmus.checker.render.diagnosis:stopped_lines",
        "DependencyGraph.dot": "isolitmus.checker.render.results:_graph_dot",
        "DependencyGraph.mermaid": "isolitmus.checker.render.results:_graph_mermaid",
        "DependencyGraph.svg": "isolitmus.checker.render.results:_graph_svg",
        "DependencyGraph.tikz": "isolitmus.checker.render.results:_graph_tikz",
        "Diagnosis.text": "isolitmus.checker.render.diagnosis:diagnosis_lines",
        "HasseDiagram.svg": "isolitmus.checker.render.results:_hasse_svg",
        "HistoryVerdicts.html": "isolitmus.checker.render.notebook:checked_html",
        "Interleavings.text": "isolitmus.databases.locking.interleavings:interleaving_lines",
        "Lattice.text": "isolitmus.checker.render.lattice:lattice_lines",
        "Lattices.html": "isolitmus.checker.render.lattice_pages:lattices_html",
        "Lattices.text": "isolitmus.checker.render.lattice:lattices_lines",
        "MutantReport.text": "isolitmus.checker.render.search_results:mutant_lines",
        "OtherDiagnosis.text": "isolitmus.checker.render.diagnosis:other_lines",
        "Portrait.text": "isolitmus.checker.render.search_results:portrait_lines",
        "Reason.text": "isolitmus.checker.render.reasons:words",
        "RuleRepairs.text": "isolitmus.checker.render.repairs:rule_repair_lines",
        "RunResult.html": "isolitmus.checker.render.notebook:judged_html",
        "Separation.html": "isolitmus.checker.render.notebook:separation_html",
        "Separation.text": "isolitmus.checker.render.search_results:separation_lines",
        "Sweep.text": "isolitmus.checker.render.sweeps:sweep_lines",
        "Timeline.mermaid": "isolitmus.checker.render.results:_timeline_mermaid",
        "Timeline.svg": "isolitmus.checker.render.results:_timeline_svg",
        "Timeline.text": "isolitmus.checker.render.results:_timeline_text",
        "Timeline.tikz": "isolitmus.checker.render.results:_timeline_tikz",
        "Violation.text": "isolitmus.checker.render.verdicts:violation_text",
    },
    "Spark job": {
        "audit": "isolitmus.pipeline.audit_job:open_audit",
        "check": "isolitmus.pipeline.check_job:open_check",
        "replays": "isolitmus.pipeline.replay_table:ReplayTable",
        "sweep": "isolitmus.pipeline.sweep_job:open_sweep",
    },
    "workload kind": {
        "dbt": "isolitmus.jobs.readers.project_sources:DBT",
        "bundle": "isolitmus.jobs.readers.project_sources:BUNDLE",
    },
    "verb": {
        "audit": "isolitmus.cli.audit:audit",
        "check": "isolitmus.cli.check:check",
        "claims": "isolitmus.claims.verb:claims",
        "compare": "isolitmus.cli.compare:compare",
        "demo": "isolitmus.cli.demo:demo",
        "explain": "isolitmus.cli.explain:explain",
        "explore": "isolitmus.cli.explore:explore",
        "export": "isolitmus.cli.export:export",
        "install": "isolitmus.cli.install:install",
        "lint": "isolitmus.jobs.cli.lint:lint",
        "matrix": "isolitmus.cli.matrix:matrix",
        "predict": "isolitmus.jobs.cli.predict:predict",
        "repair": "isolitmus.cli.repair:repair",
        "report": "isolitmus.pipeline.verb:report",
        "robust": "isolitmus.jobs.cli.robust:robust",
        "run": "isolitmus.cli.run:run",
        "separate": "isolitmus.cli.separate:separate",
        "show": "isolitmus.cli.show:show",
        "sweep": "isolitmus.cli.sweep:sweep",
    },
}
"""Import path of each of our plug-ins, by kind and name."""
