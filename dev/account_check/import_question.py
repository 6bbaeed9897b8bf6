"""How an account answers the question about the import of an endpoint."""

from __future__ import annotations

import json
from typing import Any

from botocore.exceptions import ClientError

from .account import Account

_STACK = "TritonAccountCheckImported"
_NAME = "constructs-triton-account-check"


def imported(account: Account) -> str:
    """Create an endpoint outside the stack, and ask for a change set that would import it."""
    created = account.deploy(_STACK, 1)
    if not created.is_created:
        return f"create {created}"
    sagemaker, config = account.client("sagemaker"), account.endpoint(_STACK)["EndpointConfigName"]
    sagemaker.create_endpoint(EndpointName=_NAME, EndpointConfigName=config)
    try:
        in_service = account.wait(lambda: _status(sagemaker) == "InService")
        state = "in service" if in_service else _status(sagemaker)
        return f"create {created}; endpoint {state}; import {_import(account, config)}"
    finally:
        sagemaker.delete_endpoint(EndpointName=_NAME)
        account.delete_log_group(f"/aws/sagemaker/Endpoints/{_NAME}")


def _status(sagemaker: Any) -> str:
    status: str = sagemaker.describe_endpoint(EndpointName=_NAME)["EndpointStatus"]
    return status


def _import(account: Account, config: str) -> str:
    """Whether CloudFormation accepts the change set, which is not executed."""
    cloudformation = account.client("cloudformation")
    arn = account.client("sagemaker").describe_endpoint(EndpointName=_NAME)["EndpointArn"]
    resource = {
        "Type": "AWS::SageMaker::Endpoint",
        "DeletionPolicy": "Retain",
        "Properties": {"EndpointName": _NAME, "EndpointConfigName": config},
    }
    wanted = {
        "ResourceType": resource["Type"],
        "LogicalResourceId": "Endpoint",
        "ResourceIdentifier": {"EndpointArn": arn},
    }
    try:
        cloudformation.create_change_set(
            StackName=_NAME,
            ChangeSetName=_NAME,
            ChangeSetType="IMPORT",
            TemplateBody=json.dumps({"Resources": {"Endpoint": resource}}),
            ResourcesToImport=[wanted],
        )
    except ClientError as error:
        return f"refused: {error}"
    try:
        return _described(account, cloudformation)
    finally:
        cloudformation.delete_change_set(StackName=_NAME, ChangeSetName=_NAME)
        cloudformation.delete_stack(StackName=_NAME)


def _described(account: Account, cloudformation: Any) -> str:
    def describe() -> dict[str, Any]:
        found: dict[str, Any] = cloudformation.describe_change_set(
            StackName=_NAME, ChangeSetName=_NAME
        )
        return found

    account.wait(lambda: not describe()["Status"].endswith(("_PENDING", "_IN_PROGRESS")))
    found = describe()
    reason = found.get("StatusReason")
    return f"{found['Status']}: {reason}" if reason else str(found["Status"])
