"""Which parts of a ``config.pbtxt`` an older release of Triton does not know."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from constructs_triton_core.facts.versions import is_at_least
from triton_model_check.facts.releases import new_fields

__all__ = ["NewField", "fields_after"]

_PACKAGE = "inference."
_Path = tuple[str | int, ...]


class NewField(NamedTuple):
    """A field or an enum value that a release added.

    ``owner`` is the message or enum as ``model_config.proto`` names it, and ``field`` the field
    that has the enum value; ``""`` for a field.
    """

    owner: str
    name: str
    path: _Path
    since: str
    field: str = ""

    @property
    def said(self) -> str:
        """The words of protobuf's parser, which the server prints for a part it does not know."""
        if self.field:
            return f'unknown enumeration value of "{self.name}" for field "{self.field}"'
        return f'message type "{_PACKAGE}{self.owner}" has no field named "{self.name}"'


def fields_after(
    config: Any, version: str, is_written: Callable[[_Path], bool]
) -> Iterator[NewField]:
    """Yield what the configuration has and the release does not know.

    ``is_written`` is whether the file has a field: a field with its default value is not set in
    ``config``, and an older parser refuses it all the same.
    """
    added = {name: since for name, since in new_fields().items() if not is_at_least(version, since)}
    if added:
        yield from _new_parts(config, (), added, is_written)


def _new_parts(
    message: Any, path: _Path, added: dict[str, str], is_written: Callable[[_Path], bool]
) -> Iterator[NewField]:
    """Yield the fields and values of a message that are new in a release."""
    owner = message.DESCRIPTOR.full_name.removeprefix(_PACKAGE)
    values = {descriptor.name: value for descriptor, value in message.ListFields()}
    for descriptor in message.DESCRIPTOR.fields:
        name = descriptor.name
        place = (*path, name)
        since = added.get(f"{owner}.{name}")
        if since is not None and (name in values or is_written(place)):
            yield NewField(owner, name, place, since)
        elif name in values and since is None:
            for at, value in _each(values[name], place):
                if descriptor.enum_type is not None:
                    yield from _new_value(descriptor, value, at, added)
                elif hasattr(value, "ListFields"):
                    yield from _new_parts(value, at, added, is_written)


def _each(value: Any, place: _Path) -> Iterator[tuple[_Path, Any]]:
    """Yield each value of a field with its place: of a map by key, of a list by index."""
    if hasattr(value, "items"):
        for key, entry in value.items():
            yield (*place, key), entry
    elif isinstance(value, (str, bytes)) or not hasattr(value, "__len__"):
        yield place, value
    else:
        for index, entry in enumerate(value):
            yield (*place, index), entry


def _new_value(
    descriptor: Any, number: int, place: _Path, added: dict[str, str]
) -> Iterator[NewField]:
    enum = descriptor.enum_type.full_name.removeprefix(_PACKAGE)
    value = descriptor.enum_type.values_by_number.get(number)
    if value is not None and f"{enum}.{value.name}" in added:
        since = added[f"{enum}.{value.name}"]
        yield NewField(enum, value.name, place, since, descriptor.name)
