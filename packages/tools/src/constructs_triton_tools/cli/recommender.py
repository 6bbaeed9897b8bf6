"""``constructs-triton plan recommender``: write jobs of Inference Recommender, and read their results."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from constructs_triton_core.aws.aws_reader import AwsReader
from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack
from constructs_triton_core.cloud_assembly.template import Template
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.program.argument_types import add_common, whole_number
from constructs_triton_core.untrusted.regular_files import read_json, write_whole
from constructs_triton_core.untrusted.terminal import print_lines, print_note
from constructs_triton_tools.cli.deployed.aws_arguments import open_session
from constructs_triton_tools.cli.dialogue import recommend
from constructs_triton_tools.planning.recommender import read_recommendations, write_measurements
from constructs_triton_tools.planning.recommender_request import MULTI_MODEL_REASON, Phase, RecommenderRequest

_CONTAINER_OPTIONS = {
    "domain": "machine learning domain",
    "task": "task",
    "framework": "framework",
    "framework-version": "version of the framework",
    "nearest-model-name": "similar published model",
    "payload-url": "S3 URI of a .tar.gz with sample payloads",
    "content-type": "content type of the payloads",
}
_LIMITS = (
    ("--max-invocations", "N", "invocations per minute at which the test of a type ends"),
    ("--latency-ms", "MS", "p95 at which the test of a type ends"),
    ("--max-tests", "N", "maximum number of tests"),
    ("--max-parallel-tests", "N", "tests that run at a time"),
    ("--duration-seconds", "N", "maximum length of the job"),
)
_EPILOG = """\
example, a default job, which recommends instance types, and the load test of AWS's benchmark of BERT:
  constructs-triton plan recommender request --job-type Default --job-name bert-types --role-arn ROLE \\
      --model-name bert-trt --domain NATURAL_LANGUAGE_PROCESSING --task FILL_MASK --framework PYTORCH \\
      -o types.json
  constructs-triton plan recommender request --job-name bert-trt --role-arn ROLE --model-name bert-trt \\
      --instance-type ml.g4dn.xlarge ml.g4dn.2xlarge --phase 2:2:1500 --max-invocations 30000 \\
      --latency-ms 500 --domain NATURAL_LANGUAGE_PROCESSING --task FILL_MASK --framework PYTORCH -o job.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``plan recommender`` and its actions."""
    parser.description = (
        "Load tests by SageMaker Inference Recommender: it creates its own endpoints of one model, and its "
        "users wait for each answer. `constructs-triton load-test` measures your endpoint in an open loop."
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    request = actions.add_parser(
        "request",
        help="write the request of a job",
        description="Write a request of CreateInferenceRecommendationsJob, checked against the AWS API, and "
        "print the command that starts it. Nothing is sent to AWS.",
        epilog=_EPILOG,
    )
    _add_request(request)
    imported = actions.add_parser(
        "import",
        help="turn a finished job into the CSV file for plan",
        description="Turn the results of a finished job into the CSV file for `constructs-triton plan`.",
    )
    imported.add_argument(
        "job",
        metavar="JOB",
        help="the job's name, or a file with the output of "
        "`aws sagemaker describe-inference-recommendations-job`",
    )
    add_common(imported, "--region", "--profile")
    imported.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help="CSV file to write",
    )


def _add_request(parser: argparse.ArgumentParser) -> None:
    # fmt: off
    parser.add_argument("--job-name", required=True, metavar="NAME", help="name of the job")
    parser.add_argument("--role-arn", required=True, metavar="ARN", help="role that SageMaker assumes")
    model = parser.add_mutually_exclusive_group(required=True)
    model.add_argument("--model-name", metavar="NAME", help="the SageMaker model to test")
    model.add_argument("--model-package-version-arn", metavar="ARN",
                       help="a version in the model registry, instead of --model-name")
    parser.add_argument("--template", type=Path, metavar="FILE",
                        help="synthesized template that has the model; multi-model endpoints are refused")
    parser.add_argument("--job-type", choices=("Advanced", "Default"), default="Advanced",
                        help="Default recommends instance types with a load of its own in up to 45 minutes; "
                             "Advanced tests the types and the load that you choose (default: %(default)s)")
    parser.add_argument("--instance-type", nargs="+", default=[], metavar="TYPE", dest="instance_types",
                        help="1 to 10 instance types; a default job may have none")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE,VALUE",
                        help="values of an environment variable to try; repeat it for up to 5 variables")
    parser.add_argument("--phase", action="append", default=[], metavar="USERS:SPAWN_RATE:SECONDS",
                        help="users at the start, users added per minute, and length; repeat it "
                             "(default of an advanced job: 2:2:1500)")
    for name, metavar, text in _LIMITS:
        parser.add_argument(name, type=whole_number(), metavar=metavar, help=text)
    for name, text in _CONTAINER_OPTIONS.items():
        parser.add_argument(f"--{name}", metavar=name.upper().replace("-", "_"),
                            help=f"{text} of a model that is not in the model registry")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="JSON file to write")
    # fmt: on


def run(arguments: argparse.Namespace) -> int:
    """Run one action."""
    return _request(arguments) if arguments.action == "request" else _import(arguments)


# --- request ----------------------------------------------------------------------------------------------


def _request(arguments: argparse.Namespace) -> int:
    if arguments.template:
        check_template(arguments.template)
    is_default = arguments.job_type == "Default"
    if not (is_default or arguments.instance_types):
        raise InvalidValueError(
            "--instance-type: is required for an advanced job; set 1 to 10 instance types"
        )
    phases = arguments.phase or ([] if is_default else ["2:2:1500"])
    request = RecommenderRequest(
        job_name=arguments.job_name,
        role_arn=arguments.role_arn,
        model_name=arguments.model_name,
        model_package_version_arn=arguments.model_package_version_arn,
        instance_types=arguments.instance_types,
        phases=[_phase(text) for text in phases],
        job_type=arguments.job_type,
        environment=dict(_variable(text) for text in arguments.env),
        max_invocations=arguments.max_invocations,
        latency_ms=arguments.latency_ms,
        max_tests=arguments.max_tests,
        max_parallel_tests=arguments.max_parallel_tests,
        duration_seconds=arguments.duration_seconds,
        container=_container(arguments),
    ).to_request()
    write_whole(arguments.output, json.dumps(request, indent=2) + "\n")
    print_note(f"wrote {arguments.output}")
    print_lines(
        f"aws sagemaker create-inference-recommendations-job --cli-input-json file://{arguments.output}",
        f"constructs-triton plan recommender import {arguments.job_name} -o benchmark.csv  # once completed",
    )
    return 0


def check_template(path: Path) -> None:
    """Refuse the multi-model endpoints of a template, with the reason."""
    stack = SynthesizedStack(str(path), Template.read(path))
    for logical_id in stack.created("AWS::SageMaker::Model"):
        container = stack.known_properties(logical_id).get("PrimaryContainer") or {}
        if container.get("Mode") == "MultiModel":
            raise InvalidValueError(f"{path}: {logical_id} serves several models. {MULTI_MODEL_REASON}")


def _phase(text: str) -> Any:
    numbers = text.split(":")
    if len(numbers) != 3 or not all(number.isdecimal() for number in numbers):
        raise InvalidValueError(
            f'--phase: must have the form USERS:SPAWN_RATE:SECONDS, got "{text}"; write 2:2:1500'
        )
    return Phase(*map(int, numbers))


def _variable(text: str) -> tuple[str, list[str]]:
    name, equals, values = text.partition("=")
    if not (name and equals and values):
        raise InvalidValueError(f'--env: must have the form NAME=VALUE,VALUE, got "{text}"; write A=1,2')
    return name, values.split(",")


def _container(arguments: argparse.Namespace) -> dict[str, Any]:
    payload = {
        "SamplePayloadUrl": arguments.payload_url,
        "SupportedContentTypes": [arguments.content_type] if arguments.content_type else None,
    }
    values = {
        "Domain": arguments.domain,
        "Task": arguments.task,
        "Framework": arguments.framework,
        "FrameworkVersion": arguments.framework_version,
        "NearestModelName": arguments.nearest_model_name,
        "PayloadConfig": {name: value for name, value in payload.items() if value},
    }
    return {name: value for name, value in values.items() if value}


# --- import -----------------------------------------------------------------------------------------------


def _import(arguments: argparse.Namespace) -> int:
    measurements = read_recommendations(_job(arguments))
    write_measurements(arguments.output, measurements)
    print_note(f"wrote {len(measurements)} rows to {arguments.output}")
    recommend(f"plan {arguments.output} --requests-per-second N")
    return 0


def _job(arguments: argparse.Namespace) -> Any:
    file = Path(arguments.job)
    if not file.exists() and file.suffix != ".json":
        return _describe(arguments)
    try:
        return read_json(file)
    except (OSError, ValueError) as error:
        raise InvalidValueError(
            f"{file}: cannot be read ({error}); give a JSON file, or a job's name"
        ) from None


def _describe(arguments: argparse.Namespace) -> Any:
    reader, operation = AwsReader(open_session(arguments)), "describe_inference_recommendations_job"
    return reader.describe(f"job {arguments.job}", "sagemaker", operation, JobName=arguments.job)
