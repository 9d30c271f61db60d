"""The matrix of statements: predictions, the evidence file, what is wrong with either, the
command.
"""

import json
import re
from dataclasses import replace
from itertools import islice, product
from pathlib import Path

import pytest

from isolitmus.checker.execution.conflict_matrix import covering_order, predict_case
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.matrix import NOT_MODELLED, MatrixCase, MatrixPlace, outcome_letter
from isolitmus.specs import protocol
from isolitmus.specs.files.catalogue import matrix
from isolitmus.specs.files.evidence_files import MatrixEvidence
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.files.matrix_file import matrix_litmus, read_matrix

PAIRS = matrix("pairs")
SERIALIZABLE, WRITE_SERIALIZABLE = "delta-serializable", "delta-write-serializable"
SMALL = """\
title = "Small"
[tables.t]
columns = "id INT, part INT"
init = ["INSERT INTO t VALUES (1, 0), (11, 1)"]
[layouts]
one = { winner = 0 }
two = { winner = 1, partitioned_by = ["part"] }
[statements]
insert = "INSERT INTO t VALUES ({new}, {p})"
delete = "DELETE FROM t WHERE part = {p}"
"""


def outcome(a, winner, layout="same partition", under=SERIALIZABLE):
    return predict_case(PAIRS, MatrixPlace(a, winner, layout), protocol(under)).predicted


@pytest.mark.slow
@pytest.mark.parametrize(
    ("a", "winner", "layout", "serializable", "write_serializable"),
    [
        ("delete-partition", "insert", "same partition", "ConcurrentAppendException", "committed"),
        ("delete-partition", "insert", "other partition", "committed", "committed"),
        ("delete-partition", "insert", "unpartitioned", "ConcurrentAppendException", "committed"),
        ("insert", "truncate", "unpartitioned", "committed", "committed"),
        ("update-row", "update-row", "same partition with vectors", "ConcurrentAppendException", "ConcurrentAppendException"),
        ("restore", "insert", "other partition", "ConcurrentWriteException", "ConcurrentWriteException"),
        ("append-once", "append-once", "other partition", "ConcurrentTransactionException", "ConcurrentTransactionException"),
        ("optimize", "insert", "same partition", "committed", "committed"),
        ("constraint", "insert", "same partition", "ConcurrentAppendException", "ConcurrentAppendException"),
        ("purge", "insert", "same partition with vectors", "committed", "committed"),
    ],
)  # fmt: skip
def test_what_is_known_of_some_pairs(a, winner, layout, serializable, write_serializable):
    assert outcome(a, winner, layout) == serializable
    assert outcome(a, winner, layout, WRITE_SERIALIZABLE) == write_serializable


def test_a_case_is_a_litmus_file():
    test = matrix_litmus(
        PAIRS, MatrixPlace("overwrite-dynamic", "append-once", "other partition with vectors")
    )
    again = read_litmus(str(test), test.name)
    assert (again.transactions, again.clients, again.tables) == (
        test.transactions,
        test.clients,
        test.tables,
    )
    assert "INSERT OVERWRITE t VALUES (100, 0, 0)" in str(test)
    assert "INSERT INTO t VALUES (200, 1, 0)" in str(test)


@pytest.mark.slow
def test_every_statement_is_modelled_beside_itself_in_some_layout():
    for name in PAIRS.statements:
        seen = [outcome(name, name, layout) for layout in PAIRS.layouts]
        assert set(seen) != {NOT_MODELLED}, name


def test_a_sample_soon_has_every_statement_on_either_side_in_every_layout():
    for size in (2, 7, len(PAIRS.statements)):
        some = replace(PAIRS, statements=dict(islice(PAIRS.statements.items(), size)))
        sample = covering_order(some, some.places())[: size * len(some.layouts)]
        for side in ("a", "winner"):
            sides = {(getattr(place, side), place.layout) for place in sample}
            assert sides == set(product(some.statements, some.layouts))
        if size > len(some.layouts):
            assert len({(place.a, place.winner) for place in sample}) == len(sample)


def seen(a, winner, observed, *differences, under=SERIALIZABLE):
    return MatrixCase(
        MatrixPlace(a, winner, "one"), under, "delta", "committed", observed, differences
    )


