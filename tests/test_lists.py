"""Lists of what the code knows are written by the code, between two comments of the page.

After a change of the catalogue or the vocabulary: ISOLITMUS_UPDATE=1 pytest tests/test_lists.py.
"""

import ast
import difflib
import os
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from pages import page_id
from theorem_status import THEOREMS

from isolitmus.checker.delta import frame as frames
from isolitmus.checker.delta.read_set import accesses
from isolitmus.checker.render.audit_metrics import METRICS
from isolitmus.checker.universes import abstract
from isolitmus.databases.observations import observation_named, observations
from isolitmus.jobs.projects.dbt_manifest import DbtManifest, DbtNode
from isolitmus.jobs.projects.dbt_writes import STRATEGIES, build_incremental_run
from isolitmus.model.display import count_of
from isolitmus.model.litmus import Litmus
from isolitmus.model.sql.schema import Column, Identity, Schema
from isolitmus.model.sql.statement import Options
from isolitmus.model.vocabulary import BINDERS, RELATIONS, SETS
from isolitmus.pipeline.audit_job import AUDITS
from isolitmus.pipeline.check_job import VERDICTS
from isolitmus.pipeline.replay_table import REPLAYS
from isolitmus.pipeline.sweep_tables import sweep_tables
from isolitmus.specs import litmus, scope, spec
from isolitmus.specs.disk import input_files as limits
from isolitmus.specs.files.catalogue import litmus_names, matrices, scopes
from isolitmus.specs.files.catalogue_titles import names_of_kind
from isolitmus.specs.files.spec_catalogue import every_level, protocols
from isolitmus.specs.registries import engines
from isolitmus.specs.sql.configuration import MADE, SETTABLE
from isolitmus.specs.sql.queries import UNMODELLED
from isolitmus.specs.sql.statements import read_statement
from isolitmus.specs.sql.unsupported_pairs import APART, OUTSIDE

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LIST = re.compile(r"(?<=<!-- list: )([\w -]+)( -->\n)(.*?)(?=<!-- end of list -->)", re.DOTALL)


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines) + "\n"


def specs():
    """Name, title, kind, and the work that is transcribed: the source up to what it says of it."""
    kinds = {"level": every_level(), "protocol": protocols()}
    found = [(spec(name), kind) for kind, names in kinds.items() for name in names]
    return table(
        ["name", "title", "kind", "after"],
        [
            [f"`{s.name}`", s.title, kind, re.split(":|, the ", s.source)[0].rstrip(".")]
            for s, kind in found
        ],
    )


def columns(one):
    """The columns of a table of results."""
    rows = [
        [f"`{name}`", f"`{c.type}`", f"{c.comment}{'; or NULL' if c.null else ''}"]
        for name, c in one.columns.items()
    ]
    return table(["column", "type", "what it holds"], rows)


def swept():
    """The tables of a sweep, of a scope whose table is t (id INT, part INT)."""
    text = ""
    for one in sweep_tables(scope("two-partitions")).values():
        by = f" Partitioned by {' and '.join(f'`{c}`' for c in one.by)}." if one.by else ""
        checks = "".join(f" CHECK `{check}`." for check in one.checks.values())
        text += f"\n### {one.name}\n\nA row is {one.row}.{by}{checks}\n{columns(one)}"
    return text


def metrics():
    """The metrics of audits."""
    return table(
        ["metric", "type", "labels", "what it says"],
        [
            [f"`{name}`", one.kind, ", ".join(f"`{label}`" for label in one.labels), one.help]
            for name, one in METRICS.items()
        ],
    )


def names(terms):
    """Name, meaning, and the universes whose frames have it."""
    rows = [[f"`{name}`", term.meaning, where(name)] for name, term in terms.items()]
    return table(["name", "meaning", "in universe"], rows)


def where(name):
    """The universes whose frames have a name."""
    given = {
        "abstract": abstract.NAMES | {*BINDERS.values()},
        "table": {*frames.RELATIONS, *frames.SETS},
    }
    return ", ".join(universe for universe, known in given.items() if name in known) or "none yet"


