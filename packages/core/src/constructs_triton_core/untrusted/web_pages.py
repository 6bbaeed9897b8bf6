"""Recognizes requests to this machine that a foreign web page has caused.

A web page cannot read from loopback by itself, but a browser sends its requests there: with the
page's own host name if that name resolves to 127.0.0.1 (DNS rebinding), and from any page with its
``Origin``. A picture or a link has no ``Origin``; browsers mark it with ``Sec-Fetch-Site``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["foreign_header"]

_LOOPBACK = r"(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?"
_HOST = re.compile(_LOOPBACK, re.IGNORECASE)
_ORIGIN = re.compile(f"https?://{_LOOPBACK}", re.IGNORECASE)
_OTHER_SITES = ("cross-site", "same-site")


def foreign_header(
    hosts: Sequence[str], origins: Sequence[str], sites: Sequence[str] = ()
) -> str | None:
    """Return what is wrong with a request's headers, or ``None`` if it comes from this machine.

    Args:
        hosts: Values of ``Host``.
        origins: Values of ``Origin``.
        sites: Values of ``Sec-Fetch-Site``.
    """
    for name, values, pattern in (("Host", hosts or [""], _HOST), ("Origin", origins, _ORIGIN)):
        for value in values:
            if not pattern.fullmatch(value):
                return f"{name}: must be 127.0.0.1, localhost or [::1], got {value[:100]!r}"
    if not origins and any(each in _OTHER_SITES for each in sites):
        return f"Sec-Fetch-Site: must be none or same-origin, got {sites[0][:100]!r}"
    return None
