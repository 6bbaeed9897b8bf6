"""Describes models as `check` does for each of several images, and prints the result of each as
JSON.

The packages after the folder, the images and ``never`` or ``fetch`` are hidden: neither ONNX
Runtime nor, in one pass, ``onnx`` can be imported. With ``fetch``, the ONNX Runtime of the image
decides.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any


class _Visible(PathFinder):
    """Finds all modules but those that are hidden."""

    hidden: frozenset[str] = frozenset()

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return where a module is, or ``None`` if it is hidden."""
        return (
            None if name.partition(".")[0] in cls.hidden else super().find_spec(name, path, target)
        )


def main(folder: Path, image_versions: list[str], asking: Any, hidden: frozenset[str]) -> None:
    """Describe the model in each folder for each image."""
    _Visible.hidden = hidden
    sys.meta_path[:] = [_Visible if each is PathFinder else each for each in sys.meta_path]
    from triton_model_check.model_files import describe  # noqa: PLC0415 - after the packages are hidden

    ask: Any = partial(describe, on_cpu=True, onnx_runtime=asking)
    print(json.dumps({image: _described(folder, image, ask) for image in image_versions}))


def _described(folder: Path, image_version: str, ask: Callable[..., Any]) -> dict[str, Any]:
    found = {}
    for path in sorted(folder.glob("*/model.onnx")):
        model = ask(path, image_version)
        outputs = [[each.name, each.data_type, each.shape] for each in model.outputs]
        faults = [[fault.code, fault.message] for fault in model.faults]
        certain = [each.has_certain_shape for each in model.outputs]
        found[path.parent.name] = {
            "faults": faults,
            "outputs": outputs,
            "certain": certain,
            "batched": model.has_batch_dimension,
            "not_checked": model.not_checked,
        }
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2].split(","), sys.argv[3], frozenset(sys.argv[4:]))
