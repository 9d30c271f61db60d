"""The answers, frozen: tests/facts holds them as lines, each with the case that it is of.

Whoever moves code, or builds an idea once where it stood twice, changes none of these lines. They
hold what is true of a case (verdicts, outcomes, exceptions, versions, tables, sizes of witnesses,
counts, what is found, refuted or proved), never words, seconds, assumptions or which of several
witnesses was found. Only the command line and the keys of its JSON are used, so the test outlives
every name inside.

A wrong answer is mended in a commit of its own, which names it and has a test; then
ISOLITMUS_UPDATE=1 pytest tests/test_facts.py writes the lines anew.
"""

import difflib
import inspect
import json
import os
import re
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
FACTS = Path(__file__).with_name("facts")
DATA = Path(__file__).with_name("data")
CONSTRUCTS = Path(__file__).parents[1] / "bench" / "constructs.toml"
DELTA = "delta-serializable", "delta-write-serializable", "delta-snapshot-isolation"
PROJECTS = (
    ("bundle", "predict", *DELTA),
    ("bundle", "robust", *DELTA),
    ("bundle", "lint", *DELTA[:2]),
    ("dbt/shop", "predict", DELTA[0]),
    ("dbt/shop", "robust", DELTA[1]),
    ("dbt/shop", "lint", DELTA[0]),
    *(("dbt/written/first_run", command, DELTA[0]) for command in ("predict", "robust", "lint")),
)
"""The projects of tests/data, each with a command and levels; of dbt's only what the findings at the
first level do not tell, because each answer takes ten seconds.
"""
SWEEPS = (
    "by-day",
    "by-day-unpartitioned",
    "two-partitions --transactions 3",
    "writers-partitioned --transactions 2",
    "scans",
    "abstract --transactions 3 --keys 2 --level snapshot-isolation,serializable,causal",
)
PUBLISHED = [
    "causal-cerone",
    "causal-in-version-order",
    "generalized-snapshot-isolation",
    "parallel-snapshot-isolation",
    "parallel-snapshot-isolation-cerone",
    "pl-2-99",
    "pl-2-plus",
    "pl-2l",
    "pl-3",
    "pl-cs",
    "prefix-consistency-biswas-enea",
    "prefix-consistency-cerone",
    "read-atomic-cerone",
    "read-atomic-crooks",
    "read-atomic-in-version-order",
    "read-committed-biswas-enea",
    "read-committed-crooks",
    "serializable-biswas-enea",
    "serializable-cerone",
    "serializable-crooks",
    "snapshot-isolation-biswas-enea",
    "snapshot-isolation-cerone",
    "snapshot-isolation-crooks",
    "strong-session-snapshot-isolation",
]
"""The published definitions that can be asked of any abstract history: they need no times."""
SEPARATED = "read-committed", "snapshot-isolation", "serializable", "delta-write-serializable"


@pytest.fixture
def tried(call):
    """tried(*words): the exit status of ``isolitmus WORDS``, its JSON document, and what it refuses."""

    def tried(*words):
        status, out, err = call(*words, "--json")
        return status, json.loads(out) if out else None, err

    return tried


@pytest.fixture
def ask(tried):
    """ask(*words): the JSON document of ``isolitmus WORDS``."""

    def ask(*words):
        status, answer, err = tried(*words)
        assert answer is not None, (words[:3], status, err)
        return answer

    return ask


@pytest.fixture
def constructs(tmp_path):
    """The statements of bench/constructs.toml, by rule: the file of each, the file of a DELETE from
    its table, and that of the tables.
    """

    def written(name, sql):
        file = tmp_path / f"{re.sub(r'[^A-Za-z0-9]+', '_', name)}.sql"
        assert not file.exists()
        file.write_text(sql, "utf-8")
        return file

    sample = tomllib.loads(CONSTRUCTS.read_text("utf-8"))
    tables = written("tables", ";\n".join(sample["tables"]))
    partners = {
        table: written(f"delete_from_{table}", jobs["delete_one"])
        for table, jobs in sample["partners"].items()
    }
    found = {}
    for grammar in "spark", "delta":
        for rule, statements in sample[grammar].items():
            whole = [statements] if isinstance(statements, str) else statements
            for number, sql in enumerate(whole, 1):
                case = f"{grammar} {rule} {number}"
                table = next(name for name in ("orders", "events", "") if name in sql) or "orders"
                found[case] = written(case, sql), partners[table], tables
    return found


def shown(ask, kind):
    return {one["name"]: one["text"] for one in ask("show", kind)}


def rows_of(table):
    return " ".join("(" + ", ".join(map(repr, row)) + ")" for row in table) or "empty"


def by_verdict(levels):
    """The names of levels by verdict, but of those that allow it."""
    found = {}
    for name, verdict in levels.items():
        if verdict != "allowed":
            found.setdefault(verdict, []).append(name)
    return [f"{verdict}: {' '.join(names)}" for verdict, names in sorted(found.items())]


