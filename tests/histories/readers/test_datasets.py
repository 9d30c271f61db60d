"""The files that others recorded are read whole: as many sessions, transactions, operations and
keys as their list says.

They lie beside the repository, in ``shared/datasets``, and are never copied into it. Where they are
not, these tests are skipped.
"""

import csv
from pathlib import Path

import numpy as np
import pytest

from isolitmus.histories.readers.blackbox_history import (
    ABORTED,
    COMMITTED,
    INITIAL,
    UNKNOWN,
    ListHistory,
)
from isolitmus.histories.readers.recorded_history import recorded_history
from isolitmus.model.errors import RecordingError

DATASETS = Path(__file__).parents[4] / "shared" / "datasets"
VERDICTS = DATASETS / "verdicts.csv"
ABSENT = pytest.param("", marks=pytest.mark.skip("no ../shared/datasets here"))
ROWS = list(csv.DictReader(VERDICTS.read_text("utf-8").splitlines())) if VERDICTS.exists() else []
ELLE = sorted(
    path.relative_to(DATASETS / "elle").as_posix()
    for path in (DATASETS / "elle").rglob("*")
    if path.suffix in (".edn", ".json")
)
DEFECTIVE_EVENTS = {  # of what succeeded: transactions with writes that failed, and reads that failed in any
    "galera_all_writes/3_30_20_180/hist-00000": (1, 0),
    "galera_all_writes/3_30_20_180/hist-00002": (2, 0),
    "galera_all_writes/3_30_20_180/hist-00003": (0, 1),
    "galera_all_writes/3_30_20_180/hist-00004": (0, 1),
    "roachdb_all_writes/3_30_20_180/hist-00000": (2, 14),
    "roachdb_all_writes/3_30_20_180/hist-00001": (5, 15),
    "roachdb_all_writes/3_30_20_180/hist-00002": (2, 14),
    "roachdb_all_writes/3_30_20_180/hist-00003": (4, 10),
    "roachdb_all_writes/3_30_20_180/hist-00004": (2, 18),
}
NO_INITIAL = {"fully-ser", "hb-cycle", "biswas-enea"}
"""AWDIT's files without a session that is the initial transaction."""


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS or [ABSENT], ids=lambda row: row and row["history"])
def test_counts_are_those_of_the_list(row):
    history = recorded_history(DATASETS / row["history"])
    sessions, transactions, operations, keys, aborted = (
        int(row[name]) for name in ("sessions", "txns", "ops", "keys", "aborted")
    )
    if row["history"].startswith("awdit") and Path(row["history"]).stem not in NO_INITIAL:
        sessions, transactions, operations = sessions - 1, transactions - 1, operations - keys
    apart, dropped = DEFECTIVE_EVENTS.get(row["history"].removeprefix("dbcop-real/"), (0, 0))
    assert (len(history.sessions), len(history.session)) == (sessions, transactions + apart)
    assert (len(history.key), len(history.keys)) == (operations - dropped, keys)
    assert np.count_nonzero(history.status == ABORTED) == aborted + apart
    assert np.count_nonzero(history.status == UNKNOWN) == 0


@pytest.mark.slow
@pytest.mark.skipif(not VERDICTS.exists(), reason="no ../shared/datasets here")
def test_every_binary_file_is_read_to_its_last_byte():
    """The layout is what these files are written in: a reader that went wrong would end
    elsewhere.
    """
    files = sorted(DATASETS.rglob("*.bincode"))
    assert len(files) == 18
    assert all(len(recorded_history(path).key) for path in files)


@pytest.mark.skipif(not VERDICTS.exists(), reason="no ../shared/datasets here")
def test_one_history_in_two_formats_is_one_history():
    """Galera's lost update in Plume's text, and with its initial transaction and other values in
    dbcop's layout.
    """
    folder = DATASETS / "polysi-violations" / "galera"
    text, binary = recorded_history(folder / "galera.txt"), recorded_history(folder)
    assert text.is_write.tolist() == binary.is_write[1:].tolist()
    pairs = set(zip(text.value.tolist(), binary.value[1:].tolist(), strict=True))
    assert len(pairs) == len(set(text.value.tolist())) == len(set(binary.value[1:].tolist()))


LISTS = {  # transactions, sessions, committed, reads that no order of versions explains
    "elle-cli/elle/list-append-gh-30.edn": (5, 3, 5, 0),
    "elle-cli/elle/paper-example.edn": (4, 1, 4, 0),
    "elle-cli/elle/paper-example.json": (4, 1, 4, 0),
    "huge-scc.edn": (10_254, 173, 3_036, 0),
    "paper-example.edn": (4, 4, 4, 0),
    "si-without-g-single.edn": (4, 4, 4, 0),
}
REGISTERS = {"elle-cli/elle/rw-register.edn", "elle-cli/elle/rw-register.json"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ELLE or [ABSENT])
def test_elle_s_transactions_are_read_and_its_other_workloads_refused(name):
    path = DATASETS / "elle" / name
    if name in LISTS:
        history = recorded_history(path)
        assert isinstance(history, ListHistory)
        registers = history.registers
        committed = np.count_nonzero(registers.status == COMMITTED)
        found = len(registers.session), len(registers.sessions), committed, len(history.strays())
        assert found == LISTS[name]
    elif name in REGISTERS:
        history = recorded_history(path)
        assert [history.values[v] for v in history.value] == [2, 3, 2]
        assert (history.started.tolist(), history.ended.tolist()) == ([0, 2, 4], [1, 3, 5])
    elif name == "elle-cli/jepsen/long-fork.edn":
        history = recorded_history(path)
        assert (len(history.session), len(history.sessions), len(history.key)) == (2, 2, 6)
    else:
        with pytest.raises(RecordingError, match=r":[12]: '.*' is not a transaction"):
            recorded_history(path)


@pytest.mark.skipif(not ELLE, reason="no ../shared/datasets/elle here")
def test_the_paper_s_example_is_read_as_it_stands():
    history = recorded_history(DATASETS / "elle" / "elle-cli" / "elle" / "paper-example.edn")
    registers = history.registers
    orders = {
        name: [registers.values[v] for v in history.order(key)]
        for key, name in enumerate(registers.keys)
    }
    assert orders == {"253": [1, 3, 4], "255": [2, 3, 4, 5, 8], "256": [1, 2, 4], "250": []}
    assert INITIAL not in registers.value
