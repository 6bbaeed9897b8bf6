"""How an update of an endpoint is deployed, rolled back and verified."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from constructs_triton.cdk.endpoint.execution_role import ExecutionRole
from constructs_triton.cdk.endpoint.properties import UpdateOptions
from constructs_triton.cdk.options.deployment import Deployment, render_deployment
from constructs_triton.cdk.permissions.alarm_topics import let_alarms_publish
from constructs_triton.cdk.permissions.statements import Statement
from constructs_triton_core.facts import limits
from constructs_triton_core.limit_checks import check_range


class EndpointUpdates:
    """The updates of one endpoint: its deployment, its rollback alarms and its verification.

    Args:
        construct: The endpoint's construct, the parent of what is added.
        endpoint: The endpoint, whose ``deployment_config`` is set here.
        endpoint_config: The configuration that each update changes.
        execution: The role that reads the alarms.
        options: The properties of the endpoint.
    """

    def __init__(
        self,
        construct: Construct,
        endpoint: sagemaker.CfnEndpoint,
        endpoint_config: sagemaker.CfnEndpointConfig,
        execution: ExecutionRole,
        options: UpdateOptions,
    ) -> None:
        self._construct = construct
        self._endpoint = endpoint
        self._endpoint_config = endpoint_config
        self._execution = execution
        self._deployment = options["deployment"]
        self._verify_update = options["verify_update"]
        self._alarm_names: list[str] = []

        if self._deployment is not None:
            endpoint.deployment_config = render_deployment(self._deployment, [])
            if self._deployment.alarms:
                self.add_rollback_alarms(self._deployment.alarms)
        if self._verify_update:
            self._add_update_check()

    def add_rollback_alarms(self, alarms: Sequence[cloudwatch.IAlarm]) -> None:
        """Roll a deployment back when one of the alarms goes into alarm.

        Raises:
            InvalidValueError: there are more than 10 alarms, or an alarm needs an ``alarm_name``.
        """
        from constructs_triton.cdk.options.rollback_alarms import rollback_alarm

        check_range("alarms", len(self._alarm_names) + len(alarms), limits.AUTO_ROLLBACK_ALARMS)
        added = [rollback_alarm(self._endpoint, alarm) for alarm in alarms]
        self._alarm_names += [alarm.name for alarm in added]
        self._execution.add(*(alarm.statement() for alarm in added))
        let_alarms_publish(self._construct, alarms)

        deployment = self._deployment or Deployment.all_at_once()
        self._endpoint.deployment_config = render_deployment(deployment, self._alarm_names)

        # CloudFormation reports an update that SageMaker has rolled back as complete, so an
        # endpoint with alarms is verified unless verify_update=False.
        if self._alarm_names and self._verify_update is None:
            self._add_update_check()

    def verify_responses(
        self,
        requests: str,
        *,
        variants: Sequence[str],
        target_models: Mapping[str, str],
        decrypt: Sequence[Statement],
    ) -> None:
        """Send recorded requests after each deployment that changes what is served.

        Args:
            requests: The recorded requests as JSON.
            variants: Names of the production variants.
            target_models: Archive of each model of a multi-model endpoint.
            decrypt: Permissions to decrypt the requests.
        """
        from constructs_triton.cdk.endpoint.deployment_verification import ResponseVerification

        ResponseVerification(
            self._construct,
            "Verification",
            requests=requests,
            endpoint=self._endpoint,
            endpoint_config=self._endpoint_config,
            variants=variants,
            target_models=target_models,
            decrypt=decrypt,
        )

    def _add_update_check(self) -> None:
        from constructs_triton.cdk.endpoint.deployment_verification import verify_update

        verify_update(self._construct, self._endpoint, self._endpoint_config)
