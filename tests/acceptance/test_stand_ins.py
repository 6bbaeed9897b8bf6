"""Every framework on this machine: the endpoint's answers equal the framework's own.

Each framework is installed into an environment of its own. A framework that pip does not find is
skipped.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from environments import environment
from triton_server import needs_server

from constructs_triton_client import TritonClient
from constructs_triton_tools.local import LocalEndpoint

pytestmark = needs_server

PACKAGES = {
    "pytorch": ["numpy<2", "torch==2.13.0"],
    "fil": ["numpy<2", "xgboost", "lightgbm", "treelite", "scikit-learn"],
    "openvino": ["numpy<2", "openvino"],
    "dali": ["numpy<2", "nvidia-dali-cuda120"],
}
MODELS = {
    "pytorch": ["scripted", "traced"],
    "fil": ["digits", "forest", "odd", "value"],
    "openvino": ["batched", "small"],
    "dali": ["scaled"],
}
WRITER = Path(__file__).with_name("stand_in_models.py")


@pytest.mark.parametrize("framework", sorted(PACKAGES))
def test_answers_equal_those_of_the_framework(framework: str, tmp_path: Path) -> None:
    """Each model answers through boto3 what the framework itself has computed,
    also for parallel requests.
    """
    python = environment(framework, PACKAGES[framework], tmp_path)
    subprocess.run([python, WRITER, framework, tmp_path], check=True)
    assert sorted(path.name for path in (tmp_path / "models").iterdir()) == MODELS[framework]
    with LocalEndpoint.from_repository(
        tmp_path / "models", is_multi_model=True, python=python
    ) as local:
        for model in MODELS[framework]:
            client = TritonClient.for_endpoint(
                local.endpoint_names[0],
                endpoint_url=local.endpoint_url,
                target_model=f"{model}.tar.gz",
            )
            values = np.load(tmp_path / f"{model}.npz")
            inputs = {name[3:]: values[name] for name in values.files if name.startswith("in:")}
            for answer in client.infer_many([inputs] * 3):
                for name in (each for each in values.files if each.startswith("out:")):
                    np.testing.assert_allclose(answer[name[4:]], values[name], rtol=1e-5, atol=1e-6)
        assert f"backend {framework} is replaced by " in local.messages
