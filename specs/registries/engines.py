"""Registry of engines: built-in ones, those of installed packages, and registered ones.

Examples
--------
>>> engines()
('delta', 'deltalake', 'deltalake-1.6.3', 'derby', 'model', 'postgres')
>>> engine_named("deltalake-1.6.6").name, engine_named("deltalake-1.6.3").protocols
('deltalake', ('delta-rs-1.6.3-serializable',))
>>> engine_named("dleta")
Traceback (most recent call last):
isolitmus.model.errors.UnknownName: unknown engine 'dleta'; did you mean 'delta'?
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isolitmus.model.errors import IsolitmusError
from isolitmus.model.registry import Registry

if TYPE_CHECKING:
    from isolitmus.model.engine import Engine

ALIASES = {"deltalake-1.6.6": "deltalake"}
"""Other names of built-in engines."""


def _is_engine(one: object) -> bool:
    from isolitmus.model.engine import Engine

    return isinstance(one, Engine)


ENGINES: Registry[Engine] = Registry("engine", ALIASES, _is_engine)
engine_named, engines, offer = ENGINES.named, ENGINES.names, ENGINES.offer


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
