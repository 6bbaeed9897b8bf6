"""How dense the code is, beside projects that people like to read.

The figures are a thermometer: no test has a limit for them, and a change only to improve one is
wrong. They show where code was packed into few lines, so that a reader has to take it apart again.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from workspace import PACKAGES

from figures.table import Row

#: Installed packages that are measured in the same way: their names for readers, and for imports.
PRAISED = {"httpx": "httpx", "packaging": "packaging", "cfn-lint": "cfnlint"}
#: Copies of other projects, and compiled files.
SKIPPED = ("_vendor", "__pycache__")
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LOOPS = (ast.For, ast.AsyncFor, ast.comprehension)
Figure = Callable[[Counter[str]], float]


def density() -> Iterator[Row]:
    """Each figure of all packages together, with the densest package and the
    praised projects as a note.
    """
    own = {name: measured(package.modules) for name, package in PACKAGES.items()}
    together = sum(own.values(), Counter[str]())
    densest = max(own, key=lambda name: characters_a_line(own[name]))
    others = {densest: own[densest], **{name: measured(modules(name)) for name in PRAISED}}

    for what, figure in FIGURES.items():
        beside = ", ".join(f"{name} {figure(found):.2f}" for name, found in others.items())
        yield Row(what, round(figure(together), 2), note=beside)


def characters_a_line(found: Counter[str]) -> float:
    """Characters in a line of code, without its indentation."""
    return found["characters"] / found["lines"]


def _in_a_thousand_lines(what: str) -> Figure:
    return lambda found: 1000 * found[what] / found["lines"]


#: What is calculated of the counts of a package.
FIGURES: Mapping[str, Figure] = {
    "characters in a line of code": characters_a_line,
    "statements in a line of code": lambda found: found["statements"] / found["lines"],
    "parallel assignments in 1,000 lines": _in_a_thousand_lines("parallel assignments"),
    "comprehensions in 1,000 lines": _in_a_thousand_lines("comprehensions"),
    "nested comprehensions in 1,000 lines": _in_a_thousand_lines("nested comprehensions"),
    "conditional expressions in 1,000 lines": _in_a_thousand_lines("conditional expressions"),
    "comments in 1,000 lines": _in_a_thousand_lines("comments"),
    "loop variables called `each`, percent": lambda found: (
        100 * found["each"] / found["loop variables"]
    ),
}


def modules(name: str) -> list[Path]:
    """Return the modules of an installed package."""
    spec = find_spec(PRAISED[name])
    if spec is None or spec.submodule_search_locations is None:
        raise SystemExit(f"figures: {name} is not installed; run `make .venv/.installed`")
    folder = Path(next(iter(spec.submodule_search_locations)))
    return [path for path in sorted(folder.rglob("*.py")) if not {*SKIPPED} & {*path.parts}]


def measured(paths: Iterable[Path]) -> Counter[str]:
    """Count lines of code, and what is in them, in several modules."""
    found = Counter[str]()
    for path in paths:
        found += of_module(path.read_text(encoding="utf-8"))
    return found


def of_module(text: str) -> Counter[str]:
    """Count the lines of code of a module, and what is in them.

    A line of code has a statement or a part of one. Docstrings, imports, blank lines and comments
    are none.
    """
    tree = ast.parse(text)
    lines = _lines_of_code(text, tree)
    found = Counter[str]()
    found["lines"] = len(lines)
    found["characters"] = sum(map(len, lines.values()))
    found["comments"] = _comments(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and node.lineno in lines:
            found["statements"] += 1
        if isinstance(node, LOOPS):
            names = _names(node.target)
            found["loop variables"] += len(names)
            found["each"] += names.count("each")
        if isinstance(node, COMPREHENSIONS):
            found["comprehensions"] += 1
            found["nested comprehensions"] += _is_nested(node)
        elif isinstance(node, ast.IfExp):
            found["conditional expressions"] += 1
        elif isinstance(node, ast.Assign):
            found["parallel assignments"] += _is_parallel(node)
    return found


def _lines_of_code(text: str, tree: ast.Module) -> dict[int, str]:
    """Return the lines of code by their numbers, without indentation."""
    without: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and (_is_import(node) or _is_docstring(node)):
            without.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return {
        number: line.strip()
        for number, line in enumerate(text.splitlines(), start=1)
        if number not in without and line.partition("#")[0].strip()
    }


def _is_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


def _is_docstring(node: ast.stmt) -> bool:
    """Whether a statement is a string alone, as docstrings and descriptions of fields are."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _names(target: ast.AST) -> list[str]:
    """Return the variables to which a loop assigns."""
    return [node.id for node in ast.walk(target) if isinstance(node, ast.Name)]


def _is_nested(node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> bool:
    """Whether a comprehension has a second ``for``, of its own or in a comprehension inside it."""
    inner = (child for child in ast.walk(node) if child is not node)
    return len(node.generators) > 1 or any(isinstance(child, COMPREHENSIONS) for child in inner)


def _is_parallel(node: ast.Assign) -> bool:
    """Whether one statement assigns several values to several names; a swap belongs together."""
    target = node.targets[0]
    if not isinstance(target, ast.Tuple) or not isinstance(node.value, ast.Tuple):
        return False
    return sorted(map(ast.unparse, target.elts)) != sorted(map(ast.unparse, node.value.elts))


def _comments(text: str) -> int:
    """Count the lines that are a comment; one behind code is often for a tool, such as ``noqa``."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(
        token.type == tokenize.COMMENT and token.line.lstrip().startswith("#") for token in tokens
    )
