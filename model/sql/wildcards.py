"""Texts with wildcards, as regular expressions in linear time."""

from __future__ import annotations

import re


def wildcard_expression(text: str, many: str, one: str) -> str:
    """Return the regular expression of a text with wildcards, for ``fullmatch`` and DOTALL.

    The text between two wildcards is matched as early as possible and then never again (an atomic
    group): if the rest matches after a later place, it does so after the first one.

    Parameters
    ----------
    text : str
        Text with wildcards.
    many, one : str
        Wildcards for any text and for any character.

    Examples
    --------
    >>> wildcard_expression("a*b*c?", "*", "?")
    'a(?>.*?b).*c.'
    """
    first, *rest = (
        "".join("." if sign == one else re.escape(sign) for sign in part)
        for part in text.split(many)
    )
    inner = "".join(f"(?>.*?{part})" for part in rest[:-1] if part)
    return f"{first}{inner}.*{rest[-1]}" if rest else first
