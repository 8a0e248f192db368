"""A problem file within an address: the part after the sign #, which browsers keep to themselves."""

from __future__ import annotations

import base64
import binascii
import zlib

from pibls.errors import InputError


def to_fragment(text: str) -> str:
    """Return a text as letters, digits and a few signs.

    >>> of_fragment(to_fragment("equations = []"))
    'equations = []'
    """
    return base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode("ascii").rstrip("=")


def of_fragment(fragment: str, longest: int = 200_000) -> str:
    """Return the text of a fragment; one that is damaged, or would be very long, is refused."""
    try:
        packed = base64.b64decode(fragment + "=" * (-len(fragment) % 4), altchars=b"-_", validate=True)
        unpacking = zlib.decompressobj()
        content = unpacking.decompress(packed, 4 * longest)
        text = content.decode()
    except (binascii.Error, zlib.error, UnicodeDecodeError, ValueError) as error:
        raise InputError("The address has no problem in it that can be read. Copy all of it.") from error
    if unpacking.unconsumed_tail or not unpacking.eof or len(text) > longest:
        raise InputError(f"The address is cut off, or its problem has more than {longest} characters.")
    return text
