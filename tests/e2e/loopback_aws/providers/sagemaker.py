"""SageMaker: model, endpoint configuration, endpoint."""

from __future__ import annotations

from ..errors import StackError
from .provider import Deployed, Physical, Provider, Request, without

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
        # CloudFormation calls this only if the endpoint changes.
        if current.properties["EndpointConfigName"] != request.properties["EndpointConfigName"]:
            wanted = without(request.properties, "Tags", "EndpointName")
            self.api.call("sagemaker", "UpdateEndpoint", **{**wanted, "EndpointName": name})
            self._expect_in_service(name)
        return current.physical

    def delete(self, current: Deployed) -> None:
        name = current.physical.attributes["EndpointName"]
        self.api.call("sagemaker", "DeleteEndpoint", EndpointName=name)

    def _expect_in_service(self, name: str) -> None:
        endpoint = self.api.call("sagemaker", "DescribeEndpoint", EndpointName=name)
        if endpoint["EndpointStatus"] != "InService":
            raise StackError(f"Endpoint {name} is {endpoint['EndpointStatus']}")


PROVIDERS = (Model, EndpointConfig, Endpoint)
