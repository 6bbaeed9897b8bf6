"""The options of a local run, declared once for ``LocalEndpoint`` and for
``constructs-triton local up``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, TypedDict

from constructs_triton_core.declared_values import Value, declared_values
from constructs_triton_core.facts.limits import INVOCATION_TIMEOUT_SECONDS, RangeLimit
from constructs_triton_core.keywords import check_known

AnyPath = str | Path | None

#: SageMaker takes minutes. A few seconds let a client's retries be tested.
DEFAULT_WAKE_SECONDS = 5.0
#: The path of the web page of ``--ui``.
PAGE_PATH = "/ui/"
_TIMEOUT = RangeLimit(0.001, None, "seconds")


class LocalRunOptions(TypedDict, total=False):
    """How endpoints run on this machine. ``None`` means the default."""

    endpoint: Annotated[
        str | None,
        Value("run only this endpoint; for a repository or an archive, its name", metavar="NAME"),
    ]
    port: Annotated[
        int | None,
        Value(
            "port on 127.0.0.1, 0 for any free port",
            default_text="8080 for the command, 0 for LocalEndpoint",
            limit=RangeLimit(0, 65535),
        ),
    ]
    python: Annotated[
        AnyPath,
        Value(
            "Python of the models, with their packages and NumPy below 2",
            default_text="this one",
            metavar="PATH",
        ),
    ]
    tritonserver: Annotated[
        AnyPath,
        Value(
            "server to run, such as one with other backends",
            default_text="nvidia-pytriton",
            metavar="PATH",
        ),
    ]
    stand_ins: Annotated[
        Mapping[str, str | Path] | None,
        Value(
            "run an ONNX file, or a folder with a Python model.py, in the place of the model NAME, "
            "such as a TensorRT plan; "
            "ARCHIVE.tar.gz/NAME chooses the archive of a multi-model endpoint",
            example="resnet=resnet.onnx",
            flag="--stand-in",
            metavar="NAME=PATH",
        ),
    ]
    uses_stand_ins: Annotated[
        bool | None,
        Value(
            "use the framework's own Python package for models "
            "whose backend the server does not have",
            flag="--no-stand-ins",
        ),
    ]
    memory_limit_mib: Annotated[
        int | None,
        Value(
            "memory of each multi-model endpoint in MiB; above it, "
            "the least recently used model is unloaded",
            default_text="70 percent of the free memory, shared equally",
            limit=RangeLimit(1, None, "MiB"),
            flag="--memory-limit",
            metavar="MIB",
        ),
    ]
    startup_timeout_seconds: Annotated[
        float | None,
        Value(
            "how long a server may take to start",
            default_text="the template's timeout, else 120; with an engine 480",
            limit=_TIMEOUT,
            flag="--startup-timeout",
            metavar="SECONDS",
        ),
    ]
    invocation_timeout_seconds: Annotated[
        float | None,
        Value(
            "how long a container may take to answer; "
            "a response stream may take eight times as long",
            default_text=f"{INVOCATION_TIMEOUT_SECONDS:g}, as on SageMaker",
            limit=_TIMEOUT,
            flag="--invocation-timeout",
            metavar="SECONDS",
        ),
    ]
    wake_delay_seconds: Annotated[
        float | None,
        Value(
            "how long an inference component whose scaling starts at zero copies has no capacity "
            "after its first call; 0 for not at all",
            default_text=f"{DEFAULT_WAKE_SECONDS:g}; in AWS it takes minutes",
            limit=RangeLimit(0, None, "seconds"),
            flag="--wake-delay",
            metavar="SECONDS",
        ),
    ]
    bucket_folder: Annotated[
        AnyPath,
        Value(
            "folder in place of S3, with a subfolder per bucket, for asynchronous endpoints and "
            "archives of multi-model endpoints",
            metavar="DIR",
        ),
    ]
    engine: Annotated[
        Literal["docker", "podman"] | None,
        Value("run the template's images in containers of this engine; needs no Linux"),
    ]
    images: Annotated[
        Mapping[str, str] | None,
        Value(
            "with an engine, the image for an endpoint, for ENDPOINT/VARIANT, for "
            "ENDPOINT/COMPONENT, or in place of another image",
            example="digits=my-triton:1",
            flag="--image",
            metavar="NAME=IMAGE",
        ),
    ]
    is_exact: Annotated[
        bool | None,
        Value(
            "refuse models whose instance groups this machine cannot run, such as 4 instances on 2 "
            "CPUs, instead of changing them, and do not set OMP_NUM_THREADS",
            flag="--exact",
        ),
    ]
    uses_private_mounts: Annotated[
        bool | None,
        Value(
            "mount each server's models at /opt/ml where the platform allows it",
            flag="--no-private-mounts",
        ),
    ]
    allow_open_ports: Annotated[
        bool | None,
        Value(
            "if the platform has no private addresses, let the servers listen on all network "
            "interfaces; anyone who can reach the machine can then load code into them"
        ),
    ]
    ui: Annotated[
        bool | None,
        Value(
            "serve a web page below /ui/ that shows models, figures and logs, and calls the models"
        ),
    ]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What a run starts, and its :class:`LocalRunOptions` with their defaults.

    ``source`` is a cloud assembly, a repository or an archive. With ``aws_endpoint_url`` the
    deployed endpoints are run instead. With ``watches`` the endpoints are replaced when files of
    ``source`` change. ``calls`` are the models that the models of a repository call.
    """

    source: Path
    aws_endpoint_url: str | None = None
    stack: str | None = None
    model: str | None = None
    is_multi_model: bool = False
    calls: Mapping[str, Sequence[str]] = field(default_factory=dict)
    until_stdin_closes: bool = False
    watches: bool = False
    endpoint: str | None = None
    port: int = 8080
    python: Path | None = None
    tritonserver: Path | None = None
    stand_ins: Mapping[str, Path] = field(default_factory=dict)
    uses_stand_ins: bool = True
    memory_limit_mib: int | None = None
    startup_timeout_seconds: float | None = None
    invocation_timeout_seconds: float = INVOCATION_TIMEOUT_SECONDS
    wake_delay_seconds: float = DEFAULT_WAKE_SECONDS
    bucket_folder: Path | None = None
    engine: str | None = None
    images: Mapping[str, str] = field(default_factory=dict)
    is_exact: bool = False
    uses_private_mounts: bool = True
    allow_open_ports: bool = False
    ui: bool = False


def command_line(options: LocalRunOptions) -> Iterator[str]:
    """Yield the arguments of ``local up`` that mean the same as these options.

    Raises:
        TypeError: there is no option of that name.
    """
    check_known(options, declared_values(LocalRunOptions), "LocalEndpoint")
    for name, value in options.items():
        flag = declared_values(LocalRunOptions)[name].option
        if isinstance(value, Mapping):
            yield from (f"{flag}={key}={item}" for key, item in value.items())
        elif isinstance(value, bool):
            yield from [flag] if value is not flag.startswith("--no-") else []
        elif value is not None:
            yield f"{flag}={value}"
