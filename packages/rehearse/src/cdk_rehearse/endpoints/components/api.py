"""The operations of SageMaker's API on inference components."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from constructs_triton_core.cloud_assembly.endpoints import instance_types_of

from ...moto_account import calls, sagemaker
from ...moto_account.differences import Replacement
from ...moto_account.refusals import ValidationError
from ..fleets import Fleets, refusing
from ..instance_pools import has_capacity
from .capacity import Copy, fit, largest_fleet
from .component import Component, Operation, base_of, specifications
from .rules import check_body, check_model, expect_stable, variant_without_model

_NO_ROOM = (
    "There is not enough hardware resources on the instances for this endpoint to create a copy of "
    "the inference component."
)
_Answer = Mapping[str, Any]
_Handler = Callable[[Mapping[str, Any]], _Answer]


class InferenceComponents:
    """The components of one account in its Region, by name."""

    def __init__(self, fleets: Fleets) -> None:
        self.fleets = fleets
        self.all: dict[str, Component] = {}
        fleets.models_of_components = self._models

    def patches(self) -> list[Replacement]:
        """Answer the operations while the simulated account runs."""
        handlers: dict[calls.Operation, _Handler] = {
            sagemaker.CREATE_INFERENCE_COMPONENT: self._create,
            sagemaker.DESCRIBE_INFERENCE_COMPONENT: self._describe,
            sagemaker.LIST_INFERENCE_COMPONENTS: self._list,
            sagemaker.UPDATE_INFERENCE_COMPONENT: self._update,
            sagemaker.UPDATE_INFERENCE_COMPONENT_RUNTIME_CONFIG: self._update_copies,
            sagemaker.DELETE_INFERENCE_COMPONENT: self._delete,
        }
        answered = [_answered_by(operation, handler) for operation, handler in handlers.items()]
        return [*answered, sagemaker.found_by_arn(self._find_by_arn)]

    def of_endpoint(self, endpoint_name: str) -> list[Component]:
        """The components of an endpoint. They outlive it."""
        return [each for each in self.all.values() if each.endpoint_name == endpoint_name]

    def find(self, name: str) -> Component:
        if name not in self.all:
            raise ValidationError(f'Could not find inference component "{name}".')
        return self.all[name]

    def set_copies(self, name: str, count: int) -> None:
        """Begin to change the number of copies, as Application Auto Scaling does too."""
        component = self.find(name)
        expect_stable(component, "update")
        component.desired_copies = count
        component.begin(Operation("UPDATE_RC_IN_PROGRESS", lambda: self._finish_copies(component)))

    def scale_out(self, name: str, highest: int) -> None:
        """Run as many copies as fit on the instances, up to a number."""
        component = self.find(name)
        while component.copies < highest and self._fits(component, component.copies + 1):
            component.copies += 1
        component.desired_copies = component.copies

    def expect_unaffected(
        self, endpoint_name: str, before: list[dict[str, Any]], after: list[dict[str, Any]]
    ) -> None:
        """Refuse an update of an endpoint that would change the instances under its components.

        No source says what SageMaker does.
        """
        if not self.of_endpoint(endpoint_name):
            return
        for member in ("VariantName", "InstanceType", "InstancePools", "ModelName"):
            if [each.get(member) for each in before] != [each.get(member) for each in after]:
                raise ValidationError(
                    f"{member} cannot change while inference components use the endpoint."
                )

    # The operations.

    def _create(self, wanted: Mapping[str, Any]) -> _Answer:
        name = wanted["InferenceComponentName"]
        if name in self.all:
            raise ValidationError(f"Cannot create already existing inference component {name}.")
        endpoint, config = self._endpoint(wanted["EndpointName"])
        variant = variant_without_model(config, wanted.get("VariantName"))
        body = _body_of(wanted)
        self._check(body, variant, config)
        if "RuntimeConfig" not in wanted and not base_of(body):
            raise ValidationError(
                "RuntimeConfig is missing; no source says what SageMaker does without it."
            )
        copies = wanted.get("RuntimeConfig", {"CopyCount": 1})["CopyCount"]
        if copies < 1:
            raise ValidationError("Inference components copy count an integer larger than 0")
        component = Component(
            name=name,
            arn=f"{endpoint.arn.rpartition(':')[0]}:inference-component/{name}",
            endpoint_name=endpoint.endpoint_name,
            endpoint_arn=endpoint.arn,
            variant_name=variant["VariantName"],
            body=body,
            desired_copies=copies,
            tags=list(wanted.get("Tags", [])),
        )
        self.all[name] = component
        component.begin(Operation("CREATE_IN_PROGRESS", lambda: self._finish_copies(component)))
        return {"InferenceComponentArn": component.arn}

    def _describe(self, wanted: Mapping[str, Any]) -> _Answer:
        component = self.find(wanted["InferenceComponentName"])
        answer = component.description()
        component.step()
        return answer

    def _list(self, wanted: Mapping[str, Any]) -> _Answer:
        filters = {
            "EndpointNameEquals": "EndpointName",
            "VariantNameEquals": "VariantName",
            "StatusEquals": "InferenceComponentStatus",
        }
        exact = {member: wanted[name] for name, member in filters.items() if name in wanted}
        found = [
            each
            for each in (component.summary() for component in self.all.values())
            if wanted.get("NameContains", "") in each["InferenceComponentName"]
            and exact.items() <= each.items()
        ]
        return {"InferenceComponents": found}

    def _update(self, wanted: Mapping[str, Any]) -> _Answer:
        component = self.find(wanted["InferenceComponentName"])
        body = _body_of(wanted)
        if not body and "RuntimeConfig" not in wanted:
            raise ValidationError(
                "UpdateInferenceComponent requires RuntimeConfig or a Specification."
            )
        expect_stable(component, "update")
        _, config = self._endpoint(component.endpoint_name)
        if body:
            self._check(body, variant_without_model(config, component.variant_name), config)
        with refusing():
            role = config.kept_members["ExecutionRoleArn"]
            self.fleets.expect_alarms(wanted.get("DeploymentConfig", {}), [role])
        component.desired_copies = wanted.get("RuntimeConfig", {}).get(
            "CopyCount", component.desired_copies
        )
        component.deployment = wanted.get("DeploymentConfig", component.deployment)
        before, component.body = component.body, body or component.body
        is_replaced = before != component.body
        component.replacing = before if is_replaced else None
        batch = _batch_size(component.copies, wanted.get("DeploymentConfig")) if is_replaced else 0
        steps = math.ceil(component.copies / batch) if batch else 1
        finish = lambda: self._finish_update(component, before, batch)  # noqa: E731 - one of three alike
        component.begin(Operation("UPDATE_IN_PROGRESS", finish, max(steps, 1)))
        return {"InferenceComponentArn": component.arn}

    def _update_copies(self, wanted: Mapping[str, Any]) -> _Answer:
        name = wanted["InferenceComponentName"]
        self.set_copies(name, wanted["DesiredRuntimeConfig"]["CopyCount"])
        return {"InferenceComponentArn": self.all[name].arn}

    def _delete(self, wanted: Mapping[str, Any]) -> _Answer:
        component = self.find(wanted["InferenceComponentName"])
        expect_stable(component, "delete")
        if component.name in {base_of(each.body) for each in self.all.values()}:
            raise ValidationError(f"{component.name} is a base inference component for others.")
        models = [each["ModelName"] for each in component.specifications() if "ModelName" in each]
        self.fleets.end_logs(f"/aws/sagemaker/InferenceComponents/{component.name}", models)
        del self.all[component.name]
        return {}

    # The ends of operations.

    def _finish_copies(self, component: Component) -> None:
        if not self._has_run(component, component.desired_copies):
            component.has_failed = component.copies == 0 and component.deployment is None

    def _finish_update(self, component: Component, before: Mapping[str, Any], batch: int) -> None:
        """Replace the copies. While a batch is replaced, its old copies run too."""
        component.replacing = None
        if not self._has_run(component, component.desired_copies + batch):
            component.body = before

    def _has_run(self, component: Component, highest: int) -> bool:
        """Run the desired copies if there is room for the highest number;
        keep the present ones otherwise.
        """
        fits = self._fits(component, highest)
        component.failure_reason = None if fits else _NO_ROOM
        component.copies = component.desired_copies if fits else component.copies
        component.desired_copies = component.copies
        return fits

    def _fits(self, component: Component, count: int) -> bool:
        _, config = self._endpoint(component.endpoint_name)
        variant = variant_without_model(config, component.variant_name)
        others = [
            each for each in self.of_endpoint(component.endpoint_name) if each is not component
        ]
        of_others = [
            Copy.of(specifications(each.body)[0]) for each in others for _ in range(each.copies)
        ]
        own, kind = Copy.of(specifications(component.body)[0]), instance_types_of(variant)[0]
        instances = largest_fleet(variant)
        if not has_capacity(self.fleets.api.behaviour, variant):  # those that run, and no more
            present, initial = (
                [*of_others, *[own] * component.copies],
                int(variant["InitialInstanceCount"]),
            )
            instances = next(
                (n for n in range(initial, instances) if fit(present, kind, n)), instances
            )
        return fit([*of_others, *[own] * count], kind, instances)

    # What the operations look at.

    def _endpoint(self, name: str) -> tuple[Any, Any]:
        """Return an endpoint and its configuration."""
        backend = self.fleets.api.backend("sagemaker")
        endpoint = backend.endpoints.get(name)
        if endpoint is None:
            raise ValidationError(f'Could not find endpoint "{name}".')
        return endpoint, backend.endpoint_configs[endpoint.endpoint_config_name]

    def _check(self, body: Mapping[str, Any], variant: Mapping[str, Any], config: Any) -> None:
        check_body(body, variant)
        if base := base_of(body):
            self.find(base)
        for specification in specifications(body):
            self._check_container(specification, config)

    def _check_container(self, specification: Mapping[str, Any], config: Any) -> None:
        """Check the model, and that the role may read its data and pull its image."""
        with refusing():
            if "ModelName" in specification:
                check_model(self.fleets.model(specification["ModelName"]), config)
                self.fleets.launch_model(specification["ModelName"])
            else:
                self.fleets.launch_container(_inline(specification["Container"], config))

    def _models(self) -> Iterator[tuple[str, str]]:
        """Each component with each model that its copies run,
        or would run when it is scaled out.
        """
        for component in self.all.values():
            for specification in component.specifications():
                if "ModelName" in specification:
                    yield f"inference component {component.name}", specification["ModelName"]

    def _find_by_arn(self, arn: str) -> Component | None:
        for component in self.all.values():
            if component.arn == arn:
                return component
        return None


def _answered_by(operation: calls.Operation, handler: _Handler) -> Replacement:
    def answer(call: calls.Call) -> _Answer:
        return handler(call.members)

    return operation.answered_by(answer)


def _body_of(wanted: Mapping[str, Any]) -> dict[str, Any]:
    return {name: wanted[name] for name in ("Specification", "Specifications") if name in wanted}


def _batch_size(copies: int, deployment: Mapping[str, Any] | None) -> int:
    """How many copies are replaced together: all without a rolling update."""
    if deployment is None:
        return copies
    size = deployment["RollingUpdatePolicy"]["MaximumBatchSize"]
    if size["Type"] == "COPY_COUNT":
        if size["Value"] > copies > 0:
            raise ValidationError(
                f"MaximumBatchSize {size['Value']} is more than the {copies} copies."
            )
        return min(int(size["Value"]), copies)
    if not 5 <= size["Value"] <= 50:
        raise ValidationError("MaximumBatchSize must be between 5% to 50% of the copy count.")
    return min(copies, max(1, copies * int(size["Value"]) // 100))


def _inline(container: Mapping[str, Any], config: Any) -> dict[str, Any]:
    members = {"Image": "Image", "ArtifactUrl": "ModelDataUrl"}
    primary = {member: container[name] for name, member in members.items() if name in container}
    shared = {name: config.kept_members.get(name) for name in ("ExecutionRoleArn", "VpcConfig")}
    return {"PrimaryContainer": primary, **shared}
