"""Claims as text, and the page of the documents.

The page shows the claims one by one, the editions side by side, and the cells of the conflict
matrices.
"""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from isolitmus.checker.execution.conflict_matrix import predict_case
from isolitmus.checker.render.page_parts import render_template
from isolitmus.claims.claim import (
    EDITIONS,
    VERDICTS,
    AskedCells,
    AskedObservation,
    AskedRun,
    AskedSweep,
    cited_claims,
)
from isolitmus.claims.claims_file import claims
from isolitmus.model.litmus import Expectation, expectation_lines
from isolitmus.model.matrix import LETTERS, NOT_MODELLED, MatrixPlace
from isolitmus.model.run import TOOK_EFFECT
from isolitmus.model.sql.values import show_row
from isolitmus.specs import litmus, protocol
from isolitmus.specs.disk.input_files import shipped_files
from isolitmus.specs.files.catalogue_titles import CatalogueKind, Description
from isolitmus.specs.files.spec_catalogue import protocols as shipped_protocols

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from isolitmus.claims.claim import Claim, ClaimEvidence, ClaimQuestion, FigureStatements
    from isolitmus.model.matrix import Matrix
    from isolitmus.model.sql.values import Rows

PAGES = {"PT": "newest", "JA": "middle", "AR": "oldest"}
"""Editions of Databricks' page, by the abbreviation in the names of their protocols."""
READ_IN_PART = [name for name, edition in EDITIONS.items() if edition.in_part]
"""English states of the page, of which some parts were read.

The matrices of the last two, and so their protocols, are those of the newest edition before them.
"""
CHANGES = ("delete-row", "update-row", "merge")
SIDES: Mapping[str, tuple[str, ...]] = {
    "INSERT": ("insert",),
    "UPDATE, DELETE, MERGE": CHANGES,
    "OPTIMIZE": ("optimize",),
    "UPDATE, DELETE of the new row": ("update-partition", "delete-partition"),
}
"""Statements in the matrix of pairs that represent each statement of the page."""
LEVELS = ("serializable", "write-serializable")


class MatrixCell(NamedTuple):
    """Cell of the page's matrices."""

    claim: str
    """Number of its claim."""
    sides: tuple[str, str]
    """Its two statements, keys of SIDES."""
    by_row: bool
    """True if it is in the matrix with row-level concurrency."""
    layouts: tuple[str, ...]
    """Layouts that represent its tables."""
    levels: tuple[str, ...] = LEVELS
    """Its levels."""


_ROWS = ("unpartitioned with vectors",)
_FILES = ("unpartitioned", "same partition")
_VECTORS = ("same partition", "same partition with vectors")
INSERT, CHANGE, OPTIMIZE, SAME_ROW = SIDES
CELLS = (
    MatrixCell("D7", (INSERT, INSERT), True, _ROWS),
    MatrixCell("D8", (CHANGE, INSERT), True, _ROWS, LEVELS[1:]),
    MatrixCell("D9", (CHANGE, INSERT), True, _ROWS, LEVELS[:1]),
    MatrixCell("D9", (SAME_ROW, INSERT), True, _ROWS, LEVELS[:1]),
    MatrixCell("D10", (CHANGE, CHANGE), True, _ROWS),
    MatrixCell("D11", (OPTIMIZE, INSERT), True, _ROWS),
    MatrixCell("D12", (OPTIMIZE, CHANGE), True, _ROWS),
    MatrixCell("D13", (OPTIMIZE, OPTIMIZE), True, _ROWS),
    MatrixCell("D14", (INSERT, INSERT), False, _FILES),
    MatrixCell("D15", (CHANGE, INSERT), False, _FILES),
    MatrixCell("D16", (CHANGE, CHANGE), False, _FILES),
    MatrixCell("D17", (OPTIMIZE, INSERT), False, _FILES),
    MatrixCell("D18", (OPTIMIZE, CHANGE), False, _VECTORS),
    MatrixCell("D19", (OPTIMIZE, OPTIMIZE), False, _VECTORS),
)
"""Cells of both matrices."""


