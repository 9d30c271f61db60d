"""An audit that was ended goes on from its evidence, and ends as if it had never been ended."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.checker import audit
from isolitmus.checker.auditing import commit_checks as claims
from isolitmus.checker.auditing import commit_checks as files
from isolitmus.checker.auditing import dependencies as windows
from isolitmus.checker.auditing import log_audit as auditing
from isolitmus.checker.auditing import log_audit as overviews
from isolitmus.checker.auditing.log_audit import FollowedAudit
from isolitmus.model.errors import Ended, LogError
from isolitmus.specs.files import evidence_files as audit_file

BOUNDS = [
    (auditing, "KEPT"),
    (windows, "COMMITS"),
    (windows, "FILES"),
    (windows, "LONGEST"),
    (files, "REMEMBERED"),
    (claims, "SHOWN"),
    (claims, "WRITERS"),
    (overviews, "KEPT"),
    (overviews, "DRAWN"),
    (overviews, "NAMES"),
]
"""What an audit remembers so many of."""
NAMES = [f"f{k}" for k in range(4)]


@st.composite
def commits(draw, delta, version):
    """What may stand in a log: overlapping writers, files that come back, claims that are false."""
    read = draw(st.none() | st.integers(max(version - 4, -1), version))
    part = draw(st.integers(0, 1))
    some = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True))
    other = draw(st.sampled_from(NAMES))
    said = {"level": draw(st.sampled_from(["Serializable", "WriteSerializable"]))}
    said |= {"predicate": f'["(part#{version} = {part})"]'}
    vector = {"storageType": "u", "pathOrInlineDv": draw(st.sampled_from("ab")), "cardinality": 1}
    match draw(st.integers(0, 6)):
        case 0 | 1:
            return delta.append(read, some[0], part)
        case 2:
            removes = [delta.remove(name, part) for name in some]
            return [delta.info("DELETE", read, False, **said), *removes]
        case 3:
            adds = [delta.add(other, part, deletionVector=vector)]
            return [delta.info("UPDATE", read, False, **said), delta.remove(some[0], part), *adds]
        case 4:
            moved = [delta.remove(some[0], dataChange=False), delta.add(other, dataChange=False)]
            return [delta.info("OPTIMIZE", read, False), *moved]
        case 5:
            return [
                delta.info("SET TBLPROPERTIES", read, True),
                delta.metadata(said["level"], partitioned=part == 0),
            ]
        case _:
            info = {"operation": draw(st.sampled_from(["MERGE", "WRITE", "CLONE"]))}
            info |= {"engineInfo": draw(st.sampled_from(["Apache-Spark/4.2.0", "trino", "kernel"]))}
            return [{"commitInfo": info}, delta.add(other, part)]


def same(one, other):
    assert replace(one, seconds=0) == replace(other, seconds=0)


@pytest.mark.slow
@given(st.data())
def test_it_ends_as_if_it_had_never_been_ended(tmp_path_factory, logs_in, data):
    delta = logs_in(tmp_path_factory.mktemp("logs"))
    log = [data.draw(commits(delta, version)) for version in range(data.draw(st.integers(1, 16)))]
    table = delta.table(*log)
    evidence = table / "evidence"
    with pytest.MonkeyPatch.context() as patch:
        for module, name in BOUNDS:
            patch.setattr(module, name, data.draw(st.sampled_from([1, 2, 3, 1000])))
        whole = audit(table)
        versions = sorted((table / "_delta_log").iterdir())
        there = [path.read_bytes() for path in versions]
        for path in versions:
            path.unlink()
        for path, text in zip(versions, there, strict=True):
            path.write_bytes(text)
            if data.draw(st.booleans()):
                audit(table, evidence=evidence)
        same(audit(table, evidence=evidence), whole)
        same(audit(table, evidence=evidence), whole)


def test_what_was_audited_is_not_read_again(delta, monkeypatch):
    """But for the newest commits, which later ones may have missed."""
    table = delta.table(*(delta.append(k, f"f{k}") for k in range(9)))
    monkeypatch.setattr(windows, "COMMITS", 3)
    audit(table, evidence=table / "evidence")
    log = table / "_delta_log"
    delta.write(log, 10, delta.append(9, "f9"))
    for version in range(7):
        (log / f"{version:020}.json").write_text("no commit at all")
    done = audit(table, evidence=table / "evidence")
    assert (done.first, done.last, done.overview.operations["WRITE"]) == (0, 10, 10)


def test_a_log_that_was_cleaned_up_meanwhile(delta):
    """As far as the newest commits are gone, what was missed of them is, too, and is said to be."""
    table = delta.table(*(delta.append(k, f"f{k}") for k in range(5)))
    evidence, log = table / "evidence", table / "_delta_log"
    audit(table, evidence=evidence)
    delta.write(log, 6, delta.delete(1, None, "f1"))
    live = [delta.add(f"f{k}") for k in range(5)]
    actions = [delta.metadata("WriteSerializable"), delta.protocol(), *live]
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (log / f"{5:020}.checkpoint.80a083e8-7026.json").write_text(text)
    for version in range(4):
        (log / f"{version:020}.json").unlink()
    done = audit(table, evidence=evidence)
    assert (done.first, done.last) == (0, 6)
    assert [f.versions for f in done.findings] == [(4, 5, 6)]
    assert done.notes == (
        (
            "1 commit read a version before 4: concurrent commits before that version are no longer"
            " in the log."
        ),
    )
    same(audit(table, evidence=evidence), done)


def test_what_is_counted_of_what_was_not_looked_at(delta, monkeypatch):
    """Windows that were cut, removed files that were forgotten, and which of them were."""
    monkeypatch.setattr(windows, "LONGEST", 2)
    monkeypatch.setattr(files, "REMEMBERED", 2)
    log = [delta.append(0, f"f{k}") for k in range(5)]
    log += [delta.delete(1, None, name) for name in ("f0", "f1", "f2", "f3")]
    log += [delta.append(9, "f2"), delta.append(10, "f1")]
    table = delta.table(*log[:8])
    audit(table, evidence=table / "evidence")
    for version, commit in enumerate(log[8:], 9):
        delta.write(table / "_delta_log", version, commit)
    done = audit(table, evidence=table / "evidence")
    assert [f.versions for f in done.findings if f.kind == "comes-back"] == [(8, 10)]
    assert [note[:30] for note in done.notes] == [
        "4 commits with more than 1,000",
        "2 removed files are no longer ",
    ]
    same(done, audit(table))


def test_a_limit_leaves_what_was_done(delta):
    """The next audit is the rest of it."""
    table = delta.table(*(delta.append(0, f"f{k}") for k in range(6)), delta.delete(3, None, "f1"))

    class Few:
        left = 4

        def check(self):
            self.left -= 1
            if self.left < 0:
                raise auditing.Limit("enough")

    some = audit(table, budget=Few(), evidence=table / "evidence")
    assert (some.commits, some.ended) == (4, "enough")
    same(audit(table, evidence=table / "evidence"), audit(table))


def test_what_was_begun_is_not_written(delta, monkeypatch):
    """An interrupt in the middle of a commit leaves what was known before it."""
    table = delta.table(*(delta.append(k, f"f{k}") for k in range(4)))
    one = FollowedAudit(table, evidence=table / "evidence")
    one.there()
    before = (table / "evidence").read_text()
    delta.write(table / "_delta_log", 5, delta.append(4, "f4"))
    monkeypatch.setattr(
        files.LiveFiles, "apply", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    with pytest.raises(KeyboardInterrupt):
        list(one.came())
    one.save()
    assert (table / "evidence").read_text() == before


def test_followed_commits_are_evidence_too(delta):
    table = delta.table(delta.append(0, "f0"))
    one = FollowedAudit(table, evidence=table / "evidence")
    one.there()
    delta.write(table / "_delta_log", 2, delta.append(0, "f1"))
    assert len(list(one.came())) == 1
    one.save()
    two = FollowedAudit(table, evidence=table / "evidence")
    two.there()
    same(two.audit(), one.audit())
    delta.write(table / "_delta_log", 3, delta.delete(1, None, "f0"))
    ((_, found),) = two.came()
    assert [f.versions for f in found] == [(2, 3)]


KILLED = """
import sys
from pathlib import Path
from isolitmus.checker.auditing import log_audit as auditing
auditing.EVERY = 0.0
table = Path(sys.argv[1])
auditing.audit(table, evidence=table / "evidence")
"""


@pytest.mark.slow
def test_a_killed_audit_goes_on(delta):
    table = delta.table(*(delta.append(max(k - 2, 0), f"f{k}") for k in range(3_000)))
    evidence = table / "evidence"
    with subprocess.Popen([sys.executable, "-c", KILLED, str(table)]) as process:
        limit = time.monotonic() + 60
        while not evidence.exists() and process.poll() is None and time.monotonic() < limit:
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    known = json.loads(evidence.read_text().splitlines()[1])["pass"]["examined"]
    assert 0 < known < 3_001
    told = []
    done = audit(table, evidence=evidence, progress=told.append)
    assert told == [k for k in (0, 1000, 2000, 3000) if k >= known]
    same(done, audit(table))


def test_another_table_is_refused(delta):
    one = delta.table(delta.append(0, "f1"), delta.append(1, "f2"))
    other = delta.table(delta.append(0, "g1"), delta.append(1, "g2"), name="u")
    short = delta.table(name="v")
    audit(one, evidence=one / "evidence")
    for table in (other, short):
        with pytest.raises(LogError, match=f"version 2, is not in the log of {table}"):
            audit(table, evidence=one / "evidence")


def _edit(text):
    return text.replace('"f1"', '"f7"', 1)


def _by_hand(text):
    """With a digest that fits."""
    body = text.splitlines()[1].replace('"recent"', '"older"') + "\n"
    head = json.loads(text.splitlines()[0]) | {"digest": audit_file.text_digest(body)}
    return json.dumps(head) + "\n" + body


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (_edit, "it was cut off or edited since an audit wrote it"),
        (_by_hand, "it was cut off or edited since an audit wrote it"),
        (lambda text: text[:-9], "it was cut off or edited since an audit wrote it"),
        (lambda _: "", "not an evidence of an audit; name a file that is not there yet"),
        (lambda _: "[1]\n2", "not an evidence of an audit"),
        (lambda _: "\0\xff", "not an evidence"),
        (lambda text: text.replace('"release": "', '"release": "0.'), "it is of isolitmus 0."),
    ],
)
def test_a_file_that_no_audit_wrote_is_one_sentence(delta, damage, sentence):
    table = delta.table(delta.append(0, "f1"))
    evidence = table / "evidence"
    audit(table, evidence=evidence)
    evidence.write_text(damage(evidence.read_text()))
    with pytest.raises(LogError) as error:
        audit(table, evidence=evidence)
    assert str(error.value).startswith(f"{evidence}: {sentence}")


def test_more_than_can_be_read_again_is_not_written(delta, monkeypatch):
    monkeypatch.setattr(audit_file, "RECORDING", 100)
    table = delta.table(delta.append(0, "f1"))
    done = audit(table, evidence=table / "evidence")
    assert done.ended.endswith("evidence of an audit is larger than 100 bytes")
    assert done.notes[-1].endswith("; 2 of 2 commits were audited.")
    assert not (table / "evidence").exists()


def test_a_full_disk_ends_it_and_loses_nothing(call, delta, monkeypatch):
    def full(path, _):
        raise Ended(f"cannot write {path}: No space left on device")

    monkeypatch.setattr(auditing, "write_audit_file", full)
    monkeypatch.setattr(auditing, "EVERY", -1.0)
    table = delta.table(delta.append(0, "f1"), delta.append(1, "f2"), delta.delete(1, None, "f1"))
    status, out, err = call("audit", table, "--evidence", table / "evidence")
    assert (status, err) == (3, "")
    assert "No space left on device; 1 of 4 commits were audited." in out


def test_a_table_that_is_made_anew_meanwhile_leaves_no_evidence(delta):
    table = delta.table(delta.append(0, "f1"))
    one = FollowedAudit(table, evidence=table / "evidence")
    take = one._pass.take

    def then_made_anew(commit):
        found = tuple(take(commit))
        if commit.version == 1:
            delta.write(table / "_delta_log", 1, delta.append(0, "g1"))
        return found

    one._pass.take = then_made_anew
    with pytest.raises(LogError, match="version 1 has changed: the table was recreated"):
        one.there()
    assert not (table / "evidence").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("t", "u", "--evidence", "e"), "--evidence needs a single table, and excludes --spark"),
        (
            ("t", "--spark", "--evidence", "e"),
            "--evidence needs a single table, and excludes --spark",
        ),
        (("t", "--evidence", "no/e"), "cannot write no/e: there is no folder no"),
        (("t", "--evidence", "."), "cannot write .: it is a folder"),
    ],
)
def test_bad_input(call, delta, monkeypatch, words, sentence):
    monkeypatch.chdir(delta.table(delta.append(0, "f1")).parent)
    status, _, err = call("audit", *words)
    assert (status, err.count("\n")) == (2, 1)
    assert sentence in err


def test_a_nightly_audit(call, delta):
    table = delta.table(delta.append(0, "f1"))
    evidence = table / "evidence"
    assert call("audit", table, "--evidence", evidence)[0] == 0
    delta.write(table / "_delta_log", 2, delta.delete(0, None, "f1"))
    status, out, err = call("audit", table, "--evidence", evidence, "--json")
    assert (status, err) == (1, "")
    (said,) = json.loads(out)
    assert said["versions"] == [0, 2]
    assert [finding["versions"] for finding in said["findings"]] == [[1, 2]]
