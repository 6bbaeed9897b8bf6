"""The published systems with the environments that replace the articles' steps with conda."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from example_scripts import PUBLISHED_SYSTEMS, run_script, synthesize
from triton_server import needs_server

from constructs_triton.cli import main as constructs_triton
from constructs_triton_tools.building.environments.archive import lock_of_archive
from constructs_triton_tools.local import LocalEndpoint

BUDGET_MINUTES = 2
pytestmark = needs_server
WRITTEN = shutil.ignore_patterns(
    "build", "cdk.out", "model_files", "models", "stand_ins", "*.tar.gz"
)


@pytest.fixture
def systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the examples, and a cache without environments."""
    monkeypatch.setenv("CONSTRUCTS_TRITON_CACHE_DIR", str(tmp_path / "cache"))
    return Path(shutil.copytree(PUBLISHED_SYSTEMS, tmp_path / "published_systems", ignore=WRITTEN))


def build(example: Path, archive: str, *options: str) -> None:
    """Build the environment of an example with the versions of its lock file."""
    words = ["env", "build", str(example / "environment.txt"), "-o", str(example / archive)]
    if constructs_triton([*words, *options]):
        pytest.skip("uv finds no packages on this machine")


def built_for_the_server(cache: Path) -> list[dict[str, str]]:
    """Return the packages of each environment that was built for the Python of the server."""
    locks = [lock_of_archive(path) for path in (cache / "environments").glob("*.tar")]
    local = f"{sys.version_info.major}.{sys.version_info.minor}"
    return [lock.versions for lock in locks if lock is not None and lock.python == local]


def test_twin_decodes_with_the_pillow_of_its_environment(systems: Path, tmp_path: Path) -> None:
    """The ensemble names the picture, and Pillow has the version of the lock file."""
    example = systems / "dali_inception"
    build(example, "model_files/pillow_env.tar.gz")
    assembly = synthesize("dali_inception", example / "cdk.out", systems=systems)
    with LocalEndpoint.from_assembly(assembly, endpoint="dali-inception-twin") as local:
        words = ["dali-inception-twin", "--endpoint-url", local.endpoint_url]
        assert "blue, row 3, column 8" in run_script(
            "dali_inception", "invoke.py", *words, systems=systems
        )
    (found,) = built_for_the_server(tmp_path / "cache")
    assert f"pillow=={found['pillow']}" in (example / "environment.py3.12.lock").read_text()


def test_sentences_are_tokenized_with_their_environment(systems: Path, tmp_path: Path) -> None:
    """The article's sentences have the similarities of the README,
    with tokenizers of the lock file.
    """
    example = systems / "minilm_ensembles"
    build(example, "processing_env.tar.gz", "--image-version", "24.09")
    words = ["--environment", example / "processing_env.tar.gz"]
    run_script("minilm_ensembles", "build_models.py", *words, systems=systems)
    assembly = synthesize("minilm_ensembles", example / "cdk.out", systems=systems)
    stand_ins = {path.stem: path for path in (example / "stand_ins").iterdir()}
    with LocalEndpoint.from_assembly(assembly, stand_ins=stand_ins) as local:
        words = ["--endpoint-url", local.endpoint_url]
        lines = run_script("minilm_ensembles", "invoke.py", *words, systems=systems).splitlines()
    assert [line.split()[0] for line in lines] == ["0.989", "1.000", "0.652", "0.252"]
    (found,) = built_for_the_server(tmp_path / "cache")
    assert f"tokenizers=={found['tokenizers']}" in (example / "environment.py3.10.lock").read_text()
