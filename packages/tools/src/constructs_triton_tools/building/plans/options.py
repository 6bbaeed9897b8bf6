"""The options of ``trtexec``, by the version of TensorRT in the image."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from constructs_triton_core.declared_values import Value
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.facts.limits import RangeLimit
from constructs_triton_tools.building.plans.compile_jobs import has_strong_types, is_removed_option
from constructs_triton_tools.declared_fields import shows_options

Precision = Literal["file", "fp16", "bf16"]
_OURS = ("--onnx", "--saveEngine", "--timingCacheFile", "--minShapes", "--optShapes", "--maxShapes")
_OPTION = re.compile(r"--[A-Za-z][A-Za-z0-9]*(=[^\n\r]*)?")
# NVIDIA CUDA: bfloat16 needs compute capability 8.0.
_FIRST_WITH_BF16 = 8


@shows_options
@dataclass(frozen=True, slots=True)
class BuildOptions:
    """How ``trtexec`` builds a plan."""

    precision: Annotated[
        Precision,
        Value(
            "file: the types of the ONNX file. fp16, bf16: TensorRT may use half precision for "
            "each layer; only before TensorRT 11"
        ),
    ] = "file"
    workspace_mib: Annotated[
        int | None,
        Value(
            "memory of the GPU for the build",
            default_text="all",
            limit=RangeLimit(1, None),
            flag="--workspace",
            metavar="MIB",
        ),
    ] = None
    optimization_level: Annotated[
        int | None,
        Value(
            "how long TensorRT searches, 0 to 5",
            default_text="that of TensorRT, 3",
            limit=RangeLimit(0, 5),
            metavar="N",
        ),
    ] = None
    more: Annotated[
        Sequence[str],
        Value("another option of trtexec", flag="--trtexec-argument", metavar="OPTION"),
    ] = ()

    def arguments(self, tensorrt: str | None, gpu: InstanceType, image: str) -> Iterator[str]:
        """Yield the arguments.

        ``tensorrt`` is the beginning of the version of the image's TensorRT; ``None`` if it is not
        known. ``gpu`` is a type with the GPU, and ``image`` is for messages.
        """
        major = int(tensorrt.split(".")[0]) if tensorrt else None
        yield from self._precision(major, gpu, image)
        if self.workspace_mib is not None:
            yield f"--memPoolSize=workspace:{self.workspace_mib}"
        if self.optimization_level is not None:
            yield f"--builderOptimizationLevel={self.optimization_level}"
        yield "--skipInference"
        yield from self._more(major, image)

    def _precision(self, major: int | None, gpu: InstanceType, image: str) -> Iterator[str]:
        if self.precision == "file":
            # Without it, TensorRT 10 computes tensors of half precision in single precision.
            if major is not None and has_strong_types(major):
                yield "--stronglyTyped"
            return
        option = f"--{self.precision}"
        where = f"--precision {self.precision}"
        if major is None:
            raise InvalidValueError(
                f"{where}: the TensorRT of {image} is not known, and version 11 has no {option}; "
                "set --tensorrt with its version, "
                "or use --precision file with a model in half precision"
            )
        if is_removed_option(option, major):
            raise InvalidValueError(
                f"{where}: TensorRT {major} of {image} has no {option}: it computes with the types "
                "of the model file, so the plan would be in single precision; convert the ONNX "
                "file to half precision first, for example with NVIDIA ModelOpt AutoCast, "
                "and use --precision file"
            )
        if (
            self.precision == "bf16"
            and int((gpu.compute_capability or "0").split(".")[0]) < _FIRST_WITH_BF16
        ):
            raise InvalidValueError(
                f"{where}: the {gpu.gpu_model} of {gpu} (compute capability "
                f"{gpu.compute_capability}) has no bfloat16; use --precision fp16"
            )
        yield option

    def _more(self, major: int | None, image: str) -> Iterator[str]:
        for argument in self.more:
            option = argument.partition("=")[0]
            if _OPTION.fullmatch(argument) is None:
                raise InvalidValueError(
                    f"--trtexec-argument: must be one option of trtexec, got {argument!r}; write "
                    "it as --trtexec-argument=--profilingVerbosity=detailed"
                )
            if option in _OURS:
                raise InvalidValueError(
                    f"--trtexec-argument: {option} is set by this command, "
                    f"got {argument!r}; use --input for shapes"
                )
            if major is not None and is_removed_option(option, major):
                raise InvalidValueError(
                    f"--trtexec-argument: TensorRT {major} of {image} has no {option}; remove it"
                )
            yield argument
