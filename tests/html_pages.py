"""What holds of every page: well-formed, balanced, and nothing runs or is loaded."""

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from itertools import pairwise
from xml.etree import ElementTree as ET


class Outline(HTMLParser):
    """Checks that tags are balanced, and collects what one asks of a page."""

    VOID = frozenset(["meta", "br", "wbr"])

    def __init__(self, text):
        super().__init__()
        self.open, self.headings, self.attributes, self.tags = [], [], [], set()
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)
        if re.fullmatch(r"h\d", tag):
            self.headings.append(int(tag[1]))

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


class Styles(HTMLParser):
    """The policy of a page, and its styles: whole sheets and single attributes."""

    def __init__(self, text):
        super().__init__()
        self.policy, self.found, self.inside = "", [], False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        assert not {"src", "srcset", "onload", "onclick"} & given.keys()
        assert tag not in ("script", "link", "iframe", "object", "base", "form")
        assert given.get("href", "#").startswith("#")
        if given.get("http-equiv") == "Content-Security-Policy":
            assert not self.found, "a policy comes before what it is of"
            self.policy = given["content"]
        if "style" in given:
            assert "'unsafe-hashes'" in self.policy
            self.found.append(given["style"])
        self.inside = tag == "style"

    handle_startendtag = handle_starttag

    def handle_data(self, data):
        if self.inside:
            self.found.append(data)
            self.inside = False


def check_policy(text):
    """Assert that a page allows its own styles and nothing else."""
    page = Styles(text)
    parts = dict(part.split(" ", 1) for part in page.policy.split("; "))
    assert parts.pop("style-src").removeprefix("'unsafe-hashes' ")
    assert {*parts.values()} == {"'none'"} and "default-src" in parts
    assert page.found
    for style in page.found:
        digest = b64encode(sha256(style.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in page.policy


def check_form(text):
    """Assert that a page is well-formed, with headings in order and links that lead somewhere; return its outline."""
    outline = Outline(text)
    assert outline.headings[0] == 1
    assert outline.headings.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(outline.headings))
    assert ("lang", "en") in outline.attributes
    assert ("name", "viewport") in outline.attributes
    ET.fromstring(text.removeprefix("<!doctype html>\n"))
    assert text.count("<table") == text.count("<caption>")
    ids = [value for name, value in outline.attributes if name == "id"]
    assert len(ids) == len({*ids})
    links = {value for name, value in outline.attributes if name == "href"}
    assert {link.removeprefix("#") for link in links} <= {*ids}
    return outline
