"""The codes of the problems that a rehearsal reports."""

__all__ = ["CODES"]

CODES = {
    "rehearse-update-fails": "CloudFormation cannot carry out the update.",
    "rehearse-name-collision": "A resource needs a name that another resource still has.",
    "rehearse-reader-loses-access": "New instances of an endpoint can no longer read a model.",
    "rehearse-data-loses-access": "A role can no longer read or write encrypted data of an endpoint.",
    "rehearse-previous-key-removed": "A role can no longer read older data under a previous key.",
    "rehearse-serving-stops": "An endpoint is deleted, for good or for a part of the update.",
    "rehearse-endpoint-replaced": "An endpoint gets another name, which its callers do not know.",
    "rehearse-fleet-shrinks": "A fleet that was scaled out gets its initial number of instances.",
    "rehearse-rollback-fails": "If a step fails, CloudFormation cannot return to the old version.",
    "rehearse-revert-unnoticed": "The stack does not notice that SageMaker kept the old configuration.",
    "rehearse-data-replaced": "A table, queue, bucket or other resource with data is replaced or deleted.",
    "rehearse-leftover": "A failure leaves a resource that costs money and belongs to no stack.",
    "rehearse-log-group-returns": "A deleted log group may be created again and be in the way later.",
    "rehearse-retained-needs": "A resource is retained, and something that it needs is deleted.",
    "rehearse-deletion-fails": "The new version cannot be deleted.",
}
"""Each code with its meaning."""
