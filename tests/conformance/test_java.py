"""The Java that is found, and the one sentence where there is none that will do."""

import subprocess
import sys

import pytest

from isolitmus.conformance.delta.jvm import archive_option, class_archive
from isolitmus.conformance.java import Java, find_java
from isolitmus.model.errors import EngineUnavailable

JAVA_11 = 'openjdk version "11.0.2" 2019-01-15'
JAVA_17 = 'openjdk version "17.0.15" 2025-04-15'
JAVA_21 = 'openjdk version "21" 2023-09-19'


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """machine(path=…, home=…): what the java on PATH and the one of JAVA_HOME say of themselves."""

    def build(path=None, home=None):
        monkeypatch.setenv("PATH", str(tmp_path / "path" / "bin"))
        monkeypatch.delenv("JAVA_HOME", raising=False)
        if home is not None:
            monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
        for place, says in (("path", path), ("home", home)):
            if says is not None:
                java = tmp_path / place / "bin" / "java"
                java.parent.mkdir(parents=True)
                java.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
                java.chmod(0o755)
        return tmp_path

    return build


def test_java_from_path(machine):
    machine(path=JAVA_17)
    assert find_java() == Java(None, 17)


def test_java_home_comes_first(machine):
    folder = machine(path=JAVA_17, home=JAVA_21)
    assert find_java() == Java(folder / "home", 21)


def test_path_serves_where_java_home_does_not(machine):
    machine(path=JAVA_17, home=JAVA_11)
    java = find_java()
    assert java == Java(None, 17)
    assert "JAVA_HOME" not in java.environment()


@pytest.mark.parametrize(
    ("found", "says"),
    [
        ({}, "this machine has no Java"),
        ({"path": JAVA_11}, "PATH has Java 11"),
        ({"path": 'java version "1.8.0_292"'}, "PATH has Java 8"),
        (
            {"path": JAVA_11, "home": 'openjdk version "25-ea"'},
            "JAVA_HOME has Java 25 and PATH has Java 11",
        ),
        ({"path": "Unable to locate a Java Runtime."}, "PATH has a Java that does not start"),
    ],
)
def test_one_sentence_says_what_is_missing_and_how_to_get_it(machine, found, says):
    machine(**found)
    with pytest.raises(EngineUnavailable) as caught:
        find_java()
    sentence = str(caught.value)
    assert says in sentence
    assert "needs Java 17 or 21" in sentence
    assert "openjdk-17" in sentence
    assert "\n" not in sentence


def test_java_home_that_is_not_there(machine, monkeypatch, tmp_path):
    machine(path=JAVA_17)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    assert find_java() == Java(None, 17)


def test_an_archive_of_classes_belongs_to_one_java(machine):
    pytest.importorskip("pyspark", reason="the extra spark is not installed")
    folder = machine(path=JAVA_17, home=JAVA_21)
    other, mine = class_archive(Java(None, 17)), class_archive(Java(folder / "home", 21))
    assert other != mine
    assert mine == class_archive(Java(folder / "home", 21))
    assert mine.is_relative_to(sys.prefix)
    (folder / "home" / "bin" / "java").write_text("another release")
    assert mine != class_archive(Java(folder / "home", 21))


@pytest.mark.slow
def test_java_starts_without_an_archive_that_is_none(tmp_path):
    try:
        java = find_java()
    except EngineUnavailable as error:
        pytest.skip(str(error))
    assert archive_option(tmp_path / "a.jsa") == ""
    (tmp_path / "a.jsa").write_text("none")
    option = archive_option(tmp_path / "a.jsa")
    assert option == f"-XX:SharedArchiveFile={tmp_path / 'a.jsa'}"
    subprocess.run([java.command, option, "-version"], capture_output=True, check=True)
