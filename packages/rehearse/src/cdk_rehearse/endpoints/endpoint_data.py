"""Which data endpoints and services use, as the resources of the stacks say.

Endpoint configurations say where an endpoint writes, buckets and topics have keys, and the policies
of roles say who reads and writes there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from constructs_triton_core.facts.encrypted_data import DataName

from ..existing import is_assumed_role
from ..permissions.access import Access
from ..permissions.policy import allowed_resources
from ..permissions.s3_needs import key_arn
from .data_permissions import DataPermissions
from .data_uses import ALARMS, ARCHIVES, MODELS, S3, Use
from .fleets import Fleets
from .service_uses import AWS_MANAGED_KEYS, service_uses

_ASSETS = f"{S3}cdk-"
"""The beginning of the ARNs of what the CDK has uploaded."""
_OBJECT = "rehearsed"
"""The key of an object below a prefix."""


@dataclass(frozen=True)
class EndpointData:
    """Derives the uses from the account as it is."""

    fleets: Fleets
    access: Access
    permissions: DataPermissions

    def of_models(self) -> Iterator[Use]:
        """The models of each endpoint; an archive in the CDK's asset bucket keeps its key."""
        for endpoint, config_name in self.fleets.running():
            for role in sorted(self._roles(config_name)):
                for place in self._model_arns(self.fleets.models_of(config_name)):
                    data = ARCHIVES if place.startswith(_ASSETS) else MODELS
                    yield Use(endpoint, data, "reads", place, role, True, self._bucket_key(place))

    def of_other_data(self) -> Iterator[Use]:
        """Yield the uses besides those of models,
        whose objects :class:`Fleets` reads one by one.
        """
        yield from self._of_log_groups()
        yield from self._of_services()
        for endpoint, config_name in self.fleets.running():
            for role in sorted(self._roles(config_name)):
                if not is_assumed_role(self.access.api, role):
                    yield from self._of_role(endpoint, role, config_name)

    # What services encrypt.

    def _of_log_groups(self) -> Iterator[Use]:
        api = self.access.api
        service = f"logs.{api.region}.amazonaws.com"
        for group in api.backend("logs").groups.values():
            if group.kms_key_id:
                key = self._key(group.kms_key_id)
                yield Use("", "logs", "writes", group.arn.removesuffix(":*"), service, True, key)

    def _of_services(self) -> Iterator[Use]:
        """Notifications of alarms, events, and schedules that could not be delivered."""
        for use in service_uses(self.access.api):
            is_role = use.role.startswith("arn:")
            if not is_role:
                yield replace(use, key=self._key_of_service(use.key))
            elif not is_assumed_role(self.access.api, use.role):
                yield replace(use, key=self._key(use.key))

    def _key_of_service(self, given: str) -> str:
        for alias in AWS_MANAGED_KEYS:
            if (given or "").endswith(alias):
                return alias
        return self._key(given)

    # What the execution role of an endpoint uses.

    def _of_role(self, endpoint: str, role: str, config_name: str) -> Iterator[Use]:
        """Yield the encrypted data that an endpoint uses with its execution role."""
        config = self._configs[config_name]
        yield from self._of_alarms(endpoint, role)
        if config.kms_key_id:
            place = f"endpoint/{endpoint}"
            key = self._key(config.kms_key_id)
            yield Use(endpoint, "storage volumes", "writes", place, role, True, key)

        for data, url, given in self._destinations(config, config_name):
            place, key = self._place(url, given)
            yield Use(endpoint, data, "writes", place, role, True, key)
            yield from self._of_others(Use(endpoint, data, "reads", place, role, False, key))

        if config.async_inference_config:
            yield from self._of_queue(endpoint, role, config.async_inference_config)

    def _of_alarms(self, endpoint: str, role: str) -> Iterator[Use]:
        """The alarms of a rollback, which SageMaker describes with the execution role."""
        deployment = self.fleets.deployments.get(endpoint, {})
        rollback = deployment.get("AutoRollbackConfiguration", {})
        api = self.access.api
        prefix = f"arn:aws:cloudwatch:{api.region}:{api.account}:alarm:"
        for alarm in rollback.get("Alarms", ()):
            yield Use(endpoint, ALARMS, "reads", prefix + alarm["AlarmName"], role, True)

    def _destinations(self, config: Any, config_name: str) -> Iterator[tuple[DataName, str, str]]:
        """Where SageMaker writes: the data, its URL, and its key if the configuration has one."""
        output = (config.async_inference_config or {}).get("OutputConfig", {})
        for member in ("S3OutputPath", "S3FailurePath"):
            if member in output:
                yield "asynchronous responses", output[member], output.get("KmsKeyId", "")

        capture = config.data_capture_config or {}
        if "DestinationS3Uri" in capture:
            yield "captured data", capture["DestinationS3Uri"], capture.get("KmsKeyId", "")

        shadows = self.fleets.kept_members(config_name).get("ShadowProductionVariants", [])
        for variant in (*config.production_variants, *shadows):
            dump = variant.get("CoreDumpConfig")
            if dump:
                yield "core dumps", dump["DestinationS3Uri"], dump.get("KmsKeyId", "")

    def _of_queue(self, endpoint: str, role: str, asynchronous: Mapping[str, Any]) -> Iterator[Use]:
        """What an asynchronous endpoint notifies, and the requests that it reads."""
        notified = asynchronous.get("OutputConfig", {}).get("NotificationConfig", {})
        topics = self.access.api.backend("sns").topics
        for member in ("SuccessTopic", "ErrorTopic"):
            if member in notified:
                topic = notified[member]
                found = topics.get(topic)
                key = self._key(found.kms_master_key_id if found else "")
                yield Use(endpoint, "notifications", "writes", topic, role, True, key)

        data: DataName = "asynchronous requests"
        for place in self._request_places(role):
            key = self._bucket_key(place)
            yield Use(endpoint, data, "reads", place, role, True, key)
            yield from self._of_others(Use(endpoint, data, "writes", place, role, False, key))

    def _of_others(self, use: Use) -> Iterator[Use]:
        """The same use by each other role that may use the place in S3."""
        for role in self.access.api.backend("iam").roles.values():
            if role.arn == use.role or is_assumed_role(self.access.api, role.arn):
                continue
            candidate = replace(use, role=role.arn)
            if self.permissions.certainly_uses(candidate):
                yield candidate

    # Roles and places.

    def _roles(self, config_name: str) -> set[str]:
        """The execution roles of the models of a configuration, or its own."""
        models = self._models
        names = self.fleets.models_of(config_name)
        found = {models[name].execution_role_arn for name in names if name in models}
        shared = self.fleets.kept_members(config_name).get("ExecutionRoleArn")
        if shared:
            found.add(shared)
        return found

    def _request_places(self, role: str) -> list[str]:
        """Where an asynchronous endpoint reads requests: the configuration does not say,
        its role does.
        """
        models = tuple(self._model_arns(self._models))
        patterns = allowed_resources(self.access.policies.stored(role), "s3:GetObject")

        places = []
        for pattern in dict.fromkeys(patterns):
            prefix = pattern.removesuffix("*")
            is_prefix = pattern.startswith(S3) and pattern.endswith("*")
            has_wildcards = any(sign in prefix for sign in "*?$")
            if not is_prefix or has_wildcards or prefix.startswith(_ASSETS):
                continue
            # What the role may read for its models is no place of requests.
            if any(arn.startswith(prefix) or prefix.startswith(arn) for arn in models):
                continue
            places.append(f"{prefix}{_OBJECT}")
        return places

    def _model_arns(self, names: Iterable[str]) -> Iterator[str]:
        """Yield the ARNs of the files of models."""
        models = self._models
        for name in names:
            if name not in models:
                continue
            model = models[name]
            for container in (*(model.containers or ()), model.primary_container or {}):
                source = container.get("ModelDataSource") or {}
                files = source.get("S3DataSource", {}).get("S3Uri")
                for url in filter(None, (container.get("ModelDataUrl"), files)):
                    yield url.replace("s3://", S3)

    def _place(self, url: str, key: str) -> tuple[str, str]:
        """The ARN of an object below a URL, and its key: the given one, or that of its bucket."""
        place = f"{url.replace('s3://', S3).rstrip('/')}/{_OBJECT}"
        return place, self._key(key) if key else self._bucket_key(place)

    def _bucket_key(self, place: str) -> str:
        bucket = place.removeprefix(S3).partition("/")[0]
        return self._key(self.access.s3_needs.default_key(bucket))

    def _key(self, given: str | None) -> str:
        """The ARN of a key; empty without one, and for an alias that no stack has."""
        if not given:
            return ""
        return key_arn(self.access.api, given) or ""

    @property
    def _models(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.access.api.backend("sagemaker").models
        return found

    @property
    def _configs(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.access.api.backend("sagemaker").endpoint_configs
        return found
