"""Names of anomalies, from the shape of the cycle or the flaw that shows them.

G0, G1a to G1c, G2 and G-single are Adya's (Weak consistency, MIT 1999; Adya, Liskov, O'Neil, ICDE
2000); lost update, read skew and write skew are Berenson's (A critique of ANSI SQL isolation
levels, SIGMOD 1995); fractured reads are Bailis' (Scalable atomic visibility with RAMP
transactions, SIGMOD 2014); long forks are Cerone's (A framework for transactional consistency
models with atomic visibility, CONCUR 2015); the session guarantees are Terry's (PDIS 1994).
"""

from __future__ import annotations

from itertools import islice, pairwise, product
from typing import TYPE_CHECKING

from isolitmus.model.verdict import Forbidden

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isolitmus.model.frame import Frame
    from isolitmus.model.reason import Edge
    from isolitmus.model.verdict import Verdict, Violation

FLAWS = {
    "thin-air-read": "thin-air read",
    "aborted-read": "aborted read (G1a)",
    "intermediate-read": "intermediate read (G1b)",
    "future-read": "future read",
    "lost-own-write": "own write missed",
    "dirty-write": "dirty write (G0)",
    "lost-append": "lost append",
    "duplicate-element": "duplicate element",
    "incompatible-order": "incompatible orders",
}
"""Names of flaws by kind. Recorded lists have all of them, registers the first five, written
histories the first and those about own writes.
"""
GUARANTEES = {
    ("so",): "read your writes broken",
    ("wr", "so"): "monotonic reads broken",
    ("so", "wr"): "monotonic writes broken",
    ("wr", "so", "wr"): "writes follow reads broken",
}
"""Broken session guarantees, by the path on which the reader sees the writer that it misses."""
MISSES = (
    "lost update",
    "non-repeatable read",
    "phantom read",
    "non-monotonic read",
    "fractured read",
    "causality violation",
    "read skew (G-single)",
)
"""Anomalies with one anti-dependency, by the path from its target back to the reader."""
WITHOUT_A_MISS = (
    ({"ww"}, "dirty write (G0)"),
    ({"wr", "ww"}, "circular information flow (G1c)"),
    ({"so", "wr", "ww"}, "circular information flow with sessions (G1c)"),
)


IN_TIME = (
    "circular information flow in real time (G1c)",
    "stale read in real time (G-single)",
    "anti-dependency cycle in real time (G2)",
)
"""Anomalies with real time in the cycle, by number of anti-dependencies."""
DISAGREEMENT = "readers that disagree on an order"
"""Name for several reads of older versions than those that their readers see."""
DEPENDENCIES = ("so", "wr", "ww", "rw")
LONGEST_CYCLE = 4
MOST_CYCLES = 200
ITEMS = {
    "version overwritten", "overwritten", "brought back", "recorded missed", "recorded missed all",
}  # fmt: skip
"""Kinds of reasons of anti-dependencies of an item, not of a predicate."""


def anomaly_names(verdict: Verdict) -> tuple[str, ...]:
    """Return the names of the anomalies in a verdict, each once; unnamed violations are left out.

    Examples
    --------
    >>> from isolitmus.model.verdict import Violation
    >>> thin, log = Violation("thin-air read", "flaw", ()), Violation("log-order", "acyclic", ())
    >>> anomaly_names(Forbidden((thin, log)))
    ('thin-air read',)
    """
    if not isinstance(verdict, Forbidden):
        return ()
    given = {*FLAWS.values(), *GUARANTEES.values(), *MISSES, DISAGREEMENT}
    found = (
        violation.axiom if violation.axiom in given else _named(violation)
        for violation in verdict.violations
    )
    return tuple(dict.fromkeys(name for name in found if name))


def _named(violation: Violation) -> str:
    # A violation of an emptiness axiom is a path, not a cycle.
    if violation.kind == "empty":
        return FLAWS["aborted-read"] if violation.axiom == "no-aborted-read" else ""
    return anomaly_of(violation.cycle)