def test_evidence_is_read_as_it_was_written(tmp_path):
    small = read_matrix(SMALL, "small")
    evidence = MatrixEvidence(small, "some engine 1")
    evidence.add(seen("insert", "delete", "committed"))
    evidence.add(
        seen(
            "delete",
            "delete",
            "error:SparkException",
            'said "no"',
            "twice",
            under=WRITE_SERIALIZABLE,
        )
    )
    evidence.write(tmp_path / "e.toml")
    again = MatrixEvidence.read(tmp_path / "e.toml", small, [SERIALIZABLE, WRITE_SERIALIZABLE])
    assert again.engine_version == "some engine 1"
    assert again.letters == evidence.letters
    assert set(again.letters.values()) == {".", "e"}
    assert again.differences == evidence.differences
    assert MatrixEvidence.read(tmp_path / "none.toml", small, []).letters == {}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('matrix = "small"', 'matrix = "pairs"', "e.toml:1: matrix is pairs with another text than small has now"),
        ('insert = " ."', 'insert = " y"', "e.toml:8: grids.delta-serializable.one.insert is ' y'; expected 2 letters"),
        ('insert = " ."', 'insert = "."', "expected 2 letters"),
        ('insert = " ."', 'other = " ."', "grids.delta-serializable.one has not the layouts and rows of small"),
        ("grids.delta-serializable", "grids.delta-seralizable", "grids.delta-seralizable is of no protocol"),
        ("cases  = 1", "case  = 1", "the file has no key 'case'; did you mean 'cases'?"),
    ],
)  # fmt: skip
def test_what_is_no_evidence_is_refused(tmp_path, old, new, message):
    small = read_matrix(SMALL, "small")
    evidence = MatrixEvidence(small, "some engine 1")
    evidence.add(seen("insert", "delete", "committed"))
    path = tmp_path / "e.toml"
    evidence.write(path)
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(IsolitmusError) as refused:
        MatrixEvidence.read(path, small, [SERIALIZABLE, WRITE_SERIALIZABLE])
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[tables.t]", "[tables.u]", "s.toml: [tables] has no table t, which the layouts are of"),
        ("winner = 0", "winner = 2", "s.toml:6: layouts.one.winner is 2; expected the partition of the winner"),
        ("winner = 0", "won = 0", "s.toml:6: [layouts.one] has no key 'won'"),
        ("DELETE FROM t WHERE part", "DELETE FROM t WHERE prat", "unknown column 'prat'; did you mean 'part'?"),
        ("[statements]", "[statement]", "the file has no key 'statement'; did you mean 'statements'?"),
    ],
)  # fmt: skip
def test_a_matrix_file_that_is_wrong_is_refused(old, new, message):
    with pytest.raises(IsolitmusError) as refused:
        read_matrix(SMALL.replace(old, new), "s")
    assert message in str(refused.value)


@pytest.mark.parametrize("value", ["true", "3", "[1]", "{}"])
def test_a_statement_of_a_matrix_that_is_no_text_is_refused(value):
    with pytest.raises(IsolitmusError, match="insert"):
        read_matrix(re.sub(r"(?m)^insert\b.*$", f"insert = {value}", SMALL), "s")


@pytest.mark.slow
def test_the_command_prints_a_grid_and_json(call, tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    status, out, err = call("matrix", path, "--layout", "two", "--protocol", SERIALIZABLE)
    assert (status, err) == (0, "")
    assert out.splitlines()[:4] == [
        "Small: delta-serializable, two (model): 0 of 4 cases conflict",
        "            1 2",
        "  1  insert . .",
        "  2  delete . .",
    ]
    status, out, _ = call("matrix", path, "--json", "--protocol", SERIALIZABLE)
    cells = json.loads(out)
    assert (status, len(cells)) == (0, 8)
    assert cells[2] == {
        "a": "delete", "winner": "insert", "layout": "one", "protocol": SERIALIZABLE, "engine": "model",
        "predicted": "ConcurrentAppendException", "observed": None, "differences": [],
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["pears"], "unknown matrix 'pears'; did you mean 'pairs'?"),
        (["none.toml"], "none.toml"),
        (["--layout", "same partitions"], "no layout 'same partitions'; did you mean 'same partition'?"),
        (["--shard", "3/2"], "--shard is '3/2'; write K/N, such as 1/4"),
        (["--sample", "0"], "--sample is 0; expected an integer of at least 1"),
        (["--evidence", "e.toml"], "--evidence needs an engine; add --engine delta"),
        (["--out", "cases"], "--out needs an engine; add --engine delta"),
        (["--engine", "delta", "--at-once", "0"], "--at-once is 0; expected an integer of at least 1"),
        (["--engine", "dleta"], "unknown engine 'dleta'; did you mean 'delta'?"),
        (["--engine", "delta", "--protocol", "databricks-serializable-newest"], "does not implement the protocol"),
        (["--protocol", "delta"], "unknown protocol 'delta'"),
    ],
)  # fmt: skip
def test_the_command_refuses(call, words, message):
    status, out, err = call("matrix", *words)
    assert (status, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.slow
def test_the_evidence_in_the_repository_is_what_the_model_says_today():
    """Up to 75 cases of it, evenly spread: `make conformance` replays them all."""
    path = Path(__file__).parents[3] / "conformance" / "evidence" / "pairs.toml"
    evidence = MatrixEvidence.read(path, PAIRS, [SERIALIZABLE, WRITE_SERIALIZABLE])
    kept = list(evidence.letters.items())
    assert (evidence.engine_version, evidence.differences) == ("delta-spark 4.4.0, Spark 4.2.0", {})
    for (under, place), seen_ in kept[:: len(kept) // 75 + 1]:
        assert outcome_letter(predict_case(PAIRS, place, protocol(under)).predicted) == seen_, (
            under,
            place,
        )
