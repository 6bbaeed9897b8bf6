"""The names and attributes that a Python model uses, without executing it.

Only what certainly runs while the model loads is an error: statements outside conditions, loops and
``try``. What a method does later is a warning.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial
from typing import Any

from constructs_triton_core.spelling import did_you_mean, quoted
from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.python_sources import classes_with_real_utils, release_of_names
from triton_model_check.checks.rules import Problem, rule, warning
from triton_model_check.facts.published import load
from triton_model_check.model.module_index import undefined_names
from triton_model_check.model.python_class import ModelClass
from triton_model_check.model.python_contract import UTILS, is_outside_table, names_of
from triton_model_check.model.python_source import PythonSource
from triton_model_check.model.syntax_nodes import nodes_of

_STUB = "triton python_backend src/pb_stub.cc"
_UTILS_FILE = "triton python_backend src/resources/triton_python_backend_utils.py"
_PYTHON = "the Python language reference, and triton python_backend Stub::Initialize"
_OBJECT = frozenset(dir(object))
NO_ATTRIBUTE = "'TritonPythonModel' object has no attribute '{}'"
_ABSENT_YET = f"module '{UTILS}' has no attribute '{{}}' yet"
_rule = partial(rule, scope="python")
_warning = partial(warning, scope="python")


@_rule(
    "python-undefined-name",
    source=_PYTHON,
    hint="define the name, import it, or fix its spelling",
)
def undefined_name(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every name that the model reads while it loads is defined somewhere in its file.

    Otherwise loading fails with ``NameError``. The rule looks at what certainly runs: the module,
    its classes, ``initialize`` and ``auto_complete_config``. It skips files that may define names
    in another way, for example with ``exec`` or ``import *``.
    """
    for source, model_class in model.python_classes:
        for name in undefined_names(model_class.index, source.content):
            if model_class.runs(name):
                yield _at(source, name, f"name '{name.id}' is not defined")


