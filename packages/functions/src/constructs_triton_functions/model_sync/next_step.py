"""What the person who deploys does after a failure, by the operation that failed."""

from __future__ import annotations

from ..response import Event

__all__ = ["next_step"]


def next_step(event: Event) -> str:
    """The instruction at the end of a reason.

    A function does not know whether an update is a rollback. CloudFormation refuses every update in the state
    UPDATE_ROLLBACK_FAILED until the rollback has been continued.
    """
    if event["RequestType"] == "Delete":
        return "then delete the stack again"
    if event["RequestType"] == "Update":
        return (
            "then deploy again, or run cdk rollback (aws cloudformation continue-update-rollback) if the "
            "stack is in UPDATE_ROLLBACK_FAILED"
        )
    properties = event["ResourceProperties"]
    if str(properties.get("RemoveOnDelete", "false")).lower() == "true":
        return "then deploy again"
    bucket = properties.get("DestinationBucket")
    return (
        f"then deploy again. What was placed stays in the bucket {bucket}; if this stack created it, the "
        f"next attempt creates another, so delete this one: aws s3 rb --force s3://{bucket}"
    )
