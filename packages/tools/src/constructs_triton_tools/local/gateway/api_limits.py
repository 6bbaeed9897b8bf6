"""The limits of the runtime API's headers: lengths, patterns and numbers.

Source: botocore's service model of sagemaker-runtime. The words of an error are those of AWS's API; a
sensitive value is left out of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from botocore.loaders import Loader
from botocore.model import ServiceModel, Shape, StructureShape

from constructs_triton_tools.local.gateway.runtime_errors import validation_error

#: A value of a message is cut to this length.
_SHOWN = 100
#: Java's classes of characters, as Python writes them. A header contains only ASCII.
_CLASSES = {r"\p{ASCII}": r"[\x00-\x7f]", r"[\p{Print}]": r"[ -~]", r"\S": r"[!-~]"}
#: More digits than any accepted number has; ``int`` rejects thousands of them with another error.
_MOST_DIGITS = 9


def check_headers(operation: str, headers: Mapping[str, str]) -> None:
    """Check the headers of a request."""
    wrong = [
        f"Value {'' if shape.metadata.get('sensitive') else repr(value[:_SHOWN]) + ' '}at '{name}' failed to "
        f"satisfy constraint: Member must {constraint}"
        for header, name, shape in _header_members(operation)
        if (value := headers.get(header)) is not None
        if (constraint := _broken_constraint(shape, value)) is not None
    ]
    if wrong:
        count = f"{len(wrong)} validation error{'s' if len(wrong) > 1 else ''} detected"
        raise validation_error(f"{count}: {'; '.join(wrong)}")


def body_limit(operation: str) -> int:
    """Return the size of the largest body in bytes."""
    return int(_members(operation)["Body"].metadata["max"])


def _broken_constraint(shape: Shape, value: str) -> str | None:
    """Return the first constraint that a value breaks, in the words of the API."""
    least, most = shape.metadata.get("min"), shape.metadata.get("max")
    if shape.type_name == "integer":
        size, word = (int(value[:_MOST_DIGITS]) if value.isdecimal() else -1), "value"
    else:
        size, word = len(value), "length"
    if most is not None and size > most:
        return f"have {word} less than or equal to {most}"
    if least is not None and size < least:
        return f"have {word} greater than or equal to {least}"
    pattern = shape.metadata.get("pattern")
    if pattern is not None and not _compiled(pattern).fullmatch(value):
        return f"satisfy regular expression pattern: {pattern}"
    return None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    for java, python in _CLASSES.items():
        pattern = pattern.replace(java, python)
    return re.compile(pattern.replace(r"\z", r"\Z"))


@cache
def _header_members(operation: str) -> tuple[tuple[str, str, Shape], ...]:
    """Return each header of a request, with its name in messages."""
    return tuple(
        (shape.serialization["name"], name[0].lower() + name[1:], shape)
        for name, shape in _members(operation).items()
        if shape.serialization.get("location") == "header"
    )


@cache
def _members(operation: str) -> Mapping[str, Any]:
    shape = _model().operation_model(operation).input_shape
    return shape.members if isinstance(shape, StructureShape) else {}


@cache
def _model() -> ServiceModel:
    return ServiceModel(Loader().load_service_model("sagemaker-runtime", "service-2"))
