"""The operations of SageMaker's API on inference components.

Source: SageMaker API reference, the operation of each name. What no source settles is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...moto_account import calls, sagemaker
from ...moto_account.differences import Replacement
from ...moto_account.refusals import ValidationError
from ..fleets import Fleets, refusing
from .capacity import has_room
from .component import Component, Operation, base_of, specifications
from .rolling_updates import batch_size, steps_of
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
        return [
            component for component in self.all.values() if component.endpoint_name == endpoint_name
        ]

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
            old = [variant.get(member) for variant in before]
            new = [variant.get(member) for variant in after]
            if old != new:
                raise ValidationError(
                    f"{member} cannot change while inference components use the endpoint."
                )

    # The operations.

    def _create(self, wanted: Mapping[str, Any]) -> _Answer:
        """Answer CreateInferenceComponent."""
        name = wanted["InferenceComponentName"]
        if name in self.all:
            raise ValidationError(f"Cannot create already existing inference component {name}.")

        endpoint, config = self._endpoint(wanted["EndpointName"])
        variant = variant_without_model(config, wanted.get("VariantName"))
        body = _body_of(wanted)
        self._check(body, variant, config)

        component = Component(
            name=name,
            arn=f"{endpoint.arn.rpartition(':')[0]}:inference-component/{name}",
            endpoint_name=endpoint.endpoint_name,
            endpoint_arn=endpoint.arn,
            variant_name=variant["VariantName"],
            body=body,
            desired_copies=_first_copies(wanted, body),
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
        """Answer ListInferenceComponents."""
        filters = {
            "EndpointNameEquals": "EndpointName",
            "VariantNameEquals": "VariantName",
            "StatusEquals": "InferenceComponentStatus",
        }
        exact = {member: wanted[name] for name, member in filters.items() if name in wanted}
        part = wanted.get("NameContains", "")

        found = []
        for component in self.all.values():
            summary = component.summary()
            if part in component.name and exact.items() <= summary.items():
                found.append(summary)
        return {"InferenceComponents": found}

    def _update(self, wanted: Mapping[str, Any]) -> _Answer:
        """Answer UpdateInferenceComponent."""
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
        deployment = wanted.get("DeploymentConfig")
        with refusing():
            role = config.kept_members["ExecutionRoleArn"]
            self.fleets.expect_alarms(deployment or {}, [role])

        before = component.body
        is_replaced = bool(body) and body != before
        batch = batch_size(component.copies, deployment) if is_replaced else 0

        runtime = wanted.get("RuntimeConfig", {})
        component.desired_copies = runtime.get("CopyCount", component.desired_copies)
        component.deployment = deployment or component.deployment
        component.body = body or before
        component.replacing = before if is_replaced else None
        component.begin(
            Operation(
                "UPDATE_IN_PROGRESS",
                lambda: self._finish_update(component, before, batch),
                steps_of(component.copies, batch),
            )
        )
        return {"InferenceComponentArn": component.arn}

    def _update_copies(self, wanted: Mapping[str, Any]) -> _Answer:
        name = wanted["InferenceComponentName"]
        self.set_copies(name, wanted["DesiredRuntimeConfig"]["CopyCount"])
        return {"InferenceComponentArn": self.all[name].arn}

    def _delete(self, wanted: Mapping[str, Any]) -> _Answer:
        """Answer DeleteInferenceComponent."""
        component = self.find(wanted["InferenceComponentName"])
        expect_stable(component, "delete")
        bases = {base_of(other.body) for other in self.all.values()}
        if component.name in bases:
            raise ValidationError(f"{component.name} is a base inference component for others.")

        models = [
            specification["ModelName"]
            for specification in component.specifications()
            if "ModelName" in specification
        ]
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
        if self._fits(component, highest):
            component.failure_reason = None
            component.copies = component.desired_copies
            return True
        component.failure_reason = _NO_ROOM
        component.desired_copies = component.copies
        return False

    def _fits(self, component: Component, count: int) -> bool:
        _, config = self._endpoint(component.endpoint_name)
        variant = variant_without_model(config, component.variant_name)
        others = [
            other for other in self.of_endpoint(component.endpoint_name) if other is not component
        ]
        return has_room(self.fleets.api.behaviour, variant, component, count, others)

    # What the operations look at.

    def _endpoint(self, name: str) -> tuple[Any, Any]:
        """Return an endpoint and its configuration."""
        store = self.fleets.api.backend("sagemaker")
        endpoint = store.endpoints.get(name)
        if endpoint is None:
            raise ValidationError(f'Could not find endpoint "{name}".')
        return endpoint, store.endpoint_configs[endpoint.endpoint_config_name]

    def _check(self, body: Mapping[str, Any], variant: Mapping[str, Any], config: Any) -> None:
        check_body(body, variant)
        base = base_of(body)
        if base:
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


def _first_copies(wanted: Mapping[str, Any], body: Mapping[str, Any]) -> int:
    """The copies of a new component; an adapter runs on those of its base."""
    if "RuntimeConfig" not in wanted and not base_of(body):
        raise ValidationError(
            "RuntimeConfig is missing; no source says what SageMaker does without it."
        )
    copies = int(wanted.get("RuntimeConfig", {"CopyCount": 1})["CopyCount"])
    if copies < 1:
        raise ValidationError("Inference components copy count an integer larger than 0")
    return copies


def _inline(container: Mapping[str, Any], config: Any) -> dict[str, Any]:
    """A container of a component as that of a model, with the role of its endpoint."""
    members = {"Image": "Image", "ArtifactUrl": "ModelDataUrl"}
    primary = {member: container[name] for name, member in members.items() if name in container}
    shared = {name: config.kept_members.get(name) for name in ("ExecutionRoleArn", "VpcConfig")}
    return {"PrimaryContainer": primary, **shared}
