"""docs/results/agreement.md is what this checker and others say of the histories in ``shared/datasets``
beside the repository.

After a change: ISOLITMUS_UPDATE=1 pytest tests/histories/test_agreement_page.py. Where the histories are not,
nothing is compared.
"""

import csv
import difflib
import os
import re
from collections import Counter
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

from isolitmus.checker.checks.history_check import check
from isolitmus.checker.judge.anomalies import anomaly_names
from isolitmus.histories.blackbox.check import check_recorded
from isolitmus.histories.blackbox.explanation import explain_record
from isolitmus.histories.blackbox.judgement import judge_recorded
from isolitmus.histories.blackbox.read_from import attribute_reads
from isolitmus.histories.blackbox.saturation import saturate
from isolitmus.histories.pg_isolation.permutation_history import PermutationHistory
from isolitmus.histories.pg_isolation.permutation_run import SpecTables
from isolitmus.histories.readers.pg_isolation import pg_test
from isolitmus.histories.readers.recorded_history import recorded_history
from isolitmus.model.budget import Budget
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.litmus import HistoryTest
from isolitmus.specs import spec

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "results" / "agreement.md"
DATASETS = ROOT.parent / "shared" / "datasets"
VERDICTS = DATASETS / "verdicts.csv"
TABLE = re.compile(r"(?<=<!-- table: )(\w+)( -->\n)(.*?)(?=<!-- end of table -->)", re.DOTALL)
pytestmark = pytest.mark.skipif(not VERDICTS.exists(), reason="no ../shared/datasets here")

LEVELS = {
    "RC": "read-committed-biswas-enea",
    "RA": "read-atomic",
    "CC": "causal",
    "SI": "snapshot-isolation",
    "SER": "serializable",
}
PEERS = {
    "veristrong_ser": ("VeriStrong", "SER"),
    "veristrong_si": ("VeriStrong", "SI"),
    "polysi_si": ("PolySI", "SI"),
    "plume_RC": ("Plume", "RC"),
    "plume_RA": ("Plume", "RA"),
    "plume_TCC": ("Plume", "CC"),
}
SAID = {"ok": "holds", "violation": "fails", "allowed": "holds", "forbidden": "fails"}
FOLDERS = ("none", "read-committed", "read-atomic", "causal")
"""AWDIT's: the strongest of RC, RA and CC that holds."""
GENERAL = [f"veristrong-general/{name}/hist-00000" for name in ("BL-1k", "RH-1k", "WH-1k")]
ELLE = {
    "paper-example.edn": "unknown: its operations are no transactions by their form",
    "si-without-g-single.edn": "SI holds, SER fails (G2-item)",
    "huge-scc.edn": "SI and SER hold, strict serializability fails",
    "elle-cli/elle/list-append-gh-30.edn": "fails (G2-item)",
    "elle-cli/elle/paper-example.edn": "fails (G-single)",
    "elle-cli/elle/rw-register.edn": "holds (elle-cli's issue 47: although the reads swap)",
}
"""What is known of Elle's files: its own verdict, run from its source, and what its paper says."""


@cache
def rows():
    return list(csv.DictReader(VERDICTS.read_text("utf-8").splitlines()))


@cache
def history_of(name):
    return recorded_history(DATASETS / name)


@cache
def verdict(name, column):
    judged = judge_recorded(history_of(name), LEVELS[column], budget=Budget(seconds=10))
    return SAID.get(judged.verdict, judged.verdict)


def others(row):
    """Who says what, in the order of the columns."""
    name = row["history"]
    said = [(tool, level, SAID[row[key]]) for key, (tool, level) in PEERS.items()]
    folder = name.split("/")[1] if name.startswith("awdit-tests/") else None
    if folder:
        holds = FOLDERS.index(folder)
        for place, level in enumerate(("RC", "RA", "CC")):
            said.append(("AWDIT", level, "holds" if place < holds else "fails"))
    return said


def general():
    return [
        {"history": name} | dict.fromkeys(("veristrong_ser", "veristrong_si"), "ok")
        for name in GENERAL
    ]


def table(head, body):
    lines = [head, ["---"] * len(head), *body]
    return "\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines) + "\n"


def short(name):
    return f"`{name.removesuffix('.txt').removesuffix('/history.bincode')}`"


