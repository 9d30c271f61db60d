"""The blocks of README and docs that need Spark, run in the shared session and compared
(``pages``).
"""

import pytest
from pages import check_console, of_kind

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("session")]


@pytest.mark.parametrize("block", of_kind("console", spark=True))
def test_what_a_page_shows_is_what_one_sees(block, tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    check_console(block, tmp_path, call)


def test_every_block_of_python_is_run_by_a_command_of_its_page():
    assert of_kind("python", spark=True) == []
