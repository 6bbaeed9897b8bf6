"""Which objects of Triton's Python backend the variables of a model have, without executing it.

A variable has a kind if everything that its function assigns to it has this kind, an attribute of
``self`` if everything that the file assigns to it has. All else is not known.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from triton_model_check.facts.published import load
from triton_model_check.model.python_class import ModelClass
from triton_model_check.model.python_contract import C_UTILS, UTILS
from triton_model_check.model.python_functions import (
    Function,
    argument_name,
    is_generator,
    values_returned,
)
from triton_model_check.model.syntax_nodes import nodes_of

ARRAY = "numpy.ndarray"
#: What NumPy returns where it adds up, or compares, all elements of an array.
SCALAR = "NumPy scalar"
#: A method that is read and not called.
METHOD = "builtin_function_or_method"
NONE = "NoneType"
#: The functions and classes of the backend, with the class of what a call of them returns.
_RESULTS = {
    "get_input_tensor_by_name": "Tensor",
    "get_output_tensor_by_name": "Tensor",
    "Tensor": "Tensor",
    "InferenceRequest": "InferenceRequest",
    "InferenceResponse": "InferenceResponse",
    "MetricFamily": "MetricFamily",
    "TritonError": "TritonError",
}
_CLASSES = ("Logger", "MetricFamily", "TritonError")
#: What a method returns, by the class of its object; an object of the backend or another one.
_METHODS = {
    ("InferenceRequest", "get_response_sender"): "InferenceResponseSender",
    ("InferenceRequest", "exec"): "InferenceResponse",
    ("InferenceRequest", "inputs"): "list of Tensor",
    ("InferenceResponse", "output_tensors"): "list of Tensor",
    ("MetricFamily", "Metric"): "Metric",
    ("Tensor", "as_numpy"): ARRAY,
    (ARRAY, "tolist"): "list",
}
_ARRAY_MAKERS = frozenset(
    ("array", "asarray", "zeros", "ones", "empty", "full", "arange", "stack", "concatenate")
)
_REDUCING = frozenset(("sum", "mean", "max", "min", "prod", "std", "var", "argmax", "argmin"))
_LITERALS: dict[type[ast.AST], str] = {
    ast.List: "list",
    ast.ListComp: "list",
    ast.Tuple: "tuple",
    ast.Dict: "dict",
    ast.JoinedStr: "str",
}
_ASSIGNING = frozenset((ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.For, ast.comprehension))
_LIST_OF = "list of "


class Member(NamedTuple):
    """An attribute that is read of an object or of a class of the backend."""

    node: ast.Attribute
    class_name: str
    #: Whether the class itself has it, and not one of its objects.
    is_of_class: bool


class _Bound(NamedTuple):
    """What a variable is bound to: an expression, its elements, or something not known."""

    value: ast.expr | None
    is_element: bool = False
    #: The kind where no expression has it.
    kind: str | None = None


class BackendObjects:
    """The objects of the backend in a file with a model."""

    def __init__(self, model_class: ModelClass) -> None:
        self._class = model_class
        self._index = model_class.index
        self._classes = load("python_backend")["members"]
        self._kinds: dict[int, str | None] = {}
        self._variables: dict[int, dict[str, list[_Bound]]] = {}

    @cached_property
    def members(self) -> tuple[Member, ...]:
        """Each attribute that is read of an object or class of the backend."""
        found = []
        for node in self._attributes_read:
            kind = self.kind(node.value) or ""
            name = kind.removeprefix("class ")
            if name in self._classes:
                found.append(Member(node, name, is_of_class=kind != name))
        return tuple(found)

    @cached_property
    def uncalled_methods(self) -> tuple[tuple[ast.expr, str], ...]:
        """Each use of a method as if it were what it returns, with the method's name."""
        found: list[tuple[ast.expr, str]] = [
            (node, self._name_of_method(node.value))
            for node in self._attributes_read
            if self.kind(node.value) == METHOD
        ]
        for operation in self._index.of(ast.BinOp):
            if not isinstance(operation.op, ast.Add):
                continue  # "%s" % method formats the method.
            found += [
                (operation, self._name_of_method(side))
                for side in (operation.left, operation.right)
                if self.kind(side) == METHOD
            ]
        return tuple(found)

    @cached_property
    def _attributes_read(self) -> list[ast.Attribute]:
        return [
            node
            for node in self._index.of(ast.Attribute)
            if isinstance(node.ctx, ast.Load) and not node.attr.startswith("__")
        ]

    def kind(self, node: ast.expr) -> str | None:
        """Return the class of an object, ``"class X"`` for a class, or ``"list of X"``.

        ``None`` is not known. A tensor that a request may lack has the kind ``"Tensor"``.
        """
        if id(node) not in self._kinds:
            self._kinds[id(node)] = None  # A variable that is made of itself is not known.
            self._kinds[id(node)] = self._kind_of(node)
        return self._kinds[id(node)]

    def value(self, node: ast.expr) -> ast.expr:
        """Return the expression to which a variable or attribute is bound once; else itself.

        An element of a list with a number is what the list has there.
        """
        if isinstance(node, ast.Subscript):
            return self._element(node)
        bound = self._bindings(node)
        if len(bound) == 1 and bound[0].value is not None and not bound[0].is_element:
            return bound[0].value
        return node

    def elements(self, node: ast.expr) -> list[ast.expr] | None:
        """Return the elements of a list that nothing changes; ``None`` if they are not known."""
        value = self.value(node)
        if not isinstance(value, ast.List):
            return None
        if any(isinstance(element, ast.Starred) for element in value.elts):
            return None
        is_unchanged = value is node or self._is_unchanged(node)
        return value.elts if is_unchanged else None

    def appended(
        self, function: Function, name: str, *, more_reads: int = 0
    ) -> list[ast.expr] | None:
        """Return what is appended to a list that is empty first, or ``None`` if more happens.

        ``more_reads``: how often the caller knows that the list is read beside ``return``.
        """
        bound = self._variables_of(function).get(name, [])
        if len(bound) != 1:
            return None
        first_value = bound[0].value
        if not isinstance(first_value, ast.List) or first_value.elts:
            return None

        nodes = nodes_of(*function.body)
        uses = [node for node in nodes if _is_name(node, name)]
        appended = _arguments_of_append(nodes, name)
        returns = [value for value in values_returned(function) if _is_name(value, name)]

        # The assignment, each call of append and each return use the name once.
        other_uses = len(uses) - 1 - len(appended) - len(returns)
        return appended if other_uses == more_reads else None

    def _element(self, node: ast.Subscript) -> ast.expr:
        """Return the element of a list that a constant number chooses; else ``node`` itself."""
        index = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if not isinstance(index, int) or isinstance(index, bool):
            return node
        elements = self.elements(node.value)
        if elements is None or index >= len(elements):
            return node
        return elements[index]

    def _is_unchanged(self, node: ast.expr) -> bool:
        """Whether each read of a variable or an attribute certainly leaves its list as it is."""
        names = [
            read
            for read in (*self._index.of(ast.Name), *self._index.of(ast.Attribute))
            if isinstance(read.ctx, ast.Load) and _name_of(read) == _name_of(node)  # type: ignore[attr-defined]
        ]
        return all(id(read) in self._reading_places for read in names)

    @cached_property
    def _reading_places(self) -> frozenset[int]:
        """The expressions that a loop, a subscript or a class of the backend reads."""
        found = [node.iter for node in self._index.of(ast.For)]
        found += [node.iter for node in self._index.of(ast.comprehension)]
        for subscript in self._index.of(ast.Subscript):
            if isinstance(subscript.ctx, ast.Load):
                found.append(subscript.value)
        for call in self._index.of(ast.Call):
            if id(call) in self._results:
                found += [*call.args, *(keyword.value for keyword in call.keywords)]
        return frozenset(map(id, found))

    def _kind_of(self, node: ast.expr) -> str | None:
        """Return the kind of an expression, which is not known yet."""
        if isinstance(node, ast.Name):
            return self._kind_of_bound(self._bindings(node))
        if isinstance(node, ast.Call):
            return self._kind_of_call(node)
        if isinstance(node, ast.Attribute):
            return self._kind_of_attribute(node)
        if isinstance(node, ast.Subscript):
            return self._kind_of_part(node)
        return _LITERALS.get(type(node))

    def _kind_of_part(self, node: ast.Subscript) -> str | None:
        """Return the kind of a slice, or of an element that a constant chooses."""
        kind = self.kind(node.value) or ""
        if isinstance(node.slice, ast.Slice):
            return kind if kind in ("tuple", ARRAY) else None
        if isinstance(node.slice, ast.Constant) and kind.startswith(_LIST_OF):
            return kind.removeprefix(_LIST_OF)
        return None

    def _kind_of_bound(self, bindings: list[_Bound]) -> str | None:
        kinds = {self._kind_of_one(bound) for bound in bindings}
        return kinds.pop() if len(kinds) == 1 else None

    def _kind_of_one(self, bound: _Bound) -> str | None:
        """Return the kind of what one assignment, loop or argument gives to a variable."""
        if bound.value is None:
            return bound.kind
        kind = self.kind(bound.value)
        if not bound.is_element:
            return kind
        if kind is None or not kind.startswith(_LIST_OF):
            return None
        return kind.removeprefix(_LIST_OF)

    def _kind_of_call(self, node: ast.Call) -> str | None:
        """Return the kind of what a call returns."""
        result = self._results.get(id(node))
        if result is not None:
            return result
        function = node.func
        if not isinstance(function, ast.Attribute):
            return None
        if isinstance(function.value, ast.Name):
            if function.value.id in self._index.aliases("numpy"):
                return self._kind_of_numpy(function.attr, node)
            if function.value.id == "self":
                return self._kind_of_own_call(function.attr)
        # With `decoupled`, `exec` returns an iterator of responses.
        if any(keyword.arg in ("decoupled", None) for keyword in node.keywords):
            return None
        kind = self.kind(function.value) or ""
        is_of_all = kind == ARRAY and not (node.args or node.keywords)
        is_reduced = is_of_all and function.attr in _REDUCING
        return SCALAR if is_reduced else _METHODS.get((kind, function.attr))

    def _kind_of_numpy(self, name: str, call: ast.Call) -> str | None:
        """Return what a function of NumPy returns."""
        if name in _ARRAY_MAKERS:
            return ARRAY
        is_of_all = len(call.args) == 1 and not call.keywords
        if name in _REDUCING and is_of_all and self.kind(call.args[0]) == ARRAY:
            return SCALAR
        return None

    def _kind_of_own_call(self, name: str) -> str | None:
        """Whether a method of the model returns nothing."""
        method = self._class.method(name)
        is_plain = isinstance(method, ast.FunctionDef) and not method.decorator_list
        if method is None or not is_plain or is_generator(method):
            return None
        may_raise = any(isinstance(node, ast.Raise) for node in nodes_of(*method.body))
        returns_something = any(value is not None for value in values_returned(method))
        return None if may_raise or returns_something else NONE

    def _kind_of_attribute(self, node: ast.Attribute) -> str | None:
        """Return the kind of an attribute that is read."""
        owner = node.value
        if isinstance(owner, ast.Name) and owner.id in self._aliases:
            is_class = node.attr in _CLASSES and node.attr not in self._index.stored_attributes
            return f"class {node.attr}" if is_class else None
        if _is_name(owner, "self"):
            return self._kind_of_bound(self._own_attributes.get(node.attr, []))

        kind = self.kind(owner) or ""
        if kind == ARRAY:
            return "tuple" if node.attr == "shape" else None
        is_method = node.attr in self._classes.get(kind, ()) and not node.attr.isupper()
        return METHOD if is_method else None

    def _name_of_method(self, node: ast.expr) -> str:
        value = self.value(node)
        return value.attr if isinstance(value, ast.Attribute) else ast.unparse(node)

    @cached_property
    def _aliases(self) -> frozenset[str]:
        return self._index.aliases(UTILS) | self._index.aliases(C_UTILS)

    @cached_property
    def _results(self) -> dict[int, str]:
        return {
            id(call): result
            for name, result in _RESULTS.items()
            for call in self._index.calls(name)
        }

    def _bindings(self, node: ast.expr) -> list[_Bound]:
        """Return everything to which a variable or an attribute of ``self`` is bound."""
        if isinstance(node, ast.Name):
            function = self._function_of.get(id(node))
            if function is None:
                return []
            return self._variables_of(function).get(node.id, [])
        if isinstance(node, ast.Attribute) and _is_name(node.value, "self"):
            return self._own_attributes.get(node.attr, [])
        return []

    @cached_property
    def _function_of(self) -> dict[int, Function]:
        """The function of each name, without the names of functions inside it."""
        return {
            id(node): function
            for function in self._index.functions
            for node in self._index.nodes_in(function)
            if isinstance(node, ast.Name)
        }

    @cached_property
    def _own_attributes(self) -> dict[str, list[_Bound]]:
        """What the file assigns to the attributes of ``self``, and of other objects."""
        assigned = _assigned(self._index.nodes)
        found: dict[str, list[_Bound]] = {}
        for node in self._index.of(ast.Attribute):
            if not isinstance(node.ctx, ast.Load):
                found.setdefault(node.attr, []).append(assigned.get(id(node), _Bound(None)))
        return found

    def _variables_of(self, function: Function) -> dict[str, list[_Bound]]:
        if id(function) not in self._variables:
            self._variables[id(function)] = self._variables_found(function)
        return self._variables[id(function)]

    def _variables_found(self, function: Function) -> dict[str, list[_Bound]]:
        """Return everything to which each variable of a function is bound."""
        nodes = self._index.nodes_in(function)
        assigned = _assigned(nodes)
        found: dict[str, list[_Bound]] = {}
        requests = self._requests_of(function)
        for argument in ast.iter_child_nodes(function.args):
            if isinstance(argument, ast.arg):
                kind = f"{_LIST_OF}InferenceRequest" if argument.arg == requests else None
                found.setdefault(argument.arg, []).append(_Bound(None, kind=kind))
        for node in nodes:
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                bound = assigned.get(id(node), _Bound(None))
                found.setdefault(node.id, []).append(bound)
        # What another function assigns to a variable of this one is not followed.
        declared = [name for node in self._index.of(ast.Global) for name in node.names]
        declared += [name for node in self._index.of(ast.Nonlocal) for name in node.names]
        for name in declared:
            found.setdefault(name, []).append(_Bound(None))
        return found

    def _requests_of(self, function: Function) -> str | None:
        """Return the name of the list of requests, if Triton passes it to the function."""
        is_execute = function is self._class.method("execute")
        return argument_name(function) if is_execute else None


