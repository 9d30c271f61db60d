"""What an audit finds in made-up logs: each kind of finding, its certainty, and what is none."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.checker.auditing import commit_checks as files
from isolitmus.checker.auditing import dependencies as windows
from isolitmus.checker.auditing import log_audit as auditing
from isolitmus.checker.auditing.log_audit import audit
from isolitmus.checker.auditing.read_set import count_live_rows, match_file, read_condition
from isolitmus.checker.checks.log_check import check_log
from isolitmus.model.delta.log import LogFile, LogMetadata
from isolitmus.model.errors import LogError
from isolitmus.specs import level

WS = "WriteSerializable"


def found(table):
    return {(f.kind, f.certainty, f.versions) for f in audit(table).findings}


def kinds(table):
    return {(f.kind, f.certainty) for f in audit(table).findings}


def merge(delta, read, *files, level=WS):
    return [delta.info("MERGE", read, False, level, predicate='["(id#1 = id#9)"]'), *files]


# Conditions on files

TABLE = LogMetadata(
    {
        "id": ("id", "long"),
        "part": ("part", "integer"),
        "name": ("name", "string"),
        "day": ("day", "date"),
        "odd": ("odd", "special"),
    },
    ("part", "name", "day", "odd"),
)
FILE = LogFile(
    "f",
    marked=1,
    partition={"part": "0", "name": "a", "day": "2024-01-05", "odd": "a"},
    stats=(
        '{"numRecords": 3, "minValues": {"id": 5}, "maxValues": {"id": 7}, "nullCount": {"id": 0}}'
    ),
)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("(part#1 = 0)", "all"),
        ("((part#1 = 0) AND (id#2L > 4))", "all"),
        ("((part#1 = 0) AND (id#2L = 6))", "perhaps"),
        ("((part#1 = 0) AND (id#2L = 8))", "none"),
        ("((part#1 = 1) OR (id#2L < 8))", "all"),
        ("NOT (id#2L <= 7)", "none"),
        ("(0 < id#2L)", "all"),
        ("(id#2L IN (1,2))", "none"),
        ("(id#2L IN (5,6))", "perhaps"),
        ("isnotnull(id#2L)", "all"),
        ("id IS NULL", "none"),
        ("(part#1 <=> 0)", "all"),
        ("(id#2L != 4)", "all"),
        ("true", "all"),
        ("(name#3 = a)", "all"),
        ("(name#3 = b)", "none"),
        ("name = 'a' AND day >= '2024-01-01'", "all"),
        ("(day#4 = 2024-01-05)", "all"),
        ("day >= '2024-1-1'", "perhaps"),  # Spark reads that as a date, too
        ("(odd#5 = a)", "perhaps"),  # a collation may say that A is a
        ("(name#3 = b) OR (id#2L > 0)", "perhaps"),  # all of that may be one string
        ("(id#2L = abc)", "perhaps"),
        ("(id#2L = cast(x#9 as bigint))", "perhaps"),
        ("t.part = 0", "perhaps"),
        ("(part = 0", "perhaps"),
        ("part IN (SELECT 1)", "perhaps"),
        ("(nothing#1 = 0)", "perhaps"),
        ("(" * 11_000, "perhaps"),
    ],
)
def test_which_rows_of_a_file_match(text, rows):
    assert match_file(read_condition(text), FILE, TABLE) == rows


def test_files_of_which_little_is_known():
    bare = LogFile("f")
    assert match_file(read_condition("(part#1 = 0)"), bare, TABLE) == "perhaps"
    assert match_file(read_condition("(id#1 = 0)"), bare, TABLE) == "perhaps"
    assert match_file(read_condition("(id#1 = 0)"), LogFile("f", stats="[]"), TABLE) == "perhaps"
    null = LogFile("f", partition={"part": None})
    assert match_file(read_condition("(part#1 = 0)"), null, TABLE) == "none"
    assert match_file(read_condition("part IS NULL"), null, TABLE) == "all"
    odd = LogFile("f", stats='{"minValues": [5], "maxValues": 7, "nullCount": null}')
    assert match_file(read_condition("id > 1"), odd, TABLE) == "perhaps"
    some = LogFile("f", stats='{"minValues": {"id": 5}, "maxValues": {"id": 7}}')
    assert match_file(read_condition("id > 1"), some, TABLE) == "perhaps"  # some may be NULL
    assert [count_live_rows(f) for f in (FILE, bare)] == [2, None]


# Reorders


def test_a_delete_that_passed_by_a_blind_append(delta):
    table = delta.table(
        delta.append(0, "f1"),
        delta.append(1, "f2"),
        delta.delete(1, "(part#1 = 0)", "f1"),
        level=WS,
    )
    (finding,) = audit(table).findings
    assert (finding.kind, finding.certainty, finding.versions) == ("reorder", "certain", (2, 3))
    assert (
        finding.why
        == "version 3 (DELETE) read version 1 and did not see version 2 (WRITE), a blind append,"
        " which"
        " changed rows in its read set ((part = 0)): its reads place version 3 before version 2,"
        " but the log has it after"
    )


@pytest.mark.parametrize(
    ("where", "added", "found"),
    [
        ("(part#1 = 0)", {"part": 1}, None),
        ("(id#1 = 5)", {"ids": (5, 5)}, "certain"),
        ("(id#1 = 5)", {"ids": (5, 6)}, "possible"),
        ("(id#1 = 5)", {"ids": (6,)}, None),
        ("(f(id#1) = 5)", {}, "possible"),
        (None, {}, "certain"),
        (None, {"ids": ()}, "possible"),  # a file without rows
        (None, {"stats": None}, "possible"),
        (None, {"dataChange": False}, None),
    ],
)
def test_how_sure_a_reorder_is(delta, where, added, found):
    append = [delta.info("WRITE", 1, True, mode="Append"), delta.add("f2", **added)]
    table = delta.table(delta.append(0, "f1"), append, delta.delete(1, where, "f1"), level=WS)
    assert {c for k, c in kinds(table) if k == "reorder"} == ({found} if found else set())


def test_a_merge_may_have_passed_by_what_it_would_have_read(delta):
    table = delta.table(
        delta.append(0, "f1"), delta.append(1, "f2"), merge(delta, 1, delta.add("f3")), level=WS
    )
    (finding,) = audit(table).findings
    assert (finding.kind, finding.certainty) == ("reorder", "possible")
    assert "the log does not record what it read" in finding.why


@pytest.mark.parametrize("said", [1, "[", "{}", "[1]", None])
def test_what_a_commit_says_may_be_anything(delta, said):
    for operation in ("DELETE", "MERGE", "WRITE"):
        more = {"predicate": said, "notMatchedBySourcePredicates": said, "mode": said}
        table = delta.table(
            delta.append(0, "f1"),
            delta.append(1, "f2"),
            [delta.info(operation, 1, False, **more)],
            name=operation,
        )
        assert kinds(table) == {("reorder", "possible")}


def test_a_merge_by_source_reads_every_row(delta):
    clause = '[{"actionType": "delete"}]'
    info = delta.info("MERGE", 1, False, notMatchedBySourcePredicates=clause)
    table = delta.table(delta.append(0, "f1"), delta.append(1, "f2"), [info], level=WS)
    assert kinds(table) == {("reorder", "certain")}


@pytest.mark.parametrize(
    ("said", "partitioned", "removed", "found"),
    [
        ({}, False, 0, "certain"),
        ({}, True, 0, "certain"),  # Delta Lake 4.4 would have said that it is dynamic
        ({"isDynamicPartitionOverwrite": True}, True, 0, None),
        ({"predicate": "part = 1"}, True, 0, None),
        ({"predicate": "part = 0"}, True, 0, "certain"),
        ({"replaceUsingCols": "(id)"}, True, 0, "possible"),
    ],
)
def test_what_an_overwrite_reads(delta, said, partitioned, removed, found):
    info = delta.info("WRITE", 1, False, mode="Overwrite", **said)
    overwrite = [info, delta.remove("f1", part=removed), delta.add("g", part=1)]
    table = delta.table(
        delta.append(0, "f1"), delta.append(1, "f2"), overwrite, level=WS, partitioned=partitioned
    )
    assert {c for k, c in kinds(table) if k == "reorder"} == ({found} if found else set())


def test_before_delta_4_1_a_dynamic_overwrite_did_not_say_so(delta):
    info = delta.info("WRITE", 1, False, mode="Overwrite")
    info["commitInfo"]["engineInfo"] = "Apache-Spark/3.5.0 Delta-Lake/3.3.2"
    for part, certainty in ((1, "possible"), (0, "certain")):
        overwrite = [info, delta.remove("f1", part=part), delta.add("g", part=1)]
        table = delta.table(
            delta.append(0, "f1", part=part),
            delta.append(1, "f2"),
            overwrite,
            level=WS,
            name=f"t{part}",
        )
        assert kinds(table) == {("reorder", certainty)}


def test_who_reads_nothing_passes_nothing_by(delta):
    optimize = [
        delta.info("OPTIMIZE", 1, False, "SnapshotIsolation"),
        delta.remove("f1", dataChange=False),
        delta.add("f3", dataChange=False),
    ]
    table = delta.table(
        delta.append(0, "f1"), delta.append(1, "f2"), optimize, delta.append(1, "f4"), level=WS
    )
    assert found(table) == set()


def test_what_delta_checks_was_not_missed(delta):
    """A rewriting winner stops a loser at WriteSerializable, any winner at Serializable."""
    for used, winner in ((WS, False), ("Serializable", True)):
        add = [delta.info("WRITE", 1, winner, used, mode="Append"), delta.add("f2")]
        table = delta.table(
            delta.append(0, "f1", level=used),
            add,
            merge(delta, 1, delta.add("f3"), level=used),
            level=used,
            name=used,
        )
        assert found(table) == set()


def test_what_delta_would_have_refused(delta):
    table = delta.table(
        delta.append(0, "f1", level="Serializable"),
        delta.append(1, "f2", level="Serializable"),
        delta.delete(1, "(part#1 = 0)", "f1", level="Serializable"),
        level="Serializable",
    )
    (finding,) = audit(table).findings
    assert (finding.kind, finding.certainty) == ("missed-conflict", "certain")
    assert finding.why.endswith("Delta's conflict check at Serializable rejects that")


def test_of_other_writers_it_is_not_known_what_they_check(delta):
    info = delta.info("MERGE", 1, False, None)
    info["commitInfo"]["engineInfo"] = "Kernel-4.4.0/x"
    del info["commitInfo"]["isolationLevel"]
    table = delta.table(delta.append(0, "f1"), delta.append(1, "f2"), [info, delta.add("f3")])
    assert kinds(table) == {("reorder", "possible")}


# Bridges


def test_a_bridge_may_be_one(delta):
    """hole-partitioned: A deletes part 0, I appends to it, X reads I's row and writes to part 1."""
    between = [delta.info("WRITE", 2, False, mode="Append"), delta.add("f3", part=1)]
    table = delta.table(
        delta.append(0, "f1"),
        delta.append(1, "f2"),
        between,
        delta.delete(1, "(part#1 = 0)", "f1"),
        level=WS,
    )
    assert found(table) == {("reorder", "certain", (2, 4)), ("bridge", "possible", (2, 3, 4))}


