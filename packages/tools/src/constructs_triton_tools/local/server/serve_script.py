"""Translates a container's environment into server flags, as the image's start script does.

Source: triton server docker/sagemaker/serve. The same variables become the same flags in the same
order. The script does not quote its arguments, so a blank splits a value. Errors have the script's
messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from constructs_triton_core.errors import ContainerExitError
from constructs_triton_core.processes.children import run_child

#: Initial shared memory of each Python model instance, in bytes.
DEFAULT_SHM_BYTES = 16777216
_LISTING_SECONDS = 60.0
_ALWAYS = ("--allow-sagemaker=true", "--allow-http=false", "--model-control-mode=explicit")
#: Variable, flag, and the default value (``None``: no flag, so the server's default).
_FLAGS = (
    ("SAGEMAKER_TRITON_DISABLE_MODEL_NAMESPACING", "--model-namespacing=", "true"),
    ("SAGEMAKER_BIND_TO_PORT", "--sagemaker-port=", None),
    ("SAGEMAKER_SAFE_PORT_RANGE", "--sagemaker-safe-port-range=", None),
    ("SAGEMAKER_TRITON_ALLOW_GRPC", "--allow-grpc=", "false"),
    ("SAGEMAKER_TRITON_ALLOW_METRICS", "--allow-metrics=", "false"),
    ("SAGEMAKER_TRITON_METRICS_PORT", "--metrics-port=", None),
    ("SAGEMAKER_TRITON_GRPC_PORT", "--grpc-port=", None),
    ("SAGEMAKER_TRITON_BUFFER_MANAGER_THREAD_COUNT", "--buffer-manager-thread-count=", None),
    ("SAGEMAKER_TRITON_THREAD_COUNT", "--sagemaker-thread-count=", None),
    ("SAGEMAKER_TRITON_LOG_VERBOSE", "--log-verbose=", "true"),
    ("SAGEMAKER_TRITON_LOG_INFO", "--log-info=", None),
    ("SAGEMAKER_TRITON_LOG_WARNING", "--log-warning=", None),
    ("SAGEMAKER_TRITON_LOG_ERROR", "--log-error=", None),
    (
        "SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE",
        "--backend-config=python,shm-default-byte-size=",
        str(DEFAULT_SHM_BYTES),
    ),
    (
        "SAGEMAKER_TRITON_SHM_GROWTH_BYTE_SIZE",
        "--backend-config=python,shm-growth-byte-size=",
        "1048576",
    ),
    ("SAGEMAKER_TRITON_TENSORFLOW_VERSION", "--backend-config=tensorflow,version=", None),
)
_INFERENCE_TYPES = ("infer", "generate", "generate_stream")


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """The server's arguments and environment, and the messages of the script."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    messages: tuple[str, ...]


def server_command(environment: Mapping[str, str], *, single: Path, multi: Path) -> ServerCommand:
    """Return the command that the script would run.

    ``single`` is the folder in place of ``/opt/ml/model``. ``multi`` is the one in place of
    ``/tmp/sagemaker``, the empty repository of a multi-model container, and is created as the
    script does.

    Raises:
        ContainerExitError: the script would exit with 1.
    """
    is_multi_model = environment.get("SAGEMAKER_MULTI_MODEL") == "true"
    exported = dict(environment)
    messages: list[str] = []
    ping_mode = environment.get("SAGEMAKER_TRITON_OVERRIDE_PING_MODE") or (
        "live" if is_multi_model else "ready"
    )
    # The script assigns this variable but does not export it: the server sees it only if it was set
    # before.
    if "SAGEMAKER_TRITON_PING_MODE" in environment:
        exported["SAGEMAKER_TRITON_PING_MODE"] = ping_mode
    if is_multi_model:
        multi.mkdir(parents=True, exist_ok=True)
        messages.append(
            f'Triton is running in SageMaker MME mode. Using Triton ping mode: "{ping_mode}"'
        )
    repository = multi if is_multi_model else single
    arguments = [*_ALWAYS, f"--model-repository={repository}", *_flags(environment)]
    _refuse(environment, repository, is_multi_model)
    if not is_multi_model:
        name = environment.get("SAGEMAKER_TRITON_DEFAULT_MODEL_NAME") or ""
        name = _default_model(repository, name, messages)
        exported["SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"] = name
        arguments += f"--load-model={name}".split()
    return ServerCommand(tuple(arguments), exported, tuple(messages))


