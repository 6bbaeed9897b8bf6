"""Python environments from requirements, on the real server and in a container
with the image's layout.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import aws_cdk as cdk
import pytest
from local_assembly import ENSEMBLE_CONFIG, PYTHON_CONFIG
from sagemaker_image import build_image, needs_podman, podman, set_up_podman
from test_local_endpoints import Caller

from constructs_triton import (
    InstanceType,
    ModelSource,
    TritonEnsembleEndpoint,
    TritonModelRepository,
    TritonMultiModelEndpoint,
)
from constructs_triton.cli import main
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.building.environments.archive import write_file
from constructs_triton_tools.building.environments.building import build
from constructs_triton_tools.local import LocalEndpoint
from triton_model_check.artifacts.environments.requirements import read_requirements
from triton_model_check.artifacts.environments.target import EnvironmentTarget

BUDGET_MINUTES = 3
IMAGE = "localhost/constructs-triton-test:system-python"
MACHINE = InstanceType.of("ml.m5.xlarge")
_SYSTEM_PYTHON = Path("/usr/bin/python3").resolve().name.removeprefix("python")
_HAS_SYSTEM_PYTHON = any(Path("/usr/lib").glob(f"*/libpython{_SYSTEM_PYTHON}.so.1.0"))

#: A pure package, a compiled one, one with data files, and one in a namespace.
REQUIREMENTS = "roman\nxxhash\npyphen\nruamel.yaml\n"
ADDED = 10 + 16 + 100 + 1000
#: Adds a number that needs all four packages, and refuses packages from another place than the
#: environment.
MODEL = """
import sys
import numpy as np
import pyphen
import roman
import ruamel.yaml
import xxhash
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        for module in (pyphen, roman, ruamel.yaml, xxhash):
            assert module.__file__.startswith(sys.prefix + "/lib"), module.__file__
        assert "NUMPY_PLACE" in np.__file__, np.__file__
        words = 100 if pyphen.Pyphen(lang="de_DE").inserted("Zeitung") == "Zei-tung" else 0
        thousand = ruamel.yaml.YAML(typ="safe", pure=True).load("a: 1000")["a"]
        self.added = roman.fromRoman("X") + len(xxhash.xxh64_hexdigest(b"")) + words + thousand

    def execute(self, requests):
        tensors = [pb_utils.get_input_tensor_by_name(each, "X").as_numpy() for each in requests]
        outputs = [pb_utils.Tensor("Y", (x + self.added).astype(np.float32)) for x in tensors]
        return [pb_utils.InferenceResponse([each]) for each in outputs]
"""


def write_models(folder: Path, *names: str, numpy: str = "site-packages", more: str = "") -> Path:
    for name in names:
        (folder / name / "1").mkdir(parents=True)
        (folder / name / "config.pbtxt").write_text(PYTHON_CONFIG + more)
        (folder / name / "1" / "model.py").write_text(MODEL.replace("NUMPY_PLACE", numpy))
    return folder


@pytest.fixture(scope="module")
def requirements(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The requirements, with a lock file and an environment;
    skipped without an index of packages.
    """
    path = tmp_path_factory.mktemp("environment") / "requirements.txt"
    path.write_text(REQUIREMENTS)
    if main(["env", "build", str(path)]):
        pytest.skip("uv finds no packages on this machine")
    return path


@pytest.fixture(scope="module")
def local(requirements: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEndpoint]:
    """An ensemble whose two steps share an environment,
    and a multi-model endpoint with another copy.
    """
    folder = tmp_path_factory.mktemp("app")
    models = write_models(folder / "models", "alone", "first", "second")
    (models / "both" / "1").mkdir(parents=True)
    (models / "both" / "config.pbtxt").write_text(ENSEMBLE_CONFIG)
    app = cdk.App(outdir=str(folder / "cdk.out"))
    stack = cdk.Stack(app, "Demo", env=cdk.Environment(account="123456789012", region="us-east-1"))
    # Requirements of others than the folder's own are not read, so they are copied with their lock.
    for file in requirements.parent.iterdir():
        shutil.copy(file, models)
    (models / "triton-models.toml").write_text(
        f'python_environments."*".requirements = "{requirements.name}"'
    )
    source = ModelSource.from_directory(models)
    repository = TritonModelRepository(stack, "Models", source=source)
    TritonEnsembleEndpoint(
        stack,
        "One",
        model_repository=repository,
        ensemble="both",
        instance_type=MACHINE,
        endpoint_name="one",
    )
    TritonMultiModelEndpoint(
        stack, "Many", model_repository=repository, instance_type=MACHINE, endpoint_name="many"
    )
    app.synth()
    with LocalEndpoint.from_assembly(folder / "cdk.out") as running:
        yield running


def test_two_steps_share_one_environment(local: LocalEndpoint) -> None:
    """Both steps of an ensemble import all four packages from one unpacked environment."""
    tensor = '{"inputs": [{"name": "X", "datatype": "FP32", "shape": [1], "data": [5]}]}'
    response = Caller(local.endpoint_url).runtime.invoke_endpoint(
        EndpointName="one", ContentType="application/json", Body=tensor
    )
    assert f'"data":[{5.0 + 2 * ADDED}]' in response["Body"].read().decode()


def test_models_of_a_multi_model_endpoint_have_their_own(local: LocalEndpoint) -> None:
    """A TargetModel imports the packages from the environment in its archive."""
    caller = Caller(local.endpoint_url)
    targets = [each for each in target_models(caller) if each.startswith("alone")]
    assert caller.add("many", 5.0, TargetModel=targets[0]) == 5 + ADDED


def target_models(caller: Caller) -> list[str]:
    """The archives, which the error for an unknown one lists."""
    message = caller.refusal("many", TargetModel="absent.tar.gz")["Error"]["Message"]
    return re.findall(r'"([\w.-]+\.tar\.gz)"', message.partition("Its archives: ")[2])


@needs_podman
@pytest.mark.skipif(not _HAS_SYSTEM_PYTHON, reason="libpython of /usr/bin/python3 is required")
def test_python_laid_out_as_in_the_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With /usr/bin/python3 the packages are those of the environment,
    and NumPy that of dist-packages.
    """
    models = write_models(
        tmp_path / "models",
        "m",
        numpy="/usr/local/lib/python",
        more='parameters { key: "EXECUTION_ENV_PATH" '
        'value { string_value: "$$TRITON_MODEL_DIRECTORY/env.tar" } }\n',
    )
    (tmp_path / "requirements.txt").write_text(REQUIREMENTS)
    target = EnvironmentTarget(
        _SYSTEM_PYTHON, "x86_64-manylinux_2_35", "numpy<2", must_keep_numpy=True
    )
    try:
        built = build(read_requirements(tmp_path / "requirements.txt"), target)
    except InvalidValueError as error:
        pytest.skip(str(error))
    write_file(built.archive, models / "m" / "env.tar")
    set_up_podman(tmp_path, monkeypatch)
    build_image("podman", IMAGE, tmp_path, python_of_system=_SYSTEM_PYTHON)
    try:
        with LocalEndpoint.from_repository(
            models, engine="podman", images={"models": IMAGE}
        ) as running:
            assert Caller(running.endpoint_url).add("models", 5.0) == 5 + ADDED
    finally:
        podman("rmi", "--force", IMAGE)