def documents_pages(claims: Sequence[Claim], cells: str) -> Mapping[str, str]:
    """Return the pages of the claims in Markdown: an index, one page a part, editions, matrices.

    Parameters
    ----------
    claims : sequence of Claim
        All claims.
    cells : str
        Table of the matrices (`cell_table`).

    Returns
    -------
    mapping of str to str
        Text of each page by its path below ``docs/``.
    """
    citing: dict[str, list[str]] = {}
    for test in shipped_files("litmus"):
        for number in cited_claims(litmus(test).source):
            citing.setdefault(number, []).append(test)
    parts = {part: list(of) for part, of in groupby(_in_parts(claims), key=lambda c: c.part)}

    def also(claim: Claim) -> str:
        shown = {e.question.litmus for e in claim.evidence if isinstance(e.question, AskedRun)}
        return ", ".join(f"`{name}`" for name in citing.get(claim.name, ()) if name not in shown)

    folder = "results/documents"
    index = render_template(
        "documents_index.j2",
        "isolitmus.claims",
        editions=EDITIONS,
        verdicts=VERDICTS,
        counts=Counter(claim.verdict for claim in claims),
        parts=parts,
        slug=_slug,
    )
    differing = [
        c
        for c in claims
        if c.apart
        or {*PAGES} & {*c.editions} not in ({*PAGES}, set())
        or {*c.editions} <= {*READ_IN_PART}
    ]
    editions = render_template(
        "documents_editions.j2",
        "isolitmus.claims",
        pages=[*READ_IN_PART, *PAGES],
        in_part=READ_IN_PART,
        differing=differing,
    )
    pages = {
        "documents.md": index,
        f"{folder}/editions.md": editions,
        f"{folder}/matrices.md": render_template(
            "documents_matrices.j2", "isolitmus.claims", cells=cells
        ),
    }
    for part, of in parts.items():
        pages[f"{folder}/{_slug(part)}.md"] = render_template(
            "documents_part.j2",
            "isolitmus.claims",
            part=part,
            claims=of,
            shown=_shown,
            also=also,
            answered=_answered,
        )
    return pages


def _slug(part: str) -> str:
    """Return a file name for a part of the claims."""
    return "-".join(re.findall(r"\w+", part.lower()))


def _in_parts(claims: Sequence[Claim]) -> list[Claim]:
    """Return the claims grouped by part; parts are in the order of their first claim."""
    order = list(dict.fromkeys(claim.part for claim in claims))
    return sorted(claims, key=lambda claim: order.index(claim.part))


# Evidence

WHO: Mapping[str, str] = {
    "model": "the model",
    "delta": "open-source Delta 4.4.0",
    "derby": "Apache Derby",
    "postgres": "PostgreSQL",
}
"""Display names of engines."""


def _answered(claim: Claim) -> str:
    """Return in brackets the engines that answered a claim's questions; empty if none was asked."""
    engines = {name for piece in claim.evidence if not piece.of_page for name in piece.engines}
    found = [words for name, words in WHO.items() if name in engines]
    found += ["the page's protocols"] * any(piece.of_page for piece in claim.evidence)
    return f" ({', '.join(found)})" if found else ""


def _shown(claim: Claim) -> Iterator[str]:
    """Yield a line for each question; those that differ only in their protocol share one."""

    def alike(piece: ClaimEvidence) -> object:
        question = piece.question
        apart = (
            question._replace(protocol="")
            if isinstance(question, AskedRun | AskedCells)
            else question
        )
        of = (piece.claimed, piece.found, piece.when, piece.words, piece.of_page, piece.engines)
        return apart, *of

    left = list(claim.evidence)
    while left:
        first = left[0]
        group = [piece for piece in left if alike(piece) == alike(first)]
        left = [piece for piece in left if piece not in group]
        under = [
            piece.question.protocol
            for piece in group
            if isinstance(piece.question, AskedRun | AskedCells)
        ]
        yield _line(first, [f"`{name}`" for name in _short(under)])


def _short(protocols: list[str]) -> list[str]:
    """Return the names of protocols; a pattern replaces Databricks protocols that match it."""
    shipped_ones = [name for name in shipped_protocols() if name.startswith("databricks-")]
    wanted = [
        "databricks-*",
        "databricks-*-rows",
        "databricks-serializable-*",
        "databricks-write-serializable-*",
    ]
    for pattern in wanted:
        some = fnmatch.filter(shipped_ones, pattern)
        if {*some} <= {*protocols}:
            protocols = [pattern, *(name for name in protocols if name not in some)]
    return protocols


def _line(piece: ClaimEvidence, protocols: list[str]) -> str:
    """Return the line of one piece of evidence; disagreement with the claim is in bold."""
    who = "the page's protocols" if piece.of_page else " and ".join(piece.engines)
    what = _asked(piece.question, ", ".join(protocols))
    came = _came(piece.recorded, piece.question)
    words = f" {piece.words}" if piece.words else ""
    if piece.when:
        what = f"If {piece.when}: {what}"
    if piece.agrees:
        return f"{what} ({who}): {came}.{words}"
    return f"{what} ({who}): **{came}**; claimed: {_came(piece.claimed, piece.question)}.{words}"


