"""Registries of formats and engines: our own, those of installed packages, and registered ones.

Examples
--------
>>> format_named("delta").log, format_named("delta-rs").log
('delta', 'delta')
>>> format_named("dleta")
Traceback (most recent call last):
isolitmus.model.errors.UnknownName: unknown format 'dleta'; did you mean 'delta'?
>>> ENGINES.names()
('delta', 'deltalake', 'deltalake-1.6.3', 'derby', 'model', 'postgres')
>>> engine_named("deltalake-1.6.6").name, engine_named("deltalake-1.6.3").protocols
('deltalake', ('delta-rs-1.6.3-serializable',))
>>> engine_named("dleta")
Traceback (most recent call last):
isolitmus.model.errors.UnknownName: unknown engine 'dleta'; did you mean 'delta'?
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.errors import IsolitmusError, UnknownName
from isolitmus.model.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable

    from isolitmus.model.engine import Engine
    from isolitmus.model.format import Format

ALIASES = {"deltalake-1.6.6": "deltalake"}
"""Other names of built-in engines."""
LOGS = {"databricks": "delta", "delta-rs": "delta"}
"""Log of each built-in format whose log is not named after it; known without importing them."""


def _is_format(one: object) -> bool:
    from isolitmus.model.format import Format

    return isinstance(one, Format)


FORMATS: Registry[Format] = Registry("format", check=_is_format)
format_named, formats = FORMATS.named, FORMATS.names


def log_of_format(name: str) -> str:
    """Return the log of a format; a built-in one is not imported for it.

    Examples
    --------
    >>> log_of_format("delta-rs"), log_of_format("locking")
    ('delta', 'locking')
    """
    return LOGS.get(name, name) if name in FORMATS.shipped else format_named(name).log


def _is_engine(one: object) -> bool:
    from isolitmus.model.engine import Engine

    return isinstance(one, Engine)


ENGINES: Registry[Engine] = Registry("engine", ALIASES, _is_engine)
engines = ENGINES.names
ENGINE_BUILDERS: Registry[Callable[[str], Engine]] = Registry("engine builder")


def engine_named(name: str) -> Engine:
    """Return the engine of a name, or the one that a builder makes of ``BUILDER:ARGUMENT``.

    ``delta:FOLDER`` is Delta with the classes of a folder in front of its jars.

    Examples
    --------
    >>> engine_named("model:x")
    Traceback (most recent call last):
    isolitmus.model.errors.UnknownName: unknown engine 'model:x'; engines with an argument: \
delta:FOLDER
    """
    builder, colon, argument = name.partition(":")
    if not colon:
        return ENGINES.named(name)
    if builder not in ENGINE_BUILDERS:
        known = ", ".join(f"{each}:FOLDER" for each in ENGINE_BUILDERS.names())
        raise UnknownName(f"unknown engine '{name}'; engines with an argument: {known}")
    return ENGINE_BUILDERS.named(builder)(argument)


def install_engine(name: str) -> str:
    """Install what an engine needs, or what makes its start faster.

    Parameters
    ----------
    name : str
        The engine.

    Returns
    -------
    str
        What the engine has then, in words.

    Raises
    ------
    IsolitmusError
        If it needs nothing, or cannot be installed on this machine.

    Examples
    --------
    >>> install_engine("model")
    Traceback (most recent call last):
        ...
    isolitmus.model.errors.IsolitmusError: model needs nothing to be installed
    """
    engine = engine_named(name)
    if engine.install is None:
        raise IsolitmusError(f"{name} needs nothing to be installed")
    return f"{engine.product} has {engine.install()}"
