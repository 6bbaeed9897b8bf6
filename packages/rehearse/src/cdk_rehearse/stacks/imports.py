"""The import of existing resources into a stack: change sets of the type ``IMPORT``.

Only SageMaker's models, endpoint configurations and endpoints are simulated. Whether AWS imports
endpoints and endpoint configurations is not settled: its lists contradict each other.

Source: CloudFormation user guide, "Import AWS resources into a CloudFormation stack".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from constructs_triton_core.cloud_assembly.template import Template

from ..errors import StackError
from ..providers.provider import Deployed, Physical, Request
from ..services.service_api import ServiceApi
from .names import Names
from .stack import Stack, Stacks

_KINDS = {
    "AWS::SageMaker::Endpoint": "Endpoint",
    "AWS::SageMaker::EndpointConfig": "EndpointConfig",
    "AWS::SageMaker::Model": "Model",
}
"""The end of the names of SageMaker's operations and members, by resource type."""


def identifiers(template: Template) -> list[dict[str, Any]]:
    """The identifiers of the resource types of a template,
    as ``GetTemplateSummary`` returns them.
    """
    logical_ids: dict[str, list[str]] = {}
    for logical_id, resource in template.resources.items():
        if resource.type in _KINDS:
            logical_ids.setdefault(resource.type, []).append(logical_id)

    summaries = []
    for resource_type, of_type in logical_ids.items():
        summaries.append(
            {
                "ResourceType": resource_type,
                "LogicalResourceIds": of_type,
                "ResourceIdentifiers": [f"{_KINDS[resource_type]}Arn"],
            }
        )
    return summaries


def imported(given: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The ARN of each resource to import, by its logical ID, from ``ResourcesToImport``."""
    types = [resource["ResourceType"] for resource in given]
    unsupported = [resource_type for resource_type in types if resource_type not in _KINDS]
    if unsupported:
        raise StackError(
            "The following resource types are not supported for resource import: "
            f"{', '.join(unsupported)}"
        )

    arns = {}
    for resource in given:
        # These types have one identifier.
        arns[resource["LogicalResourceId"]] = next(iter(resource["ResourceIdentifier"].values()))
    return arns


def import_resources(
    stacks: Stacks,
    stack: Stack,
    template: Template,
    parameters: Mapping[str, Any],
    arns: Mapping[str, str],
) -> None:
    """Make existing resources part of a stack, without a change of the resources."""
    _expect_importable(stacks, stack, template, arns)
    evaluator = Names(stacks, stack, parameters, stack.resources).evaluator(template)
    # All resources have to exist before one of them becomes part of the stack.
    found = {}
    for logical_id, arn in arns.items():
        found[logical_id] = _existing(stacks.api, arn, template.resources[logical_id].type)

    stack.template = template
    stack.parameters = dict(parameters)
    for logical_id, physical in found.items():
        resource = template.resources[logical_id]
        properties = evaluator.evaluate(dict(resource.properties))
        request = Request(stack.name, stack.id, logical_id, resource.type, properties)
        deployed = Deployed(
            request, physical, resource.deletion_policy, resource.update_replace_policy
        )
        stack.resources[logical_id] = deployed
        stacks.identifiers.add(deployed, stack.id)
        stack.record(
            logical_id,
            resource.type,
            physical.id,
            "IMPORT_COMPLETE",
            "Resource import completed.",
        )


def _expect_importable(
    stacks: Stacks, stack: Stack, template: Template, arns: Mapping[str, str]
) -> None:
    """Raise ``StackError`` if CloudFormation refuses to import these resources."""
    added = template.resources.keys() - stack.resources.keys()
    if added != arns.keys():
        names = ", ".join(sorted(added ^ arns.keys()))
        raise StackError(f"As part of the import operation, you cannot modify or add [{names}]")

    for name in arns:
        if "DeletionPolicy" not in template.body["Resources"][name]:
            raise StackError(
                f"Resources [{name}] is missing the DeletionPolicy attribute in the template"
            )

    for owner in stacks.all:
        for deployed in owner.resources.values():
            arn = deployed.physical.id
            if deployed.request.type in _KINDS and arn in arns.values():
                raise StackError(f"{arn} already exists in stack {deployed.request.stack_name}")


def _existing(api: ServiceApi, arn: str, type: str) -> Physical:
    """Return what SageMaker describes under an ARN."""
    kind = _KINDS[type]
    name = arn.rpartition("/")[2]
    found = api.call("sagemaker", f"Describe{kind}", **{f"{kind}Name": name})
    return Physical(arn, {f"{kind}Name": found[f"{kind}Name"], f"{kind}Arn": arn})
