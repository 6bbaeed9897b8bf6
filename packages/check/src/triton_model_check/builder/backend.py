"""The base class of the backend classes, and the check of their options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

from constructs_triton_core.errors import InvalidValueError


def parameter(key: str, *, yes: str = "true", no: str = "false") -> Any:
    """An option that becomes the entry ``key`` of ``parameters``, or no entry if it is ``None``."""
    return field(default=None, metadata={"key": key, True: yes, False: no})


@dataclass(frozen=True, kw_only=True)
class Backend:
    """Base class of the backends with options."""

    NAME: ClassVar[str] = ""
    PLATFORM: ClassVar[str] = ""
    INPUT_NAMES: ClassVar[str] = ""
    OUTPUT_NAMES: ClassVar[str] = ""

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for item in fields(self):
            value = getattr(self, item.name)
            if value is None and item.default is MISSING:
                raise InvalidValueError(
                    f"{type(self).__name__}.{item.name}: is required, got None; pass a value"
                )
            if value is not None and not _fits(value, hints[item.name]):
                kinds = _kinds(hints[item.name])
                names = (kind.__name__ if isinstance(kind, type) else repr(kind) for kind in kinds)
                allowed = " or ".join(names)
                raise InvalidValueError(
                    f"{type(self).__name__}.{item.name}: invalid value, "
                    f"got {value!r}; pass {allowed}"
                )

    @property
    def platform(self) -> str:
        """The ``platform`` of the configuration, or "" if the configuration sets ``backend``."""
        return self.PLATFORM

    def parameters(self) -> dict[str, str]:
        """Return the options that are set, as entries of ``parameters``."""
        given = (
            (item, getattr(self, item.name)) for item in fields(self) if "key" in item.metadata
        )
        return {
            item.metadata["key"]: item.metadata[value] if isinstance(value, bool) else str(value)
            for item, value in given
            if value is not None
        }

    def complete(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return fields of a ``ModelConfig``, completed for the backend; given values have
        priority.

        Args:
            values: All fields of the ``ModelConfig``, by name.
        """
        platform = values["platform"] or self.platform
        return {
            "backend": "" if self.PLATFORM or self.platform else self.NAME,
            "platform": platform,
            "parameters": {**self.parameters(), **values["parameters"]},
            "input": _named(values["input"], self.INPUT_NAMES),
            "output": _named(values["output"], self.OUTPUT_NAMES),
        }


def _kinds(hint: Any) -> list[Any]:
    """The types and literal values that an option's annotation allows, except ``None``."""
    if get_origin(hint) in (Union, UnionType):
        return [kind for part in get_args(hint) if part is not NoneType for kind in _kinds(part)]
    return list(get_args(hint)) if get_origin(hint) is Literal else [hint]


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value has the type of an option."""
    for kind in _kinds(hint):
        if not isinstance(kind, type):
            if value == kind and not isinstance(value, bool):
                return True
        elif isinstance(value, bool):
            if kind is bool:
                return True
        elif isinstance(value, kind) or (kind is float and isinstance(value, int)):
            return True
    return False


def _named(tensors: Any, pattern: str) -> tuple[Any, ...]:
    """Name tensors without a name by position, if the backend uses such names."""
    return tuple(
        replace(tensor, name=pattern.format(index)) if pattern and not tensor.name else tensor
        for index, tensor in enumerate(tensors)
    )
