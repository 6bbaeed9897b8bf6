"""A misspelled keyword of every public constructor, method and function gets a suggestion."""

from __future__ import annotations

import enum
import importlib
import inspect
import typing
from collections.abc import Callable, Collection, Iterator
from functools import cache
from typing import Any

import pytest
from documentation.api import PACKAGES

from constructs_triton import TritonEnsembleEndpoint
from constructs_triton_client import InMemoryTransport, TritonClient
from constructs_triton_core.keywords import keywords_of

CLIENT = TritonClient(InMemoryTransport(dict))
CONSTRUCTORS = ("__init__", "__new__")


@cache
def public_names() -> dict[str, Any]:
    """The public names of all packages."""
    modules = [importlib.import_module(name) for name in ("constructs_triton", *PACKAGES.values())]
    return {
        f"{each.__name__}.{name}": getattr(each, name) for each in modules for name in each.__all__
    }


def defines(cls: type) -> bool:
    """Whether this project wrote the class, and not as an interface, an enumeration or an error."""
    is_other = typing.is_typeddict(cls) or getattr(cls, "_is_protocol", False)
    return (
        cls.__module__.startswith("constructs_triton")
        and not is_other
        and not issubclass(cls, enum.Enum | BaseException)
    )


def members(cls: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the constructor and the public methods of a class that classes
    of this project define.
    """
    found: dict[str, type] = {}
    for base in inspect.getmro(cls):
        for name, member in vars(base).items():
            is_method = inspect.isfunction(member) or isinstance(member, classmethod | staticmethod)
            if is_method and (name in CONSTRUCTORS or not name.startswith("_")):
                found.setdefault(name, base)
    constructor = next((name for name in CONSTRUCTORS if defines(found.get(name, object))), "")
    for name, base in found.items():
        if defines(base) and name not in CONSTRUCTORS:
            yield name, getattr(cls, name)
        elif name == constructor:
            yield name, cls


def callables() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield each constructor, public method and function with its name."""
    for name, value in public_names().items():
        if inspect.isclass(value):
            yield from (
                (f"{name}.{member}", each) for member, each in members(value) if defines(value)
            )
        elif inspect.isroutine(value):
            yield name, value


CALLABLES = dict(callables())


def misspelled(name: str) -> str:
    """Return the name without its last letter but one."""
    return name[:-2] + name[-1] if len(name) > 2 else name * 2


def signature(name: str) -> inspect.Signature:
    """Return the signature of a callable, with ``self``."""
    function: Any = CALLABLES[name]
    return inspect.signature(
        getattr(function, name.rpartition(".")[2]) if inspect.isclass(function) else function
    )


def keywords(name: str) -> Collection[str]:
    """Return the keywords of a callable; none if it takes any."""
    function: Any = CALLABLES[name]
    known = keywords_of(
        getattr(function, name.rpartition(".")[2]) if inspect.isclass(function) else function
    )
    takes_any = any(each.kind is each.VAR_KEYWORD for each in signature(name).parameters.values())
    return () if takes_any and known.is_open else known.names


def call_with(name: str, keyword: str) -> None:
    """Call with the keyword misspelled and ``None`` for all other required arguments."""
    function: Any = CALLABLES[name]
    positional: list[None] = []
    named: dict[str, Any] = {misspelled(keyword): None}
    for each in signature(name).parameters.values():
        if each.name in (keyword, "cls") or each.default is not each.empty:
            continue
        if each.kind is each.KEYWORD_ONLY or each.name == "id":
            named[each.name] = "a" if each.name == "variant_name" else None
        elif each.kind is not each.VAR_KEYWORD and (
            each.name != "self" or not inspect.isclass(function)
        ):
            positional.append(None)
    function(*positional, **named)


@pytest.mark.parametrize("name", [name for name in CALLABLES if keywords(name)])
def test_misspelled_keyword_gets_a_suggestion(name: str) -> None:
    """Each keyword, required or not, is suggested when its name lacks a letter."""
    for keyword in keywords(name):
        with pytest.raises(TypeError, match=f"'{misspelled(keyword)}'; (did you mean|it takes)"):
            call_with(name, keyword)


def test_every_package_has_callables() -> None:
    """The walk finds constructors, factories and calls of the constructs and of the client."""
    expected = {
        "constructs_triton.Deployment.blue_green_canary",
        "constructs_triton.TritonEndpoint.__init__",
        "constructs_triton.TritonEndpoint.auto_scale_instance_count",
        "constructs_triton_tools.local.LocalEndpoint.__init__",
        "constructs_triton_tools.planning.simulate",
        "constructs_triton_client.TritonClient.for_endpoint",
    }
    assert expected <= {name for name in CALLABLES if keywords(name)}


OPEN: dict[str, tuple[Callable[[], object], str]] = {
    "an option of infer": (lambda: CLIENT.infer({}, ouputs=[]), "'ouputs'; did you mean"),
    "of infer_raw": (lambda: CLIENT.infer_raw(b"", paramters={}), "'paramters'; it takes data$"),
    "of infer_many": (
        lambda: list(CLIENT.infer_many([{}], concurency=2)),
        'did you mean "max_concurrency"',
    ),
    "of infer_async": (
        lambda: CLIENT.infer_async({}, input_locaton="s3://a/b/"),  # type: ignore[call-arg]
        'did you mean "input_location"',
    ),
}


@pytest.mark.parametrize("call", OPEN)
def test_call_that_takes_parameters_of_aws_suggests_its_own_keywords(call: str) -> None:
    """A call that passes keywords on to boto3 still recognizes its own keywords
    when they are misspelled.
    """
    function, message = OPEN[call]
    with pytest.raises(TypeError, match=message):
        function()


def test_method_is_named_after_the_class_of_the_caller() -> None:
    """The message has the class that the user wrote, and not the one that defines the method."""
    with pytest.raises(
        TypeError, match=r"^TritonClient\.for_endpoint\(\) got .* 'endpoint_ur'; did you mean"
    ):
        TritonClient.for_endpoint("x", endpoint_ur="")  # type: ignore[call-arg]
    with pytest.raises(
        TypeError, match=r"^TritonEnsembleEndpoint\(\) .* 'model_repositry'; did you mean"
    ):
        TritonEnsembleEndpoint(model_repositry=None, ensemble="e")  # type: ignore[call-arg]
