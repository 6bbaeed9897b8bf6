"""``constructs-triton plan recommender``: write jobs of Inference Recommender,
and read their results.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Annotated, Any, TypedDict

from constructs_triton_core.aws_reader import AwsReader
from constructs_triton_core.cloud_assembly.assembly import template_stacks
from constructs_triton_core.declared_values import Value
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.program.argument_types import add_common
from constructs_triton_core.untrusted.regular_files import read_json
from constructs_triton_core.untrusted.terminal import print_lines, print_note
from constructs_triton_core.untrusted.written_files import write_whole
from constructs_triton_tools.cli.next_command import recommend
from constructs_triton_tools.cli.options import (
    add_actions,
    add_options,
    chosen_fields,
    open_session,
)
from constructs_triton_tools.planning.recommender import read_recommendations, write_measurements
from constructs_triton_tools.planning.recommender_request import (
    MULTI_MODEL_REASON,
    Phase,
    RecommenderRequest,
)

#: The fields of ContainerConfig with their option and its text.
_CONTAINER = {
    "Domain": ("domain", "machine learning domain"),
    "Task": ("task", "task"),
    "Framework": ("framework", "framework"),
    "FrameworkVersion": ("framework-version", "version of the framework"),
    "NearestModelName": ("nearest-model-name", "similar published model"),
    "SamplePayloadUrl": ("payload-url", "S3 URI of a .tar.gz with sample payloads"),
    "SupportedContentTypes": ("content-type", "content type of the payloads"),
}
_PAYLOAD = ("SamplePayloadUrl", "SupportedContentTypes")
_MODEL = ("model_name", "model_package_version_arn")
_EPILOG = """\
example, a default job, which recommends instance types, and the load test of AWS's benchmark of
BERT:
  constructs-triton plan recommender request --job-type Default --job-name bert-types \
--role-arn ROLE \\
      --model-name bert-trt --domain NATURAL_LANGUAGE_PROCESSING --task FILL_MASK \
--framework PYTORCH \\
      -o types.json
  constructs-triton plan recommender request --job-name bert-trt --role-arn ROLE \
--model-name bert-trt \\
      --instance-type ml.g4dn.xlarge ml.g4dn.2xlarge --phase 2:2:1500 --max-invocations 30000 \\
      --latency-ms 500 --domain NATURAL_LANGUAGE_PROCESSING --task FILL_MASK --framework PYTORCH \
-o job.json
"""


class _Output(TypedDict):
    output: Annotated[Path, Value("file to write", short="-o", metavar="FILE")]


class _Files(_Output, total=False):
    template: Annotated[
        Path,
        Value(
            "synthesized template that has the model; multi-model endpoints are refused",
            metavar="FILE",
        ),
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``plan recommender`` and its actions."""
    parser.description = (
        "Load tests by SageMaker Inference Recommender: it creates its own endpoints of one model, "
        "and its users wait for each answer. "
        "`constructs-triton load-test` measures your endpoint in an open loop."
    )
    request, imported = add_actions(
        parser,
        **{
            "request": (
                "write the request of a job",
                (
                    "Write a request of CreateInferenceRecommendationsJob, checked against the AWS "
                    "API, and print the command that starts it. Nothing is sent to AWS."
                ),
            ),
            "import": (
                "turn a finished job into the CSV file for plan",
                (
                    "Turn the results of a finished job into the "
                    "CSV file for `constructs-triton plan`."
                ),
            ),
        },
    )
    request.epilog = _EPILOG
    _add_request(request)
    imported.add_argument(
        "job",
        metavar="JOB",
        help="the job's name, or a file with the output of "
        "`aws sagemaker describe-inference-recommendations-job`",
    )
    add_common(imported, "--region", "--profile")
    add_options(imported, _Output)


def _add_request(parser: argparse.ArgumentParser) -> None:
    model = parser.add_mutually_exclusive_group(required=True)
    add_options(model, RecommenderRequest, *_MODEL)
    add_options(parser, RecommenderRequest, without=_MODEL)
    parser.add_argument(
        "--instance-type",
        nargs="+",
        default=[],
        metavar="TYPE",
        dest="instance_types",
        help="1 to 10 instance types; a default job may have none",
    )
    add_options(parser, _Files)
    for name, text in _CONTAINER.values():
        about = f"{text} of a model that is not in the model registry"
        parser.add_argument(f"--{name}", metavar=name.upper().replace("-", "_"), help=about)


def run(arguments: argparse.Namespace) -> int:
    """Run one action."""
    return _request(arguments) if arguments.action == "request" else _import(arguments)


# --- request --------------------------------------------------------------------------------------


def _request(arguments: argparse.Namespace) -> int:
    if arguments.template:
        check_template(arguments.template)
    is_default = arguments.job_type == "Default"
    if not (is_default or arguments.instance_types):
        raise InvalidValueError(
            "--instance-type: is required for an advanced job; set 1 to 10 instance types"
        )
    values = {
        "phases": () if is_default else (Phase(2, 2, 1500),),
        **chosen_fields(arguments, RecommenderRequest),
    }
    request = RecommenderRequest(
        **values, instance_types=arguments.instance_types, container=_container(arguments)
    ).to_request()
    write_whole(arguments.output, json.dumps(request, indent=2) + "\n")
    print_note(f"wrote {arguments.output}")
    print_lines(
        "aws sagemaker create-inference-recommendations-job --cli-input-json "
        f"file://{arguments.output}",
        f"constructs-triton plan recommender import {arguments.job_name} "
        "-o benchmark.csv  # once completed",
    )
    return 0


def check_template(path: Path) -> None:
    """Refuse the multi-model endpoints of a template, with the reason."""
    for stack in template_stacks(path, str(path)):
        for logical_id in stack.created("AWS::SageMaker::Model"):
            container = stack.known_properties(logical_id).get("PrimaryContainer") or {}
            if container.get("Mode") == "MultiModel":
                raise InvalidValueError(
                    f"{stack.name}: {logical_id} serves several models. {MULTI_MODEL_REASON}"
                )


def _container(arguments: argparse.Namespace) -> dict[str, Any]:
    found = {
        key: getattr(arguments, name.replace("-", "_")) for key, (name, _) in _CONTAINER.items()
    }
    values = {key: value for key, value in found.items() if value}
    if "SupportedContentTypes" in values:
        values["SupportedContentTypes"] = [values["SupportedContentTypes"]]
    payload = {key: values.pop(key) for key in _PAYLOAD if key in values}
    return {**values, **({"PayloadConfig": payload} if payload else {})}


# --- import ---------------------------------------------------------------------------------------


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
    reader = AwsReader(open_session(arguments))
    operation = "describe_inference_recommendations_job"
    return reader.describe(f"job {arguments.job}", "sagemaker", operation, JobName=arguments.job)
