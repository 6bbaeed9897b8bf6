"""How long a policy can become in the account, where tokens have their values."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

POLICY_FRAME = len('{"Version":"2012-10-17","Statement":[]}')
"""The characters of a policy without statements."""

# The longest values that AWS has today, with a little room for the next Region.
_PSEUDO_PARAMETERS = {
    "AWS::AccountId": 12,
    "AWS::Partition": 10,
    "AWS::Region": 16,
    "AWS::StackId": 250,
    "AWS::StackName": 128,
    "AWS::URLSuffix": 18,
}
# The longest ARN of the resources that the statements name: a reference is a name, which is
# shorter, or an ARN. Source: the name limits in each service's API reference.
_LONGEST_ARNS = {"ecr": 320, "kms": 90, "lambda": 130, "s3": 90, "sagemaker": 130, "sns": 310}
_LONGEST_ARN = 320
_SUBSTITUTION = re.compile(r"\$\{[^}]{0,300}\}")


def statement_length(statement: Mapping[str, Any]) -> int:
    """Return the characters of a resolved statement, with each token as long as it can become.

    IAM does not count white space. Source: IAM user guide, "IAM and AWS STS quotas".
    """
    given = statement["Action"]
    actions = [given] if isinstance(given, str) else given
    services = {action.partition(":")[0] for action in actions}
    longest_arn = max(_LONGEST_ARNS.get(service, _LONGEST_ARN) for service in services)
    return _json_length(statement, longest_arn)


def _json_length(value: Any, reference: int) -> int:
    """Return the characters of a value as JSON without white space.

    ``reference`` is the length of a reference that only a deployment knows.
    """
    if _is_intrinsic(value):
        return 2 + _string_length(value, reference)
    if isinstance(value, Mapping):
        entries = [
            len(json.dumps(key)) + 1 + _json_length(each, reference) for key, each in value.items()
        ]
        return _with_separators(entries)
    if isinstance(value, list):
        return _with_separators([_json_length(each, reference) for each in value])
    return len(json.dumps(value))


def _with_separators(lengths: Sequence[int]) -> int:
    """Two brackets, and a comma between two parts."""
    return 2 + sum(lengths) + max(len(lengths) - 1, 0)


def _is_intrinsic(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and len(value) == 1
        and next(iter(value)).startswith(("Ref", "Fn::"))
    )


def _string_length(value: Any, reference: int) -> int:
    """Return the characters of a string or of a function that returns one."""
    match value:
        case str():
            return len(value)
        case {"Ref": str(name)} if name in _PSEUDO_PARAMETERS:
            return _PSEUDO_PARAMETERS[name]
        case {"Fn::Join": [str(separator), [*parts]]}:
            joints = len(separator) * (len(parts) - 1)
            return joints + sum(_string_length(part, reference) for part in parts)
        case {"Fn::Sub": str(text)}:
            return _substituted_length(text, reference)
    return reference


def _substituted_length(text: str, reference: int) -> int:
    """Return the length of the text of ``Fn::Sub``; ``reference`` is that of a reference in it."""
    length = len(_SUBSTITUTION.sub("", text))
    for substitution in _SUBSTITUTION.findall(text):
        name = substitution[2:-1]  # without ${ and }
        length += _PSEUDO_PARAMETERS.get(name, reference)
    return length
