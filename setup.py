"""What pyproject.toml cannot say: the README as a package index shows it, which has no files beside it.

A picture becomes its description, a link to a page the page's name; a link to the web stays. Once the project has a home
on the web, links lead there.
"""

import re
from pathlib import Path

from setuptools import setup

PICTURE = re.compile(r'<picture>.*?alt="([^"]*)".*?</picture>', re.DOTALL)
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)\s]+\)")
WHERE = "\nThe pages that are named here are in the folder `docs` of the source distribution.\n"

readme = Path(__file__).with_name("README.md").read_text("utf-8")
setup(
    script_name="setup.py",  # else it is taken for a module of the package, which lies beside it
    long_description=LINK.sub(r"\1", PICTURE.sub(r"*\1*", readme)) + WHERE,
    long_description_content_type="text/markdown",
)