def all_said():
    """Each history with who says what of it."""
    for row in rows():
        yield row["history"], others(row)
    for row in general():
        yield (
            row["history"],
            [(t, level, SAID[row[k]]) for k, (t, level) in PEERS.items() if k in row],
        )


def counts():
    agree, every = Counter(), Counter()
    for name, said in all_said():
        for tool, level, word in said:
            every[tool, level] += 1
            agree[tool, level] += verdict(name, level) == word
    tools = sorted({tool for tool, _ in every})
    body = [
        [
            tool,
            *(
                f"{agree[tool, level]} of {every[tool, level]}" if every[tool, level] else ""
                for level in LEVELS
            ),
        ]
        for tool in tools
    ]
    return table(["agrees", *LEVELS], body)


def cell(name, level, said):
    mine = verdict(name, level)
    against = [f"{tool}: {word}" for tool, of, word in said if of == level and word != mine]
    return f"{mine} ({', '.join(against)})" if against else mine


def verdicts():
    body = []
    for name, said in all_said():
        history = history_of(name)
        size = f"{len(history.session):,}"
        body.append([short(name), size, *(cell(name, level, said) for level in LEVELS)])
    return table(["history", "transactions", *LEVELS], body)


def refused_by_plume(history):
    """A reader, the writer that it sees, and that which it reads from, as Plume's read atomic has
    it; or True of a circle of sessions and reads.
    """
    if judge_recorded(history, LEVELS["RC"]).verdict == "forbidden":
        return True
    seen = attribute_reads(history)
    causal = saturate(seen, "causal")
    graph = nx.DiGraph(zip(causal.source.tolist(), causal.target.tolist(), strict=True))
    circle = {
        node: number
        for number, nodes in enumerate(nx.strongly_connected_components(graph))
        for node in nodes
    }
    reads = [*zip(seen.reader.tolist(), seen.key.tolist(), seen.writer.tolist(), strict=True)]
    sees = {}
    for reader, _, writer in reads:
        sees.setdefault(reader, set()).add(writer)
    wrote = {}
    for key, writer in zip(seen.written_key.tolist(), seen.written_by.tolist(), strict=True):
        wrote.setdefault(key, set()).add(writer)
    session = history.session.tolist()
    for t3, key, t1 in reads:
        for t2 in sorted(wrote.get(key, set()) - {t1, t3}):
            seen_here = t2 in sees[t3] or (session[t2] == session[t3] and t2 < t3)
            if seen_here and circle[t1] == circle[t2]:
                return t3, t2, t1, key
    return None


def plume():
    body = []
    for row in rows():
        name = row["history"]
        if SAID[row["plume_RA"]] == verdict(name, "RA"):
            continue
        history = history_of(name)
        reader, sees, reads, key = refused_by_plume(history)
        numbers = [
            f"T{0 if one == len(history.session) else one + 1}" for one in (reader, sees, reads)
        ]
        body.append([short(name), *numbers, history.keys[key]])
    return table(["history", "the reader", "sees t2", "reads x of t1", "x"], body)


def elle():
    body = []
    for name, theirs in ELLE.items():
        path = f"elle/{name}"
        try:
            history = recorded_history(DATASETS / path)
            checked = check_recorded(name, history, budget=Budget(seconds=10))
            standing = checked.standing
            strongest = ", ".join(f"`{one}`" for one in standing.strongest)
            weakest = ", ".join(
                f"`{one}` fails ({' or '.join(anomaly_names(checked.levels[one]))})"
                for one in standing.weakest
            )
            mine = "; ".join(filter(None, [strongest and f"{strongest} holds", weakest]))
            unclear = [one for one, v in checked.levels.items() if str(v) == "unknown"]
            mine += f"{'; ' if mine and unclear else ''}{'unknown: ' if unclear else ''}"
            mine += ", ".join(f"`{one}`" for one in unclear)
        except IsolitmusError as refusal:
            mine = f"refused: {str(refusal).rpartition(': ')[2]}"
        body.append([f"`{name}`", theirs, mine])
    return table(["file", "Elle", "here"], body)


def serializable(history):
    checked = check(HistoryTest("h", "", "", history), [spec("serializable")])
    return str(checked.levels["serializable"])


