"""Build steps that pyproject.toml cannot express.

They change the README for package indexes, which have no files beside it: a picture becomes its
description, and a link to a page becomes the page's name; links to the web stay.
"""

import re
from pathlib import Path

from setuptools import setup

PICTURE = re.compile(r'<picture>.*?alt="([^"]*)".*?</picture>', re.DOTALL)
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)\s]+\)")
WHERE = "\nThe pages that are named here are in the folder `docs` of the installed package.\n"


readme = Path(__file__).with_name("README.md").read_text("utf-8")
setup(
    script_name="setup.py",  # else setuptools takes it for a module of the package
    long_description=LINK.sub(r"\1", PICTURE.sub(r"*\1*", readme)) + WHERE,
    long_description_content_type="text/markdown",
)
