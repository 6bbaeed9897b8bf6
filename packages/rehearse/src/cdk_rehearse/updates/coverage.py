"""How much of a version a rehearsal simulates, which its first line says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from constructs_triton_core.cloud_assembly.synthesized_stack import NESTED_STACK_TYPE

from ..providers import is_custom
from ..providers.provider import Provider
from .versions import Version

__all__ = ["coverage"]

#: What a template contains and no service creates.
_NO_RESOURCES = ("AWS::CDK::Metadata", "AWS::CloudFormation::WaitConditionHandle")


def coverage(version: Version, not_simulated: Mapping[str, Iterable[str]]) -> tuple[int, int]:
    """Return the number of resources of a version, and how many of them are simulated.

    Args:
        version: The version, with its nested stacks.
        not_simulated: What the account noted: types with ``<stack>/<logical ID>``.
    """
    noted = {
        kind: {name.rpartition("/")[2] for name in names} for kind, names in not_simulated.items()
    }

    resources = 0
    simulated = 0
    for stack in version.stacks:
        for synthesized in stack.synthesized():
            for name, resource in synthesized.existing().items():
                if resource.type in _NO_RESOURCES:
                    continue
                resources += 1
                is_noted = name in noted.get(resource.type, ())
                if _has_provider(resource.type) and not is_noted:
                    simulated += 1
    return resources, simulated


def _has_provider(type: str) -> bool:
    return type in Provider.by_type or is_custom(type) or type == NESTED_STACK_TYPE
