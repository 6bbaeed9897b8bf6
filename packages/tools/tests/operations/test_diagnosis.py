"""The diagnosis of a log: what is recognized, in which order, and what is not a failure."""

from __future__ import annotations

import argparse
import re
from functools import partial
from pathlib import Path
from string import ascii_letters

import pytest

from constructs_triton_core.facts.failures import Failure, known_failures
from constructs_triton_tools.cli import memory
from constructs_triton_tools.operations.container_log import starts
from constructs_triton_tools.operations.diagnosis import (
    Message,
    diagnose,
    diagnose_log,
    format_diagnoses,
)

MISSING = (
    "E1121 17:53:13.485099 2621 model_lifecycle.cc:642] \"failed to load 'm' version 1: Internal: "
    "ModuleNotFoundError: No module named 'torch'\\n\\nAt:\\n  "
    '/opt/ml/model/m/1/model.py(1): <module>\\n"'
)
LAST = "error: creating server: Internal - failed to load all models"
PINNED = (
    'W1121 17:53:13.485099 2621 pinned_memory_manager.cc:273] "Unable to allocate pinned system '
    'memory, pinned memory pool will not be available: no CUDA-capable device is detected"'
)
READY = (
    'I1121 17:53:14.1 1 sagemaker_server.cc:301] "Started Sagemaker HTTPService at 0.0.0.0:8080"'
)
IGNORED = (
    "W1121 17:54:25.1 1 model_lifecycle.cc:111] \"ignore version directory '{}' which fails to "
    'convert to integral number"'
)
NO_VERSION = (
    "E1121 17:54:25.1 1 a.cc:1] \"failed to load model 'm': at least one version must be available "
    "under the version policy of model 'm'\""
)
BANNER = "== Triton Inference Server =="
SYNTAX = "E1121 17:53:13.1 1 a.cc:1] Failed to initialize Python stub: SyntaxError: invalid syntax"
NUMPY = "A module that was compiled using NumPy 1.x cannot be run"
THROTTLED = "botocore.errorfactory.ThrottlingException: Rate exceeded"


def ids(log: str, *, is_log: bool = True) -> list[str]:
    return [each.id for each in diagnose_log(log, is_log=is_log)]


def test_the_cause_is_before_the_lines_that_wrap_it() -> None:
    """The reason in an E-line is the first diagnosis;
    the server's last line is only a further one.
    """
    (cause, wrapper) = diagnose_log("\n".join([PINNED, LAST, MISSING]), "server.log")
    assert (cause.id, wrapper.id) == ("py-module-missing", "models-failed")
    assert cause.cause.startswith("the Python package torch is not installed")
    assert cause.line == MISSING
    assert cause.source == "server.log"
    assert len(cause.other_causes) == 4


def test_the_text_has_cause_line_fix_and_keywords() -> None:
    """What a user reads names the value of the message, the entry, and what helps."""
    text = format_diagnoses(diagnose_log(f"{MISSING}\n{LAST}", "server.log"))
    for words in (
        "likely cause: the Python package torch is not installed in the Python that runs",
        "[py-module-missing]",
        "from server.log: E1121",
        "fix: for a Python model of Triton run `constructs-triton env build` with torch",
        "TritonImage.from_asset",
        "or: a packed environment has it and is not used",
        "also: a model failed to load",
    ):
        assert words in text


@pytest.mark.parametrize(
    "log",
    [
        PINNED,
        "E1121 17:53:13.1 1 cuda.cc:1] CudaDriverHelper has not been initialized.",
        IGNORED.format(".ipynb_checkpoints"),
        "I1121 17:53:13.1 1 http.cc:1] MemoryError: not an error, this is information",
        "INFO:root:retrying after ThrottlingException",
        "2026-11-21 10:00:00 WARNING MemoryError: retried",
        f"ModuleNotFoundError: No module named 'flash_attn'\n{READY}",
        "Resource creation cancelled",
        "",
    ],
)
def test_a_line_that_is_no_failure_gives_nothing(log: str) -> None:
    """Harmless lines, information, and what a model prints before the server is
    ready are not failures.
    """
    assert ids(log) == []


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        # An ignored version directory matters only if the model then has no version.
        ([IGNORED.format("v1")], []),
        ([IGNORED.format("v1"), NO_VERSION], ["no-version", "version-ignored"]),
        # Of several starts, the last that explains a failure is read.
        ([BANNER, MISSING, LAST, BANNER, SYNTAX, LAST], ["py-syntax", "models-failed"]),
        ([BANNER, "Signal (11) received.", BANNER, READY], ["server-crash"]),
        # NumPy's message is broken into lines.
        ([f"{NUMPY} in", "NumPy 2.0.1 as it may crash."], ["py-numpy-abi"]),
        # A model that is throttled by another service is not a throttled endpoint.
        ([THROTTLED], []),
    ],
)
def test_what_a_log_explains(log: list[str], expected: list[str]) -> None:
    """Notes, several starts, broken lines, and messages of an API that a
    container does not write.
    """
    assert ids("\n".join(log)) == expected
    assert ids(THROTTLED, is_log=False) == ["throttled"]


