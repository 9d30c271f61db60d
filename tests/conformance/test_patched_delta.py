"""The engine ``delta:FOLDER``: what it is called, which protocols it has, and folders that are no
use to it. No Spark: runs on the code of pull requests are recorded (``test_recorded_proposals``).
"""

import zipfile
from types import SimpleNamespace

import pytest

from isolitmus.conformance import class_folder
from isolitmus.conformance.class_folder import (
    BUILD,
    ClassFolder,
    PullRequest,
    delta_jars,
    read_class_folder,
)
from isolitmus.conformance.delta.session import PACKAGES, Session
from isolitmus.conformance.patched_delta import (
    LINKAGE_ERRORS,
    FlaggedSession,
    PatchedDelta,
    java_class_names,
    refuse_shipped,
)
from isolitmus.model.errors import EngineUnavailable, LitmusError, SpecError, UnknownName
from isolitmus.model.run import Run, TransactionRun
from isolitmus.specs import protocol
from isolitmus.specs.files.spec_reader import read_spec
from isolitmus.specs.registries import engine_named

RELEASE = PACKAGES["delta-spark"]
FLAG = "spark.databricks.delta.rowLevelConcurrency.enabled"
MANIFEST = f"""\
release = "{RELEASE}"
confs = ["{FLAG}"]
files = ["spark/src/main/scala/org/apache/spark/sql/delta/ConflictChecker.scala"]

[[pulls]]
number = 7359
repository = "delta-io/delta"
head = "0b8f4923428612bbd5b7467333fbaea67265dd4f"
date = "2026-08-12"
"""
OWN = """\
"Mine"
format delta
set "delta.isolationLevel = Serializable"
set "spark.databricks.delta.rowLevelConcurrency.enabled = true"
empty unseen as Refused
"""


@pytest.fixture
def folder(tmp_path):
    """folder(manifest, **classes): a folder of classes, as text."""

    def make(manifest=MANIFEST, **classes):
        (tmp_path / "pull").mkdir(exist_ok=True)
        (tmp_path / "pull" / "classes.toml").write_text(manifest, "utf-8")
        for name, content in classes.items():
            (tmp_path / "pull" / f"{name}.class").write_text(content)
        return str(tmp_path / "pull")

    return make


def spec_of(text):
    return read_spec(text, "mine")


# Names


def test_the_engine_is_named_by_its_folder_and_described_by_its_pull_requests(folder):
    path = folder()
    engine = engine_named(f"delta:{path}")
    assert (engine.name, engine.format, engine.at_once) == (f"delta:{path}", "delta", 3)
    assert engine.product == f"delta-spark {RELEASE} with pull 7359 at 0b8f4923"
    fork = PullRequest(9, "sezruby/delta", "08bb237b0334", "2026-07-21")
    several = ClassFolder("x", RELEASE, (*read_class_folder(path).pulls, fork), ())
    assert str(several) == (
        f"delta-spark {RELEASE} with pulls 7359 at 0b8f4923 and 9 of sezruby/delta at 08bb237b"
    )


def test_an_engine_without_builder_takes_no_argument():
    with pytest.raises(UnknownName, match=r"unknown engine 'model:x'; .*: delta:FOLDER"):
        engine_named("model:x")


def test_a_folder_that_is_not_there_is_a_sentence_of_the_command(call):
    assert call("run", "reorder", "--engine", "delta:nowhere") == (
        4,
        "",
        f"isolitmus: there is no folder 'nowhere'; build it from a pull request: {BUILD}\n",
    )


# Folders


def test_a_folder_without_manifest_is_refused(tmp_path):
    with pytest.raises(EngineUnavailable, match=r"has no classes\.toml.*; build the folder again"):
        read_class_folder(str(tmp_path))
    with pytest.raises(EngineUnavailable, match="there is no folder ''"):
        read_class_folder("")


