"""Writes models with real exporters, and keeps them with ONNX Runtime's verdicts for the tests.

Each exporter and each ONNX Runtime has an environment of its own in ``build/onnx_corpus``. Weights
are set to values that compress well, so the archive has files of real size in less than a megabyte.
"""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import onnx

from onnx_corpus.faults import broken

PROJECT = Path(__file__).resolve().parents[2]
BUILD = PROJECT / "build" / "onnx_corpus"
KEPT = PROJECT / "packages" / "check" / "tests" / "contract" / "onnx_exporters"
LARGEST_KEPT_BYTES = 5 << 20
EXPORTERS = {
    "torch": ("torch==2.13.0", "onnxscript==0.7.2", "onnx==1.23.2"),
    "onnx": ("onnxruntime==1.32.0", "onnxscript==0.7.2", "onnx==1.23.2", "sympy"),
    "sklearn": ("scikit-learn==1.9.1", "skl2onnx==1.20.0", "onnx==1.23.2"),
    "boosting": (
        *(
            "lightgbm==4.7.0",
            "xgboost==3.2.0",
            "onnxmltools==1.16.0",
            "skl2onnx==1.20.0",
            "onnx==1.23.2",
        ),
        *("packaging", "scikit-learn", "pandas"),
    ),
    "keras": ("tensorflow-cpu==2.21.0", "tf2onnx==1.17.0", "keras==3.15.1"),
    "paddle": ("paddlepaddle==3.3.1", "paddle2onnx==2.1.0", "setuptools"),
}
RUNTIMES = {"24.10": "1.19.2", "26.08": "1.28.0", "newest": "1.32.0"}
"""The ONNX Runtime of two Triton releases, and the newest for comparison."""

BROKEN = (
    *("branches", "constants_opset_13", "dynamo_attention", "dynamo_external", "dynamo_if"),
    *("dynamo_table", "float16_constants", "functions", "keras_images", "labels", "lightgbm_value"),
    *("long_shapes_as_constants", "onnxscript", "paddle_dense_14", "quantized", "quantized_qint4"),
    *("sequences", "sklearn_neighbors", "sklearn_pipeline", "sparse", "tensorflow_loop"),
    *("torchscript_images", "torchscript_loop", "torchscript_lstm", "torchscript_positions"),
    *("torchscript_table", "typed_constants"),
)
"""The models that are also broken in every possible way: one of each kind."""


def kept_bytes() -> int:
    """Return the size of the archive with its verdicts."""
    return sum(path.stat().st_size for path in KEPT.iterdir())


def environment(name: str, packages: tuple[str, ...]) -> Path:
    """Return the Python of an environment with the packages, which is created once."""
    python = BUILD / "environments" / name / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", python.parents[1]], check=True)
        install = [
            str(python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            *packages,
        ]
        subprocess.run(install, check=True)
    return python


def exported(name: str) -> Path:
    """Run the recipes of an exporter, and return the folder of its models."""
    folder = BUILD / "models" / name
    if not folder.exists():
        recipes = Path(__file__).with_name(f"{name}_recipes.py")
        print(f"{name}: {', '.join(EXPORTERS[name])}", flush=True)
        with (BUILD / f"{name}.log").open("w") as log:
            python = environment(name, EXPORTERS[name])
            new = folder.with_name(f"{name}.new")
            shutil.rmtree(new, ignore_errors=True)
            subprocess.run([python, recipes, new], check=True, stdout=log, stderr=log)
            new.rename(folder)
    return folder


def loaded(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what each ONNX Runtime says of the models in a folder."""
    found = {}
    for image, version in RUNTIMES.items():
        python = environment(f"onnxruntime_{version}", (f"onnxruntime=={version}", "numpy<2"))
        command = [python, Path(__file__).with_name("load.py"), folder]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        found[image] = json.loads(done.stdout)
    return found


def write_broken(cases: Path, folder: Path) -> None:
    """Write each model of ``BROKEN`` with each fault to a folder of its own."""
    for name in (f"{kind}_{size}" for kind in BROKEN for size in ("small", "large")):
        model = onnx.load(cases / name / "model.onnx", load_external_data=False)
        for fault, content in broken(model):
            shutil.copytree(cases / name, folder / f"{name}__{fault}")
            (folder / f"{name}__{fault}" / "model.onnx").write_bytes(content)


def _verdicts(cases: Path, broken_cases: Path) -> dict[str, Any]:
    of_valid, of_broken = loaded(cases), loaded(broken_cases)
    by_case = {
        name: {image: of_valid[image][name] for image in RUNTIMES}
        for name in sorted(of_valid["newest"])
    }
    loads: dict[str, dict[str, list[str]]] = {}
    for name in sorted(of_broken["newest"]):
        case, _, fault = name.partition("__")
        images = [image for image in RUNTIMES if "error" not in of_broken[image][name]]
        loads.setdefault(case, {})[fault] = images
    return {
        "exporters": EXPORTERS,
        "runtimes": RUNTIMES,
        "cases": by_case,
        "broken_that_load": loads,
    }


def _keep(cases: Path, verdicts: dict[str, Any]) -> None:
    KEPT.mkdir(exist_ok=True)
    with tarfile.open(KEPT / "cases.tar.xz", "w:xz", preset=9) as archive:
        for path in sorted(each for each in cases.rglob("*") if each.is_file()):
            member = tarfile.TarInfo(str(path.relative_to(cases)))
            member.size = path.stat().st_size
            archive.addfile(member, io.BytesIO(path.read_bytes()))
    lines = (f'"{key}": {_lines(value)}' for key, value in verdicts.items())
    (KEPT / "verdicts.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    size = kept_bytes()
    assert size <= LARGEST_KEPT_BYTES, f"{KEPT} has {size} bytes"
    print(f"{len(verdicts['cases'])} models, {size} bytes in {KEPT}")


def _lines(values: dict[str, Any]) -> str:
    return (
        "{\n"
        + ",\n".join(f'  "{key}": {json.dumps(value)}' for key, value in values.items())
        + "\n}"
    )


def main() -> None:
    """Export models, load them with each ONNX Runtime, and keep both."""
    BUILD.mkdir(parents=True, exist_ok=True)
    cases, broken_cases = BUILD / "cases", BUILD / "broken"
    for folder in (cases, broken_cases):
        shutil.rmtree(folder, ignore_errors=True)
    for name in EXPORTERS:
        shutil.copytree(exported(name), cases, dirs_exist_ok=True)
    for empty in (path for path in cases.iterdir() if not (path / "model.onnx").exists()):
        shutil.rmtree(empty)
    write_broken(cases, broken_cases)
    _keep(cases, _verdicts(cases, broken_cases))


if __name__ == "__main__":
    main()
