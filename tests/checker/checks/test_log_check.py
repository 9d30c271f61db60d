"""What levels say of logs: the certain, the possible and the unknown apart."""

import pytest

from isolitmus.checker.checks import log_check as judging
from isolitmus.checker.checks.log_check import check_log
from isolitmus.model.verdict import Unknown
from isolitmus.specs import level
from isolitmus.specs.files.spec_reader import read_spec

LOG, WRITES, SI = "log-serializable", "write-serializable", "snapshot-isolation"


def verdicts(table, *names):
    done = check_log(table, [level(name) for name in names])
    return [str(done.levels[name]) for name in names]


def why(table, name):
    return check_log(table, [level(name)]).levels[name]


@pytest.fixture
def reordered(delta):
    return delta.table(
        delta.append(0, "f1"), delta.append(1, "f2"), delta.delete(1, "(part#1 = 0)", "f1")
    )


def test_a_reorder_breaks_the_order_of_the_log_only(reordered):
    assert verdicts(reordered, LOG, WRITES, SI) == ["forbidden", "allowed", "allowed"]
    assert why(reordered, WRITES).witness == ("v0", "v1", "v3", "v2")
    (violation,) = why(reordered, LOG).violations
    assert [(e.source, e.kind, e.target) for e in violation.cycle] == [
        ("version 2", "log", "version 3"),
        ("version 3", "rw", "version 2"),
    ]


def test_what_the_log_does_not_say_is_unknown(delta):
    merge = [delta.info("MERGE", 1, False), delta.add("f3")]
    table = delta.table(delta.append(0, "f1"), delta.append(1, "f2"), merge)
    assert verdicts(table, LOG, WRITES) == ["unknown", "allowed"]
    assert (
        why(table, LOG).reason
        == "in one place the log does not exclude a violation: version 2 before version 3, because"
        " it is earlier in the log, version 3 before version 2, because version 3 read version"
        " 1, and version 2 may have changed rows that it read"
    )


def bridged(delta, *, sure):
    """A misses I, X reads I's row (certainly), and A changes what X reads, certainly or perhaps."""
    appended = [delta.info("WRITE", 1, True, mode="Append")]
    appended += [delta.add("i5", ids=(5,)), delta.add("i1", ids=(1,))]
    where = '["(id#1 = 5)"]' if sure else '["(f(id#1) = 5)"]'
    deleted = [delta.info("DELETE", 2, False, predicate=where), delta.remove("i5", ids=(5,))]
    updated = [delta.info("UPDATE", 1, False, predicate='["(id#1 = 1)"]')]
    updated += [delta.remove("f1", ids=(1,)), delta.add("f2", ids=(5,))]
    return delta.table(delta.append(0, "f1"), appended, deleted, updated, partitioned=False)


def test_a_bridge_that_is_certain_breaks_write_serializable(delta):
    table = bridged(delta, sure=True)
    assert verdicts(table, LOG, WRITES, SI) == ["forbidden", "forbidden", "allowed"]
    (violation,) = why(table, WRITES).violations
    assert [(e.source, e.kind, e.target) for e in violation.cycle] == [
        ("version 2", "wr", "version 3"),
        ("version 3", "rw", "version 4"),
        ("version 4", "rw", "version 2"),
    ]


def test_a_bridge_that_is_possible_leaves_write_serializable_unknown(delta):
    assert verdicts(bridged(delta, sure=False), LOG, WRITES) == ["forbidden", "unknown"]


def test_a_table_whose_versions_are_not_what_its_commits_say(delta):
    twice = [delta.delete(1, "(id#1 = 1)", "f"), delta.delete(1, "(id#1 = 1)", "f")]
    table = delta.table(delta.append(0, "f"), *twice)
    assert "version 3 (DELETE) removes f, which version 2" in why(table, WRITES).reason


def test_writers_that_do_not_say_what_they_read(delta):
    silent = [{"commitInfo": {"operation": "WRITE"}}, delta.add("f")]
    assert why(delta.table(silent), LOG) == Unknown("1 commit does not say which version it read")


def test_stretches_that_overlap_too_much(reordered, delta, monkeypatch):
    monkeypatch.setattr(judging, "MOST", 2)
    assert verdicts(reordered, LOG) == ["forbidden"]  # the window of version 3 is short enough
    merge = [delta.info("MERGE", 0, False), delta.add("f3")]
    table = delta.table(delta.append(0, "f1"), delta.append(0, "f2"), merge, name="long")
    assert "versions 1 to 3 overlap one another" in why(table, LOG).reason


def test_stretches_apart_are_judged_apart(delta, monkeypatch):
    monkeypatch.setattr(judging, "MOST", 3)
    commits = []
    for k in range(0, 30, 3):
        commits += [delta.append(k, f"a{k}"), delta.append(k + 1, f"b{k}")]
        commits.append(delta.delete(k + 1, "(part#1 = 0)", f"a{k}"))
    table = delta.table(*commits)
    assert verdicts(table, WRITES) == ["allowed"]
    order = why(table, WRITES).witness
    assert order[:7] == ("v0", "v1", "v3", "v2", "v4", "v6", "v5")
    assert len(order) == 31


def test_a_spec_that_is_not_about_cycles_is_asked_of_short_logs(reordered, monkeypatch):
    spec = read_spec('"Mine" irreflexive rw ; log as mine', "mine")
    inverse = read_spec('"Mine" irreflexive (rw ; rw^-1) & wr as mine', "mine")
    assert str(check_log(reordered, [spec]).levels["mine"]) == "forbidden"
    assert str(check_log(reordered, [inverse]).levels["mine"]) == "allowed"
    monkeypatch.setattr(judging, "MOST", 3)
    reason = "of a log this level is asked only of up to 3 commits as a whole"
    assert check_log(reordered, [inverse]).levels["mine"] == Unknown(reason)


def test_on_the_command_line(call, reordered):
    status, out, _ = call("check", reordered, "--level", f"{LOG},{WRITES}")
    assert status == 1
    assert out.startswith(f"{reordered}: 4 commits, 3 files added and removed\n")
    assert "    version 3 before version 2, because version 3 read version 1, and version 2" in out
    assert "Write-serializable allows it, for example in the order v0 → v1 → v3 → v2." in out
    assert "Assumptions, because the history does not say:\n  - commits record correctly" in out


def test_bad_input_on_the_command_line(call, reordered, tmp_path):
    for words, sentence in (
        (["nowhere", "--format", "delta"], "there is no such folder"),
        ([tmp_path, "--format", "delta"], "not a Delta table"),
        (["reorder", "--format", "dleta"], "--format is 'dleta'; did you mean 'delta'?"),
        (
            [reordered, "--level", "causal"],
            "causal needs in, rf, rival, which this history does not",
        ),
        (
            [reordered, "--level", "strict-serializable"],
            "strict-serializable needs rt, which this history does not",
        ),
    ):
        status, out, err = call("check", *words, *(() if "--level" in words else ("--level", LOG)))
        assert (status, out) == (2, "")
        assert sentence in err
