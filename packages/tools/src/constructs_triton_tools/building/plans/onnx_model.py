"""The ONNX model of a build: what the file says, its external data, and the digest of both."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.regular_files import open_regular
from triton_model_check.model_files import describe
from triton_model_check.model_files.model_file import ModelFile

__all__ = ["FaultyModelError", "OnnxModelFile"]

_CHUNK_BYTES = 1 << 20
# TensorRT reads other operator sets than ONNX Runtime, so faults of those do not count.
_MISSING = "model-file-missing"
_FAULTS = (
    _MISSING,
    "model-file-format",
    "onnx-not-a-model",
    "onnx-external-data",
    "onnx-invalid-graph",
)
_TORCH = (".pt", ".pth", ".pt2")
_EXPORT = """\
is not an ONNX file; export it where your model's code is, with a dynamic batch dimension:
  batch = torch.export.Dim("batch")
  program = torch.onnx.export(model, (example,), dynamo=True, dynamic_shapes=({0: batch},))
  program.save("model.onnx")"""


class FaultyModelError(InvalidValueError):
    """The file was read, and is no complete ONNX model."""


@dataclass(frozen=True)
class OnnxModelFile:
    """An ONNX file that TensorRT can probably read."""

    described: ModelFile

    @classmethod
    def read(cls, path: Path) -> OnnxModelFile:
        """Read the signature of a file.

        Raises:
            FaultyModelError: it is not an ONNX model, or a part of it is missing.
            InvalidValueError: it does not exist, or is a file of PyTorch.
        """
        if path.suffix in _TORCH:
            raise InvalidValueError(f"{path}: {_EXPORT}")
        described = describe(path, model_format="onnx")
        lines = [
            f"{path}: {fault.message}; {fault.hint}"
            for fault in described.faults
            if fault.code in _FAULTS
        ]
        if lines:
            is_read = all(fault.code != _MISSING for fault in described.faults)
            raise (FaultyModelError if is_read else InvalidValueError)("\n".join(lines))
        return cls(described)

    @property
    def path(self) -> Path:
        return self.described.path

    @cached_property
    def files(self) -> dict[str, Path]:
        """The files to upload by their path beside ``model.onnx``.

        Raises:
            InvalidValueError: external data is not beside the model.
        """
        found = {"model.onnx": self.path}
        for location in self.described.data_files:
            place = PurePosixPath(location)
            if place.is_absolute() or ".." in place.parts or location == "model.onnx":
                raise InvalidValueError(
                    f'{self.path}: its external data must be in its folder, got "{location}"; save '
                    "the model again with its data beside it"
                )
            found[str(place)] = self.path.parent / place
        return found

    @cached_property
    def digests(self) -> dict[str, str]:
        """SHA-256 of each file, in hexadecimal digits."""
        return {name: _sha256(path) for name, path in sorted(self.files.items())}

    @property
    def digest(self) -> str:
        """SHA-256 of all files."""
        lines = "".join(f"{digest} {name}\n" for name, digest in self.digests.items())
        return hashlib.sha256(lines.encode()).hexdigest()


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        for chunk in _chunks(path):
            digest.update(chunk)
    except OSError as error:
        raise InvalidValueError(
            f"{path}: cannot be read ({(error.strerror or str(error)).lower()}); check the path"
        ) from None
    return digest.hexdigest()


def _chunks(path: Path) -> Iterator[bytes]:
    with open_regular(path) as file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk
