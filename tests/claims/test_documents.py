"""docs/documents.md and docs/results/documents are what the claims give.

After a change of the claims, or of litmus tests that cite them: ISOLITMUS_UPDATE=1 pytest
tests/claims/test_documents.py.
"""

import difflib
import os
import re
from pathlib import Path

import pytest

from isolitmus.claims.claim import AskedCells
from isolitmus.claims.claim_evaluation import answer_from_figures, cell_places, count_cells
from isolitmus.claims.claim_words import CELLS, cell_table, documents_pages
from isolitmus.claims.claims_file import claims
from isolitmus.model.matrix import LETTERS
from isolitmus.specs.files.catalogue import matrix
from isolitmus.specs.files.evidence_files import MatrixEvidence
from isolitmus.specs.files.spec_catalogue import protocols

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PARTS = DOCS / "results" / "documents"
MATRICES = PARTS / "matrices.md"
TABLE = re.compile(r"^\| claim \| statements \|.*?(?=\n\n|\n\Z|\Z)", re.DOTALL | re.MULTILINE)


def seen():
    path = ROOT / "conformance" / "evidence" / "pairs.toml"
    return MatrixEvidence.read(path, matrix("pairs"), protocols()).letters


def cells():
    return cell_table(matrix("pairs"), seen(), claims())


def compared(pages):
    for path, new in pages.items():
        page = DOCS / path
        text = page.read_text("utf-8") if page.exists() else ""
        if os.environ.get("ISOLITMUS_UPDATE"):
            page.write_text(new, "utf-8")
            text = new
        lines = text.splitlines(), new.splitlines()
        diff = [*difflib.unified_diff(*lines, path, "the claims", lineterm="", n=0)]
        assert not diff, "\n".join([*diff, "", "ISOLITMUS_UPDATE=1 writes it anew."])
    assert {*PARTS.iterdir()} == {DOCS / path for path in pages} - {DOCS / "documents.md"}


@pytest.mark.slow
def test_the_pages_have_the_claims_as_they_are():
    """The table of the matrices taken from the page."""
    (table,) = TABLE.findall(MATRICES.read_text("utf-8")) if MATRICES.exists() else ("",)
    compared(documents_pages([*claims().values()], table))


@pytest.mark.slow
def test_the_pages_have_the_matrices_as_they_are():
    compared(documents_pages([*claims().values()], cells()))


def test_a_line_is_of_those_who_were_asked():
    page = "".join(path.read_text("utf-8") for path in PARTS.iterdir())
    for under, answer in (("locking", "(model): audit"), ("derby", "(model and derby): **audit")):
        assert f"`scan-of-a-pair` under `{under}-read-committed` {answer} reads (120)" in page


@pytest.mark.slow
def test_every_cell_of_a_matrix_is_there():
    assert {cell.claim for cell in CELLS} == {f"D{number}" for number in range(7, 20)}
    assert set(seen().values()) <= {*LETTERS.values(), "e", " "}


@pytest.mark.slow
def test_what_claims_say_of_cells_was_seen_on_delta():
    """No replay is needed: every case of the matrix has been carried out."""
    outcomes = {letter: outcome for outcome, letter in LETTERS.items()} | {"e": "error:"}
    pieces = [
        piece
        for claim in claims().values()
        for piece in claim.evidence
        if isinstance(piece.question, AskedCells) and "delta" in piece.engines
    ]
    letters = seen()
    for piece in pieces:
        under, places = piece.question.protocol, cell_places(piece.question)
        figures = count_cells(piece.question, [outcomes[letters[under, p]] for p in places])
        answer = answer_from_figures(piece, "delta", figures)
        assert (answer.unlike, answer.agrees) == ((), piece.agrees)
    assert len(pieces) > 10
