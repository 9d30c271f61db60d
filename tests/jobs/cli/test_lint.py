"""``isolitmus lint`` as a person and a CI system call it: findings, files, exit statuses."""

import email.message
import json
import os
import re
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml

from isolitmus.jobs.lint_rule import RULES

ROOT = Path(__file__).parents[3]
SHOP = ROOT / "tests" / "data" / "dbt" / "shop"
DDL = "CREATE TABLE events (id BIGINT, kind STRING, day DATE) USING delta PARTITIONED BY (day)"
DEDUPE = "DELETE FROM events WHERE day = :day AND kind = 'duplicate'"
APPEND = "INSERT INTO events VALUES (:id, 'click', :day)"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder, with the files of two jobs and their table."""
    for name, text in (("tables", DDL), ("dedupe", DEDUPE), ("append", APPEND)):
        (tmp_path / f"{name}.sql").write_text(text + "\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(call, *words):
    """The document of a run, of which each finding has its rule and its statements."""
    status, out, err = call("lint", *(words or (".",)), "--json")
    assert err == ""
    document = json.loads(out)
    for one in document["findings"]:
        one["what"] = (one["rule"], *(place["statement"] for place in one["places"]))
    return status, document


def rules(document, state="new"):
    return sorted(one["what"] for one in document["findings"] if one["state"] == state)


BOTH = [("ISO201", "dedupe"), ("ISO201", "dedupe", "append")]


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_one_finding_a_pair_at_the_statement_that_aborts(call):
    status, out, err = call("lint", ".")
    assert (status, err) == (1, "")
    assert out.startswith("dedupe.sql:1:1: ISO201 warning: dedupe may conflict with another run")
    assert "    append.sql:1:1: append\n" in out
    assert "append never aborts if dedupe commits meanwhile (proved)" in out
    assert "if append with the same :day commits" in out
    assert out.endswith(
        "2 findings (2 warnings); 2 statements in 2 files. Protocol: delta-serializable.\n"
    )
    assert rules(found(call)[1]) == BOTH


@pytest.mark.slow
def test_exit_statuses(folder, call):
    assert call("lint", ".", "--ignore", "ISO2")[0] == 0
    assert call("lint", ".", "--select", "ISO202")[0] == 0
    (folder / "landing.sql").write_text("COPY INTO events FROM '/landing'", "utf-8")
    status, out, _ = call("lint", ".", "--ignore", "ISO2")
    assert status == 0
    assert "landing.sql:1:1: ISO001 note: statement not understood" in out
    assert "1 of them not understood, so their conflicts are unknown" in out
    assert call("lint", ".", "--ignore", "ISO2", "--strict")[0] == 3
    assert call("lint", ".", "--strict")[0] == 1
    assert call("lint", ".", "--no-cache", "--time", "0", "--ignore", "ISO001")[0] == 3


@pytest.mark.parametrize(
    ("words", "files", "said"),
    [
        (["none"], {}, "no file or folder 'none'"),
        (["empty"], {"empty/a.txt": ""}, "empty has no file NAME.sql"),
        (["."], {"isolitmus.toml": "levle = 'x'"}, "isolitmus.toml:1: the file has no key 'levle'"),
        (["."], {"isolitmus.toml": "\nstrict = 1"}, "isolitmus.toml:2: strict is 1; expected true"),
        (["."], {"isolitmus.toml": "a"}, "isolitmus.toml:1:2: not valid TOML"),
        (
            ["."],
            {"pyproject.toml": "[tool.isolitmus]\nselect = ['ISO210']"},
            "pyproject.toml:2: tool.isolitmus.select: unknown rule 'ISO210'; did you mean",
        ),
        (
            ["."],
            {"pyproject.toml": "[tool.isolitmus.schedule]\napart = [['a']]"},
            "pyproject.toml:2: tool.isolitmus.schedule.apart has ['a']; write pairs of jobs",
        ),
        (
            [],
            {"isolitmus.toml": "paths = ['.']\n[schedule]\napart = [['dedup', 'append']]"},
            "isolitmus.toml:3: schedule.apart: unknown job 'dedup'; did you mean 'dedupe'?",
        ),
        (
            [],
            {"isolitmus.toml": "paths = ['.']\n[schedule]\ndistinct = ['dya']"},
            "isolitmus.toml:3: distinct names 'dya', but no job has this parameter; did you mean",
        ),
        (
            ["."],
            {"isolitmus.toml": "strict = true\nlevel = 'Serialisable'"},
            "isolitmus.toml:2: unknown level 'Serialisable'; did you mean 'Serializable'",
        ),
        (
            [],
            {"isolitmus.toml": "\npaths = ['.', 'gone']"},
            "isolitmus.toml:2: paths: no file or folder 'gone'",
        ),
        (
            ["."],
            {"pyproject.toml": "[tool.isolitmus]\nddl = 'gone.sql'"},
            "pyproject.toml:2: tool.isolitmus.ddl: no file 'gone.sql'",
        ),
        ([], {}, "no path to lint"),
        ([".", "--select", "ISO9"], {}, "--select: unknown rule 'ISO9'"),
        ([".", "--level", "Serialisable"], {}, "did you mean 'Serializable'"),
        ([".", "--update-baseline"], {}, "--update-baseline needs --baseline"),
        ([".", "--baseline", "b.json"], {}, "cannot read b.json"),
        ([".", "--baseline", "b.json"], {"b.json": "[]"}, "b.json: not a baseline"),
        ([".", "--baseline", "b.json"], {"b.json": "{"}, "b.json: not a baseline: not valid JSON"),
        (
            [".", "--baseline", "b.json"],
            {"b.json": '{"isolitmus_baseline": 2, "findings": []}'},
            "b.json: baseline of format 2, but this release reads 1; write it again with",
        ),
        ([".", "--as", "xml"], {}, "--as is 'xml'; expected one of sarif"),
        (["."], {"isolitmus.toml": "exclude = ['*.sql']"}, "every SQL file is excluded"),
        (["."], {"isolitmus.toml": "exclude = ['../x']"}, "the pattern '../x' leaves the folder"),
        (["--config", "c.toml"], {}, "cannot read"),
    ],
)
def test_bad_input_is_one_sentence(folder, call, words, files, said):
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    status, out, err = call("lint", *words)
    assert (status, out) == (2, "")
    assert said in err
    assert err.startswith("isolitmus: ")


# Comments and settings


def test_a_comment_at_either_statement_counts(folder, call):
    (folder / "append.sql").write_text(f"-- isolitmus: ignore[ISO201]\n{APPEND}\n", "utf-8")
    _, document = found(call)
    assert rules(document) == BOTH[:1]
    assert rules(document, "ignored") == BOTH[1:]


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        f"{DEDUPE} -- isolitmus: ignore[ISO201]\n",
        f"{DEDUPE}; -- isolitmus: ignore[ISO2]\n",
        f"/* isolitmus: ignore[ISO202, ISO201] */\n\n{DEDUPE}\n",
        f"-- isolitmus: ignore-file[ISO201]\nSELECT * FROM events;\n{DEDUPE}\n",
    ],
)
def test_comments_beside_before_and_of_a_file(folder, call, text):
    (folder / "dedupe.sql").write_text(text, "utf-8")
    status, document = found(call, ".", "--ignore", "ISO002")
    assert (status, rules(document)) == (0, [])
    assert len(rules(document, "ignored")) == 2


def test_comments_that_do_nothing_are_findings(folder, call):
    text = f"-- isolitmus: ignore[ISO202,ISO20l]\n{APPEND};\n-- isolitmus: ignore\n"
    (folder / "append.sql").write_text(text, "utf-8")
    status, out, _ = call("lint", ".", "--select", "ISO00,ISO202")
    assert status == 1
    assert "append.sql:1:4: ISO002 warning: unused ignore comment: no finding of ISO202" in out
    assert "append.sql:1:4: ISO003 warning: invalid ignore comment: unknown rule 'ISO20l'" in out
    assert "append.sql:3:4: ISO003 warning: invalid ignore comment: no rule in 'ignore'" in out


def test_a_comment_in_a_string_is_none(folder, call):
    text = "DELETE FROM events WHERE kind = '-- isolitmus: ignore[ISO201]' AND day = :day"
    (folder / "dedupe.sql").write_text(text, "utf-8")
    assert rules(found(call)[1]) == BOTH


def test_settings_of_the_nearest_file(folder, call):
    (folder / "pyproject.toml").write_text(
        '[project]\nname = "x"\n[tool.isolitmus]\nddl = "ddl/t.sql"\nexclude = ["old"]\n'
        '[tool.isolitmus.per-file-ignores]\n"models/app*.sql" = ["ISO201"]\n'
        '[tool.isolitmus.schedule]\napart = [["dedupe", "dedupe"]]\n',
        "utf-8",
    )
    for name in ("models/old", "ddl"):
        (folder / name).mkdir(parents=True)
    for name, to in (("tables", "ddl/t"), ("append", "models/append"), ("dedupe", "models/dedupe")):
        (folder / f"{name}.sql").rename(folder / f"{to}.sql")
    (folder / "models/old/x.sql").write_text("nonsense", "utf-8")
    status, document = found(call, "models")
    assert (status, rules(document), document["not_understood"]) == (0, [], [])
    assert rules(document, "ignored") == BOTH[1:]
    status, document = found(call, "models", "--level", "WriteSerializable")
    assert document["protocol"] == "delta-write-serializable"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("one_at_a_time = 'dedupe'", 1),
        ("after = { append = 'dedupe' }", 0),
        ("apart = [['dedupe', 'append']]\none_at_a_time = 'all'", 0),
    ],
)
def test_the_schedule_of_sql_files(folder, call, text, left):
    (folder / "isolitmus.toml").write_text(f"[schedule]\n{text}\n", "utf-8")
    _, out, _ = call("lint", str(folder), "--json")
    found = [one for one in json.loads(out)["findings"] if one["rule"].startswith("ISO2")]
    assert len(found) == left


def test_a_key_of_the_schedule_that_sql_files_do_not_have(folder, call):
    (folder / "isolitmus.toml").write_text("[schedule]\nthreads = 4\n", "utf-8")
    status, _, err = call("lint", str(folder))
    assert status == 2
    assert "isolitmus.toml:2: schedule.threads is for dbt projects; remove it" in err


def test_distinct_parameters_of_the_schedule(folder, call):
    (folder / "isolitmus.toml").write_text('[schedule]\ndistinct = ["day"]\n', "utf-8")
    status, document = found(call)
    assert (status, rules(document)) == (0, [])
    assert document["assumptions"] == ["Concurrent runs never have the same :day."]


def test_a_workload_file_is_linted(folder, call):
    (folder / "w.toml").write_text(
        f'ddl = "{DDL}"\n# isolitmus: ignore[ISO201]\n[jobs.dedupe]\nsql = "{DEDUPE}"\n'
        f'[jobs.append]\nsql = """\n{APPEND}\n"""\n[jobs.bad]\nsql = "SELEKT"\n',
        "utf-8",
    )
    status, document = found(call, "w.toml")
    assert (status, rules(document, "ignored")) == (1, BOTH)
    assert rules(document) == [("ISO005", "bad")]
    lines = {
        place["statement"]: place["line"] for f in document["findings"] for place in f["places"]
    }
    assert lines == {"dedupe": 4, "append": 7, "bad": 10}


def test_a_job_that_never_runs(folder, call):
    (folder / "never.sql").write_text(
        f"-- where day > '2026-02-01' AND day < '2026-01-01'\n{DEDUPE}\n", "utf-8"
    )
    _, document = found(call)
    assert rules(document) == [("ISO004", "never"), *BOTH]


def test_what_is_not_understood_leaves_the_others_their_findings(folder, call):
    (folder / "loop.sql").write_text("{% for x in y %}", "utf-8")
    _, document = found(call)
    assert rules(document) == [("ISO001", "loop"), *BOTH]


# Baseline


@pytest.mark.slow
def test_a_baseline_knows_findings_by_what_they_say(folder, call):
    status, out, err = call("lint", ".", "--baseline", "b.json", "--update-baseline")
    assert (status, out, err) == (0, "", "isolitmus: b.json has 2 findings\n")
    assert found(call, ".", "--baseline", "b.json")[0] == 0
    moved = f"-- a comment\n\n{DEDUPE.replace(' WHERE', '  -- more' + chr(10) + '  WHERE')}\n"
    (folder / "dedupe.sql").write_text(moved, "utf-8")
    status, document = found(call, ".", "--baseline", "b.json")
    assert (status, rules(document), rules(document, "baseline")) == (0, [], BOTH)
    (folder / "dedupe.sql").write_text(DEDUPE.replace("'duplicate'", "'d'"), "utf-8")
    status, document = found(call, ".", "--baseline", "b.json")
    assert (status, rules(document), len(document["gone"])) == (1, BOTH, 2)
    (folder / "dedupe.sql").write_text("SELECT * FROM events", "utf-8")
    status, out, _ = call("lint", ".", "--baseline", "b.json")
    assert status == 0
    assert out.count("no longer found, remove it with --update-baseline: ISO201 dedupe.sql") == 2


# Cache


@pytest.fixture
def kept(tmp_path_factory, monkeypatch):
    """The folder of answers in the user's cache."""
    home = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    return home / "isolitmus" / "lint"


@pytest.fixture
def asked(monkeypatch):
    """The pairs of statements that are asked about."""
    from isolitmus.jobs.predict.prediction import PairPredictor

    pairs = []
    really = PairPredictor.pair

    def counted(self, loser, winner):
        pairs.append((loser.name, winner.name))
        return really(self, loser, winner)

    monkeypatch.setattr(PairPredictor, "pair", counted)
    return pairs


@pytest.mark.slow
def test_answers_are_kept(folder, call, kept, asked):
    first = found(call)
    (path,) = kept.iterdir()
    assert {one.name for one in folder.iterdir()} == {"tables.sql", "dedupe.sql", "append.sql"}
    assert [one.stat().st_mode & 0o777 for one in (kept.parent, kept)] == [0o700, 0o700]
    asked.clear()
    assert found(call) == first
    assert asked == []
    assert found(call, ".", "--no-cache") == first
    assert len(asked) == 4
    (folder / "append.sql").write_text(APPEND.replace("click", "view"), "utf-8")
    asked.clear()
    found(call)
    assert sorted(asked) == [("append", "append"), ("append", "dedupe"), ("dedupe", "append")]
    assert [*kept.iterdir()] == [path]


@pytest.mark.slow
def test_what_a_repository_says_is_no_answer(folder, call, kept, asked):
    """A cache that a commit can hold, with every word ``never``, and right digests."""
    assert found(call)[0] == 1
    asked.clear()
    (path,) = kept.iterdir()
    head, body = path.read_text("utf-8").splitlines()
    body = body.replace('"when"', '"never"').replace('"always"', '"never"')
    digest = sha256(body.encode()).hexdigest()
    lie = json.dumps({**json.loads(head), "digest": digest}) + f"\n{body}\n"
    (folder / ".isolitmus_cache").mkdir()
    (folder / ".isolitmus_cache" / "answers.json").write_text(lie, "utf-8")
    path.unlink()
    assert rules(found(call)[1]) == BOTH
    assert len(asked) == 4
    path.write_text(lie, "utf-8")
    assert found(call)[0] == 0  # it would have been believed


