"""Measures how long `local up` takes until it is ready, beside Triton alone with the same models.

    python benchmarks/local_start.py [--rounds 7]

The models are the digits of `app.py`: alone, as the two variants of the template, and in a test
(`LocalEndpoint`). They are started in turns with the bare server of the wheel: the same executable,
backends, libraries and options, from the start of its process until it answers a ping. Stopping is
measured in the same way, from SIGINT to the end of the process, and so is a change of one model
with `--watch`, from the change until the new server answers. The medians of all rounds are
compared, by the clock, because waiting is the subject.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from constructs_triton_tools.local import LocalEndpoint
from constructs_triton_tools.local.server.installation import (
    find_installation,
    inspect_python,
    make_backends,
)

PROJECT = Path(__file__).resolve().parents[1]
DIGITS = PROJECT / "assets" / "model_repositories" / "digits"
_INTERVAL_SECONDS = 0.005
Way = Callable[[], tuple[float, float]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        make_backends(folder / "backends", find_installation(), inspect_python())
        synthesize(folder / "cdk.out")
        print_table(measured(ways(folder), rounds))


def synthesize(output: Path) -> None:
    """Write the assembly of ``app.py``."""
    context = json.loads((PROJECT / "cdk.json").read_text(encoding="utf-8"))["context"]
    settings = {"CDK_CONTEXT_JSON": json.dumps(context), "CDK_OUTDIR": str(output)}
    command = [sys.executable, str(PROJECT / "app.py")]
    subprocess.run(command, env={**os.environ, **settings}, cwd=PROJECT, check=True)


def ways(folder: Path) -> dict[str, Way]:
    """The ways to start the models; each returns the seconds until ready, and until stopped."""
    alone = (str(DIGITS), "--model", "digits", "--endpoint", "digits")
    return {
        "tritonserver": lambda: bare(folder / "backends"),
        "local up": lambda: local_up(*alone),
        "local up, two variants": lambda: local_up(str(folder / "cdk.out"), "--endpoint", "digits"),
        "LocalEndpoint": in_a_test,
        "a change with --watch": lambda: changed(folder),
    }


def measured(ways: dict[str, Way], rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Run all ways in turns, after one round that fills the caches."""
    for way in ways.values():
        way()
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            found[name].append(way())
    return found


def print_table(found: dict[str, list[tuple[float, float]]]) -> None:
    medians = {name: (median(times, 0), median(times, 1)) for name, times in found.items()}
    first_start, first_stop = medians["tritonserver"]
    for name, (start, stop) in medians.items():
        print(
            f"{name:26}{start:7.2f} s to start, {start / first_start:5.2f} times; "
            f"{stop:5.2f} s to stop, {stop / first_stop:5.2f} times"
        )


def median(times: list[tuple[float, float]], column: int) -> float:
    return statistics.median(each[column] for each in times)


# --- the ways -------------------------------------------------------------------------------------


def bare(backends: Path) -> tuple[float, float]:
    """Start and stop the server of the wheel without this project."""
    installation, python = find_installation(), inspect_python()
    port = free_port()
    command = [
        *(str(installation.executable), "--allow-sagemaker=true", "--allow-http=false"),
        *("--allow-grpc=false", "--allow-metrics=false", f"--sagemaker-port={port}"),
        *("--model-control-mode=explicit", "--load-model=digits"),
        *(f"--model-repository={DIGITS}", f"--backend-directory={backends}"),
        "--backend-config=python,shm-default-byte-size=16777216",
    ]
    environment = {
        "PATH": f"{python.bin}:/usr/bin:/bin",
        "LD_LIBRARY_PATH": installation.library_path(python),
        "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "digits",
    }
    begun = time.perf_counter()
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        wait_for_ping(f"http://127.0.0.1:{port}/ping")
        return time.perf_counter() - begun, stopped(server)


def local_up(*words: str) -> tuple[float, float]:
    """Start and stop the same models with ``local up``."""
    command = [sys.executable, "-m", "constructs_triton.cli", "local", "up", *words]
    begun = time.perf_counter()
    with subprocess.Popen(
        [*command, "--port", "0", "--json"], stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        json.loads(run.stdout.readline())
        return time.perf_counter() - begun, stopped(run)


def changed(folder: Path) -> tuple[float, float]:
    """Change a model of a run with ``--watch``; return the seconds until it serves the new one."""
    models = folder / "watched"
    shutil.copytree(DIGITS, models, dirs_exist_ok=True)
    command = [sys.executable, "-m", "constructs_triton.cli", "local", "up", str(models)]
    words = ["--model", "digits", "--port", "0", "--json", "--watch"]
    with subprocess.Popen(
        [*command, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdout.readline()
        with (models / "classifier" / "1" / "model.py").open("a", encoding="utf-8") as file:
            file.write("# changed\n")
        begun = time.perf_counter()
        assert any("the changed models are running" in line for line in run.stderr)
        return time.perf_counter() - begun, stopped(run)


def in_a_test() -> tuple[float, float]:
    """Start and stop the same model in this process, as a test does."""
    begun = time.perf_counter()
    with LocalEndpoint.from_repository(DIGITS, model="digits"):
        ready = time.perf_counter()
    return ready - begun, time.perf_counter() - ready


def stopped(process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> float:
    """Interrupt a process, and return the seconds until it has ended."""
    begun = time.perf_counter()
    process.send_signal(signal.SIGINT)
    process.wait()
    return time.perf_counter() - begun


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def wait_for_ping(url: str) -> None:
    while True:
        try:
            with urllib.request.urlopen(url, timeout=10):
                return
        except OSError:
            time.sleep(_INTERVAL_SECONDS)


if __name__ == "__main__":
    os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "18,20")
    main()
