"""Unpacking, and what changes in the unpacked copy."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from fake_container import write_archive

from constructs_triton_core.errors import ArchiveError, LocalEndpointError, MissingDependencyError
from constructs_triton_tools.local.server import local_model
from constructs_triton_tools.local.server.local_model import (
    count_python_instances,
    models_to_load,
    prepare_models,
    require_backends,
)
from constructs_triton_tools.local.server.memory import fit_shared_memory, fitted_environment
from constructs_triton_tools.local.server.unpacking import unpack
from constructs_triton_tools.local.stand_ins.stand_ins import StandIns
from triton_model_check.model_config.text import parse_model_config

GPU = (
    'backend: "python"\ninstance_group [ { count: 2 kind: '
    "KIND_GPU gpus: [ 0, 1 ] }, { gpus: [ 1 ] } ]\n"
)
CPU = '# a comment\nbackend: "python"\ninstance_group [ { kind: KIND_CPU } ]\n'


@pytest.fixture(autouse=True)
def _machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with two CPUs and without a GPU."""
    monkeypatch.setattr(local_model, "_has_gpu", lambda: False)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


def _write(folder: Path, **configs: str) -> Path:
    for name, text in configs.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "config.pbtxt").write_text(text)
    return folder


def test_gpu_groups_move_to_the_cpu_and_nothing_else_changes(tmp_path: Path) -> None:
    """Kinds and GPU lists change, counts stay; a configuration without GPU
    groups keeps its bytes.
    """
    printed: list[str] = []
    prepare_models(_write(tmp_path, gpu=GPU, cpu=CPU), printed.append)
    groups = parse_model_config((tmp_path / "gpu" / "config.pbtxt").read_bytes()).instance_group
    assert [(group.kind, group.count, list(group.gpus)) for group in groups] == [
        (2, 2, []),
        (2, 0, []),
    ]
    assert (tmp_path / "cpu" / "config.pbtxt").read_text() == CPU
    assert printed == ["this machine has no GPU: GPU instance groups run on the CPU: gpu"]


def test_a_machine_with_a_gpu_keeps_its_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing has to be changed then."""
    monkeypatch.setattr(local_model, "_has_gpu", lambda: True)
    printed: list[str] = []
    prepare_models(_write(tmp_path, gpu=GPU), printed.append)
    assert (tmp_path / "gpu" / "config.pbtxt").read_text() == GPU
    assert printed == []


def test_a_config_that_does_not_parse_is_left_to_the_server(tmp_path: Path) -> None:
    """The server's message is better than one of this package."""
    assert prepare_models(_write(tmp_path, bad="{"), print) == {}
    assert (tmp_path / "bad" / "config.pbtxt").read_text() == "{"


ENSEMBLE = (
    'platform: "ensemble"\nensemble_scheduling { step { model_name: "net" model_version: -1 '
    'input_map { key: "a" value: "a" } output_map { key: "b" value: "b" } } }\n'
)


def test_python_instances_are_counted_as_the_server_starts_them(tmp_path: Path) -> None:
    """Only models that are loaded count; a group without a count, and a model
    without a group, have one.
    """
    two = 'backend: "python" instance_group [ { count: 2 kind: KIND_CPU } ]'
    ensemble = ENSEMBLE.replace('"net"', '"two"')
    repository = _write(
        tmp_path, whole=ensemble, two=two, other='backend: "python"', net='backend: "dali"'
    )
    assert count_python_instances(models_to_load(repository, "whole"), []) == 2
    everything = models_to_load(repository, "")
    assert count_python_instances(everything, []) == 3
    assert (
        count_python_instances(everything, [each for each in everything if each.name == "net"]) == 4
    )
    assert models_to_load(repository, "absent") == []


def test_too_small_a_shared_memory_is_named_before_the_start() -> None:
    """Free bytes, what is needed, and both fixes, for a size that the user has chosen."""
    assert fit_shared_memory(1, 1, is_chosen=True) == 1
    with pytest.raises(LocalEndpointError, match=r"/dev/shm: 3 Python .* bytes free; .*--shm-size"):
        fit_shared_memory(3, 2**60, is_chosen=True)