def test_classes_of_another_release_are_refused(folder):
    path = folder(MANIFEST.replace(RELEASE, "4.3.0"))
    said = f"compiled against delta-spark 4.3.0, but {RELEASE} is used here; build the folder again"
    with pytest.raises(EngineUnavailable, match=said):
        engine_named(f"delta:{path}")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("release", "releases"), "classes.toml:1: the file has no key 'releases'"),
        ((f'release = "{RELEASE}"\n', ""), "classes.toml: the file needs 'release'"),
        (("number = 7359", "number = 'x'"), r"pulls\[1\]\.number is 'x'; expected"),
        (("[[pulls]]", "[[pull]]"), "no key 'pull'; did you mean 'pulls'"),
        (("confs = [", "confs = [1,"), "confs holds 1; expected strings"),
        (("release = ", "release = = "), "classes.toml:1:11: not valid TOML"),
    ],
)
def test_a_manifest_that_is_wrong_is_refused_with_its_place(folder, change, said):
    path = folder(MANIFEST.replace(*change))
    with pytest.raises(LitmusError, match=said):
        read_class_folder(path)


def test_a_manifest_without_pull_requests_is_refused(folder):
    with pytest.raises(LitmusError, match="pulls is empty; name the pull requests"):
        read_class_folder(folder(f'release = "{RELEASE}"\n'))


def test_a_folder_that_changes_nothing_is_refused(folder, tmp_path):
    jar = tmp_path / "delta.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("A.class", "released")
    none = read_class_folder(folder())
    with pytest.raises(EngineUnavailable, match="has no class, so it changes nothing; build it"):
        none.refuse_without_change([jar])
    same = read_class_folder(folder(A="released"))
    with pytest.raises(EngineUnavailable, match="has only classes as they were released, so it"):
        same.refuse_without_change([jar])
    read_class_folder(folder(A="changed")).refuse_without_change([jar])
    read_class_folder(folder(A="released", B="new")).refuse_without_change([jar])


def test_jars_that_were_never_downloaded_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(class_folder.Path, "home", lambda: tmp_path)
    with pytest.raises(
        EngineUnavailable, match=r"no jar of delta-spark .* start Spark with Delta once"
    ):
        delta_jars(RELEASE)
    jars = tmp_path / class_folder.IVY
    jars.mkdir(parents=True)
    names = [
        f"io.delta_delta-spark_4.2_2.13-{RELEASE}.jar",
        "io.delta_delta-spark_4.2_2.13-4.3.0.jar",
        "io.unitycatalog_client-0.6.0.jar",
    ]
    for name in names:
        (jars / name).touch()
    assert [jar.name for jar in delta_jars(RELEASE)] == [names[0], names[2]]


# Protocols


@pytest.fixture
def released(tmp_path, monkeypatch):
    """A jar of Delta whose conf classes have the key ``released.enabled`` as a constant."""
    monkeypatch.setattr(class_folder.Path, "home", lambda: tmp_path)
    jars = tmp_path / class_folder.IVY
    jars.mkdir(parents=True)
    with zipfile.ZipFile(jars / f"io.delta_delta-spark_4.2_2.13-{RELEASE}.jar", "w") as archive:
        archive.writestr(f"{class_folder.CONFS}Base.class", b"\x01\x00\x10released.enabled\x01")


def test_it_implements_what_delta_does_and_protocols_of_flags_that_it_has(folder):
    of_folder = read_class_folder(folder())
    engine = engine_named(f"delta:{folder()}")
    assert engine.implements("delta-serializable")
    assert not engine.implements("locking-read-committed")
    with pytest.raises(UnknownName, match="locking-read-committed has format locking; expected"):
        engine.refuse_unable("locking-read-committed")
    assert refuse_shipped(of_folder, "delta-write-serializable-repaired") == (
        "delta-write-serializable-repaired sets no isolation level; add"
        ' set "delta.isolationLevel = Serializable"'
    )
    assert refuse_shipped(of_folder, "of-a-file") == ""


def of_text(of_folder, text, monkeypatch):
    """What ``refuse_shipped`` says of a text, as if it were shipped."""
    spec = spec_of(text)
    monkeypatch.setattr(
        "isolitmus.conformance.patched_delta.shipped_files", lambda _: {spec.name: None}
    )
    monkeypatch.setattr("isolitmus.conformance.patched_delta.protocol", lambda _: spec)
    return refuse_shipped(of_folder, spec.name)


