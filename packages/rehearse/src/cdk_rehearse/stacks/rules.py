"""What CloudFormation checks for every type, before it calls a service. ``rules.json`` has the
facts.

* A resource cannot be created if another one has its identifier, in any stack or without one.
  Source: CloudFormation CLI user guide, "Resource type handler contract": a create handler must
  fail with ``AlreadyExists``. A few older handlers overwrite the resource instead, and the cleanup
  then deletes it.
* The type of a logical ID does not change (observed: aws-sam-cli issue 6786).
* Quotas of templates (user guide, "Understand CloudFormation quotas").
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from constructs_triton_core.cloud_assembly.template import Template, value_at

from ..errors import StackError
from ..providers.provider import Deployed, Request
from ..services.resource_schemas import resource_schema
from ..services.service_api import ServiceApi

_FACTS: Mapping[str, Any] = json.loads(Path(__file__).with_name("rules.json").read_text())
_IDENTIFYING: dict[str, list[str]] = {}
"""The identifying properties where the schema does not give them;
the first one must have a value. Source: the API reference of each service, which refuses to create
a second one.
"""
for _names_by_type in _FACTS["identifying"].values():
    _IDENTIFYING |= _names_by_type

_WITHOUT_CASE = re.compile(r"AWS::(IAM|RDS)::|AWS::SageMaker::Endpoint$")
"""Names that differ in case only are equal (API references: CreateRole, CreateDBInstance,
CreateEndpoint).
"""


def _values(request: Request) -> list[str]:
    """The values that identify a resource; empty if the template leaves one to the service."""
    paths, required = resource_schema(request.type).identifying
    if request.type in _IDENTIFYING:
        paths = [tuple(name.split(".")) for name in _IDENTIFYING[request.type]]
        required = 1
    if _shares_its_names(request):
        return []
    values = [_as_name(value_at(request.properties, path)) for path in paths]
    return values if all(values[:required]) else []


def _shares_its_names(request: Request) -> bool:
    """Whether several resources of a type may have the same identifying properties.

    A VPC can have several endpoints for a service, but one of them with private DNS:
    "private-dns-enabled cannot be set because there is already a conflicting DNS domain"
    (aws-samples/amazon-mwaa-examples#76, aws-cloudformation/cfn-lint#4492).
    """
    if request.type != "AWS::EC2::VPCEndpoint":
        return False
    return str(request.properties.get("PrivateDnsEnabled")).lower() != "true"


def _as_name(value: Any) -> str:
    """A value that can be part of an identifier, such as a name or a port; else ""."""
    return str(value) if isinstance(value, str | int) else ""


def _place(kind: str, values: list[str]) -> list[str]:
    """What identifies a resource: its values, but for what its service does not tell apart.

    A path of API Gateway has one variable below each part, whatever its name is: "A sibling of this
    resource already has a variable path part" (aws/aws-cdk#25172).
    """
    if kind == "AWS::ApiGateway::Resource" and values and values[0].startswith("{"):
        return ["{}", *values[1:]]
    return values


def _identifier(request: Request) -> tuple[str, ...]:
    """The type and the values that identify a resource."""
    # Types that share their names, such as both types of DynamoDB tables, count as one.
    shared_type = _FACTS["same_names"].get(request.type, request.type)
    values = _place(request.type, _values(request))
    if _WITHOUT_CASE.match(request.type):
        values = [value.casefold() for value in values]
    return shared_type, *values


class Identifiers(dict[tuple[str, ...], tuple[str, str]]):
    """The resources that exist: the IDs of the resource and of its stack, by the identifier."""

    def expect_free(self, request: Request, current: Deployed | None, api: ServiceApi) -> None:
        """Raise ``StackError`` if a resource exists that has the identifier.

        It may be ``current``.
        """
        name = "|".join(filter(None, _values(request)))
        held, stack_id = self.get(_identifier(request), (None, ""))
        if current is not None and held == current.physical.id:
            raise StackError(
                "CloudFormation cannot update a stack when a custom-named resource requires "
                f"replacing. Rename {name} and update the stack again."
            )

        # A service may have created a log group, which no stack has.
        is_group = request.type == "AWS::Logs::LogGroup" and name in api.backend("logs").groups
        if held is not None or is_group:
            place = f" in stack {stack_id}" if stack_id else ""
            raise StackError(f"{name} already exists{place}")

    def add(self, deployed: Deployed, stack_id: str) -> None:
        """Note that a resource exists, in a stack or without one."""
        if _values(deployed.request):
            self[_identifier(deployed.request)] = (deployed.physical.id, stack_id)

    def remove(self, deployed: Deployed) -> None:
        """Note that a resource was deleted."""
        self.pop(_identifier(deployed.request), None)

    def add_linked_roles(self) -> None:
        """Note the service-linked roles of Application Auto Scaling,
        which remain without targets.
        """
        for kind, *values in list(self):
            if kind == "AWS::ApplicationAutoScaling::ScalableTarget":
                service = f"{values[2]}.application-autoscaling.amazonaws.com"
                self.setdefault(("AWS::IAM::ServiceLinkedRole", service, ""), ("", ""))


def refusals(template: Template, present: Mapping[str, Deployed]) -> Iterator[str]:
    """Yield the quotas that a template exceeds, and the resources whose types it changes."""
    yield from _exceeded_quotas(template)

    changed = [
        name
        for name, resource in template.resources.items()
        if name in present and present[name].request.type != resource.type
    ]
    if changed:
        yield (
            "Update of resource type is not permitted. The new template modifies resource type of "
            f"the following resources: [{', '.join(changed)}]"
        )


def _exceeded_quotas(template: Template) -> Iterator[str]:
    """Yield CloudFormation's message for each quota that a template exceeds."""
    if len((template.text or json.dumps(template.body)).encode()) > 1_000_000:
        yield "Template may not exceed 1000000 bytes in size."
    if len(str(template.body.get("Description")).encode()) > 1024:
        yield "Template format error: 'Description' length is greater than 1024."

    for section, most in _FACTS["most"].items():
        names = template.body.get(section) or {}
        if len(names) > most:
            number = f"Number of {section.lower()}, {len(names)}"
            yield f"Template format error: {number}, is greater than maximum allowed, {most}"
        for name in names:
            if not re.fullmatch("[A-Za-z0-9]{1,255}", name):
                yield (
                    f"Template format error: {section} name {name} is non alphanumeric or too long."
                )
