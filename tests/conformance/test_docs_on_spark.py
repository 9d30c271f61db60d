"""The blocks of README and docs that need Spark, run in the shared session and compared (``pages``)."""

import pytest
from pages import check_console, check_python, of_kind

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("session")]


@pytest.mark.parametrize("block", of_kind("console", spark=True))
def test_what_a_page_shows_is_what_one_sees(block, tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    check_console(block, tmp_path, call)


@pytest.mark.parametrize("block", of_kind("python", spark=True))
def test_what_a_page_says_in_python_runs(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_python(block, tmp_path)
