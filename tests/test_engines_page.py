"""docs/results/engines.md says what engines did with the catalogue; the model says the same today, but
where a litmus test expects something else of an engine.
"""

import re
from pathlib import Path

import pytest

from isolitmus.checker import run
from isolitmus.model.litmus import Litmus
from isolitmus.specs import litmus, protocol
from isolitmus.specs.files.catalogue import litmus_names
from isolitmus.specs.registries.engines import engines

PAGE = (Path(__file__).parents[1] / "docs" / "results" / "engines.md").read_text("utf-8")


def cells():
    """Each litmus test with a column of the page and the word that stands there."""
    lines = [
        [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        for line in PAGE.splitlines()
        if line.startswith("| ")
    ]
    (_, *columns), *rows = lines
    for name, *words in rows:
        yield from (
            (name, column, word) for column, word in zip(columns, words, strict=True) if word
        )


def test_every_test_on_tables_is_there():
    tests = {name for name in litmus_names() if isinstance(litmus(name), Litmus)}
    _, _, rest = PAGE.partition("Not in this table yet")
    waiting = re.findall(r"`([\w-]+)`", rest.partition("\n\n")[0])
    assert sorted([*{name for name, _, _ in cells()}, *waiting]) == sorted(tests)


@pytest.mark.slow
def test_what_engines_did_is_what_the_model_says():
    for name, column, word in cells():
        engine, release, under = re.fullmatch(r"(\w+) (.*), ([\w.-]+)", column).groups()
        assert engine in engines()
        test = litmus(name)
        if f"{engine}-{release}" not in test.expect:
            assert run(test, protocol(under)).word == word, (name, column)