def test_a_bridge_that_is_certain(delta):
    """hole-unpartitioned: A sets id 5 where id is 1, I appends 5 and 1, X deletes id 5: I's first
    file.
    """
    appended = [
        delta.info("WRITE", 1, True, mode="Append"),
        delta.add("i5", ids=(5,)),
        delta.add("i1", ids=(1,)),
    ]
    deleted = [
        delta.info("DELETE", 2, False, predicate='["(id#1 = 5)"]'),
        delta.remove("i5", ids=(5,)),
    ]
    updated = [
        delta.info("UPDATE", 1, False, predicate='["(id#1 = 1)"]'),
        delta.remove("f1", ids=(1,)),
        delta.add("f2", ids=(5,)),
    ]
    table = delta.table(
        delta.append(0, "f1"), appended, deleted, updated, level=WS, partitioned=False
    )
    assert found(table) == {("reorder", "certain", (2, 4)), ("bridge", "certain", (2, 3, 4))}


@pytest.mark.parametrize("between", ["unseen", "blind", "elsewhere", "optimize"])
def test_no_bridge(delta, between):
    commit = {
        "unseen": [delta.info("WRITE", 1, False, mode="Append"), delta.add("f3", part=1)],
        "blind": delta.append(2, "f3", part=1),
        "elsewhere": delta.delete(2, "(part#1 = 7)"),
        "optimize": [
            delta.info("OPTIMIZE", 2, False, "SnapshotIsolation"),
            delta.remove("f2", dataChange=False),
            delta.add("f3", dataChange=False),
        ],
    }[between]
    table = delta.table(
        delta.append(0, "f1"),
        delta.append(1, "f2"),
        commit,
        delta.delete(1, "(part#1 = 0)", "f1"),
        level=WS,
    )
    assert "bridge" not in {kind for kind, _ in kinds(table)}


