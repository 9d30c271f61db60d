"""What typer finds wrong with the words on a command line, in the form of all other errors."""

from __future__ import annotations

from typing import Any

import typer

from isolitmus.model.errors import IsolitmusError, near

__all__ = ["USAGE", "misused"]

USAGE: Any = typer.BadParameter.__mro__[2]
"""The root of typer's own errors, which it has from click and does not export."""


def misused(error: Any) -> IsolitmusError:
    """The error as one sentence, with what would have been right or where that stands.

    >>> print(misused(typer.BadParameter("3 is not odd.")))
    invalid value: 3 is not odd; see isolitmus --help
    """
    context = error.ctx
    text = error.format_message().rstrip(".")
    if context is not None and text.startswith("No such option"):
        named = [name for parameter in context.command.params for name in parameter.opts]
        known = [name for name in (*named, "--help") if name.startswith("-")]
        text = f"no option '{error.option_name}'{near(error.option_name, known)}"
    elif context is not None and text.startswith("No such command"):
        name = text.partition("'")[2].partition("'")[0]
        text = f"no command '{name}'{near(name, context.command.list_commands(context))}"
    command = "isolitmus" if context is None else context.command_path
    return IsolitmusError(f"{text[0].lower()}{text[1:]}; see {command} --help")
