"""The hints of the constructs' errors, followed literally in the code of an app."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import aws_cdk as cdk
import pytest
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_sns as sns
from cdk_apps import add_repository, make_stack

import constructs_triton as library

ENDPOINT = (
    'TritonEndpoint(self, "E", model_repository=repository, model="other", '
    'instance_type=InstanceType.of("ml.g5.xlarge"){})'
)
ENSEMBLE = (
    'TritonEnsembleEndpoint(self, "E", model_repository=repository, ensemble="pipeline", '
    'instance_type=InstanceType.of("ml.c6i.large"){})'
)
NAMED = ENSEMBLE.format(', endpoint_name="x"')
MANY = (
    'TritonMultiModelEndpoint(self, "E", model_repository=repository, '
    'instance_type=InstanceType.of("ml.c6i.large"){})'
)
CALLER = 'iam.Role(self, "R", assumed_by=iam.AccountRootPrincipal())'
SCALED = ".auto_scale_instance_count(min_capacity=1, max_capacity=2)"
BACKLOG = '.scale_on_backlog("B", target_backlog_per_instance=3)'
QUEUE = 'async_inference=AsyncInferenceConfig(bucket=s3.Bucket(self, "B"))'
SWITCH = 'off_switch=OffSwitch(self, "Night")'
FROM_HINT = "<hint>"
"""What the message says after "write", or in the quotes after "did you mean"."""


class Mistake(NamedTuple):
    """An app with a mistake, what the user replaces in it, and by what."""

    app: str
    wrong: str
    right: str


def mistake(
    app: str, wrong: str, right: str = FROM_HINT, more: str = "", then: str = ""
) -> Mistake:
    """An app from a template and further arguments, with a call of what it creates."""
    return Mistake(app.replace("{}", f", {more}" if more else "") + then, wrong, right)


MISTAKES: dict[str, Mistake] = {
    "a string as instance type": mistake(
        ENDPOINT.replace('InstanceType.of("ml.g5.xlarge")', '"ml.c6i.large"'), '"ml.c6i.large"'
    ),
    "name of EC2": mistake(ENSEMBLE.replace("ml.c6i", "c6i"), "c6i.large"),
    "misspelled instance type": mistake(ENSEMBLE.replace("c6i.large", "c6i.xlrge"), "ml.c6i.xlrge"),
    "Graviton": mistake(ENSEMBLE.replace("c6i.large", "c7g.large"), "ml.c7g.large", "ml.c7i.large"),
    "misspelled required keyword": mistake(
        ENSEMBLE.replace("model_repository=", "model_repositry="), "model_repositry"
    ),
    "misspelled keyword": mistake(ENSEMBLE, "endpont_name", more='endpont_name="x"'),
    "long name": mistake(ENSEMBLE, "a" * 70, "a" * 63, more=f'endpoint_name="{"a" * 70}"'),
    "underscore in a name": mistake(
        ENSEMBLE, "doc_understand", "doc-understand", more='endpoint_name="doc_understand"'
    ),
    "name of a switch": mistake(ENSEMBLE, '"Night"', more='off_switch="Night", endpoint_name="x"'),
    "switch without a name": mistake(
        ENSEMBLE,
        SWITCH,
        f'{SWITCH}, endpoint_name="x"',
        more=SWITCH,
    ),
    "switch of an adopted endpoint": mistake(
        ENSEMBLE,
        "adopt_existing=True, ",
        "",
        more=f'adopt_existing=True, {SWITCH}, endpoint_name="x"',
    ),
    "switch of an asynchronous endpoint": mistake(
        ENSEMBLE, f"{SWITCH}, ", "", more=f'{SWITCH}, endpoint_name="x", {QUEUE}'
    ),
    "misspelled ensemble": mistake(
        ENSEMBLE.replace('"pipeline"', '"pipelin"'), '"pipelin"', '"<hint>"'
    ),
    "ensemble as model": mistake(
        ENDPOINT.replace('model="other"', 'model="pipeline"'),
        'TritonEndpoint(self, "E", model_repository=repository, model="pipeline"',
        'TritonEnsembleEndpoint(self, "E", model_repository=repository, ensemble="pipeline"',
    ),
    "minimum above maximum": mistake(
        ENSEMBLE,
        "min_capacity=5",
        "min_capacity=1",
        then=SCALED.replace("min_capacity=1", "min_capacity=5"),
    ),
    "misspelled keyword of scaling": mistake(
        ENSEMBLE, "max_capcity", then=SCALED.replace("max_capacity", "max_capcity")
    ),
    "initial count outside": mistake(
        ENSEMBLE, "max_capacity=2", "max_capacity=8", more="initial_instance_count=8", then=SCALED
    ),
    "canary of 60 percent": mistake(
        ENSEMBLE,
        "percent(60)",
        "percent(50)",
        more="deployment=Deployment.blue_green_canary(canary_size=CapacitySize.percent(60))",
    ),
    "misspelled keyword of a factory": mistake(
        ENSEMBLE,
        "canary_sze",
        more="deployment=Deployment.blue_green_canary(canary_sze=CapacitySize.percent(20))",
    ),
    "real-time endpoint to zero": mistake(
        ENSEMBLE,
        "min_capacity=0",
        "min_capacity=1",
        then=SCALED.replace("min_capacity=1", "min_capacity=0"),
    ),
    "guard of an endpoint to zero": mistake(
        ENSEMBLE,
        ", scaling_guard=True",
        "",
        more=f"{QUEUE}, scaling_guard=True",
        then=f"{SCALED.replace('min_capacity=1', 'min_capacity=0')}{BACKLOG}",
    ),
    "crontab line of scaling": mistake(
        ENSEMBLE,
        '"0 20 * * 1-5"',
        then=f'{SCALED}.scale_on_schedule("N", schedule="0 20 * * 1-5", min_capacity=1)',
    ),
    "fields of AWS for scaling": mistake(
        ENSEMBLE,
        '"0 20 ? * MON *"',
        then=f'{SCALED}.scale_on_schedule("N", schedule="0 20 ? * MON *", min_capacity=1)',
    ),
    "crontab line of a switch": mistake(
        'OffSwitch(self, "Night").add_schedule("N", off="30 6 1 * *")', '"30 6 1 * *"'
    ),
    "GPU scaling without GPU": mistake(
        ENSEMBLE,
        'scale_on_gpu_utilization("G")',
        'scale_on_invocations_per_instance("G", target_invocations_per_minute=100)',
        then=f'{SCALED}.scale_on_gpu_utilization("G")',
    ),
    "fraction for percent": mistake(
        ENDPOINT,
        "0.6",
        then=f'{SCALED}.scale_on_gpu_utilization("G", target_utilization_percent=0.6)',
    ),
    "image without leading zero": mistake(ENSEMBLE, '"26.5"', more='image=TritonImage.dlc("26.5")'),
    "image of the future": mistake(
        ENSEMBLE, '"29.01"', '"26.05"', more='image=TritonImage.dlc("29.01")'
    ),
    "grant of another kind": mistake(
        ENSEMBLE, "grant_invoke", "grant_invoke_async", more=QUEUE, then=f".grant_invoke({CALLER})"
    ),
    "backlog of a real-time endpoint": mistake(
        ENSEMBLE,
        BACKLOG,
        '.scale_on_invocations_per_instance("B", target_invocations_per_minute=100)',
        then=f"{SCALED}{BACKLOG}",
    ),
    "number as timeout": mistake(ENSEMBLE, "600", more="model_data_download_timeout=600"),
    "number as objective": mistake(
        ENSEMBLE.format("") + ".add_alarms(model_latency_objective=200)", "200"
    ),
    "number as volume": mistake(
        ENDPOINT.replace("ml.g5.xlarge", "ml.c5.large"), "50", more="volume_size=50"
    ),
    "misspelled keyword of the environment": mistake(
        ENSEMBLE, "log_verbos=", "<hint>=", more="environment=TritonEnvironment(log_verbos=True)"
    ),
    "misspelled keyword of asynchronous inference": mistake(
        ENSEMBLE, "bukcet", more='async_inference=AsyncInferenceConfig(bukcet=s3.Bucket(self, "B"))'
    ),
    "misspelled keyword of a source": mistake(
        'TritonModelRepository(self, "M", source=ModelSource.from_directory(pth=path))',
        "pth",
    ),
    "misspelled keyword of a repository": mistake(
        'TritonModelRepository(self, "M", sorce=ModelSource.from_directory(path))', "sorce"
    ),
    "string as key": mistake(
        ENSEMBLE,
        '"arn:aws:kms:eu-west-1:123456789012:key/1"',
        more='encryption_key="arn:aws:kms:eu-west-1:123456789012:key/1"',
    ),
    "string as role": mistake(
        ENSEMBLE,
        '"arn:aws:iam::123456789012:role/r"',
        more='role="arn:aws:iam::123456789012:role/r"',
    ),
    "string as bucket": mistake(
        ENSEMBLE, '"my-bucket"', more='data_capture=DataCapture(bucket="my-bucket")'
    ),
    "grant of an unknown model": mistake(
        MANY.format("") + f'.grant_invoke({CALLER}, target_models=["othr"])', '"othr"', '"<hint>"'
    ),
    "grant of a stream of many models": mistake(
        MANY.format("") + f".grant_invoke_with_response_stream({CALLER})",
        MANY.format("") + ".grant_invoke_with",
        ENDPOINT.format("") + ".grant_invoke_with",
    ),
    "shadow of many models": mistake(
        MANY,
        MANY.format(', shadow_variant=TritonVariant(variant_name="s")'),
        ENDPOINT.format(', shadow_variant=TritonVariant(variant_name="s")'),
        more='shadow_variant=TritonVariant(variant_name="s")',
    ),
    "long timeout": mistake(
        ENSEMBLE,
        "Duration.hours(2)",
        "Duration.seconds(3600)",
        more="container_startup_health_check_timeout=cdk.Duration.hours(2)",
    ),
    "folder that does not exist": mistake(
        'TritonModelRepository(self, "M", source=ModelSource.from_directory("modles"))',
        '"modles"',
        "path",
    ),
    "string as source": mistake('TritonModelRepository(self, "M", source="{path}")', '"{path}"'),
    "short retention": mistake(
        'TritonModelRepository(self, "M", source=ModelSource.from_directory(path), '
        "prune_after=cdk.Duration.hours(1))",
        "cdk.Duration.hours(1)",
        "cdk.Duration.days(1)",
    ),
    "number as retention": mistake(
        'TritonModelRepository(self, "M", source=ModelSource.from_directory(path), prune_after=30)',
        "30",
    ),
    "alarms that depend on the endpoint": mistake(
        f"e = {ENSEMBLE.format('')}\ne.add_rollback_alarms(*e.add_alarms().rollback_alarms)",
        "add_alarms()",
        'add_alarms(alarm_name_prefix="e")',
    ),
    "two endpoints of one name": mistake(
        ENSEMBLE.format(', endpoint_name="one"')
        + "\n"
        + ENSEMBLE.format(', endpoint_name="one"').replace('"E"', '"F"'),
        'endpoint_name="one"',
        'endpoint_name="two"',
    ),
    "routing word": mistake(ENSEMBLE, "RANDON", more='routing_strategy="RANDON"'),
    "instance type of EC2": mistake(
        ENSEMBLE.replace("InstanceType.of(", "ec2.InstanceType(").replace("ml.", ""),
        'ec2.InstanceType("c6i.large")',
        'InstanceType.of("ml.c6i.large")',
    ),
    "name of a role": mistake(ENSEMBLE, '"service-role/r"', more='role="service-role/r"'),
    "URL of a bucket": mistake(
        ENSEMBLE, '"s3://my-bucket/"', more='data_capture=DataCapture(bucket="s3://my-bucket/")'
    ),
    "URL of a bucket with a key": mistake(
        'TritonModelRepository(self, "M", source=ModelSource.from_bucket(s3.Bucket(self, '
        '"B"), "s3://b/a.tar.gz"))',
        '"s3://b/a.tar.gz"',
    ),
    "URL as folder": mistake(
        'TritonModelRepository(self, "M", source=ModelSource.from_directory("s3://b/models/"))',
        'from_directory("s3://b/models/")',
        'from_s3_prefix(s3.Bucket(self, "B"), "models/")',
    ),
    "ARN of a bucket": mistake(
        ENSEMBLE,
        '"arn:aws:s3:::my-bucket"',
        more='data_capture=DataCapture(bucket="arn:aws:s3:::my-bucket")',
    ),
    "image of NGC": mistake(
        ENSEMBLE,
        '"nvcr.io/nvidia/tritonserver:26.05-py3"',
        more='image="nvcr.io/nvidia/tritonserver:26.05-py3"',
    ),
    "image of another registry": mistake(
        ENSEMBLE,
        '"123456789012.dkr.ecr.eu-west-1.amazonaws.com/triton:1"',
        more='image="123456789012.dkr.ecr.eu-west-1.amazonaws.com/triton:1"',
    ),
    "image of another server of AWS": mistake(
        ENSEMBLE,
        ', image=TritonImage.from_registry("763104351884.dkr.ecr.eu-west-1.amazonaws.com/vllm:1")',
        "",
        more="image=TritonImage.from_registry("
        '"763104351884.dkr.ecr.eu-west-1.amazonaws.com/vllm:1")',
    ),
    "small number as interval": mistake(
        ENSEMBLE, "10", more="deployment=Deployment.blue_green_canary(wait_interval=10)"
    ),
    "seconds as objective": mistake(
        ENSEMBLE.format("") + ".add_alarms(model_latency_objective=0.25)", "0.25"
    ),
    "mapping of CloudFormation as variant": mistake(
        ENSEMBLE,
        '{"variantName": "a", "initialVariantWeight": 9}',
        more='variants=[{"variantName": "a", "initialVariantWeight": 9}]',
    ),
    "topic as action": mistake(
        f'topic = sns.Topic(self, "T")\n{ENSEMBLE.format("")}.add_alarms(actions=[topic])', "topic"
    ),
    "string as grantee": mistake(
        ENSEMBLE,
        '"arn:aws:iam::123456789012:role/r"',
        then='.grant_invoke("arn:aws:iam::123456789012:role/r")',
    ),
    "string as operator": mistake(ENSEMBLE, '"r"', then='.grant_operate("r")'),
    "one model in place of a list": mistake(
        MANY.format("") + f'.grant_invoke({CALLER}, target_models="other")', '"other"'
    ),
    "archive without its digest": mistake(
        MANY.format("") + f'.grant_invoke({CALLER}, target_models=["other.tar.gz"])',
        '"other.tar.gz"',
        '"<hint>"',
    ),
    "list of rollback alarms": mistake(
        f"e = {NAMED}\nalarms = e.add_alarms()\ne.add_rollback_alarms(alarms.rollback_alarms)",
        "alarms.rollback_alarms",
        "*alarms.rollback_alarms",
    ),
    "alarms of an endpoint": mistake(
        f"e = {NAMED}\nalarms = e.add_alarms()\ne.add_rollback_alarms(alarms)",
        "e.add_rollback_alarms(alarms)",
        "e.<hint>",
    ),
    "second alarms": mistake(
        f"e = {ENSEMBLE.format('')}\ne.add_alarms()\ne.add_alarms()",
        "add_alarms()",
        'add_alarms("Alarms2")',
    ),
    "second repository": mistake(
        'for _ in "ab": TritonModelRepository(self, "M", source=ModelSource.from_directory(path))',
        '"M"',
        '"M" + _',
    ),
    "second endpoint": mistake(f'for _ in "ab": {ENSEMBLE}', '"E"', '"E" + _'),
    "string in place of a list": mistake(
        ENSEMBLE,
        '"SUCCESS_NOTIFICATION_TOPIC"',
        more='async_inference=AsyncInferenceConfig(bucket=s3.Bucket(self, "B"), success_topic='
        'sns.Topic(self, "T"), include_inference_response_in="SUCCESS_NOTIFICATION_TOPIC")',
    ),
    "role as in CloudFormation": mistake(
        ENSEMBLE,
        'execution_role_arn="arn:aws:iam::123456789012:role/r"',
        'role=iam.Role.from_role_arn(self, "Role", "arn:aws:iam::123456789012:role/r")',
        more='execution_role_arn="arn:aws:iam::123456789012:role/r"',
    ),
    "variant without its list": mistake(
        ENDPOINT,
        'TritonVariant(variant_name="a")',
        '[TritonVariant(variant_name="a")]',
        more='variants=TritonVariant(variant_name="a")',
    ),
}


def run(app: str, path: Path) -> None:
    """Run the lines of an app in a new stack."""
    stack = make_stack()
    names: Mapping[str, Any] = {name: getattr(library, name) for name in library.__all__}
    own = {
        "self": stack,
        "path": path,
        "repository": add_repository(stack, path),
        "Duration": cdk.Duration,
        "Size": cdk.Size,
    }
    modules = {
        "cdk": cdk,
        "cloudwatch": cloudwatch,
        "ec2": ec2,
        "iam": iam,
        "scheduler": scheduler,
        "Schedule": appscaling.Schedule,
        "kms": kms,
        "s3": s3,
        "sns": sns,
    }
    modules["aws_cloudwatch_actions"] = aws_cloudwatch_actions
    exec(app.replace("{path}", str(path)), {**names, **own, **modules})


def hint_of(message: str) -> str:
    """Return what a message says to write."""
    found = re.search(r"; (?:did you mean|write(?: it as)?) (.*?)\??$", message)
    assert found, message
    return found[1].strip('"') if "did you mean" in message else found[1]


@pytest.mark.parametrize("name", MISTAKES)
def test_followed_hint_lets_the_app_run(name: str, path: Path) -> None:
    """The app raises an error, and runs after the user has done what the hint says."""
    app, wrong, right = MISTAKES[name]
    with pytest.raises((TypeError, ValueError)) as error:
        run(app, path)
    if FROM_HINT in right:
        right = right.replace(FROM_HINT, hint_of(str(error.value)))
    assert wrong in app
    corrected = app[::-1].replace(wrong[::-1], right[::-1], 1)[::-1]
    assert corrected != app
    run(corrected, path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "instance type of EC2",
            r'write InstanceType\.of\("ml\.c6i\.large"\), with .* not of aws_ec2$',
        ),
        ("small number as interval", r"write Duration\.seconds\(10\) or Duration\.minutes\(10\)$"),
        ("number as timeout", r"write Duration\.seconds\(600\)$"),
        ("mapping of CloudFormation as variant", r"variant_name='a', initial_variant_weight=9\)$"),
        ("archive without its digest", r'did you mean "other"\?$'),
        ("list of rollback alarms", r"^alarms: .*; write \* before it"),
        ("role as in CloudFormation", r"^execution_role_arn: .*; set role=iam\.Role"),
        ("URL as folder", r"^path: .*; use from_bucket for a \.tar\.gz, or from_s3_prefix$"),
    ],
)
def test_hint_has_the_values_of_the_user(name: str, message: str, path: Path) -> None:
    """The error names what the user wrote, where the app would run with the
    hint of an example too.
    """
    with pytest.raises((TypeError, ValueError), match=message):
        run(MISTAKES[name].app, path)


def test_string_of_another_server_of_aws_is_an_image_of_a_component(path: Path) -> None:
    """The error about a string shows the image of the construct that serves it."""
    uri = "763104351884.dkr.ecr.eu-west-1.amazonaws.com/vllm:1"
    with pytest.raises(ValueError, match=r"AWS's image .vllm. has no Triton$") as error:
        run(ENSEMBLE.replace("{}", f', image="{uri}"'), path)
    image, _, place = hint_of(str(error.value)).partition(" and give it to ")
    assert image == f'ServingImage.from_registry("{uri}")'
    assert place.startswith("ContainerInferenceComponent, ")
    cpu = 'InstanceType.of("ml.c6i.large")'
    bounds = "min_instance_count=1, max_instance_count=1"
    host = f'TritonComponentEndpoint(self, "H", instance_type={cpu}, {bounds})'
    options = 'number_of_cpu_cores=1, environment={"SM_VLLM_MODEL": "Qwen/Qwen3-0.6B"}'
    run(
        f'ContainerInferenceComponent(self, "C", endpoint={host}, image={image}, '
        f"min_memory=Size.gibibytes(1), {options})",
        path,
    )
