"""``constructs-triton doctor``: what works on this machine, and what to install for the rest."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from constructs_triton_core.aws_reader import make_session, reaching_aws
from constructs_triton_core.errors import ConstructsTritonError
from constructs_triton_core.processes.children import run_child
from constructs_triton_core.program.argument_types import add_common
from constructs_triton_core.program.exit_codes import EXIT_SUCCESS, EXIT_WRONG
from constructs_triton_core.untrusted.terminal import print_json, print_table, show_work

#: What an extra of the package is for, and the modules by which it is recognized.
EXTRAS = {
    "env": ("env build", ("uv",)),
    "load": ("load-test", ("aiohttp", "boto3")),
    "hub": ("models copy", ("huggingface_hub",)),
    "local": ("local up, check --server", ("aiohttp", "boto3", "ml_dtypes", "multidict")),
    "onnx": ("output shapes of ONNX models", ("onnx",)),
    "python": ("syntax of Python models for another Python", ("ruff",)),
    "plots": ("figures", ("matplotlib",)),
    "rehearse": ("rehearse", ("cfnlint", "moto")),
    "testing": ("tests of your stacks", ("cfnlint", "pytest", "syrupy")),
}
_OLDEST_PYTHON = (3, 11)
_OLDEST_NODE = 18
_NODES = (22, 24)
CDK = "aws-cdk@2.1148.1"
_TIMEOUT_SECONDS = 20
_ENGINES: tuple[Literal["docker", "podman"], ...] = ("docker", "podman")
State = Literal["works", "old", "missing"]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the machine: what it is for, and how to get it.

    Without a required one, synth fails.
    """

    name: str
    state: State
    needed_for: str
    details: str
    is_required: bool = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Show what works on this machine: Python, Node.js, the CDK, the Triton server, container "
        "engines, optional packages and AWS credentials, and what to install for the rest. AWS is "
        "not called. Exit code 1 if apps cannot be synthesized. `constructs-triton "
        "completion` prints a script for your shell."
    )
    add_common(parser, "--json")


def run(arguments: argparse.Namespace) -> int:
    """Print the parts; return 1 if a required one is missing."""
    with show_work("looking at this machine"):
        parts = list(_parts())
    if arguments.json:
        print_json([asdict(part) for part in parts])
    else:
        rows = ([part.name, part.state, part.needed_for, part.details] for part in parts)
        print_table(("part", "state", "for", "found, or what to do"), rows)
    is_broken = any(part.is_required and part.state == "missing" for part in parts)
    return EXIT_WRONG if is_broken else EXIT_SUCCESS


def _parts() -> Iterator[Part]:
    yield _python()
    yield _node()
    yield _cdk()
    yield _found("Triton server", "local up", _triton_server)
    for name in _ENGINES:
        yield _found(name, f"local up --engine {name}", partial(_engine, name))
    yield from map(_extra, EXTRAS)
    yield _found("AWS", "deploying, and commands that call AWS", _credentials)


def _python() -> Part:
    version = ".".join(map(str, sys.version_info[:3]))
    is_known = sys.version_info[:2] >= _OLDEST_PYTHON
    details = f"{version}, {sys.executable}" if is_known else f"{version}; install Python 3.11"
    return Part(
        "Python", "works" if is_known else "missing", "everything", details, is_required=True
    )


def _node() -> Part:
    version = _printed("node", "--version")
    major = int(found[1]) if (found := re.match(r"v(\d+)\.", version)) else 0
    state: State = "works" if major in _NODES else "old" if major >= _OLDEST_NODE else "missing"
    fix = "" if state == "works" else "; install Node.js 22 or 24"
    return Part("Node.js", state, "synth", f"{version or 'not found'}{fix}", is_required=True)


def _cdk() -> Part:
    """The CDK's command line: that of the project in this folder, or of the system."""
    own = Path("node_modules", ".bin", "cdk")
    version = _printed(str(own) if own.exists() else "cdk", "--version")
    is_version_2 = version.startswith("2.")
    details = version if is_version_2 else f"{version or 'not found'}; run `npm install -g {CDK}`"
    return Part(
        "cdk", "works" if is_version_2 else "missing", "synth and deploy from the shell", details
    )


def _triton_server() -> str:
    from constructs_triton_tools.local.server.installation import find_installation, inspect_python

    installation = find_installation(may_install=False)
    installation.stub_for(inspect_python(may_install=False))
    return str(installation.executable)


def _engine(name: Literal["docker", "podman"]) -> str:
    from constructs_triton_tools.local.containers.engine import ContainerEngine

    return f"{ContainerEngine(name).memory_bytes() / 2**30:.0f} GiB of memory"


def _credentials() -> str:
    session = make_session()
    with reaching_aws():
        found = session.get_credentials()
    if found is None:
        raise ConstructsTritonError("no credentials; run `aws configure`, or set AWS_PROFILE")
    return f"credentials from {found.method}, Region {session.region_name or 'not set'}"


def _found(name: str, needed_for: str, look: Callable[[], str]) -> Part:
    try:
        return Part(name, "works", needed_for, look())
    except ConstructsTritonError as error:
        return Part(name, "missing", needed_for, str(error))


def _extra(name: str) -> Part:
    needed_for, modules = EXTRAS[name]
    missing = [module for module in modules if find_spec(module) is None]
    fix = f"{', '.join(missing)} not installed; run `pip install 'constructs-triton[{name}]'`"
    details = fix if missing else ", ".join(modules)
    return Part(f"[{name}]", "missing" if missing else "works", needed_for, details)


def _printed(*command: str) -> str:
    """Return the first line that a program prints, or nothing if it does not run."""
    if shutil.which(command[0]) is None:
        return ""
    try:
        done = run_child(command, seconds=_TIMEOUT_SECONDS)
    except OSError:
        return ""
    return done.stdout.strip().partition("\n")[0] if done.returncode == 0 else ""
