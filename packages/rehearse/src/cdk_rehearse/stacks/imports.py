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
}
_KINDS["AWS::SageMaker::Model"] = "Model"


def identifiers(template: Template) -> list[dict[str, Any]]:
    """The identifiers of the resource types of a template,
    as ``GetTemplateSummary`` returns them.
    """
    found: dict[str, list[str]] = {}
    for name, each in template.resources.items():
        if each.type in _KINDS:
            found.setdefault(each.type, []).append(name)
    return [
        {
            "ResourceType": kind,
            "LogicalResourceIds": names,
            "ResourceIdentifiers": [f"{_KINDS[kind]}Arn"],
        }
        for kind, names in found.items()
    ]


def imported(given: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The ARN of each resource to import, by its logical ID, from ``ResourcesToImport``."""
    unsupported = [each["ResourceType"] for each in given if each["ResourceType"] not in _KINDS]
    if unsupported:
        what = "The following resource types are not supported for resource import"
        raise StackError(f"{what}: {', '.join(unsupported)}")
    return {
        each["LogicalResourceId"]: next(iter(each["ResourceIdentifier"].values())) for each in given
    }


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
    physical = {
        name: _existing(stacks.api, arns[name], template.resources[name].type) for name in arns
    }
    stack.template, stack.parameters = template, dict(parameters)
    for name, each in physical.items():
        resource = template.resources[name]
        properties = evaluator.evaluate(dict(resource.properties))
        request = Request(stack.name, stack.id, name, resource.type, properties)
        policies = (resource.deletion_policy, resource.update_replace_policy)
        stack.resources[name] = Deployed(request, each, *policies)
        stacks.identifiers.add(stack.resources[name], stack.id)
        stack.record(name, resource.type, each.id, "IMPORT_COMPLETE", "Resource import completed.")


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
    for each in (each for owner in stacks.all for each in owner.resources.values()):
        if each.request.type in _KINDS and each.physical.id in arns.values():
            raise StackError(
                f"{each.physical.id} already exists in stack {each.request.stack_name}"
            )


def _existing(api: ServiceApi, arn: str, type: str) -> Physical:
    kind, name = _KINDS[type], arn.rpartition("/")[2]
    found = api.call("sagemaker", f"Describe{kind}", **{f"{kind}Name": name})
    return Physical(arn, {f"{kind}Name": found[f"{kind}Name"], f"{kind}Arn": arn})