# Formats


def sarif_of(call, *words):
    status, out, err = call("lint", *words, "--as", "sarif")
    assert err == ""
    return status, json.loads(out)


@pytest.mark.slow
def test_sarif(folder, call):
    """Its form was checked with the schema of OASIS; here, by a model of that schema, if there."""
    (folder / "with space.sql").write_text(f"{DEDUPE} -- isolitmus: ignore[ISO201]\n", "utf-8")
    call("lint", ".", "--baseline", "b.json", "--update-baseline")
    (folder / "more.sql").write_text("UPDATE events SET id = 1 WHERE day = :day", "utf-8")
    status, log = sarif_of(call, ".", "--baseline", "b.json")
    assert status == 1
    assert (log["version"], len(log["runs"])) == ("2.1.0", 1)
    (run,) = log["runs"]
    described = run["tool"]["driver"]["rules"]
    for one in run["results"]:
        assert described[one["ruleIndex"]]["id"] == one["ruleId"]
        assert re.fullmatch("[0-9a-f]{16}", one["partialFingerprints"]["isolitmus/v1"])
        for place in (*one["locations"], *one.get("relatedLocations", [])):
            uri = place["physicalLocation"]["artifactLocation"]["uri"]
            assert (folder / uri.replace("%20", " ")).exists()
    assert {one["id"] for one in described} == {code for code in RULES if RULES[code].default}
    states = {one["baselineState"] for one in run["results"]}
    assert states == {"new", "unchanged"}
    kinds = {s["kind"] for one in run["results"] for s in one.get("suppressions", [])}
    assert kinds == {"inSource"}
    assert run["invocations"] == [{"executionSuccessful": True}]
    model = pytest.importorskip("sarif_pydantic", reason="pip install sarif-pydantic")
    assert model.Sarif.model_validate(log).runs[0].results


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("url", [None, "https://example.org/docs"])
def test_the_help_of_a_rule_is_where_the_metadata_of_the_package_say(url, call, monkeypatch):
    """A file of this machine is of no use where the log is read."""
    package = email.message.Message()
    package["Project-URL"] = "Source, https://example.org"
    if url is not None:
        package["Project-URL"] = f"Documentation, {url}"
    monkeypatch.setattr("isolitmus.jobs.cli.lint.metadata", lambda _: package)
    (run,) = sarif_of(call, ".")[1]["runs"]
    for rule in run["tool"]["driver"]["rules"]:
        page = None if url is None else f"{url}/lint.md#{RULES[rule['id']].anchor}"
        assert rule.get("helpUri") == page
        assert RULES[rule["id"]].mend in rule["help"]["text"]
    assert "file:" not in json.dumps(run["tool"])


