"""SageMaker: model, endpoint configuration, endpoint, inference component."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from ..errors import InferredError, StackError
from ..existing import expect_created
from .provider import Deployed, Physical, Provider, Request, ResourceFailedError, without


class _SageMakerProvider(Provider):
    """``Ref`` returns the ARN of all types.

    The name is an attribute, except of inference components.
    """

    def update(self, current: Deployed, request: Request) -> Physical:
        """Update the tags; all other properties are create-only."""
        if without(current.properties, "Tags") != without(request.properties, "Tags"):
            return super().update(current, request)
        self._retag(current, request)
        return current.physical

    def _retag(self, current: Deployed, request: Request) -> None:
        """Set the tags of a resource to those of the request."""
        old = current.properties.get("Tags", [])
        new = request.properties.get("Tags", [])
        if old == new:
            return

        arn = current.physical.id
        if old:
            keys = [tag["Key"] for tag in old]
            self.api.call("sagemaker", "DeleteTags", ResourceArn=arn, TagKeys=keys)
        if new:
            self.api.call("sagemaker", "AddTags", ResourceArn=arn, Tags=new)


class _NamedProvider(_SageMakerProvider):
    kind: ClassVar[str]
    """The end of the names of the operations."""

    def create(self, request: Request) -> Physical:
        member = f"{self.kind}Name"
        wanted = {**request.properties, member: self.name(request)}
        arn = self.api.call("sagemaker", f"Create{self.kind}", **wanted)[f"{self.kind}Arn"]
        return Physical(arn, {member: wanted[member], f"{self.kind}Arn": arn})

    def delete(self, current: Deployed) -> None:
        member = f"{self.kind}Name"
        name = current.physical.attributes[member]
        self.api.call("sagemaker", f"Delete{self.kind}", **{member: name})


class Model(_NamedProvider):
    type = "AWS::SageMaker::Model"
    kind = "Model"
    name_property = "ModelName"


class EndpointConfig(_NamedProvider):
    type = "AWS::SageMaker::EndpointConfig"
    kind = "EndpointConfig"
    name_property = "EndpointConfigName"

    def create(self, request: Request) -> Physical:
        """Create the configuration; its models must exist and its variants differ."""
        variants = request.properties["ProductionVariants"]
        for variant in variants:
            if "ModelName" in variant:
                expect_created(self.api, "CreateModel", ModelName=variant["ModelName"])

        names = [variant["VariantName"] for variant in variants]
        if len(names) != len({*names}):
            raise InferredError(f"Names of variants must be unique, got {', '.join(names)}")
        return super().create(request)


class Endpoint(_NamedProvider):
    type = "AWS::SageMaker::Endpoint"
    kind = "Endpoint"
    name_property = "EndpointName"
    _ONLY_FOR_UPDATES = (
        "RetainAllVariantProperties",
        "ExcludeRetainedVariantProperties",
        "RetainDeploymentConfig",
    )

    def create(self, request: Request) -> Physical:
        wanted = without(request.properties, *self._ONLY_FOR_UPDATES)
        self._expect_config(request)
        created = super().create(replace(request, properties=wanted))
        self._expect_in_service(created.attributes["EndpointName"])
        return created

    def update(self, current: Deployed, request: Request) -> Physical:
        """Change the tags, and update the endpoint if its configuration changes."""
        name = current.physical.attributes["EndpointName"]
        self._expect_config(request)
        self._retag(current, request)
        if self._is_sent(current.properties, request.properties):
            wanted = without(request.properties, "Tags", "EndpointName")
            self.api.call("sagemaker", "UpdateEndpoint", **wanted, EndpointName=name)
            self._expect_in_service(name)
        return current.physical

    def _expect_config(self, request: Request) -> None:
        name = request.properties["EndpointConfigName"]
        expect_created(self.api, "CreateEndpointConfig", EndpointConfigName=name)

    def _is_sent(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
        """Whether CloudFormation calls UpdateEndpoint."""
        if old["EndpointConfigName"] != new["EndpointConfigName"]:
            return True
        is_changed = without(old, "Tags") != without(new, "Tags")
        return is_changed and self.api.behaviour.updates_with_the_same_config

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
        """Create the component, and wait until it is in service or failed."""
        name = self.name(request)
        endpoint = request.properties["EndpointName"]
        expect_created(self.api, "CreateEndpoint", EndpointName=endpoint)
        wanted = {**without(request.properties, "DeploymentConfig"), "InferenceComponentName": name}
        answer = self.api.call("sagemaker", "CreateInferenceComponent", **wanted)
        arn = answer["InferenceComponentArn"]
        found = self._wait(arn)
        attributes = {"InferenceComponentArn": arn, "InferenceComponentStatus": "InService"}
        physical = Physical(arn, attributes)
        if found["InferenceComponentStatus"] == "Failed":
            raise ResourceFailedError(found["FailureReason"], physical)
        return physical

    def update(self, current: Deployed, request: Request) -> Physical:
        """Update the component; what identifies it must stay the same."""
        old = current.properties
        new = request.properties
        found = self._wait(current.physical.id)

        for member in self._IDENTITY:
            if new.get(member, found[member]) != found[member]:
                raise InferredError(
                    f"No source says what a change of {member} does; change the logical id"
                )

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
        sent = wanted
        if all(old.get(member) == wanted.get(member) for member in self._SPECIFICATION):
            sent = without(sent, *self._SPECIFICATION)
        keeps_copies = old.get("RuntimeConfig") == wanted.get("RuntimeConfig")
        if keeps_copies and not self.api.behaviour.component_update_resets_copies:
            sent = without(sent, "RuntimeConfig")
        if not sent:  # the rollback of a change of the deployment configuration
            return

        name = _name_in(arn)
        self.api.call("sagemaker", "UpdateInferenceComponent", **sent, InferenceComponentName=name)
        found = self._wait(arn)
        if "FailureReason" in found:
            raise StackError(found["FailureReason"])

    def _wait(self, arn: str) -> Mapping[str, Any]:
        """Return the component when nothing is in progress any more."""
        name = {"InferenceComponentName": _name_in(arn)}
        while True:
            found: Mapping[str, Any] = self.api.call(
                "sagemaker", "DescribeInferenceComponent", **name
            )
            if found["InferenceComponentStatus"] in ("InService", "Failed"):
                return found


def _name_in(arn: str) -> str:
    return arn.partition("inference-component/")[2]
