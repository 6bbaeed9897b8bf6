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
        return [str(each) for each in self.readings if each.refusal]

    def forget(self) -> None:
        """Begin a new record."""
        for record in (self.steps, self.readings, self.counts, self.drops):
            record.clear()

    def launch(self, config_name: str) -> None:
        """Launch an instance of each variant; raises ``PermissionError`` as
        :meth:`launch_container`.
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
        place = user.replace("inference component ", "InferenceComponents/")
        group = f"/aws/sagemaker/{place.replace('endpoint ', 'Endpoints/')}"
        logs = self.api.backend("logs")
        if group not in logs.groups and self._may_create(group, [model]):
            add_log_group(logs, group)

    def _read(self, moment: Step, endpoint: str, config: str, model: str) -> None:
        try:
            described = self._described(model)
        except PermissionError as error:
            self.readings.append(Reading(moment, endpoint, config, model, model, str(error)))
            return
        if moment.action == "end":
            self._create_log_group(endpoint, model)
        for need in (*self.check.needs_at_start(described), *self.check.archive_needs(described)):
            self.readings.append(
                Reading(moment, endpoint, config, model, need.object, need.refusal())
            )

    def _count(self, moment: Step) -> None:
        """Compare with the step before; between two operations a fleet may shrink."""
        counted = {(each.endpoint, each.variant): each for each in self.sizes(moment)}
        self.counts += counted.values()
        for place, after in counted.items():
            before = self._last_counts.get(place, after)
            if moment.action != "start" and before.count > max(after.count, before.initial_count):
                self.drops.append(Drop(before, after))
        self._last_counts = counted

    def sizes(self, moment: Step) -> Iterator[Count]:
        """The instances of each variant that runs now."""
        for name, endpoint in list(self._backend.endpoints.items()):
            config = self._backend.endpoint_configs.get(endpoint.endpoint_config_name)
            variants = () if config is None else config.production_variants
            declared = {each["VariantName"]: each for each in variants}
            for variant in endpoint.production_variants:
                count = variant.get("DesiredInstanceCount")
                if count is not None:
                    place = variant["VariantName"]
                    found = declared.get(place, {})
                    initial = found.get("InitialInstanceCount", 0 if found else count)
                    # An instance of any pool may start, so each of the types needs the quota.
                    yield Count(
                        moment, name, place, count, initial, ", ".join(instance_types_of(found))
                    )

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
            for config in {endpoint.endpoint_config_name, self._leaving.get(name)}:
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
        roles = self.roles_of(models)
        return any(self.check.access.allows(role, "logs:CreateLogGroup", arn, {}) for role in roles)

    def users_of_model(self, model_name: str) -> list[str]:
        """The endpoints and inference components that run a model."""
        endpoints = (
            name for name, config in self.running() if model_name in self.models_of(config)
        )
        components = (each for each, model in self.models_of_components() if model == model_name)
        return [*(f"endpoint {name}" for name in endpoints), *components]

    def users_of_config(self, config_name: str) -> list[str]:
        """The endpoints that run a configuration."""
        return [f"endpoint {name}" for name, config in self.running() if config == config_name]

    def models_of(self, config_name: str) -> list[str]:
        """The models of a configuration's variants, shadow variants included."""
        variants = [
            *self._backend.endpoint_configs[config_name].production_variants,
            *self.kept_members(config_name).get("ShadowProductionVariants", []),
        ]
        pools = [pool for each in variants for pool in each.get("InstancePools", [])]
        return [
            *(each["ModelName"] for each in variants if "ModelName" in each),
            *(each["ModelNameOverride"] for each in pools if "ModelNameOverride" in each),
        ]

    def kept_members(self, config_name: str) -> Mapping[str, Any]:
        """The members of a configuration's request that only its description has."""
        kept: Mapping[str, Any] = self._backend.endpoint_configs[config_name].kept_members
        return kept

    def expect_alarms(self, deployment: Mapping[str, Any], roles: Iterable[str]) -> None:
        """Raise ``PermissionError`` if a rollback alarm does not exist or a
        role may not describe it.
        """
        alarms = self.api.backend("cloudwatch").alarms
        named = deployment.get("AutoRollbackConfiguration", {}).get("Alarms", [])
        for name in [each["AlarmName"] for each in named]:
            if name not in alarms:
                raise PermissionError(
                    f"CloudWatch alarm {name} of AutoRollbackConfiguration does not exist"
                )
            for role_arn in roles:
                alarm = alarms[name].alarm_arn
                if not self.check.access.allows(role_arn, "cloudwatch:DescribeAlarms", alarm, {}):
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
