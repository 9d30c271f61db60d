"""Phenomena of operations in time: the levels against the formulas of the paper, and against Adya's
levels where there is one version of each object.
"""

from itertools import combinations, permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isolitmus.checker.judge.completion import frames
from isolitmus.checker.judge.graph_semantics import admits
from isolitmus.checker.judge.history_verdict import check_history
from isolitmus.checker.search.separation import separate
from isolitmus.checker.strategies import histories
from isolitmus.checker.universes.abstract import variation_for, with_serial_time
from isolitmus.checker.universes.abstract_solver import search
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.history import History
from isolitmus.model.verdict import Allowed, Forbidden
from isolitmus.specs import level

# A run: (transaction, kind, key, version or versions seen) in the order in which it was; kinds r,
# w, p, c, a.


@st.composite
def runs(draw):
    """What transactions did one after another to the one version that there is of each object, as
    events with what each saw, the match bits of the one predicate, and the history in which that is
    written down.
    """
    twice = draw(st.booleans())
    todo = {}
    for t in range(1, draw(st.integers(1, 3)) + 1):
        kinds = st.sampled_from(["r", "w"] if twice else ["r", "w", "p"])
        steps = draw(st.lists(st.tuples(kinds, st.sampled_from("xy")), min_size=1, max_size=4))
        if not twice:
            firsts = {step: k for k, step in reversed([*enumerate(steps)])}
            steps = [s for k, s in enumerate(steps) if s[0] != "w" or firsts[s] == k]
        end = draw(st.sampled_from("ccca"))
        todo[t] = [*steps, (end, "")]
    turns = draw(st.permutations([t for t, steps in todo.items() for _ in steps]))
    matching = {f"{x}{t}": draw(st.booleans()) for x in "xy" for t in (0, *todo)}
    return carried_out({t: [*steps] for t, steps in todo.items()}, turns, matching)


def carried_out(todo, turns, matching):
    total = {(t, x): sum(s == ("w", x) for s in steps) for t, steps in todo.items() for x in "xy"}
    done, begun = dict.fromkeys(total, 0), set()
    there = {x: [(0, f"{x}0")] for x in "xy"}
    events, words = [], []
    written = [f"{x}0" for x in "xy"] + [f"{x}{t}" for (t, x), n in total.items() if n]
    for t in turns:
        kind, x = todo[t].pop(0)
        if t not in begun:
            words.append(f"b{t}")
            begun.add(t)
        own = [v for key in "xy" for by, v in there[key] if by == t]
        saw = {key: next((v for v in own[::-1] if v[0] == key), there[key][-1][1]) for key in "xy"}
        if kind == "w":
            done[t, x] += 1
            part = f":{done[t, x]}" if done[t, x] < total[t, x] else ""
            version = f"{x}{t}{part}"
            there[x].append((t, version))
            events.append((t, "w", x, version))
            words.append(f"w{t}({version})")
        elif kind == "r":
            events.append((t, "r", x, saw[x]))
            words.append(f"r{t}({saw[x]})")
        elif kind == "p":
            events.append((t, "p", "", saw))
            seen, others = ([v + "*" * matching[v] for v in some] for some in (saw.values(), [v for v in written if v not in saw.values()]))  # fmt: skip
            words.append(f"r{t}(P: {', '.join(seen)}{' | ' if others else ''}{', '.join(others)})")
        else:
            if kind == "a":
                there = {key: [(by, v) for by, v in row if by != t] for key, row in there.items()}
            events.append((t, kind, "", None))
            words.append(f"{kind}{t}")
    orders = [
        list(dict.fromkeys(v for t, v in reversed(row) if ":" not in v))[::-1]
        for row in there.values()
    ]
    words += [f"[{' < '.join(row)}]" for row in orders if len(row) > 1]
    return events, matching, History.parse(" ".join(words))


def found(run, shape):
    """Whether events come in the order of a formula, ``r1x w2x c2 r1x c1``; c1 and a1 stand for the
    end, e1 for either. A predicate is read, P, and written to, by what changes its matches; keys
    are different if they are called so.
    """
    events, matching, _ = run
    steps = shape.split()
    for chosen in combinations(range(len(events)), len(steps)):
        if fits([events[k] for k in chosen], steps, matching):
            return True
    return False