def test_the_images_default_of_shared_memory_shrinks_to_half_of_what_is_free() -> None:
    """Whole pages, the same for each instance; less than 1 MiB is rejected."""
    free = os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize
    fitting = fit_shared_memory(3, 2**60, is_chosen=False)
    assert 2**20 <= fitting <= free // 6
    assert fitting % 4096 == 0
    with pytest.raises(LocalEndpointError, match="--shm-size"):
        fit_shared_memory(free // 2**20, 2**60, is_chosen=False)


def test_no_group_has_more_instances_than_the_machine_has_cpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Higher counts are lowered, which is reported; smaller ones and GPU groups on a GPU stay."""
    monkeypatch.setattr(local_model, "_has_gpu", lambda: True)
    many = (
        "instance_group [ { count: 8 kind: KIND_CPU }, { count: 1 }, { count: 4 kind: KIND_GPU } ]"
    )
    printed: list[str] = []
    prepare_models(_write(tmp_path, many=many, cpu=CPU), printed.append)
    groups = parse_model_config((tmp_path / "many" / "config.pbtxt").read_bytes()).instance_group
    assert [group.count for group in groups] == [2, 1, 4]
    assert printed == ["this machine has 2 CPUs: instance groups run at most 2 instances: many"]


@pytest.mark.parametrize(
    ("name", "config", "message"),
    [
        (
            "gpu",
            GPU,
            "gpu: has instance groups on GPUs, and this machine has none; set kind: KIND_CPU",
        ),
        (
            "",
            "instance_group [ { count: 3 } ]",
            "the model at the archive's root: has more instances than .* 2",
        ),
    ],
)
def test_exact_runs_refuse_what_they_would_change(
    tmp_path: Path, name: str, config: str, message: str
) -> None:
    """A model that would run differently is an error that names it,
    and its configuration keeps its bytes.
    """
    file = tmp_path / name / "config.pbtxt"
    file.parent.mkdir(exist_ok=True)
    file.write_text(config)
    with pytest.raises(LocalEndpointError, match=message):
        prepare_models(tmp_path, print, is_exact=True)
    assert file.read_text() == config


def test_exact_runs_start_what_the_machine_can_run(tmp_path: Path) -> None:
    """As many instances as CPUs are accepted, and the processes do not get fewer threads."""
    two = 'backend: "python" instance_group [ { count: 2 kind: KIND_CPU } ]'
    assert list(prepare_models(_write(tmp_path, two=two), print, is_exact=True)) == ["two"]
    assert "OMP_NUM_THREADS" in fitted_environment({}, 2, print)
    assert fitted_environment({}, 2, print, is_exact=True) == {}


def test_unpacks_the_root_of_the_archive(tmp_path: Path) -> None:
    """The archive's root becomes the folder."""
    unpack(
        write_archive(tmp_path / "a.tar.gz", {"m/1/model.py": b"x"}),
        tmp_path / "opt" / "ml" / "model",
    )
    assert (tmp_path / "opt" / "ml" / "model" / "m" / "1" / "model.py").read_text() == "x"


@pytest.mark.parametrize("fault", ["escape", "text", "truncated", "damaged", "plain-tar"])
def test_other_files_are_rejected_and_leave_nothing(tmp_path: Path, fault: str) -> None:
    """No folder is left, partly written or outside."""
    archive = tmp_path / "a.tar.gz"
    match fault:
        case "escape":
            write_archive(archive, {"../outside": b"x"})
        case "text":
            archive.write_text("no archive")
        case "truncated":
            archive.write_bytes(write_archive(archive, {"m": b"x"}).read_bytes()[:-20])
        case "damaged":
            content = bytearray(write_archive(archive, {"m": b"x"}).read_bytes())
            content[20:40] = b"\xff" * 20
            archive.write_bytes(content)
        case "plain-tar":
            archive.write_bytes(gzip.decompress(write_archive(archive, {"m": b"x"}).read_bytes()))
    with pytest.raises(
        ArchiveError,
        match=r"a\.tar\.gz: (cannot be read as \.tar\.gz|member .* would be unpacked outside)",
    ):
        unpack(archive, tmp_path / "folder" / "model")
    assert not (tmp_path / "folder" / "model").exists()
    assert not (tmp_path / "folder" / "outside").exists()


def test_a_missing_backend_names_every_way_out(tmp_path: Path) -> None:
    """A step of the ensemble counts, and a backend that follows from the platform;
    other models do not.
    """
    onnx = 'platform: "onnxruntime_onnx"\n'
    repository = _write(tmp_path, whole=ENSEMBLE, net=onnx, cpu=CPU, other='backend: "dali"')
    installed = frozenset({"python", "identity", "ensemble"})
    assert require_backends(models_to_load(repository, "cpu"), installed, None, print) == []
    assert (
        require_backends(
            models_to_load(repository, "whole"), installed | {"onnxruntime"}, None, print
        )
        == []
    )
    for default in ("whole", "net", ""):
        with pytest.raises(
            LocalEndpointError, match=r"^net: needs the backend 'onnxruntime'"
        ) as refused:
            require_backends(models_to_load(repository, default), installed, None, print)
        for words in (
            "has only ensemble, identity, python",
            "remove --no-stand-ins, ",
            "--tritonserver",
        ):
            assert words in str(refused.value)
        assert all(words in str(refused.value) for words in ("--endpoint", "Python backend"))


MODELS_PYTHON = Path("/models/bin/python")
STAND_INS = StandIns({"onnxruntime": "1.20"}, MODELS_PYTHON)
NO_STAND_IN = r"net: .* no stand-in .* --tritonserver"


def test_a_stand_in_takes_the_place_of_a_missing_backend(tmp_path: Path) -> None:
    """It is reported, and has one instance unless the configuration sets instances."""
    given = 'backend: "onnxruntime"\ninstance_group [ { count: 2 } ]\n'
    repository = _write(tmp_path, net='platform: "onnxruntime_onnx"', given=given, cpu=CPU)
    (repository / "bare" / "1").mkdir(parents=True)
    (repository / "bare" / "1" / "model.onnx").touch()
    printed: list[str] = []
    models = models_to_load(repository, "")
    replaced = require_backends(models, frozenset({"python"}), STAND_INS, printed.append)
    assert [model.name for model in replaced] == ["bare", "given", "net"]
    assert printed[2] == "net: backend onnxruntime is replaced by onnxruntime 1.20 on the CPU"
    counts = [each.instance_group[0].count for each in prepare_models(repository, print).values()]
    assert counts == [1, 0, 2, 1]
    assert (repository / "given" / "config.pbtxt").read_text() == given


STATE = (
    'sequence_batching { state { input_name: "a" output_name: "b" data_type: TYPE_FP32 dims: 1 } }'
)
COUNTED = (
    "batch_input { kind: BATCH_ELEMENT_COUNT target_name: "
    '"n" data_type: TYPE_INT32 source_input: "x" }'
)
RAGGED = 'input { name: "x" data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }'


@pytest.mark.parametrize(
    ("config", "stand_ins", "words"),
    [
        (
            '"onnxruntime"',
            StandIns({}, MODELS_PYTHON),
            "run `/models/bin/python -m pip install onnxruntime",
        ),
        *((f'"onnxruntime"\n{each}', STAND_INS, NO_STAND_IN) for each in (STATE, COUNTED, RAGGED)),
        ('"kaldi"', STAND_INS, r"only python and stand-ins for onnxruntime"),
    ],
)
def test_what_no_stand_in_can_do_is_an_error(
    tmp_path: Path, config: str, stand_ins: StandIns, words: str
) -> None:
    """A missing package, implicit state, ragged batches, and a backend without a stand-in."""
    models = models_to_load(_write(tmp_path, net=f"backend: {config}"), "net")
    with pytest.raises((MissingDependencyError, LocalEndpointError), match=words):
        require_backends(models, frozenset({"python"}), stand_ins, print)
