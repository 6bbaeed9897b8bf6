"""The instances of endpoints: which configurations run, and what each needs when it is launched.

An instance can be launched at any time: by an update, by its rollback, by scaling out, or to
replace a broken host. It then reads the model data and the image of its own configuration, with the
role as it is at that moment. During an update both fleets exist, until CloudFormation begins its
cleanup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from constructs_triton_core.cloud_assembly.endpoints import instance_types_of

from ..moto_account.backends import add_log_group
from ..moto_account.refusals import ValidationError
from ..permissions.execution_role import ExecutionRoleCheck
from ..services.service_api import ServiceApi
from ..steps import Step
from .readings import Count, Drop, Peak, Reading


@contextmanager
def refusing() -> Iterator[None]:
    """Answer with SageMaker's error if a permission is missing."""
    try:
        yield
    except PermissionError as error:
        raise ValidationError(message=str(error)) from None


@dataclass
class Fleets:
    """Checks whether the instances of endpoints could be launched, and counts them."""

    api: ServiceApi
    check: ExecutionRoleCheck
    steps: list[Step] = field(default_factory=list)
    """The steps of all operations, in order."""
    readings: list[Reading] = field(default_factory=list)
    """What an instance could read, had it been launched after each step of the operations."""
    counts: list[Count] = field(default_factory=list)
    """The instances of each variant after each step."""
    drops: list[Drop] = field(default_factory=list)
    """Steps that made a scaled fleet smaller."""
    peaks: dict[str, Peak] = field(default_factory=dict)
    """The most instances of each endpoint that was updated since the last step,
    both fleets together.
    """
    deployments: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """The ``DeploymentConfig`` of each endpoint."""
    late_log_groups: set[str] = field(default_factory=set)
    """Log groups of deleted endpoints and components whose roles may create them again.

    SageMaker does so for events that arrive after the deletion of the group."""
    models_of_components: Callable[[], Iterable[tuple[str, str]]] = tuple
    """Each inference component, by its name in messages, with each model that its copies run."""
    _leaving: dict[str, str] = field(default_factory=dict)
    """The configuration that each endpoint had before its update."""
    _last_counts: dict[tuple[str, str], Count] = field(default_factory=dict)

    @property
    def losses(self) -> Sequence[str]:
        """The readings that were refused: moments at which an instance could
        not have been launched.
        """
        return [str(reading) for reading in self.readings if reading.refusal]

    def forget(self) -> None:
        """Begin a new record."""
        for record in (self.steps, self.readings, self.counts, self.drops):
            record.clear()

    def launch(self, config_name: str) -> None:
        """Launch an instance of each variant; raises ``PermissionError`` as
        :meth:`launch_container` does.
        """
        for model in self.models_of(config_name):
            self.launch_model(model)

    def launch_model(self, name: str) -> None:
        """Launch the container of a model, in the same way."""
        self.launch_container(self._described(name))

    def launch_container(self, described: Mapping[str, Any]) -> None:
        """Launch what a model describes; raises ``PermissionError`` if the role
        may not read all of it.
        """
        for need in self.check.needs_at_start(described):
            need.expect()

    def _described(self, name: str) -> dict[str, Any]:
        """Return a model as DescribeModel shows it to the check of its role."""
        model = self.model(name)
        return {
            "PrimaryContainer": model.primary_container,
            "Containers": model.containers,
            "ExecutionRoleArn": model.execution_role_arn,
            "VpcConfig": model.vpc_config,
        }

    def inspect(self, moment: Step) -> None:
        """Record what each running fleet could read at this moment, and its size."""
        self.steps.append(moment)
        for endpoint_name, config_name in self.running():
            for model in self.models_of(config_name):
                self._read(moment, f"endpoint {endpoint_name}", config_name, model)
        for component, model in self.models_of_components():
            self._read(moment, component, "", model)
        self._count(moment)

    def _create_log_group(self, user: str, model: str) -> None:
        """Create the log group of what is in service, if its role may; it outlives the endpoint.

        CloudFormation creates that of a template meanwhile, so this one comes at the end of an
        operation.
        """
        group = _log_group_of(user)
        logs = self.api.backend("logs")
        if group not in logs.groups and self._may_create(group, [model]):
            add_log_group(logs, group)

    def _read(self, moment: Step, user: str, config: str, model: str) -> None:
        """Record what the instances of an endpoint or component could read of one model."""
        try:
            described = self._described(model)
        except PermissionError as error:
            self.readings.append(Reading(moment, user, config, model, model, str(error)))
            return

        if moment.action == "end":
            self._create_log_group(user, model)

        needs = [*self.check.needs_at_start(described), *self.check.archive_needs(described)]
        for need in needs:
            reading = Reading(moment, user, config, model, need.object, need.refusal())
            self.readings.append(reading)

    def _count(self, moment: Step) -> None:
        """Record the size of each fleet, and whether it is smaller than after the step before.

        Between two operations a fleet may shrink: that is scaling, and not the update. A fleet that
        is as large as its configuration says is not smaller either.
        """
        counted = {(count.endpoint, count.variant): count for count in self.sizes(moment)}
        self.counts += counted.values()

        if moment.action != "start":
            for place, after in counted.items():
                before = self._last_counts.get(place, after)
                if before.count > max(after.count, before.initial_count):
                    self.drops.append(Drop(before, after))
        self._last_counts = counted

    def sizes(self, moment: Step) -> Iterator[Count]:
        """The instances of each variant that runs now."""
        for name, endpoint in list(self._backend.endpoints.items()):
            declared = self._declared_variants(endpoint.endpoint_config_name)
            for variant in endpoint.production_variants:
                count = variant.get("DesiredInstanceCount")
                if count is not None:
                    variant_name = variant["VariantName"]
                    yield _size(moment, name, variant_name, count, declared.get(variant_name))

    def _declared_variants(self, config_name: str) -> dict[str, Mapping[str, Any]]:
        """The variants of a configuration by name; none if it was deleted."""
        config = self._backend.endpoint_configs.get(config_name)
        if config is None:
            return {}
        return {variant["VariantName"]: variant for variant in config.production_variants}

    def update(self, endpoint_name: str, old: str, new: str) -> None:
        """Start the new fleet beside the old one; instances of both must be able to start."""
        self.launch(new)
        if self.api.behaviour.launches_old_fleet:
            self.launch(old)
        self._leaving[endpoint_name] = old

    def end_update(self, endpoint_name: str) -> None:
        """Stop the old fleet of one endpoint: what updated it waits until
        the update is complete.
        """
        self._leaving.pop(endpoint_name, None)

    def begin_cleanup(self) -> None:
        """Stop the old fleets: their updates are complete."""
        self._leaving.clear()

    def running(self) -> Iterator[tuple[str, str]]:
        """Each endpoint with each of its configurations that still exists."""
        backend = self._backend
        for name, endpoint in list(backend.endpoints.items()):
            configs = {endpoint.endpoint_config_name, self._leaving.get(name)}
            for config in configs:
                if config in backend.endpoint_configs:
                    yield name, config

    def end_logs(self, log_group: str, models: Iterable[str]) -> None:
        """Note whether the roles of these models may still create their log group,
        at its last event.
        """
        self.late_log_groups.discard(log_group)
        if self._may_create(log_group, models):
            self.late_log_groups.add(log_group)

    def _may_create(self, log_group: str, models: Iterable[str]) -> bool:
        arn = f"arn:aws:logs:{self.api.region}:{self.api.account}:log-group:{log_group}"
        return any(
            self.check.access.allows(role, "logs:CreateLogGroup", arn, {})
            for role in self.roles_of(models)
        )

    def users_of_model(self, model_name: str) -> list[str]:
        """The endpoints and inference components that run a model."""
        users = [
            f"endpoint {name}"
            for name, config in self.running()
            if model_name in self.models_of(config)
        ]
        for component, model in self.models_of_components():
            if model == model_name:
                users.append(component)
        return users

    def users_of_config(self, config_name: str) -> list[str]:
        """The endpoints that run a configuration."""
        return [f"endpoint {name}" for name, config in self.running() if config == config_name]

    def models_of(self, config_name: str) -> list[str]:
        """The models of a configuration's variants, shadow variants included."""
        variants = [
            *self._backend.endpoint_configs[config_name].production_variants,
            *self.kept_members(config_name).get("ShadowProductionVariants", []),
        ]
        models = [variant["ModelName"] for variant in variants if "ModelName" in variant]
        # A pool of instances may run another model than the rest of its variant.
        for variant in variants:
            for pool in variant.get("InstancePools", []):
                if "ModelNameOverride" in pool:
                    models.append(pool["ModelNameOverride"])
        return models

    def kept_members(self, config_name: str) -> Mapping[str, Any]:
        """The members of a configuration's request that only its description has."""
        kept: Mapping[str, Any] = self._backend.endpoint_configs[config_name].kept_members
        return kept

    def expect_alarms(self, deployment: Mapping[str, Any], roles: Iterable[str]) -> None:
        """Raise ``PermissionError`` if a rollback alarm does not exist or a
        role may not describe it.
        """
        existing = self.api.backend("cloudwatch").alarms
        rollback = deployment.get("AutoRollbackConfiguration", {})
        for alarm in rollback.get("Alarms", []):
            name = alarm["AlarmName"]
            if name not in existing:
                raise PermissionError(
                    f"CloudWatch alarm {name} of AutoRollbackConfiguration does not exist"
                )
            arn = existing[name].alarm_arn
            for role_arn in roles:
                if not self.check.access.allows(role_arn, "cloudwatch:DescribeAlarms", arn, {}):
                    raise PermissionError(f"{role_arn} is not allowed to describe the alarm {name}")

    @property
    def _backend(self) -> Any:
        return self.api.backend("sagemaker")

    def roles_of(self, models: Iterable[str]) -> set[str]:
        """The execution roles of models."""
        return {self.model(name).execution_role_arn for name in models}

    def model(self, name: str) -> Any:
        """Return what is stored of a model; raises ``PermissionError`` if there is none."""
        model = self._backend.models.get(name)
        if model is None:
            raise PermissionError(f"Could not find model {name}")
        return model


def _log_group_of(user: str) -> str:
    """The log group of an endpoint or inference component, by its name in messages.

    Source: SageMaker developer guide, "CloudWatch Logs for Amazon SageMaker AI".
    """
    kind, _, name = user.rpartition(" ")
    folder = "InferenceComponents" if kind == "inference component" else "Endpoints"
    return f"/aws/sagemaker/{folder}/{name}"


def _size(
    moment: Step, endpoint: str, name: str, count: int, declared: Mapping[str, Any] | None
) -> Count:
    """The size of a variant. ``declared`` is what the configuration has of it."""
    if declared is None:
        return Count(moment, endpoint, name, count, initial_count=count, instance_type="")
    initial_count = declared.get("InitialInstanceCount", 0)
    # An instance of any pool may start, so each of the types needs the quota.
    instance_types = ", ".join(instance_types_of(declared))
    return Count(moment, endpoint, name, count, initial_count, instance_types)
