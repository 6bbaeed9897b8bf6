"""The arguments of ``constructs-triton compile``."""

from __future__ import annotations

import argparse
from pathlib import Path

from constructs_triton_core.facts.limits import RangeLimit
from constructs_triton_core.program.argument_types import (
    add_common,
    pair_argument,
    version_argument,
    whole_number,
)
from constructs_triton_tools.building.plans.job_request import DEFAULT_PREFIX, DEFAULT_SECONDS
from constructs_triton_tools.building.plans.options import PRECISIONS
from triton_model_check.facts.images import DEFAULT_VERSION

ROLE_VARIABLE, BUCKET_VARIABLE = "CONSTRUCTS_TRITON_COMPILE_ROLE", "CONSTRUCTS_TRITON_COMPILE_BUCKET"
_AT_LEAST_1 = RangeLimit(1, None)
_EPILOG = f"""\
examples:
  constructs-triton compile resnet.onnx --instance-type ml.g5.xlarge --max-batch-size 16 --dry-run
  constructs-triton compile bert.onnx --instance-type ml.g4dn.xlarge --instance-type ml.g5.xlarge \\
      --precision fp16 --max-batch-size 16 --input input_ids=1..8..16,1..128..512 --yes
  constructs-triton compile models/bert --instance-type ml.g5.xlarge
  constructs-triton compile --policy job --role ARN --bucket NAME

--input has the form NAME=DIMS with all dims of the input in the file, the batch dimension included. Each
dim is a size, or the smallest, the usual and the largest size: 1..8..16. Only dims of variable size need it.

A plan runs on the type of GPU and the TensorRT that it was built with. The job runs on the smallest instance
type with the GPU of the endpoint, in the image of the endpoint. Results are kept on this machine and in the
bucket, so the same plan is never built twice. Ctrl-C stops the job.

--role and --bucket can also be set by the variables {ROLE_VARIABLE} and {BUCKET_VARIABLE}.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Build a TensorRT plan from an ONNX file, in a SageMaker job on the GPU and with the image of the "
        "endpoint. "
        "Writes a model repository for each type of GPU. The job costs money: the command asks first."
    )
    parser.epilog = _EPILOG
    # fmt: off
    parser.add_argument("model", type=Path, nargs="?", metavar="MODEL",
                        help="an ONNX file, or the folder of a Triton model with config.pbtxt and an ONNX "
                        "file")
    parser.add_argument("--instance-type", action="append", default=[], dest="instance_types", metavar="TYPE",
                        help="instance type of the endpoint; may be repeated")
    parser.add_argument("-o", "--output", type=Path, default=Path("compiled"), metavar="DIR",
                        help="folder of the repositories, one for each type of GPU (default: compiled)")
    parser.add_argument("--name", metavar="NAME",
                        help="name of the model (default: that of config.pbtxt, or of the file)")
    parser.add_argument("--dry-run", action="store_true",
                        help="print the requests, call nothing and write nothing")
    add_common(parser, "--yes", "--json")
    parser.add_argument("--policy", choices=("job", "caller"),
                        help="print the IAM policy of the job's role, or of the user of this command")
    _add_plan(parser.add_argument_group("the plan"))
    _add_job(parser.add_argument_group("the job"))
    # fmt: on


def _add_plan(group: argparse._ArgumentGroup) -> None:
    # fmt: off
    group.add_argument("--image-version", type=version_argument, default=DEFAULT_VERSION, metavar="V",
                       help="release of AWS's Triton image (default: %(default)s)")
    group.add_argument("--image", metavar="URI", help="your own image, in place of AWS's")
    group.add_argument("--tensorrt", metavar="V",
                       help="version of the image's TensorRT, such as 10.16 (default: the published one)")
    group.add_argument("--precision", choices=PRECISIONS, default="file",
                       help="file: the types of the ONNX file (default). fp16, bf16: TensorRT may use half "
                       "precision; "
                            "only before TensorRT 11")
    group.add_argument("--config", type=Path, metavar="FILE",
                       help="an existing config.pbtxt with max_batch_size and dims")
    group.add_argument("--max-batch-size", type=whole_number(RangeLimit(0, None)), metavar="N",
                       help="largest batch; 0 if Triton does not batch")
    group.add_argument("--opt-batch-size", type=whole_number(_AT_LEAST_1), metavar="N",
                       help="batch for which the plan is fastest (default: the preferred one, or half the "
                       "largest)")
    group.add_argument("--input", action="append", default=[], dest="inputs", metavar="NAME=DIMS",
                       help="sizes of an input, see below; may be repeated")
    group.add_argument("--workspace", type=whole_number(_AT_LEAST_1), metavar="MIB",
                       help="memory of the GPU for the build (default: all)")
    group.add_argument("--optimization-level", type=whole_number(RangeLimit(0, 5)), metavar="N",
                       help="how long TensorRT searches, 0 to 5 (default: that of TensorRT, 3)")
    group.add_argument("--trtexec-argument", action="append", default=[], metavar="OPTION",
                       help="another option of trtexec; may be repeated")
    # fmt: on


def _add_job(group: argparse._ArgumentGroup) -> None:
    # fmt: off
    group.add_argument("--role", metavar="ARN", help="role of the job")
    group.add_argument("--bucket", metavar="NAME",
                       help="bucket for inputs and results (default: sagemaker-REGION-ACCOUNT of the role's "
                       "account)")
    group.add_argument("--prefix", default=DEFAULT_PREFIX, metavar="PREFIX",
                       help="beginning of the keys (default: %(default)s)")
    add_common(group, "--region", "--profile")
    group.add_argument("--job", choices=("processing", "training"), dest="job_kind",
                       help="kind of the job (default: processing, or training for GPUs that processing "
                       "lacks)")
    group.add_argument("--build-on", metavar="TYPE",
                       help="instance type of the job (default: the smallest one with the GPU)")
    group.add_argument("--max-seconds", type=whole_number(_AT_LEAST_1), default=DEFAULT_SECONDS, metavar="N",
                       help="SageMaker stops the job after this time (default: %(default)s)")
    group.add_argument("--volume-size", type=whole_number(_AT_LEAST_1), default=30, metavar="GB",
                       help="disk of the job (default: %(default)s)")
    group.add_argument("--kms-key", metavar="ARN", help="KMS key of the results")
    group.add_argument("--subnet", action="append", default=[], dest="subnets", metavar="ID",
                       help="subnet of the job; may be repeated")
    group.add_argument("--security-group", action="append", default=[], dest="security_groups", metavar="ID",
                       help="security group of the job; may be repeated")
    group.add_argument("--no-network-isolation", action="store_true",
                       help="give the job a network, which it does not need")
    group.add_argument("--tag", action="append", default=[], dest="tags", metavar="KEY=VALUE",
                       type=pair_argument("KEY=VALUE", "team=search"), help="tag of the job; may be repeated")
    # fmt: on
