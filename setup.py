"""Build steps that pyproject.toml cannot express.

They change the README for package indexes, which have no files beside it: a picture becomes its
description, and a link to a page becomes the page's name; links to the web stay.

They also write the `__init__.py` that makes `isolitmus` a package where it is installed. The
checkout is the package's folder. With that file there, the linter of layers would see one package
instead of six. Without it in the installation, pytest would take `model`, `cli` and even `__main__`
for plugins of the top level, and warn.
"""

import re
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

PICTURE = re.compile(r'<picture>.*?alt="([^"]*)".*?</picture>', re.DOTALL)
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)\s]+\)")
WHERE = "\nThe pages that are named here are in the folder `docs` of the installed package.\n"
ROOT = '"""A formal model checker for the isolation levels of lakehouse tables."""\n'


class BuildWithRoot(build_py):
    """Build command that adds the module of the root package."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            Path(self.build_lib, "isolitmus", "__init__.py").write_text(ROOT, encoding="utf-8")


readme = Path(__file__).with_name("README.md").read_text("utf-8")
setup(
    script_name="setup.py",  # else setuptools takes it for a module of the package
    cmdclass={"build_py": BuildWithRoot},
    long_description=LINK.sub(r"\1", PICTURE.sub(r"*\1*", readme)) + WHERE,
    long_description_content_type="text/markdown",
)
