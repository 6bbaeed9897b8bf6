"""Whether a role or a service may do what it does with data: with its place, and with its key.

Sources: KMS developer guide, the pages of the services that use KMS; Amazon SNS developer guide and
Amazon SQS developer guide, "Key management".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from constructs_triton_core.facts.encrypted_data import READ_ACTIONS, WRITE_ACTIONS

from ..permissions.access import Access
from ..permissions.policy import parse_policy
from ..permissions.s3_needs import Need, services_of_s3
from .data_uses import ALARMS, EVENTS, NOTICES, S3, SCHEDULES, Use
from .service_uses import AWS_MANAGED_KEYS, policies_of_queue, without_sender

_WITHOUT_PLACE = ("storage volumes", "logs", SCHEDULES)
"""Data whose place asks no permission of the role: services write it."""
_ACTIONS_OF_SERVICES = {"notifications": "sns:Publish", ALARMS: "cloudwatch:DescribeAlarms"}
_ACTIONS_OF_S3 = {"reads": "s3:GetObject", "writes": "s3:PutObject"}


@dataclass(frozen=True)
class DataPermissions:
    """Asks the policies of the account as they are."""

    access: Access

    def refusal(self, use: Use) -> str:
        """Why a role may not do what it does; empty if it may."""
        return self.place_refusal(use) or self.key_refusal(use)

    def certainly_uses(self, use: Use) -> bool:
        """Whether the policies of the stacks let a role use a place in S3."""
        action = _ACTIONS_OF_SERVICES.get(use.data, _ACTIONS_OF_S3[use.action])
        return self.access.certainly_allows(use.role, action, use.place, {})

    def place_refusal(self, use: Use) -> str:
        """Why a role may not use a place, leaving encryption aside; empty if it may."""
        if use.data in _WITHOUT_PLACE:
            return ""

        if use.data == EVENTS:
            return self._event_refusal(use)

        if use.data == NOTICES:
            request = self._of_alarms("sns:Publish", use.place)
            policies = self.access.resource_policies
            is_allowed = policies.allow_service_to_publish(use.role, request)
            return "" if is_allowed else "sns:Publish is not allowed"

        action = _ACTIONS_OF_SERVICES.get(use.data, _ACTIONS_OF_S3[use.action])
        context = _of_upload(use) if use.is_own and action == "s3:PutObject" else {}
        is_allowed = self.access.allows(use.role, action, use.place, context)
        return "" if is_allowed else f"{action} is not allowed"

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

    def key_refusal(self, use: Use) -> str:
        """Why a role may not use the key of data; empty if it may, or without a key."""
        if use.data == "logs":
            return self._log_refusal(use)
        if use.data in (EVENTS, NOTICES):
            return self._service_refusal(use)

        for action, key, context in self._key_needs(use):
            if not self.access.allows(use.role, action, key, context):
                return f"{action} is not allowed"
        return ""

    def _log_refusal(self, use: Use) -> str:
        """CloudWatch Logs uses the key of a log group itself, for that group only (CloudWatch Logs
        user guide, "Encrypt log data in CloudWatch Logs using AWS Key Management Service").
        """
        context = {"kms:EncryptionContext:aws:logs:arn": use.place}
        request = {"action": "kms:GenerateDataKey", "resource": use.key, "context": context}
        is_allowed = self.access.resource_policies.allow_service(use.role, request)
        return "" if is_allowed else "kms:GenerateDataKey is not allowed"

    def _service_refusal(self, use: Use) -> str:
        """Why CloudWatch or EventBridge may not use the key of a topic or a queue; empty if it may.

        Their own keys have policies that let roles use them, and no other service (Amazon SNS
        developer guide and Amazon SQS developer guide, "Key management").
        """
        if use.key in AWS_MANAGED_KEYS:
            return f"kms:GenerateDataKey is not allowed with {use.key}"
        if not use.key:
            return ""

        of_service = self._of_alarms if use.data == NOTICES else self._of_rules
        for action in WRITE_ACTIONS:
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
        """What a role needs to use a key through the service that has the data."""
        if not use.key:
            return

        region = self.access.api.region
        if use.data == "storage volumes":
            # SageMaker attaches the volume of an instance by a grant (SageMaker developer guide,
            # "Protect data at rest using encryption").
            context = {
                "kms:ViaService": f"sagemaker.{region}.amazonaws.com",
                "kms:GrantIsForAWSResource": "true",
            }
            yield "kms:CreateGrant", use.key, context
            return

        actions = READ_ACTIONS if use.action == "reads" else WRITE_ACTIONS
        for action in actions:
            for service in self._services(use):
                yield action, use.key, {"kms:ViaService": service}

    def _services(self, use: Use) -> list[str]:
        """The services through which a role uses a key."""
        region = self.access.api.region
        if use.place.startswith(S3):
            return services_of_s3(region)
        # What a schedule could not deliver goes to a queue.
        if use.data == SCHEDULES and use.action == "writes":
            return [f"sqs.{region}.amazonaws.com"]
        service = use.place.split(":")[2]
        return [f"{service}.{region}.amazonaws.com"]


def _of_upload(use: Use) -> dict[str, str]:
    """The condition keys of uploads (API: ProductionVariantCoreDumpConfig;
    inferred for other data).
    """
    header = "s3:x-amz-server-side-encryption"
    context = {header: "aws:kms"}
    if use.key:
        context[f"{header}-aws-kms-key-id"] = use.key
    return context