def test_a_full_queue_is_not_a_missing_instance() -> None:
    """All have status 503, but Triton, its container and SageMaker refuse for other reasons."""
    refused = "Received server error (503) from primary"
    unavailable = "An error occurred (ServiceUnavailable) when calling the InvokeEndpoint operation"
    full = f'{refused} with message "{{"error":"[request id: 1] Exceeds maximum queue size"}}"'
    assert [*map(partial(ids, is_log=False), (full, refused, unavailable))] == [
        ["queue-full"],
        ["container-503"],
        ["unavailable-503"],
    ]


def test_messages_of_several_sources_are_ordered_by_what_they_say() -> None:
    """FailureReason comes first and only says that the health check failed;
    the log has the cause.
    """
    reason = next(
        failure.example for failure in known_failures() if failure.id == "ping-health-check"
    )
    found = diagnose([Message(reason, "FailureReason"), Message(MISSING, "log", is_log=True)])
    assert [(each.id, each.source) for each in found] == [
        ("py-module-missing", "log"),
        ("ping-health-check", "FailureReason"),
    ]


def test_a_long_log_is_bounded() -> None:
    """Only the end of a log and the beginning of a line are read, and equal lines once."""
    noise = "\n".join(
        f"E1121 17:53:13.1 {number} a.cc:1] something {number}" for number in range(30_000)
    )
    assert ids(f"{MISSING}\n{noise}") == []
    assert ids(f"{noise}\n{MISSING}") == ["py-module-missing"]
    assert ids("\\n" + "x" * 100_000 + MISSING) == []
    assert diagnose([Message("x" * 20_000 + MISSING, "message")]) == []


def test_messages_of_all_starts_are_bounded_together() -> None:
    """A log of few long lines, or of many starts, takes no more time than one of many lines."""
    lines = "\n".join(f"{letter} error {'x' * 4_000}" for letter in ascii_letters)
    log = f"== Triton Inference Server ==\n{lines}\n" * 40
    characters = sum(len(message) for messages in starts(log) for message in messages)
    assert 2**20 < characters <= 2 * 2**20


def test_a_missing_package_names_the_python_of_the_image() -> None:
    """The release is that of the log's last start, else that of the deployed image,
    and may be unknown.
    """
    release = "\n".join([BANNER, "NVIDIA Release {} (build 41737377)", MISSING])
    logs = (release.format("26.05") + "\n" + release.format("23.02"), MISSING, MISSING)
    fixes = [
        diagnose_log(log, triton_version=version)[0].fix
        for log, version in zip(logs, ("25.04", "25.04", None), strict=True)
    ]
    assert "for Python 3.8, the version in image 23.02, or" in fixes[0]
    assert "for Python 3.12, the version in image 25.04, or" in fixes[1]
    assert "for the image's Python (3.8 up to 23.03, 3.10" in fixes[2]


_MEMORY_COMMAND = re.compile(r"`constructs-triton memory ([^`]+)`")
_OF_MEMORY = [each for each in known_failures() if _MEMORY_COMMAND.search(each.fix)]


def test_failures_of_memory_name_the_command_that_adds_it_up() -> None:
    """Full GPUs, a killed process and a full /dev/shm lead to `constructs-triton memory`."""
    expected = {"torch-gpu-oom", "ort-gpu-oom", "trt-context-oom", "gpu-oom", "gpu-load-limit"}
    expected |= {"gpu-memory-plain"}
    expected |= {"host-memory-error", "host-oom-killed", "shm-init", "shm-grow", "mme-507"}
    assert {each.id for each in _OF_MEMORY} == expected