# Files

VECTOR = {"storageType": "u", "pathOrInlineDv": "ab", "offset": 1, "cardinality": 1}


def delete(delta, read, *actions):
    return [delta.info("DELETE", read, False, predicate='["(id#1 = 1)"]'), *actions]


def test_removed_twice(delta):
    table = delta.table(
        delta.append(0, "f"),
        delete(delta, 1, delta.remove("f")),
        delete(delta, 1, delta.remove("f")),
    )
    (finding,) = [f for f in audit(table).findings if f.kind == "removed-twice"]
    assert (finding.certainty, finding.versions) == ("certain", (2, 3))
    assert "which version 2 had already removed (it did not see version 2)" in finding.why


def test_removed_but_never_there(delta):
    table = delta.table(delete(delta, 0, delta.remove("f")))
    assert found(table) == {("removed-twice", "possible", (1,))}


def test_two_deletes_by_vector_leave_a_file_twice(delta):
    one, two = VECTOR, VECTOR | {"offset": 2}
    table = delta.table(
        delta.append(0, "f", ids=(1, 2)),
        delete(delta, 1, delta.remove("f"), delta.add("f", deletionVector=one)),
        delete(delta, 2, delta.add("f", deletionVector=two)),
    )
    assert found(table) == {("two-live-entries", "certain", (3,))}


