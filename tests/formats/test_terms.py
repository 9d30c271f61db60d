"""A format has terms of its own: its protocols use them, and what people see says them in its
words.
"""

import pytest
from formats.store import DELETES, WRITES_READ
from formats.test_store import SCOPE, SKEW

from isolitmus.checker.execution.commit_loop import abort_violations, execute, execution_frame
from isolitmus.checker.execution.dependency_graph import graph
from isolitmus.checker.execution.run_result import run
from isolitmus.checker.render.page_parts import figure
from isolitmus.checker.render.verdicts import refusal_words
from isolitmus.checker.search.separation import separate
from isolitmus.checker.sweeps.table_sweep import sweep
from isolitmus.model.errors import FrameError, SpecError
from isolitmus.model.frame import FrameBuilder
from isolitmus.model.vocabulary import Term, terms_of
from isolitmus.specs import level
from isolitmus.specs.files.litmus_file import read_litmus
from isolitmus.specs.files.scope_file import read_scope
from isolitmus.specs.files.spec_reader import read_spec

CHECKED = read_spec(
    '"Reads are checked" format store empty [~Deletes] ; (unseen & writes-read) as ReadConflict',
    "checked",
)
READS = read_spec(
    '"Reads are checked" format store empty unseen & writes-read as ReadConflict', "reads"
)


def test_a_protocol_uses_them_and_a_conflict_says_them():
    test = read_litmus(SKEW, "skew")
    done = run(test, CHECKED)
    assert [t.outcome for t in done.run.transactions.values()] == ["committed", "ReadConflict"]
    assert refusal_words(abort_violations(execute(test, CHECKED), CHECKED)["b"]) == [
        (
            "b conflicts with a, because b read version 0, before a committed version 1, and a"
            " wrote y, which b read; a deletes no key"
        ),
        "b aborts with ReadConflict",
    ]


def test_searches_and_counts_know_them():
    scope = read_scope(SCOPE, "two-keys")
    assert separate(READS, level("serializable"), scope).found is False
    assert separate(CHECKED, level("serializable"), scope).found
    counts = sweep(scope, 2, protocols=[CHECKED, READS], levels=[level("serializable")]).protocols
    assert counts["reads"].forbidden["serializable"] == 0 < counts["checked"].admitted
    assert counts["checked"].forbidden["serializable"] > 0


def test_pictures_and_pages_have_the_verb_and_the_meaning():
    seen = execution_frame(execute(read_litmus(SKEW.replace('"PUT x y + 1"', '"DEL x"'), "skew")))
    assert seen.member_of("b") == ["Writer", DELETES.name]
    own = [edge for edge in seen.edges() if edge.kind == WRITES_READ.name]
    assert [str(edge) for edge in own] == [
        "writes-read  a → b  a wrote y, which b read",
        "writes-read  b → a  b wrote x, which a read",
    ]
    assert "a writes a key read by b" in graph(seen).to_svg()
    shown = figure(dict.fromkeys(seen.nodes, ""), own, None).others
    assert [(reason.text, reason.meaning) for reason in shown] == [
        (f"a {WRITES_READ.verb} b: a wrote y, which b read", WRITES_READ.meaning),
        (f"b {WRITES_READ.verb} a: b wrote x, which a read", WRITES_READ.meaning),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("format store let writes-read = ww empty ww as X", "'writes-read' is a base relation; define another name"),
        ("let Deletes = Writer format store empty ww as X", r"format store has a base set 'Deletes', which is defined at x:1; define another name"),
        ("format store empty writes-raed as X", "unknown relation 'writes-raed'; did you mean 'writes-read'?"),
        ("empty writes-read as X", "unknown relation 'writes-read'"),
    ],
)  # fmt: skip
def test_they_are_base_names_of_their_format_and_of_no_other(text, message):
    with pytest.raises(SpecError, match=message):
        read_spec(f'"X" {text}', "x")


def test_what_has_no_words_is_an_error_where_it_is_made():
    with pytest.raises(ValueError, match="the relation waits needs a meaning and a verb"):
        Term("waits", "store", "waits for a lock")
    with pytest.raises(ValueError, match="the set Waits needs a meaning and what is said inside"):
        Term("Waits", "store", "waits for a lock", inside="{} waits")
    with pytest.raises(ValueError, match="'ww' means something else already"):
        terms_of("wr", Term("ww", "store", "waits for a lock", verb="waits for"))
    with pytest.raises(FrameError, match="the vocabulary has no 'writes-read'"):
        FrameBuilder(("a",), ["writes-read"])
