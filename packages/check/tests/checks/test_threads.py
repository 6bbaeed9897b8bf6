"""Threads that check at once find the same, also while modules are still being imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys, threading
from triton_model_check.model_repository import ModelRepository
sys.setswitchinterval(1e-6)
start, found = threading.Barrier(4), []

def check():
    repository = ModelRepository.from_directory(sys.argv[1])
    start.wait()
    found.append([finding.one_line for finding in repository.check().findings])

threads = [threading.Thread(target=check) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(found) == 4 and all(each == found[0] for each in found), found
"""


def test_threads_of_a_new_process_find_the_same(tmp_path: Path) -> None:
    """The first checks of a process import the rules, whichever thread needs them first."""
    for backend in ("python", "onnxruntime", "ensemble", "vllm", "tensorrtllm"):
        folder = tmp_path / backend
        (folder / "1").mkdir(parents=True)
        (folder / "1" / "model.py").write_text("class Model: pass\n")
        (folder / "config.pbtxt").write_text(f'backend: "{backend}" max_batch_size: 4\n')
    for _ in range(3):
        subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], check=True, timeout=120)