def test_removed_files_that_come_back(delta):
    back = [delta.info("WRITE", 2, True, mode="Append"), delta.add("f")]
    restore = [delta.info("RESTORE", 2, False), delta.add("f")]
    for commit, expected in ((back, {("comes-back", "certain", (1 + 1, 3))}), (restore, set())):
        table = delta.table(
            delta.append(0, "f"),
            delete(delta, 1, delta.remove("f")),
            commit,
            name=f"t{len(expected)}",
        )
        assert found(table) == expected


def test_an_entry_that_is_written_again_is_one_entry(delta):
    stats = [delta.info("COMPUTE STATS", 1, False), delta.add("f", dataChange=False)]
    assert found(delta.table(delta.append(0, "f"), stats)) == set()


def test_files_that_were_forgotten_are_said(delta, monkeypatch):
    monkeypatch.setattr(files, "REMEMBERED", 1)
    gone = delete(delta, 1, delta.remove("f"), delta.remove("f"), delta.remove("g"))
    table = delta.table([*delta.append(0, "f"), delta.add("g")], gone)
    assert audit(table).notes == (
        (
            "1 removed file is no longer remembered: if it was added again, the audit does not find"
            " that."
        ),
    )


# Claims


def test_blind_flags_that_the_actions_contradict(delta):
    blind = delta.info("WRITE", 1, True, mode="Append")
    table = delta.table(
        delta.append(0, "f"),
        [blind, delta.remove("f")],
        [blind, {"cdc": {"path": "c"}}],
        [delta.info("DELETE", 3, True, predicate="[]")],
    )
    flags = [f.versions for f in audit(table).findings if f.kind == "blind-flag"]
    assert flags == [(2,), (3,), (4,)]


