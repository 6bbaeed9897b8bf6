"""Names of inference components that are right whatever letters their ARNs have.

CloudFormation has no attribute for the name of a component, only for its ARN. No document says
whether the ARN keeps the capital letters of the name (``resource_arn`` has what is known), and the
names that CloudFormation generates have some. Alarms and scaling of a name in other letters belong
to no component.

So a component without a name gets one without capital letters, which its ARN contains in any case.
A name that is given is used itself.
"""

from __future__ import annotations

import hashlib
import re

from aws_cdk import Aws, Fn, Token
from constructs import Construct

# botocore sagemaker service model: InferenceComponentName has at most 63 characters, the last part
# of a stack's ID 36, and the digest 8.
_LONGEST_ID = 63 - 36 - 8 - 2


def generated_name(component: Construct, identity: str) -> str:
    """Return a name for a component that has none: the id, a digest, and the ID of the stack.

    The last part of a stack's ID is a UUID in lower case, which no other stack has, and which the
    stack keeps (AWS CloudFormation user guide, "AWS::StackId").

    Args:
        component: The component.
        identity: What SageMaker cannot change. With another one, a new component replaces the old
            one, and both exist for a while.
    """
    words = re.sub("[^a-z0-9]+", "-", component.node.id.lower())[:_LONGEST_ID].strip("-")
    parts = f"{component.node.path} {identity}"
    digest = hashlib.sha256(parts.encode()).hexdigest()[:8]
    stack = Fn.select(2, Fn.split("/", Aws.STACK_ID))
    return f"{words or 'component'}-{digest}-{stack}"


def referring_name(given: str | None, arn: str) -> str:
    """Return the name of a component, by which what uses it is created after it.

    Args:
        given: The name that the user has set; ``None`` for a generated one.
        arn: The reference to the ARN.
    """
    if given is None:
        return Fn.select(1, Fn.split("inference-component/", arn))
    # The first of both, with the second as a reference to the resource. The CDK's own Fn.select
    # would leave the reference out.
    return Token.as_string({"Fn::Select": [0, [given, arn]]})