def _asked(question: ClaimQuestion, under: str) -> str:
    """Return the question in words."""
    match question:
        case AskedRun(name):
            return f"`{name}` under {under}"
        case AskedCells(_, parked, winners, layouts):
            sides = " with ".join(
                ", ".join(f"`{name}`" for name in side) for side in (parked, winners)
            )
            return f"{sides}, {', '.join(layouts)}, under {under}"
        case AskedObservation(name):
            return f"observed in `{name}`"
        case _:
            return f"`{question}`"


def _came(answer: Expectation | FigureStatements, question: ClaimQuestion) -> str:
    """Return the outcome in words."""
    if isinstance(answer, Expectation):
        return "; ".join(_of_run(answer))
    figures = {count.name: count.value for count in answer if count.sign == "="}
    return ", ".join(filter(None, (_figure(str(count), figures, question) for count in answer)))


FIGURES = {
    "committed = cases": "all commit",
    "conflicts = cases": "all conflict",
    "conflicts > 0": "some conflict",
    "found = no": "no counterexample",
    "found = yes": "a counterexample",
}
"""Words for questions that produce numbers."""


def _figure(text: str, figures: Mapping[str, object], question: ClaimQuestion) -> str:
    """Return a figure in words; empty if it is a number of candidates."""
    if text in FIGURES:
        return FIGURES[text]
    name, _, value = text.partition(" = ")
    candidates = figures.get(f"{name.rpartition('.')[0].rpartition('.')[0]}.candidates".lstrip("."))
    if isinstance(question, AskedSweep) and name.endswith(".aborted") and type(candidates) is int:
        return (
            f"`{name.removesuffix('.aborted')}` aborts {value} of {candidates}"
            f" ({100 * int(value) / candidates:.0f} %)"
        )
    if name.endswith("candidates") and value.isdecimal():
        return ""
    if name == "conflicts" and value:
        return "one conflicts" if value == "1" else f"{value} conflict"
    return f"`{text}`"


def _of_run(expect: Expectation) -> Iterator[str]:
    """Yield the parts of a run's expectation in words."""
    for name, options in expect.outcome.items():
        yield f"{name} {' or '.join(map(_ending, options))}"
    for name, entry in expect.log.items():
        yield f"the log records for {name} " + ", ".join(
            f"{key} = {value}" for key, value in entry.items()
        )
    for name, rows in expect.reads.items():
        yield f"{name} reads {_rows(rows)}"
    for table, rows in expect.tables.items():
        yield f"{table} ends with {_rows(rows)}"
    if expect.emitted:
        for name, rows in expect.emitted.items():
            yield f"{name} scans {' '.join(map(show_row, rows))}"
    if expect.waits is not None:
        waits = [f"{name} waits for {', '.join(who)}" for name, who in expect.waits.items()]
        yield "; ".join(waits) or "no transaction waits"
    if expect.breaks is not None:
        yield f"breaks {', '.join(expect.breaks)}" if expect.breaks else "breaks no postcondition"
    for version, tables in expect.versions.items():
        for table, rows in tables.items():
            yield f"{_rows(rows)} in version {version} of {table}"
    if expect.serial is not None:
        orders = " or ".join(order.replace(" ", " → ") for order in expect.serial)
        yield (
            f"the tables equal those of the serial order {orders}"
            if orders
            else "no serial order produces its tables"
        )
    for verb, names in (("allowed", expect.holds), ("forbidden", expect.fails)):
        if names:
            yield f"{verb} by {', '.join(names)}"


def _ending(outcome: str) -> str:
    """Return an outcome as a verb phrase."""
    match outcome:
        case "committed":
            return "commits"
        case "aborted":
            return "aborts"
        case "no-op":
            return "is a no-op"
        case _:
            verb = "fails" if outcome.startswith("error:") else "aborts"
            return f"{verb} with {outcome.removeprefix('error:')}"


def _rows(rows: Rows) -> str:
    return " ".join(map(show_row, rows)) or "no rows"


# The matrices