def _flags(environment: Mapping[str, str]) -> Iterator[str]:
    for variable, flag, default in _FLAGS:
        value = environment.get(variable) or default
        if value is not None:
            yield from f"{flag}{value}".split()
    limit = environment.get("SAGEMAKER_TRITON_MODEL_LOAD_GPU_LIMIT")
    if limit:
        for gpu in range(_gpu_count()):
            yield from f"--model-load-gpu-limit {gpu}:{limit}".split()
    yield from environment.get("SAGEMAKER_TRITON_ADDITIONAL_ARGS", "").split()


def _gpu_count() -> int:
    """Count the GPUs that nvidia-smi lists; 0 without nvidia-smi, as in the script."""
    try:
        listing = run_child(["nvidia-smi", "-L"], seconds=_LISTING_SECONDS)
    except OSError:
        return 0
    return len(listing.stdout.splitlines())


def _refuse(environment: Mapping[str, str], repository: Path, is_multi_model: bool) -> None:
    if not is_multi_model and (repository / "config.pbtxt").is_file():
        raise ContainerExitError(
            "ERROR: Incorrect directory structure.\n"
            "       Model directory needs to contain the top level folder"
        )
    inference_type = environment.get("SAGEMAKER_TRITON_INFERENCE_TYPE")
    if inference_type and inference_type not in _INFERENCE_TYPES:
        raise ContainerExitError(
            f"ERROR: Invalid SAGEMAKER_TRITON_INFERENCE_TYPE '{inference_type}'\n"
            f"       Must be one of: {', '.join(_INFERENCE_TYPES)}"
        )


def _default_model(repository: Path, name: str, messages: list[str]) -> str:
    if name:
        if (repository / name).is_dir():
            return name
        raise ContainerExitError(
            "ERROR: Directory with provided SAGEMAKER_TRITON_DEFAULT_MODEL_NAME "
            f"{name} does not exist"
        )
    # `find -type d` counts hidden folders and ignores symbolic links.
    found = [path.name for path in repository.iterdir() if path.is_dir() and not path.is_symlink()]
    if not found:
        raise ContainerExitError("ERROR: No model found in model repository")
    if len(found) > 1:
        raise ContainerExitError(
            "ERROR: More than 1 model directory found in model repository.\n       Either provide "
            "a single directory or set SAGEMAKER_TRITON_DEFAULT_MODEL_NAME to run the ensemble "
            f"backend.\n       Directories found in model repository: {' '.join(sorted(found))}"
        )
    messages.append(
        "WARNING: No SAGEMAKER_TRITON_DEFAULT_MODEL_NAME provided.\n"
        f"         Starting with the only existing model directory {found[0]}"
    )
    return found[0]


_CACHE_FLAG = "--cache-config"


def fit_caches(
    arguments: Sequence[str], caches: Path, label: str, report: Callable[[str], None]
) -> list[str]:
    """Return the arguments without response caches that do not exist in ``caches``; report those.

    The server would not start with such a cache. ``caches`` takes the place of the image's folder
    of caches.
    """
    kept: list[str] = []
    for words in _options(arguments):
        name = words[-1].removeprefix(f"{_CACHE_FLAG}=").partition(",")[0]
        library = caches / name / f"libtritoncache_{name}.so"
        if words[0].startswith(_CACHE_FLAG) and not library.is_file():
            report(
                f"{label}: this server has no response cache {name!r}: --cache-config is left out, "
                "and responses are not cached"
            )
        else:
            kept += words
    return [*kept, f"--cache-directory={caches}"] if caches.is_dir() else kept


def _options(arguments: Sequence[str]) -> Iterator[list[str]]:
    """Yield each argument; ``--cache-config`` together with its value."""
    words = iter(arguments)
    for word in words:
        value = next(words, None) if word == _CACHE_FLAG else None
        yield [word] if value is None else [word, value]
