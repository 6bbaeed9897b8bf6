"""Names and ARNs of endpoints and components whose name has capital letters.

ARNs of endpoints have the name in lower case and IAM compares letters; everything else has the
name as it was given. Each public member of each construct is used, so a new one is asked too.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import aws_cdk as cdk
import pytest
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from cdk_apps import add_repository, flattened, resources, warnings, write_repository

import constructs_triton as library
from constructs_triton import (
    InstanceType,
    OffSwitch,
    TritonComponentEndpoint,
    TritonInferenceComponent,
)
from constructs_triton_core.errors import InvalidValueError

ACCOUNT = "123456789012"
NAME = "DigitsProd"
ARN = f"arn:aws:sagemaker:eu-west-1:{ACCOUNT}:endpoint/digitsprod"
GPU = InstanceType.of("ml.g5.12xlarge")
ASK = r"endpoint_name=\.\.\., endpoint_arn=\.\.\."
PUBLIC = [getattr(library, name) for name in library.__all__]
ENDPOINTS: list[Any] = [value for value in PUBLIC if hasattr(value, "from_endpoint_name")]
COMPONENTS: list[Any] = [
    value for value in PUBLIC if hasattr(value, "from_inference_component_name")
]
"""Endpoints and components of the library, found by their imports."""

WITHOUT_NAMES = ("add_adapter", "add_to_role_policy", "apply_plan", "variant")
"""Members that take what a user has, and write no name of the endpoint."""
MODELS: dict[str, dict[str, Any]] = {
    "TritonEndpoint": {"model": "other"},
    "TritonEnsembleEndpoint": {"ensemble": "pipeline"},
    "TritonMultiModelEndpoint": {},
}
"""What each endpoint with models needs besides the repository."""


def stacks() -> tuple[cdk.Stack, cdk.Stack]:
    """A stack, and a stack of another Region in the same app."""
    app = cdk.App()
    ireland = cdk.Environment(account=ACCOUNT, region="eu-west-1")
    virginia = cdk.Environment(account=ACCOUNT, region="us-east-1")
    return cdk.Stack(app, "Here", env=ireland), cdk.Stack(app, "There", env=virginia)


def template_of(stack: cdk.Stack) -> dict[str, Any]:
    """The template of a stack after a synthesis of its app."""
    artifact = cast(cdk.App, stack.node.root).synth().get_stack_by_name(stack.stack_name)
    template: dict[str, Any] = artifact.template
    return template


def created(kind: Any, stack: cdk.Stack, path: Path, **options: Any) -> Any:
    """An endpoint of a class, with the name."""
    given = {"endpoint_name": NAME, "instance_type": GPU, **options}
    if kind is TritonComponentEndpoint:
        return kind(stack, "Endpoint", min_instance_count=1, max_instance_count=2, **given)
    models = add_repository(stack, write_repository(path / "models"))
    return kind(stack, "Endpoint", model_repository=models, **MODELS[kind.__name__], **given)


def arguments(function: Any, values: dict[str, Any]) -> dict[str, Any]:
    """The required arguments of a method, by their names."""
    required = {}
    for name, parameter in inspect.signature(function).parameters.items():
        is_several = parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        if parameter.default is parameter.empty and not is_several:
            required[name] = values[name]
    return required


def use_everything(construct: Any, caller: iam.IGrantable) -> Iterator[str]:
    """Use each public member of a construct, and yield what was refused."""
    values = {
        "min_capacity": 1,
        "max_capacity": 2,
        "grantee": caller,
        "metric_name": "CPUUtilization",
    }
    stack = cdk.Stack.of(construct)
    for name in sorted(set(dir(type(construct))) - set(dir(cdk.Resource))):
        if name.startswith(("_", "from_", "cfn_")) or name in WITHOUT_NAMES:
            continue
        try:
            value = getattr(construct, name)
            if name.startswith("add_") or not callable(value):
                found = value() if callable(value) else value
            elif name == "grant":
                found = value(caller, "sagemaker:DescribeEndpoint")
            else:
                found = value(**arguments(value, values | {"id": name}))
        except InvalidValueError as error:
            yield f"{name}: {error}"
            continue
        # The CDK refuses an alarm of another Region.
        if isinstance(found, cloudwatch.Metric) and found.region in (None, stack.region):
            cloudwatch.Alarm(
                stack, f"AlarmOf{name}", metric=found, threshold=1, evaluation_periods=1
            )
        elif isinstance(found, str):
            cdk.CfnOutput(stack, f"OutputOf{name}".replace("_", ""), value=found)


def texts(value: Any) -> Iterator[str]:
    """Yield each string in a template."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from texts(name)
            yield from texts(member)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    else:
        yield str(value)