def cell_table(
    matrix: Matrix, seen: Mapping[tuple[str, MatrixPlace], str], claims: Mapping[str, Claim]
) -> str:
    """Return the cells of both matrices as a table.

    It shows the text of each edition, the model's prediction, and the outcome observed on real
    Delta.

    Parameters
    ----------
    matrix : Matrix
        Matrix of pairs.
    seen : mapping
        Observed outcomes by protocol and place.
    claims : sequence of Claim
        The claims.
    """
    signs = {sign: _sign(outcome) for outcome, sign in LETTERS.items()} | {"e": "e"}
    head = ["claim", "statements", "at", *PAGES, "model", "Delta"]
    rows = [head, ["---"] * len(head)]
    for cell in CELLS:
        apart = claims[cell.claim].apart or {}
        for level in cell.levels:
            places = _places(cell)
            suffix = "-rows" if cell.by_row else ""
            rows.append(
                [
                    cell.claim,
                    " with ".join(cell.sides) + (", by row" if cell.by_row else ", by file"),
                    level,
                    *(
                        _predicted(matrix, places, f"databricks-{level}-{age}{suffix}")
                        + (
                            f" ({apart[edition].rstrip('.')})"
                            if edition in apart and "(" not in apart[edition]
                            else ""
                        )
                        for edition, age in PAGES.items()
                    ),
                    _predicted(matrix, places, f"delta-{level}"),
                    _tally([signs[seen[f"delta-{level}", place]] for place in places]),
                ]
            )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _places(cell: MatrixCell) -> list[MatrixPlace]:
    a, b = (SIDES[side] for side in cell.sides)
    pairs = [(x, y) for x in a for y in b] + [(y, x) for x in a for y in b]
    return [MatrixPlace(*pair, layout) for layout in cell.layouts for pair in dict.fromkeys(pairs)]


def _predicted(matrix: Matrix, places: list[MatrixPlace], under: str) -> str:
    of = protocol(under)
    return _tally([_sign(predict_case(matrix, place, of).predicted) for place in places])


def _sign(outcome: str) -> str:
    """Return the sign of an outcome: ``x`` for a conflict, ``?`` for silence."""
    if outcome in ("unknown", "silent"):
        return "?"
    if outcome == NOT_MODELLED or outcome.startswith("error:"):
        return "e"
    return "." if outcome in TOOK_EFFECT else "x"


def _tally(signs: list[str]) -> str:
    """Return the number of aborts among the signs of cells, and the number of silent cells."""
    silent = signs.count("?")
    if silent == len(signs):
        return "silent"
    counted = f"{signs.count('x')} of {len(signs)}"
    return counted + (f", {silent} silent" if silent else "")


def claim_lines(claim: Claim) -> Iterator[str]:
    """Yield the lines of a claim's full entry.

    >>> from isolitmus.claims.claims_file import claim
    >>> for line in list(claim_lines(claim("D62")))[:5]:
    ...     print(line)
    D62 (PT, JA, AR: partitions: the example): confirmed
      They do not conflict if the table is partitioned by date.
      Condition: the table is partitioned by date.
      Meaning: both commit in either order.
      supports: run dates-partitioned-delete-last --protocol delta-serializable (model, delta)
    """
    yield f"{claim.name} ({', '.join(claim.editions)}: {claim.where}): {claim.verdict}"
    yield f"  {claim.says}"
    for edition, words in (claim.apart or {}).items():
        yield f"  {edition}: {words}"
    if claim.when:
        yield f"  Condition: {claim.when}."
    yield f"  Meaning: {claim.reading}."
    if claim.remark:
        yield f"  {claim.remark}"
    if claim.unasked:
        yield f"  Not tested: {claim.unasked}"
    for piece in claim.evidence:
        yield from (f"  {line}" for line in evidence_words(piece))


def evidence_words(piece: ClaimEvidence) -> Iterator[str]:
    """Yield the question of a piece of evidence, and its answer."""
    of = "protocol of the page" if piece.of_page else ", ".join(piece.engines)
    side = "supports" if piece.agrees else "contradicts"
    mended = ", for the claim as it must be meant" if piece.amended else ""
    yield f"{side}: {piece.question} ({of}){mended}"
    if piece.when:
        yield f"  if {piece.when}"
    if piece.met is not None:
        yield f"  the condition is met: {answer_words(piece.met)}"
    if piece.words:
        yield f"  {piece.words}"
    if not piece.agrees:
        yield f"  claimed: {answer_words(piece.claimed)}"
        yield f"  found: {answer_words(piece.recorded)}"
        return
    yield f"  {answer_words(piece.recorded)}"


def answer_words(answer: Expectation | FigureStatements) -> str:
    """Return an answer on one line."""
    if isinstance(answer, Expectation):
        return "; ".join(" ".join(line.split()) for line in expectation_lines(answer))
    return "; ".join(map(str, answer))


def _describe(name: str) -> Description:
    known = claims()[name]
    _, _, *lines = claim_lines(known)
    text = "\n".join((f"Verdict: {known.verdict}", *(line[2:] for line in lines)))
    source = f"{', '.join(known.editions)}: {known.where}"
    return Description("claim", name, known.says, source, text)


CLAIMS = CatalogueKind(
    "claims",
    "sentences of documents, with verdicts",
    claims,
    lambda name: claims()[name].says,
    _describe,
)
"""Kind of the catalogue."""
