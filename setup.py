"""What pyproject.toml cannot say.

The README as a package index shows it, which has no files beside it: a picture becomes its
description, a link to a page the page's name; a link to the web stays. Once the project has a home
on the web, links lead there.

And what makes `isolitmus` a package where it is installed. In the checkout, which is its folder,
that file would make one package of what the layers' linter takes for six; without it pytest takes
`model`, `cli`, even `__main__` for plugins of the top level, and warns.
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
    """Builds the modules, and that of the root."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            Path(self.build_lib, "isolitmus", "__init__.py").write_text(ROOT, encoding="utf-8")


readme = Path(__file__).with_name("README.md").read_text("utf-8")
setup(
    script_name="setup.py",  # else it is taken for a module of the package, which lies beside it
    cmdclass={"build_py": BuildWithRoot},
    long_description=LINK.sub(r"\1", PICTURE.sub(r"*\1*", readme)) + WHERE,
    long_description_content_type="text/markdown",
)
