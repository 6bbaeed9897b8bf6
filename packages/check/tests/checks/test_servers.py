"""What the rules say of servers, containers, Kubernetes and KServe, and not of SageMaker."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest
from check_examples import EXAMPLES
from check_examples.onnx_models import relu
from check_examples.python_backend import PYTHON, packed
from check_examples.repositories import (
    CLASS,
    ENVIRONMENT,
    HEAD,
    ONE_STEP,
    Files,
    ensemble,
    one,
    write,
)
from check_examples.torch_and_plan import torchscript

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.findings import Finding, Verdict
from triton_model_check.checks.chapters import RULES
from triton_model_check.checks.rules import Problem
from triton_model_check.facts.image_tags import FLAVORS
from triton_model_check.model_config.target import PLATFORMS, SAGEMAKER, SERVERS, Platform, Target
from triton_model_check.model_repository import ModelRepository

SAGEMAKER_WORDS = re.compile(
    r"SageMaker|SAGEMAKER|AWS|Amazon|\bS3\b|endpoint|instance type|volume_size|acknowledge|"
    r"TritonImage"
)
ABOUT_ARCHIVES = ("python-environment", "torchscript-")  # of packages, and of PyTorch
BROKEN = HEAD.replace("TYPE_FP32", "FP32", 1)


def _findings(files: Files, folder: Path, platform: Platform, **known: Any) -> tuple[Finding, ...]:
    repository = ModelRepository.from_directory(write(files, folder / "models"))
    return repository.check(Target.named(platform, **known), is_packed=False).findings


@pytest.mark.parametrize(
    ("platform", "version", "count", "fits"),
    [
        ("docker", "23.08", 1, True),
        ("docker", "23.08", 2, False),
        ("docker", "23.09", 64, True),
        ("docker", "23.09", 65, False),
        ("kubernetes", "24.10", 65, False),
        ("kserve", None, 2, False),
        ("server", "23.08", 2, True),
        ("sagemaker", "23.08", 2, True),
    ],
)
def test_shared_memory_of_a_container(
    platform: Platform, version: str | None, count: int, fits: bool, tmp_path: Path
) -> None:
    """Each instance takes 64 MiB before 23.09, then 1 MiB, of the 64 MiB of a container."""
    files = one(HEAD + f"instance_group {{ kind: KIND_CPU count: {count} }}\n")
    found = _findings(files, tmp_path, platform, image_version=version)
    assert ("server-shm-size" not in {each.code for each in found}) is fits


def test_followed_size_is_enough_on_a_server_too(tmp_path: Path) -> None:
    """The size of the hint has room for requests; a given size counts on a server."""
    files = one(HEAD, **{"n/config.pbtxt": HEAD, "n/1/model.py": CLASS})
    known = {"image_version": "23.05", "shm_bytes": 64 << 20}
    (found,) = _findings(files, tmp_path, "server", **known)
    assert found.message == (
        "when the server starts, the models need at least 128 MiB of /dev/shm, "
        "which has 64 MiB: m: region 64 MiB; n: region 64 MiB"
    )
    assert found.hint.startswith(
        "start the container with --shm-size=256m, and check with --shm-size 256m;"
    )
    (found,) = _findings(files, tmp_path / "again", "kubernetes", **known)
    assert found.hint.startswith("mount an emptyDir volume with medium: Memory at /dev/shm")
    assert not _findings(
        files, tmp_path / "large", "docker", image_version="23.05", shm_bytes=256 << 20
    )


@pytest.mark.parametrize(
    ("platform", "known", "path", "severity"),
    [
        ("server", {}, "m/configs/h100.pbtxt", "warning"),
        ("server", {"image_version": "24.04"}, None, None),
        ("sagemaker", {"image_version": "24.10"}, None, None),
        ("server", {"model_config_name": "h100"}, "m/configs/h100.pbtxt", "error"),
        ("server", {"model_config_name": "a100"}, "m/configs/h100.pbtxt", "warning"),
    ],
)
def test_broken_configuration_of_another_name(
    platform: Platform,
    known: dict[str, Any],
    path: str | None,
    severity: str | None,
    tmp_path: Path,
) -> None:
    """It is a warning until its name is chosen; a name without a file means config.pbtxt."""
    files = one(HEAD, **{"m/configs/h100.pbtxt": BROKEN, "m/configs/notes.txt": "x"})
    found = _findings(files, tmp_path, platform, **known)
    assert [(each.path, each.severity.value) for each in found] == (
        [] if path is None else [(path, severity)]
    )
    assert all(each.line == 3 for each in found)


def test_chosen_configuration_replaces_the_other_one(tmp_path: Path) -> None:
    """All rules read configs/NAME.pbtxt in place of config.pbtxt."""
    files = one(BROKEN, **{"m/configs/h100.pbtxt": HEAD + "instance_group { count: -1 }\n"})
    found = _findings(files, tmp_path, "server", model_config_name="h100")
    assert [(each.code, each.path) for each in found] == [
        ("instance-count", "m/configs/h100.pbtxt")
    ]


def test_explicit_mode_loads_the_named_models_and_their_steps(tmp_path: Path) -> None:
    """Errors of other models are warnings, which say so."""
    files = {**ensemble(ONE_STEP), "n/config.pbtxt": BROKEN, "n/1/model.py": CLASS}
    (found,) = _findings(files, tmp_path, "server", load_models=("pipe",))
    assert (found.path, found.severity.value, found.rejects) == ("n/config.pbtxt", "warning", False)
    assert found.message.endswith("(the server does not load it)")
    (found,) = _findings(files, tmp_path / "all", "server", load_models=("*",))
    assert found.severity.value == "error"
    with pytest.raises(
        InvalidValueError, match=r'has no such model, got .pipa.; did you mean "pipe"'
    ):
        _findings(files, tmp_path / "absent", "server", load_models=("pipa",))


@pytest.mark.parametrize(
    ("backend", "platform", "known", "hint"),
    [
        ("tensorflow", "server", {}, "use image version 25.02, or convert the model to ONNX"),
        ("tensorflow", "sagemaker", {"image_version": "26.05"}, "use image version 24.09, or"),
        ("tensorflow", "kserve", {}, None),
        ("tensorflow", "server", {"backends": ("tensorflow",)}, None),
        ("mine", "server", {}, "use one of"),
        ("mine", "docker", {"backends": ("mine",)}, None),
        ("repeats", "server", {}, 'did you mean "repeat"'),
        ("onnxruntim", "server", {}, None),  # backend-misspelled reports it
        ("onnxruntim", "sagemaker", {"image_version": "26.05"}, 'did you mean "onnxruntime"'),
        ("vllm", "server", {}, None),
        (
            "vllm",
            "kserve",
            {},
            "use nvcr.io/nvidia/tritonserver:26.08-vllm-python-py3, and --backends vllm",
        ),
    ],
)
def test_backends_of_an_image(
    backend: str, platform: Platform, known: dict[str, Any], hint: str | None, tmp_path: Path
) -> None:
    """NVIDIA's newest known image is assumed on a server,
    and hints name versions that its publisher has.
    """
    config = HEAD.replace("python", backend) + (
        'platform: "tensorflow_graphdef"\n' * (backend == "tensorflow")
    )
    files: Files = {"m/config.pbtxt": config, "m/1/model.graphdef": b"\n\0"}
    found = [
        each for each in _findings(files, tmp_path, platform, **known) if "-backend-" in each.code
    ]
    assert [each.hint.startswith(hint or "?") for each in found] == [True] * (hint is not None)


def test_newest_image_depends_on_the_publisher(tmp_path: Path) -> None:
    """26.08 is newer than the table of AWS's images, and not newer than NVIDIA's."""
    pairs: list[tuple[Platform, str]] = [(each, "26.08") for each in ("server", "sagemaker")]
    codes = {}
    for platform, version in (*pairs, ("server", "27.01")):
        found = _findings(one(HEAD), tmp_path / platform / version, platform, image_version=version)
        codes[platform, version] = [each.code for each in found]
    assert codes["server", "26.08"] == []
    assert all(
        codes[key] == ["target-image-unknown"] for key in codes if key != ("server", "26.08")
    )


def test_hint_for_a_folder_that_is_a_model_names_the_storage_of_kserve(tmp_path: Path) -> None:
    """KServe copies storageUri, so the parent folder has to be named there."""
    files = {"config.pbtxt": HEAD, "1/model.py": CLASS}
    hints = {
        platform: next(iter(_findings(files, tmp_path / platform, platform))).hint
        for platform in SERVERS
    }
    assert {platform for platform, hint in hints.items() if "storageUri" in hint} == {"kserve"}


@pytest.mark.parametrize("key", sorted(EXAMPLES))
def test_no_finding_on_a_server_names_what_only_sagemaker_has(key: str, tmp_path: Path) -> None:
    """On each server, messages and hints are about machines,
    and about archives only of environments.
    """
    repository = ModelRepository.from_directory(write(EXAMPLES[key].failing, tmp_path / "models"))
    for platform in SERVERS:
        target = replace(EXAMPLES[key].target or Target(), platform=platform)
        for found in repository.check(target, is_packed=False).findings:
            text = f"{found.message}; {found.hint}"
            assert not SAGEMAKER_WORDS.search(text), text
            assert found.code.startswith(ABOUT_ARCHIVES) or "archive" not in text, text


def test_rules_name_platforms_and_no_words_of_sagemaker() -> None:
    """This also holds for the hints that no example shows."""
    for rule in RULES.values():
        assert set(rule.platforms) <= set(PLATFORMS)
        if not set(rule.platforms) <= set(SAGEMAKER):
            assert not SAGEMAKER_WORDS.search(rule.hint_for(Problem(""), Target("server"))), (
                rule.code
            )


@pytest.mark.parametrize(
    ("known", "platform", "paths"),
    [
        ({}, "server", ["..data", "docs"]),
        ({"load_models": ("*",)}, "kserve", ["..data", "docs"]),
        ({}, "dynamo", ["..data", "docs"]),
        ({"load_models": ("m",)}, "server", []),
        ({"local_files": False}, "server", []),
        ({}, "sagemaker", []),
    ],
)
def test_folders_that_are_no_models(
    known: dict[str, Any], platform: Platform, paths: list[str], tmp_path: Path
) -> None:
    """A server that loads all models ends at each of them, at hidden ones too, and at no file."""
    files = one(
        HEAD,
        **{
            "docs/a.md": "x",
            "..data/x": "x",
            ".git/HEAD": "x",
            "README.md": "x",
            ".gitignore": "x",
        },
    )
    found = _findings(files, tmp_path, platform, **known)
    assert [each.path for each in found if each.code == "server-stray-folder"] == paths


@pytest.mark.parametrize(
    ("files", "code", "rejects"),
    [
        ({"config.pbtxt": HEAD, "1/model.py": CLASS}, "layout-folder-is-model", True),
        ({"models/m/config.pbtxt": HEAD, "k8s/a.yaml": "x"}, "layout-no-model", True),
        ({"README.md": "x"}, "layout-no-model", False),
    ],
)
def test_only_an_empty_repository_starts_without_models(
    files: Files, code: str, rejects: bool, tmp_path: Path
) -> None:
    """A server takes each folder for a model, which does not load."""
    (found,) = _findings(files, tmp_path, "kubernetes")
    assert (found.code, found.rejects) == (code, rejects)


@pytest.mark.parametrize(
    ("known", "version", "backend", "fits"),
    [
        ({}, "26.05", "vllm", False),
        ({}, "26.05", "identity", True),
        ({"local_files": False}, "26.05", "python", False),
        ({"shm_default_byte_size": 2**19}, "26.05", "python", True),
        ({"shm_default_byte_size": 2**19}, "23.05", "python", True),
    ],
)
def test_instances_of_what_runs_in_python(
    known: dict[str, Any], version: str, backend: str, fits: bool, tmp_path: Path
) -> None:
    """vLLM models take shared memory too, without files also;
    the option of the backend says how much.
    """
    files = one(HEAD.replace("python", backend) + "instance_group { kind: KIND_CPU count: 2 }\n")
    known |= {"image_version": version, "shm_bytes": 2**20, "backends": ("vllm",)}
    found = _findings(files, tmp_path, "docker", **known)
    assert ("server-shm-size" not in {each.code for each in found}) is fits


@pytest.mark.parametrize(
    ("platform", "lines"),
    [
        (
            "kubernetes",
            ['m/1/model.py: import not checked: the image may have no package "mlflow"'],
        ),
        (
            "sagemaker",  # python-import-missing warns of it too
            ['m/1/model.py: it depends on the image: the image has no package "mlflow"'],
        ),
    ],
)
def test_imports_that_the_image_of_a_server_may_lack(
    platform: Platform, lines: list[str], tmp_path: Path
) -> None:
    """They are no findings, but the verdict is about what was checked."""
    files = {
        **one(HEAD),
        "m/1/model.py": f"import json, numpy\nimport mlflow.pyfunc\nimport mlflow\n{CLASS}",
    }
    repository = ModelRepository.from_directory(write(files, tmp_path / "models"))
    report = repository.check(Target.named(platform), is_packed=False)
    assert list(report.not_checked) == lines
    assert bool(report.findings) is (platform == "sagemaker")


def test_imports_of_the_modules_that_a_model_imports(tmp_path: Path) -> None:
    """What model.py certainly loads from its folder is followed, and what it may do without is
    not.
    """
    files = {
        **one(HEAD),
        "m/1/model.py": "from near import x\n"
        f"try:\n    import other\nexcept ImportError:\n    pass\n{CLASS}",
        "m/1/near.py": "from shared.deep import y\n",
        "m/1/other.py": "import absent\n",
        "m/shared/deep.py": "import mlflow\n",
    }
    repository = ModelRepository.from_directory(write(files, tmp_path / "models"))
    report = repository.check(Target.named("server"), is_packed=False)
    assert list(report.not_checked) == [
        'm/shared/deep.py: import not checked: the image may have no package "mlflow"'
    ]


@pytest.mark.parametrize("platform", SERVERS)
@pytest.mark.parametrize("is_there", [True, False])
def test_relative_environment_depends_on_the_working_directory(
    platform: Platform, is_there: bool, tmp_path: Path
) -> None:
    """No server is said to load a model with a relative environment, which is a warning if the
    model's folder has the file.
    """
    files = dict(one(HEAD + ENVIRONMENT % "env.tar"))
    if is_there:
        files["m/env.tar"] = packed(*PYTHON)
    repository = ModelRepository.from_directory(write(files, tmp_path / "models"))
    report = repository.check(Target.named(platform, image_version="24.10"), is_packed=False)
    found = [each.code for each in report.findings if each.code.startswith("python-environment")]
    assert found == ["python-environment-working-directory"] * is_there
    assert report.verdict is Verdict.UNKNOWN
    assert any("working directory of the server" in line for line in report.not_checked)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_absolute_environment_is_only_on_the_server(platform: Platform, tmp_path: Path) -> None:
    """No server is said to load a model whose environment is outside of what was checked."""
    files = one(HEAD + ENVIRONMENT % "/opt/env.tar.gz")
    repository = ModelRepository.from_directory(write(files, tmp_path / "models"))
    report = repository.check(Target.named(platform, image_version="24.10"), is_packed=False)
    assert report.verdict is Verdict.UNKNOWN
    assert any('"/opt/env.tar.gz"' in line for line in report.not_checked)


@pytest.mark.parametrize(
    ("names", "is_paired"),
    [
        ([("A", "A_OUT"), ("B", "B_OUT")], True),
        ([("B", "Y"), ("A", "X")], True),
        ([("A", "Y"), ("B", "X")], False),
        ([("S2", "T2"), ("S10", "T10")], True),
        ([("A", "Y"), ("B", "Y")], True),
    ],
)
def test_states_are_paired_by_their_order(
    names: list[tuple[str, str]], is_paired: bool, tmp_path: Path
) -> None:
    """States whose inputs and outputs sort differently are reported, in whatever order they are."""
    states = ", ".join(
        f'{{ input_name: "{before}" output_name: "{after}" data_type: TYPE_FP32 dims: [ 1 ] }}'
        for before, after in names
    )
    files = one(f"{HEAD}sequence_batching {{ state [ {states} ] }}\n")
    found = _findings(files, tmp_path, "server", image_version="24.10")
    assert ("state-pairing" in {each.code for each in found}) is not is_paired


def test_copy_of_the_configuration_in_a_version_is_no_problem(tmp_path: Path) -> None:
    """A ``config.pbtxt`` in a version folder is reported only if it differs from the model's."""
    files = one(HEAD, **{"m/1/config.pbtxt": HEAD.replace("\n", "\r\n")})
    assert _findings(files, tmp_path, "server", image_version="24.10") == ()


