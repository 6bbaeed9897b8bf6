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
    part = partial(Part, "Python", needed_for="everything", is_required=True)
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < _OLDEST_PYTHON:
        return part(state="missing", details=f"{version}; install Python 3.11")
    return part(state="works", details=f"{version}, {sys.executable}")


def _node() -> Part:
    part = partial(Part, "Node.js", needed_for="synth", is_required=True)
    version = _printed("node", "--version")
    found = re.match(r"v(\d+)\.", version)
    major = int(found[1]) if found else 0
    if major in _NODES:
        return part(state="works", details=version)
    details = f"{version or 'not found'}; install Node.js 22 or 24"
    return part(state="old" if major >= _OLDEST_NODE else "missing", details=details)


def _cdk() -> Part:
    """The CDK's command line: that of the project in this folder, or of the system."""
    own = Path("node_modules", ".bin", "cdk")
    version = _printed(str(own) if own.exists() else "cdk", "--version")
    part = partial(Part, "cdk", needed_for="synth and deploy from the shell")
    if version.startswith("2."):
        return part(state="works", details=version)
    return part(state="missing", details=f"{version or 'not found'}; run `npm install -g {CDK}`")


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
    if not missing:
        return Part(f"[{name}]", "works", needed_for, ", ".join(modules))
    fix = f"run `pip install 'constructs-triton[{name}]'`"
    details = f"{', '.join(missing)} not installed; {fix}"
    return Part(f"[{name}]", "missing", needed_for, details)


def _printed(*command: str) -> str:
    """Return the first line that a program prints, or nothing if it does not run."""
    if shutil.which(command[0]) is None:
        return ""
    try:
        done = run_child(command, seconds=_TIMEOUT_SECONDS)
    except OSError:
        return ""
    return done.stdout.strip().partition("\n")[0] if done.returncode == 0 else ""
