"""The engine ``delta:FOLDER``: Delta with classes of pull requests in front of its jars.

It runs litmus tests as the engine ``delta`` does, in sessions with the confs of the protocol, such
as the flag of a pull request. It implements the protocols of ``delta``, with every flag as the pull
request leaves it, and protocols whose confs Delta or the folder has.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from isolitmus.conformance.class_folder import (
    BUILD,
    delta_jars,
    isolation_level,
    read_class_folder,
)
from isolitmus.conformance.delta.engine import DELTA, replay
from isolitmus.conformance.delta.session import Session, open_session
from isolitmus.conformance.delta.tables import PROTOCOLS
from isolitmus.model.engine import Engine, RunsTests
from isolitmus.model.errors import (
    EngineFailed,
    EngineUnavailable,
    SpecError,
    brief,
    near,
)
from isolitmus.specs.disk.input_files import shipped_files
from isolitmus.specs.files.spec_catalogue import protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from isolitmus.conformance.class_folder import ClassFolder
    from isolitmus.model.litmus import Litmus
    from isolitmus.model.run import Run
    from isolitmus.model.spec import Spec

CLASS_PATH = "spark.driver.extraClassPath"
LEVELS = {level: name for name, level in PROTOCOLS.items()}
"""Protocol of the engine ``delta`` for each isolation level of a table."""
LINKAGE_ERRORS = frozenset(
    {
        "AbstractMethodError",
        "IllegalAccessError",
        "IncompatibleClassChangeError",
        "NoClassDefFoundError",
        "NoSuchFieldError",
        "NoSuchMethodError",
        "UnsupportedClassVersionError",
        "VerifyError",
    }
)
"""Subclasses of java.lang.LinkageError that classes of another release cause."""


@dataclass(frozen=True, slots=True)
class FlaggedSession(Session):
    """Session whose new SparkSessions have additional confs."""

    confs: Mapping[str, str] = field(default_factory=dict)

    def fresh(self, conf: Mapping[str, str] | None = None) -> Any:
        """Return a SparkSession of its own with the confs of the session and these."""
        return Session.fresh(self, {**self.confs, **(conf or {})})


def patched_engine(folder: str) -> Engine:
    """Return the engine ``delta:FOLDER``.

    Parameters
    ----------
    folder : str
        Path of a folder that ``bench/pull_classes.py`` made.

    Raises
    ------
    EngineUnavailable
        There is no such folder, or its classes are of another release.
    """
    patched = read_class_folder(folder)
    name = f"{DELTA.name}:{folder}"
    return replace(
        DELTA,
        name=name,
        title=f"Delta with the code of pull requests: {patched}",
        open=partial(_opened, patched, name),
        product=f"{patched}",
        refusal=partial(refuse_shipped, patched),
        install=None,
    )


def refuse_shipped(folder: ClassFolder, name: str) -> str:
    """Return why Delta with a folder of classes does not implement a protocol; "" if it does.

    The protocol of a file, which has no shipped name, is looked at when it runs.
    """
    if name not in shipped_files("protocols"):
        return ""
    try:
        _settings(folder, protocol(name))
    except SpecError as error:
        return str(error)
    return ""


def _settings(folder: ClassFolder, spec: Spec) -> tuple[str, Mapping[str, str]]:
    """Return the isolation level and the confs of a protocol; SpecError if the folder cannot have
    them.
    """
    if spec.name in PROTOCOLS and not spec.confs:
        return PROTOCOLS[spec.name], {}
    if spec.format != DELTA.format:
        raise SpecError(f"{spec.name} has format {spec.format}; expected {DELTA.format}")
    level = isolation_level(spec.setting, tuple(LEVELS), spec.name)
    if folder.confs and not spec.confs:
        raise SpecError(
            f"{spec.name} sets no conf, so the code of the pull request would not be used; add"
            f' set "{folder.confs[0]} = true"'
        )
    for key in spec.confs:
        if folder.lacks(key):
            raise _unknown_conf(folder, spec, key)
    return level, spec.confs


def _unknown_conf(folder: ClassFolder, spec: Spec, key: str) -> SpecError:
    return SpecError(
        f"{spec.name} sets {key}, which neither Delta {folder.release} nor {folder.path}"
        f" has{near(key, folder.confs)}"
    )


@contextmanager
def _opened(folder: ClassFolder, name: str) -> Iterator[RunsTests]:
    jars = delta_jars(folder.release)
    folder.refuse_without_change(jars)
    path = os.pathsep.join(map(str, (folder.path.resolve(), *jars)))
    with open_session(conf={CLASS_PATH: path}) as session:
        version = f"{folder}, Spark {session.spark.version}"
        patched = PatchedDelta(folder, name, replace(session, version=version))
        patched.refuse_unlinked()
        yield RunsTests(version, patched.run)


class PatchedDelta:
    """Open session with the classes of a folder, and the tables that each set of confs filled."""

    def __init__(self, folder: ClassFolder, name: str, session: Session) -> None:
        self._folder = folder
        self._name = name
        self._session = session
        self._sessions: dict[frozenset[tuple[str, str]], FlaggedSession] = {}

    def run(self, litmus: Litmus, spec: Spec) -> Run:
        """Run a litmus test under a protocol, with the confs that the protocol sets."""
        level, confs = _settings(self._folder, spec)
        try:
            done = replay(litmus, LEVELS[level], self._session_with(spec, confs))
        except EngineFailed as error:
            self._refuse_linkage_error(java_class_names(error.__cause__))
            raise
        for transaction in done.transactions.values():
            self._refuse_linkage_error([transaction.exception or ""])
        return replace(done, engine=self._name, protocol=spec.name)

    def _session_with(self, spec: Spec, confs: Mapping[str, str]) -> FlaggedSession:
        """Return the session for some confs; SpecError if Spark does not have or accept one."""
        key = frozenset(confs.items())
        if key not in self._sessions:
            self._refuse_unknown(spec, confs)
            shared = {f.name: getattr(self._session, f.name) for f in fields(Session)}
            # what init statements write may depend on the flags
            flagged = FlaggedSession(**shared | {"kept": {}}, confs=confs)
            _refuse_values(flagged, spec)
            self._sessions[key] = flagged
        return self._sessions[key]

    def _refuse_unknown(self, spec: Spec, confs: Mapping[str, str]) -> None:
        registered = self._session.scala("org.apache.spark.sql.internal.SQLConf")
        self._session.scala("org.apache.spark.sql.delta.sources.DeltaSQLConf")  # registers its own
        for key in confs:
            if not registered.containsConfigKey(key):
                raise _unknown_conf(self._folder, spec, key)

    def refuse_unlinked(self) -> None:
        """Raise EngineUnavailable for a class that Java cannot load with this release of Delta.

        A method that is missing in a released class is found only when it is called (``run``).
        """
        from py4j.protocol import Py4JJavaError

        java = self._session.java("java.lang.Class")
        thread = self._session.java("java.lang.Thread")
        loader = thread.currentThread().getContextClassLoader()
        for path in self._folder.classes():
            name = path.removesuffix(".class").replace("/", ".")
            try:
                java.forName(name, False, loader).getDeclaredMethods()
            except Py4JJavaError as error:
                names = java_class_names(error)
                raise self._unlinked(
                    f"{name}: {names[0] if names else brief(str(error))}"
                ) from error

    def _refuse_linkage_error(self, names: list[str]) -> None:
        """Raise EngineUnavailable if a Java exception of these is a linkage error."""
        for name in names:
            if name in LINKAGE_ERRORS:
                raise self._unlinked(name)

    def _unlinked(self, what: str) -> EngineUnavailable:
        return EngineUnavailable(
            f"{self._folder.path} was compiled against another release of Delta than"
            f" {self._folder.release} ({what}); build it again: {BUILD}"
        )


def _refuse_values(session: FlaggedSession, spec: Spec) -> None:
    """Raise SpecError for a conf whose value Spark rejects."""
    from pyspark.errors import PySparkException

    for key, value in session.confs.items():
        try:
            Session.fresh(session, {key: value})
        except PySparkException as error:
            raise SpecError(
                f'{spec.name} sets "{key} = {value}", which Spark rejects: {brief(str(error), 120)}'
            ) from error


def java_class_names(error: BaseException | None) -> list[str]:
    """Return the simple class names of a Java exception and its causes, the outermost first."""
    names = []
    java = getattr(error, "java_exception", None)
    while java is not None:
        names.append(str(java.getClass().getName()).rpartition(".")[2])
        java = java.getCause()
    return names