@pytest.mark.parametrize(
    ("before", "after", "count"),
    [("S__1", "T__1", 0), ("S", "T__1", 1), ("S", "T", 2), ("S__x", "T__1", 1), ("S__", "T__", 2)],
)
def test_states_of_pytorch_have_an_index(
    before: str, after: str, count: int, tmp_path: Path
) -> None:
    """Each name of a state without digits after two underscores is reported."""
    state = f'{{ input_name: "{before}" output_name: "{after}" data_type: TYPE_FP32 dims: [ 1 ] }}'
    head = HEAD.replace("python", "pytorch").replace('"X"', '"X__0"').replace('"Y"', '"Y__0"')
    files: Files = {
        "m/config.pbtxt": f"{head}sequence_batching {{ state [ {state} ] }}\n",
        "m/1/model.pt": torchscript("X__0: Tensor, S__1: Tensor", "torch.relu(X__0)"),
    }
    found = _findings(files, tmp_path, "server", image_version="24.10")
    assert [each.code for each in found] == ["backend-pytorch-names"] * count


@pytest.mark.parametrize(
    ("platform", "version", "is_rejected"),
    [
        ("server", "21.09", True),
        ("server", "22.06", True),
        ("server", "22.07", False),
        ("sagemaker", "22.05", True),
        ("sagemaker", "21.08", False),  # its start script was not published
    ],
)
@pytest.mark.parametrize("config", [None, 'backend: "onnxruntime"\n'])
def test_older_servers_complete_no_configuration(
    config: str | None, platform: Platform, version: str, is_rejected: bool, tmp_path: Path
) -> None:
    """Before 22.07 the server rejects a model that needs completion; later it completes it."""
    old = onnx.load_from_string(relu())
    old.ir_version = 7  # of the ONNX Runtime of 21.08
    files: Files = {"m/1/model.onnx": old.SerializeToString()}
    if config is not None:
        files = {**files, "m/config.pbtxt": config}
    repository = ModelRepository.from_directory(write(files, tmp_path / "models"))
    report = repository.check(Target.named(platform, image_version=version), is_packed=False)
    codes = {each.code for each in report.errors}
    expected = {"onnx-input-count"} if config else {"layout-config-absent"}
    assert codes == (expected if is_rejected else set())
    assert (report.verdict is Verdict.REJECTED) is is_rejected
    is_named = any("completes configurations" in line for line in report.not_checked)
    assert is_named is (version == "21.08")


