"""Shows text of files, names and servers without sending its control characters
to a terminal or a CI log.
"""

from __future__ import annotations

__all__ = ["visible", "visible_lines"]

# How GitHub Actions and Azure Pipelines begin a command in the log of a job; blanks may stand
# before it.
_COMMANDS = ("::", "##[", "##vso[")
_NAMED = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


def visible(text: str) -> str:
    """Return text as one line in which everything can be seen.

    Control characters, line breaks, escape sequences, bidirectional marks and bytes that are not
    UTF-8 become escapes such as ``\\x1b``. So does the start of a command for a CI service, such as
    ``::error::``.
    """
    shown = text if text.isprintable() else "".join(map(_shown, text))
    if shown.lstrip().startswith(_COMMANDS):
        start = len(shown) - len(shown.lstrip())
        return f"{shown[:start]}\\x{ord(shown[start]):02x}{shown[start + 1 :]}"
    return shown


def visible_lines(text: str) -> str:
    """Return text of several lines, each as :func:`visible` shows it."""
    return "\n".join(map(visible, text.split("\n")))


def _shown(character: str) -> str:
    """Return a character, or the escape that shows it."""
    if character.isprintable():
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # how Python reads a byte of a file name that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    if character in _NAMED:
        return _NAMED[character]
    if code < 0x100:
        return f"\\x{code:02x}"
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\U{code:08x}"
