"""What runs beside the commands: an AWS account, a hub of models, and an endpoint."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from machine_faults.writers import PROJECT

__all__ = ["running"]

_FOLDERS = ("tests", "tests/e2e", "tests/cdk", "packages/tools/tests/building/hub")
sys.path[:0] = [str(PROJECT / folder) for folder in _FOLDERS]


@contextmanager
def running(needed: str) -> Iterator[Mapping[str, str]]:
    """Start what a command needs, and yield its arguments and variables."""
    if needed == "hub":
        from hub_server import COMMIT, TOKEN, served_hub  # noqa: PLC0415 - from the tests

        with served_hub() as hub, tempfile.TemporaryDirectory() as home:
            variables = {"HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN, "HF_HOME": home}
            yield {**variables, "COMMIT": COMMIT}
    elif needed == "account":
        from adopt_command import account_with_archive, serve  # noqa: PLC0415 - likewise

        with tempfile.TemporaryDirectory() as folder, account_with_archive(Path(folder)) as aws:
            serve(aws)
            yield aws.environment()
    elif needed == "endpoint":
        with _endpoint() as url:
            yield {"URL": url}
    else:
        yield {}


@contextmanager
def _endpoint() -> Iterator[str]:
    models = PROJECT / "assets" / "model_repositories" / "digits"
    command = [sys.executable, "-m", "constructs_triton.cli", "local", "up", str(models)]
    with subprocess.Popen([*command, "--port", "0"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = ""
        for line in process.stdout:
            if "http://127.0.0.1:" in line and not url:
                address = line[line.index("http://127.0.0.1:") :].split()[0]
                url = "/".join(address.split("/")[:3])
            if line.startswith("ready"):
                break
        try:
            yield url.strip("\"',)")
        finally:
            process.send_signal(signal.SIGTERM)
