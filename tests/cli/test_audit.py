"""``isolitmus audit`` as a user sees it: lines, JSON, the page, exit statuses, bad input."""

import json
import shutil

import pytest

CHECKED = (
    "Each commit was checked for 12 kinds of findings (docs/auditing.md). Anomalies that the log"
    " does not record are not found."
)


@pytest.fixture
def reordered(delta):
    return delta.table(delta.append(0, "f1"), delta.append(1, "f2"), delta.delete(1, None, "f1"))


def test_lines(call, reordered, delta):
    quiet = delta.table(delta.append(0, "f"), name="quiet")
    status, out, err = call("audit", reordered, quiet)
    assert (status, err) == (1, "")
    assert (
        out
        == f"1 finding in table {reordered}, versions 0–3 (4 commits): 1 certain, 0 possible.\n "
        " reorder, certain (1): commits that did not see a concurrent change to their read set,"
        " as their level permits\n    versions 2, 3: version 3 (DELETE) read version 1 and did"
        " not see version 2 (WRITE), a blind append, which changed rows in its read set (all"
        " rows): its reads place version 3 before version 2, but the log has it"
        " after\nOverview:\n  operations: 2 WRITE, 1 CREATE TABLE, 1 DELETE\n  levels: 4"
        " WriteSerializable\n  writers: 4 Apache-Spark/4.2.0 Delta-Lake/4.4.0\n  overlaps: 1"
        " commit did not see a concurrent commit (1 DELETE concurrent with WRITE)\n  near"
        " misses: none (with another timing, none of these pairs would have conflicted or been"
        " reordered)\nAssumptions:\n- Certain: the log shows the finding, provided that the"
        f" commits record the truth about themselves.\n- {CHECKED}\n\nNo anomaly found in table"
        f" {quiet}, versions 0–1 (2 commits).\nOverview:\n  operations: 1 CREATE TABLE, 1"
        " WRITE\n  levels: 2 WriteSerializable\n  writers: 2 Apache-Spark/4.2.0"
        " Delta-Lake/4.4.0\n  overlaps: none (each commit saw all commits before"
        f" it)\nAssumptions:\n- {CHECKED}\n"
    )


def test_nothing_found_is_status_0(call, delta):
    status, _, _ = call("audit", delta.table(delta.append(0, "f")))
    assert status == 0


def test_of_many_findings_the_first_are_printed(call, delta):
    table = delta.table(*(delta.append(99, f"f{k}") for k in range(15)))
    _, out, _ = call("audit", table)
    assert "  read-version, certain (15): " in out
    assert "    version 10: version 10 (WRITE) records" in out
    assert "    … and 5 more; --json lists them\n" in out
    assert "    version 11: " not in out


def test_json(call, reordered):
    status, out, _ = call("audit", reordered, "--json")
    (document,) = json.loads(out)
    assert status == 1
    assert (document["table"], document["commits"]) == (str(reordered), 4)
    (finding,) = document["findings"]
    assert finding == {
        "kind": "reorder",
        "versions": [2, 3],
        "certainty": "certain",
        "why": finding["why"],
    }
    assert document["counts"] == [{"kind": "reorder", "certainty": "certain", "number": 1}]


def test_one_log_that_cannot_be_read_does_not_keep_the_others_from_it(call, reordered):
    status, out, err = call("audit", "nowhere", reordered, "elsewhere", "--json")
    assert status == 2
    assert [document["table"] for document in json.loads(out)] == [str(reordered)]
    assert err.count("there is no such folder") == err.count("\n") == 2


@pytest.mark.slow
def test_page(call, reordered, tmp_path):
    page = tmp_path / "audit.html"
    call("audit", reordered, "--html", page)
    text = page.read_text("utf-8")
    assert '<th scope="row">2, 3</th><td>version 3 (DELETE) read version 1' in text
    assert "with <code>isolitmus audit " in text
    assert "1 finding in 4 commits: 1 certain,\n0 possible." in text
    assert "<script" not in text
    assert "http:" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https:" not in text.replace("http://www.w3.org/2000/svg", "")
    assert text.count('class="bar"') == 1
    assert "<li>overlaps: 1 commit did not see a concurrent commit" in text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere"], "there is no such folder"),
        (["."], "not a Delta table"),
        (["t", "--html", "."], "cannot write .: it is a folder; expected the name of a file"),
        (["t", "--out", "x"], "--out needs --spark"),
        (["t", "--master", "local[1]"], "--master needs --spark"),
        (["t", "--html", "no/where.html"], "cannot write no/where.html: there is no folder no"),
    ],
)
def test_bad_input(call, reordered, monkeypatch, words, sentence):
    monkeypatch.chdir(reordered.parent)
    status, _, err = call("audit", *words)
    assert status == 2
    assert sentence in err
    assert "Traceback" not in err


def test_a_damaged_log_is_one_sentence(call, reordered):
    path = reordered / "_delta_log" / f"{2:020}.json"
    path.write_text(path.read_text()[:-20])
    status, out, err = call("audit", reordered, "--json")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert f"{path}:2: " in err


