"""The resources of a deployed stack, with those of the stacks that are nested in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from constructs_triton_core.cloud_assembly.synthesized_stack import NESTED_STACK_TYPE

__all__ = ["LISTED", "nested_stack_of", "stack_resources"]

Resource = Mapping[str, Any]
_EMBEDDED = re.compile(r"Embedded stack (arn:\S+)")
#: The call that lists the resources of one stack, and the member of its answer.
LISTED = ("cloudformation", "list_stack_resources", "StackResourceSummaries")


def stack_resources(read: Callable[..., Iterable[Resource]], stack: str) -> Iterator[Resource]:
    """Yield the resources of a stack and of its nested stacks.

    ListStackResources returns a nested stack as one resource, whose physical ID is its ARN.

    Args:
        read: Lists the members of an answer of AWS: ``members`` or ``read_list`` of a reader.
        stack: Name or ARN of the stack.
    """
    for resource in read(*LISTED, StackName=stack):
        yield resource
        nested = nested_stack_of(resource)
        if nested is not None:
            yield from stack_resources(read, nested)


def nested_stack_of(resource: Resource) -> str | None:
    """Return the ARN of a nested stack; ``None`` for another resource or a deleted stack.

    ``resource`` is a row of ListStackResources, or an event of a stack.
    """
    is_deleted = resource.get("ResourceStatus") == "DELETE_COMPLETE"
    if resource["ResourceType"] != NESTED_STACK_TYPE or is_deleted:
        return None
    # An event of a nested stack that failed at once has the ARN only in its reason.
    named = _EMBEDDED.search(resource.get("ResourceStatusReason") or "")
    return resource.get("PhysicalResourceId") or (named and named[1])