def test_no_data_change_with_new_rows(delta):
    def move(read, *actions):
        return [delta.info("OPTIMIZE", read, False, "SnapshotIsolation"), *actions]

    same, table = {"dataChange": False}, delta.table
    moved = move(1, delta.remove("f", ids=(1, 2), **same), delta.add("g", ids=(1, 2), **same))
    more = move(2, delta.add("h", **same))
    (finding,) = audit(table(delta.append(0, "f", ids=(1, 2)), moved, more)).findings
    assert (finding.kind, finding.versions) == ("no-data-change", (3,))
    assert finding.why.endswith("but adds 1 row more than it removes")


def test_levels_that_change_and_levels_that_do_not_fit(delta):
    table = delta.table(
        delta.append(0, "f"),
        [delta.info("SET TBLPROPERTIES", 1, True, "Serializable"), delta.metadata("Serializable")],
        delta.append(2, "g"),
        [delta.info("DELETE", 3, False, "SnapshotIsolation", predicate="[]"), delta.remove("g")],
        level=WS,
    )
    assert found(table) == {
        ("level-change", "certain", (2,)),
        ("level-used", "certain", (3,)),
        ("level-used", "certain", (4,)),
    }


def test_a_read_version_that_cannot_be(delta):
    assert found(delta.table(delta.append(5, "f"), level=WS)) == {("read-version", "certain", (1,))}


def test_writers_that_record_nothing(delta):
    silent = [{"commitInfo": {"operation": "WRITE", "engineInfo": "delta-rs:1.6.6"}}]
    table = delta.table(*([*silent, delta.add(f"f{k}")] for k in range(30)), level=WS)
    (finding,) = audit(table).findings
    assert (finding.kind, finding.versions) == ("records-nothing", tuple(range(1, 21)))
    assert (
        finding.why
        == "30 commits by delta-rs:1.6.6 do not record which version they read or whether they are"
        " blind appends: the log does not show which concurrent changes they did not see"
    )


# Bounds


def test_long_windows_are_read_again_and_very_long_ones_cut(delta, monkeypatch):
    monkeypatch.setattr(windows, "COMMITS", 2)
    commits = [delta.append(0, f"f{k}") for k in range(6)]
    table = delta.table(*commits, delta.delete(0, None), level=WS)
    assert found(table) == {("reorder", "certain", (1, 2, 3, 4, 5, 6, 7))}
    monkeypatch.setattr(windows, "LONGEST", 3)
    assert found(table) == {("reorder", "certain", (4, 5, 6, 7))}
    assert audit(table).notes == (
        (
            "1 commit with more than 1,000 concurrent commits: only the newest 1,000 of these were"
            " checked."
        ),
    )


def test_findings_are_counted_and_the_first_are_kept(delta, monkeypatch):
    monkeypatch.setattr(auditing, "KEPT", 2)
    table = delta.table(*(delta.append(9, f"f{k}") for k in range(5)), level=WS)
    done = audit(table)
    assert done.counts == {("read-version", "certain"): 5}
    assert [f.versions for f in done.findings] == [(1,), (2,)]
    assert done.notes == ("The first 2 findings of each kind and certainty are listed.",)