@pytest.mark.usefixtures("folder")
def test_sarif_of_a_run_that_a_limit_ended(call):
    status, log = sarif_of(call, ".", "--time", "0", "--no-cache")
    assert status == 3
    (said,) = log["runs"][0]["invocations"]
    assert said["executionSuccessful"] is False
    assert "time limit" in said["toolExecutionNotifications"][0]["message"]["text"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "written"),
    [
        ("sarif", '"uri": "shop/models/marts/orders.sql"'),
        ("github", "::notice file=shop/models/marts/orders.sql,line=1,"),
        ("junit", '<testsuite name="shop/models/marts/orders.sql"'),
        ("json", '"file": "shop/models/marts/orders.sql"'),
        ("markdown", r"shop/models/marts/orders\.sql\:1"),
    ],
)
def test_a_dbt_model_that_is_not_understood_has_its_file(form, written, folder, call):
    shutil.copytree(SHOP, folder / "shop")
    path = folder / "shop" / "target" / "manifest.json"
    manifest = json.loads(path.read_text("utf-8"))
    manifest["nodes"]["model.shop.orders"]["compiled_code"] = None
    path.write_text(json.dumps(manifest), "utf-8")
    hooks = str(folder / "shop" / "hooks.sql")
    _, out, _ = call("lint", "shop", "--ddl", hooks, "--select", "ISO001", "--as", form)
    assert written in out


