"""What is decoded by type is what the exact reader reads; all else is left to the exact reader."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from isolitmus.model.errors import IsolitmusError
from isolitmus.specs.logs import delta_log
from isolitmus.specs.logs.actions import KNOWN
from isolitmus.specs.logs.typed_commits import decode_commit

INFO = {
    "timestamp": 1, "operation": "DELETE", "operationParameters": {"predicate": '["(id#1 = 2)"]'},
    "readVersion": 3, "isolationLevel": "Serializable", "isBlindAppend": False, "txnId": "a-b",
    "operationMetrics": {"numFiles": "2"}, "engineInfo": "Apache-Spark/4.2.0",
}  # fmt: skip
VECTOR = {
    "storageType": "u",
    "pathOrInlineDv": "ab^-",
    "offset": 1,
    "cardinality": 2,
    "sizeInBytes": 3,
}
FILE = {
    "path": "part=1/a.parquet", "partitionValues": {"part": "1", "day": None}, "size": 10,
    "modificationTime": 5, "dataChange": True, "stats": '{"numRecords":3}', "tags": {"k": "v"},
}  # fmt: skip
ACTIONS = (
    {"commitInfo": INFO},
    {"commitInfo": {}},
    {"add": FILE},
    {"add": FILE | {"path": "déjà \\u00e9\\n.parquet", "deletionVector": VECTOR}},
    {"remove": FILE | {"dataChange": False, "deletionTimestamp": 7}},
    {"remove": {"path": "file:///d/f"}},
    {"cdc": {"path": "c", "partitionValues": {}}},
    {"txn": {"appId": "app", "version": 5}},
    {"domainMetadata": {"domain": "delta.rowTracking", "configuration": "{}", "removed": False}},
    {"metaData": {"schemaString": '{"fields":[]}', "partitionColumns": []}},
    {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
)  # fmt: skip
VALUES = (
    "null", "true", "5", "-1", "5.0", "1e3", "1e999", "NaN", "Infinity", '""', '"file:/x"', "[]",
    "{}", '{"a":1}', '["a",null]', "123456789012345678901234567890", '"\\ud800"', '"\\u0000"',
    "9" * 5000, "[" * 200 + "]" * 200, '"é"', "01", "'x'", '"\x01"', "nul",
)  # fmt: skip
BYTES = (
    b"\n",
    b"\r\n",
    b"\r",
    b" ",
    b"\t",
    b"\x00",
    b"\xff",
    b"\xc3\xa9",
    b"{",
    b"}",
    b'"',
    b",",
    b"\\",
)


def mutated(rnd: random.Random) -> bytes:
    """A commit with some changes: in its lines, in the values of its fields, in its bytes."""
    lines = [
        json.dumps(rnd.choice(ACTIONS), separators=(",", ":"), ensure_ascii=rnd.random() < 0.5)
        for _ in range(rnd.randint(0, 4))
    ]
    for _ in range(rnd.choice((0, 0, 1, 2))):
        if lines:
            k = rnd.randrange(len(lines))
            parts = lines[k].split(":")
            at = rnd.randrange(len(parts))
            match rnd.randrange(4):
                case 0 if at:  # another value
                    end = parts[at].find(",")
                    parts[at] = rnd.choice(VALUES) + (parts[at][end:] if end >= 0 else "}}")
                case 1:  # a key or a value twice, or lost
                    parts[at : at + 1] = [parts[at]] * rnd.choice((0, 2))
                case 2:
                    lines.append(lines[k])
                case 3:  # two on one line
                    parts[-1] += rnd.choice((lines[k], " ", " {}", '{"x":1}'))
            lines[k] = ":".join(parts)
    data = "\n".join(lines).encode("utf-8", "surrogatepass") + rnd.choice(
        (b"\n", b"\n", b"", b"\n\n")
    )
    for _ in range(rnd.choice((0, 0, 0, 1, 2))):
        at = rnd.randrange(len(data) + 1)
        data = data[:at] + rnd.choice(BYTES) + data[at + rnd.choice((0, 1)) :]
    return data


def exactly(path):
    try:
        actions = delta_log._actions(str(path), newest=False)
        return delta_log.build_commit(7, actions)
    except IsolitmusError as error:
        return str(error)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_decoded_is_what_is_read_exactly(tmp_path, seed):
    path, rnd, said = tmp_path / "7.json", random.Random(seed), Counter()
    for _ in range(1_500):
        data = mutated(rnd)
        path.write_bytes(data)
        decoded, exact = decode_commit(7, data), exactly(path)
        if decoded is not None:
            assert decoded == exact, data
            assert list(decoded.info) == list(exact.info), data
        said[decoded is not None, isinstance(exact, str)] += 1
    assert said[True, True] == 0
    assert min(said[True, False], said[False, False], said[False, True]) > 100, said


def test_commits_as_writers_make_them_are_decoded_by_type():
    """Else the fast reader is of no use."""
    for action in ACTIONS[:5]:
        data = (json.dumps({"commitInfo": INFO}) + "\n" + json.dumps(action) + "\n").encode()
        assert decode_commit(7, data) is not None, action


def test_the_fields_of_commit_info_are_the_known_ones():
    """In the same order, since a verdict may show them."""
    decoded = decode_commit(7, (json.dumps({"commitInfo": INFO}) + "\n").encode())
    assert list(decoded.info) == [name for name in KNOWN if name in INFO] == list(KNOWN)


def test_all_fields_of_a_file_are_there_however_it_is_read(tmp_path):
    data = "".join(json.dumps(action) + "\n" for action in ACTIONS[:5]).encode()
    (tmp_path / "7.json").write_bytes(data)
    decoded, exact = decode_commit(7, data), exactly(tmp_path / "7.json")
    pairs = zip((*decoded.adds, *decoded.removes), (*exact.adds, *exact.removes), strict=True)
    assert [a.action == b.action and a.action["size"] for a, b in pairs] == [10, 10, 10]
