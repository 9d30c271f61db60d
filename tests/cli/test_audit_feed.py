"""``isolitmus audit`` for other programs: several followed tables, Prometheus text, JSON lines."""

import json
import re
import shutil
from collections import Counter
from math import isfinite
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from isolitmus.checker.render.audit_metrics import METRICS, escape_label, prometheus_text
from isolitmus.model.audit import KINDS, Audit, AuditRound
from isolitmus.model.errors import MemoryLimit
from isolitmus.specs.disk.output_files import LineAppender

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)')
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)", re.DOTALL)
MEANS = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


def parse(text):
    """The samples of a text in the exposition format 0.0.4, by name and labels; it is strict."""
    assert text.endswith("\n")
    found, kinds, helped = {}, {}, set()
    for line in text[:-1].split("\n"):
        if comment := re.fullmatch(rf"# (HELP|TYPE) ({NAME}) (.+)", line):
            word, name, rest = comment.groups()
            assert not any(name == known for known, _ in found), "it stands after a sample"
            if word == "HELP":
                assert name not in helped
                helped.add(name)
            else:
                assert name not in kinds
                assert rest in ("counter", "gauge")
                kinds[name] = rest
            last = name
            continue
        name, inside, value = SAMPLE.fullmatch(line).groups()
        assert name == last, "the lines of a metric are one group"
        assert name in kinds
        assert name in helped
        labels, at = {}, 0
        while inside is not None and at < len(inside):
            label = LABEL.match(inside, at)
            assert label[1] not in labels
            labels[label[1]] = re.sub(r'\\[\\"n]', lambda sign: MEANS[sign[0]], label[2])
            at = label.end()
        key = name, frozenset(labels.items())
        assert key not in found
        found[key] = float(value)
        assert isfinite(found[key])
    assert all(name.endswith("_total") == (kind == "counter") for name, kind in kinds.items())
    return found


def value(samples, name, **labels):
    return samples[f"isolitmus_audit_{name}", frozenset(labels.items())]


def events(path):
    text = path if isinstance(path, str) else path.read_text("utf-8")
    assert text.endswith("\n")
    return [json.loads(line) for line in text[:-1].split("\n")]


@pytest.fixture
def looks(monkeypatch):
    """A function: instead of each wait, one of some steps is taken; after the last, a Ctrl-C."""

    def take(*steps):
        left = list(steps)

        def wait(_):
            if not left:
                raise KeyboardInterrupt
            left.pop(0)()

        monkeypatch.setattr("isolitmus.cli.audit.sleep", wait)

    return take


@pytest.fixture
def two(delta, tmp_path):
    """Two tables, how one writes a commit to each, and files for metrics and lines."""
    a, b = (delta.table(delta.append(0, "f1"), name=name) for name in "ab")

    def write(table, version, actions):
        return lambda: delta.write(table / "_delta_log", version, actions)

    files = {"metrics": tmp_path / "audit.prom", "lines": tmp_path / "audit.jsonl"}
    words = ["--follow", "--metrics", files["metrics"], "--jsonl", files["lines"]]
    return SimpleNamespace(a=a, b=b, write=write, words=words, **files)


def test_two_tables_are_followed_with_metrics_and_lines(call, delta, two, looks):
    seen = []

    def read():
        seen.append(parse(two.metrics.read_text("utf-8")))

    looks(
        read,
        two.write(two.a, 2, delta.append(1, "f2")),
        two.write(two.a, 3, delta.delete(1, None, "f1")),
        read,
        two.write(two.b, 2, delta.append(1, "f2")),
    )
    status, out, err = call("audit", two.a, two.b, *two.words)
    assert (status, err) == (1, "")
    assert f"{two.a}: version 3 (DELETE: 1 file removed in part=0)" in out.splitlines()
    assert out.splitlines()[-2].startswith(f"1 finding in table {two.a}, versions 0–3 (4 commits)")
    assert out.splitlines()[-1].startswith(f"No anomaly found in table {two.b}, versions 0–2")
    a, b = {"table": str(two.a)}, {"table": str(two.b)}
    certain = {"kind": "reorder", "certainty": "certain"}
    seen.append(parse(two.metrics.read_text("utf-8")))
    assert [value(one, "findings", **a, **certain) for one in seen] == [0, 1, 1]
    assert [value(one, "version", **a) for one in seen] == [1, 3, 3]
    assert [value(one, "commits", **b) for one in seen] == [2, 2, 3]
    assert [value(one, "rounds_total") for one in seen] == [1, 4, 6]
    assert [value(one, "overlapping_commits", **a) for one in seen] == [0, 1, 1]
    assert {value(one, "failed", **table) for one in seen for table in (a, b)} == {0}
    assert all(value(one, "round_seconds") >= 0 for one in seen)
    written = events(two.lines)
    assert Counter(one["event"] for one in written) == {"round": 4, "finding": 1}
    (finding,) = (one for one in written if one["event"] == "finding")
    assert (finding["table"], finding["kind"], finding["versions"]) == (
        str(two.a),
        "reorder",
        [2, 3],
    )
    assert [
        [t["versions"] for t in one["tables"]] for one in written if one["event"] == "round"
    ] == [
        [[0, 1], [0, 1]],
        [[0, 2], [0, 1]],
        [[0, 3], [0, 1]],
        [[0, 3], [0, 2]],
    ]
    assert written[-1]["tables"][0]["counts"] == [{**certain, "number": 1}]


