"""Models whose path the CDK has not looked up yet: a model that takes their place in the first
synthesis.

The command line of the CDK looks values up after the first synthesis, and only if it succeeds.
Nothing of the template with these models is deployed.
"""

from __future__ import annotations

from pathlib import Path

from constructs_triton.cdk.repository.loaded_models import PackedModels
from constructs_triton.cdk.validation.arguments import LOOKED_UP_LATER
from triton_model_check.checks.report import Report
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository
from triton_model_check.model_repository.temporary_folders import scratch_directory

_CONFIG = f"""name: "{LOOKED_UP_LATER}"
backend: "python"
input {{ name: "input" data_type: TYPE_FP32 dims: [ 1 ] }}
output {{ name: "output" data_type: TYPE_FP32 dims: [ 1 ] }}
"""
_CODE = """class TritonPythonModel:
    def execute(self, requests):
        return []
"""


class LookedUpModels(PackedModels):
    """A repository that has a model of any name, because its folder is known to the next synthesis.

    ``path`` is the path with the dummy of the lookup.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(ModelRepository.from_directory(_write()), named=path)

    def check(self, target: Target | None) -> Report:  # noqa: ARG002 - the models are not known
        return Report("", ())

    def only_model(self, name: str) -> str:  # noqa: ARG002 - whatever its name is
        return LOOKED_UP_LATER


def _write() -> Path:
    """Write the model, and return the folder of the repository."""
    folder = scratch_directory()
    version = folder / LOOKED_UP_LATER / "1"
    version.mkdir(parents=True)
    (version / "model.py").write_text(_CODE, encoding="utf-8")
    (version.parent / "config.pbtxt").write_text(_CONFIG, encoding="utf-8")
    return folder