JUNIT = {
    "testsuites": ({"testsuite"}, {"name", "tests", "failures", "errors"}),
    "testsuite": ({"testcase"}, {"name", "tests", "failures", "errors", "skipped"}),
    "testcase": ({"failure", "skipped"}, {"name", "classname"}),
    "failure": (set(), {"message", "type"}),
    "skipped": (set(), {"message"}),
}
"""Elements that are written, with their children and attributes, all of them in junit-10.xsd."""


def test_junit(folder, call):
    (folder / "a&b.sql").write_text("SELECT id FROM events WHERE kind = '<&\"'", "utf-8")
    (folder / "landing.sql").write_text("COPY INTO events FROM '/landing'", "utf-8")
    status, out, _ = call("lint", ".", "--as", "junit", "--out", "lint.xml")
    assert (status, out) == (1, "")
    root = ET.parse(folder / "lint.xml").getroot()
    for one in root.iter():
        children, attributes = JUNIT[one.tag]
        assert {child.tag for child in one} <= children
        assert set(one.attrib) <= attributes
    suites = {one.attrib["name"]: one for one in root}
    assert set(suites) == {"a&b.sql", "append.sql", "dedupe.sql", "landing.sql"}
    count = {name: len(suite.findall(".//failure")) for name, suite in suites.items()}
    assert count == {"a&b.sql": 0, "append.sql": 0, "dedupe.sql": 2, "landing.sql": 0}
    assert root.attrib["failures"] == "2"
    assert len(root.findall(".//skipped")) == 1
    junitparser = pytest.importorskip("junitparser", reason="pip install junitparser")
    assert sum(suite.failures for suite in junitparser.JUnitXml.fromfile("lint.xml")) == 2


INVALID = {
    "-- a comment\nSELEC * FROM events": (2, 1, "'SELECT'"),
    "UPDATE events\n  SET knd = 'x'": (2, 7, "'kind'"),
    "DELETE FROM event WHERE day = :day": (1, 13, "'events'"),
    "DELETE FROM events WHERE (kind = 'a'": (1, 36, "Expecting )"),
    "MERGE INTO events e USING feed s ON e.idd = s.id WHEN MATCHED THEN DELETE": (1, 37, "'id'"),
}


