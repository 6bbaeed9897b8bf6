"""Checks requests against botocore's service models, including constraints that botocore ignores.

botocore checks names, types, required members and minima; the models also carry enumerations,
maxima and patterns. A scalar is converted to the type the service wants, as CloudFormation does.
"""

from __future__ import annotations

from functools import cache, partialmethod
from typing import Any

import botocore.session
from botocore.model import ServiceModel, Shape

from ..values.stand_ins import is_opaque
from .patterns_of_aws import PatternError, is_match
from .policy_documents import policy_text


def conform(
    service: str, operation: str, request: dict[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """The request with its scalars converted, and its errors."""
    check = _Check()
    shape = _service_model(service).operation_model(operation).input_shape
    assert shape is not None
    return check.visit(request, shape, operation), check.errors


@cache
def _service_model(name: str) -> ServiceModel:
    model: ServiceModel = botocore.session.get_session().get_service_model(name)
    return model


class _Check:
    """Walks over a request and its shape."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def visit(self, value: Any, shape: Shape, path: str) -> Any:
        """Return a value as the shape has it; note what does not fit. Unknown values fit."""
        if is_opaque(value):
            return value
        visitor = getattr(self, f"_{shape.type_name}", None)
        if visitor is None:
            return value
        return visitor(value, shape, path)

    def _structure(self, value: Any, shape: Any, path: str) -> Any:
        """Check the members of an object, and return those that the shape knows."""
        if not isinstance(value, dict):
            return self._fault(value, path, "an object")
        for name in sorted(value.keys() - shape.members.keys()):
            self.errors.append(f"{path}: unknown member {name}")
        for name in shape.required_members:
            if name not in value:
                self.errors.append(f"{path}: required member {name} is missing")
        if shape.is_tagged_union and len(value) != 1:
            self.errors.append(f"{path}: exactly one member has to be set, got {sorted(value)}")

        members = {}
        for name, member in value.items():
            if name in shape.members:
                members[name] = self.visit(member, shape.members[name], f"{path}.{name}")
        return members

    def _list(self, value: Any, shape: Any, path: str) -> Any:
        """Check the elements of a list."""
        if not isinstance(value, list):
            return self._fault(value, path, "a list")
        self._limit(len(value), shape, path)
        elements = []
        for index, element in enumerate(value):
            elements.append(self.visit(element, shape.member, f"{path}[{index}]"))
        return elements

    def _map(self, value: Any, shape: Any, path: str) -> Any:
        """Check the values of a map, which has keys of any name."""
        if not isinstance(value, dict):
            return self._fault(value, path, "a map")
        self._limit(len(value), shape, path)
        return {
            key: self.visit(element, shape.value, f"{path}.{key}") for key, element in value.items()
        }

    def _number(self, convert: type[int | float], value: Any, shape: Shape, path: str) -> Any:
        """Check a number, which CloudFormation may give as a string."""
        try:
            number = convert(value)
        except (TypeError, ValueError):
            return self._fault(value, path, "an integer" if convert is int else "a number")
        self._limit(number, shape, path)
        return number

    _integer = _long = partialmethod(_number, int)
    _float = _double = partialmethod(_number, float)

    def _boolean(self, value: Any, _: Shape, path: str) -> Any:
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        if isinstance(value, bool):
            return value
        return self._fault(value, path, "a boolean")

    def _string(self, value: Any, shape: Any, path: str) -> Any:
        """Check a string, which CloudFormation may give as another type."""
        if isinstance(value, bool):
            value = str(value).lower()
        elif isinstance(value, int | float):
            value = str(value)
        elif isinstance(value, dict):
            value = policy_text(value)  # a policy document is an object in CloudFormation
            if is_opaque(value):
                return value
        if not isinstance(value, str):
            return self._fault(value, path, "a text")
        self._limit(len(value), shape, path)
        if shape.enum and value not in shape.enum:
            self.errors.append(f"{path}: must be one of {len(shape.enum)} values, got {value!r}")
        self._match(value, shape, path)
        return value

    def _match(self, value: str, shape: Shape, path: str) -> None:
        """Check that a string fits the pattern of its shape."""
        pattern = shape.metadata.get("pattern")
        if pattern is None:
            return
        try:
            fits = is_match(pattern, value, is_whole=True)
        except PatternError:  # CloudFormation's schema has been checked before
            return
        if not fits:
            self.errors.append(f"{path}: must match {pattern}, got {value!r}")

    def _limit(self, number: float, shape: Shape, path: str) -> None:
        """Check that a number or a length is within the limits of its shape."""
        lowest = shape.metadata.get("min", number)
        highest = shape.metadata.get("max", number)
        if number < lowest or number > highest:
            limits = {
                name: shape.metadata[name] for name in ("min", "max") if name in shape.metadata
            }
            self.errors.append(f"{path}: value or length must be within {limits}, got {number}")

    def _fault(self, value: Any, path: str, expected: str) -> Any:
        self.errors.append(f"{path}: must be {expected}, got {value!r}")
        return value
