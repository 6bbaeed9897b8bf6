"""What packed Python environments contain: an interpreter, packages for GPUs, and their size."""

from __future__ import annotations

from collections.abc import Iterator

from triton_model_check.checks.model_under_check import ModelUnderCheck, RepositoryContext
from triton_model_check.checks.python_environment import (
    PARAMETER,
    PLACE,
    environment_of,
    environment_warning,
)
from triton_model_check.checks.rules import Problem, warning
from triton_model_check.model_config.target import SAGEMAKER

_GB = 10**9
_LARGE_BYTES = 2 * _GB
#: Part of the disk that the environments of a multi-model endpoint may need.
_DISK_SHARE = 0.5
# Of wheels that load libraries of the system, what their names begin with.
_SYSTEM_LIBRARIES = {
    "opencv_python-": (
        "libGL and libglib-2.0",
        "require opencv-python-headless in place of opencv-python",
    ),
    "opencv_contrib_python-": (
        "libGL and libglib-2.0",
        "require opencv-contrib-python-headless in place of opencv-contrib-python",
    ),
    "lightgbm-": ("libgomp", "use the FIL backend, or an image of your own with libgomp1"),
}


@environment_warning(
    "python-environment-interpreter",
    source=(
        "triton python_backend pb_utils.cc ParseActivationScript, from 25.08 on; run with a "
        "program that starts Python as the stub does"
    ),
    hint="build it with `constructs-triton env build`, conda-pack or venv-pack",
    since="25.08",
)
def environment_interpreter(model: ModelUnderCheck) -> Iterator[Problem]:
    """A packed environment for an image from 25.08 on contains ``bin/python3`` with its
    ``pyvenv.cfg``.

    Older images run ``bin/activate``, which can set ``PYTHONPATH``. Newer ones do not run it, so
    Python finds the packages only from the place of ``bin/python3``. A link to the image's Python
    is enough, with ``pyvenv.cfg`` in the folder above it. A complete Python, as conda-pack packs
    it, needs no such file.
    """
    found = environment_of(model)
    if (
        found is not None
        and found.is_complete
        and found.python is not None
        and not found.has_interpreter
    ):
        yield Problem(
            f"{PARAMETER}: the environment has no executable bin/python3 with pyvenv.cfg above it, "
            "so its packages are not found",
            PLACE,
        )


@environment_warning(
    "python-environment-cuda",
    source="requirements of torch on PyPI; AWS documentation of instance types",
    hint=(
        "use packages for the CPU, such as torch from the index "
        "https://download.pytorch.org/whl/cpu"
    ),
)
def environment_cuda(model: ModelUnderCheck) -> Iterator[Problem]:
    """A packed environment for an instance without GPUs contains no libraries of CUDA.

    They make the archive gigabytes larger and are never used.
    """
    found = environment_of(model)
    if found is not None and model.target.gpu_count == 0 and found.cuda_packages:
        shown = ", ".join(found.cuda_packages[:3])
        yield Problem(
            f"the environment contains libraries of CUDA, and the instance has no GPU: {shown}",
            PLACE,
        )


@environment_warning(
    "python-environment-libraries",
    source="libraries that the wheels on PyPI load, and manylinux does not contain",
    platforms=SAGEMAKER,
)
def environment_libraries(model: ModelUnderCheck) -> Iterator[Problem]:
    """A packed environment for AWS's image needs no libraries of the system that the image may
    lack.

    AWS does not publish the packages of its images. The rule knows OpenCV and LightGBM.
    """
    found = environment_of(model)
    if found is None or not model.target.is_prebuilt_image:
        return
    for name in sorted(found.packages):
        for start, (libraries, hint) in _SYSTEM_LIBRARIES.items():
            if name.startswith(start) and name.endswith(".dist-info"):
                message = f"the environment's {name.removesuffix('.dist-info')} loads {libraries}"
                yield Problem(f"{message}, which the image may not contain", PLACE, hint)


@environment_warning(
    "python-environment-size",
    source=(
        "triton python_backend EnvironmentManager: the archive is unpacked into /tmp at each start"
    ),
    hint=(
        "use an image of your own with these packages (TritonImage.from_asset), or remove packages"
    ),
    server_hint="use an image of your own with these packages, or remove packages",
)
def environment_size(model: ModelUnderCheck) -> Iterator[Problem]:
    """A packed environment has at most 2 GB.

    Each new instance downloads the archive, and the server unpacks it before the model starts. An
    image of your own is downloaded once for all models, and nothing is unpacked.
    """
    found = environment_of(model)
    if found is not None and found.unpacked_bytes > _LARGE_BYTES:
        yield Problem(f"the environment has {found.unpacked_bytes / _GB:.1f} GB", PLACE)


@warning(
    "python-environment-copies",
    "environments",
    source=(
        "triton python_backend EnvironmentManager: deletes environments when the server ends; "
        "observed with triton server 2.51"
    ),
    hint=(
        "use an image of your own with these packages, "
        "smaller environments, or a larger volume_size"
    ),
    needs_files=True,
    platforms=("sagemaker-multi-model",),
)
def environment_copies(context: RepositoryContext) -> Iterator[Problem]:
    """The environments of a multi-model endpoint fit into half of its disk.

    Each archive contains its own environment. The server unpacks it into ``/tmp`` when the model is
    loaded, and deletes it only when the server ends: unloading a model frees nothing.
    """
    target = context.target
    if target.storage_gb is None or context.complete_bytes is not None:
        return
    models = [model for model in context.models.values() if model.backend == "python"]
    sizes = [
        found.unpacked_bytes for model in models if (found := environment_of(model)) is not None
    ]
    if sum(sizes) > _DISK_SHARE * target.storage_gb * _GB:
        yield Problem(
            f"{len(sizes)} models have environments of {sum(sizes) / _GB:.0f} GB together, and the "
            f"disk has {target.storage_gb} GB"
        )