@pytest.mark.parametrize("sql", INVALID)
def test_an_invalid_statement_is_a_warning_at_the_word(folder, call, sql):
    (folder / "tables.ddl").write_text(DDL, "utf-8")
    (folder / "bad.sql").write_text(f"{sql};\n", "utf-8")
    status, document = found(call, "bad.sql", "--ddl", "tables.ddl")
    (one,) = document["findings"]
    (place,) = one["places"]
    line, column, words = INVALID[sql]
    assert (status, one["rule"], one["severity"]) == (1, "ISO005", "warning")
    assert (place["line"], place["end_line"], place["column"]) == (line, line, column)
    assert words in one["title"]


@pytest.mark.parametrize(
    ("sql", "more"),
    [
        ("COPY INTO events FROM '/x' FILEFORMAT = CSV", ""),
        ("DELETE FROM clicks", ""),  # the DDL may lack it
        ("DELETE FROM events_2", ""),
        ("UPDATE events SET knd = 'x' WHERE id = :id", "ALTER TABLE events ADD COLUMN knd STRING"),
        ("INSERT INTO events {% if full %} SELECT * FROM s", ""),
    ],
)
def test_what_may_be_valid_is_a_note(folder, call, sql, more):
    (folder / "tables.ddl").write_text(DDL, "utf-8")
    (folder / "bad.sql").write_text(f"{more};\n{sql};\n" if more else sql, "utf-8")
    _, document = found(call, "bad.sql", "--ddl", "tables.ddl")
    codes = {one["rule"] for one in document["findings"]}
    assert "ISO001" in codes
    assert "ISO005" not in codes


def test_an_ignore_comment_before_the_statement_concerns_its_words(folder, call):
    (folder / "tables.ddl").write_text(DDL, "utf-8")
    (folder / "bad.sql").write_text(
        "-- isolitmus: ignore[ISO005]\nUPDATE events\n  SET knd = 'x'", "utf-8"
    )
    status, document = found(call, "bad.sql", "--ddl", "tables.ddl")
    assert (status, rules(document), rules(document, "ignored")) == (0, [], [("ISO005", "bad")])


@pytest.mark.slow
def test_a_file_that_is_not_utf_8_leaves_the_others_their_answers(folder, call):
    (folder / "old.sql").write_bytes(b"DELETE FROM events WHERE kind = 'caf\xe9'")
    status, document = found(call, ".")
    assert status == 1
    assert ("ISO005", "old") in rules(document)
    assert {*BOTH} < {*rules(document)}
    (one,) = (one for one in document["findings"] if one["rule"] == "ISO005")
    assert "not UTF-8 text (byte 37)" in one["title"]
    for verb in ("predict", "robust"):
        _, out, _ = call(verb, ".")
        assert "- old (old.sql): it is not UTF-8 text (byte 37)" in out
    assert call("predict", "old.sql")[0] == 2


def test_github(folder, call):
    (folder / "a,b%.sql").write_text("SELECT nothing FROM events", "utf-8")
    status, out, _ = call("lint", ".", "--as", "github")
    assert status == 1
    lines = out.splitlines()
    assert lines[0].startswith("::warning file=a%2Cb%25.sql,line=1,endLine=1,col=8,")
    assert lines[1].startswith(
        "::warning file=dedupe.sql,line=1,endLine=1,col=1,title=ISO201 jobs-may-conflict::dedupe may"
    )
    assert lines[2].endswith("(proved).%0ARelated: append.sql:1: append")


def test_markdown(folder, call):
    (folder / "a_b.sql").write_text("SELECT `<b>|x` FROM events", "utf-8")
    status, out, _ = call("lint", ".", "--as", "markdown")
    assert status == 1
    assert "<b>" not in out
    rows = [line for line in out.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 3
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 5 for row in rows)


@pytest.mark.slow
def test_examples_are_saved(folder, call):
    assert call("lint", ".", "--save", "examples")[0] == 1
    names = sorted(path.name for path in (folder / "examples").iterdir())
    assert names == ["iso201-1-1.toml", "iso201-1-2.toml", "iso201-2-1.toml"]
    for name in names:
        assert call("run", f"examples/{name}")[0] == 0


# The action and the hook


def steps():
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    return action["inputs"], action["runs"]["steps"]