def counts():
    """What `isolitmus show` counts, and how much of it is on this page."""
    shown = {kind: len(names_of_kind(kind)) for kind in ("levels", "protocols", "litmus")}
    tests = [litmus(name) for name in litmus_names()]
    on_tables = sum(isinstance(test, Litmus) for test in tests)
    return (
        f"\nThe catalogue holds {shown['levels']} levels, {shown['protocols']} protocols,"
        f" {shown['litmus']} litmus tests, {count_of(len(scopes()), 'scope')},"
        f" {count_of(len(matrices()), 'matrix', 'matrices')} and"
        f" {count_of(len(engines()), 'engine')}. Without those of format"
        f" `locking` this page has {len(every_level())} levels, {len(protocols())} protocols and"
        f" {len(tests)} litmus tests: {on_tables} on tables, {len(tests) - on_tables} abstract"
        " histories.\n\n"
    )


def binders():
    return table(
        ["source of orders", "statement", "meaning of what it binds", "in universe"],
        [
            [
                f"`{source}`",
                f"`with {name} from {source}`",
                RELATIONS[name].meaning,
                where(name) if source == "versions" else "abstract",
            ]
            for source, name in BINDERS.items()
        ],
    )


def properties():
    """Delta's own properties that may be given to a table, and set on one that is there."""
    return table(
        ["property", "value when the table is created", "value when it is set later"],
        [[f"`{key}`", MADE[key].words, SETTABLE[key].words] for key in sorted(MADE, key=str.lower)],
    )


def observed():
    """Each observation, what it asks, and what it is expected to show."""
    every = [observation_named(name) for name in observations()]
    return table(
        ["observation", "experiment", "result"],
        [[f"`{one.name}`", one.title, "; ".join(map(fact, one.expected.items()))] for one in every],
    )


def fact(item):
    key, value = item
    shown = ", ".join(map(str, value)) if isinstance(value, list) else value
    return f"{key}: {shown}"


def measures():
    """Each measure of specs/disk/input_files.py with what stands below it there."""
    body = ast.parse(Path(limits.__file__).read_text("utf-8")).body
    rows = [
        [
            f"{getattr(limits, node.targets[0].id):,}",
            " ".join(below.value.value.split()).rstrip("."),
        ]
        for node, below in pairwise(body)
        if isinstance(node, ast.Assign)
        and node.targets[0].id != "SMALL"  # no limit: how a file is read
        and isinstance(getattr(limits, node.targets[0].id), int)
    ]
    return table(["at most", "of what"], rows)


