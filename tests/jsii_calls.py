"""Runs an app and prints how many times it calls the CDK's process:
``python jsii_calls.py app.py``.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from typing import Any

from jsii._kernel.providers.process import ProcessProvider

# A callback of the CDK, such as that of a widget, is answered with another message.
MESSAGES = (
    "load",
    "create",
    "get",
    "set",
    "sget",
    "sset",
    "invoke",
    "sinvoke",
    "complete",
    "sync_complete",
)


def count_calls(app: str) -> int:
    """Run an app as ``python app.py`` does, and return its calls; each still reaches the CDK."""
    calls = 0

    def counted(send: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal calls
            calls += 1
            return send(*arguments, **named)

        return call

    for name in MESSAGES:
        setattr(ProcessProvider, name, counted(getattr(ProcessProvider, name)))
    runpy.run_path(app, run_name="__main__")
    return calls


if __name__ == "__main__":
    sys.stdout.write(f"{count_calls(sys.argv[1])}\n")
