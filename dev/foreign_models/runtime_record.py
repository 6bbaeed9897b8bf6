"""What five ONNX Runtimes say of each ONNX file of the packages.

``runtime_verdicts.json`` is the record. Each runtime has an environment of its own in the cache,
and loads each file in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from foreign_models.packages import ForeignFile
from foreign_models.pythons import environment

RECORD = Path(__file__).with_name("runtime_verdicts.json")
#: The newest Python for which all five have wheels.
PYTHON = "3.11"
#: Each runtime with a release whose image has it: TRITON_VERSION_MAP in build.py of the server's
#: r23.05, r24.04, r24.10, r25.03 and r26.03. The images of 23.05 and 25.03 have patch release 0.
RUNTIMES = {
    "1.15.1": "23.05",
    "1.17.3": "24.04",
    "1.19.2": "24.10",
    "1.21.1": "25.03",
    "1.24.2": "26.03",
}
_LOAD_SECONDS = 120.0
_PROCESSES = 2

Verdict = Mapping[str, Any]


def recorded() -> dict[str, dict[str, Verdict]]:
    """Return the verdicts of each file, by image version."""
    record: dict[str, dict[str, dict[str, Verdict]]] = json.loads(RECORD.read_text("utf-8"))
    return {
        name: {image: verdicts[runtime] for runtime, image in RUNTIMES.items()}
        for name, verdicts in record["files"].items()
    }


def record(files: Sequence[ForeignFile]) -> None:
    """Load each ONNX file with each runtime, and keep what they say.

    Raises:
        RuntimeError: this machine has no Python that all runtimes have wheels for.
    """
    models = [file for file in files if file.served_by == "onnxruntime"]
    found: dict[str, dict[str, Verdict]] = {file.name: {} for file in models}
    for runtime in RUNTIMES:
        packages = [f"onnxruntime=={runtime}", "numpy<2"]
        python = environment(f"onnxruntime-{runtime}", PYTHON, packages)
        if python is None:
            raise RuntimeError(f"Python {PYTHON} is not on this machine, and the runtimes need it")
        with ThreadPoolExecutor(_PROCESSES) as pool:
            verdicts = pool.map(lambda file, run=python: _loaded(run, file), models)
            for file, verdict in zip(models, verdicts, strict=True):
                found[file.name][runtime] = verdict
        loads = sum("error" not in verdicts[runtime] for verdicts in found.values())
        print(f"ONNX Runtime {runtime} loads {loads} of {len(models)} files", flush=True)
    _write(found)


def _loaded(python: Path, file: ForeignFile) -> Verdict:
    program = Path(__file__).parents[1] / "onnx_corpus" / "load.py"
    command = [str(python), "-I", str(program), str(file.cached)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_LOAD_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no answer within {_LOAD_SECONDS:.0f} s"}
    if done.returncode:
        return {"error": f"the process ended with {done.returncode}"}
    verdict: Verdict = json.loads(done.stdout)
    return verdict


def _write(found: Mapping[str, Mapping[str, Verdict]]) -> None:
    lines = ",\n".join(
        f"  {json.dumps(name)}: {json.dumps(verdicts)}" for name, verdicts in sorted(found.items())
    )
    head = f'{{\n"images": {json.dumps(RUNTIMES)},\n"files": {{\n'
    RECORD.write_text(f"{head}{lines}\n}}\n}}\n", encoding="utf-8")
