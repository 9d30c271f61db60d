"""Names and paths stand for specs, litmus tests and scopes in the verbs; what is neither is refused
in a sentence.
"""

import ast
import inspect
import re
from pathlib import Path

import pytest

from isolitmus import checker, conformance, pipeline
from isolitmus import model as package_model
from isolitmus import specs as package_specs
from isolitmus.checker import check, compare, explain, graph, run, separate, sweep, verdict_words
from isolitmus.checker.execution.conflict_matrix import predict_case
from isolitmus.checker.execution.denotation import denote
from isolitmus.checker.search.triviality import find_triviality
from isolitmus.checker.search.unbounded_separation import separate_unbounded
from isolitmus.jobs.predict.prediction import predict_workload
from isolitmus.jobs.robust import repairs
from isolitmus.jobs.robust import repairs as changes
from isolitmus.jobs.robust.robustness import decide_robustness
from isolitmus.model import History
from isolitmus.model.errors import IsolitmusError, LitmusError, UnknownName
from isolitmus.model.matrix import MatrixPlace
from isolitmus.model.verdict import Allowed
from isolitmus.specs import level, litmus, protocol, scope, spec
from isolitmus.specs.files.catalogue import matrix
from isolitmus.specs.files.spec_catalogue import protocol_names

MINE = '"Mine" empty [Aborted] ; wr as no-aborted-read acyclic wr as order'


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.cat"
    path.write_text(MINE)
    return path


def test_a_spec_is_a_name_a_path_or_itself(mine):
    for given in (mine, str(mine), spec(str(mine))):
        answer = separate(given, "snapshot-isolation", "abstract", transactions=[2])
        assert (answer.a, answer.found, answer.transactions) == ("mine", True, 2)
    assert separate_unbounded("delta-serializable", "log-serializable").proved
    assert level(level("causal")) is level("causal")
    assert protocol(protocol("delta-serializable")) is protocol("delta-serializable")
    assert litmus(litmus("reorder")) is litmus("reorder")
    assert find_triviality(mine) is None


def test_so_are_tests_and_scopes(mine):
    asked = check("history-write-skew", ["serializable", mine])
    assert {name: str(said) for name, said in asked.levels.items()} == {
        "serializable": "forbidden",
        "mine": "allowed",
    }
    assert list(check(Path("specs/litmus/history-write-skew.toml"), "causal").levels) == ["causal"]
    done = run("reorder", "delta-serializable")
    assert done.run.transactions["delete"].outcome == "ConcurrentAppendException"
    counted = sweep("two-partitions", 2, protocols=["delta-serializable"], levels=["serializable"])
    given = sweep(
        scope("two-partitions"),
        2,
        protocols=[protocol("delta-serializable")],
        levels=[level("serializable")],
    )
    assert counted.protocols == given.protocols
    assert list(counted.protocols["delta-serializable"].forbidden) == ["serializable"]
    placed = compare([mine, "causal"], "abstract", transactions=2)
    assert placed.lattices[0].edges
    assert denote("history-write-skew", "update-serializable").values


SPEC = re.compile(r"\bSpec\b")
OUTER = (
    "checker/auditing/diagnosis.py", "checker/checks/history*.py", "checker/execution/run_result.py", "checker/search/*.py",
    "checker/strategies/*.py", "checker/sweeps/*_sweep.py", "databases/locking/interleavings.py",
    "jobs/predict/prediction.py", "jobs/robust/robustness.py", "conformance/**/*.py",
)  # fmt: skip
PAIRS = {"format_of", "run_cases"}
"""Functions of specs, and of tests with their protocols, which somebody has read already."""


def test_no_public_function_wants_a_spec_that_somebody_has_to_read_first():
    """Names and paths will do, too: each parameter that is a spec, or several, is SpecLike."""
    home = Path(__file__).parents[3]
    functions = 0
    wanting = set()
    for file in (file for pattern in OUTER for file in home.glob(pattern)):
        tree = ast.parse(file.read_text("utf-8"))
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                functions += 1
                of = node.args
                every = [*of.args, *of.kwonlyargs, *filter(None, [of.vararg])]
                texts = [ast.unparse(one.annotation) for one in every if one.annotation]
                if any(SPEC.search(text) for text in texts):
                    wanting.add(node.name)
    assert functions > 100
    assert wanting == PAIRS


NOUN = re.compile(r"\b(?:Spec|Litmus|Workload|Scope)\b")
OFFERED = [
    (package, name)
    for package in (checker, conformance, package_model, pipeline, package_specs)
    for name in package.__all__
] + [(changes, "job_changes"), (changes, "try_changes"), (repairs, "find_repairs")]  # fmt: skip


