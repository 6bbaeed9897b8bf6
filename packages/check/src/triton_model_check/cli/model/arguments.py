"""The arguments of ``model new``, and the fields of a configuration that they set."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.limits import RangeLimit
from constructs_triton_core.program.argument_types import add_common, whole_number
from triton_model_check.choosing.settings import OPTIONS, TYPES
from triton_model_check.cli.tensor_options import read_tensor
from triton_model_check.model_config import (
    ModelDynamicBatching,
    ModelInput,
    ModelInstanceGroup,
    ModelOutput,
    ModelTransactionPolicy,
)
from triton_model_check.vision.forms import FORM_NAMES
from triton_model_check.vision.task_models import Task

SYNTAX = {
    "input": "--input {input}:FP32:{dims}",
    "output": "--output {output}:FP32:1000",
    "output_class": "--parameter output_class=true for a classifier (false for a regressor)",
    "max_batch_size": "--max-batch-size",
    "onnx_runtime": "--onnx-runtime fetch",
    "dynamic_batching": "--dynamic-batching",
    "with_warmup": "--with-warmup",
}
_MICROSECONDS = {"us": 1, "ms": 1_000, "s": 1_000_000}
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(us|ms|s)")
_EPILOG = """\
examples:
  constructs-triton model new resnet.onnx
  constructs-triton model new resnet.onnx --max-batch-size 32 --dynamic-batching 5ms --gpu \
--with-warmup
  constructs-triton model new resnet.pt --input INPUT__0:FP32:3,224,224 --output OUTPUT__0:FP32:1000
  constructs-triton model new fraud.json --input input__0:FP32:28 --parameter output_class=true
  constructs-triton model new detector.onnx --task detect --labels coco.txt
  constructs-triton model new tokenizer.py --input text:BYTES:1 --output ids:INT64:-1
  constructs-triton model new --backend python tokenizer --input text:BYTES:1 --output ids:INT64:-1
  constructs-triton model new --backend python teller --decoupled --input text:BYTES:1 \
--output word:BYTES:1
  constructs-triton model new --backend ensemble classify --step tokenizer \
--step resnet:INPUT__0=ids

--input and --output have the form NAME:DATATYPE:DIMS. DIMS do not contain the batch dimension if
--max-batch-size is above 0; -1 is a variable size. They are required for TorchScript and Python.
For ONNX they replace what the file says, for example --input image:FP32:3,224,224 for an image of
variable size.

--task writes an ensemble for pictures: NAME_decode reads and resizes JPEG and PNG, NAME_network is
the file, and NAME_select returns boxes in pixels of the picture (detect) and masks in them
(segment), or NAME_top the best classes (classify). The command prints what it recognized and what
it assumed.