@pytest.mark.usefixtures("released")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("", ""), ""),
        (("rowLevelConcurrency.enabled", "released.enabled"), ""),
        (("spark.databricks.delta.rowLevelConcurrency", "spark.sql.ansi"), ""),
        (
            ("rowLevelConcurrency", "rowLevelConcurency"),
            "mine sets spark.databricks.delta.rowLevelConcurency.enabled, which neither Delta",
        ),
        (
            ('set "spark.databricks.delta.rowLevelConcurrency.enabled = true"\n', ""),
            "mine sets no conf, so the code of the pull request would not be used; add set",
        ),
        (
            ("= Serializable", "= Serialisable"),
            "mine sets an unknown isolation level 'Serialisable'",
        ),
        (("format delta\n", "format databricks\n"), "mine has format databricks; expected delta"),
    ],
)
def test_a_protocol_needs_a_level_and_flags_that_delta_or_the_folder_has(
    folder, monkeypatch, change, said
):
    reason = of_text(read_class_folder(folder()), OWN.replace(*change), monkeypatch)
    assert reason.startswith(said)
    assert bool(reason) == bool(said)


# Sessions


class Java:
    """Stand-in for the JVM: which confs are registered, and exceptions by class name."""

    def __init__(self, *registered):
        self.registered = registered

    def containsConfigKey(self, key):  # noqa: N802 - Spark's name
        return key in self.registered


def patched(folder, monkeypatch, *registered):
    """The engine of a folder in a session whose Spark only knows some confs."""
    monkeypatch.setattr(Session, "scala", lambda *_: Java(*registered))
    monkeypatch.setattr("isolitmus.conformance.patched_delta._refuse_values", lambda *_: None)
    session = Session(SimpleNamespace(), SimpleNamespace(), "1", folder)
    return PatchedDelta(read_class_folder(folder), "delta:x", session)


@pytest.fixture
def replayed(monkeypatch):
    """The sessions and protocols with which tests were replayed; ``outcome`` is what they do."""
    asked = SimpleNamespace(sessions=[], protocols=[], exception=None)

    def replay(_test, name, session):
        asked.sessions.append(session)
        asked.protocols.append(name)
        ended = TransactionRun("error:X", asked.exception)
        return Run("t", "delta", "1", name, 0, {"a": ended}, ())

    monkeypatch.setattr("isolitmus.conformance.patched_delta.replay", replay)
    return asked


def test_confs_are_those_of_the_protocol_for_each_test(folder, monkeypatch, replayed):
    delta = patched(folder(), monkeypatch, FLAG)
    done = delta.run(None, spec_of(OWN))
    assert (done.engine, done.protocol) == ("delta:x", "mine")
    delta.run(None, protocol("delta-write-serializable"))
    delta.run(None, spec_of(OWN))
    assert replayed.protocols == [
        "delta-serializable",
        "delta-write-serializable",
        "delta-serializable",
    ]
    flagged, plain, again = replayed.sessions
    assert (flagged.confs, plain.confs) == ({FLAG: "true"}, {})
    assert flagged is again
    assert flagged.kept is not plain.kept
    assert flagged.rows is plain.rows


def test_a_flagged_session_sets_its_confs_below_those_of_the_statement():
    seen = {}
    java = SimpleNamespace(
        newSession=lambda: SimpleNamespace(conf=SimpleNamespace(set=seen.__setitem__))
    )
    session = FlaggedSession(java, None, "1", None, confs={"spark.a": "1", "spark.b": "1"})
    session.fresh({"spark.b": "2"})
    assert seen == {"spark.a": "1", "spark.b": "2"}


def test_a_conf_that_nobody_registers_is_refused_after_the_start(folder, monkeypatch, replayed):
    with pytest.raises(SpecError, match=f"mine sets {FLAG}, which neither Delta {RELEASE} nor"):
        patched(folder(), monkeypatch).run(None, spec_of(OWN))
    assert replayed.sessions == []


def test_a_linkage_error_is_no_outcome(folder, monkeypatch, replayed):
    replayed.exception = "NoSuchMethodError"
    said = r"compiled against another release of Delta than .*\(NoSuchMethodError\); build it again"
    with pytest.raises(EngineUnavailable, match=said):
        patched(folder(), monkeypatch, FLAG).run(None, spec_of(OWN))


def test_causes_of_a_java_exception_are_named():
    def java(name, cause=None):
        return SimpleNamespace(
            getClass=lambda: SimpleNamespace(getName=lambda: name), getCause=lambda: cause
        )

    error = Exception()
    error.java_exception = java("java.util.X", java("java.lang.NoSuchFieldError"))
    assert java_class_names(error) == ["X", "NoSuchFieldError"]
    assert LINKAGE_ERRORS.intersection(java_class_names(error))
    assert java_class_names(None) == []