def test_the_metrics_are_those_of_the_audit(call, delta, tmp_path):
    commits = [delta.append(k // 2, f"f{k}", part=k % 2) for k in range(6)]
    table = delta.table(*commits, delta.delete(3, "(part#1 = 0)", "f0"), delta.append(6, "f9"))
    page = tmp_path / "audit.prom"
    _, out, _ = call("audit", table, "--json", "--metrics", page)
    (audit,) = json.loads(out)
    samples = parse(page.read_text("utf-8"))
    assert audit["counts"]
    assert audit["overview"]["near_counts"]
    found = {
        (dict(labels)["kind"], dict(labels)["certainty"]): number
        for (name, labels), number in samples.items()
        if name == "isolitmus_audit_findings" and number
    }
    near = {
        f"{dict(labels)['outcome']}, {dict(labels)['certainty']}": number
        for (name, labels), number in samples.items()
        if name == "isolitmus_audit_near_misses" and number
    }
    assert found == {(c["kind"], c["certainty"]): c["number"] for c in audit["counts"]}
    assert near == audit["overview"]["near_counts"]
    assert {(name, frozenset(dict(labels))) for name, labels in samples} == {
        (name, frozenset(metric.labels)) for name, metric in METRICS.items()
    }


@pytest.mark.parametrize("how", ["removed", "recreated", "cut short", "gap"])
def test_a_table_that_fails_leaves_the_others(call, delta, two, looks, how):
    log = two.a / "_delta_log"
    newest = log / f"{1:020}.json"

    def fail():
        if how == "gap":
            delta.write(log, 7, delta.append(6, "f7"))
        elif how == "cut short":
            newest.write_text(newest.read_text()[:-20])
        else:
            shutil.rmtree(two.a)
        if how == "recreated":
            delta.table(delta.append(0, "g"), name="a")

    later = [delta.append(1, "f2"), delta.delete(1, None, "f1")]
    looks(fail, *(two.write(two.b, k, one) for k, one in enumerate(later, 2)))
    status, out, err = call("audit", two.a, two.b, *two.words)
    assert (status, err.count("\n"), str(two.a) in err) == (2, 1, True)
    assert out.splitlines()[-1].startswith(f"1 finding in table {two.b}, versions 0–3")
    samples = parse(two.metrics.read_text("utf-8"))
    assert [value(samples, "failed", table=str(table)) for table in (two.a, two.b)] == [1, 0]
    assert [value(samples, "version", table=str(table)) for table in (two.a, two.b)] == [1, 3]
    (error,) = (one for one in events(two.lines) if one["event"] == "error")
    assert (error["table"], error["reason"]) == (str(two.a), err[len("isolitmus: ") : -1])
    assert events(two.lines)[-1]["tables"][0]["error"] == error["reason"]


def test_the_metrics_of_a_table_that_fails_have_the_commits_before(call, delta, two, looks):
    def arrive():
        two.write(two.a, 2, delta.append(1, "f2"))()
        two.write(two.a, 3, delta.delete(1, None, "f1"))()
        two.write(two.a, 4, [{"unheard": {}}])()
        two.write(two.a, 5, delta.append(4, "f5"))()

    looks(arrive)
    status, _, err = call("audit", two.a, two.b, *two.words)
    assert (status, "unheard" in err, err.count("\n")) == (2, True, 1)
    samples = parse(two.metrics.read_text("utf-8"))
    labels = {"table": str(two.a)}
    assert [value(samples, name, **labels) for name in ("failed", "version")] == [1, 3]
    assert value(samples, "findings", kind="reorder", certainty="certain", **labels) == 1
    assert Counter(one["event"] for one in events(two.lines))["finding"] == 1


def test_a_table_that_was_never_there(call, two, looks):
    looks()
    status, out, err = call("audit", "nowhere", two.b, *two.words, "--json")
    assert (status, err.count("\n")) == (2, 1)
    assert [one["table"] for one in json.loads(out)] == [str(two.b)]
    samples = parse(two.metrics.read_text("utf-8"))
    assert value(samples, "failed", table="nowhere") == 1
    assert ("isolitmus_audit_version", frozenset({("table", "nowhere")})) not in samples


def test_all_tables_fail(call, two, looks):
    looks(lambda: shutil.rmtree(two.a), lambda: shutil.rmtree(two.b), lambda: pytest.fail("waits"))
    status, out, err = call("audit", two.a, two.b, *two.words, "--json")
    assert (status, out, err.count("the table was removed while it was followed")) == (2, "", 2)


def test_metrics_that_cannot_be_written_are_said_once_and_tried_again(
    call, delta, two, tmp_path, looks
):
    folder = tmp_path / "textfiles"
    folder.mkdir()
    page = folder / "audit.prom"
    words = ["audit", two.a, "--follow", "--metrics", page]
    more = two.write(two.a, 2, delta.append(1, "f2"))
    looks(lambda: shutil.rmtree(folder), more, folder.mkdir)
    status, out, err = call(*words)
    assert (status, err.count(f"cannot write {page}: ")) == (0, 1)
    assert value(parse(page.read_text("utf-8")), "version", table=str(two.a)) == 2
    looks(lambda: shutil.rmtree(folder), lambda: None)
    status, out, err = call(*words)
    assert (status, err.count("\n")) == (2, 1)
    assert out.splitlines()[-1].startswith("No anomaly found")


def test_json_lines_on_standard_output(call, delta, looks):
    table = delta.table(delta.append(0, "f1"))
    looks(
        lambda: delta.write(table / "_delta_log", 2, delta.append(1, "f2")),
        lambda: delta.write(table / "_delta_log", 3, delta.delete(1, None, "f1")),
    )
    status, out, err = call("audit", table, "--follow", "--jsonl", "-")
    assert (status, err) == (1, "")
    assert [one["event"] for one in events(out)] == ["round", "round", "finding", "round"]
    assert not Path("-").exists()


def test_lines_are_appended_and_a_finding_is_written_once_with_evidence(call, delta, tmp_path):
    silent = [{"add": delta.add("s")["add"]}]
    table = delta.table(
        delta.append(0, "f1"),
        delta.append(1, "f2"),
        delta.delete(1, None, "f1"),
        silent,
        delta.append(4, "f3"),
    )
    lines = tmp_path / "lines"
    lines.write_text('{"cut')
    words = "audit", table, "--jsonl", lines, "--evidence", tmp_path / "evidence"
    call(*words)
    first, *rest = lines.read_text("utf-8").splitlines()
    assert first == '{"cut'
    assert [json.loads(one)["event"] for one in rest] == ["finding", "finding", "round"]
    kinds = [json.loads(one)["kind"] for one in rest[:2]]
    assert kinds == ["reorder", "records-nothing"]
    delta.write(table / "_delta_log", 6, [{"add": delta.add("s2")["add"]}])
    delta.write(table / "_delta_log", 7, delta.delete(5, None, "f2"))
    call(*words)
    again = [json.loads(one) for one in lines.read_text("utf-8").splitlines()[1 + len(rest) :]]
    assert [one["event"] for one in again] == ["finding", "round"]
    assert again[0]["versions"] == [6, 7]


def test_every_finding_is_written_also_beyond_those_that_are_kept(
    call, delta, tmp_path, monkeypatch
):
    monkeypatch.setattr("isolitmus.checker.auditing.log_audit.KEPT", 2)
    wrong = [[delta.info("DELETE", k, True), delta.remove(f"f{k}")] for k in range(3)]
    table = delta.table(*wrong)
    lines = tmp_path / "lines"
    call("audit", table, "--jsonl", lines)
    *findings, last = events(lines)
    counts = {(c["kind"], c["certainty"]): c["number"] for c in last["tables"][0]["counts"]}
    assert Counter((one["kind"], one["certainty"]) for one in findings) == counts
    assert max(counts.values()) > 2


def test_the_end_writes_only_what_is_new(call, delta, two, looks, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    texts = []
    monkeypatch.setattr("isolitmus.cli.audit_feed.write_whole", lambda _, text: texts.append(text))
    looks(lambda: None)
    call("audit", two.a, *two.words)
    assert [value(parse(text), "rounds_total") for text in texts] == [1, 2]
    looks(two.write(two.a, 2, delta.append(1, "f2")))
    monkeypatch.setattr("isolitmus.cli.audit._print_commit", interrupt)
    status, _, err = call("audit", two.a, *two.words)
    assert (status, err) == (0, "")
    versions = [value(parse(text), "version", table=str(two.a)) for text in texts[2:]]
    assert versions == [1, 2]


def test_a_limit_while_tables_are_followed_ends_it(call, delta, two, looks, monkeypatch):
    def use_up():
        def check(_):
            raise MemoryLimit("memory was used up")

        two.write(two.a, 2, delta.append(1, "f2"))()
        two.write(two.b, 2, delta.append(1, "f2"))()
        monkeypatch.setattr("isolitmus.model.budget.Budget.check", check)

    looks(use_up, lambda: pytest.fail("waits"))
    status, out, err = call("audit", two.a, two.b, *two.words)
    assert (status, err) == (3, "")
    assert out.count("Unknown: memory was used up; later commits were not audited.") == 2
    samples = parse(two.metrics.read_text("utf-8"))
    for name, expected in (("ended", 1), ("version", 1), ("failed", 0)):
        assert value(samples, name, table=str(two.a)) == expected
    assert "memory was used up" in events(two.lines)[-1]["tables"][1]["ended"]


def test_a_ctrl_c_before_the_first_look_is_done_is_an_interruption(call, two, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("isolitmus.checker.auditing.log_audit.LiveFiles.apply", interrupt)
    status, out, _ = call("audit", two.a, two.b, *two.words)
    assert (status, out) == (130, "")
    assert not two.metrics.exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--metrics", "no/where.prom"), "cannot write no/where.prom: there is no folder no"),
        (("--jsonl", "no/where"), "cannot write no/where: there is no folder no"),
        (("--jsonl", "."), "cannot write .: it is a folder"),
        (("--jsonl", "-", "--json"), "--jsonl - excludes --json and --as"),
        (("--jsonl", "-", "--as", "csv"), "--jsonl - excludes --json and --as"),
        (("--metrics", "m", "--spark"), "--metrics excludes --spark"),
        (("--jsonl", "m", "--spark"), "--jsonl excludes --spark"),
    ],
)
def test_bad_input(call, monkeypatch, tmp_path, words, reason):
    monkeypatch.chdir(tmp_path)
    status, out, err = call("audit", "t", *words)
    assert (status, out, reason in err, err.count("\n")) == (2, "", True, 1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_lines_on_a_full_disk_end_the_audit(call, two, looks):
    looks()
    status, _, err = call("audit", two.a, "--follow", "--jsonl", "/dev/full")
    assert (status, err) == (3, "isolitmus: cannot write /dev/full: No space left on device\n")


ANY = st.text(st.characters(codec=None), max_size=12) | st.text('\\"\n{},= ntu', max_size=12)


@given(ANY)
def test_an_escaped_label_is_read_back(text):
    inside = LABEL.fullmatch(f'x="{escape_label(text)}"')
    back = re.sub(r'\\[\\"n]', lambda sign: MEANS[sign[0]], inside[2])
    assert back == text.encode("utf-8", "backslashreplace").decode("utf-8")


@given(
    st.dictionaries(ANY, st.integers(0, 10**12), max_size=3),
    st.dictionaries(ANY, st.text(max_size=5), max_size=2),
    st.floats(0, 1e9),
)
def test_the_text_of_any_tables_is_read_back(versions, errors, seconds):
    def escaped(names):
        return {name.encode("utf-8", "backslashreplace").decode("utf-8") for name in names}

    names = [*versions, *errors]
    assume(len(escaped(names)) == len(set(names)))
    audits = {name: Audit(name, 0, last, ()) for name, last in versions.items()}
    samples = parse(prometheus_text(AuditRound(1, 2.5, seconds, audits, errors)))
    tables = {dict(labels).get("table") for _, labels in samples} - {None}
    assert tables == escaped(names)
    assert {
        dict(labels)["table"]: number
        for (name, labels), number in samples.items()
        if name == "isolitmus_audit_version"
    } == {min(escaped([name])): last for name, last in versions.items()}
    assert sum(name == "isolitmus_audit_findings" for name, _ in samples) == len(
        versions
    ) * 2 * len(KINDS)


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n")), max_size=4))
def test_appended_lines_are_read_back(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("lines") / "lines"
    for text in texts:
        file = LineAppender(path)
        file.append(text)
        file.close()
    written = path.read_bytes().decode("utf-8").split("\n")[:-1] if texts else []
    assert written == texts