@pytest.fixture
def arriving(monkeypatch, delta):
    """A function: while a followed audit waits, the next of some commits is written; after the
    last, a Ctrl-C.
    """

    def arrive(table, *commits):
        left = list(enumerate(commits, 1 + len(list((table / "_delta_log").iterdir())) - 1))

        def wait(_):
            if not left:
                raise KeyboardInterrupt
            version, actions = left.pop(0)
            delta.write(table / "_delta_log", version, actions)

        monkeypatch.setattr("isolitmus.cli.audit.sleep", wait)

    return arrive


def test_follow(call, delta, arriving):
    table = delta.table(delta.append(0, "f1"))
    arriving(table, delta.append(1, "f2"), delta.delete(1, None, "f1"))
    status, out, err = call("audit", table, "--follow")
    assert (status, err) == (1, "")
    assert out.splitlines()[-5:] == [
        "version 2 (WRITE: 1 file added in part=0, a blind append)",
        "version 3 (DELETE: 1 file removed in part=0)",
        "  read version 1, so it did not see 1 commit",
        (
            "  reorder, certain: version 3 (DELETE) read version 1 and did not see version 2"
            " (WRITE), a blind append, which changed rows in its read set (all rows): its reads"
            " place version 3 before version 2, but the log has it after"
        ),
        f"1 finding in table {table}, versions 0–3 (4 commits): 1 certain, 0 possible.",
    ]


def test_what_is_followed_is_what_is_audited_afterwards(call, delta, arriving):
    commits = [delta.append(k // 2, f"f{k}", part=k % 2) for k in range(6)]
    commits += [delta.delete(3, "(part#1 = 0)", "f0"), delta.append(7, "f9")]
    table = delta.table(*commits[:2])
    arriving(table, *commits[2:])
    _, out, _ = call("audit", table, "--follow", "--json")
    _, after, _ = call("audit", table, "--json")
    (one,), (other,) = json.loads(out), json.loads(after)
    assert {**one, "seconds": 0} == {**other, "seconds": 0}


def test_a_commit_that_is_being_written_is_left_for_the_next_time(call, delta, monkeypatch):
    table = delta.table(delta.append(0, "f1"))
    path = table / "_delta_log" / f"{2:020}.json"
    whole = "".join(json.dumps(action) + "\n" for action in delta.append(1, "f2"))
    states = ["", whole[:-20], whole]

    def wait(_):
        if not states:
            raise KeyboardInterrupt
        path.write_text(states.pop(0))

    monkeypatch.setattr("isolitmus.cli.audit.sleep", wait)
    status, out, _ = call("audit", table, "--follow")
    assert (status, out.count("version 2 (WRITE: 1 file added")) == (0, 1)


def test_a_log_that_is_cleaned_up_while_it_is_followed_is_one_sentence(call, delta, monkeypatch):
    table = delta.table(delta.append(0, "f1"))

    def wait(_):
        delta.write(table / "_delta_log", 5, delta.append(4, "f5"))

    monkeypatch.setattr("isolitmus.cli.audit.sleep", wait)
    status, _, err = call("audit", table, "--follow")
    assert (status, err.count("\n")) == (2, 1)
    assert "version 2 is missing but version 5 exists" in err


@pytest.mark.parametrize("commits", [0, 1, 2, 5])
def test_a_table_that_is_made_anew_while_it_is_followed_is_one_sentence(
    call, delta, monkeypatch, commits
):
    """Its log is another one's, however long it is."""
    table = delta.table(delta.append(0, "f1"), delta.append(1, "f2"))

    def wait(_):
        shutil.rmtree(table)
        delta.table(*(delta.append(k, f"g{k}") for k in range(commits)))

    monkeypatch.setattr("isolitmus.cli.audit.sleep", wait)
    status, _, err = call("audit", table, "--follow")
    assert (status, err.count("\n")) == (2, 1)
    assert "version 2 has changed: the table was recreated" in err


def test_following_ends_with_its_time(call, delta):
    status, out, _ = call("audit", delta.table(), "--follow", "--time", "0", "--every", "0.1")
    assert (status, out.splitlines()[-1][:16]) == (0, "No anomaly found")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("t", "u", "--follow", "--evidence", "e"), "--evidence needs a single table"),
        (("t", "--follow", "--spark"), "--follow excludes --spark"),
        (("t", "--every", "2"), "--every is 2; it needs --follow"),
        (("t", "--follow", "--every", "0"), "a number of seconds above 0"),
        (("t", "--follow", "--every", "nan"), "--every is nan"),
        (("s3://b/t", "--follow"), "only its folder _delta_log is needed"),
        (("abfss://c@a.dfs.core/t",), "only its folder _delta_log is needed"),
    ],
)
def test_bad_input_of_follow(call, words, reason):
    status, _, err = call("audit", *words)
    assert (status, reason in err, err.count("\n")) == (2, True, 1)
