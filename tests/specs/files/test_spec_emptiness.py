"""What is said to be empty by its text is empty in every graph; slips of precedence are found."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolitmus.checker.execution.commit_loop import execute, execution_frame
from isolitmus.checker.judge.graph_semantics import fold_over
from isolitmus.checker.universes.abstract import Variation
from isolitmus.checker.universes.abstract_enumeration import history_batches
from isolitmus.checker.universes.tables import candidates
from isolitmus.model.errors import SpecWarning
from isolitmus.model.spec import Binary, Bracket, Fold, Name, Spec, Unary
from isolitmus.specs import litmus, scope, spec
from isolitmus.specs.disk.input_files import shipped_files
from isolitmus.specs.files.catalogue import litmus_names
from isolitmus.specs.files.spec_emptiness import find_emptiness, find_empty_parts
from isolitmus.specs.files.spec_reader import read_spec

SLIP = "empty [Writer] ; rw ; [Writer] & log^-1 as late"


def parts(body):
    return find_empty_parts(read_spec(f'"Mine" {body}', "mine"))


def test_an_intersection_that_binds_before_the_sequence_is_found_with_what_was_meant():
    (late,) = parts(SLIP)
    assert str(late) == (
        "mine:1:14: axiom late cannot fail: it is always empty, because in '[Writer] & log^-1' the"
        " one relates nodes only to themselves, the other none to itself; '&' binds before ';', did"
        " you mean '([Writer] ; rw ; [Writer]) & log^-1'?"
    )
    assert parts("empty ([Writer] ; rw ; [Writer]) & log^-1 as late") == ()


@pytest.mark.parametrize(
    ("relation", "why"),
    [
        ("log^-1 & [Writer] ; rw", "relates nodes only to themselves"),
        ("unseen & log^-1", "the one follows log, the other its inverse"),
        ("(log ; unseen)+ & [Writer]", "relates nodes only to themselves"),
        ("[Writer] ; [Reader] ; rw", "no node can end '[Writer]' and begin '[Reader]'"),
        ("([Blind] ; wr) & ([~Blind] ; wr)", "no node in common at one end"),
        ("[Blind & ~Blind] ; wr", "no node can be in 'Blind & ~Blind'"),
        (r"wr \ (rw | wr)", "the second contains the first"),
        (r"[Blind] ; wr \ wr", "the second contains the first"),
        (r"[Blind] \ [Blind | Large]", "the second contains the first"),
        (r"(wr \ ww) & ww", "the one excludes the other"),
        (r"([Blind] ; (wr \ ww))^-1 & ww^-1", "the one excludes the other"),
        ("[Write] ; ww", "no node can end '[Write]' and begin 'ww'"),
        ("rf ; rf", "no node can end 'rf' and begin 'rf'"),
        ("(wr & wr^-1 & [Writer])+ ; rw", "relates nodes only to themselves"),
    ],
)
def test_what_makes_a_relation_empty_is_said(relation, why):
    (part,) = parts(f"empty {relation} as mine")
    assert why in part.words


@pytest.mark.parametrize(
    "relation",
    [
        "(wr & [Writer])? ; rw",
        "wr & wr^-1",
        "log ; log^-1",
        "so & log^-1",
        "adds-meets-reads & [Writer]",
        r"wr \ ([Blind] ; wr)",
        r"(wr \ ww) & ww^-1",
        r"[Writer | Reader] \ [Writer]",
        "[~Writer] ; wr",
        "wr | wr & [Writer]",
        "(log | log^-1)+ & [Writer]",
    ],
)
def test_of_what_may_have_pairs_nothing_is_said(relation):
    assert parts(f"empty {relation} as mine") == ()


def test_a_file_with_such_an_axiom_is_read_with_a_warning(tmp_path, call):
    path = tmp_path / "mine.cat"
    slip = SLIP.replace("log", "ww")
    path.write_text(f'"Mine"\nlet x = wr | ww | rw\n{slip}\nacyclic x as order\n')
    with pytest.warns(SpecWarning, match=r"mine.cat:3:7: axiom late cannot fail"):
        spec(path)
    status, out, err = call("check", "history-write-skew", "--level", str(path))
    assert err.count("axiom late cannot fail: it is always empty") == 1
    assert (status, "order" in out) == (1, True)


def test_silences_labels_and_relations_are_looked_at_and_sets_may_be_empty_on_purpose():
    found = parts(
        r"let None = Blind \ Blind let both = wr & [Writer] empty both as none"
        " acyclic wr as order silent [None] ; rw as quiet show None as nobody"
    )
    assert [(part.what, part.name) for part in found] == [
        ("let", "both"), ("axiom", "none"), ("silence", "quiet"), ("show", "nobody"),
    ]  # fmt: skip


def test_a_spec_with_many_sets_is_analysed_soundly():
    """Those that are not told apart may be anything, and so may their complements."""
    names = sorted(name for name in read_many().needs if name[0].isupper())
    assert len(names) > 10
    assert find_empty_parts(read_many()) == ()


def read_many():
    sets = "Blind NoData Empty Vectors Meta Protocol Marked Large Backfill Default Merging Deleting"
    chained = " ; ".join(f"[~{name}]" for name in sets.split())
    return read_spec(f'"Many" empty {chained} ; wr ; [Deleting] as mine', "many")


@pytest.mark.parametrize("folder", ["levels", "protocols"])
def test_no_axiom_that_ships_is_empty_by_its_text(folder):
    said = [part for name in shipped_files(folder) for part in find_empty_parts(spec(name))]
    assert not said


RELATIONS = ("so", "wr", "ww", "rw")
SETS = ("Writer", "Reader", "Aborted", "Blind", "Vectors")


def expressions(relations, sets):
    """Expressions over these names, of which many are empty."""
    members = st.recursive(
        st.sampled_from([Name(name) for name in sets]),
        lambda some: st.one_of(
            st.builds(Binary, st.sampled_from(["|", "&", "\\"]), some, some),
            st.builds(Unary, st.just("~"), some),
        ),
        max_leaves=3,
    )
    base = st.one_of(
        st.sampled_from([Name(name) for name in relations]), st.builds(Bracket, members)
    )
    return st.recursive(
        base,
        lambda some: st.one_of(
            st.builds(Binary, st.sampled_from(["|", "&", "&", ";", ";", "\\", "\\"]), some, some),
            st.builds(Unary, st.sampled_from(["+", "*", "?", "^-1", "^-1"]), some),
        ),
        max_leaves=6,
    )


def holds_on(frame, expr):
    """Assert that the expression is empty on the frame if the analysis says so."""
    if find_emptiness(expr, {}) is not None:
        relation = fold_over(frame, Spec("s", "S", "", "", (), {})).relation(expr)
        assert not any(relation.rows), expr
        return True
    return False


@cache
def table_frames():
    """Frames of every litmus test over tables, with reads as nodes, and of pairs of statements."""
    frames = []
    for name in litmus_names():
        test = litmus(name)
        if getattr(test, "format", None) == "delta":
            frames.append(execution_frame(execute(test)))
    for name in ("rows", "altered", "orders"):
        kept = [found for found in candidates(scope(name), 2, lambda _: True) if found]
        frames += [found.frame for found in kept[::7]]
    return frames


@pytest.mark.slow
@given(st.data())
def test_what_is_said_to_be_empty_is_empty_on_every_table(data):
    known = table_frames()
    names = set.intersection(*({*frame.relations} for frame in known))
    sets = set.intersection(*({*frame.sets} for frame in known))
    expr = data.draw(expressions(sorted(names), sorted(sets)))
    empty = [holds_on(frame, expr) for frame in known]
    assert len(set(empty)) == 1


OPERATIONS = ("rf", "po", "in", "rival", "fr", "loc", "wr-read")
NODE_SETS = ("Writer", "Reader", "Aborted", "ItemRead", "PredicateRead", "Write")


@cache
def histories():
    """Batches of all abstract histories of two transactions over two keys."""
    names = frozenset((*RELATIONS, *OPERATIONS, *NODE_SETS))
    asked = Spec("all", "All", "", "", (), {}, needs=names)
    vary = Variation(sessions=True, aborts=True)
    batches = [*history_batches(2, vary, asked, keys=2)]
    return [(batch, batch.frames.of(asked, batch.orders)) for batch in batches]


@pytest.mark.slow
@given(expressions((*RELATIONS, *OPERATIONS), NODE_SETS))
def test_what_is_said_to_be_empty_is_empty_on_every_history(expr):
    said = find_emptiness(expr, {}) is not None
    assert said in (True, False)
    for batch, frame in histories() if said else ():
        pairs = [pair for row in Fold(frame, {}).relation(expr) for pair in row.values()]
        among = batch.product.bits(batch.histories.booleans.disj(pairs))
        assert not (among.reshape(batch.valid.size, -1) & batch.valid[:, None]).any(), expr
