"""Triton's schema of ``config.pbtxt``.

``model_config.binpb`` is the descriptor of Triton's ``model_config.proto``, with its license beside it.
``make facts-refresh`` copies both from tritonclient. The schema has a descriptor pool of its own, so that a
process can also import a tritonclient with another version of the schema.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from google.protobuf.descriptor_pool import DescriptorPool

__all__ = ["data_type_name", "field_names", "message_class", "new_model_config"]

_PACKAGE = "inference"
_DESCRIPTOR = "model_config.binpb"


@cache
def message_class(name: str) -> Any:
    """Return the protobuf class of a message of the schema, such as ``ModelWarmup.Input``."""
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{_PACKAGE}.{name}"))


def new_model_config() -> Any:
    """Return an empty ``inference.ModelConfig`` message."""
    return message_class("ModelConfig")()


def field_names(message_name: str) -> list[str]:
    """Return the names of a message's fields; none if the schema has no such message."""
    try:
        return [field.name for field in _pool().FindMessageTypeByName(f"{_PACKAGE}.{message_name}").fields]
    except KeyError:
        return []


def enum_values(enum_name: str) -> dict[int, str]:
    """Return the names of an enum's values by their numbers."""
    values = _pool().FindEnumTypeByName(f"{_PACKAGE}.{enum_name}").values
    return {value.number: value.name for value in values}


def data_type_name(number: int) -> str:
    """Return the name of a ``DataType`` value such as ``TYPE_FP32``, or the number if it has no name."""
    return _data_types().get(number, str(number))


@cache
def _data_types() -> dict[int, str]:
    return enum_values("DataType")


@cache
def _pool() -> DescriptorPool:
    from google.protobuf.descriptor_pool import DescriptorPool

    pool = DescriptorPool()
    pool.AddSerializedFile(resources.files(__package__).joinpath(_DESCRIPTOR).read_bytes())
    return pool
