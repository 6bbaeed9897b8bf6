"""Finds models for which the bundled server would wait forever, before it loads them.

A server that hangs writes no message, and in a multi-model container it blocks every other load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from constructs_triton_core.errors import ContainerExitError, ModelConfigError
from constructs_triton_core.untrusted.regular_files import read_regular
from constructs_triton_tools.local.server.installation import ModelPython
from constructs_triton_tools.local.stand_ins.environments import replace_environments
from triton_model_check.model_config.packed_environment import packed_python
from triton_model_check.model_config.target import Target
from triton_model_check.model_config.text import parse_model_config
from triton_model_check.model_repository import ModelRepository

#: Checks whose errors make triton 24.10 wait forever for a Python stub.
_HANGS = frozenset({"python-model-file"})
_ENVIRONMENT = "EXECUTION_ENV_PATH"
_MODEL_DIRECTORY = "$$TRITON_MODEL_DIRECTORY"


def make_loadable(
    repository: Path, target: Target, python: ModelPython, report: Callable[[str], None]
) -> None:
    """Build environments of ``constructs-triton env build`` for this Python, and refuse what would hang."""
    replace_environments(repository, python.executable, report)
    refuse_known_hangs(repository, target, python.version)


def refuse_known_hangs(repository: Path, target: Target, python: tuple[int, int]) -> None:
    """Check a repository for models that would hang the server.

    ``python`` is the version that the stub embeds. A packed environment must have the same version.
    """
    report = ModelRepository.from_directory(repository).check(target, is_packed=False)
    found = [finding.one_line for finding in report.findings if finding.code in _HANGS]
    found += _foreign_environments(repository, "{}.{}".format(*python))
    if found:
        raise ContainerExitError("\n".join(found))


def _foreign_environments(repository: Path, minor: str) -> Iterator[str]:
    for path in sorted([*repository.glob("config.pbtxt"), *repository.glob("*/config.pbtxt")]):
        try:
            parameters = parse_model_config(read_regular(path), str(path)).parameters
        except (OSError, ModelConfigError):
            continue
        if _ENVIRONMENT not in parameters:
            continue
        given = parameters[_ENVIRONMENT].string_value
        packed = packed_python(given.replace(_MODEL_DIRECTORY, str(path.parent)))
        if packed not in (None, minor):
            yield (
                f"{path.relative_to(repository)}: {_ENVIRONMENT} contains Python {packed}, but the server "
                f"runs Python {minor}, got {given!r}; set --python to an environment of Python {packed}"
            )