@pytest.mark.parametrize("failure", _OF_MEMORY, ids=lambda failure: str(failure.id))
def test_command_of_a_hint_runs(
    failure: Failure, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command of each hint runs as it is written, with a folder, a type and a fraction."""
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "1" / "model.plan").write_bytes(b"x" * 2**20)
    (tmp_path / "m" / "config.pbtxt").write_text('backend: "tensorrt"')
    named = {"MODELS": str(tmp_path), "TYPE": "ml.g5.xlarge", "FRACTION": "0.9"}
    (words,) = _MEMORY_COMMAND.findall(failure.fix)
    parser = argparse.ArgumentParser()
    memory.add_arguments(parser)
    arguments = parser.parse_args([named.get(word, word) for word in words.split()])
    assert memory.run(arguments) == 0
    assert "weights" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("RuntimeError: CUDA error: out of memory", "gpu-oom"),
        ("Last State: Terminated, Reason: OOMKilled", "host-oom-killed"),
        ("No space left on device: '/dev/shm/triton_python_backend_shm_region_1'", "shm-grow"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "torch-gpu-oom"),
    ],
)
def test_other_words_for_full_memory_are_known(message: str, expected: str) -> None:
    """The words of CUDA, Kubernetes and Python for full memory have the cause that it is."""
    (found,) = diagnose([Message(message, "the message", is_log=False)])
    assert found.id == expected


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (
            'Received server error (503) from primary with message "{"error":"Request timeout '
            'expired"}"',
            "queue-timeout",
        ),
        (
            "model 'm', tensor 'y': the model expects 2 dimensions (shape [-1,6]) but the model "
            "configuration specifies 2 dimensions (an initial batch dimension because "
            "max_batch_size > 0 followed by the explicit tensor shape, making complete "
            "shape [-1,-1])",
            "dims-differ",
        ),
        (
            "unable to find 'libtriton_fil.so' or 'fil/model.py' for model 'm', searched: /m/1",
            "backend-not-in-image",
        ),
        ("unable to find 'libtriton_pythonn.so' for model 'm', searched: /m/1", "backend-unknown"),
        ("unexpected platform type ensemble for e", "ensemble-platform"),
        ("failed to load '*', failed to poll from model repository", "load-wildcard"),
        ("'m' has no available versions", "model-no-version"),
        (
            "[request id: 1] unexpected deadlock, at least one output is not set while no more "
            "ensemble steps can be made",
            "ensemble-no-output",
        ),
        # A library that is there, but of other versions, is not missing.
        (
            "unable to load shared library: /o/libtorch_cuda.so: undefined symbol: cublasLtCreate",
            "library-undefined-symbol",
        ),
        ("unable to load shared library: libc10.so: cannot open shared object", "shared-library"),
        # The repository's path, and the file of a model.
        ("error: creating server: Internal - failed to stat file /m", "repository-path-absent"),
        ("Internal: failed to stat file /m/a/1/model.onnx", "file-absent"),
        # The caller's Python, and that of a model.
        ("ModuleNotFoundError: No module named 'boto3'", "client-module-missing"),
        ("Internal: ModuleNotFoundError: No module named 'boto3'", "py-module-missing"),
        # Calls of a deployment, and invocations.
        ('"Rate exceeded (Service: Lambda, Status Code: 429)"', "service-throttled"),
        (
            "An error occurred (InternalServerException) when calling the CreateModel operation: x",
            "aws-internal-error",
        ),
        ("ConnectionResetError: [Errno 104] Connection reset by peer", "connection-reset"),
        ("OSError: [Errno 28] No space left on device", "disk-full"),
        # An answer that is not Triton's, and Triton's own about a body that is not JSON.
        (
            "failed to get model metadata: failed to parse the request JSON buffer: at 0",
            "client-foreign-answer",
        ),
        ("failed to parse the request JSON buffer: Invalid value. at 0", "json-body"),
    ],
)
def test_similar_messages_have_different_causes(message: str, expected: str) -> None:
    """A text of Triton has its own cause, also where a more general entry would match."""
    assert ids(message, is_log=False)[0] == expected


def test_a_limit_of_watched_files_is_not_a_full_disk() -> None:
    """Both have the name ENOSPC."""
    assert not ids("ENOSPC: System limit for number of file watchers reached", is_log=False)


def test_text_of_the_sources_is_found_inside_a_line_that_wraps_it() -> None:
    """A line that only says that a model failed is explained by the text of Triton inside it,
    with the releases that have it.
    """
    (found, *_) = diagnose_log(
        "E1121 17:53:13.1 1 model_lifecycle.cc:642] \"failed to load 'm' version 1: Internal: "
        "input 'x' in auto-complete-config function for model 'm' is missing 'dims' property.\""
    )
    assert found.id == "py-auto-complete"
    assert "Triton's python_backend, triton_python_backend_utils.py (since 22." in found.writer
    assert f"\n  written by {found.writer}\n" in format_diagnoses([found])


LOADING = 'I1121 17:53:13.1 1 model_lifecycle.cc:472] "loading: /opt/ml/model::{}:1"'
LOADED = "I1121 17:53:14.1 1 model_lifecycle.cc:839] \"successfully loaded '{}' version 1\""


def test_model_whose_load_has_no_end_is_named() -> None:
    """Triton writes nothing about a model that hangs; the log has its begin and no end."""
    ended = LOADED.format("/opt/ml/model::quick")
    log = "\n".join([BANNER, LOADING.format("quick"), LOADING.format("stuck"), ended])
    (found,) = diagnose_log(log, "server.log")
    assert found.id == "model-still-loading"
    assert found.cause.startswith("stuck began to load and neither loaded nor failed")
    assert found.line == "loading: stuck:1"
    for end in ("version 1", ""):
        assert ids(log + "\n" + ended.replace("quick", "stuck").replace("version 1", end)) == []
    assert ids(log + "\n" + MISSING) == ["py-module-missing"]
    assert ids(f"{log}\n{BANNER}\n{READY}") == []
