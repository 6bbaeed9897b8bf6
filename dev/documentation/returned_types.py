"""Finds the types that public functions return and that no package exports, for the reference."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from types import ModuleType
from typing import Any

from documentation.members import hidden_bases, members_of

# Not after a dot: the type of another module, such as ``events.Rule`` of the CDK.
_NAME = re.compile(r"(?<![\w.])[A-Z]\w+")


@dataclass(frozen=True, slots=True)
class ReturnedType:
    """A type, and where a user meets it, such as ``Returned by `simulate`.``"""

    value: Any
    origin: str

    @property
    def fields(self) -> Mapping[str, str]:
        """The types of its fields; none if users meet only its members, as those of a construct."""
        if is_dataclass(self.value):
            types = {each.name: each.type for each in fields(self.value)}
        else:
            types = self.value.__annotations__ if hasattr(self.value, "_fields") else {}
        return {name: str(each) for name, each in types.items() if not name.startswith("_")}


def returned_types(
    names: Mapping[str, Any], source: str, public: Collection[str]
) -> dict[str, ReturnedType]:
    """Return the types by name: those that public names return, and those of their attributes."""
    shown = {
        base.__name__
        for value in names.values()
        if inspect.isclass(value)
        for base in hidden_bases(value)
    }
    known = {name: value for name, value in _types(source).items() if name not in {*public, *shown}}
    found: dict[str, ReturnedType] = {}
    waiting = [
        ("Returned by", name, member)
        for name, value in names.items()
        for member in _returned(value)
    ]
    while waiting:
        relation, owner, (member, annotation) = waiting.pop(0)
        place = ".".join(filter(None, (owner, member)))
        for name in _NAME.findall(annotation):
            if name in known and name not in found:
                found[name] = ReturnedType(known[name], f"{relation} `{place}`.")
                parts = (*found[name].fields.items(), *_returned(known[name]))
                waiting += [("Part of", name, part) for part in parts]
    return found


@cache
def _types(source: str) -> Mapping[str, type]:
    """Return the types that a package defines, by name."""
    return {
        name: value
        for module in _modules(importlib.import_module(source))
        for name, value in vars(module).items()
        if inspect.isclass(value)
        and value.__module__ == module.__name__
        and not name.startswith("_")
    }


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    yield package
    for each in pkgutil.iter_modules(getattr(package, "__path__", ()), f"{package.__name__}."):
        try:
            yield from _modules(importlib.import_module(each.name))
        except ModuleNotFoundError:
            continue  # code of another environment: a model's, or that of a Lambda function


def _returned(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the members that return something, "" for the function itself,
    and their annotations.
    """
    if inspect.isroutine(value):
        yield "", _annotation(value)
    elif inspect.isclass(value):
        for owner in (value, *hidden_bases(value)):
            for name, member in members_of(owner):
                yield (
                    name,
                    _annotation(
                        member.fget if isinstance(member, property) else getattr(owner, name)
                    ),
                )


def _annotation(function: Any) -> str:
    found = inspect.signature(function).return_annotation
    return found if isinstance(found, str) else ""
