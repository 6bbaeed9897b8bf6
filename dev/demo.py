"""``make demo``: synthesize app.py, run its endpoint with the Triton server, classify digits.

The same steps by hand::

    npx cdk synth
    constructs-triton local up cdk.out --endpoint digits
    constructs-triton invoke digits --input image=@seven.png --endpoint-url http://127.0.0.1:8080
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

PROJECT = Path(__file__).resolve().parent.parent
ASSEMBLY = PROJECT / "cdk.out"
WANTED_ACCURACY = 0.95
SHOWN, BATCH = 12, 64

sys.path.insert(0, str(PROJECT / "assets" / "training"))


def synthesize() -> None:
    """Write the cloud assembly as ``cdk deploy`` would."""
    print("synthesizing app.py ...", flush=True)
    shutil.rmtree(ASSEMBLY, ignore_errors=True)
    cdk = PROJECT / "node_modules" / ".bin" / "cdk"
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    subprocess.run([cdk, "synth", "--quiet"], cwd=PROJECT, check=True, env=environment)


@contextmanager
def running_endpoint(name: str) -> Iterator[str]:
    """Start the synthesized endpoint on a free port, yield its URL, and stop it with SIGINT."""
    print(f'starting endpoint "{name}" of {ASSEMBLY.name} on this machine ...', flush=True)
    command = [sys.executable, "-m", "constructs_triton.cli", "local", "up", str(ASSEMBLY)]
    server = subprocess.Popen(
        [*command, "--endpoint", name, "--port", "0", "--json"], stdout=subprocess.PIPE, text=True
    )
    try:
        yield _wait_until_ready(server)
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(timeout=60)
        print("stopped", flush=True)


def _wait_until_ready(server: subprocess.Popen[str]) -> str:
    assert server.stdout is not None
    line = server.stdout.readline()
    if not line:
        sys.exit(server.wait() or 1)
    ready: dict[str, Any] = json.loads(line)
    print(f"ready: {json.dumps(ready)}\n", flush=True)
    return str(ready["url"])


def classify(url: str, pngs: list[bytes]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the digit of each PNG file and its probability, with ``BATCH`` files per request."""
    from constructs_triton_client import TritonClient  # noqa: PLC0415 - imported after synth

    client = TritonClient.for_endpoint("digits", endpoint_url=url)
    batches = [pngs[start : start + BATCH] for start in range(0, len(pngs), BATCH)]
    results = [
        client.infer({"image": np.array(batch, dtype=object)[:, np.newaxis]}) for batch in batches
    ]
    labels = np.concatenate([result["label"][:, 0] for result in results]).astype(np.int64)
    return labels, np.concatenate([result["probabilities"].max(axis=1) for result in results])


def main() -> int:
    """Return 0 if the endpoint has the accuracy of its model."""
    from split import encode_png, held_out_images  # noqa: PLC0415 - scikit-learn loads slowly

    synthesize()
    images, digits = held_out_images()
    with running_endpoint("digits") as url:
        labels, probabilities = classify(url, [encode_png(image) for image in images])
    print("    PNG   predicted   probability   true label")
    for index in range(SHOWN):
        note = "" if labels[index] == digits[index] else "   wrong"
        print(
            f"{index:7}{labels[index]:12}{probabilities[index]:14.3f}{digits[index]:13}{note}",
            flush=True,
        )
    accuracy = float(np.mean(labels == digits))
    print(
        f"\naccuracy over {len(digits)} held-out images sent through the endpoint: {accuracy:.4f}"
    )
    print("look at it: constructs-triton local up cdk.out --endpoint digits --ui")
    return 0 if accuracy >= WANTED_ACCURACY else 1


if __name__ == "__main__":
    sys.exit(main())
