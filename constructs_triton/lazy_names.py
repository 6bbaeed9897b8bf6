"""Names of a package that are imported when they are first asked for (PEP 562).

So importing a package costs what is used of it: the command line and the client start no Node process and
load neither protobuf nor gRPC. A package says where its names live, and shows them to type checkers by
ordinary imports below ``if TYPE_CHECKING``::

    __getattr__, __dir__ = lazy_names(__name__, {"pack": ".packing"})
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(
    package: str, module_of: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of ``package``, for names and the modules that they live in.

    A module that begins with a dot is relative to the package.
    """

    def resolve(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(module_of[name], package), name)

    return resolve, lambda: sorted(module_of)