def test_a_table_that_is_written_during_the_audit(delta):
    table = delta.table(delta.append(0, "f"), delta.append(1, "g"), level=WS)

    def write(_):
        delta.write(table / "_delta_log", 3, delta.append(2, "h"))

    done = audit(table, progress=write)
    assert (done.commits, done.last) == (3, 2)
    assert done.notes == (
        "The table was written during the audit: 1 version after 2 was not audited.",
    )


@pytest.mark.parametrize("lacks", ["metaData", "protocol"])
def test_a_table_without_metadata_or_protocol(delta, lacks):
    table = delta.table(delta.append(0, "f"))
    first = [{"commitInfo": {}}, delta.metadata(), delta.protocol()]
    delta.write(table / "_delta_log", 0, [action for action in first if lacks not in action])
    with pytest.raises(LogError, match=f"no {lacks} action up to version 0"):
        audit(table)


def test_an_audit_that_begins_with_a_checkpoint(delta):
    """What the log no longer has is said, and what was read before it is not guessed."""
    table = delta.table(
        delta.append(0, "f1"),
        delta.append(1, "f2"),
        delta.append(2, "f3"),
        delta.delete(0, None, "f1"),
    )
    log = table / "_delta_log"
    actions = [
        delta.metadata("WriteSerializable"),
        delta.protocol(),
        delta.add("f1"),
        delta.add("f2"),
    ]
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (log / "00000000000000000002.checkpoint.80a083e8-7026.json").write_text(text)
    for version in (0, 1):
        (log / f"{version:020}.json").unlink()
    done = audit(table)
    assert (done.first, done.last) == (3, 4)
    assert {(f.kind, f.certainty, f.versions) for f in done.findings} == {
        ("reorder", "certain", (2, 3, 4))
    }
    begins, before = done.notes
    assert begins.startswith(
        "The log begins with version 2: the commits up to version 2 were not audited"
    )
    assert (
        before
        == "1 commit read a version before 2: concurrent commits before that version are no longer"
        " in the log."
    )
    unknown = check_log(table, [level("write-serializable")]).levels["write-serializable"]
    assert "read a version so old that not all between was looked at" in unknown.reason


JUNK = (None, 1, -1, 1.5, True, "", "x", "[", "(part#1 = 0)", [], [1], {}, {"a": 1}, 10**30)


def damaged(value, random):
    """A JSON value with something else in one place, also inside of texts that are JSON."""
    if isinstance(value, dict) and value and random.random() < 0.9:
        key = random.choice(list(value))
        if random.random() < 0.1:
            return {k: v for k, v in value.items() if k != key}
        return value | {key: damaged(value[key], random)}
    if isinstance(value, list) and value and random.random() < 0.9:
        k = random.randrange(len(value))
        return [*value[:k], damaged(value[k], random), *value[k + 1 :]]
    if isinstance(value, str) and value[:1] in ("{", "[") and random.random() < 0.8:
        return json.dumps(damaged(json.loads(value), random))
    return random.choice(JUNK)


@pytest.mark.slow
@given(st.randoms(use_true_random=False))
def test_a_damaged_log_is_audited_or_refused(tmp_path_factory, logs_in, random):
    delta = logs_in(tmp_path_factory.mktemp("logs"))
    commits = [
        delta.append(0, "f1"),
        delta.append(1, "f2", ids=(5,)),
        delta.delete(2, "(id#1 = 5)", "f2"),
        delete(delta, 1, delta.remove("f1"), delta.add("f1", deletionVector=VECTOR)),
        [delta.info("WRITE", 2, False, mode="Overwrite"), delta.remove("f1")],
        [delta.info("MERGE", 2, False, notMatchedBySourcePredicates="[{}]"), delta.add("f3")],
    ]
    k = random.randrange(len(commits))
    commits[k] = damaged(commits[k], random)
    table = delta.table(*(c if isinstance(c, list) else [c] for c in commits))
    try:
        assert audit(table).commits == 7
        check_log(table, [level("write-serializable")])
    except LogError as error:
        assert str(table) in str(error)
