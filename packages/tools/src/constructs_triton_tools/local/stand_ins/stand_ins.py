"""Replaces backends that the local server does not have.

A stand-in is a Python-based backend: a folder of the server's private backend directory that has
the name of the backend and contains a ``model.py``. The server then does everything that it does
for the real backend itself: configurations, versions, batching, warm-up and ensembles. Neither the
template nor the models change.
Source: triton core, TritonModel::GetBackendRuntimeLibraryName.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from constructs_triton_core.errors import MissingDependencyError
from constructs_triton_tools.local.stand_ins.frameworks import PACKAGES
from constructs_triton_tools.local.stand_ins.replaced_models import put_in_place
from triton_model_check.facts.backend_releases import unsupported_xgboost
from triton_model_check.model.backends import infer_backend
from triton_model_check.model.folder import ModelFolder
from triton_model_check.model.loaded_files import describe_file, file_to_load
from triton_model_check.model_config.schema import new_model_config
from triton_model_check.model_files.model_file import ModelFile
from triton_model_check.model_files.trees import FIRST_UNPUBLISHED_XGBOOST

# XGBoost reads its old binary format, FIL's default, no longer; Treelite does.
_PACKAGE_OF_MODEL_TYPE = {
    "xgboost_json": "xgboost",
    "xgboost_ubj": "xgboost",
    "lightgbm": "lightgbm",
}
_CODE = Path(__file__).with_name("served")
#: The name under which the code is imported. The Python backend's own folder is in ``sys.path``.
_MODULE = "constructs_triton_stand_ins"
_TAG = re.compile(r":(\d\d\.\d\d)-py3")


@dataclass(frozen=True, slots=True)
class Framework:
    """How a backend is replaced: the module with the code, and the package that it imports."""

    module: str
    package: str


FRAMEWORKS: Mapping[str, Framework] = {
    "onnxruntime": Framework("onnxruntime_model", "onnxruntime"),
    "pytorch": Framework("pytorch_model", "torch"),
    "openvino": Framework("openvino_model", "openvino"),
    "fil": Framework("fil_model", "treelite"),
    "dali": Framework("dali_model", "nvidia.dali"),
}
"""The backends that have a stand-in."""


def framework_package(backend: str, config: Any | None) -> str:
    """Return the module that a model of this backend needs.

    FIL has several, chosen by ``model_type``.
    """
    if backend != "fil":
        return FRAMEWORKS[backend].package
    parameters = {} if config is None else config.parameters
    model_type = parameters["model_type"].string_value if "model_type" in parameters else ""
    return _PACKAGE_OF_MODEL_TYPE.get(model_type, FRAMEWORKS[backend].package)


def distribution(module: str) -> str:
    """Return what `pip install` is called with for a module."""
    return PACKAGES[module][0]


def why_unsupported(config: Any | None) -> str | None:
    """Return what a stand-in cannot do for this configuration; ``None`` if it can run the model."""
    given = new_model_config() if config is None else config
    if given.runtime:
        return f"sets runtime: {given.runtime!r}, which chooses a library of the backend"
    if given.sequence_batching.state:
        return (
            "keeps implicit state (sequence_batching.state), which Triton's Python backend cannot"
        )
    if (
        given.batch_input
        or given.batch_output
        or any(tensor.allow_ragged_batch for tensor in given.input)
    ):
        return "has ragged batches (allow_ragged_batch, batch_input or batch_output)"
    return None


@dataclass(frozen=True, slots=True)
class StandIns:
    """The stand-ins of a run.

    ``packages`` are the frameworks that the models' Python has, each with its version. ``python``
    is the interpreter, for messages. ``models`` are the models that run in the place of others, by
    name.
    """

    packages: Mapping[str, str] = field(default_factory=dict)
    python: Path = Path("python3")
    models: Mapping[str, Path] = field(default_factory=dict)
    #: Triton release of the endpoint's image, if its tag has one.
    image_version: str | None = None
    #: Models that a stand-in runs, and what runs each of them.
    used: dict[str, str] = field(default_factory=dict)

    def for_archive(
        self, target_model: str, image: str = "", *, used: dict[str, str] | None = None
    ) -> StandIns:
        """Return the stand-ins of one archive of a multi-model endpoint, whose image has this URI.

        A stand-in that is named ``archive.tar.gz/model`` runs in this archive only, and takes
        precedence. The models that a stand-in runs are added to ``used``.
        """
        prefix = f"{target_model}/"
        named = self.models.items()
        own = {name.removeprefix(prefix): path for name, path in named if name.startswith(prefix)}
        return replace(
            self,
            models={**self.models, **own},
            image_version=image_version_of(image),
            used={} if used is None else used,
        )

    def put_in_place(self, models: Iterable[ModelFolder], report: Callable[[str], None]) -> None:
        """Put the stand-ins of these unpacked models in their place, and report them."""
        for name, path in put_in_place(models, self.models).items():
            self.used[name] = path.name
            report(f"{name}: {path} runs in its place (--stand-in)")

    def backends(self) -> tuple[str, ...]:
        """Return the backends that have a stand-in."""
        return tuple(FRAMEWORKS)

    def knows(self, backend: str) -> bool:
        """Return whether the backend has a stand-in."""
        return backend in FRAMEWORKS

    def place(self, backends: Path) -> None:
        """Add a stand-in for each backend that ``backends`` lacks,
        the server's backend directory.
        """
        shutil.copytree(
            _CODE, backends / "python" / _MODULE, ignore=shutil.ignore_patterns("__pycache__")
        )
        for backend, framework in FRAMEWORKS.items():
            folder = backends / backend
            if not folder.exists():
                folder.mkdir()
                entry = f"from {_MODULE}.{framework.module} import TritonPythonModel\n"
                (folder / "model.py").write_text(entry, encoding="ascii")

    def can_run(self, model: ModelFolder, backend: str) -> bool:
        """Return whether a stand-in can run this model of this backend here."""
        return (
            backend in FRAMEWORKS
            and framework_package(backend, model.config) in self.packages
            and why_unsupported(model.config) is None
        )

    def describe(self, model: ModelFolder, backend: str) -> str:
        """Return the package and its version, for example ``"onnxruntime 1.20.1"``."""
        package = framework_package(backend, model.config)
        return f"{package} {self.packages[package]}"

    def require(self, model: ModelFolder, backend: str, report: Callable[[str], None]) -> None:
        """Check that a stand-in can run this model, and report which one does."""
        reason = why_unsupported(model.config)
        if reason is not None:
            raise MissingDependencyError(
                f"{model.name}: {reason}, so no stand-in for the backend {backend!r} can run it; "
                "set --tritonserver to a server that has the backend"
            )
        module = framework_package(backend, model.config)
        if module not in self.packages:
            package = distribution(module)
            raise MissingDependencyError(
                f"{model.name}: the stand-in for the backend {backend!r} needs the package "
                f"{package}; run `{self.python} -m pip install {package}`, or set --python to an "
                "environment that has it"
            )
        self.used[model.name] = f"{self.describe(model, backend)} in Python"
        report(
            f"{model.name}: backend {backend} is replaced by "
            f"{self.describe(model, backend)} on the CPU"
        )
        for notice in tree_notices(model, self.image_version):
            report(f"{model.name}: {notice}")


def image_version_of(image: str) -> str | None:
    """Return the Triton release in the tag of an image's URI, or ``None`` if the tag has none."""
    found = _TAG.search(image)
    return found[1] if found else None


def tree_notices(model: ModelFolder, image_version: str | None) -> Iterator[str]:
    """Yield a line for each XGBoost file that the image of the endpoint does not read,
    or may not read.
    """
    for file in _files(model):
        version = file.versions.get("xgboost")
        if version is None:
            continue
        written = f"{file.path.name} was written by XGBoost {version}, which the stand-in reads"
        major, _, minor = version.partition(".")
        reads = image_version and unsupported_xgboost(
            image_version, file.model_type, (int(major), int(minor))
        )
        if reads:
            yield f"{written}, but image {image_version} supports {reads}"
        elif int(major) >= FIRST_UNPUBLISHED_XGBOOST:
            yield f"{written}; which images read it is not published"


def _files(model: ModelFolder) -> Iterator[ModelFile]:
    file = file_to_load(infer_backend(model), model.config)
    if file is None or file.format != "tree":
        return
    for name in model.version_directories:
        yield describe_file(file, model.directory / name, model.config, None, None)
