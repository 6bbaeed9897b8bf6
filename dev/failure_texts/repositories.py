"""The files of each release in the git repositories of Triton's sources."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

#: Repositories of ``triton-inference-server``, and the folders in which no user's error is written.
REPOSITORIES = (
    "server",
    "core",
    "common",
    "backend",
    "python_backend",
    "onnxruntime_backend",
    "pytorch_backend",
    "tensorrt_backend",
    "tensorrtllm_backend",
    "fil_backend",
    "dali_backend",
    "openvino_backend",
    "vllm_backend",
)
FIRST_RELEASE = "21.08"

_BRANCH = re.compile(r"(?:.*/)?r(2\d\.\d\d)")
_SOURCE = re.compile(r"\.(?:cc|cpp|cu|h|hpp|py)$")
#: Tests, tools, samples, and the clients of the frontends.
_LEFT_OUT = re.compile(
    r"(?:^|/)(?:qa|tests?|test_utils|docs|ci|client|samples|examples?|benchmarks|deploy|tools|"
    r"scripts|ops|notebooks|cmake|build|docker|dockerfile|_c|all_models/tests)/"
    r"|\.test\.|(?:^|/)(?:test_[^/]*|setup|build|build_wheel|compose|simple|multi_server|"
    r"memory_alloc|[^/]*client[^/]*|tritonserver_stub)\.\w+$"
)


class SourceFile(NamedTuple):
    """A file of a release: its path, and the id of its content."""

    path: str
    blob: str


class Repository:
    """One git repository with a branch for each release."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def releases(self) -> dict[str, str]:
        """Return the reference of each release's branch, the oldest release first."""
        references = self._git("for-each-ref", "--format=%(refname)").decode().split()
        found = {
            match[1]: reference
            for reference in references
            if (match := _BRANCH.fullmatch(reference)) and match[1] >= FIRST_RELEASE
        }
        return dict(sorted(found.items()))

    def files(self, reference: str) -> Iterator[SourceFile]:
        """Yield the sources in which errors of users can be written."""
        for line in self._git("ls-tree", "-r", reference).decode().splitlines():
            about, _, path = line.partition("\t")
            if _SOURCE.search(path) and not _LEFT_OUT.search(path):
                yield SourceFile(path, about.split()[2])

    def content(self, blob: str) -> str:
        """Return the content of a file."""
        return self._git("cat-file", "blob", blob).decode("utf-8", "replace")

    def _git(self, *arguments: str) -> bytes:
        command = ["git", "-C", str(self._folder), *arguments]
        return subprocess.run(command, check=True, capture_output=True).stdout
