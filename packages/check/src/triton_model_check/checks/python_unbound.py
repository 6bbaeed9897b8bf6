"""Names that a Python model reads where they have no value, without executing it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.python_faults import Fault
from triton_model_check.checks.python_sources import problem_at, release_of_names, with_real_utils
from triton_model_check.checks.rules import Problem, rule
from triton_model_check.model.module_index import may_define_otherwise
from triton_model_check.model.python_class import ModelClass
from triton_model_check.model.python_contract import UTILS, is_outside_table, names_of
from triton_model_check.model.python_source import PythonSource
from triton_model_check.model.syntax_nodes import nodes_of
from triton_model_check.model.undefined_names import known_names

_HINT = "assign the name before it is read; write self. before the name of a method"
_rule = partial(rule, scope="python")


@_rule(
    "python-unbound-name",
    source="the Python language reference, Naming and binding; run with triton server 2.51",
)
def unbound_name(model: ModelUnderCheck) -> Iterator[Problem]:
    """A name has a value when ``initialize`` or ``auto_complete_config`` reads it.

    A local variable has none before its assignment, after ``del``, or after the ``except`` block
    that names it. A method is no variable: Python finds it only through ``self``. The model does
    not load.
    """
    for source, model_class in model.python_classes:
        for fault in faults_of_unbound_names(source, model_class):
            if model_class.runs(fault.node, "initialize", "auto_complete_config"):
                yield fault.problem(source)


def faults_of_unbound_names(source: PythonSource, model_class: ModelClass) -> Iterator[Fault]:
    """Yield the reads of names that have no value there."""
    for node in model_class.unbound_names:
        yield Fault(node, f"local variable '{node.id}' has no value here", _HINT)
    for node in _bare_methods(source, model_class):
        yield Fault(node, f"name '{node.id}' is not defined, but self.{node.id} is", _HINT)


def _bare_methods(source: PythonSource, model_class: ModelClass) -> Iterator[ast.Name]:
    """Yield the names of methods that functions read without ``self``."""
    index = model_class.index
    methods = {
        statement.name
        for statement in model_class.node.body
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    methods = {name for name in methods if index.is_bound_once(name)} - known_names(())
    reads = [node for node in index.of(ast.Name) if node.id in methods]
    if not reads or may_define_otherwise(source.content):
        return
    for function in index.functions:
        inside = nodes_of(*function.body, without=(ast.ClassDef,))
        identities = {id(node) for node in inside}
        for node in reads:
            if id(node) in identities:
                yield node


# --- names of the backend's module ----------------------------------------------------------------


@_rule(
    "python-backend-name-absent",
    source="triton python_backend src/resources/triton_python_backend_utils.py",
)
def backend_name_absent(model: ModelUnderCheck) -> Iterator[Problem]:
    """A model imports, inherits and reads only names that the backend's module has.

    The module contains no base class of models: ``TritonPythonModel`` is a class of your own. Names
    have capital letters as in its documentation, such as ``Logger``. Otherwise the model does not
    load.
    """
    version = release_of_names(model)
    if is_outside_table(version):
        return
    known = names_of("module", None) | names_of("set_after_import", None)
    for source in with_real_utils(model):
        assert source.index is not None
        for node, name in _wrong_names(source, known):
            hint = f"use pb_utils.{_capitalized(name, known)}" if _capitalized(name, known) else ""
            if name == "TritonPythonModel":
                hint = "write `class TritonPythonModel:`, without this import or base class"
            message = f"module '{UTILS}' has no attribute '{name}'"
            hint = hint or "remove the name, or use another one of the module"
            yield problem_at(source, node, message, hint)


def _wrong_names(
    source: PythonSource, known: frozenset[str]
) -> Iterator[tuple[ast.stmt | ast.expr, str]]:
    """Yield each use of a name that Triton's module lacks, with the name; ``known`` has the rest.

    Only what certainly runs is looked at.
    """
    index = source.index
    assert index is not None
    for statement in index.of(ast.ImportFrom):
        if statement.module != UTILS or statement.level or statement not in index.at_import:
            continue
        for alias in statement.names:
            if alias.name not in (*known, "*") and not alias.name.startswith("__"):
                yield statement, alias.name

    aliases = index.aliases(UTILS)
    uses = [node for node in index.of(ast.Attribute) if _is_alias(node.value, aliases)]
    assigned = {node.attr for node in uses if not isinstance(node.ctx, ast.Load)}
    model_class = source.model_class
    for node in uses:
        name = node.attr
        if name in known or name in assigned or name.startswith("__"):
            continue
        # Those of classes that inherit nothing are `python-backend-name`'s.
        is_other = model_class is None or name in index.stored_attributes
        if not is_other:
            continue
        if node in index.at_import or (model_class is not None and model_class.runs(node)):
            yield node, name


def _is_alias(node: ast.expr, aliases: frozenset[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in aliases


def _capitalized(name: str, known: frozenset[str]) -> str | None:
    return next((each for each in sorted(known) if each.lower() == name.lower()), None)
