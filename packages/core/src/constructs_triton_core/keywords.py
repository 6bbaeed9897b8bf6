"""Lets public callables suggest the keyword argument that was probably meant.

Python suggests names only from version 3.13 on. Of a function with ``**options`` it reports that a
required keyword is missing, and not which one is misspelled. The packages apply
:func:`check_keywords` to each public name when it is first used.
"""

from __future__ import annotations

import enum
import inspect
import sys
from collections.abc import Callable, Collection, Iterable, MutableMapping, Set
from functools import cache, wraps
from typing import Any, NamedTuple, TypeVar, cast, is_typeddict

from constructs_triton_core import OWN_PACKAGES
from constructs_triton_core.spelling import closest, did_you_mean

__all__ = ["check_known", "check_names", "keywords_of"]

ValueT = TypeVar("ValueT")
_CONSTRUCTORS = ("__init__", "__new__", "__call__")


def check_names(names: MutableMapping[str, Any], public: Iterable[str]) -> None:
    """Check the keywords of the public names of a module, whose ``globals()`` are ``names``."""
    names.update({name: check_keywords(names[name]) for name in public})


def check_keywords(value: ValueT) -> ValueT:
    """Let a function, or a class and its public methods, suggest keywords.

    A class is changed, together with its base classes of these packages. A function is replaced in
    its module. Other values are returned as they are.
    """
    if inspect.isclass(value):
        for base in inspect.getmro(value):
            if _has_own_methods(base):
                _check_methods(base)
    elif inspect.isfunction(value) and _is_own(value):
        checked = _checked(value)
        name, module = checked.__name__, sys.modules[checked.__module__]
        if getattr(module, name, None) is value:
            setattr(module, name, checked)
        return checked  # type: ignore[return-value] # it has the same signature
    return value


def check_known(given: Iterable[str], known: Iterable[str], callee: str) -> None:
    """Check keyword arguments against those that ``callee`` takes.

    Raises:
        TypeError: an unknown keyword, as Python raises it, with a suggestion.
    """
    names = list(known)
    for name in given:
        if name not in names:
            hint = did_you_mean(
                name, names, f"it takes {', '.join(names)}" if names else "it takes none"
            )
            raise TypeError(f"{callee} got an unexpected keyword argument '{name}'; {hint}")


class Keywords(NamedTuple):
    """The keywords of a function, those that are required, and whether it takes any other."""

    names: Set[str]
    positional: tuple[str, ...]
    required: frozenset[str]
    is_open: bool

    def check(self, given: Collection[str], callee: str, positional: int) -> None:
        """Check keywords; of an open function, only those close to a required one that is missing.

        ``positional`` is the number of arguments that were given without a keyword.

        Raises:
            TypeError: an unknown keyword.
        """
        missing = (
            self.required.difference(given, self.positional[:positional]) if self.is_open else ()
        )
        for name in given:
            if name not in self.names and (not self.is_open or closest(name, missing) is not None):
                check_known([name], missing or self.names, callee)


def keywords_of(function: Callable[..., Any]) -> Keywords:
    """Return the keywords that a function takes, with those of ``**options:
    Unpack[SomeTypedDict]``.
    """
    names: list[str] = []
    positional: list[str] = []
    required: set[str] = set()
    is_open = hasattr(function, "__checks_keywords_itself__")
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            options = _options(function, parameter.name)
            names += options or ()
            is_open = is_open or options is None
        elif parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            names.append(parameter.name)
            if parameter.default is parameter.empty:
                required.add(parameter.name)
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            positional.append(parameter.name)
    own = dict.fromkeys(each for each in names if each not in ("self", "cls"))
    return Keywords(own.keys(), tuple(positional), frozenset(required), is_open)


def _options(function: Callable[..., Any], name: str) -> Iterable[str] | None:
    """The names of ``**options: Unpack[SomeTypedDict]``."""
    function = inspect.unwrap(function)
    annotation = str(function.__annotations__.get(name))
    options = function.__globals__.get(annotation.removeprefix("Unpack[").removesuffix("]"))
    return tuple(cast(type, options).__annotations__) if is_typeddict(cast(type, options)) else None


def _has_own_methods(cls: Any) -> bool:
    is_other = (
        is_typeddict(cls) or issubclass(cls, enum.Enum) or getattr(cls, "_is_protocol", False)
    )
    return _is_own(cls) and not is_other


def _is_own(value: Any) -> bool:
    return str(value.__module__).partition(".")[0] in OWN_PACKAGES


def _check_methods(cls: type) -> None:
    for name, member in list(vars(cls).items()):
        if name not in _CONSTRUCTORS and name.startswith("_"):
            continue
        if isinstance(member, classmethod | staticmethod):
            if _is_checkable(member.__func__):
                setattr(cls, name, type(member)(_checked(member.__func__, cls)))
        elif inspect.isfunction(member) and _is_checkable(member):
            setattr(cls, name, _checked(member, cls))


def _is_checkable(function: Any) -> bool:
    return inspect.isfunction(function) and not hasattr(function, "__checks_keywords__")


def _checked(function: Callable[..., Any], owner: type | None = None) -> Callable[..., Any]:
    """Return a function that checks the keywords and calls this one;
    ``owner`` is the class of a method.
    """
    if inspect.iscoroutinefunction(function) or hasattr(function, "__checks_keywords__"):
        return function
    known = cache(lambda: keywords_of(function))

    @wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        if keywords and not keywords.keys() <= known().names:
            known().check(keywords, f"{_name(function, owner, args)}()", len(args))
        return function(*args, **keywords)

    call.__checks_keywords__ = True  # type: ignore[attr-defined] # marks what is wrapped already
    return call


def _name(function: Callable[..., Any], owner: type | None, args: tuple[Any, ...]) -> str:
    """The name as the caller wrote it, with the class that inherits the method."""
    if owner is None:
        return function.__name__

    # The first argument of a class method is the class, and that of a method an instance of it.
    first = args[0] if args else None
    called_class = first if inspect.isclass(first) else type(first)
    class_name = called_class.__name__ if issubclass(called_class, owner) else owner.__name__
    if function.__name__ in _CONSTRUCTORS:
        return class_name
    return f"{class_name}.{function.__name__}"