--step connects tensors of equal names. resnet:INPUT__0=ids gives the model's INPUT__0 the name ids
in the ensemble. An input that no step writes becomes an input of the ensemble. An output that no
step reads becomes an output of the ensemble.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``model`` and its only action, ``new``."""
    parser.description = "Create the folder of a Triton model."
    parser.set_defaults(program=parser.prog.partition(" ")[0])
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    new = actions.add_parser(
        "new",
        help="create a model's folder from a model file, from code or from other models",
        description=(
            "Create the folder of a model in a model repository: config.pbtxt, which is derived "
            "from the model file and checked against it, and a copy of the file. Reads ONNX, "
            "TorchScript, TensorRT plans, OpenVINO, SavedModel, DALI, trees of XGBoost, LightGBM "
            "and Treelite, and the code of a Python model (.py). --backend writes a first Python "
            "model, or connects models of the repository."
        ),
        epilog=_EPILOG,
    )
    _add_model(new)
    _add_task(new)
    _add_execution(new)
    _add_tensors(new)
    _add_warmup(new)
    new.add_argument(
        "--onnx-runtime",
        type=TYPES["onnx-runtime"],
        default="auto",
        metavar="WHEN",
        help=OPTIONS["onnx-runtime"]["help"],
    )
    add_common(new, "--json")


def _add_model(new: argparse.ArgumentParser) -> None:
    """Declare the file or the models to start from, the name, and the repository."""
    new.add_argument(
        "file",
        type=Path,
        metavar="FILE",
        help="the model file, for example model.onnx; with --backend, the name of the model",
    )
    new.add_argument(
        "--backend",
        choices=("python", "ensemble"),
        help="create a model without a file: python writes a first model.py, ensemble connects "
        "models that are in the repository",
    )
    new.add_argument(
        "--step",
        action="append",
        default=[],
        dest="steps",
        metavar="NAME[:TENSOR=TENSOR,...]",
        help="a model of the ensemble, see below; repeat it for each",
    )
    new.add_argument(
        "--decoupled",
        action="store_true",
        help="let the Python model send several responses to a request, as a stream",
    )
    new.add_argument(
        "--name",
        metavar="NAME",
        help="name of the model (default: the name of the file without its ending)",
    )
    new.add_argument(
        "-o",
        "--repository",
        type=Path,
        default=Path("models"),
        metavar="DIR",
        help="model repository; created if it does not exist (default: models)",
    )


def _add_task(new: argparse.ArgumentParser) -> None:
    """Declare what a network does with pictures."""
    new.add_argument(
        "--task",
        choices=get_args(Task),
        help="write an ensemble around an ONNX network that takes a picture: detect finds boxes, "
        "segment also a mask in each, classify names the picture",
    )
    new.add_argument(
        "--form",
        choices=FORM_NAMES,
        metavar="FORM",
        help=f"what the outputs of a detector mean: {', '.join(FORM_NAMES)} (default: what is "
        "recognized)",
    )
    new.add_argument(
        "--labels",
        type=Path,
        metavar="FILE",
        help="the label of one class on each line (default: those in the file's metadata)",
    )


def _add_tensors(new: argparse.ArgumentParser) -> None:
    """Declare the tensors of the model, and the parameters of its backend."""
    new.add_argument(
        "--input",
        action="append",
        default=[],
        dest="inputs",
        metavar="NAME:DATATYPE:DIMS",
        help="an input tensor, see below; repeat it for each input",
    )
    new.add_argument(
        "--output",
        action="append",
        default=[],
        dest="outputs",
        metavar="NAME:DATATYPE:DIMS",
        help="an output tensor; repeat it for each output",
    )
    new.add_argument(
        "--parameter",
        action="append",
        default=[],
        dest="parameters",
        metavar="KEY=VALUE",
        help="a parameter of the backend; repeat it for several",
    )


def _add_warmup(new: argparse.ArgumentParser) -> None:
    """Declare the request with which Triton warms the model up."""
    new.add_argument(
        "--with-warmup",
        action="store_true",
        help="let Triton run the model with zeros before it is ready",
    )
    new.add_argument(
        "--shape",
        action="append",
        default=[],
        dest="shapes",
        metavar="NAME=DIMS",
        help="dims of an input in the warmup request, without the batch dimension (default: 1 "
        "for each variable size)",
    )


def _add_execution(new: argparse.ArgumentParser) -> None:
    """Declare how Triton batches the requests, and where it runs the model."""
    new.add_argument(
        "--max-batch-size",
        type=whole_number(RangeLimit(0, None)),
        metavar="N",
        help="largest batch; 0 means that Triton does not batch (default: that of Triton)",
    )
    new.add_argument(
        "--dynamic-batching",
        type=_microseconds,
        metavar="DELAY",
        help="how long a request may wait for others, for example 5ms or 500us",
    )
    new.add_argument(
        "--instances",
        type=whole_number(RangeLimit(1, None)),
        metavar="N",
        help="instances of the model on each GPU, or on the CPU (default: that of Triton)",
    )
    device = new.add_mutually_exclusive_group()
    device.add_argument(
        "--gpu",
        dest="kind",
        action="store_const",
        const="KIND_GPU",
        help="run the model on GPUs (default: on GPUs if the instance has them)",
    )
    device.add_argument(
        "--cpu",
        dest="kind",
        action="store_const",
        const="KIND_CPU",
        help="run the model on the CPU",
    )


def _microseconds(text: str) -> int:
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None:
        raise argparse.ArgumentTypeError(
            f"must be a number and a unit, us, ms or s, got {text!r}; write for example 5ms"
        )
    return round(float(match[1]) * _MICROSECONDS[match[2]])


def config_fields(arguments: argparse.Namespace) -> Iterator[tuple[str, Any]]:
    """Yield each field of a configuration that the arguments set, with its value."""
    if arguments.inputs:
        yield "input", [ModelInput(**_tensor("--input", text)) for text in arguments.inputs]
    if arguments.outputs:
        yield "output", [ModelOutput(**_tensor("--output", text)) for text in arguments.outputs]
    if arguments.dynamic_batching is not None:
        delay = arguments.dynamic_batching
        yield "dynamic_batching", ModelDynamicBatching(max_queue_delay_microseconds=delay)
    if arguments.instances or arguments.kind:
        group = ModelInstanceGroup(
            count=arguments.instances or 1, kind=arguments.kind or "KIND_AUTO"
        )
        yield "instance_group", [group]
    if arguments.decoupled:
        yield "model_transaction_policy", ModelTransactionPolicy(decoupled=True)
    if arguments.parameters:
        yield "parameters", dict(_parameter(text) for text in arguments.parameters)


def _tensor(option: str, text: str) -> dict[str, Any]:
    return read_tensor(option, text)._asdict()


def _parameter(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not key or not separator:
        raise InvalidValueError(
            f"--parameter: must have the form KEY=VALUE, got {text!r}; "
            "write for example output_class=true"
        )
    return key, value
