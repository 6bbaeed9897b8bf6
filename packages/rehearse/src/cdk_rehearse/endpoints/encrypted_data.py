"""Who uses data that is encrypted with a KMS key, and whether they still may after each step.

Everything comes from the resources of the stacks: the endpoint configurations say where an endpoint
writes, buckets and topics have keys, and the policies of roles say who reads and writes there. S3
does not encrypt existing objects again when the key of a bucket changes, so what was written before
a step keeps its key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from constructs_triton_core.facts.encrypted_data import (
    READ_ACTIONS,
    WRITE_ACTIONS,
    DataName,
)

from ..existing import is_assumed_role
from ..permissions.access import Access
from ..permissions.policy import allowed_resources, parse_policy
from ..permissions.s3_needs import Need, key_arn, services_of_s3
from ..steps import Step
from .data_uses import (
    ALARMS,
    ARCHIVES,
    EVENTS,
    MODELS,
    NOTICES,
    SCHEDULES,
    DataReading,
    Use,
    previous_uses,
)
from .fleets import Fleets
from .service_uses import AWS_MANAGED_KEYS, policies_of_queue, service_uses, without_sender

__all__ = ["DataReading", "EncryptedDataUses", "Use"]

_S3 = "arn:aws:s3:::"
_ASSETS = f"{_S3}cdk-"
_OBJECT = "rehearsed"
"""The key of an object below a prefix."""


@dataclass
class EncryptedDataUses:
    """Derives the uses from the account as it is."""

    fleets: Fleets
    access: Access
    _before: tuple[Use, ...] = field(default_factory=tuple)

    def remember(self) -> None:
        """Keep in mind what can be used now: something may wait under its key,
        or under a previous key.
        """
        present = tuple(self._uses_of_data())
        previous = [
            each for each in self._under_previous_keys(present) if not self._key_refusal(each)
        ]
        self._before = (*(each for each in present if not self.refusal(each)), *previous)

    def _under_previous_keys(self, present: Sequence[Use]) -> Iterator[Use]:
        known = (*present, *self._uses_of_models())
        for role in sorted({each.role for each in known if each.role.startswith("arn:")}):
            if not is_assumed_role(self.access.api, role):
                of_role = [each for each in known if each.role == role]
                yield from previous_uses(of_role, self.access.policies.stored(role))

    def _uses_of_models(self) -> Iterator[Use]:
        """The models of each endpoint; an archive in the CDK's asset bucket keeps its key."""
        for name, config_name in self.fleets.running():
            for role in sorted(self._roles(config_name)):
                for place in self._model_arns(self.fleets.models_of(config_name)):
                    data = ARCHIVES if place.startswith(_ASSETS) else MODELS
                    yield Use(name, data, "reads", place, role, True, self._bucket_key(place))

    def inspect(self, moment: Step) -> Iterator[DataReading]:
        """Yield whether what is used now, and what was written before the update, can be used."""
        present = tuple(self._uses_of_data())
        known = {(each.data, each.action, each.place, each.role) for each in self._before}
        for use in present:
            if use.is_own or (use.data, use.action, use.place, use.role) in known:
                yield DataReading(moment, use, False, self.refusal(use))
        for use in self._lost(present):
            yield DataReading(moment, use, False, self.refusal(use))
        for use in self._waiting(present):
            yield DataReading(moment, use, True, self._key_refusal(use))

    def _lost(self, present: Sequence[Use]) -> Iterator[Use]:
        """What no policy allows any more to a role that exists, though the endpoint still uses the
        place.

        Policies alone say who else uses a place, and where an asynchronous endpoint reads requests.
        """
        used = {(each.endpoint, each.place) for each in present}
        queues = {
            (each.endpoint, each.role) for each in present if each.data == "asynchronous responses"
        }
        roles = {each.arn for each in self.access.api.backend("iam").roles.values()}
        for use in self._before:
            is_used = (use.endpoint, use.place) in used or (use.endpoint, use.role) in queues
            is_known = any(replace(use, key=each.key) == each for each in present)
            is_lost = use.role in roles and is_used and not (is_known or use.has_previous_key)
            if is_lost and self._s3_refusal(use):
                yield use

    def _waiting(self, present: Sequence[Use]) -> Iterator[Use]:
        """What was written before, with the roles that read it now."""
        endpoints = {each.endpoint for each in present}
        own = {(each.endpoint, each.role) for each in present if each.is_own}
        for use in self._before:
            if use.data == ARCHIVES:
                loaded = [each for each in self._uses_of_models() if each.place == use.place]
                yield from (
                    replace(use, role=each.role) for each in loaded if each.endpoint == use.endpoint
                )
                continue
            if use.action == "writes" or not (use.key and use.endpoint):
                continue
            if use.endpoint not in endpoints:
                continue
            if not use.is_own and self._s3_refusal(use):
                continue  # it is no reader any more
            roles = (
                [role for name, role in own if name == use.endpoint] if use.is_own else [use.role]
            )
            yield from (replace(use, role=role) for role in roles)

    def uses(self) -> Iterator[Use]:
        """Yield each use of the endpoints and log groups that exist, allowed or not."""
        yield from (replace(each, data=MODELS) for each in self._uses_of_models())
        yield from self._uses_of_data()

    def _uses_of_data(self) -> Iterator[Use]:
        """Yield the uses besides those of models,
        whose objects :class:`Fleets` reads one by one.
        """
        backend = self._sagemaker
        yield from self._uses_of_services()
        for name, config_name in self.fleets.running():
            config = backend.endpoint_configs[config_name]
            for role in sorted(self._roles(config_name)):
                if not is_assumed_role(self.access.api, role):
                    yield from self._of_role(name, role, config, config_name)

    def _uses_of_services(self) -> Iterator[Use]:
        """Yield what services encrypt: log groups, notifications of alarms, events, undelivered
        schedules.
        """
        api = self.access.api
        service = f"logs.{api.region}.amazonaws.com"
        for group in api.backend("logs").groups.values():
            if group.kms_key_id:
                key = self._key(group.kms_key_id)
                yield Use("", "logs", "writes", group.arn.removesuffix(":*"), service, True, key)
        for use in service_uses(api):
            if not use.role.startswith("arn:"):
                of_aws = [each for each in AWS_MANAGED_KEYS if (use.key or "").endswith(each)]
                yield replace(use, key=of_aws[0] if of_aws else self._key(use.key))
            elif not is_assumed_role(api, use.role):
                yield replace(use, key=self._key(use.key))

    def _roles(self, config_name: str) -> set[str]:
        models = self._sagemaker.models
        names = self.fleets.models_of(config_name)
        found = {models[name].execution_role_arn for name in names if name in models}
        shared = self.fleets.kept_members(config_name).get("ExecutionRoleArn")
        return found | ({shared} if shared else set())

    def _of_role(self, endpoint: str, role: str, config: Any, config_name: str) -> Iterator[Use]:
        def own(data: DataName, action: Literal["reads", "writes"], place: str, key: str) -> Use:
            return Use(endpoint, data, action, place, role, True, key)

        rollback = self.fleets.deployments.get(endpoint, {}).get("AutoRollbackConfiguration", {})
        for alarm in rollback.get("Alarms", ()):
            arn = f"arn:aws:cloudwatch:{self.access.api.region}:{self.access.api.account}:alarm:"
            yield Use(endpoint, ALARMS, "reads", arn + alarm["AlarmName"], role, True)
        if config.kms_key_id:
            yield own(
                "storage volumes", "writes", f"endpoint/{endpoint}", self._key(config.kms_key_id)
            )
        for data, url, key in self._destinations(config, config_name):
            place, key_of_place = self._place(url, key)
            yield own(data, "writes", place, key_of_place)
            yield from self._others(
                "reads", Use(endpoint, data, "reads", place, role, False, key_of_place)
            )
        asynchronous = config.async_inference_config or {}
        notifications = asynchronous.get("OutputConfig", {}).get("NotificationConfig", {})
        for topic in [
            notifications[each] for each in ("SuccessTopic", "ErrorTopic") if each in notifications
        ]:
            found = self.access.api.backend("sns").topics.get(topic)
            yield own(
                "notifications",
                "writes",
                topic,
                self._key(found.kms_master_key_id if found else ""),
            )
        for place in self._request_places(role) if asynchronous else ():
            key = self._bucket_key(place)
            yield own("asynchronous requests", "reads", place, key)
            request = Use(endpoint, "asynchronous requests", "writes", place, role, False, key)
            yield from self._others("writes", request)

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
        dumps = [each.get("CoreDumpConfig") for each in (*config.production_variants, *shadows)]
        for dump in filter(None, dumps):
            yield "core dumps", dump["DestinationS3Uri"], dump.get("KmsKeyId", "")

    def _others(self, action: Literal["reads", "writes"], use: Use) -> Iterator[Use]:
        """The other roles that may use the same place in S3."""
        roles = self.access.api.backend("iam").roles.values()
        for each in [found for found in roles if found.arn != use.role]:
            candidate = replace(use, role=each.arn, action=action)
            if not is_assumed_role(self.access.api, each.arn) and not self._s3_refusal(candidate):
                yield candidate

    def _request_places(self, role: str) -> list[str]:
        """Where an asynchronous endpoint reads requests: the configuration does not say,
        its role does.
        """
        models = tuple(self._model_arns(self._sagemaker.models))
        patterns = allowed_resources(self.access.policies.stored(role), "s3:GetObject")
        prefixes = [each[:-1] for each in patterns if each.startswith(_S3) and each.endswith("*")]
        return [
            f"{each}{_OBJECT}"
            for each in dict.fromkeys(prefixes)
            if not any(sign in each for sign in "*?$") and not each.startswith(_ASSETS)
            if not any(model.startswith(each) or each.startswith(model) for model in models)
        ]

    def _model_arns(self, names: Iterable[str]) -> Iterator[str]:
        models = self._sagemaker.models
        for model in [models[name] for name in names if name in models]:
            for container in (*(model.containers or ()), model.primary_container or {}):
                source = (
                    (container.get("ModelDataSource") or {}).get("S3DataSource", {}).get("S3Uri")
                )
                for url in filter(None, (container.get("ModelDataUrl"), source)):
                    yield url.replace("s3://", _S3)

    def _place(self, url: str, key: str) -> tuple[str, str]:
        place = f"{url.replace('s3://', _S3).rstrip('/')}/{_OBJECT}"
        return place, self._key(key) if key else self._bucket_key(place)

    def _bucket_key(self, place: str) -> str:
        return self._key(
            self.access.s3_needs.default_key(place.removeprefix(_S3).partition("/")[0])
        )

    def _key(self, given: str | None) -> str:
        """The ARN of a key; empty without one, and for an alias that no stack has."""
        return (key_arn(self.access.api, given) if given else None) or ""

    def refusal(self, use: Use) -> str:
        """Why a role may not do what it does; empty if it may."""
        return self._s3_refusal(use) or self._key_refusal(use)

    def _s3_refusal(self, use: Use) -> str:
        """Why a role may not use a place, leaving encryption aside; empty if it may."""
        if use.data in ("storage volumes", "logs", SCHEDULES):
            return ""
        if use.data == EVENTS:
            return self._event_refusal(use)
        if use.data == NOTICES:
            is_allowed = self.access.resource_policies.allow_service_to_publish(
                use.role, self._of_alarms("sns:Publish", use.place)
            )
            return "" if is_allowed else "sns:Publish is not allowed"
        of_services = {"notifications": "sns:Publish", ALARMS: "cloudwatch:DescribeAlarms"}
        of_s3 = {"reads": "s3:GetObject", "writes": "s3:PutObject"}
        action = of_services.get(use.data, of_s3[use.action])
        context = _of_upload(use) if use.is_own and action == "s3:PutObject" else {}
        return (
            ""
            if self.access.allows(use.role, action, use.place, context)
            else f"{action} is not allowed"
        )

    def _event_refusal(self, use: Use) -> str:
        """Why EventBridge may not send to a topic or a queue; empty if it may, or if no stack has
        it.

        The default policies allow it in no case. The CDK adds a policy for a topic or a queue that
        it creates, and none for an imported one (EventBridge user guide, "Resource-based policies";
        aws/aws-cdk issue 25583).
        """
        policies = self.access.resource_policies
        topic = self.access.api.backend("sns").topics.get(use.place)
        if topic is not None:
            documents = [without_sender(parse_policy(topic.policy))]
            request = self._of_rules("sns:Publish", use.place)
            is_allowed = policies.allow_service_in(documents, use.role, request)
            return "" if is_allowed else "sns:Publish is not allowed"
        queue = policies_of_queue(self.access.api, use.place)
        if queue is None:
            return ""
        request = self._of_rules("sqs:SendMessage", queue.arn)
        is_allowed = policies.allow_service_in(queue.documents, use.role, request)
        return "" if is_allowed else "sqs:SendMessage is not allowed"

    def _key_refusal(self, use: Use) -> str:
        """Why a role may not use the key of data; empty if it may, or without a key."""
        if use.data == "logs":
            group = {"kms:EncryptionContext:aws:logs:arn": use.place}
            request = {"action": "kms:GenerateDataKey", "resource": use.key, "context": group}
            is_allowed = self.access.resource_policies.allow_service(use.role, request)
            return "" if is_allowed else "kms:GenerateDataKey is not allowed"
        if use.data in (EVENTS, NOTICES):
            return self._service_refusal(use)
        for action, key, context in self._key_needs(use):
            if not self.access.allows(use.role, action, key, context):
                return f"{action} is not allowed"
        return ""

    def _service_refusal(self, use: Use) -> str:
        """Why CloudWatch or EventBridge may not use the key of a topic or a queue; empty if it may.

        Their own keys have policies that let roles use them, and no other service (Amazon SNS
        developer guide and Amazon SQS developer guide, "Key management").
        """
        if use.key in AWS_MANAGED_KEYS:
            return f"kms:GenerateDataKey is not allowed with {use.key}"
        of_service = self._of_alarms if use.data == NOTICES else self._of_rules
        for action in WRITE_ACTIONS if use.key else ():
            request = of_service(action, use.key)
            if not self.access.resource_policies.allow_service(use.role, request):
                return f"{action} is not allowed"
        return ""

    def _of_alarms(self, action: str, resource: str) -> dict[str, Any]:
        """A request of CloudWatch for an alarm of the account.

        The keys are those that the documents name: aws:SourceOwner in the default policy of a
        topic, the others against the confused deputy (Amazon SNS developer guide, "Key
        management").
        """
        account = self.access.api.account
        alarms = f"arn:aws:cloudwatch:{self.access.api.region}:{account}:alarm:any"
        context = {
            "aws:SourceAccount": account,
            "aws:SourceOwner": account,
            "AWS:SourceOwner": account,
            "aws:SourceArn": alarms,
            "aws:SecureTransport": "true",
        }
        return {"action": action, "resource": resource, "context": context}

    def _of_rules(self, action: str, resource: str) -> dict[str, Any]:
        """A request of EventBridge for a rule of the account.

        AWS says that EventBridge sends no ``aws:SourceAccount`` and no ``aws:SourceArn`` to the key
        of a topic (Amazon SNS developer guide, "Key management"), and does not say it of queues. So
        a policy with these conditions is no problem here.
        """
        api = self.access.api
        rules = f"arn:aws:events:{api.region}:{api.account}:rule/any"
        context = {
            "aws:SourceAccount": api.account,
            "aws:SourceArn": rules,
            "aws:SecureTransport": "true",
        }
        return {"action": action, "resource": resource, "context": context}

    def _key_needs(self, use: Use) -> Iterator[Need]:
        region = self.access.api.region
        if not use.key:
            return
        if use.data == "storage volumes":
            service = {"kms:ViaService": f"sagemaker.{region}.amazonaws.com"}
            yield "kms:CreateGrant", use.key, {**service, "kms:GrantIsForAWSResource": "true"}
            return
        actions = READ_ACTIONS if use.action == "reads" else WRITE_ACTIONS
        if use.place.startswith(_S3):
            services = services_of_s3(region)
        elif use.data == SCHEDULES and use.action == "writes":
            services = [f"sqs.{region}.amazonaws.com"]  # a queue of what could not be delivered
        else:
            services = [f"{use.place.split(':')[2]}.{region}.amazonaws.com"]
        for action in actions:
            yield from ((action, use.key, {"kms:ViaService": service}) for service in services)

    @property
    def _sagemaker(self) -> Any:
        return self.access.api.backend("sagemaker")


def _of_upload(use: Use) -> dict[str, str]:
    """The condition keys of uploads (API: ProductionVariantCoreDumpConfig;
    inferred for other data).
    """
    header = "s3:x-amz-server-side-encryption"
    return {header: "aws:kms", **({f"{header}-aws-kms-key-id": use.key} if use.key else {})}
