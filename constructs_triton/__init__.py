"""AWS CDK constructs for NVIDIA Triton Inference Server on Amazon SageMaker.

Names resolve on first use (PEP 562), so that the client and the command line start no Node process.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

_MODULE_OF: dict[str, str] = {}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return __all__
