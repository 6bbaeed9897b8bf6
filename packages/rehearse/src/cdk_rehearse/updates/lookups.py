"""Values that a synthesis should have looked up in AWS, and has not.

Without the CDK's command line, or without credentials, the CDK writes stand-in values such as
``dummy1a`` into the templates, and lists the lookups as ``missing`` in ``manifest.json``. Source:
``MissingContext`` of the cloud assembly schema of aws-cdk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from constructs_triton_core.cloud_assembly.assembly import Assembly
from constructs_triton_core.errors import TemplateError

from .versions import Version

#: The stand-ins of lookups whose entry in the manifest does not have them. Source: the functions
#: ``availabilityZones`` and ``fromLookup`` of aws-cdk-lib.
_UNLISTED = re.compile(r"dummy1[abc]|DUMMY|\bami-1234\b|\bvpc-12345\b|\b[ps]-(?:12345|67890)\b")


def expect_looked_up(reason: str, *versions: Version) -> None:
    """Raise ``TemplateError`` if a failure is due to a stand-in for a value of AWS.

    What the update would do with the real value is not known, so it is not refused.
    """
    for directory in _directories(*versions):
        for lookup in Assembly(directory).missing_lookups():
            if _is_named(reason, lookup):
                raise TemplateError(
                    f"{directory}: {lookup['key']} has not been looked up in AWS, "
                    "so the template has a stand-in for it; run `npx cdk synth` with AWS "
                    "credentials, commit the cdk.context.json that it writes, and pass its folder"
                )


def _directories(*versions: Version) -> list[Path]:
    """The folders of the assemblies, each once."""
    found: dict[Path, None] = {}
    for version in versions:
        for stack in version.stacks:
            if stack.directory is not None:
                found[stack.directory] = None
    return list(found)


def _is_named(reason: str, lookup: Mapping[str, Any]) -> bool:
    """Whether a reason contains a stand-in of a lookup."""
    properties = lookup.get("props")
    listed = properties.get("dummyValue") if isinstance(properties, dict) else None
    stand_ins = list(_strings(listed))
    if stand_ins:
        return any(stand_in in reason for stand_in in stand_ins)
    return _UNLISTED.search(reason) is not None


def _strings(value: Any) -> Iterator[str]:
    """Yield the strings of a value, however deep."""
    if isinstance(value, str) and value:
        yield value
    elif isinstance(value, dict):
        for member in value.values():
            yield from _strings(member)
    elif isinstance(value, list):
        for element in value:
            yield from _strings(element)
