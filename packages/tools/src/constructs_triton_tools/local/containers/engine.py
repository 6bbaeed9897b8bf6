"""The command line of docker or podman."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from constructs_triton_core.errors import LocalEndpointError, MissingDependencyError
from constructs_triton_core.processes.children import own_environment, run_child

__all__ = ["ENGINES", "ContainerEngine"]

#: The engines, with the template that prints the memory of the machine that runs the containers.
_MEMORY = {"docker": "{{.MemTotal}}", "podman": "{{.Host.MemTotal}}"}
ENGINES = tuple(_MEMORY)
#: How long a command may take. Starting a container of a large image takes a while on a laptop.
_TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class ContainerEngine:
    """``docker`` or ``podman``, whichever ``name`` says."""

    name: str

    def run(self, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
        """Run a command of the engine and return its output.

        ``environment`` are variables that it has beside those of this process.

        Raises:
            LocalEndpointError: the command fails; the message contains the engine's words.
            MissingDependencyError: the engine is not installed.
        """
        try:
            done = run_child(
                [self.name, *arguments],
                seconds=_TIMEOUT_SECONDS,
                environment=own_environment(**(environment or {})),
            )
        except TimeoutError as error:
            raise LocalEndpointError(
                f"{self.name} {arguments[0]}: did not finish within {_TIMEOUT_SECONDS:.0f} s; "
                f"check `{self.name} info`"
            ) from error
        except OSError as error:
            raise _not_installed(self.name) from error
        if done.returncode != 0:
            raise LocalEndpointError(
                f"{self.name} {arguments[0]}: failed with exit code {done.returncode}: "
                f"{done.stderr.strip()}"
            )
        return done.stdout.strip()

    def memory_bytes(self) -> int:
        """Return the memory of the machine that runs the containers, a virtual machine on macOS.

        Raises:
            LocalEndpointError: the engine does not answer.
            MissingDependencyError: the engine is not installed.
        """
        if shutil.which(self.name) is None:
            raise _not_installed(self.name)
        try:
            return int(self.run("info", "--format", _MEMORY[self.name]))
        except (LocalEndpointError, ValueError) as error:
            raise LocalEndpointError(
                f"--engine {self.name}: the engine does not answer ({error}); start it, and check "
                f"that `{self.name} info` works"
            ) from error

    def has_image(self, image: str) -> bool:
        """Whether the image is on this machine."""
        try:
            self.run("image", "inspect", "--format", "{{.Id}}", image)
        except LocalEndpointError:
            return False
        return True

    def gpu_arguments(self) -> Sequence[str]:
        """Return the arguments that give a container all GPUs, if this machine has any."""
        if shutil.which("nvidia-smi") is None:
            return ()
        return ("--gpus", "all") if self.name == "docker" else ("--device", "nvidia.com/gpu=all")


def _not_installed(name: str) -> MissingDependencyError:
    return MissingDependencyError(
        f"--engine {name}: {name} is not installed; install it, or leave out --engine to use the "
        "Triton server of nvidia-pytriton"
    )
