"""The resources that exist only while an ``OffSwitch`` is on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

import aws_cdk as cdk
import jsii
from aws_cdk import aws_applicationautoscaling as appscaling
from constructs import IValidation

from constructs_triton_core.cloud_assembly.template import references

if TYPE_CHECKING:
    from aws_cdk import aws_sagemaker as sagemaker

_ElementT = TypeVar("_ElementT", bound=cdk.CfnElement)


@jsii.implements(IValidation)
class SwitchedElements:
    """Sets the condition of a switch on the endpoints that it controls, and on what needs them.

    It does so when the app is validated, because references and dependencies are known only then.
    ``endpoints`` has the resource of each endpoint by the path of its construct, with a slash at
    the end.
    """

    def __init__(
        self,
        parameter: cdk.CfnParameter,
        condition: cdk.CfnCondition,
        *,
        endpoints: Mapping[str, sagemaker.CfnEndpoint],
    ) -> None:
        self._parameter = parameter
        self._condition = condition
        self._endpoints = endpoints

    def validate(self) -> list[str]:
        """Set the condition of what the switch turns off,
        and return errors for what else refers to it.
        """
        stack = self._parameter.stack
        found = {
            stack.get_logical_id(resource): resource
            for resource in elements_of(stack, cdk.CfnResource)
        }
        needs = {name: _needs(resource) for name, resource in found.items()}
        off = self._turned_off(found, needs)
        for name in off:
            found[name].cfn_options.condition = self._condition
        referring: list[tuple[cdk.CfnElement, set[str]]] = [
            (resource, needs[name])
            for name, resource in found.items()
            if not resource.cfn_options.condition
        ]
        referring += [
            (output, references(stack.resolve(output.value)))
            for output in elements_of(stack, cdk.CfnOutput)
            if not output.condition
        ]
        errors = [
            self._dangling(element, found[min(names & off)])
            for element, names in referring
            if names & off
        ]
        for name in sorted(found.keys() - off):
            errors += self._lost_scaling(found[name])
        return errors

    def _turned_off(
        self, found: Mapping[str, cdk.CfnResource], needs: Mapping[str, set[str]]
    ) -> set[str]:
        """The logical ids of the endpoints, and of what below their constructs needs them."""
        paths = tuple(self._endpoints)
        inner = {name for name, resource in found.items() if resource.node.path.startswith(paths)}
        stack = self._parameter.stack
        off = {stack.get_logical_id(endpoint) for endpoint in self._endpoints.values()}
        # Without an endpoint, these alarms would ring.
        off |= {
            name for name in inner if getattr(found[name], "treat_missing_data", "") == "breaching"
        }
        while more := {name for name in inner - off if needs[name] & off}:
            off |= more
        return off

    def _dangling(self, element: cdk.CfnElement, other: cdk.CfnResource) -> str:
        return (
            f"{element.node.path}: refers to {other.node.path}, which does not exist while "
            f"{self._parameter.node.id} is false; use endpoint_name or endpoint_arn of the "
            "endpoint, remove the dependency, or set the condition of this resource or output to "
            "that of the OffSwitch"
        )

    def _lost_scaling(self, resource: cdk.CfnResource) -> Iterator[str]:
        if not isinstance(resource, appscaling.CfnScalableTarget):
            return
        for endpoint in self._endpoints.values():
            if str(resource.resource_id).startswith(f"endpoint/{endpoint.endpoint_name}/"):
                yield (
                    f"{resource.node.path}: scales {resource.resource_id}, and SageMaker deletes "
                    "its scaling with the endpoint; call auto_scale_instance_count "
                    "on the construct that creates the endpoint"
                )


def elements_of(stack: cdk.Stack, element_type: type[_ElementT]) -> list[_ElementT]:
    """The elements of this type in the template of the stack."""
    return [
        element
        for element in stack.node.find_all()
        if isinstance(element, element_type) and element.stack is stack
    ]


def _needs(resource: cdk.CfnResource) -> set[str]:
    """The logical ids that a resource refers to or depends on."""
    stack = resource.stack
    depends_on = {
        stack.get_logical_id(other)
        for other in resource.obtain_dependencies()
        if isinstance(other, cdk.CfnResource)
    }
    return references(stack.resolve(resource._cfn_properties)) | depends_on
