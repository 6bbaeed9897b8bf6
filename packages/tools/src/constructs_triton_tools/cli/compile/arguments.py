"""The arguments of ``constructs-triton compile``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, TypedDict

from constructs_triton_core.declared_values import Value
from constructs_triton_core.facts.limits import RangeLimit
from constructs_triton_core.program.argument_types import add_common, version_argument
from constructs_triton_tools.building.plans.job_request import JobSettings
from constructs_triton_tools.building.plans.options import BuildOptions
from constructs_triton_tools.cli.options import add_options
from triton_model_check.facts.images import DEFAULT_VERSION

ROLE_VARIABLE = "CONSTRUCTS_TRITON_COMPILE_ROLE"
BUCKET_VARIABLE = "CONSTRUCTS_TRITON_COMPILE_BUCKET"
_EPILOG = f"""\
examples:
  constructs-triton compile resnet.onnx --instance-type ml.g5.xlarge --max-batch-size 16 --dry-run
  constructs-triton compile bert.onnx --instance-type ml.g4dn.xlarge --instance-type ml.g5.xlarge \\
      --precision fp16 --max-batch-size 16 --input input_ids=1..8..16,1..128..512 --yes
  constructs-triton compile models/bert --instance-type ml.g5.xlarge
  constructs-triton compile --policy job --role ARN --bucket NAME

--input has the form NAME=DIMS with all dims of the input in the file, the batch dimension included.
Each dim is a size, or the smallest, the usual and the largest size: 1..8..16. Only dims of variable
size need it.

A plan runs on the type of GPU and the TensorRT that it was built with. The job runs on the smallest
instance type with the GPU of the endpoint, in the image of the endpoint. Results are kept on this
machine and in the bucket, so the same plan is never built twice. Ctrl-C stops the job.

--role and --bucket can also be set by the variables {ROLE_VARIABLE} and {BUCKET_VARIABLE}.
"""


class _Model(TypedDict, total=False):
    instance_types: Annotated[
        Sequence[str],
        Value("instance type of the endpoint", flag="--instance-type", metavar="TYPE"),
    ]
    output: Annotated[
        Path,
        Value(
            "folder of the repositories, one for each type of GPU",
            default=Path("compiled"),
            short="-o",
            metavar="DIR",
        ),
    ]
    name: Annotated[
        str, Value("name of the model", default_text="that of config.pbtxt, or of the file")
    ]
    dry_run: Annotated[
        bool, Value("print the requests, call nothing and write nothing", default=False)
    ]
    policy: Annotated[
        Literal["job", "caller"],
        Value("print the IAM policy of the job's role, or of the user of this command"),
    ]


class _Plan(TypedDict, total=False):
    image_version: Annotated[
        str,
        Value(
            "release of AWS's Triton image",
            default=DEFAULT_VERSION,
            metavar="V",
            read=version_argument,
        ),
    ]
    image: Annotated[str, Value("your own image, in place of AWS's", metavar="URI")]
    tensorrt: Annotated[
        str,
        Value(
            "version of the image's TensorRT, such as 10.16",
            default_text="the published one",
            metavar="V",
        ),
    ]
    config: Annotated[
        Path, Value("an existing config.pbtxt with max_batch_size and dims", metavar="FILE")
    ]
    max_batch_size: Annotated[
        int,
        Value("largest batch; 0 if Triton does not batch", limit=RangeLimit(0, None), metavar="N"),
    ]
    opt_batch_size: Annotated[
        int,
        Value(
            "batch for which the plan is fastest",
            default_text="the preferred one, or half the largest",
            limit=RangeLimit(1, None),
            metavar="N",
        ),
    ]
    inputs: Annotated[
        Sequence[str], Value("sizes of an input, see below", flag="--input", metavar="NAME=DIMS")
    ]


class _Job(TypedDict, total=False):
    role: Annotated[str, Value("role of the job", metavar="ARN")]
    bucket: Annotated[
        str,
        Value(
            "bucket for inputs and results",
            default_text="sagemaker-REGION-ACCOUNT of the role's account",
            metavar="NAME",
        ),
    ]
    job_kind: Annotated[
        Literal["processing", "training"],
        Value(
            "kind of the job",
            default_text="processing, or training for GPUs that processing lacks",
            flag="--job",
        ),
    ]
    build_on: Annotated[
        str,
        Value(
            "instance type of the job", default_text="the smallest one with the GPU", metavar="TYPE"
        ),
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Build a TensorRT plan from an ONNX file, in a SageMaker job on the GPU and with the image "
        "of the endpoint. Writes a model repository for each type of GPU. "
        "The job costs money: the command asks first."
    )
    parser.epilog = _EPILOG
    parser.add_argument(
        "model",
        type=Path,
        nargs="?",
        metavar="MODEL",
        help="an ONNX file, or the folder of a Triton model with config.pbtxt and an ONNX file",
    )
    add_options(parser, _Model)
    add_common(parser, "--yes", "--json")
    plan = parser.add_argument_group("the plan")
    job = parser.add_argument_group("the job")
    add_options(plan, _Plan)
    add_options(plan, BuildOptions)
    add_options(job, _Job)
    add_common(job, "--region", "--profile")
    add_options(job, JobSettings)
