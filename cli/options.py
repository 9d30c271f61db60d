"""Options that several verbs share, and the meaning of their values."""

from __future__ import annotations

from math import inf
from typing import Annotated, Any

import typer

from isolitmus.model.budget import Budget, size
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.registry import Registry

SPARK_JOBS: Registry[Any] = Registry("Spark job")
"""What ``--spark``, and ``--out`` of replays, run on Spark: functions of the part ``pipeline``."""

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]

MOST_CORES = 1_024
Cores = Annotated[
    int | None, typer.Option(metavar="N", help="Number of processes; default: one for each core.")
]

Time = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS", help="Stop after this time, with the results so far; default: no limit."
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help=(
            "Stop when all processes use this much memory, such as 4GB; default: 3/4 of what is"
            " free."
        ),
    ),
]

CERTIFICATE = typer.Option(
    metavar="FOLDER",
    help="Write the refuted formulas to this folder, for other solvers to check.",
)
"""Help of ``--certificate``."""

Master = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="With --spark: the URL of the Spark master; default: local[2]."
    ),
]


def check_at_least(least: int, **numbers: int | None) -> None:
    """Raise an IsolitmusError if an option with a number is below the least that it takes.

    >>> check_at_least(1, at_once=0)
    Traceback (most recent call last):
    isolitmus.model.errors.IsolitmusError: --at-once is 0; expected an integer of at least 1
    """
    for name, number in numbers.items():
        if number is not None and number < least:
            option = name.replace("_", "-")
            raise IsolitmusError(f"--{option} is {number}; expected an integer of at least {least}")


def check_cores(cores: int | None) -> None:
    """Raise an IsolitmusError unless --cores is between 1 and `MOST_CORES`."""
    check_at_least(1, cores=cores)
    if cores is not None and cores > MOST_CORES:
        raise IsolitmusError(f"--cores is {cores}; expected an integer up to {MOST_CORES:,}")


def needs_spark(spark: bool, master: str | None, out: object) -> None:
    """Raise IsolitmusError for an option that needs --spark, without --spark.

    Examples
    --------
    >>> needs_spark(False, "local[4]", None)
    Traceback (most recent call last):
    isolitmus.model.errors.IsolitmusError: --master needs --spark
    """
    if not spark and (master is not None or out is not None):
        raise IsolitmusError(f"--{'master' if master is not None else 'out'} needs --spark")


def read_budget(time: float | None, memory: str | None) -> Budget:
    """Return the budget of ``--time`` and ``--memory``; raise IsolitmusError if one is invalid.

    Examples
    --------
    >>> read_budget(5, "2GB").memory
    2000000000
    """
    if time is not None and not 0 <= time < inf:
        raise IsolitmusError(f"--time is {time:g}; expected a number of seconds from 0")
    try:
        most = None if memory is None else size(memory)
    except IsolitmusError as problem:
        raise IsolitmusError(f"--memory: {problem}") from None
    return Budget(time, most)


def split_names(option: str, names: str) -> list[str]:
    """Return the distinct names in a comma-separated option, at least one.

    Examples
    --------
    >>> split_names("engine", "model, delta")
    ['model', 'delta']
    """
    found = list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    if not found:
        raise IsolitmusError(f"--{option} is empty; name at least one {option}")
    return found


def read_sizes(text: str) -> range:
    """Return the sizes that ``--transactions`` names, as ``N`` or ``N..M``.

    Examples
    --------
    >>> list(read_sizes("2..4"))
    [2, 3, 4]
    """
    low, dots, high = text.partition("..")
    try:
        first, last = int(low), int(high) if dots else int(low)
    except ValueError:
        raise IsolitmusError(
            f"--transactions is '{text}'; write N or N..M, for example 2..3"
        ) from None
    if not 1 <= first <= last:
        raise IsolitmusError(f"--transactions is '{text}'; write N or N..M, from 1 and ascending")
    return range(first, last + 1)