def size_of(litmus):
    """How many transactions and operations or statements a litmus test has that was found; None of
    none.
    """
    if litmus is None:
        return None
    transactions = [
        one if isinstance(one, str) else json.dumps(one)
        for whole in (tomllib.loads(litmus),)
        for kind in ("transactions", "history")
        for name, one in whole.get(kind, {}).items()
        if name != "order"
    ]
    operations = sum(len(re.findall(r"\w\(|\b[A-Z]{3,}\b", one)) for one in transactions)
    return [len(transactions), operations]


def facts_of_runs(ask):
    """Each litmus test under each protocol of its format: outcomes, versions, tables, levels."""
    names = [name for name in shown(ask, "litmus") if not name.startswith("history-")]
    for test in ask("run", *names):
        for run in test["runs"]:
            ends = []
            for name, one in run["transactions"].items():
                keys = "outcome", "error_class", "version", "blind", "isolation_level", "operation"
                said = [one[key] for key in keys if one[key] is not None]
                said += [f"read {one['read_version']}"] if one["read_version"] is not None else []
                said += [f"emitted {rows_of(one['emitted'])}"] if one.get("emitted") else []
                said += [f"{w['step']} waits for {w['behind']}" for w in one.get("waits", ())]
                ends.append(f"{name} {' '.join(map(str, said))}")
            told = [*ends, *(f"{t} {rows_of(rows)}" for t, rows in run["tables"].items())]
            told += [f"as {' or '.join(run['serial'])}" if run["serial"] else "as no serial order"]
            told += [f"{key} {run[key]}" for key in ("unexplained", "breaks") if run.get(key)]
            told += [f"expectation {run['expected']}", *by_verdict(run["levels"])]
            yield f"{test['litmus']}, {run['protocol']}: {'; '.join(told)}"


def facts_of_checks(ask):
    """The history of each litmus test: verdicts of the levels that it has the names for."""
    for one in ask("check", *shown(ask, "litmus")):
        verdicts = {name: found["verdict"] for name, found in one["levels"].items()}
        told = [f"{one['transactions']} transactions", f"{len(verdicts)} levels"]
        told += [f"strongest {' '.join(one['strongest'])}", f"weakest {' '.join(one['weakest'])}"]
        told += by_verdict(verdicts)
        yield f"{Path(one['history']).stem}: {'; '.join(told)}"


def facts_of_published_levels(ask):
    """Each abstract history at each published definition."""
    histories = [name for name in shown(ask, "litmus") if name.startswith("history-")]
    for one in ask("check", *histories, "--level", ",".join(PUBLISHED)):
        verdicts = {name: found["verdict"] for name, found in one["levels"].items()}
        told = [f"{len(verdicts)} levels", *by_verdict(verdicts)]
        yield f"{Path(one['history']).stem}: {'; '.join(told)}"


def facts_of_levels(ask):
    """Which levels imply which, in both universes, and how they are proved or how large the
    histories between them are.
    """
    for one in ask("compare")["lattices"]:
        for edge in one["inclusions"]:
            told = edge["proof"] or edge["bound"] if edge["holds"] else size_of(edge["litmus"])
            told = told if edge["holds"] else f"a history of {told}"
            yield f"{one['universe']}, {edge['a']} implies {edge['b']}: {edge['holds']}; {told}"


def facts_of_separations(ask):
    """The mutants of some specifications, and the tests that tell them apart."""
    for name in SEPARATED:
        for one in ask("separate", name, "--mutants")["mutants"]:
            told = f"{one['outcome']} by {' '.join(one['by'] or ()) or 'none'}"
            yield f"{name}, {one['was']} becomes {one['becomes'] or 'nothing'}: {told}"


def facts_of_matrices(ask):
    """Which statements stop which: so many cells, with every statement on either side."""
    for one in ask("matrix", "--sample", 1000):
        case = f"{one['a']} by {one['winner']}, {one['layout']}, {one['protocol']}"
        yield f"{case}: {one['predicted']}"


def facts_of_sweeps(ask):
    """How many candidates a scope has, what each protocol admits of them, what levels forbid of
    these.
    """
    for words in SWEEPS:
        answer = ask("sweep", *words.split())
        for one in answer if isinstance(answer, list) else [answer]:
            protocols = one.pop("protocols", {})
            for key in ("seconds", "ended"):
                del one[key]
            yield f"{words}: {json.dumps(one, sort_keys=True)}"
            for name, found in protocols.items():
                for level in found["levels"].values():
                    level["smallest"] = size_of(level["smallest"])
                yield f"{words}, {name}: {json.dumps(found, sort_keys=True)}"


def meeting_facts(meeting):
    """Which statement aborts which: always, when, with what exceptions, and how a retry ends."""
    told = [meeting["word"], *meeting["condition"], *(["certain"] if meeting["certain"] else [])]
    told += [f"{name} then {' or '.join(ends)}" for name, ends in meeting["retries"].items()]
    told += [f"perhaps {name}" for name in meeting["perhaps"]]
    return f"{meeting['loser']} by {meeting['winner']}: {'; '.join(told)}"


