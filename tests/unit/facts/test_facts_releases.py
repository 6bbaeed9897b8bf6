"""The program that writes what each release has reads the forms that the sources have had."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import facts_releases
import pytest

from triton_model_check.facts.releases import release

OLD_BUILD = """
TRITON_VERSION_MAP = {
    '2.13.0': (
        '21.08',  # triton container
        '21.08',  # upstream container
        '1.8.1',  # ORT
        '2021.2.200',  # ORT OpenVINO
        '2.2.8')  # DCGM version
}
REPOSITORY = "https://example.com/repos/ubuntu2004/x86_64"
"""
NEW_BUILD = """
DEFAULT_TRITON_VERSION_MAP = {
    "release_version": "2.72.0",
    "triton_container_version": "26.08",
    "ort_version": "1.28.0",
    "ort_openvino_version": "2026.3.0",
}
IMAGE = "ubuntu:24.04"
REPOSITORY = "https://example.com/repos/ubuntu2404/x86_64"
def enable_all():
    all_backends = ["ensemble", "onnxruntime", "python"]
    all_caches = ["local"]
"""
GUIDE = (
    "build.py --backend=ensemble --backend=tensorflow1:<tag> --backend=python:<tag> --backend=fil"
)
PROTO = """
// message Commented { int32 no = 1; }
enum DataType { TYPE_INVALID = 0; TYPE_BF16 = 14; }
message ModelConfig
{
  enum Kind { KIND_A = 0; }
  message Inner { map<string, int64> sizes = 1; }
  oneof choice { Inner inner = 1; string name = 2; }
  repeated int64 dims = 3 [ packed = true ];
}
"""


@pytest.mark.parametrize(
    ("build", "onnxruntime", "python", "backends"),
    [
        (OLD_BUILD, "1.8.1", "3.8", ["fil", "python", "tensorflow", "tensorflow1"]),
        (NEW_BUILD, "1.28.0", "3.12", ["onnxruntime", "python"]),
    ],
)
def test_build_file_names_runtime_python_and_backends(
    build: str, onnxruntime: str, python: str, backends: list[str]
) -> None:
    """Both forms of ``build.py`` are read; the older one lists its backends in the guide."""
    assert facts_releases.read_onnxruntime(build) == onnxruntime
    assert facts_releases.read_python(build) == python
    assert facts_releases.read_backends(build, GUIDE) == backends


def test_fields_of_a_proto_have_the_names_of_their_messages() -> None:
    """Fields of a choice belong to the message, and comments and options are no fields."""
    assert facts_releases.read_fields(PROTO) == {
        "DataType.TYPE_INVALID",
        "DataType.TYPE_BF16",
        "ModelConfig.Kind.KIND_A",
        "ModelConfig.Inner.sizes",
        "ModelConfig.inner",
        "ModelConfig.name",
        "ModelConfig.dims",
    }


def _branch(folder: Path, name: str, files: dict[str, str]) -> None:
    git = ["git", "-C", str(folder), "-c", "user.name=t", "-c", "user.email=t@example.com"]
    if not folder.exists():
        folder.mkdir()
        subprocess.run([*git, "init", "--quiet"], check=True)
    subprocess.run([*git, "checkout", "--quiet", "--orphan", name], check=True)
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "--quiet", "--message", name], check=True)


def test_branches_become_rows(tmp_path: Path) -> None:
    """A release gets the facts of its branches; what has no branch is not known."""
    server, backend, common = (tmp_path / name for name in ("server", "backend", "common"))
    _branch(server, "r21.08", {"build.py": OLD_BUILD, "docs/build.md": GUIDE})
    _branch(server, "r26.08", {"build.py": NEW_BUILD})
    _branch(server, "r21.07", {"build.py": OLD_BUILD})  # older than the table
    _branch(backend, "r21.08", {"src/onnxruntime_utils.cc": "TRITONSERVER_TYPE_FP16"})
    _branch(common, "r21.08", {"protobuf/model_config.proto": "message A { int32 a = 1; }"})
    _branch(
        common, "r22.01", {"protobuf/model_config.proto": "message A { int32 a = 1; int32 b = 2; }"}
    )
    rows = facts_releases.read_releases(
        facts_releases.Sources(server), facts_releases.Sources(backend)
    )
    assert list(rows) == ["21.08", "26.08"]
    assert (rows["21.08"]["supports_bf16"], rows["26.08"]["supports_bf16"]) == (False, None)
    assert rows["26.08"]["onnxruntime"] == "1.28.0"
    fields = facts_releases.read_new_fields(facts_releases.Sources(common))
    assert fields == {"21.08": ["A.a"], "22.01": ["A.b"]}


def test_limits_name_the_wheel_that_was_asked() -> None:
    """A runtime without a wheel has the limits of its minor version, and another one none."""
    rows = {name: {"onnxruntime": name} for name in ("1.17.2", "1.18.0", "1.40.0")}
    asked = {"1.17.3": {"max_opset": 20}, "1.18.0": {"max_opset": 21}}
    limits = facts_releases.with_limits({}, rows, asked)
    assert {name: row["asked"] for name, row in limits.items()} == {
        "1.17.2": "1.17.3",
        "1.18.0": "1.18.0",
    }


def test_recorded_table_is_written_as_the_program_writes_it() -> None:
    """The file in the package has the program's form, so that a refresh shows only changes."""
    text = facts_releases.RELEASES.read_text(encoding="utf-8")
    assert facts_releases.render(json.loads(text)) == text
    assert release(facts_releases.FIRST_RELEASE) is not None