def test_the_form_of_the_action():
    inputs, found = steps()
    assert all(step["shell"] == "bash" for step in found)
    for step in found:
        used = set(re.findall(r"\$\{\{ inputs\.(\w+) \}\}", json.dumps(step["env"])))
        assert used <= set(inputs)
        assert "${{" not in step["run"]
    check = pytest.importorskip("check_jsonschema", reason="pip install check-jsonschema")
    schema = Path(check.__file__).parent / "builtin_schemas" / "vendor" / "github-actions.json"
    jsonschema = pytest.importorskip("jsonschema")
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    jsonschema.validate(action, json.loads(schema.read_text("utf-8")))


@pytest.mark.slow
def test_the_steps_of_the_action_run(folder):
    """In bash, with the environment that GitHub gives them."""
    tools = folder / "tools"
    tools.mkdir()
    (tools / "isolitmus").write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -m isolitmus "$@"\n', "utf-8"
    )
    (tools / "isolitmus").chmod(0o755)
    given = {
        "paths": ". ",
        "arguments": "--level\nWriteSerializable\n--ignore\nISO002",
        "sarif": "lint.sarif",
        "summary": "true",
        "package": "",
    }
    inputs, found = steps()
    assert set(inputs) == set(given)
    for step in found:
        env = {
            name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda one: given[one[1]], value)
            for name, value in step["env"].items()
        }
        env = {name: value for name, value in env.items() if "${{" not in value}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=folder,
            env={
                **os.environ,
                **env,
                "PATH": f"{tools}:{os.environ['PATH']}",
                "GITHUB_STEP_SUMMARY": str(folder / "summary"),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stderr == ""
    assert done.returncode == 1
    assert done.stdout.startswith("::warning file=dedupe.sql")
    assert "Protocol: delta-write-serializable" in done.stdout
    assert json.loads((folder / "lint.sarif").read_text("utf-8"))["version"] == "2.1.0"
    assert (folder / "summary").read_text("utf-8").startswith("## isolitmus lint\n")


@pytest.mark.parametrize(
    "paths", ["models jobs", "models\njobs\n", "models\r\njobs", "\n  models\n\n\tjobs  \n"]
)
def test_paths_of_the_action_on_several_lines(tmp_path, paths):
    """With an ``isolitmus`` that writes down its arguments."""
    (tmp_path / "isolitmus").write_text('#!/bin/sh\nprintf "%s|" "$@" >>calls\necho >>calls\n')
    (tmp_path / "isolitmus").chmod(0o755)
    (lint,) = (step["run"] for step in steps()[1] if step["name"] == "Lint")
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", lint],
        cwd=tmp_path,
        env={
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "PATHS": paths,
            "ARGUMENTS": "",
            "SARIF": "a.sarif",
            "SUMMARY": "true",
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        },
        check=False,
    )
    assert done.returncode == 0
    calls = (tmp_path / "calls").read_text().splitlines()
    assert len(calls) == 3
    assert all(call.endswith("|--|models|jobs|") for call in calls)


@pytest.mark.slow
def test_pip_of_the_action_imports_nothing_of_the_repository(tmp_path):
    """pip is asked for a package that is there, so that it needs no network."""
    (install,) = (step["run"] for step in steps()[1] if step["name"] == "Install isolitmus")
    for name in ("pip", "select", "signal", "typing"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w').close()")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", install],
        cwd=tmp_path,
        env={"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "PACKAGE": "pip", "FOLDER": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert not (tmp_path / "ran").exists()


def test_the_hook_of_pre_commit():
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert (hook["id"], hook["entry"], hook["language"]) == (
        "isolitmus-lint",
        "isolitmus lint",
        "python",
    )
    assert hook["pass_filenames"] is False


# The page


def test_each_rule_has_its_section_with_an_example():
    page = (ROOT / "docs" / "lint.md").read_text("utf-8")
    sections = dict(re.findall(r"^### (.*)\n((?:(?!^### ).*\n?)*)", page, re.MULTILINE))
    assert list(sections) == [f"{rule.code} {rule.name}" for rule in RULES.values()]
    for rule in RULES.values():
        text = sections[f"{rule.code} {rule.name}"]
        assert re.search(rf"^\S+:\d+:\d+: {rule.code} {rule.severity}: ", text, re.MULTILINE)
        mend = text.partition("*To mend it*: ")[2].replace("`", "").replace("\n", " ")
        assert rule.mend and mend.startswith(rule.mend), rule.code
        on = "on" if rule.default else "off"
        assert f"| `{rule.code}` | {rule.name} | {rule.severity} | {on} |\n" in page
        assert rule.anchor == f"{rule.code.lower()}-{rule.name}"
