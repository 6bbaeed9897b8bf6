"""The properties of a resource that are known before a deployment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack
from constructs_triton_core.errors import TemplateError

__all__ = ["known_properties"]


def known_properties(stack: SynthesizedStack, logical_id: str) -> Mapping[str, Any]:
    """The properties of a resource; none if they have a form that CloudFormation refuses."""
    try:
        return stack.known_properties(logical_id)
    except TemplateError:
        return {}