def fits(events, steps, matching):
    who, keys, seen = {}, {}, None
    for (t, kind, x, version), step in zip(events, steps, strict=True):
        wanted, number, key = step[0], step[1], step[2:]
        if who.setdefault(number, t) != t:
            return False
        if wanted == "e":
            if kind not in "ca":
                return False
        elif key == "P" and wanted == "r":
            if kind != "p":
                return False
            seen = seen or version
        elif key == "P":
            if kind != "w" or matching[version] == matching[seen[x]]:
                return False
        elif kind != wanted or keys.setdefault(key, x) != x:
            return False
    return len({*who.values()}) == len(who) and len({*keys.values()}) == len(keys)


FORMULAS = {
    "dirty write": ["w1x w2x e1"],
    "dirty read": ["w1x r2x e1"],
    "fuzzy read": ["r1x w2x e1"],
    "phantom": ["r1P w2P e1"],
    "lost update": ["r1x w2x w1x c1"],
    "aborted read": ["w1x r2x a1 c2", "w1x r2x c2 a1"],
    "fuzzy read again": ["r1x w2x c2 r1x c1"],
    "phantom again": ["r1P w2P c2 r1P c1"],
    "read skew": ["r1x w2x w2y c2 r1y"],
    "write skew": [
        f"{reads} {' '.join(rest)}"
        for reads in ("r1x r2y", "r2y r1x")
        for rest in permutations(["w1y", "w2x", "c1", "c2"])
        if rest.index("w1y") < rest.index("c1") and rest.index("w2x") < rest.index("c2")
    ],
}
"""Phenomena, by the formulas of the paper."""


@pytest.mark.slow
@settings(deadline=None)
@given(runs())
def test_each_level_forbids_what_the_formulas_of_its_phenomena_say(run):
    """Where the formulas have a read of an item, a read by predicate is dirty, too: see
    ``dirty``.
    """
    events, _, history = run
    frame = next(frames(history, operations=True))
    for name, forbidden in LEVELS.items():
        broken = [one for one in forbidden if occurs(run, one)]
        assert admits(frame, level(name)) == (not broken), (name, broken, events)


LEVELS = {
    "read-uncommitted-berenson": ["dirty write"],
    "read-committed-berenson": ["dirty write", "dirty read"],
    "cursor-stability-berenson": ["dirty write", "dirty read", "lost update"],
    "repeatable-read-berenson": ["dirty write", "dirty read", "fuzzy read"],
    "serializable-berenson": ["dirty write", "dirty read", "fuzzy read", "phantom"],
    "read-committed-ansi": ["aborted read"],
    "repeatable-read-ansi": ["aborted read", "fuzzy read again"],
    "anomaly-serializable": ["aborted read", "fuzzy read again", "phantom again"],
    "no-lost-update": ["lost update"],
    "no-read-skew": ["read skew"],
    "no-write-skew": ["write skew"],
}


def occurs(run, name):
    if any(found(run, shape) for shape in FORMULAS[name]):
        return True
    match name:
        case "dirty read" | "aborted read":
            return any(dirty(run, aborts=name == "aborted read"))
        case "read skew":  # "a degenerate form of read skew where x = y"
            return found(run, "r1x w2x w2x c2 r1x")
    return False


def dirty(run, *, aborts):
    """Reads by predicate between a write that they saw, or that changes what they match, and the
    end of its transaction.
    """
    events, matching, _ = run
    ends = {t: (k, kind) for k, (t, kind, _, _) in enumerate(events) if kind in "ca"}
    for (_, (t, w, x, version)), (j, (u, p, _, saw)) in combinations(enumerate(events), 2):
        if (w, p) != ("w", "p") or t == u:
            continue
        end, how = ends[t]
        if j < end and (saw[x] == version or matching[saw[x]] != matching[version]):
            yield not aborts or (how, ends[u][1]) == ("a", "c")


WHAT_LOCKS_GIVE = {
    "read-uncommitted-berenson": ["pl-1"],
    "read-committed-berenson": ["read-committed", "pl-2l"],
    "cursor-stability-berenson": ["pl-cs"],
    "repeatable-read-berenson": ["pl-2-99"],
    "serializable-berenson": ["strict-serializable", "pl-3"],
}
"""Adya, Liskov and O'Neil, ICDE 2000, section 5: what the levels of locks promise where there is
one version of each object.
"""