def _is_name(node: ast.AST | None, name: str) -> bool:
    """Whether an expression is the variable of this name."""
    return isinstance(node, ast.Name) and node.id == name


def _arguments_of_append(nodes: Sequence[ast.AST], name: str) -> list[ast.expr]:
    """Return what the calls ``NAME.append(VALUE)`` append, in their order."""
    appended = []
    for node in nodes:
        if not isinstance(node, ast.Call) or len(node.args) != 1:
            continue
        method = node.func
        if not isinstance(method, ast.Attribute) or method.attr != "append":
            continue
        if _is_name(method.value, name):
            appended.append(node.args[0])
    return appended


def _name_of(node: ast.AST) -> str | None:
    """Return the name of a variable or of an attribute."""
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else None


def _assigned(nodes: list[ast.AST]) -> dict[int, _Bound]:
    """Return what each target is bound to that is assigned alone, by its identity."""
    found: dict[int, _Bound] = {}
    # Most nodes are none of these: one look at the type is the fastest way to know.
    for node in nodes:
        if type(node) not in _ASSIGNING:
            continue
        if isinstance(node, ast.Assign):
            for target in node.targets:
                found[id(target)] = _Bound(node.value)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            found[id(node.target)] = _Bound(node.value)
        elif isinstance(node, ast.For | ast.comprehension):
            found |= _elements(node.target, node.iter)
    return found


def _elements(target: ast.expr, iterated: ast.expr) -> dict[int, _Bound]:
    """Return what the target of a loop is bound to."""
    if not isinstance(iterated, ast.Call) or not isinstance(iterated.func, ast.Name):
        return {id(target): _Bound(iterated, is_element=True)}
    is_enumerated = iterated.func.id == "enumerate" and bool(iterated.args)
    if is_enumerated and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        return {id(target.elts[1]): _Bound(iterated.args[0], is_element=True)}
    return {}