STATEMENTS = {
    "INSERT VALUES, INSERT … SELECT of other tables": (
        "INSERT INTO t SELECT id, 1 FROM s",
        {},
        "one for each partition and UNION ALL branch",
    ),
    "append with `mergeSchema` (DataFrame) that adds a column": (
        "INSERT INTO t SELECT id, 1 FROM s",
        {"options": Options(grows=())},
        "as INSERT, and the metadata",
    ),
    "INSERT that leaves identity columns out": (
        "INSERT INTO t SELECT id, 1 FROM s",
        {},
        "as INSERT, and the metadata",
    ),
    "micro-batch of a streaming query, output mode append": (
        "INSERT INTO t SELECT id, 1 FROM s",
        {"options": Options(stream=True)},
        "as INSERT, and the number of the batch",
    ),
    "the same, with the table in its plan": (
        "INSERT INTO t SELECT * FROM t",
        {"options": Options(stream=True)},
        "the same",
    ),
    "the same, output mode complete": (
        "INSERT OVERWRITE t SELECT id, 1 FROM s",
        {"options": Options(stream=True)},
        "all are removed, new files are added, and the number of the batch",
    ),
    "INSERT … SELECT of its own table": (
        "INSERT INTO t SELECT * FROM t WHERE id IN (SELECT id FROM t)",
        {},
        "as INSERT",
    ),
    "INSERT OVERWRITE": (
        "INSERT OVERWRITE t SELECT id, 1 FROM s",
        {},
        "all are removed, new files are added",
    ),
    "INSERT OVERWRITE … PARTITION (part = 1), REPLACE WHERE": (
        "INSERT INTO t REPLACE WHERE part = 1 SELECT id, 1 FROM s",
        {},
        "as DELETE with the condition; new files are added",
    ),
    "dynamic overwrite (DataFrame)": (
        "INSERT OVERWRITE t SELECT id, 1 FROM s",
        {"options": Options(dynamic=True)},
        "files of these partitions are removed, new files are added",
    ),
    "overwrite with `replaceUsing` (DataFrame)": (
        "INSERT OVERWRITE t SELECT id, 1 FROM s",
        {"options": Options(using=(0,))},
        "touched files as DELETE with that condition; new files are added",
    ),
    "DELETE, UPDATE": (
        "DELETE FROM t WHERE part = 1 AND id = 1",
        {},
        "touched files are removed; their remaining rows are rewritten",
    ),
    "MERGE": (
        "MERGE INTO t USING t AS s ON t.id = s.id AND t.part = 0 WHEN MATCHED THEN DELETE",
        {},
        "touched files as UPDATE, together with the inserted rows",
    ),
    "MERGE … WHEN NOT MATCHED BY SOURCE": (
        "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE",
        {},
        "all; with deletion vectors only those that change",
    ),
    "TRUNCATE": ("TRUNCATE TABLE t", {}, "all are removed; an empty table is left unchanged"),
    "[CREATE OR] REPLACE TABLE, also AS SELECT": (
        "REPLACE TABLE t USING delta PARTITIONED BY (part) AS SELECT id, part FROM t",
        {},
        "all are removed, new files are added, new metadata",
    ),
    "CREATE TABLE, also AS SELECT, IF NOT EXISTS": (
        "CREATE TABLE t (id INT, part INT) USING delta PARTITIONED BY (part)",
        {},
        "the result of the query, metadata and protocol",
    ),
    "CREATE TABLE … SHALLOW CLONE, also OR REPLACE, IF NOT EXISTS": (
        "CREATE TABLE t SHALLOW CLONE u",
        {},
        "the files of the source, metadata and protocol; not a blind append nevertheless",
    ),
    "RESTORE": (
        "RESTORE TABLE t TO VERSION AS OF {init[1]}",
        {},
        "the files that differ, and the metadata; not a blind append nevertheless",
    ),
    "CONVERT TO DELTA": (
        "CONVERT TO DELTA p",
        {},
        "the files of the Parquet table, metadata and protocol; not a blind append nevertheless",
    ),
    "VACUUM": ("VACUUM t", {}, "none: two empty commits, START and END"),
    "OPTIMIZE, OPTIMIZE … ZORDER BY, REORG … APPLY (PURGE)": (
        "OPTIMIZE t WHERE part = 1",
        {},
        "partitions with several files; all of them; files with deletion vectors",
    ),
}
"""Of each kind of statement an example, what its client says of it besides, and the files that it
writes.
"""

DEFINITIONS = {
    "ALTER TABLE … SET, UNSET TBLPROPERTIES, ADD, DROP, RENAME COLUMN, ALTER COLUMN … COMMENT,"
    " ALTER COLUMN … DROP NOT NULL, DROP CONSTRAINT; COMMENT ON": (
        "ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')", {},
        "the protocol, if a property needs a feature or requests one (`delta.feature.NAME`)",
    ),
    "ALTER TABLE … SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none'), UNSET of it": (
        "ALTER TABLE t SET TBLPROPERTIES ('delta.columnMapping.mode' = 'none')", {},
        "every file is rewritten",
    ),
    "ALTER TABLE … ADD CONSTRAINT": (
        "ALTER TABLE t ADD CONSTRAINT few CHECK (id < 9)", {}, "the protocol, the first time",
    ),
    "ALTER TABLE … ALTER COLUMN … SYNC IDENTITY": (
        "ALTER TABLE i ALTER COLUMN id SYNC IDENTITY", {}, "nothing",
    ),
    "ALTER TABLE … DROP FEATURE": (
        "ALTER TABLE t DROP FEATURE checkConstraints", {}, "the protocol",
    ),
    "ALTER TABLE … CLUSTER BY": (
        "ALTER TABLE t CLUSTER BY (id)", {},
        "the domain `delta.clustering`; metadata and protocol only if the table was not clustered",
    ),
}  # fmt: skip

