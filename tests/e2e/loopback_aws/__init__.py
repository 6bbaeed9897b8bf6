"""An AWS account on loopback in which a real ``cdk deploy`` runs from bootstrap to destroy.

moto answers for the services; CloudFormation is a stand-in, since moto's own reports success for resources
that it skips. The stand-in resolves templates, orders resources, calls the services through boto3, runs the
functions of custom resources with the credentials of their roles, and rolls back. What it does not know is an
error.
"""

from .behaviour import CALM, Behaviour
from .errors import ApiError, ResourceFailedError, StackError, TemplateError
from .loopback import LoopbackAws
from .stack import Stack

__all__ = [
    "CALM",
    "ApiError",
    "Behaviour",
    "LoopbackAws",
    "ResourceFailedError",
    "Stack",
    "StackError",
    "TemplateError",
]
