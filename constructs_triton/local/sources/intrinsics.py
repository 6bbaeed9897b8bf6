"""Evaluates the CloudFormation intrinsic functions that the properties of an endpoint use.

Nothing is deployed, so there are no physical names. A resource's ``Ref`` is the name in its properties or, if
there is none, its logical ID. An attribute is ``<logical ID>.<attribute>``. Both are stable: two properties
that refer to the same bucket or model have the same value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from constructs_triton.errors import LocalEndpointError

__all__ = ["LOCAL_ACCOUNT", "LOCAL_REGION", "Template"]

#: Region and account of an environment-agnostic stack; the account is the example of AWS documentation.
LOCAL_REGION = "us-east-1"
LOCAL_ACCOUNT = "123456789012"

_PLACEHOLDER = re.compile(r"\$\{(!?)([^}]*)\}")
#: The property with the name of a resource, for types that other resources refer to.
_NAME_PROPERTIES = {
    "AWS::S3::Bucket": "BucketName",
    "AWS::SageMaker::Endpoint": "EndpointName",
    "AWS::SageMaker::EndpointConfig": "EndpointConfigName",
    "AWS::SageMaker::InferenceComponent": "InferenceComponentName",
    "AWS::SageMaker::Model": "ModelName",
}
#: The type whose ``Ref`` is its ARN. Templates take the name from the ARN, because it is no attribute.
_COMPONENT = "AWS::SageMaker::InferenceComponent"
_COMPONENT_NAME_LIMIT = 63
#: The hashes at the end of a logical ID: that of this package's components, and that of the CDK.
_HASHES = re.compile(r"(?<=[A-Za-z])([0-9a-f]{8})?[0-9A-F]{8}$")


@dataclass(frozen=True, slots=True)
class Template:
    """A synthesized template whose values can be evaluated.

    ``name`` is the stack's name. ``parameters`` are the values that a parent stack passes to a nested stack.
    """

    name: str
    body: Mapping[str, Any]
    region: str = LOCAL_REGION
    account: str = LOCAL_ACCOUNT
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def resources(self) -> Mapping[str, Mapping[str, Any]]:
        """The resources by logical ID."""
        found: Mapping[str, Mapping[str, Any]] = self.body.get("Resources", {})
        return found

    def resources_of_type(self, *types: str) -> dict[str, Mapping[str, Any]]:
        """Return the resources of these CloudFormation types, by logical ID."""
        return {key: value for key, value in self.resources.items() if value.get("Type") in types}

    def properties(self, logical_id: str) -> dict[str, Any]:
        """Return the evaluated properties of a resource."""
        found = self.evaluate(self.resources[logical_id].get("Properties", {}))
        return {key: value for key, value in found.items() if value is not None}

    def evaluate(self, value: Any) -> Any:
        """Return ``value`` with every intrinsic function replaced by its result.

        Raises:
            LocalEndpointError: a function needs a deployed stack, or a parameter or mapping has no value.
        """
        if isinstance(value, list):
            return [self.evaluate(item) for item in value]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            function, argument = next(iter(value.items()))
            if function == "Ref" or function.startswith("Fn::"):
                return self._call(function, argument)
        return {key: self.evaluate(item) for key, item in value.items()}

    def _call(self, function: str, argument: Any) -> Any:
        evaluate = _FUNCTIONS.get(function)
        if evaluate is None:
            raise LocalEndpointError(
                f"{self.name}: {function} cannot be evaluated without a deployed stack, "
                f"got {argument!r}; use literal values in the endpoint's properties"
            )
        return evaluate(self, argument)

    def _pseudo_parameters(self) -> dict[str, str | None]:
        china = self.region.startswith("cn-")
        return {
            "AWS::AccountId": self.account,
            "AWS::NoValue": None,
            "AWS::Partition": "aws-cn" if china else "aws",
            "AWS::Region": self.region,
            "AWS::StackId": f"arn:aws:cloudformation:{self.region}:{self.account}:stack/{self.name}/local",
            "AWS::StackName": self.name,
            "AWS::URLSuffix": "amazonaws.com.cn" if china else "amazonaws.com",
        }

    def _ref(self, name: Any) -> Any:
        pseudo = self._pseudo_parameters()
        if name in pseudo:
            return pseudo[name]
        if name in self.resources:
            return self._component_arn(name) if self._is_component(name) else self.name_of(name)
        if name in self.parameters:
            return self.parameters[name]
        return self._default(name)

    def _default(self, name: str) -> Any:
        parameter = self.body.get("Parameters", {}).get(name)
        if parameter is None or "Default" not in parameter:
            raise LocalEndpointError(
                f"{self.name}: Ref refers to a parameter without a default value, got {name!r}; "
                "set the parameter's default"
            )
        return parameter["Default"]

    def name_of(self, logical_id: str) -> str:
        """Return the name of a resource: that of the template, else the logical ID.

        The logical ID of a component has no hashes in its name, if that tells it from the others.
        """
        resource = self.resources[logical_id]
        given = resource.get("Properties", {}).get(_NAME_PROPERTIES.get(resource.get("Type", ""), ""))
        if given is not None:
            return str(self.evaluate(given))
        return self._short_name(logical_id) if self._is_component(logical_id) else logical_id

    def _short_name(self, logical_id: str) -> str:
        names = [_HASHES.sub("", each) for each in self.resources_of_type(_COMPONENT)]
        name = _HASHES.sub("", logical_id)
        return (name if names.count(name) == 1 else logical_id)[:_COMPONENT_NAME_LIMIT]

    def _is_component(self, logical_id: str) -> bool:
        return self.resources.get(logical_id, {}).get("Type") == _COMPONENT

    def _component_arn(self, logical_id: str) -> str:
        prefix = f"arn:{self._pseudo_parameters()['AWS::Partition']}:sagemaker:{self.region}:{self.account}"
        return f"{prefix}:inference-component/{self.name_of(logical_id)}"

    def _get_att(self, argument: Any) -> Any:
        logical_id, attribute = argument.split(".", 1) if isinstance(argument, str) else argument
        resource = self.resources.get(logical_id, {})
        if attribute == _NAME_PROPERTIES.get(resource.get("Type", "")):
            return self.name_of(logical_id)
        if attribute == "InferenceComponentArn" and self._is_component(logical_id):
            return self._component_arn(logical_id)
        return f"{logical_id}.{attribute}"

    def _sub(self, argument: Any) -> str:
        text, variables = (argument, {}) if isinstance(argument, str) else argument

        def replace(match: re.Match[str]) -> str:
            literal, name = match.groups()
            if literal:
                return f"${{{name}}}"
            if name in variables:
                return str(self.evaluate(variables[name]))
            return str(self._get_att(name) if "." in name else self._ref(name))

        return _PLACEHOLDER.sub(replace, text)

    def _find_in_map(self, argument: Any) -> Any:
        name, first, second = (self.evaluate(part) for part in argument[:3])
        try:
            return self.body["Mappings"][name][first][second]
        except KeyError:
            if len(argument) > 3 and "DefaultValue" in argument[3]:
                return self.evaluate(argument[3]["DefaultValue"])
            raise LocalEndpointError(
                f"{self.name}: mapping {name} has no entry for {first!r}, {second!r}; "
                "set the stack's env to a Region of the mapping"
            ) from None

    def _if(self, argument: Any) -> Any:
        name, then, otherwise = argument
        return self.evaluate(then if self._holds(self.body["Conditions"][name]) else otherwise)

    def _holds(self, condition: Mapping[str, Any]) -> bool:
        function, argument = next(iter(condition.items()))
        match function:
            case "Condition":
                return self._holds(self.body["Conditions"][argument])
            case "Fn::Equals":
                left, right = (self.evaluate(part) for part in argument)
                return bool(left == right)
            case "Fn::Not":
                return not self._holds(argument[0])
            case "Fn::And":
                return all(self._holds(part) for part in argument)
            case "Fn::Or":
                return any(self._holds(part) for part in argument)
        raise LocalEndpointError(f"{self.name}: unknown condition function, got {function!r}; use Fn::Equals")

    def _join(self, argument: Any) -> str:
        separator, parts = argument
        return str(separator).join(str(part) for part in self.evaluate(parts))

    def _select(self, argument: Any) -> Any:
        index, values = argument
        return self.evaluate(values)[int(index)]

    def _split(self, argument: Any) -> list[str]:
        separator, text = argument
        return str(self.evaluate(text)).split(separator)


_FUNCTIONS: dict[str, Callable[[Template, Any], Any]] = {
    "Ref": Template._ref,
    "Fn::FindInMap": Template._find_in_map,
    "Fn::GetAtt": Template._get_att,
    "Fn::If": Template._if,
    "Fn::Join": Template._join,
    "Fn::Select": Template._select,
    "Fn::Split": Template._split,
    "Fn::Sub": Template._sub,
}
