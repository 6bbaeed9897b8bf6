"""``LocalEndpoint``: the command that it runs, and what it does when the command fails."""

from __future__ import annotations

import argparse
import inspect
import sys
from pathlib import Path
from typing import Any

import pytest

from constructs_triton_core.declared_values import declared_values
from constructs_triton_core.errors import LocalEndpointError
from constructs_triton_tools.cli import local as command
from constructs_triton_tools.local import LocalEndpoint
from constructs_triton_tools.local.options import LocalRunOptions, RunOptions

DEFAULTS = {"action": "up", "json": True, "until_stdin_closes": True}
SERVER: dict[str, Any] = {
    "endpoint": "E",
    "port": 1234,
    "python": "/p/python",
    "tritonserver": "/t/tritonserver",
    "memory_limit_mib": 7,
    "startup_timeout_seconds": 1.5,
    "invocation_timeout_seconds": 2.5,
}
PARSED_SERVER = {**SERVER, "python": Path("/p/python"), "tritonserver": Path("/t/tritonserver")}


def _parsed(local: LocalEndpoint) -> dict[str, Any]:
    """The arguments of ``local up`` that differ from the command's defaults."""
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    assert local._arguments[0] == "local"
    given = vars(parser.parse_args(local._arguments[1:]))
    defaults = vars(parser.parse_args(["up"]))
    assert DEFAULTS.items() <= given.items()
    changed = {name for name, value in given.items() if value != defaults[name]} - DEFAULTS.keys()
    return {name: given[name] for name in changed | {"source", "port"}}


@pytest.mark.parametrize(
    ("local", "expected"),
    [
        (LocalEndpoint.from_assembly("cdk.out"), {"source": Path("cdk.out"), "port": 0}),
        (
            LocalEndpoint.from_assembly(
                "out", stack="S", bucket_folder="b", uses_private_mounts=False, **SERVER
            ),
            {
                "source": Path("out"),
                "stack": "S",
                "bucket_folder": Path("b"),
                "uses_private_mounts": False,
                **PARSED_SERVER,
            },
        ),
        (
            LocalEndpoint.from_repository("m", model="a", endpoint="e", port=1),
            {"source": Path("m"), "port": 1, "model": "a", "endpoint": "e"},
        ),
        (
            LocalEndpoint.from_repository("m", is_multi_model=True, memory_limit_mib=3),
            {"source": Path("m"), "port": 0, "multi_model": True, "memory_limit_mib": 3},
        ),
        # There is no path; the URL takes its place.
        (
            LocalEndpoint.from_aws("http://127.0.0.1:1", **SERVER),
            {"source": None, "aws_endpoint_url": "http://127.0.0.1:1", **PARSED_SERVER},
        ),
    ],
    ids=["no options", "assembly", "one model", "all models", "deployed"],
)
def test_every_option_reaches_the_command(local: LocalEndpoint, expected: dict[str, Any]) -> None:
    """Each keyword sets the option of the same meaning,
    and without options any free port is used.
    """
    assert _parsed(local) == expected


def test_every_option_is_one_of_the_command() -> None:
    """Mappings, and booleans with their opposite flags, arrive as they were given;
    defaults are left out.
    """
    options: LocalRunOptions = {
        "wake_delay_seconds": 0,
        "stand_ins": {"a": "a.onnx", "b.tar.gz/c": Path("c")},
        "uses_stand_ins": False,
        "uses_private_mounts": True,
        "allow_open_ports": True,
        "engine": "podman",
        "images": {"e/v": "i:1"},
    }
    expected = {
        "wake_delay_seconds": 0.0,
        "stand_ins": [("a", "a.onnx"), ("b.tar.gz/c", "c")],
        "uses_stand_ins": False,
        "allow_open_ports": True,
        "engine": "podman",
        "images": [("e/v", "i:1")],
    }
    found = _parsed(LocalEndpoint.from_repository("m", **options))
    assert found == {"source": Path("m"), "port": 0, **expected}
    names = set(declared_values(LocalRunOptions))
    assert set(LocalRunOptions.__annotations__) == names <= {*RunOptions.__annotations__}


def test_an_unknown_option_is_an_error() -> None:
    """The error is Python's, with the option that was probably meant."""
    with pytest.raises(
        TypeError, match=r"argument 'memory_limit'; did you mean \"memory_limit_mib\"\?"
    ):
        LocalEndpoint.from_assembly("cdk.out", memory_limit=3)  # type: ignore[call-arg]


def test_help_shows_each_option() -> None:
    """Signature and docstring have the options of the declaration."""
    shown = inspect.signature(LocalEndpoint.from_assembly).parameters
    assert [*shown] == ["path", "stack", *declared_values(LocalRunOptions)]
    text = inspect.getdoc(LocalEndpoint.from_assembly) or ""
    assert (
        "    engine: Run the template's images in containers of this engine; needs no Linux."
        in text
    )
    assert "have. Default: ``True``." in text


class _Program(LocalEndpoint):
    """Runs a program in place of the command."""

    program = ""

    def _command(self) -> list[str]:
        return [sys.executable, "-I", "-c", self.program]


@pytest.mark.parametrize(
    "program",
    [
        """print('{"error": "x: is wrong; change it"}'); raise SystemExit(1)""",
        "raise SystemExit('x: is wrong; change it')",
    ],
)
def test_a_command_that_fails_is_an_error_with_its_messages(tmp_path: Path, program: str) -> None:
    """The error is the command's JSON, or what it printed before it could print JSON."""
    local = _Program.from_assembly(tmp_path)
    local.program = program
    with pytest.raises(LocalEndpointError) as failed, local:
        pass
    assert str(failed.value) == "x: is wrong; change it"


def test_a_running_command_describes_its_endpoints_and_ends_with_the_block(tmp_path: Path) -> None:
    """URL, names and messages inside the block; standard input closes at its end."""
    local = _Program.from_assembly(tmp_path)
    local.program = (
        "import sys; print('a message', file=sys.stderr, flush=True)\n"
        'print(\'{"url": "http://x", "endpoints": [{"name": "a"}, {"name": "b"}]}\', flush=True)\n'
        "sys.stdin.read()"
    )
    with local:
        assert (local.endpoint_url, local.endpoint_names) == ("http://x", ("a", "b"))
        assert local.description["endpoints"][1] == {"name": "b"}
        assert local.messages == "a message"
        assert local.process is not None
        assert local.process.poll() is None
    assert local.process.returncode == 0