def test_labels_in_a_version_folder_are_to_be_moved(tmp_path: Path) -> None:
    """The hint for a label file in a version folder names the folder where it must be."""
    output = 'output [ { name: "L" data_type: TYPE_FP32 dims: [ 2 ] label_filename: "l.txt" } ]\n'
    found = _findings(one(HEAD + output, **{"m/1/l.txt": "cat\ndog\n"}), tmp_path, "server")
    hints = [each.hint for each in found if each.code == "tensor-label-file"]
    assert hints == ['move 1/l.txt to "m/l.txt", beside config.pbtxt']


@pytest.mark.parametrize("backend", ["python", "vllm", "tensorrtllm", "onnxruntime"])
@pytest.mark.parametrize("flavor", ["vllm-python-py3", "trtllm-python-py3"])
@pytest.mark.parametrize("platform", ["server", "kserve", "sagemaker"])
def test_flavor_of_the_image_decides_about_backends(
    platform: Platform, flavor: str, backend: str, tmp_path: Path
) -> None:
    """An image of a flavor has its two backends and no others."""
    files: Files = {"m/config.pbtxt": HEAD.replace("python", backend), "m/1/readme.txt": "..."}
    known = {"image_version": "25.06", "image_flavor": flavor}
    found = _findings(files, tmp_path, platform, **known)
    absent = [each.code for each in found if each.code.startswith("target-backend")]
    is_there = backend in FLAVORS[flavor]
    assert absent == [] if is_there else absent == ["target-backend-absent"]