def anomaly_of(cycle: Sequence[Edge]) -> str:
    """Return the name of a cycle of so, wr, ww, rw and rt edges; "" if it has other relations.

    Examples
    --------
    >>> from isolitmus.model.reason import Edge
    >>> from isolitmus.model.reason import Reason
    >>> edge = lambda a, b, kind, of="x": Edge(a, b, kind, Reason.of("recorded missed", key=of))
    >>> anomaly_of([edge("a", "b", "rw"), edge("b", "a", "rw", "y")])
    'write skew (G2-item)'
    >>> anomaly_of([edge("a", "b", "rw"), edge("b", "a", "ww")])
    'lost update'
    >>> anomaly_of([edge("a", "b", kind) for kind in ("wr", "rw", "wr", "rw")])
    'long fork'
    """
    kinds = [edge.kind for edge in cycle]
    if "intermediate" in kinds:
        return FLAWS["intermediate-read"]
    if not kinds or not {*kinds} <= {*DEPENDENCIES, "rt"}:
        return ""
    if "rt" in kinds:
        return IN_TIME[min(kinds.count("rw"), 2)]
    misses = [place for place, kind in enumerate(kinds) if kind == "rw"]
    if not misses:
        return next(name for shape, name in WITHOUT_A_MISS if {*kinds} <= shape)
    if len(misses) == 1:
        miss, *way = [*cycle[misses[0] :], *cycle[: misses[0]]]
        return missed_anomaly(miss, way)
    if any(kinds[place - 1] == "rw" for place in misses):
        of = "G2-item" if all(cycle[place].reason.kind in ITEMS for place in misses) else "G2"
        return f"{'write skew' if kinds == ['rw', 'rw'] else 'anti-dependency cycle'} ({of})"
    if len(misses) == 2 and {*kinds} <= {"so", "wr", "rw"}:
        return "long fork"
    return "anti-dependency cycle (G-nonadjacent)"


def cycle_anomalies(frame: Frame) -> tuple[str, ...]:
    """Return the names of the anomalies in all cycles of up to four dependencies of a frame.

    A verdict names the cycle that it found; a run may have others.

    Examples
    --------
    >>> from isolitmus.checker.execution.run_result import run
    >>> cycle_anomalies(run("lost-update-by-client", "delta-serializable").frame)
    ('lost update', 'non-repeatable read')
    """
    import networkx as nx

    dependencies = nx.MultiDiGraph()
    for edge in frame.edges():
        if edge.kind in DEPENDENCIES:
            dependencies.add_edge(edge.source, edge.target, edge=edge)
    names = set()
    cycles = nx.simple_cycles(nx.DiGraph(dependencies), length_bound=LONGEST_CYCLE)
    for cycle in islice(cycles, MOST_CYCLES):
        steps = pairwise([*cycle, cycle[0]])
        parallel = [
            [data["edge"] for data in dependencies.get_edge_data(*step).values()] for step in steps
        ]
        names |= {anomaly_of(edges) for edges in product(*parallel)}
    return tuple(sorted(names - {""}))


def missed_anomaly(miss: Edge, way: Sequence[Edge], *, ordered: bool = False) -> str:
    """Return the name of a cycle with one anti-dependency.

    Parameters
    ----------
    miss : Edge
        The anti-dependency (rw), from the reader to the writer that it misses.
    way : sequence of Edge
        Path of other relations from that writer back to the reader.
    ordered : bool
        Whether the level uses only the order of reads in a transaction.
    """
    kinds = tuple(edge.kind for edge in way)
    same = _object(miss) is not None and {_object(miss)} == {_object(edge) for edge in way}
    lost, repeated, phantom, monotonic, fractured, causality, skew = MISSES
    if kinds == ("ww",):
        return lost if same else skew
    if kinds == ("wr",):
        if same:
            return repeated if miss.reason.kind in ITEMS else phantom
        return monotonic if ordered else fractured
    if {*kinds} <= {"so", "wr"}:
        return GUARANTEES.get(kinds, causality)
    return skew


def _object(edge: Edge) -> object:
    """Return the object that was read or overwritten, if the reason names it; else None."""
    nouns = edge.reason.nouns
    version = nouns.get("version", nouns.get("item"))
    return nouns.get("key", getattr(version, "object", getattr(version, "id", None)))