def wrong_letters(app: Any) -> list[str]:
    """Return the strings of an app's templates that have the name in the wrong letters."""
    templates = [artifact.template for artifact in app.synth().stacks]
    found = []
    for text in texts(flattened(templates)):
        for match in re.finditer(NAME, text, re.IGNORECASE):
            # The ARN of an alarm has the alarm's name, which may contain the endpoint's.
            is_arn = text[: match.start()].endswith(":endpoint/")
            if match[0] != (NAME.lower() if is_arn else NAME):
                found.append(text)
    return found


@pytest.mark.parametrize("kind", ENDPOINTS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("has_switch", [False, True], ids=["plain", "switch"])
def test_created_endpoint_has_its_letters_everywhere(
    tmp_path: Path, kind: Any, has_switch: bool
) -> None:
    """Callers of the stack and of another Region are allowed the ARN in lower case; alarms,
    scaling, logs and outputs have the name.
    """
    here, there = stacks()
    if has_switch and "off_switch" not in inspect.signature(kind).parameters:
        pytest.skip("has no such property")
    options = {"off_switch": OffSwitch(here, "Night")} if has_switch else {}
    endpoint = created(kind, here, tmp_path, **options)
    list(use_everything(endpoint, iam.User(here, "Caller")))
    far = iam.Role(there, "Far", role_name="far", assumed_by=iam.AccountRootPrincipal())
    endpoint.grant(far, "sagemaker:InvokeEndpoint")
    assert wrong_letters(here.node.root) == []


@pytest.mark.parametrize("kind", ENDPOINTS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("given", [{}, {"endpoint_arn": ARN}], ids=["name", "both"])
def test_import_by_name_has_its_letters_everywhere(kind: Any, given: dict[str, str]) -> None:
    """An import by name, or by name and ARN, needs nothing more for any member."""
    here, _ = stacks()
    endpoint = kind.from_endpoint_attributes(here, "Imported", endpoint_name=NAME, **given)
    refused = list(use_everything(endpoint, iam.User(here, "Caller")))
    assert not any(re.search(ASK, error) for error in refused)
    assert wrong_letters(here.node.root) == []


@pytest.mark.parametrize("kind", ENDPOINTS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("is_token", [False, True], ids=["literal", "token"])
def test_import_by_arn_asks_for_the_name(kind: Any, is_token: bool) -> None:
    """Each member that needs the name asks for it; grants of calls do not."""
    here, _ = stacks()
    arn = cdk.Fn.import_value("Arn") if is_token else ARN
    endpoint = kind.from_endpoint_arn(here, "Imported", arn)
    refused = list(use_everything(endpoint, iam.User(here, "Caller")))
    asked = {error.partition(":")[0] for error in refused if re.search(ASK, error)}
    assert {"endpoint_name", "metric_model_latency", "grant_operate"} <= asked
    if kind is not TritonComponentEndpoint:
        assert {"add_alarms", "add_dashboard", "auto_scale_instance_count"} <= asked
    assert not asked & {"grant", "grant_invoke", "endpoint_arn"}
    assert wrong_letters(here.node.root) == []
    assert "Fn::Split" not in str(template_of(here))


@pytest.mark.parametrize("kind", ENDPOINTS, ids=lambda kind: kind.__name__)
def test_grant_for_a_name_of_a_parameter_is_a_warning(kind: Any) -> None:
    """CloudFormation cannot write a name in lower case, so the permission may not be that of
    the endpoint.
    """
    here, _ = stacks()
    name = cdk.CfnParameter(here, "Name").value_as_string
    for case, given in (("Name only", {}), ("Both", {"endpoint_arn": ARN})):
        endpoint = kind.from_endpoint_attributes(here, case, endpoint_name=name, **given)
        endpoint.grant(iam.User(here, f"Caller of {case}"), "sagemaker:InvokeEndpoint")
    (warning,) = warnings(here)
    assert "ARNs of endpoints are in lower case" in warning
    assert "import the endpoint with endpoint_arn too" in warning


@pytest.mark.parametrize("kind", ENDPOINTS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("place", [f"us-east-1:{ACCOUNT}", "eu-west-1:210987654321"])
def test_endpoint_of_elsewhere_is_not_watched_and_not_scaled(kind: Any, place: str) -> None:
    """An alarm of another account or Region would watch nothing; the calls may be granted."""
    here, _ = stacks()
    arn = f"arn:aws:sagemaker:{place}:endpoint/digitsprod"
    endpoint = kind.from_endpoint_attributes(here, "Imported", endpoint_name=NAME, endpoint_arn=arn)
    errors = use_everything(endpoint, iam.User(here, "User"))
    refused = {error.partition(":")[0] for error in errors}
    assert {"add_alarms", "auto_scale_instance_count"} & set(dir(endpoint)) <= refused
    assert not refused & {"grant_invoke", "grant", "add_dashboard", "endpoint_name"}


def test_name_and_arn_must_agree() -> None:
    """Name and ARN of different endpoints, and an ARN with capital letters, are refused with
    what to write.
    """
    here, _ = stacks()
    for kind in ENDPOINTS:
        with pytest.raises(InvalidValueError, match=r'"digitsprod" in any letters, got "Other"'):
            kind.from_endpoint_attributes(here, "I", endpoint_name="Other", endpoint_arn=ARN)
        with pytest.raises(
            InvalidValueError,
            match=rf'lower case, .*; write endpoint_name="{NAME}", endpoint_arn="{ARN}"$',
        ):
            kind.from_endpoint_arn(here, "I", ARN.replace("digitsprod", NAME))
    assert here.node.try_find_child("I") is None


@pytest.mark.parametrize("kind", COMPONENTS, ids=lambda kind: kind.__name__)
def test_permission_for_a_component_has_both_spellings(kind: Any) -> None:
    """No source says which letters the ARN of a component has, so a grant allows both."""
    here, _ = stacks()
    endpoint = TritonComponentEndpoint.from_endpoint_name(here, "Host", NAME)
    component = kind.from_inference_component_name(here, "Imported", NAME, endpoint=endpoint)
    list(use_everything(component, iam.User(here, "Caller")))

    (policy,) = resources(template_of(here), "AWS::IAM::Policy").values()

    arn = re.compile(rf":inference-component/({NAME})", re.IGNORECASE)
    names = arn.findall(str(flattened(policy)))
    assert names.count(NAME) > 0
    assert names.count(NAME) == names.count(NAME.lower())


def test_component_by_arn_takes_the_name() -> None:
    """Metrics and scaling of a component that was imported by its ARN have the given name."""
    here, _ = stacks()
    arn = ARN.replace("endpoint/", "inference-component/")
    endpoint = TritonComponentEndpoint.from_endpoint_name(here, "Host", NAME)
    component = TritonInferenceComponent.from_inference_component_arn(
        here, "Imported", arn, endpoint=endpoint, inference_component_name=NAME
    )
    assert component.inference_component_name == NAME
    with pytest.raises(InvalidValueError, match=r'"digitsprod" in any letters, got "Other"'):
        TritonInferenceComponent.from_inference_component_arn(
            here, "Other", arn, endpoint=endpoint, inference_component_name="Other"
        )