def test_flavor_that_is_not_known_may_have_any_backend(tmp_path: Path) -> None:
    """What backends an image of an unknown flavor has is named as not checked."""
    files: Files = {"m/config.pbtxt": HEAD.replace("python", "fil"), "m/1/readme.txt": "..."}
    repository = ModelRepository.from_directory(write(files, tmp_path / "models"))
    target = Target.named("server", image_version="24.10", image_flavor="py3-igpu")
    report = repository.check(target, is_packed=False)
    line = 'm: not checked whether image 24.10-py3-igpu has the backend "fil"'
    assert line in report.not_checked


@pytest.mark.parametrize(
    ("target", "is_known"),
    [
        (Target.named("server"), False),
        (Target.named("sagemaker", is_prebuilt_image=False), False),
        (Target.named("sagemaker"), True),
    ],
)
def test_repository_agents_of_an_own_image_are_not_known(
    target: Target, is_known: bool, tmp_path: Path
) -> None:
    """An agent, which may decrypt the model, is refused only for AWS's image, and never removed."""
    agents = 'model_repository_agents { agents { name: "decrypt" } }\n'
    repository = ModelRepository.from_directory(write(one(HEAD + agents), tmp_path / "models"))
    report = repository.check(target, is_packed=False)
    line = 'm/config.pbtxt: not checked whether the server has the repository agent "decrypt"'
    assert (line in report.not_checked) is not is_known
    assert [(each.code, each.fix) for each in report.errors] == (
        [("backend-repository-agent", None)] if is_known else []
    )


