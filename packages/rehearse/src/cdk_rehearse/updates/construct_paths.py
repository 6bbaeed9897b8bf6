"""The construct paths of resources, which are easier to read than logical IDs."""

from __future__ import annotations

import re

from .versions import StackVersion, Version

__all__ = ["construct_paths"]

_PATH = "aws:cdk:path"
_ENDING = re.compile(r"(?:/(?:Resource|Default))+$")


def construct_paths(*versions: Version) -> dict[str, str]:
    """Return the path of each resource below its stack, by logical ID.

    The CDK derives a logical ID from this path, so two stacks have the same path for the same logical ID. The
    path is in the template if the CDK's command line ran the app, and beside the template otherwise. A
    resource that the CDK did not write has none.

    Args:
        versions: The versions to read; a later one takes precedence.
    """
    return {
        logical_id: _below(stack, path)
        for version in versions
        for stack in version.stacks
        for logical_id, path in {**stack.paths, **_paths_in_template(stack)}.items()
    }


def _paths_in_template(stack: StackVersion) -> dict[str, str]:
    found = {name: each.metadata.get(_PATH) for name, each in stack.template.resources.items()}
    return {name: path for name, path in found.items() if isinstance(path, str)}


def _below(stack: StackVersion, path: str) -> str:
    """The path without that of the stack and without the last construct, which the CDK adds to each."""
    known = sorted((name for name in stack.names if path.startswith(f"{name}/")), key=len)
    inner = path.removeprefix(f"{known[-1]}/") if known else path.partition("/")[2] or path
    return _ENDING.sub("", inner)