PART = (Column("id", "INT"), Column("part", "INT"))
TABLES = {
    "t": Schema("t", PART, ("part",)),
    "u": Schema("u", PART, ("part",)),
    "s": Schema("s", (Column("id", "INT"),)),
    "p": Schema("p", (Column("id", "INT"),), parquet=((1,),), exists=False),
    "i": Schema("i", (Column("id", "BIGINT", Identity(True, 1, 1)),)),
}


def recorded(access):
    """The predicate on partitions that a read leaves in the transaction, and the files."""
    told = {
        "target": "the conditions on partition columns only",
        "match": "the conditions of ON on the target's partition columns only",
        "compact": "the condition of WHERE",
        "query": "one for each scan of the table",
        "subquery": "one for each scan of the table",
    }
    left = "those that remain after pruning and skipping"
    dynamic = access.role == "target" and access.tracked == "predicate"
    rewrites = access.role == "compact" and access.tracked == "predicate"
    every = (
        access.where is None
        and access.role in ("target", "using", "match", "compact")
        and not rewrites
    )
    predicate = "TRUE" if every or access.whole else told[access.role]
    files = ("all" if every else left) if access.tracked == "files" else "none"
    if dynamic:
        predicate = "the written partitions"
    if rewrites:
        files = "those that are rewritten"
    return predicate, files + ("; marked as reading the whole table" if access.whole else "")


def read(examples, last):
    """What a transaction records of each kind of statement as read, and what it writes."""
    rows = []
    for label, (sql, options, written) in examples.items():
        statement = replace(read_statement(sql, TABLES), **options)
        found = [a for a in accesses(statement, TABLES) if a.tracked != "nothing"]
        parts = zip(*map(recorded, found), strict=True) if found else (("none",), ("none",))
        predicate, files = (dict.fromkeys(part) for part in parts)
        files = [f for f in files if "all" not in files or f.startswith("all")]
        rows.append([label, ", and ".join(predicate), ", and ".join(files), written])
    return table(["statement", "predicate on partitions", "files read", last], rows)


def apart():
    """What is modelled alone, but not together, and what is said of a transaction that has both."""
    words = {"table": "t", "name": "a"} | dict.fromkeys(
        ("file", "key", "operation", "sql", "verb"), "…"
    )
    rows = [
        [f"{one}; {other}", why.format_map(words).lstrip(":. ")]
        for (one, other), why in APART.items()
    ]
    return table(["together", "what is said of it"], rows)


ENDS = ("refuse", "outside")
NAMED = {"OUTSIDE": OUTSIDE, "UNMODELLED": UNMODELLED}


def said(part):
    """A sentence in the source; what is filled in is three dots, but for names of sentences."""
    match part:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(map(said, parts))
        case ast.FormattedValue(value=ast.Name(id=name)) if name in NAMED:
            return NAMED[name]
        case ast.FormattedValue(value=ast.Call(func=ast.Name(id="near"))):
            return ""
        case ast.FormattedValue():
            return "…"
    return ""


def refused():
    """What the readers refuse by itself because it is not modelled."""
    texts = {
        said(node).removeprefix("…: ")
        for path in [*(ROOT / "specs").rglob("*.py"), *(ROOT / "jobs" / "sql").rglob("*.py")]
        if path.name != "unsupported_pairs.py"
        for part in ast.walk(ast.parse(path.read_text("utf-8")))
        for node in (part.args if isinstance(part, ast.Call) else [part])
        if isinstance(node, ast.JoinedStr) or getattr(getattr(part, "func", 0), "attr", "") in ENDS
    }
    marks = ("not modelled", "is modelled", OUTSIDE)
    lines = sorted((t for t in texts if any(mark in t for mark in marks)), key=str.lower)
    return "\n" + "".join(f"- {line}\n" for line in lines) + "\n"


