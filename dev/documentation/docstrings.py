"""Reads the package's docstrings: the text, the described names, and the errors."""

from __future__ import annotations

import inspect
import re
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

_NAMES = re.compile(r"^(``[\w*]+``)(, ``[\w*]+``)*$")
_DEFAULT = re.compile(
    r"\s*Default: (?P<default>.+?)\.(?=\s|$)|\s*\(default: (?P<short>[^)]+)\)\.?", re.DOTALL
)
SECTIONS = ("Args:", "Raises:")
_SAME_ARGUMENTS = re.compile(r"are\s+those\s+of\s+:meth:`(\w+)`")
_ROLE = re.compile(r":\w+:`~?([^`]+)`")


@dataclass(frozen=True, slots=True)
class Entry:
    """What a docstring says about a parameter or an attribute;
    ``default`` is empty where it says nothing.
    """

    meaning: str
    default: str


@dataclass(frozen=True, slots=True)
class Docstring:
    """A docstring in Markdown: its text, its entries by name, and its ``Raises:`` section."""

    text: str
    entries: Mapping[str, Entry]
    errors: Sequence[tuple[str, str]]


def read_docstring(value: object, owner: type | None = None) -> Docstring:
    """Read the docstring of a class, a function or a module.

    A class also has the entries of its base classes. A method also has those of the method that it
    overrides, of a method whose arguments it takes ("are those of :meth:`other`"), and of its
    ``owner``.
    """
    own = _read_own(value)
    inherited = [dict(_read_own(each).entries) for each in _related(value, owner)]
    return replace(own, entries=ChainMap(dict(own.entries), *inherited))


def _related(value: object, owner: type | None) -> Iterator[object]:
    if owner is None:
        yield from inspect.getmro(value)[1:] if inspect.isclass(value) else ()
        return
    for name in _SAME_ARGUMENTS.findall(value.__doc__ or ""):
        yield getattr(owner, name)
    bases = inspect.getmro(owner)
    name = getattr(value, "__name__", "")
    yield from (vars(base)[name] for base in bases[1:] if name in vars(base))
    yield from bases


def _read_own(value: object) -> Docstring:
    text, entries, errors = [], {}, []
    for lines in _blocks(inspect.cleandoc(str(getattr(value, "__doc__", None) or ""))):
        if lines[0] == "Raises:":
            errors += _described(lines[1:])
        elif lines[0] == "Args:":
            entries.update({name: _entry(text) for name, text in _described(lines[1:])})
        elif _NAMES.match(lines[0]) and len(lines) > 1:
            entry = _entry(" ".join(line.strip() for line in lines[1:]))
            entries.update(dict.fromkeys(re.findall(r"``\*{0,2}(\w+)``", lines[0]), entry))
        else:
            text.append("\n".join(lines))
    return Docstring(_literal_blocks(markdown("\n\n".join(text))), entries, errors)


def markdown(text: str) -> str:
    """Turn the marks of reStructuredText that the package uses into Markdown's."""
    return _ROLE.sub(r"`\1`", text).replace("``", "`")


def _blocks(docstring: str) -> Iterator[list[str]]:
    """Yield paragraphs. A described name begins a new one, and indented lines belong to it."""
    block: list[str] = []
    for line in docstring.splitlines():
        is_new = (
            bool(_NAMES.match(line))
            or line in SECTIONS
            or (not line.strip() and not _is_open(block))
        )
        if is_new or (block and _is_open(block) and line and not line[0].isspace()):
            if any(each.strip() for each in block):
                yield block
            block = []
        if line.strip() or block:
            block.append(line)
    if any(each.strip() for each in block):
        yield block


def _is_open(block: list[str]) -> bool:
    """Return whether indented lines after an empty one still belong to the paragraph."""
    return bool(block) and (bool(_NAMES.match(block[0])) or block[0] in SECTIONS)


def _described(lines: Sequence[str]) -> list[tuple[str, str]]:
    pattern = r"^ {4}\*{0,2}(\w+): (.+?)(?=^ {4}\*{0,2}\w+: |\Z)"
    found = re.findall(pattern, "\n".join(lines), re.MULTILINE | re.DOTALL)
    return [(name, markdown(" ".join(text.split()))) for name, text in found]


def _entry(text: str) -> Entry:
    text = markdown(text)
    found = _DEFAULT.search(text)
    if found is None:
        return Entry(text, "")
    return Entry(
        (text[: found.start()] + text[found.end() :]).strip(), found["default"] or found["short"]
    )


def _literal_blocks(text: str) -> str:
    """Fence the indented lines after ``::``."""
    pattern = re.compile(r"(?P<before>:?):\n\n(?P<code>(?:(?: {4}.*)?\n?)+)")

    def fence(found: re.Match[str]) -> str:
        code = inspect.cleandoc(found["code"])
        # A paragraph of two colons is only the mark of the block.
        before = "" if text[: found.start()].endswith("\n") else f"{found['before']}\n\n"
        return f"{before}```python\n{code}\n```\n\n" if code else found[0]

    return pattern.sub(fence, text)
