"""Finds in the project's example apps how a construct is called."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from documentation.pages import PROJECT, page_of


def example_of(name: str) -> str:
    """Return the shortest call of a construct in the examples, with a link to its app;
    empty without one.
    """
    calls = _calls().get(name)
    if not calls:
        return ""
    code, folder = min(calls, key=lambda each: (len(each[0]), each[1]))
    return f"In [`{folder}`](../../{page_of(folder)}):\n\n```python\n{code}\n```\n"


@cache
def _calls() -> Mapping[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for path in sorted((PROJECT / "examples").rglob("app.py")):
        for name, code in _calls_of(path):
            found.setdefault(name, []).append((code, path.parent.relative_to(PROJECT).as_posix()))
    return found


def _calls_of(path: Path) -> Iterator[tuple[str, str]]:
    source = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            continue
        if all(each.arg for each in node.keywords):  # not **options, which say nothing
            code = ast.get_source_segment(source, node, padded=True) or ""
            yield node.func.id, textwrap.dedent(code).strip()
