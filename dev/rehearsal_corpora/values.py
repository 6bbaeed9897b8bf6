"""Makes a value for each required property of a construct, by the type of the property."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from constructs import Construct

from .jsii_types import Library, Type, is_deprecated, plain, python_member

_DEEPEST = 8
_MOST_CANDIDATES = 6


class NoValueError(Exception):
    """The generator has no value of a type."""


@dataclass(frozen=True)
class Hints:
    """What types do not say: values, by the names of :func:`short`.

    Args:
        values: Values by type, or by property as ``Struct.property``.
        properties: Properties that a class needs beside those that its types require, by class.
        after: What is done with each object of a class after it is created.
        optional: Optional properties that are given a value wherever they are, by assembly scope.
    """

    values: Mapping[str, Callable[[Maker], Any]]
    properties: Mapping[str, Mapping[str, Callable[[Maker], Any]]]
    after: Mapping[str, Callable[[Maker, Any], None]]
    optional: Mapping[str, Mapping[str, Callable[[Maker], Any]]]


def short(name: str) -> str:
    """A name of JSII without the assembly of aws-cdk-lib."""
    return name.removeprefix("aws-cdk-lib.")


class Maker:
    """Makes values in one app.

    A construct that several properties need exists once, so that a service and its load balancer
    are in the same VPC.

    Args:
        library: The types.
        stack: Where the constructs are created.
        hints: What types do not say.
    """

    def __init__(self, library: Library, stack: Construct, hints: Hints) -> None:
        self._library = library
        self.stack = stack
        self._hints = hints
        self._made: dict[str, Any] = {}
        self._depth = 0
        self._ids: dict[str, int] = {}

    def one(self, name: str) -> Any:
        """The one construct or value of a type in this app."""
        if name not in self._made:
            self._made[name] = self._of_type(name)
        return self._made[name]

    def create(self, name: str, id: str | None = None, **given: Any) -> Any:
        """Create an object of a class with values for its required parameters.

        Args:
            name: The class.
            id: The ID of a construct. Default: the name of the class and a number.
            given: Values of further properties.
        """
        found = self._library.python_class(name)
        hinted = self._hints.properties.get(short(name), {})
        given = {**{key: make(self) for key, make in hinted.items() if key not in given}, **given}
        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        for parameter in self._library.types[name].get("initializer", {}).get("parameters", ()):
            kind = parameter["type"].get("fqn", "")
            if self._is_struct(kind):
                keywords |= self._keywords(kind, found.__init__, given)
            elif parameter["name"] == "scope":
                positional.append(self.stack)
            elif parameter["name"] == "id":
                positional.append(id or self.free_id(name.rpartition(".")[2]))
            elif not parameter.get("optional"):
                positional.append(self.value(parameter["type"], f"{name}.{parameter['name']}"))
        created = found(*positional, **{**keywords, **given})
        if short(name) in self._hints.after:
            self._hints.after[short(name)](self, created)
        return created

    def value(self, type: Type, place: str) -> Any:
        """A value of a type.

        Args:
            type: The type.
            place: The property, as ``Struct.property``.
        """
        if short(place) in self._hints.values:
            return self._hints.values[short(place)](self)
        if self._depth >= _DEEPEST:
            raise NoValueError(f"{place}: more than {_DEEPEST} values in each other")
        self._depth += 1
        try:
            return self._value(type, place)
        finally:
            self._depth -= 1

    def _value(self, type: Type, place: str) -> Any:
        if "primitive" in type:
            return _primitive(type["primitive"], place.rpartition(".")[2])
        if "collection" in type:
            item = self.value(type["collection"]["elementtype"], f"{place}[]")
            return [item] if type["collection"]["kind"] == "array" else {"key": item}
        if "union" in type:
            return self._first(
                [partial(self.value, each, place) for each in type["union"]["types"]],
                place,
            )
        if "intersection" in type:
            return self.value(type["intersection"]["types"][0], place)
        return self.one(type["fqn"])

    def _of_type(self, name: str) -> Any:
        if short(name) in self._hints.values:
            return self._hints.values[short(name)](self)
        declared = self._library.types[name]
        if declared["kind"] == "enum":
            return self._enum_member(name)
        if self._is_struct(name):
            struct = self._library.python_class(name)
            return struct(**self._keywords(name, struct.__init__, {}))
        return self._first([*self._ways(name)][:_MOST_CANDIDATES], name)

    def _ways(self, name: str) -> Iterator[Callable[[], Any]]:
        """The ways to an object of a class or an interface, the usual ones first."""
        declared = self._library.types[name]
        if declared["kind"] == "class" and not self._library.is_construct(name):
            yield from self._static_members(name)
        usable = [each for each in self._library.subclasses(name) if not self._library.is_l1(each)]
        for each in sorted(usable, key=lambda each: self._order(each, name)):
            if each == name or not self._library.is_construct(each):
                yield partial(self.create, each)
            else:
                yield partial(self.one, each)

    def _static_members(self, name: str) -> Iterator[Callable[[], Any]]:
        """The constants of a class of this class, and its static methods that return one."""
        declared = self._library.types[name]
        found = self._library.python_class(name)
        constants = [
            each["name"]
            for each in declared.get("properties", ())
            if each.get("static") and each["type"].get("fqn") == name and not is_deprecated(each)
        ]
        # The last constant of a class of versions is the newest one.
        for constant in reversed(constants):
            yield partial(python_member, found, constant)
        methods = [
            each
            for each in declared.get("methods", ())
            if each.get("static")
            and each.get("returns", {}).get("type", {}).get("fqn") == name
            and not is_deprecated(each)
        ]
        for method in sorted(methods, key=_required_parameters):
            yield partial(self._call, found, name, method)

    def _call(self, owner: Any, name: str, method: Type) -> Any:
        function = python_member(owner, method["name"])
        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        for parameter in method.get("parameters", ()):
            kind = parameter["type"].get("fqn", "")
            if self._is_struct(kind):
                keywords |= self._keywords(kind, function, {})
            elif not parameter.get("optional"):
                place = f"{name}.{method['name']}.{parameter['name']}"
                positional.append(self.value(parameter["type"], place))
        return function(*positional, **keywords)

    def _order(self, candidate: str, wanted: str) -> tuple[bool, bool, bool, int, str]:
        """First the class of an interface's own name, then those with few required properties."""
        module, _, interface = wanted.rpartition(".")
        parameters = self._library.types[candidate].get("initializer", {}).get("parameters", ())
        structs = [each["type"].get("fqn", "") for each in parameters]
        required = sum(
            len(self._library.required(each)) for each in structs if self._is_struct(each)
        )
        own_name = candidate in (f"{module}.{interface}", f"{module}.{interface.removeprefix('I')}")
        return (
            not own_name,
            self._library.is_deprecated(candidate),
            candidate.rpartition(".")[0] != module,
            required + len(parameters),
            candidate,
        )

    def _keywords(self, struct: str, function: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        """The required properties of a struct as keywords of a Python function."""
        names = {plain(each): each for each in inspect.signature(function).parameters}
        known = {plain(each) for each in given}
        found = {}
        for name, declared in self._library.required(struct).items():
            if plain(name) not in known:
                keyword = names[plain(name)]
                found[keyword] = self.value(declared["type"], f"{struct}.{name}")
        optional = self._hints.optional.get(struct.partition("/")[0], {})
        for name in optional.keys() & self._library.properties(struct).keys():
            found[names[plain(name)]] = optional[name](self)
        return found

    def _enum_member(self, name: str) -> Any:
        members = self._library.types[name]["members"]
        usable = [each for each in members if not is_deprecated(each)] or members
        return getattr(self._library.python_class(name), usable[0]["name"])

    def _is_struct(self, name: str) -> bool:
        return bool(self._library.types.get(name, {}).get("datatype"))

    def free_id(self, id: str) -> str:
        """An ID that no construct of the stack has yet."""
        self._ids[id] = self._ids.get(id, 0) + 1
        return f"{id}{self._ids[id]}"

    def _first(self, ways: list[Callable[[], Any]], place: str) -> Any:
        """The value of the first way that works."""
        problems = []
        for way in ways:
            try:
                return way()
            except Exception as error:  # what a construct raises is a RuntimeError of JSII
                problems.append(str(error).splitlines()[0][:200])
        raise NoValueError(f"{place}: {'; '.join(problems[:2]) or 'no class implements it'}")


def _required_parameters(method: Type) -> int:
    return sum(not each.get("optional") for each in method.get("parameters", ()))


_TEXTS = (
    ("arn", "arn:aws:sns:us-east-1:123456789012:corpus"),
    ("cidr", "10.0.0.0/16"),
    ("email", "corpus@example.com"),
    ("domain", "corpus.example.com"),
    ("zonename", "example.com"),
    ("url", "https://example.com/corpus"),
    ("uri", "https://example.com/corpus"),
    ("ipaddress", "192.0.2.1"),
    ("policydocument", "{}"),
    ("path", "/corpus"),
    ("region", "us-east-1"),
    ("account", "123456789012"),
)


def _primitive(kind: str, name: str) -> Any:
    if kind == "string":
        lower = name.removesuffix("[]").lower()
        return next((text for part, text in _TEXTS if part in lower), "corpus")
    if kind == "number":
        return 1
    if kind == "boolean":
        return False
    return {"key": "value"}