def test_modules_beside_the_models_are_not_taken_from_pypi(tmp_path: Path) -> None:
    """A folder of the user's own modules is to be moved: PyPI may have a package of this name."""
    files = one(HEAD, **{"m/1/model.py": f"from common import double\n{CLASS}", "common/a.py": ""})
    found = _findings(files, tmp_path, "sagemaker", default_model="m")
    (hint,) = [each.hint for each in found if each.code == "python-import-missing"]
    assert hint.startswith('the folder "common" beside the models is not on their path: move it')


def test_hint_for_a_stray_folder_on_dynamo_can_be_followed(tmp_path: Path) -> None:
    """NVIDIA Dynamo's worker has no explicit mode, so its hint does not name one."""
    files = one(HEAD, **{"docs/a.md": "x"})
    (found,) = _findings(files, tmp_path, "dynamo")
    assert found.hint == "move the folder out of the repository"


@pytest.mark.parametrize(
    ("policy", "platform", "message"),
    [
        ("all { }", "dynamo", "loads versions 1, 2 and 3, and requests through Dynamo reach only"),
        ("latest { num_versions: 2 }", "dynamo", "loads versions 2 and 3, and"),
        ("specific { versions: 1 }", "dynamo", None),
        ("latest { num_versions: 1 }", "dynamo", None),
        ("all { }", "kubernetes", None),
    ],
)
def test_versions_that_no_request_reaches(
    policy: str, platform: Platform, message: str | None, tmp_path: Path
) -> None:
    """Dynamo routes by the name of a model alone; other servers have a version in the request."""
    files = one(
        HEAD + f"version_policy {{ {policy} }}\n", **{"m/2/model.py": CLASS, "m/3/model.py": CLASS}
    )
    found = [each.message for each in _findings(files, tmp_path, platform)]
    assert [text for text in found if "through Dynamo" in text] == [
        text for text in found if message and message in text
    ]
    assert bool(found) is (message is not None)