@_warning(
    "python-undefined-name-in-function",
    source="the Python language reference",
    hint="define the name, import it, or fix its spelling",
)
def undefined_name_in_function(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every name that a function reads is defined somewhere in its file.

    Otherwise the call of the function fails with ``NameError``. The rule skips names inside ``if``
    and ``try``, and files that may define names in another way.
    """
    for source, model_class in model.python_classes:
        for name in undefined_names(model_class.index, source.content):
            if model_class.may_run_later(name):
                yield _at(source, name, f"name '{name.id}' is not defined")


@_rule("python-backend-name", source=f"{_STUB}, {_UTILS_FILE}")
def backend_name(model: ModelUnderCheck) -> Iterator[Problem]:
    """The model uses only names that the backend's module has while the model loads.

    Triton imports the model before it adds classes such as ``Tensor`` and ``InferenceResponse`` to
    ``triton_python_backend_utils``, so that annotations and other statements of the module cannot
    use them. The rule skips models with a module of that name in their folder.
    """
    for source, model_class in classes_with_real_utils(model):
        yield from _absent_at_import(source, model_class)
        for node, message, hint in absent_names(model, model_class):
            if model_class.runs(node):
                yield _at(source, node, message, hint)


@_warning("python-backend-name-in-function", source=f"{_STUB}, {_UTILS_FILE}")
def backend_name_in_function(model: ModelUnderCheck) -> Iterator[Problem]:
    """Functions use only names that the backend's module has in the release of the image.

    Otherwise the call fails with ``AttributeError``. The rule skips names inside ``if`` and
    ``try``.
    """
    for source, model_class in classes_with_real_utils(model):
        for node, message, hint in absent_names(model, model_class):
            if model_class.may_run_later(node):
                yield _at(source, node, message, hint)


def _absent_at_import(source: PythonSource, model_class: ModelClass) -> Iterator[Problem]:
    """Yield each use, at import, of a name that Triton adds to its module only later."""
    index = model_class.index
    added_later = names_of("set_after_import", None)
    for statement in index.of(ast.ImportFrom):
        if statement.module != UTILS or statement.level:
            continue
        names = [alias.name for alias in statement.names if alias.name in added_later]
        if names and model_class.runs(statement, "import"):
            hint = f"write `import {UTILS} as pb_utils`, and pb_utils.{names[0]} inside a method"
            yield _at(source, statement, _ABSENT_YET.format(names[0]), hint)

    aliases = index.aliases(UTILS)
    for node in index.of(ast.Attribute):
        if node.attr not in added_later or index.is_in_body(node):
            continue
        if _is_attribute_of(node, aliases) and model_class.runs(node, "import"):
            hint = (
                f'use "{node.attr}" inside a method: Triton adds it after it has imported this '
                "file; write an annotation as a string"
            )
            yield _at(source, node, _ABSENT_YET.format(node.attr), hint)


def absent_names(
    model: ModelUnderCheck, model_class: ModelClass
) -> Iterator[tuple[ast.Attribute, str, str]]:
    """Yield each name of the backend's module that the image does not have,
    with a message and a hint.
    """
    version = release_of_names(model)
    if is_outside_table(version):
        return
    aliases = model_class.index.aliases(UTILS)
    stored = model_class.index.stored_attributes
    known = names_of("module", version) | names_of("set_after_import", version)
    for node in model_class.index.of(ast.Attribute):
        name = node.attr
        if name in known or name in stored or name.startswith("__"):
            continue
        if _is_attribute_of(node, aliases):
            message = f"module '{UTILS}' has no attribute '{name}'"
            hint = did_you_mean(name, known, f"use one of {quoted(sorted(known))}")
            yield node, message, _newer_image(name) or hint


def _newer_image(name: str) -> str | None:
    """Return what to do about a name that later releases have."""
    since = [load("python_backend")[group].get(name) for group in ("module", "set_after_import")]
    newer = [release for release in since if release is not None]
    return f"use an image of {newer[0]} or later" if newer else None


def _is_attribute_of(node: ast.AST, aliases: frozenset[str]) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Load)
        and isinstance(node.value, ast.Name)
        and node.value.id in aliases
    )


@_rule(
    "python-attribute",
    source=_PYTHON,
    hint="assign the attribute before it is read, or fix its spelling",
)
def attribute(model: ModelUnderCheck) -> Iterator[Problem]:
    """``initialize`` reads only attributes of ``self`` that something assigns.

    Otherwise loading fails with ``AttributeError``. The rule skips classes that may get attributes
    in another way, for example with ``setattr``.
    """
    for source, model_class in model.python_classes:
        for node in absent_attributes(source, model_class):
            if model_class.runs(node, "initialize"):
                yield _at(source, node, NO_ATTRIBUTE.format(node.attr))


@_warning(
    "python-attribute-in-method",
    source="the Python language reference",
    hint="assign the attribute in initialize, or fix its spelling",
)
def attribute_in_method(model: ModelUnderCheck) -> Iterator[Problem]:
    """``execute`` and ``finalize`` read only attributes of ``self`` that something assigns.

    Otherwise the request fails with ``AttributeError``. The rule skips attributes inside ``if`` and
    ``try``, and classes that may get attributes in another way.
    """
    for source, model_class in model.python_classes:
        found = list(absent_attributes(source, model_class))
        methods = [model_class.method(name) for name in ("execute", "finalize")] if found else []
        called = {id(node) for method in methods if method for node in nodes_of(*method.body)}
        for node in found:
            if id(node) in called and model_class.may_run_later(node):
                yield _at(source, node, NO_ATTRIBUTE.format(node.attr))


def absent_attributes(source: PythonSource, model_class: ModelClass) -> Iterator[ast.Attribute]:
    """Yield the attributes of ``self`` in the class that nothing assigns, each at its first use."""
    methods = {getattr(statement, "name", "") for statement in model_class.node.body}
    known = model_class.index.stored_attributes | methods | _OBJECT
    known -= _never_assigned(model_class)
    found: dict[str, ast.Attribute] = {}
    for node in model_class.index.of(ast.Attribute):
        is_own = isinstance(node.value, ast.Name) and node.value.id == "self"
        if is_own and node.attr not in known and not node.attr.startswith("__"):
            found.setdefault(node.attr, node)
    dynamic = (b"setattr", b"__getattr", b"__dict__", b"vars(")
    if not found or any(word in source.content for word in dynamic):
        return
    # Methods of other classes have a `self` of their own.
    inside = {id(node) for node in nodes_of(model_class.node)}
    lost = _never_assigned(model_class)
    for name, node in found.items():
        if id(node) in inside and (name in lost or name not in model_class.names):
            yield node


def _never_assigned(model_class: ModelClass) -> frozenset[str]:
    """Return the attributes that only an ``async def initialize`` assigns, which Triton does not
    await.
    """
    method = model_class.method("initialize")
    if not isinstance(method, ast.AsyncFunctionDef):
        return frozenset()
    inside = {id(node) for node in nodes_of(*method.body)}
    stores = [
        node for node in model_class.index.of(ast.Attribute) if not isinstance(node.ctx, ast.Load)
    ]
    elsewhere = {node.attr for node in stores if id(node) not in inside}
    fields = {node.id for node in nodes_of(*model_class.node.body) if isinstance(node, ast.Name)}
    return frozenset(node.attr for node in stores) - elsewhere - fields


def _at(source: PythonSource, node: Any, message: str, hint: str | None = None) -> Problem:
    return Problem(message, path=source.path, line=node.lineno, hint=hint or None)
