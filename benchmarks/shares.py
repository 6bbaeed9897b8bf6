"""Prints where the time goes in the commands that people wait for: `python benchmarks/shares.py`.

Each command runs under cProfile. A row has the seconds by the clock, which the profiler makes
longer, and the shares in percent:

- ``ours``: functions of this library
- ``jsii``: the Python side of the CDK
- ``node``: waiting for the CDK in Node.js; of app.py without ``validation``, the checks of the
  template
- ``imports``: loading modules, most of them of the CDK
- ``parsers``: protobuf, Python's parser, JSON and regular expressions
- ``files``: reading, writing, hashing and compressing
- ``waits``: for other processes, such as the Triton server, and for threads, such as those that
  compress

``pytest`` runs the tests of a project that ``constructs-triton project new`` has made. ``local up``
starts both endpoints of app.py and stops them. ``check`` reads 500 Python models, and ``pack``
packs 200 MB.
"""

from __future__ import annotations

import argparse
import json
import os
import pstats
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from waits import PYTHON_MODEL, write_models

PROJECT = Path(__file__).resolve().parents[1]
COMMAND = ("-m", "constructs_triton.cli")
SHARES = ("ours", "jsii", "node", "validation", "imports", "parsers", "files", "waits", "rest")
# The first pattern that fits the file and the name of a function.
PATTERNS = {
    "node": r"BufferedReader.*readline|method 'readline'|method 'flush' of '_io.BufferedWriter'",
    "imports": (
        r"importlib|marshal\.|\.exec|<module>|__build_class__|_imp\.|/dataclasses|/enum\.py|"
        r"/abc\.py"
    ),
    "waits": (
        r"epoll|method 'poll'|select|waitpid|acquire|thread\.lock|time\.sleep|"
        r"_posixsubprocess"
    ),
    "jsii": r"/jsii/|/aws_cdk/|/constructs/|/cattrs?/|/attrs?/|/typeguard/",
    "ours": r"/constructs_triton(_\w+)?/|/triton_model_check/|/cdk_rehearse/",
    "parsers": (
        r"/google/|google\.|/ast\.py|built-in method builtins\.compile|/json/|/re/|"
        r"re\.Pattern|_json"
    ),
    "files": (
        r"posix\.|_io\.|/pathlib|/posixpath|genericpath|sqlite|blake3|isal|igzip|zlib|tarfile|"
        r"/shutil"
    ),
}


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    print(f"{'':16}{'seconds':>8}" + "".join(f"{name:>11}" for name in SHARES))
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        os.environ |= {
            "CDK_CONTEXT_JSON": json.dumps(
                json.loads((PROJECT / "cdk.json").read_text())["context"]
            ),
            "CDK_OUTDIR": str(folder / "cdk.out"),
            "CONSTRUCTS_TRITON_CACHE_DIR": str(folder / "cache"),
            "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "18,20",
        }
        synthesize(folder)
        show(
            "local up",
            profile(folder, *COMMAND, "local", "up", folder / "cdk.out", "--port", "0", "--json"),
        )
        write_models(folder / "models", 500, "model.py", PYTHON_MODEL.encode())
        show("check", profile(folder, *COMMAND, "check", folder / "models"))
        write_models(folder / "large", 1, "model.py", PYTHON_MODEL.encode())
        (folder / "large" / "model_0000" / "1" / "weights.bin").write_bytes(os.urandom(200_000_000))
        show("pack", profile(folder, *COMMAND, "pack", folder / "large", "-o", folder / "archives"))
        test_new_project(folder)


def synthesize(folder: Path) -> None:
    """Profile ``python app.py``, also without the validation."""
    app = PROJECT / "app.py"
    subprocess.run([sys.executable, app], check=True)  # fills the caches
    times = profile(folder, app)
    without = profile(folder, app, CDK_VALIDATION="false")
    times["validation"] = max(0.0, times["node"] - without["node"])
    times["node"] -= times["validation"]
    show("python app.py", times)


def test_new_project(folder: Path) -> None:
    """Profile the tests of a new project."""
    subprocess.run(
        [sys.executable, *COMMAND, "project", "new", folder / "project"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    del os.environ["CDK_CONTEXT_JSON"], os.environ["CDK_OUTDIR"]
    os.environ["PYTHONPATH"] = os.pathsep.join(map(str, (PROJECT, *PROJECT.glob("packages/*/src"))))
    os.chdir(folder / "project")
    show("pytest", profile(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider"))


def profile(folder: Path, *arguments: str | Path, **variables: str) -> dict[str, float]:
    """Run Python with these arguments under cProfile, and return the seconds of each part.

    A command that prints a line of JSON when it is ready is stopped then.
    """
    output = folder / "profile"
    command = [sys.executable, "-m", "cProfile", "-o", output, *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | variables
    ) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if line.startswith('{"url"'):
                running.send_signal(signal.SIGINT)
    if running.returncode not in (0, 130):
        raise SystemExit(f"{arguments}: exit code {running.returncode}; see its messages above")
    times = dict.fromkeys(SHARES, 0.0)
    for (file, _, name), (_, _, seconds, _, _) in pstats.Stats(str(output)).stats.items():  # type: ignore[attr-defined]
        times[part_of(f"{file} {name}")] += seconds
    return times


def part_of(function: str) -> str:
    return next(
        (part for part, pattern in PATTERNS.items() if re.search(pattern, function)), "rest"
    )


def show(name: str, times: dict[str, float]) -> None:
    total = sum(times.values())
    shares = "".join(f"{100 * times[part] / total:10.0f}%" for part in SHARES)
    print(f"{name:16}{total:8.2f}{shares}", flush=True)


if __name__ == "__main__":
    main()
