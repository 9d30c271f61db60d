"""A Python as executors on other machines may have it: what workers need is there, the package is
not.
"""

import re
import venv
from importlib import metadata
from pathlib import Path

import pytest

from isolitmus.pipeline.spark import NEEDED


def with_all_it_wants(names):
    """What is installed of these distributions, and of those that they want."""
    left, found = list(names), set()
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            wants = [want for want in metadata.requires(name) or () if "extra ==" not in want]
            left += [one for want in wants if is_installed(one := re.match(r"[\w.-]+", want)[0])]
    return found


def is_installed(name):
    return any(metadata.distributions(name=name))


@pytest.fixture(scope="session")
def bare_python():
    """bare_python(folder): make a Python there that has PySpark and what workers need, and nothing
    else; where its packages are.
    """

    def make(folder):
        venv.create(folder, symlinks=True)
        (own,) = folder.glob("lib/*/site-packages")
        for name in with_all_it_wants([*NEEDED, "pyspark"]):
            for file in metadata.files(name):
                top = Path(file).parts[0]
                if top not in {"..", "__pycache__"} and not (own / top).exists():
                    (own / top).symlink_to(metadata.distribution(name).locate_file(top))
        return own

    return make