def test_what_the_packages_offer_takes_names_and_paths():
    wanting = {}
    for package, name in OFFERED:
        offered = getattr(package, name)
        if not inspect.isclass(offered):
            for one in inspect.signature(offered).parameters.values():
                said = str(one.annotation)
                if NOUN.search(said) and "NameOrPath" not in said:
                    wanting[name] = said
    assert wanting == {}
    work = Path("specs/workloads/shop.toml")
    titles = [one.title for one in changes.job_changes(work, "delta-serializable")]
    assert titles == [
        one.title for one in changes.job_changes("shop", protocol("delta-serializable"))
    ]
    assert verdict_words(Allowed(), "serializable") == ["Serializable allows it."]
    assert repr(graph("reorder")) == repr(graph(litmus("reorder")))
    with pytest.raises(LitmusError, match="history-write-skew is an abstract history"):
        conformance.replay("history-write-skew", "delta-serializable", None)
    with pytest.raises(UnknownName, match="delta-serialisable"):
        conformance.replay("reorder", "delta-serialisable", None)


def test_jobs_and_cells_take_names_too(tmp_path):
    jobs = tmp_path / "jobs.toml"
    jobs.write_text("""
ddl = "CREATE TABLE t (id INT, day INT) USING delta PARTITIONED BY (day)"
[jobs.ingest]
sql = "INSERT INTO t VALUES (:id, :day)"
parameters = { id = "INT", day = "INT" }
[jobs.cleanup]
sql = "DELETE FROM t WHERE day = :day"
parameters = { day = "INT" }
""")
    predicted = predict_workload(jobs, "databricks-serializable@15.4", examples=False)
    assert predicted.protocol == "databricks-serializable-newest-rows@14.3"
    assert (
        decide_robustness(str(jobs), "delta-write-serializable", "write-serializable").word
        == "safe"
    )
    place = MatrixPlace("delete-row", "insert", "same partition")
    cell = predict_case(matrix("pairs"), place, "delta-serializable")
    assert cell.predicted == "ConcurrentAppendException"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("delta-serializable", ("delta-serializable",)),
        ("databricks", ("databricks-write-serializable-newest-rows",)),
        ("databricks-serializable-files", ("databricks-serializable-newest",)),
        ("databricks@14.1", ("databricks-write-serializable-newest-rows@13.3",)),
        (
            "databricks-*-oldest-rows@15.4",
            (
                "databricks-serializable-oldest-rows@14.3",
                "databricks-write-serializable-oldest-rows@14.3",
            ),
        ),
    ],
)
def test_a_text_in_a_file_stands_for_protocols_as_on_the_command_line(text, names):
    assert protocol_names(text) == names


@pytest.mark.parametrize(
    "text",
    ["delta-serialisable", "databricks@9.1", "nothing-*", "delta-serializable@15.4", "", "*@x"],
)
def test_a_text_that_stands_for_none_is_refused(text):
    with pytest.raises(UnknownName):
        protocol_names(text)


def test_what_is_no_name_is_refused():
    with pytest.raises(
        IsolitmusError, match=r"^3 is a int; a name such as 'serializable', or a path"
    ):
        separate(3, "serializable")
    with pytest.raises(IsolitmusError, match="did you mean 'serializable'"):
        separate("serialisable", "causal")
    with pytest.raises(IsolitmusError, match="unknown scope 'tabel'; did you mean 'table'"):
        separate("delta-serializable", "log-serializable", "tabel")
    with pytest.raises(LitmusError, match="history-write-skew is an abstract history"):
        run("history-write-skew", "delta-serializable")


def test_nouns_show_themselves_in_a_notebook():
    skew = History.parse("r1(x0) w1(x1) r2(x1) [x0 < x1]")
    assert (
        skew._repr_html_()
        == "<table><tr><th>T1</th><td>r(x0) w(x1)</td></tr><tr><th>T2</th><td>r(x1)</td></tr>"
        "<tr><th>order</th><td>x0 &lt; x1</td></tr></table>"
    )
    assert "<pre>causal: Causal" in level("causal")._repr_html_()
    found = explain("DELTA_CONCURRENT_DELETE_READ.WITH_PARTITION_HINT")
    assert "ConcurrentDeleteReadException" in found._repr_html_()
    assert '<span class="yes">allowed</span>' in check(skew, "causal")._repr_html_()
    trusted = History.parse("r1(x0)", sets={"A": ["T1"]})._repr_html_()
    assert "<tr><th>set A</th><td>T1</td></tr>" in trusted
