"""Values of a command line that stay as they were given, because they are of their kind already.

Typer asks pydantic of each option whether a text is a text, and pydantic's start takes longer than many a verb.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_type_hints

from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Group", "Verb"]

TEXTS = (list[str], list[str] | None)


class _Given:
    """A command whose parameters ask typer only where something is to be converted, or is missing."""

    callback: Any

    def get_params(self, context: Any) -> list[Any]:
        kinds = {} if self.callback is None else get_type_hints(self.callback)
        parameters: list[Any] = super().get_params(context)  # type: ignore[misc] # of the class beside it
        for parameter in parameters:
            if "process_value" not in vars(parameter):
                parameter.process_value = _processing(parameter, kinds.get(parameter.name))
        return parameters


def _processing(parameter: Any, kind: Any) -> Callable[[Any, Any], Any]:
    process, called = parameter.process_value, parameter.callback is not None

    def processed(context: Any, value: Any) -> Any:
        if called and value:
            return process(context, value)
        if kind in TEXTS:
            return list(value) if value else process(context, value)
        given = isinstance(value, kind or bool | None)
        return value if given else process(context, value)

    return processed


class Verb(_Given, TyperCommand):
    """A verb."""


class Group(_Given, TyperGroup):
    """What has verbs."""
