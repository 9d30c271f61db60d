"""Types and properties of existing tables, as their logs have them and as the model has them.

Features that the model does not support are refused with the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isolitmus.model.delta.header import LEGACY, NUMBERED, SUPPORTED, WITH_ROW_TRACKING
from isolitmus.model.errors import IsolitmusError
from isolitmus.model.sql.types import NAMED_TYPES, column_type
from isolitmus.specs.sql.configuration import unmodelled_property

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isolitmus.model.delta.log import LogProtocol
    from isolitmus.model.sql.types import Type

MAPPING = "delta.columnMapping."
LENGTH = "__CHAR_VARCHAR_TYPE_STRING"
OF_DELTA = (f"{MAPPING}maxColumnId", *WITH_ROW_TRACKING)
"""Properties that Delta sets itself; conflicts depend on them only if a commit changes them."""
NUMBERS = 7
"""Writer version from which on a protocol lists its features."""


class NotModelled(IsolitmusError):
    """Table that the model does not support; the text names the unsupported part."""


def logged_type(column: Mapping[str, Any]) -> Type:
    """Return the model's type of a column in a log; NotModelled, with its name and type, if none
    exists.

    Examples
    --------
    >>> logged_type({"name": "id", "type": "long"})
    'BIGINT'
    >>> logged_type({"name": "x", "type": "decimal(9,2)"})
    'DECIMAL(9,2)'
    """
    name = column["name"]
    kind = (column.get("metadata") or {}).get(LENGTH) or column["type"]
    type_ = column_type(_spelled(kind))
    if type_ is None:
        what = kind["type"] if isinstance(kind, dict) else kind
        raise NotModelled(
            f"its column {name} is of type {what}; the model has {', '.join(NAMED_TYPES)}"
        )
    return type_


LOGGED = {"short": "SMALLINT", "byte": "TINYINT", "long": "BIGINT", "integer": "INT"}
"""SQL names of types that a log names differently."""


def _spelled(kind: Any) -> str:
    """Return a type of a log in SQL, including the types of its parts."""
    if isinstance(kind, str):
        return LOGGED.get(kind, kind.upper())
    match kind["type"]:
        case "struct":
            fields = (f"{one['name']}: {_spelled(one['type'])}" for one in kind["fields"])
            return f"STRUCT<{', '.join(fields)}>"
        case "array":
            return f"ARRAY<{_spelled(kind['elementType'])}>"
        case "map":
            return f"MAP<{_spelled(kind['keyType'])}, {_spelled(kind['valueType'])}>"
    return str(kind["type"])


def declared_properties(given: Mapping[str, str], protocol: LogProtocol) -> dict[str, str]:
    """Return the properties that create a table as its log has it; NotModelled for an unsupported
    one.
    """
    found = {}
    for key, value in given.items():
        if key not in OF_DELTA:
            if why := unmodelled_property(key, value, made=True):
                raise NotModelled(why)
            found[key] = value
    return found | {f"{SUPPORTED}{feature}": "supported" for feature in _features(protocol)}


def _features(protocol: LogProtocol) -> list[str]:
    """Return the features of a protocol, without those that every table has."""
    if protocol.writer >= NUMBERS:
        features = {*protocol.reader_features, *protocol.writer_features}
    else:
        said = (LEGACY, *NUMBERED)[: max(protocol.writer - 1, 0)]
        features = {feature for several in said for feature in several}
    for feature in LEGACY:
        if feature not in features:
            raise NotModelled(f"its protocol has not the feature {feature}")
    if "clustering" in features:
        raise NotModelled("it is clustered, and how its files are clustered is not modelled")
    return sorted(features.difference(LEGACY))