def permuted(tables, permutation):
    """What is counted of a permutation."""
    try:
        found = PermutationHistory.of(tables, permutation)
    except IsolitmusError:
        return ["reported"]
    if found.promised:
        return ["reported", "read", "committed", f"committed, {serializable(found.history)}"]
    if not found.refused:
        return ["reported", "read"]
    try:
        supposed = PermutationHistory.of(tables, permutation, supposed=True)
    except IsolitmusError:
        return ["reported", "read", "refused"]
    return ["reported", "read", "refused", f"refused, {serializable(supposed.history)}"]


@cache
def counted(path):
    """What was counted of the permutations of a test of PostgreSQL's."""
    described, found = pg_test(path)
    try:
        tables = SpecTables(described)
    except IsolitmusError:
        return Counter(reported=len(found))
    return Counter(word for each in found for word in permuted(tables, each))


def postgresql_counts(but=None):
    """Of each test that says SERIALIZABLE what was counted."""
    paths = sorted((DATASETS / "pg-isolation" / "specs").glob("*.spec"))
    said = [path for path in paths if "SERIALIZABLE" in path.read_text("utf-8").upper()]
    return {path.stem: counted(path) for path in said if path.stem != but}


LARGEST = "prepared-transactions"
"""Three quarters of all permutations, of which none committed; they are carried out where there is
time.
"""


PERMUTED = {
    "permutations": "reported",
    "read": "read",
    "all committed at SERIALIZABLE": "committed",
    "of these, allowed": "committed, allowed",
    "refused": "refused",
    "of these, forbidden if they had gone on": "refused, forbidden",
    "allowed": "refused, allowed",
}


def postgresql():
    every = postgresql_counts()
    lines = {f"`{name}`": found for name, found in every.items()}
    lines["together"] = sum(every.values(), Counter())
    return table(["test", *PERMUTED], [row_of(name, found) for name, found in lines.items()])


def row_of(name, found):
    return [name, *(f"{found[key]:,}" for key in PERMUTED.values())]


TABLES = {
    "postgresql": postgresql,
    "counts": counts,
    "plume": plume,
    "verdicts": verdicts,
    "elle": elle,
}


def test_the_page_has_each_table():
    assert sorted(re.findall(r"<!-- table: (\w+)", PAGE.read_text("utf-8"))) == sorted(TABLES)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.wide] * (n == "postgresql")) for n in TABLES]
)
def test_the_page_is_what_is_said_today(name):
    text = PAGE.read_text("utf-8")
    new = TABLE.sub(lambda m: m[1] + m[2] + TABLES[name]() if m[1] == name else m[0], text)
    if os.environ.get("ISOLITMUS_UPDATE"):
        PAGE.write_text(new, "utf-8")
        text = new
    lines = text.splitlines(), new.splitlines()
    diff = [*difflib.unified_diff(*lines, PAGE.name, "today", lineterm="", n=0)]
    assert not diff, "\n".join([*diff, "ISOLITMUS_UPDATE=1 writes it anew."])


@pytest.mark.slow
def test_nobody_says_otherwise_but_plume_of_read_atomic():
    """What is unknown here is no difference of verdicts."""
    differ = {
        (tool, level)
        for name, said in all_said()
        for tool, level, word in said
        if verdict(name, level) not in (word, "unknown")
    }
    assert differ == {("Plume", "RA")}


@pytest.mark.slow
def test_the_rule_says_what_plume_s_read_atomic_refuses():
    for row in rows():
        refused = refused_by_plume(history_of(row["history"])) is not None
        assert refused == (row["plume_RA"] == "violation"), row["history"]


@pytest.mark.slow
def test_what_postgresql_committed_at_serializable_is_serializable():
    """And the page has what was counted of these tests."""
    found = postgresql_counts(but=LARGEST)
    every = sum(found.values(), Counter())
    assert every["committed"] == every["committed, allowed"] > 0
    text = PAGE.read_text("utf-8")
    for name, numbers in found.items():
        assert f"| {' | '.join(row_of(f'`{name}`', numbers))} |" in text


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_every_verdict_has_an_explanation(level):
    for row in rows():
        judged = judge_recorded(history_of(row["history"]), LEVELS[level])
        explained = explain_record(judged, Budget())
        assert str(explained) == judged.verdict
        assert bool(anomaly_names(explained)) == (judged.verdict == "forbidden")
