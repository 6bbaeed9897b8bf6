"""Values of a template that nothing has deployed.

There are no physical names. A resource's ``Ref`` is the name in its properties or, if there is
none, its logical ID. An attribute is ``<logical ID>.<attribute>``. Both are stable: two properties
that refer to the same bucket or model have the same value, also if they are in different stacks of
one app.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from constructs_triton_core.cloud_assembly.intrinsics import EvaluationBudget, Evaluator, text_of
from constructs_triton_core.cloud_assembly.shapes import ADOPTED_TYPE
from constructs_triton_core.cloud_assembly.template import Template
from constructs_triton_core.errors import TemplateError

__all__ = ["NO_ECHO", "PLACEHOLDER_ACCOUNT", "PLACEHOLDER_REGION", "Placeholders"]

#: Region and account of an environment-agnostic stack; the account is the example of AWS
#: documentation.
PLACEHOLDER_REGION = "us-east-1"
PLACEHOLDER_ACCOUNT = "123456789012"
#: How the value of a parameter with ``NoEcho`` begins, which the template does not have: a secret,
#: like those that a dynamic reference names.
NO_ECHO = "{{no-echo:"

#: The property with the name of a resource, for types that other resources refer to.
_BUCKET = "AWS::S3::Bucket"
_NAME_PROPERTIES = {
    _BUCKET: "BucketName",
    "AWS::SageMaker::Endpoint": "EndpointName",
    "AWS::SageMaker::EndpointConfig": "EndpointConfigName",
    "AWS::SageMaker::InferenceComponent": "InferenceComponentName",
    "AWS::SageMaker::Model": "ModelName",
    ADOPTED_TYPE: "EndpointName",
}
#: The type whose ``Ref`` is its ARN. Templates take the name from the ARN, because it is no
#: attribute.
_COMPONENT = "AWS::SageMaker::InferenceComponent"
_COMPONENT_NAME_LIMIT = 63
#: Stands for the ID of a stack at the end of its ARN.
_NO_STACK = "local"
#: The hashes at the end of a logical ID: that of this package's components, and that of the CDK.
_HASHES = re.compile(r"(?<=[A-Za-z])([0-9a-f]{8})?[0-9A-F]{8}$")
_LISTS = ("CommaDelimitedList", "List<")


class StackOutputs(Protocol):
    """The outputs of the stacks of an app.

    ``None`` stands for an output that the app does not have.
    """

    def exported(self, name: str, region: str) -> Any:
        """Return the value of an export of a Region."""

    def output(self, stack: str, name: str, region: str) -> Any:
        """Return the output of the stack with this name in a Region."""


@dataclass(frozen=True)
class Placeholders:
    """The resolver of a stack that is not deployed.

    ``parameters`` are the values that a parent stack passes to a nested stack. ``outputs`` are
    those of the other stacks of the app. ``budget`` bounds the evaluation of all of them.
    """

    template: Template
    stack_name: str
    region: str = PLACEHOLDER_REGION
    account: str = PLACEHOLDER_ACCOUNT
    parameters: Mapping[str, Any] = field(default_factory=dict)
    outputs: StackOutputs | None = None
    budget: EvaluationBudget = field(default_factory=EvaluationBudget, compare=False)

    @cached_property
    def evaluator(self) -> Evaluator:
        """Evaluates the template with these values."""
        return Evaluator(self.template, self, self.budget)

    def ref(self, name: str) -> Any:
        """Return a pseudo parameter, the name of a resource,
        or the value or default of a parameter.
        """
        pseudo = self._pseudo_parameters()
        if name in pseudo:
            return pseudo[name]
        if name in self.template.resources:
            return self._component_arn(name) if self._is_component(name) else self.name_of(name)
        return self._parameter(name)

    def get_att(self, logical_id: str, attribute: str) -> str:
        """Return the name or the ARN of a resource, or ``<logical ID>.<attribute>``."""
        resource = self.template.resources.get(logical_id)
        if resource is not None and attribute == _NAME_PROPERTIES.get(resource.type):
            return self.name_of(logical_id)
        if attribute == "Arn" and resource is not None and resource.type == _BUCKET:
            return (
                f"arn:{self._pseudo_parameters()['AWS::Partition']}:s3:::{self.name_of(logical_id)}"
            )
        if attribute == "InferenceComponentArn" and self._is_component(logical_id):
            return self._component_arn(logical_id)
        return f"{logical_id}.{attribute}"

    def import_value(self, name: str) -> Any:
        """Return the export of another stack of the app, else its name."""
        found = self.outputs and self.outputs.exported(name, self.region)
        return name if found is None else found

    def stack_output(self, stack: str, name: str, region: str | None) -> Any:
        """Return the output of another stack of the app, else ``<stack>.<output>``."""
        found = self.outputs and self.outputs.output(stack, name, region or self.region)
        return f"{stack}.{name}" if found is None else found

    def availability_zones(self, region: str) -> Sequence[str]:
        """Return the names that most Regions have."""
        return [f"{region}{letter}" for letter in "abc"]

    def name_of(self, logical_id: str) -> str:
        """Return the name of a resource: that of the template, else the logical ID.

        The logical ID of a component has no hashes in its name, if that tells it from the others.
        """
        resource = self.template.resources[logical_id]
        given = resource.properties.get(_NAME_PROPERTIES.get(resource.type, ""))
        name = self.evaluator.evaluate_known(given)
        # A name of the constructs ends with the ID of the stack, which a local run does not have.
        is_generated = self._is_component(logical_id) and str(name).endswith(f"-{_NO_STACK}")
        if name is not None and not isinstance(name, dict) and not is_generated:
            return str(name)
        return self._short_name(logical_id) if self._is_component(logical_id) else logical_id

    def _pseudo_parameters(self) -> dict[str, str]:
        china = self.region.startswith("cn-")
        stack = f"stack/{self.stack_name}/{_NO_STACK}"
        arn = f"arn:aws:cloudformation:{self.region}:{self.account}:{stack}"
        return {
            "AWS::AccountId": self.account,
            "AWS::Partition": "aws-cn" if china else "aws",
            "AWS::Region": self.region,
            "AWS::StackId": arn,
            "AWS::StackName": self.stack_name,
            "AWS::URLSuffix": "amazonaws.com.cn" if china else "amazonaws.com",
        }

    def _parameter(self, name: str) -> Any:
        declared = self.template.parameters.get(name, {})
        if name not in self.parameters and "Default" not in declared:
            if text_of(declared.get("NoEcho", False)) == "true":
                return f"{NO_ECHO}{name}}}}}"
            raise TemplateError(
                f"Ref refers to a parameter without a default value, got {name!r}; "
                "set the parameter's default"
            )
        value = self.parameters.get(name, declared.get("Default"))
        is_list = str(declared.get("Type", "")).startswith(_LISTS) and isinstance(value, str)
        return value.split(",") if is_list else value

    def _short_name(self, logical_id: str) -> str:
        names = [_HASHES.sub("", each) for each in self.template.resources_of_type(_COMPONENT)]
        name = _HASHES.sub("", logical_id)
        return (name if names.count(name) == 1 else logical_id)[:_COMPONENT_NAME_LIMIT]

    def _is_component(self, logical_id: str) -> bool:
        resource = self.template.resources.get(logical_id)
        return resource is not None and resource.type == _COMPONENT

    def _component_arn(self, logical_id: str) -> str:
        prefix = (
            f"arn:{self._pseudo_parameters()['AWS::Partition']}"
            f":sagemaker:{self.region}:{self.account}"
        )
        return f"{prefix}:inference-component/{self.name_of(logical_id)}"
