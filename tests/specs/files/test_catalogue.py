"""The shipped litmus tests: complete, consistent in themselves, and met by the model.

Their expectations were derived by hand from the documents and from Delta's code; where the model or
an engine disagrees with a file, one of the two is wrong, and which one has to be found out.

After a new level: ISOLITMUS_UPDATE=1 pytest tests/specs/files/test_catalogue.py writes what it says
of each history into the file, for its author to compare with the paper.
"""

import os
import re

import pytest
from case_checks import check_cases
from catalogue_runs import predicted

from isolitmus.checker.delta.format import DELTA
from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.jobs.readers.workload_sources import workload
from isolitmus.model.litmus import Litmus
from isolitmus.specs import level, litmus, protocol, scope
from isolitmus.specs.files.catalogue import history_names, litmus_files, litmus_names, matrix
from isolitmus.specs.files.catalogue_titles import litmus_by_tag, names_of_kind, titles_of_kind
from isolitmus.specs.files.exceptions_file import exception_table
from isolitmus.specs.files.spec_catalogue import every_level, levels, proposals, protocols
from isolitmus.specs.registries import engine_named, format_named, formats, log_of_format

READERS = {
    "levels": level,
    "protocols": protocol,
    "litmus": litmus,
    "scopes": scope,
    "matrices": matrix,
    "workloads": workload,
    "engines": engine_named,
    "exceptions": lambda name: exception_table().every[name],
}


@pytest.fixture(scope="module")
def tests():
    """The litmus tests of the catalogue by their names."""
    return {name: litmus(name) for name in litmus_names()}


@pytest.fixture(scope="module")
def on_tables(tests):
    """Those on tables."""
    return {name: test for name, test in tests.items() if isinstance(test, Litmus)}


@pytest.fixture(scope="module")
def histories(tests):
    """Those that are abstract histories."""
    return {name: test for name, test in tests.items() if not isinstance(test, Litmus)}


# In every history of snapshot reads: (stronger, weaker).
LATTICE = [
    ("log-serializable", "serializable"),
    ("serializable", "write-serializable"),
    ("write-serializable", "snapshot-isolation"),
]


@pytest.mark.parametrize(("kind", "read"), READERS.items())
def test_titles_in_lists_are_those_of_the_readers(kind, read):
    titles = dict(titles_of_kind(kind))
    assert titles == {name: read(name).title for name in names_of_kind(kind)}


def test_tags_in_lists_are_those_of_the_reader():
    tagged = {(tag, name) for tag, names in litmus_by_tag().items() for name in names}
    every = [litmus(name) for name in names_of_kind("litmus")]
    assert tagged == {(tag, test.name) for test in every for tag in test.tags}


@pytest.mark.parametrize("name", formats())
def test_the_log_of_a_format_is_known_without_importing_it(name):
    assert log_of_format(name) == format_named(name).log


def test_a_litmus_test_says_what_it_is_and_whence(tests):
    def look(name):
        test = tests[name]
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", name)
        assert test.title
        assert test.source
        assert test.tags

    assert len(check_cases(look, tests)) >= 300


def test_abstract_histories_are_known_without_reading_the_others(histories):
    assert history_names() == [*histories]


def test_titles_are_distinct(tests):
    titles = [test.title for test in tests.values()]
    assert len(set(titles)) == len(titles)


def look_at_expectations(test):
    of_spark = not any(map(DELTA.unfit, test.tables.values()))
    both = ("serializable", "write-serializable")
    assert {f"delta-{'' if of_spark else 'rs-'}{level}" for level in both} <= set(test.expect)
    for who, expect in test.expect.items():
        if who.startswith("deltalake-"):  # what a release does where it differs from the model
            continue
        assert who in (*protocols(), *proposals())
        assert set(expect.outcome) == set(test.transactions) or not test.raw
        if test.raw:
            continue
        assert expect.tables
        assert expect.serial is not None
        assert set(expect.holds) | set(expect.fails) <= set(every_level())
        assert not set(expect.holds) & set(expect.fails)
        for stronger, weaker in LATTICE:
            assert not (stronger in expect.holds and weaker in expect.fails)
        committed = {
            n
            for n, options in expect.outcome.items()
            if options == ("committed",) and test.client(n).commit_of is None
        }
        for order in expect.serial:
            assert set(order.split()) == committed
        if "write-serializable" in expect.holds:
            assert expect.serial, "an acyclic conflict graph has an order that explains the table"


def test_expectations_are_complete_and_consistent(on_tables):
    check_cases(lambda name: look_at_expectations(on_tables[name]), on_tables)
    assert len(on_tables) >= 250


@pytest.mark.slow
def test_the_model_meets_the_expectations(on_tables):
    def meet(name, under):
        judged = predicted(name, under)
        assert (judged.expected, judged.differences) == ("met", ())

    expected = [(name, who) for name, test in on_tables.items() for who in test.expect]
    every = {*protocols(), *proposals()}
    assert len(check_cases(meet, [pair for pair in expected if pair[1] in every])) >= 630


def look_at_levels(name, test):
    """Check that a history expects something of each level; ISOLITMUS_UPDATE=1 writes what is new
    into its file.
    """
    asked = {name for name in levels() if "log" not in level(name).needs}
    new = asked - {*test.holds, *test.fails}
    if new and os.environ.get("ISOLITMUS_UPDATE"):
        (path,) = litmus_files(name)
        text = path.read_text("utf-8")
        for added in sorted(new):
            key = "holds" if check_history(test.history, level(added)) else "fails"
            if not re.search(rf"^{key} ", text, re.MULTILINE):
                text += f"{key} = []\n"
            text = re.sub(rf"^({key} +=.*?)\]", rf'\1, "{added}"]', text, flags=re.MULTILINE)
        path.write_text(text.replace("[, ", "["), "utf-8")
        return
    assert asked <= {*test.holds, *test.fails} <= set(every_level())


def test_histories_expect_something_of_every_level_that_they_can_be_asked(histories):
    assert len(check_cases(look_at_levels, histories.items())) >= 50


@pytest.mark.slow
def test_histories_meet_their_expectations(histories):
    def meet(_, test):
        said = {n: str(check_history(test.history, level(n))) for n in test.holds + test.fails}
        assert said == dict.fromkeys(test.holds, "allowed") | dict.fromkeys(test.fails, "forbidden")

    assert len(check_cases(meet, histories.items())) >= 50
