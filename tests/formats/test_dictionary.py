"""An engine of the second format: offered, it carries the store's tests out, and is compared with
the model.
"""

import pytest
from formats.dictionary import DICTIONARY, carry
from formats.test_store import FIRST, SKEW

from isolitmus.checker.execution.run_diff import compare_runs
from isolitmus.checker.execution.run_result import RunResult, run
from isolitmus.conformance import engines
from isolitmus.model.errors import LitmusError, Refused, UnknownName
from isolitmus.specs import litmus, protocol
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.registries import ENGINES

SCHEDULE = "a.start b.start a[1] b[1] a[2] b[2] a.commit b.commit"
READER = '\nr = ["GET x", "GET y"]\n'


@pytest.fixture(autouse=True)
def _offered():
    with ENGINES.offered(DICTIONARY):
        yield


@pytest.mark.parametrize(
    ("a", "b", "schedule", "outcomes"),
    [
        ("PUT y x + 1", "PUT x y + 1", SCHEDULE, ("committed", "committed")),
        ("PUT y x + 1", "PUT y y + 5", SCHEDULE, ("committed", "WriteConflict")),
        ("DEL y", "PUT y y + 5", "a b", ("committed", "committed")),
        ("DEL y", "PUT y y + 5", "b.start a b[1] b[2] b.commit", ("committed", "WriteConflict")),
        ("PUT y x + 1", "PUT y y + 5", "a[1] b a[2] a.rollback", ("rolled back", "committed")),
    ],
)  # fmt: skip
def test_the_dictionary_does_what_the_model_says(a, b, schedule, outcomes):
    text = SKEW.replace("PUT y x + 1", a).replace("PUT x y + 1", b)
    test = read_litmus(text.replace(SCHEDULE, f"{schedule} r") + READER, "t")
    (seen,) = engines.run_cases("dictionary", [(test, FIRST)])
    assert tuple(seen.transactions[name].outcome for name in "ab") == outcomes
    assert compare_runs(run(test, FIRST).run, seen).differences == ()


def test_something_is_expected_of_a_release():
    """Of one that is no engine's, nothing can be."""
    text = f"{SKEW}[expect.dictionary-1]\noutcome.b = 'WriteConflict'\n"
    test = read_litmus(text, "t")
    assert RunResult(test, carry(test, FIRST)).differences == (
        "b: expected WriteConflict, got committed",
    )
    for wrong in ("dictionery-1", "dictionary-first", "dictionary"):
        with pytest.raises(LitmusError, match=f"expect.{wrong}. is of no protocol"):
            read_litmus(text.replace("dictionary-1", wrong), "t")


def test_another_protocol_and_another_format_are_refused():
    (seen,) = engines.run_cases("dictionary", [(litmus("reorder"), FIRST)])
    assert isinstance(seen, Refused)
    assert "reorder has format delta, which dictionary does not support" in str(seen)
    with pytest.raises(UnknownName, match="dictionary does not implement the protocol"):
        engines.refuse_unable("dictionary", [protocol("delta-serializable").name])
