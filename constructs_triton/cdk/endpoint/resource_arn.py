"""Names and ARNs of SageMaker resources: the only place that derives one from the other.

ARNs of endpoints contain the name in lower case, and IAM compares ARNs letter by letter. A
permission for ``endpoint/DigitsProd`` therefore allows no call of the endpoint ``DigitsProd``, and
a metric or a scalable target of the name in the ARN, ``digitsprod``, belongs to no endpoint.
Sources: github aws/amazon-sagemaker-examples issue 293 (the output of list-endpoints has both),
philschmid/cdk-samples issue 2 (the refused call), prometheus-community
yet-another-cloudwatch-exporter pull request 1178 (metrics have the name as it was given).

No document says which letters the ARN of an inference component has. A public script contains the
answer of ``list-inference-components`` for a component ``EinsteinTextEval``: its ARN keeps the
capital letters, and the ARN of its endpoint in the same answer has none. The pull request above
expects lower case for both. So grants name both spellings, and a name that is taken from the ARN is
right if the script is.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from aws_cdk import ArnFormat, Stack
from constructs import Construct

from constructs_triton.cdk.permissions.statements import arn_in_stack
from constructs_triton.cdk.validation.property_types import shown
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts import limits
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.limit_checks import check_name, check_string
from constructs_triton_core.tokens import is_lookup_dummy, is_token

_COMPONENT = "inference-component"
# In place of a name that the next synthesis knows; see is_lookup_dummy.
_LATER = "looked-up-later"
_SOURCE = (
    "github aws/amazon-sagemaker-examples issue 293: list-endpoints; "
    "philschmid/cdk-samples issue 2: AccessDenied"
)


def endpoint_arn_of(scope: Construct, endpoint_name: str) -> str:
    """Return the ARN of an endpoint of this account and Region.

    CloudFormation cannot change letters, so a name that is a token is taken as it is.

    Raises:
        InvalidValueError: the name is not a string.
    """
    _check_string("endpoint_name", endpoint_name)
    return arn_in_stack(scope, "sagemaker", "endpoint", name_in_endpoint_arn(endpoint_name))


def name_in_endpoint_arn(endpoint_name: str) -> str:
    """Return an endpoint's name as its ARN contains it."""
    return endpoint_name if is_token(endpoint_name) else endpoint_name.lower()


def unknown_letters() -> Finding:
    """Return the warning about a permission for an ARN whose letters are known at deployment."""
    return Finding(
        "endpoint-arn-letters-unknown",
        Severity.WARNING,
        "endpoint_name",
        "the permission is for an ARN made from a name that is known only at deployment, and "
        "ARNs of endpoints are in lower case: for a name with capital letters it allows no call",
        "import the endpoint with endpoint_arn too, write the name in the code, or acknowledge "
        "this if the name has no capital letters",
        source=_SOURCE,
    )


def component_arns_of(scope: Construct, inference_component_name: str) -> tuple[str, ...]:
    """Return the ARNs that a component of this account and Region may have: one or two.

    Whether its ARN has the letters of the name or lower case is not known, so a permission
    names both. They differ only for a name with capital letters.

    Raises:
        InvalidValueError: the name is not a string.
    """
    _check_string("inference_component_name", inference_component_name)
    names = [inference_component_name]
    if not is_token(inference_component_name):
        names.append(inference_component_name.lower())
    return tuple(
        arn_in_stack(scope, "sagemaker", _COMPONENT, name) for name in dict.fromkeys(names)
    )


def component_name_and_arn(scope: Construct, name: str | None, arn: str) -> tuple[str, str]:
    """Return the name and the ARN of a component: the given name, or the one in the ARN.

    Raises:
        InvalidValueError: the ARN is not that of an inference component, or not that of the name.
    """
    if is_lookup_dummy(arn):
        return name or _LATER, arn_in_stack(scope, "sagemaker", _COMPONENT, _LATER)
    in_arn = _name_in_arn(scope, _COMPONENT, arn)
    if name is None:
        return in_arn, arn
    _check_string("inference_component_name", name)
    if not is_token(arn) and not is_token(name) and name.lower() != in_arn.lower():
        raise InvalidValueError(
            "inference_component_name: must be the name of the component in "
            f'inference_component_arn, "{in_arn}" in any letters, got "{name}"; remove it'
        )
    return name, arn


class EndpointNameAndArn(NamedTuple):
    """How an endpoint that exists already is referred to.

    ``name`` is ``None`` if only the ARN is given. ``has_arn_of_token`` is whether the ARN was
    made from a name that is known only at deployment.
    """

    name: str | None
    arn: str
    has_arn_of_token: bool = False


def endpoint_name_and_arn(
    scope: Construct, name: str | None, arn: str | None
) -> EndpointNameAndArn:
    """Return name and ARN of an endpoint by one of the two, or check both.

    Raises:
        InvalidValueError: none is given, one of them is not that of an endpoint, or they are of
            different endpoints.
    """
    if name is None and arn is None:
        raise InvalidValueError("endpoint_name: is required; set it, or set endpoint_arn")
    if name is not None:
        _check_string("endpoint_name", name)
        check_name("endpoint_name", name, limits.ENDPOINT_NAME)
    if arn is None:
        assert name is not None
        return EndpointNameAndArn(name, endpoint_arn_of(scope, name), is_token(name))

    if is_lookup_dummy(arn):
        return EndpointNameAndArn(name, arn_in_stack(scope, "sagemaker", "endpoint", _LATER))
    in_arn = _name_in_arn(scope, "endpoint", arn)
    check_name("endpoint_name", in_arn, limits.ENDPOINT_NAME)
    if is_token(arn):
        return EndpointNameAndArn(name, arn)
    if in_arn != in_arn.lower():
        raise InvalidValueError(
            "endpoint_arn: must have the name in lower case, because SageMaker writes ARNs of "
            f'endpoints so and IAM compares letters, got "{arn}"; write endpoint_name="{in_arn}", '
            f'endpoint_arn="{arn.removesuffix(in_arn)}{in_arn.lower()}"'
        )
    if name is not None and not is_token(name) and name.lower() != in_arn:
        raise InvalidValueError(
            f'endpoint_name: must be the name of the endpoint in endpoint_arn, "{in_arn}" in any '
            f'letters, got "{name}"; remove one of them'
        )
    return EndpointNameAndArn(name, arn)


def _check_string(property: str, name: object) -> None:
    if not isinstance(name, str):
        raise InvalidValueError(
            f'{property}: must be a string, got {shown(name)}; write for example "digits"'
        )


def _name_in_arn(scope: Construct, resource: str, arn: str) -> str:
    """Return the name of a resource from its ARN.

    Raises:
        InvalidValueError: it is not the ARN of such a resource.
    """
    if is_token(arn):
        check_string(f"{resource.replace('-', '_')}_arn", arn)
    form = f"arn:[^:]+(:[^:]*){{3}}:{resource}/.+"
    if not is_token(arn) and not (isinstance(arn, str) and re.fullmatch(form, arn)):
        raise InvalidValueError(
            f"{resource.replace('-', '_')}_arn: must be the ARN of an "
            f"{resource.replace('-', ' ')}, got {shown(arn)}; write for example "
            f'"arn:aws:sagemaker:eu-west-1:123456789012:{resource}/digits"'
        )
    name = Stack.of(scope).split_arn(arn, ArnFormat.SLASH_RESOURCE_NAME).resource_name
    assert name is not None  # the format says that there is one
    return name
