"""What tells one text from another in few letters."""

from __future__ import annotations

from hashlib import sha256

__all__ = ["text_digest"]


def text_digest(text: str) -> str:
    """A digest of a text, of 16 hexadecimal digits.

    >>> text_digest("r(x0)")
    '01cc3c2f3b5a8e6b'
    """
    return sha256(text.encode()).hexdigest()[:16]
