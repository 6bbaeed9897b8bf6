"""The modules that a Python model imports when Triton loads it, without executing them."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import partial

from triton_model_check.checks.model_under_check import ENVIRONMENT_PARAMETER, ModelUnderCheck
from triton_model_check.checks.python_sources import problem_at
from triton_model_check.checks.rules import Problem, rule
from triton_model_check.facts.images import image_packages
from triton_model_check.facts.published import load
from triton_model_check.model.module_index import may_define_otherwise
from triton_model_check.model.python_grammar import RUNNING
from triton_model_check.model.python_source import PythonSource, is_over_budget, version_of

_rule = partial(rule, scope="python", needs_files=True)


@_rule(
    "python-standard-library",
    source="the documentation of Python, New in version; CPython 3.8 to 3.13 was asked",
    hint="import it inside `try`, with another way for older versions, or use a newer image",
)
def standard_library(model: ModelUnderCheck) -> Iterator[Problem]:
    """The Python of the image has what the model imports from the standard library.

    Otherwise loading fails with ``ImportError``. The rule looks at imports outside conditions and
    ``try``, and skips models with an environment of their own.
    """
    facts = load("python_stdlib")
    python = version_of(model.image_python)
    if python is None:
        return
    for source in _sources(model):
        for statement in _imports(source):
            top = _modules(statement)[0].partition(".")[0]
            if _has_file(model, top):
                continue
            for name, what in _imported(statement):
                since = version_of(facts["modules" if what == "module" else "names"].get(name))
                if since is not None and since > python:
                    message = (
                        f"Python {model.image_python} of the image has no {what} '{name}', which "
                        f"is new in Python {since[0]}.{since[1]}"
                    )
                    yield problem_at(source, statement, message)
                    break


@_rule(
    "python-module-beside",
    source="the Python language reference; run with triton server 2.51",
)
def module_beside(model: ModelUnderCheck) -> Iterator[Problem]:
    """A module beside ``model.py`` is valid, and has the names that the model imports from it.

    Otherwise loading fails with ``SyntaxError`` or ``ImportError``. The rule looks at imports
    outside conditions and ``try``, and skips modules that may define names in another way, for
    example with ``import *``.
    """
    for source in _sources(model):
        for statement in _imports(source):
            for module in _modules(statement):
                beside = _beside(model, source, module)
                if beside is not None:
                    yield from _problems_of_import(source, statement, beside)


def _problems_of_import(
    source: PythonSource, statement: ast.Import | ast.ImportFrom, beside: PythonSource
) -> Iterator[Problem]:
    """Yield what is wrong with a module of the folder that the model imports."""
    fault = beside.fault
    if fault is not None:
        # A newer Python accepts what an older one accepts, but not the other way round.
        if beside.python is not None and beside.python <= RUNNING:
            message = f"invalid syntax for the Python of the image: {fault.msg}"
            hint = "fix the syntax error, because model.py imports this file"
            yield Problem(message, path=beside.path, line=fault.lineno, hint=hint)
        return
    if isinstance(statement, ast.Import) or may_define_otherwise(beside.content):
        return
    assert beside.index is not None
    for alias in statement.names:
        if alias.name != "*" and alias.name not in beside.index.defined:
            message = f"cannot import name '{alias.name}' from '{statement.module}'"
            hint = f"define {alias.name} in {beside.path}, or import another name"
            yield problem_at(source, statement, message, hint)


def _sources(model: ModelUnderCheck) -> Iterator[PythonSource]:
    """Yield the files that import modules in the usual way, with the Python of the image."""
    if ENVIRONMENT_PARAMETER in model.config_parameters:
        return
    for source in model.python_sources:
        is_usual = b"sys.path" not in source.content and b"sys.modules" not in source.content
        if source.tree is not None and is_usual:
            yield source


def _imports(source: PythonSource) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the absolute imports that certainly run when the file is imported."""
    assert source.index is not None
    for node in source.index.at_import:
        is_absolute = isinstance(node, ast.ImportFrom) and not node.level and node.module
        if isinstance(node, ast.Import) or is_absolute:
            yield node  # type: ignore[misc]


def _modules(statement: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(statement, ast.ImportFrom):
        return [statement.module or ""]
    return [alias.name for alias in statement.names]


def _imported(statement: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """Yield each module and each name that a statement imports, with which of both it is."""
    for module in _modules(statement):
        yield module, "module"
    if isinstance(statement, ast.ImportFrom):
        for alias in statement.names:
            yield f"{statement.module}.{alias.name}", "name"


def _has_file(model: ModelUnderCheck, module: str) -> bool:
    """Whether a file or folder of the model has the name of a module."""
    folders = [model.folder.entries, *map(model.folder.list, model.versions_to_load)]
    return any(name.partition(".")[0] == module for entries in folders for name in entries)


def _beside(model: ModelUnderCheck, source: PythonSource, module: str) -> PythonSource | None:
    """Return the module beside ``model.py``, or ``None`` if Python may import another one."""
    version = source.path.removeprefix(f"{model.folder.path}/").partition("/")[0]
    entries = model.folder.list(version)
    in_model = {name.partition(".")[0] for name in model.folder.entries}
    same = [name for name in entries if name.partition(".")[0] == module]
    packages = image_packages(None) | set(load("names")["distributions"])
    if same != [f"{module}.py"] or module in in_model or module in packages or _is_standard(module):
        return None
    content = model.folder.read(version, f"{module}.py")
    if content is None or is_over_budget(content):
        return None
    path = model.folder.relative(version, f"{module}.py")
    return PythonSource(path, content, source.python)


def _is_standard(module: str) -> bool:
    return module in sys.stdlib_module_names
