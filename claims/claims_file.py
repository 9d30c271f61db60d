"""Reader of claims files (TOML): statements of documents, their editions, and the evidence.

A file is one part: a title, the default ``engines`` of its litmus tests, and a table for each
claim. The recorded verdict of a claim must be the one that its recorded answers give.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, cast

from isolitmus.claims.claim import (
    EDITIONS,
    VERDICTS,
    AskedCells,
    AskedInterleavings,
    AskedObservation,
    AskedRun,
    AskedSeparation,
    AskedSweep,
    Claim,
    ClaimEvidence,
    FigureStatement,
    claim_order,
)
from isolitmus.model.errors import LitmusError, MissingPart, UnknownName, near
from isolitmus.model.litmus import Litmus
from isolitmus.specs.disk.input_files import read_text, shipped_files
from isolitmus.specs.files import catalogue, spec_catalogue
from isolitmus.specs.files.expectations import Expected, read_expectation
from isolitmus.specs.files.toml_reader import Source, show_value
from isolitmus.specs.registries import ENGINES, format_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from isolitmus.claims.claim import ClaimQuestion, ClaimVerdict, FigureStatements
    from isolitmus.model.litmus import Expectation
    from isolitmus.specs.files.toml_reader import Node

NAME = re.compile(r"[DQN][1-9]\d?[a-z]?")
KEYS = (
    "says", "where", "editions", "apart", "when", "reading", "verdict", "remark", "unasked",
    "evidence",
)  # fmt: skip
ABOUT = ("when", "met", "claimed", "found", "figures", "engines", "amended", "words")
ASKED: Mapping[str, tuple[str, ...]] = {
    "run": ("under",),
    "matrix": ("under", "parked", "winners", "layouts"),
    "separate": ("universe", "transactions", "unexplained", "unbounded"),
    "sweep": ("transactions",),
    "interleavings": ("under",),
    "observe": (),
}
"""Kinds of evidence by their identifying key, each with the keys that only it has."""
EXAMPLES = ("'cases > 0'", '{ outcome = { a = "committed" } }')
"""Examples of ``claimed`` for messages: figures, and the expectation of a run."""
COUNTED = ("interleavings", "wrong", "timeless", "plausible", "deadlocks")
"""Figures of the interleavings of any test."""
UNRUN: tuple[ClaimVerdict, ...] = ("not semantic", "undecided")
"""Verdicts that need no evidence."""
PAGES = "databricks"
"""Folder of the protocols written from a page, which cannot be run."""


@cache
def claims() -> Mapping[str, Claim]:
    """Return the claims by name: those of the Databricks page, of the article, and additions.

    Examples
    --------
    >>> claims()["D46"].verdict
    'confirmed'
    """
    found = [one for path in shipped_files("claims").values() for one in read_claims_file(path)]
    named = {one.name: one for one in sorted(found, key=lambda one: claim_order(one.name))}
    assert len(named) == len(found)
    return named


def claim(number: str) -> Claim:
    """Return the claim of this name; UnknownName, with a suggestion, if there is none."""
    if number not in claims():
        raise UnknownName(f"unknown claim '{number}'{near(number, claims())}")
    return claims()[number]


def read_claims_file(path: Path) -> tuple[Claim, ...]:
    """Return the claims in a file; LitmusError describes a problem."""
    return read_claims(read_text(path, LitmusError), path.name, path)


def read_claims(text: str, label: str, path: Path | None = None) -> tuple[Claim, ...]:
    """Return the claims in a text; LitmusError describes a problem.

    Examples
    --------
    >>> (claim,) = read_claims('''
    ... title = "A part"
    ... [D46]
    ... says     = "At Serializable such transactions fail."
    ... where    = "the levels"
    ... editions = ["PT", "JA", "AR"]
    ... when     = "an INSERT commits while a DELETE of its row runs"
    ... reading  = "the DELETE aborts"
    ... verdict  = "confirmed"
    ... [[D46.evidence]]
    ... run     = "reorder"
    ... under   = "delta-serializable"
    ... claimed = { outcome = { delete = "aborted" } }
    ... ''', "part.toml")
    >>> str(claim.evidence[0].question), claim.evidence[0].engines
    ('run reorder --protocol delta-serializable', ('model',))
    """
    document = Source(label, text).node()
    title = document.get("title", str)
    engines = _engines(document) or ("model",)
    found = []
    for name, entry in document.items():
        if name in ("title", "engines"):
            continue
        if not NAME.fullmatch(name):
            document.refuse(
                f"{name} is not a claim; write D, Q or N and a number, such as [D46]", name
            )
        found.append(_claim(name, entry, title, engines, path))
    if not found:
        document.refuse("the file has no claim; write [D1] and what it says")
    return tuple(sorted(found, key=lambda one: claim_order(one.name)))


def _claim(name: str, entry: Node, part: str, engines: tuple[str, ...], path: Path | None) -> Claim:
    """Return a claim of a claims file; refuse a verdict that contradicts its evidence."""
    entry.table()
    entry.keys(KEYS)
    editions = _editions(entry, entry.strings("editions"), "editions")
    if not editions:
        entry.refuse(f"{entry} needs 'editions' (of {', '.join(EDITIONS)})")
    apart = entry.inner("apart", {})
    _editions(entry, apart.value, "apart")
    verdict = cast("ClaimVerdict", entry.get("verdict", str, "undecided"))
    if verdict not in VERDICTS:
        entry.refuse(f"{entry}.verdict is '{verdict}'{near(verdict, VERDICTS)}")
    remark = entry.get("remark", str, "")
    if verdict == "corrected" and not remark:
        entry.refuse(f"{entry} is corrected, and needs 'remark' (a string): the correction")
    given = entry.get("evidence", list, [])
    evidence: tuple[ClaimEvidence, ...] = ()
    unasked = entry.get("unasked", str, "")
    missing = None
    try:
        evidence = tuple(
            piece
            for k, each in enumerate(given, 1)
            for piece in _evidence(entry.at(f"evidence[{k}]", each), engines)
        )
    except MissingPart as problem:  # its evidence cannot be read, so nothing is known of the claim
        verdict, unasked, missing = "undecided", f"its evidence was not read: {problem}", problem
    found = Claim(
        name,
        entry.get("says", str),
        entry.get("where", str),
        editions,
        entry.get("reading", str),
        verdict,
        remark,
        unasked,
        {edition: apart.get(edition, str) for edition in apart.value},
        evidence,
        part,
        path,
        entry.get("when", str, ""),
    )
    if missing is not None:
        return found
    if evidence and not found.when:
        entry.refuse(
            f"{entry} has evidence, and needs 'when' (a string): the condition under which the"
            " statement says something, which each run has to meet"
        )
    _refuse_disputed(entry, found)
    recorded = found.derived((piece, piece.agrees) for piece in evidence)
    if evidence and recorded != verdict:
        entry.refuse(
            f"{entry}.verdict is '{verdict}', and its evidence says '{recorded}':"
            f" {_weighed(evidence)}"
        )
    if not evidence and verdict not in UNRUN:
        entry.refuse(
            f"{entry}.verdict is '{verdict}', and it has no evidence; expected '{UNRUN[1]}'"
        )
    return found


def _refuse_disputed(entry: Node, claim: Claim) -> None:
    """Refuse a case whose evidence is both for and against the claim."""
    if not claim.when:
        return
    cases: dict[tuple[str, bool, bool], list[ClaimEvidence]] = {}
    for piece in claim.evidence:
        cases.setdefault(piece.case, []).append(piece)
    for pieces in cases.values():
        if len({piece.agrees for piece in pieces}) > 1:
            entry.refuse(
                f"{entry} has evidence on both sides of one case ('{pieces[0].when or claim.when}')"
                f": {_weighed(pieces)}; say in 'when' of the evidence what differs"
            )


def _weighed(evidence: Iterable[ClaimEvidence]) -> str:
    """Return which pieces of evidence support a claim, and which refute it."""
    sides = {True: "for it", False: "against it"}
    return "; ".join(
        f"{sides[agrees]} {', '.join(of)}"
        for agrees in sides
        if (of := [str(e.question) for e in evidence if e.agrees is agrees])
    )


def _editions(entry: Node, names: Iterable[str], key: str) -> tuple[str, ...]:
    """Return the names as a tuple; refuse an unknown edition."""
    found = tuple(names)
    for edition in found:
        if edition not in EDITIONS:
            entry.refuse(f"{entry}.{key} names no edition: '{edition}'{near(edition, EDITIONS)}")
    return found


def _engines(given: Node) -> tuple[str, ...]:
    """Return the engines that ``engines`` names; none if it is missing."""
    names = given.strings("engines")
    for name in names:
        if name not in ENGINES:
            meant = near(name, ENGINES.names())
            given.refuse(f"{given.under('engines')} names no engine: '{name}'{meant}")
    return names


# Evidence


def _evidence(given: Node, engines: tuple[str, ...]) -> Iterator[ClaimEvidence]:
    """Yield a piece of evidence, or one for each protocol if it names several."""
    kinds = [kind for kind in ASKED if kind in given.table()]
    if len(kinds) != 1:
        given.refuse(
            f"{given} has {' and '.join(kinds) or 'no question'}; one of {', '.join(ASKED)} is"
            " wanted"
        )
    (kind,) = kinds
    given.keys((kind, *ASKED[kind], *ABOUT))
    words, when = given.get("words", str, ""), given.get("when", str, "")
    amended = given.get("amended", bool, False)
    for question in _questions(kind, given):
        of_page = _of_page(question)
        asked = _engines(given) or (engines if kind in ("run", "matrix") else ("model",))
        if "claimed" not in given:
            given.refuse(f"{given} needs 'claimed': what comes out if the claim is true")
        for key in ("claimed", "found", "met"):
            if key in given and given.value[key] in ([], {}, ""):
                given.refuse(
                    f"{given}.{key} is empty, so every run would agree with it;"
                    f" {EXAMPLES[isinstance(question, AskedRun)]} would say something"
                )
        claimed, found, met = (
            _answer(given.at(key), question) if key in given else None
            for key in ("claimed", "found", "met")
        )
        assert claimed is not None
        figures = _counted(given.at("figures", given.get("figures", list, [])), question)
        on = ("model",) if of_page else asked
        yield ClaimEvidence(
            question, on, claimed, found, of_page, amended, words, figures, when, met
        )


def _of_page(question: ClaimQuestion) -> bool:
    known = shipped_files("protocols")
    named = {str(value).partition("@")[0] for value in question}
    return any(name in named and path.parent.name == PAGES for name, path in known.items())


def _answer(given: Node, question: ClaimQuestion) -> Expectation | FigureStatements:
    """Return the expected answer: an expectation for a run, statements on figures for the rest."""
    if isinstance(question, AskedRun):
        test = _test(question.litmus)
        return read_expectation(
            given, Expected(test.transactions, (test.tables,), test.path, test.postconditions)
        )
    return _counted(given, question)


def _counted(given: Node, question: ClaimQuestion) -> FigureStatements:
    """Return the statements on figures; refuse an unknown figure or one that is always true."""
    texts = given.value if isinstance(given.value, list) else [given.value]
    counts = []
    for text in texts:
        count = FigureStatement.parse(text) if isinstance(text, str) else None
        if count is None:
            given.refuse(
                f"{given} holds {show_value(text)}; expected 'NAME = VALUE', or with <, >, <=, >="
            )
        known = _figures(question)
        if known and count.name not in known:
            given.refuse(
                f"{given}: {question} gives no figure '{count.name}'{near(count.name, known)}"
            )
        if count.is_empty:
            given.refuse(
                f"{given}: '{text}' is true of any figures, so every run would agree with it"
            )
        counts.append(count)
    return tuple(counts)


def _figures(question: ClaimQuestion) -> tuple[str, ...]:
    """Return the names of the figures in an answer; none if they are not known here."""
    match question:
        case AskedCells() | AskedSeparation():
            return question.figures
        case AskedInterleavings(name):
            kinds = ("wrong", "breaks", "serial")
            named = (f"{kind}.{each}" for kind in kinds for each in _test(name).postconditions)
            return (*COUNTED, *named)
        case AskedSweep(scopes):
            return tuple(
                f"{name}.{figure}" if len(scopes) > 1 else figure
                for name in scopes
                for figure in _swept(name)
            )
    return ()


@cache
def _swept(name: str) -> tuple[str, ...]:
    """Return the names of the figures of a sweep."""
    scope = catalogue.scope(name)
    usual = format_named(scope.format)
    of_each = ("admitted", "aborted", "unexplained", *(scope.levels or usual.levels))
    return (
        "candidates",
        "failed",
        *(f"{name}.{each}" for name in scope.protocols or usual.protocols for each in of_each),
    )


def _protocols(given: Node) -> tuple[str, ...]:
    """Return the protocols that ``under`` names, or that its patterns match."""
    value = given.value.get("under")
    texts = given.strings("under") if isinstance(value, list) else (given.get("under", str),)
    if not texts:
        given.refuse(f"{given}.under is empty, so nothing would be asked; name a protocol")
    known = shipped_files("protocols")
    found: dict[str, None] = {}
    for text in texts:
        problem = f"{given}.under names no protocol: '{text}'"
        found |= dict.fromkeys(given.meant(problem, text, known, spec_catalogue.protocol_names))
    return tuple(found)


def _interleavings(given: Node) -> Iterator[AskedInterleavings]:
    """Yield the question on all interleavings of the steps of a litmus test, once per protocol."""
    found, *_ = asked = list(_run(given, "interleavings"))
    form = format_named(_test(found.litmus).format)
    if form.interleave is None:
        given.refuse(
            f"{given}.interleavings names '{found.litmus}' of format {form.name}, whose"
            " transactions have no steps to be interleaved"
        )
    return (AskedInterleavings(*each) for each in asked)


def _test(name: str) -> Litmus:
    test = catalogue.litmus(name)
    assert isinstance(test, Litmus)
    return test


def _run(given: Node, key: str = "run") -> Iterator[AskedRun]:
    """Yield the question on a run of a litmus test on tables, once per protocol."""
    name = given.get(key, str)
    known = shipped_files("litmus")
    if name not in known:
        given.refuse(f"{given}.{key} names no litmus test: '{name}'{near(name, known)}")
    if not isinstance(catalogue.litmus(name), Litmus):
        given.refuse(
            f"{given}.{key} names '{name}', which is an abstract history; a test on tables is"
            " wanted"
        )
    return (AskedRun(name, protocol) for protocol in _protocols(given))


def _matrix(given: Node) -> Iterator[AskedCells]:
    """Yield the question on the selected cells of a conflict matrix, once per protocol."""
    name = given.get("matrix", str)
    known = shipped_files("matrices")
    if name not in known:
        given.refuse(f"{given}.matrix names no matrix: '{name}'{near(name, known)}")
    matrix = _matrix_of(name)
    sides = {"parked": matrix.statements, "winners": matrix.statements, "layouts": matrix.layouts}
    chosen = {key: given.strings(key) for key in sides}
    for key, names in chosen.items():
        for each in names:
            if each not in sides[key]:
                given.refuse(
                    f"{given}.{key}: matrix {name} has no '{each}'{near(each, sides[key])}"
                )
        if not names:
            given.refuse(f"{given} needs '{key}' (a list of names)")
    return (
        AskedCells(name, chosen["parked"], chosen["winners"], chosen["layouts"], protocol)
        for protocol in _protocols(given)
    )


_matrix_of = cache(catalogue.matrix)


def _separate(given: Node) -> Iterator[AskedSeparation]:
    """Yield the question whether one of two specs admits a history that the other forbids."""
    specs = given.named(
        "separate",
        "level or protocol",
        [*shipped_files("levels"), *shipped_files("protocols")],
        spec_catalogue.protocol_names,
    )
    if len(specs) != 2:
        given.refuse(f"{given}.separate names {len(specs)} specs; expected two")
    universe = given.get("universe", str, "") or None
    if universe not in (None, "abstract", *shipped_files("scopes")):
        assert universe is not None
        given.refuse(
            f"{given}.universe is"
            f" '{universe}'{near(universe, ('abstract', *shipped_files('scopes')))}"
        )
    size = given.get("transactions", int, 0) or None
    if size is not None and size < 1:
        given.refuse(f"{given}.transactions is {size}; expected an integer of at least 1")
    yield AskedSeparation(
        *specs,
        universe,
        size,
        *(given.get(key, bool, False) for key in ("unexplained", "unbounded")),
    )


def _sweep(given: Node) -> Iterator[AskedSweep]:
    """Yield the question on the number of candidates of the named scopes that protocols admit."""
    names = given.strings("sweep")
    if not names:
        given.refuse(f"{given}.sweep is empty, so nothing would be asked; name a scope")
    for name in names:
        if name not in shipped_files("scopes"):
            given.refuse(
                f"{given}.sweep names no scope: '{name}'{near(name, shipped_files('scopes'))}"
            )
    yield AskedSweep(names, given.get("transactions", int))


def _observe(given: Node) -> Iterator[AskedObservation]:
    yield AskedObservation(given.get("observe", str))


def _questions(kind: str, given: Node) -> Iterator[ClaimQuestion]:
    """Yield the questions of a piece of evidence, by its kind."""
    readers: Mapping[str, Callable[[Node], Iterator[ClaimQuestion]]] = {
        "run": _run,
        "matrix": _matrix,
        "separate": _separate,
        "sweep": _sweep,
        "interleavings": _interleavings,
        "observe": _observe,
    }
    return readers[kind](given)