def written_by_dbt():
    """What the adapters of dbt write for each incremental strategy."""
    rows = []
    for adapter, strategies in STRATEGIES.items():
        for strategy in strategies:
            config = {
                "incremental_strategy": strategy, "file_format": "delta", "unique_key": "id",
                "partition_by": "day", "event_time": "day",
            }  # fmt: skip
            if strategy == "replace_where":
                config["incremental_predicates"] = ["day > 1"]
            node = DbtNode("model.p.m", "model", "m", relation_name="m", config=config)
            manifest = DbtManifest("manifest.json", "p", adapter, {"model.p.m": node}, {}, {})
            (main,) = build_incremental_run(node, manifest, "select 1", ["id", "day"]).main
            rows.append([f"dbt-{adapter}", f"`{strategy}`", f"``{main}``"])
    return table(["adapter", "strategy", "statement"], rows)


def theorems():
    """How each theorem is known: its proof on paper, tests, the solver's proof, the Coq script."""
    rows = []
    for name, status in THEOREMS.items():
        names = ", ".join(f"`{test}`" for _, test in status.tests)
        solver = f"`{status.command}`" if status.command else ""
        script = f"`proofs/{status.script}.v`" if status.script else ""
        paper = f"`{status.paper}`" if status.paper.endswith(".py") else status.paper
        tested = f"{status.scope} ({names})" if status.tests else ""
        rows.append([name, paper, tested, solver, "yes" if status.is_certified else "", script])
    return table(
        ["theorem", "paper proof", "tested to a scope", "solver", "another solver", "Coq"], rows
    )


LISTS = {
    "theorems": theorems,
    "writes of dbt": written_by_dbt,
    "apart": apart,
    "refused": refused,
    "statements": lambda: read(STATEMENTS, "files written"),
    "definitions": lambda: read(DEFINITIONS, "written in addition to the metadata"),
    "properties": properties,
    "specs": specs,
    "relations": lambda: names(RELATIONS),
    "sets": lambda: names(SETS),
    "binders": binders,
    "counts": counts,
    "measures": measures,
    "observations": observed,
    "sweep tables": swept,
    "table of checks": lambda: columns(VERDICTS),
    "metrics of audits": metrics,
    "table of audits": lambda: columns(AUDITS),
    "table of replays": lambda: columns(REPLAYS),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [p for p in PAGES if LIST.search(p.read_text("utf-8"))], ids=page_id
)
def test_lists_are_what_the_code_gives(page):
    text = page.read_text("utf-8")
    new = LIST.sub(lambda match: match[1] + match[2] + LISTS[match[1]](), text)
    if os.environ.get("ISOLITMUS_UPDATE"):
        page.write_text(new, "utf-8")
        text = new
    lines = text.splitlines(), new.splitlines()
    diff = [*difflib.unified_diff(*lines, page.name, "the code", lineterm="", n=1)]
    assert not diff, "\n".join([*diff, "", "ISOLITMUS_UPDATE=1 writes it anew."])


def test_every_list_is_on_a_page():
    shown = [m[1] for page in PAGES for m in LIST.finditer(page.read_text("utf-8"))]
    assert set(shown) == set(LISTS)


@pytest.mark.slow
def test_every_feature_of_a_pair_is_found_by_somebody():
    sources = [*(ROOT / "specs").rglob("*.py"), ROOT / "checker" / "delta" / "statement_effects.py"]
    texts = {
        node.value
        for path in sources
        for part in ast.parse(path.read_text("utf-8")).body
        if not (isinstance(part, ast.AnnAssign) and part.target.id == "APART")
        for node in ast.walk(part)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert {feature for pair in APART for feature in pair} <= texts
