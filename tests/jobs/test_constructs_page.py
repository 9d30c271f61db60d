"""docs/results/constructs.md has the treatment of each statement of bench/constructs.toml, and what
Delta said to it (``tests/jobs/conformance/test_constructs.py``).

After a change of the statements or of the SQL that is understood: ISOLITMUS_UPDATE=1 pytest
tests/jobs/test_constructs_page.py.
"""

import difflib
import os
import re
import runpy
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "results" / "constructs.md"
BENCH = runpy.run_path(str(ROOT / "bench" / "constructs.py"))
TITLES = {"spark": "Spark's grammar", "delta": "Delta's grammar"}
HEAD = """# Which SQL does predict understand?

[`predict`](../jobs.md), `robust` and `lint` read the SQL of jobs. Spark 4.2.0 and Delta 4.4.0 each
have a grammar. This table has a statement for each rule and labelled alternative of these grammars
that is a construct of its own, and says how the statement is read. A test writes this page; another
one compares the list with the grammars.

| in `predict` | meaning | statements |
|---|---|---|
| modelled | The statement is read as it is. | {modelled} |
| any rows | A table of any rows stands for a query, or for a table without DDL. | {any_rows} |
| any value | The named part may have any value. What depends on it is *unknown*. | {any_value} |
| commits nothing | The statement commits nothing to a table with DDL. It is passed over. | {commits_nothing} |
| always fails | The statement fails on this table, whatever the other jobs do. | {always_fails} |
| not understood | Answers that depend on the statement are *unknown*, with this reason. | {not_understood} |

The last column is what Delta 4.4.0 said to the statement: it took it, or the class of the error. Of
the {all} statements Delta took {taken}; {refused} of these {taken} are not understood ({share:.1f} %).
"""


@pytest.fixture(scope="module")
def sample():
    return BENCH["read_constructs"]()


@pytest.fixture(scope="module")
def became(sample):
    return {one.sql: BENCH["treatment"](sample, one) for one in sample.constructs}


def code(text):
    """A text as code in a cell of a table; a pipe would end the cell."""
    return "`" + re.sub(r"\s+", " ", text).replace("`", "'").replace("|", "\\|") + "`"


def words(text):
    """A text in a cell of a table."""
    plain = re.sub(r"\s+", " ", text.partition("\n")[0])
    return re.sub(r"([|<>*_`])", r"\\\1", plain)


def page(sample, became):
    observed = BENCH["read_observed"]()
    count = Counter(one.word for one in became.values())
    taken = {sql for sql, said in observed.items() if said == BENCH["TAKEN"]} & became.keys()
    refused = [sql for sql in taken if became[sql].word == "not understood"]
    told = {word.replace(" ", "_"): f"{count[word]:,}" for word in BENCH["WORDS"]}
    yield HEAD.format(
        **told, all=len(became), taken=len(taken), refused=len(refused),
        share=100 * len(refused) / len(taken),
    )  # fmt: skip
    yield "The tables:\n"
    yield from (f"- {code(ddl)}" for ddl in sample.tables)
    yield ""
    for grammar, title in TITLES.items():
        yield f"## {title}\n"
        yield "| construct | statement | in `predict` | part or reason | Delta 4.4.0 |"
        yield "|---|---|---|---|---|"
        for one in sample.constructs:
            if one.grammar == grammar:
                word, part = became[one.sql]
                said = observed[one.sql]
                engine = "taken" if said == BENCH["TAKEN"] else said.replace("_", "\\_")
                yield f"| {words(one.rule)} | {code(one.sql)} | {word} | {words(part)} | {engine} |"
        yield ""
    yield "## What no statement samples\n"
    for why, names in sample.other.items():
        yield f"- {why}: {', '.join(names)}"
    yield ""


@pytest.mark.slow
def test_the_page_is_what_the_code_gives(sample, became):
    text = PAGE.read_text("utf-8") if PAGE.exists() else ""
    new = "\n".join(page(sample, became))
    if os.environ.get("ISOLITMUS_UPDATE"):
        PAGE.write_text(new, "utf-8")
    elif new != text:
        lines = text.splitlines(), new.splitlines()
        diff = difflib.unified_diff(*lines, PAGE.name, "what the code gives", lineterm="", n=0)
        pytest.fail("\n".join([*diff, "", "ISOLITMUS_UPDATE=1 writes it anew."]), pytrace=False)
    assert PAGE.read_text("utf-8") == new


def test_each_statement_has_an_outcome_on_delta(sample):
    assert {one.sql for one in sample.constructs} == BENCH["read_observed"]().keys()


def test_there_are_at_least_300_statements(sample):
    assert len({one.sql for one in sample.constructs}) == len(sample.constructs) >= 300


@pytest.mark.slow
def test_few_statements_that_delta_takes_are_not_understood(sample, became):
    observed = BENCH["read_observed"]()
    taken = [one.sql for one in sample.constructs if observed[one.sql] == BENCH["TAKEN"]]
    refused = [sql for sql in taken if became[sql].word == "not understood"]
    assert len(refused) <= 0.03 * len(taken), refused