def promise_facts(one):
    """What is decided of a promise or of an invariant."""
    if "invariant" in one:
        proved = ", ".join(f"{kind} {len(found)}" for kind, found in one["proved"].items())
        told = [one["word"], f"{len(one['violations'])} violations", f"proved {proved}"]
        told += [f"kept alone {one['keeps_alone']}", f"given {len(one['given'])}"]
        return f"{one['protocol']}, {one['invariant']}: {'; '.join(told)}"
    refuted = ", ".join(f"{name} {count}" for name, count in one["refuted"].items())
    told = [one["word"], f"by rows {one['seen']}", f"refuted {refuted}"]
    told += [f"{len(one['counterexamples'])} counterexamples"]
    return f"{one['protocol']}, {one['promise']}: {'; '.join(told)}"


def finding_facts(finding):
    """The rule that a finding is of, and its places."""
    places = [f"{at['statement']} {Path(at['file']).name}:{at['line']}" for at in finding["places"]]
    return f"{finding['rule']} {finding['name']}, {finding['severity']}: {', '.join(places)}"


def job_facts(tried, command, *words):
    """The answer of a command about jobs: how it ends, what it does not understand, what it finds."""
    status, answer, err = tried(command, *words, *(["--no-cache"] if command == "lint" else []))
    if answer is None:
        at = re.match(r"isolitmus: (\S+:\d+:\d+): ", err)
        return [f"exit {status}; refused{f' at {at[1]}' if at else ''}"]
    if command == "robust":
        whole, told = answer[0], [promise_facts(one) for one in answer]
    elif command == "predict":
        whole, told = answer, [meeting_facts(one) for one in answer["meetings"]]
    else:
        whole, told = answer, [finding_facts(one) for one in answer["findings"]]
    unread = [f"{one['name']} at {one['place']}" for one in whole["not_understood"]]
    counts = [f"{whole[key]} {key}" for key in ("files", "statements") if key in whole]
    unread = f"{len(unread)} not understood{': ' if unread else ''}{', '.join(unread)}"
    return [f"{'; '.join([f'exit {status}', *counts, unread])}", *told]


def facts_of_jobs(ask):
    """The jobs of the workload that ships: which statement aborts which, and what is safe."""
    for level in DELTA:
        for meeting in ask("predict", "shop", "--level", level)["meetings"]:
            yield f"{level}, {meeting_facts(meeting)}"
    yield from map(promise_facts, ask("robust", "shop"))


def facts_of_projects(tried):
    """The jobs of a Databricks bundle, of a dbt project, and what is refused of its SQL alone."""
    for project, command, *levels in PROJECTS:
        for level in levels:
            for told in job_facts(tried, command, DATA / project, "--level", level):
                yield f"{command} {project}, {level}: {told}"


def facts_of_constructs(tried, constructs):
    """Each statement that samples a grammar, as a job: whether it is read, what aborts what if it
    runs twice; of every 14th that is a statement of a job or not understood, what is safe beside a
    DELETE, and of every 14th the findings.
    """
    counted = 0
    for case, (file, partner, tables) in constructs.items():
        told = job_facts(tried, "predict", file, "--ddl", tables)
        yield f"predict {case}: {' | '.join(told)}"
        if len(told) == 1 and " at " not in told[0]:
            continue
        if command := {0: "robust", 7: "lint"}.get(counted % 14):
            told = job_facts(tried, command, file, partner, "--ddl", tables)
            yield f"{command} {case}: {' | '.join(told)}"
        counted += 1


def facts_of_claims(ask):
    """What the model says of each claim of the documents."""
    for one in ask("claims", "verify"):
        answers = [
            f"{answer['question']}: {'as' if engine['agrees'] else 'not as'} claimed"
            for answer in one["answers"]
            for engine in answer["engines"]
        ]
        told = [one["verdict"] or "undecided", f"by {' '.join(one['by']) or 'nobody'}", *answers]
        yield f"{one['claim']}: {'; '.join(told)}"


GROUPS = {
    name.removeprefix("facts_of_").replace("_", "-"): found
    for name, found in list(globals().items())
    if name.startswith("facts_of_")
}


@pytest.mark.parametrize("group", GROUPS)
def test_the_answers_are_those_that_were_frozen(group, request):
    file = FACTS / f"{group}.txt"
    asked = inspect.signature(GROUPS[group]).parameters
    seen = [f"{line}\n" for line in GROUPS[group](*map(request.getfixturevalue, asked))]
    assert seen
    if os.environ.get("ISOLITMUS_UPDATE"):
        FACTS.mkdir(exist_ok=True)
        file.write_text("".join(seen), "utf-8")
    frozen = file.read_text("utf-8").splitlines(keepends=True)
    diff = difflib.unified_diff(frozen, seen, str(file.relative_to(FACTS.parents[1])), "now", n=0)
    assert seen == frozen, "".join(diff)


def test_every_group_of_frozen_answers_has_its_question():
    assert {file.stem for file in FACTS.glob("*.txt")} == {*GROUPS}
