"""SageMaker: model, endpoint configuration, endpoint, inference component."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import StackError
from .provider import Deployed, Physical, Provider, Request, ResourceFailedError, without

__all__ = ["PROVIDERS"]


class _SageMakerProvider(Provider):
    """``Ref`` returns the ARN of all three types; the name is an attribute."""

    def update(self, current: Deployed, request: Request) -> Physical:
        """Update the tags; all other properties are create-only."""
        if without(current.properties, "Tags") != without(request.properties, "Tags"):
            return super().update(current, request)
        self._retag(current, request)
        return current.physical

    def _retag(self, current: Deployed, request: Request) -> None:
        old, new = current.properties.get("Tags", []), request.properties.get("Tags", [])
        if old == new:
            return
        arn = current.physical.id
        if old:
            self.api.call("sagemaker", "DeleteTags", ResourceArn=arn, TagKeys=[tag["Key"] for tag in old])
        if new:
            self.api.call("sagemaker", "AddTags", ResourceArn=arn, Tags=new)


class Model(_SageMakerProvider):
    type = "AWS::SageMaker::Model"
    name_property = "ModelName"

    def create(self, request: Request) -> Physical:
        name = self.name(request)
        answer = self.api.call("sagemaker", "CreateModel", **{**request.properties, "ModelName": name})
        return Physical(answer["ModelArn"], {"ModelName": name, "ModelArn": answer["ModelArn"]})

    def delete(self, current: Deployed) -> None:
        self.api.call("sagemaker", "DeleteModel", ModelName=current.physical.attributes["ModelName"])


class EndpointConfig(_SageMakerProvider):
    type = "AWS::SageMaker::EndpointConfig"
    name_property = "EndpointConfigName"

    def create(self, request: Request) -> Physical:
        name = self.name(request)
        wanted = {**request.properties, "EndpointConfigName": name}
        arn = self.api.call("sagemaker", "CreateEndpointConfig", **wanted)["EndpointConfigArn"]
        return Physical(arn, {"EndpointConfigName": name, "EndpointConfigArn": arn})

    def delete(self, current: Deployed) -> None:
        name = current.physical.attributes["EndpointConfigName"]
        self.api.call("sagemaker", "DeleteEndpointConfig", EndpointConfigName=name)


class Endpoint(_SageMakerProvider):
    type = "AWS::SageMaker::Endpoint"
    name_property = "EndpointName"
    _ONLY_FOR_UPDATES = (
        "RetainAllVariantProperties",
        "ExcludeRetainedVariantProperties",
        "RetainDeploymentConfig",
    )

    def create(self, request: Request) -> Physical:
        name = self.name(request)
        wanted = without(request.properties, *self._ONLY_FOR_UPDATES)
        arn = self.api.call("sagemaker", "CreateEndpoint", **{**wanted, "EndpointName": name})["EndpointArn"]
        self._expect_in_service(name)
        return Physical(arn, {"EndpointName": name, "EndpointArn": arn})

    def update(self, current: Deployed, request: Request) -> Physical:
        name = current.physical.attributes["EndpointName"]
        self._retag(current, request)
        if self._is_sent(current.properties, request.properties):
            wanted = without(request.properties, "Tags", "EndpointName")
            self.api.call("sagemaker", "UpdateEndpoint", **{**wanted, "EndpointName": name})
            self._expect_in_service(name)
        return current.physical

    def _is_sent(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
        """Whether CloudFormation calls UpdateEndpoint."""
        if old["EndpointConfigName"] != new["EndpointConfigName"]:
            return True
        is_changed = without(old, "Tags") != without(new, "Tags")
        return is_changed and self.api.behaviour.updates_with_the_same_config

    def delete(self, current: Deployed) -> None:
        name = current.physical.attributes["EndpointName"]
        self.api.call("sagemaker", "DeleteEndpoint", EndpointName=name)

    def _expect_in_service(self, name: str) -> None:
        endpoint = self.api.call("sagemaker", "DescribeEndpoint", EndpointName=name)
        if endpoint["EndpointStatus"] != "InService":
            raise StackError(f"Endpoint {name} is {endpoint['EndpointStatus']}")


class InferenceComponent(_SageMakerProvider):
    """The name is no attribute: ``Ref`` is the ARN, from which templates take it."""

    type = "AWS::SageMaker::InferenceComponent"
    name_property = "InferenceComponentName"
    _IDENTITY = ("InferenceComponentName", "EndpointName", "VariantName")
    _SPECIFICATION = ("Specification", "Specifications")

    def create(self, request: Request) -> Physical:
        name = self.name(request)
        wanted = {**without(request.properties, "DeploymentConfig"), "InferenceComponentName": name}
        arn = self.api.call("sagemaker", "CreateInferenceComponent", **wanted)["InferenceComponentArn"]
        found = self._wait(arn)
        physical = Physical(arn, {"InferenceComponentArn": arn, "InferenceComponentStatus": "InService"})
        if found["InferenceComponentStatus"] == "Failed":
            raise ResourceFailedError(found["FailureReason"], physical)
        return physical

    def update(self, current: Deployed, request: Request) -> Physical:
        old, new = current.properties, request.properties
        found = self._wait(current.physical.id)
        for member in self._IDENTITY:
            if new.get(member, found[member]) != found[member]:
                raise StackError(f"No source says what a change of {member} does; change the logical id too")
        self._retag(current, request)
        wanted = without(new, "Tags", *self._IDENTITY)
        if wanted != without(old, "Tags", *self._IDENTITY):
            self._change(current.physical.id, old, wanted)
        return current.physical

    def delete(self, current: Deployed) -> None:
        name = _name_in(current.physical.id)
        self.api.call("sagemaker", "DeleteInferenceComponent", InferenceComponentName=name)

    def _change(self, arn: str, old: Mapping[str, Any], wanted: dict[str, Any]) -> None:
        """Send the specification if it changes, and the number of copies if that changes.

        No source says whether CloudFormation sends the number of copies with every change.
        """
        keeps_body = all(old.get(member) == wanted.get(member) for member in self._SPECIFICATION)
        keeps_copies = old.get("RuntimeConfig") == wanted.get("RuntimeConfig")
        kept: list[str] = [*self._SPECIFICATION] if keeps_body else []
        if keeps_copies and not self.api.behaviour.component_update_resets_copies:
            kept.append("RuntimeConfig")
        sent = without(wanted, *kept)
        if not sent:  # the rollback of a change of the deployment configuration
            return
        name = _name_in(arn)
        self.api.call("sagemaker", "UpdateInferenceComponent", **sent, InferenceComponentName=name)
        found = self._wait(arn)
        if "FailureReason" in found:
            raise StackError(found["FailureReason"])

    def _wait(self, arn: str) -> Mapping[str, Any]:
        """Return the component when nothing is in progress any more."""
        while True:
            name = _name_in(arn)
            found = self.api.call("sagemaker", "DescribeInferenceComponent", InferenceComponentName=name)
            if found["InferenceComponentStatus"] in ("InService", "Failed"):
                answer: Mapping[str, Any] = found
                return answer


def _name_in(arn: str) -> str:
    return arn.partition("inference-component/")[2]


PROVIDERS = (Model, EndpointConfig, Endpoint, InferenceComponent)