@pytest.mark.slow
@settings(deadline=None)
@given(runs())
def test_of_one_version_each_the_levels_of_locks_imply_adya_s(run):
    _, _, history = run
    for locks, implied in WHAT_LOCKS_GIVE.items():
        if isinstance(check_history(history, level(locks)), Allowed):
            for name in implied:
                assert isinstance(check_history(history, level(name)), Allowed), (locks, name)


@pytest.mark.slow
@given(histories(keys="xy", predicates=True))
def test_where_nobody_overlaps_is_no_phenomenon(history):
    """And who asks for no time says the same as before."""
    timed = with_serial_time(history)
    if timed is not None:
        for name in LEVELS:
            assert isinstance(check_history(timed, level(name)), Allowed), name
        for name in ("serializable", "pl-2l", "pl-1"):
            first, second = (check_history(one, level(name)) for one in (history, timed))
            assert str(first) == str(second)


@pytest.mark.parametrize("name", [*LEVELS])
def test_without_moments_of_operations_there_is_no_verdict(name):
    history = History.from_table({"T1": "w(x1)", "T2": "r(x1)", "schedule": "T1.start T2 T1.end"})
    assert str(check_history(history, level(name))) == "needs time"


def small():
    """The frames of all histories of two transactions with up to four operations on two keys, each
    read and written at most once, reads first, in every order in time in which what is read was
    written.
    """
    sides = [
        [*reads, *writes]
        for reads, writes in product(
            [p for n in range(3) for p in permutations(["rx", "ry"], n)],
            [p for n in range(3) for p in permutations(["wx", "wy"], n)],
        )
        if 0 < len(reads) + len(writes) < 4
    ]
    for first, second in product(sides, repeat=2):
        if len(first) + len(second) < 5:
            steps = {1: [*first, "c"], 2: [*second, "c"]}
            size = [t for t, side in steps.items() for _ in side]
            for turns in {*permutations_of(size)}:
                yield from written(steps, turns)


def permutations_of(turns):
    ones = turns.count(1)
    for places in combinations(range(len(turns)), ones):
        yield tuple(1 if k in places else 2 for k in range(len(turns)))


def written(steps, turns):
    """Every history with these steps in this order: each read of what was there before, or of what
    the other wrote by then.
    """
    rows = [[]]
    left, wrote = {t: [*side] for t, side in steps.items()}, set()
    for t in turns:
        step = left[t].pop(0)
        if len(left[t]) == len(steps[t]) - 1:
            rows = [[*row, f"b{t}"] for row in rows]
        if step == "c":
            rows = [[*row, f"c{t}"] for row in rows]
        elif step[0] == "w":
            wrote.add((3 - t, step[1]))
            rows = [[*row, f"w{t}({step[1]}{t})"] for row in rows]
        else:
            sources = [0, 3 - t] if (t, step[1]) in wrote else [0]
            rows = [[*row, f"r{t}({step[1]}{s})"] for row in rows for s in sources]
    yield from (" ".join(row) for row in rows)


TOLD = ["read-uncommitted-berenson", "cursor-stability-berenson", "repeatable-read-berenson", "no-lost-update", "no-read-skew", "no-write-skew"]  # fmt: skip


@pytest.mark.slow
def test_what_some_small_history_tells_apart_the_solver_tells_apart():
    """An enumeration of its own finds nothing where the solver finds nothing."""
    said = set()
    for text in {*small()}:
        frame = next(frames(History.parse(text), operations=True))
        said.add(tuple(admits(frame, level(name)) for name in TOLD))
    for (i, a), (j, b) in permutations(enumerate(TOLD), 2):
        apart = any(row[i] and not row[j] for row in said)
        history, _ = search(level(a), level(b), 2, variation_for(level(a), level(b), aborts=False))
        assert (history is not None) == apart, (a, b)
        if history is not None:
            assert isinstance(check_history(history, level(a)), Allowed)
            assert isinstance(check_history(history, level(b)), Forbidden)


def test_orders_in_time_are_not_listed():
    with pytest.raises(IsolitmusError, match=r"no-lost-update looks at time, .* leave out --by"):
        separate(level("no-lost-update"), level("pl-1"), by="exhaustive")
