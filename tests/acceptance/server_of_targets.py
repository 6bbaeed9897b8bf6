"""Starts the real server for a case of ``target_cases.py`` and returns what it answers.

Each server has its own namespaces for mounts and processes: ``/dev/shm`` has the case's size, its
repositories may be read-only, and nothing is left of it. To record the answers of all or some cases
again::

    PYTHONPATH=packages/check/tests/contract python tests/acceptance/server_of_targets.py [CASE...]
"""

from __future__ import annotations

import http.client
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from target_cases import CASES, ORACLE, VERDICTS, Case, write_files

from constructs_triton_tools.local.checked_models import _EMPTY_SOURCE
from constructs_triton_tools.local.server.installation import (
    find_installation,
    inspect_python,
    make_backends,
)
from constructs_triton_tools.local.server.unix_http import UnixHTTPConnection

Verdict = dict[str, Any]
#: Most of a start is waiting for Python processes.
_SERVERS = 4
_START_SECONDS, _POLL_SECONDS = 60.0, 0.1
#: Only root may mount; another user becomes root in a namespace of users.
_USERS = () if os.geteuid() == 0 else ("--map-root-user",)
_NAMESPACES = ("unshare", *_USERS, "--mount", "--pid", "--fork", "--kill-child")
#: A line of the log: severity, date, time, process, source, and the message as a JSON string.
_ERROR_LINE = re.compile(r'^E\d{4} [\d:.]+ \d+ [\w.]+:\d+\] "(.*)"$', re.MULTILINE)
#: What the server prints when it ends: about an option, about the models, or about its own
#: exception.
_LAST_LINE = re.compile("(?i)error: |terminate called|  what")
_CRASH = re.compile("terminate called|what")
#: What the server says on every machine without a GPU, and what it says again for the whole model.
_NOISE = ("CudaDriverHelper", "ERROR: Failed to create instance", "unable to create stream")


def why_not() -> str | None:
    """Return why this machine cannot run the cases, or ``None``."""
    command = [*_NAMESPACES, "mount", "-t", "tmpfs", "tmpfs", "/dev/shm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"no namespaces for mounts: {done.stderr.strip()}" if done.returncode else None


class Machine(NamedTuple):
    """What all servers share: a folder with a copy of the backends,
    and the library of an empty backend.
    """

    folder: Path
    library: bytes

    @classmethod
    def prepare(cls, folder: Path) -> Machine:
        """Copy the backends, and compile an empty one."""
        make_backends(folder / "backends", find_installation(), inspect_python())
        (folder / "empty.c").write_text(_EMPTY_SOURCE, encoding="ascii")
        subprocess.run(
            ["gcc", "-shared", "-fPIC", "-o", folder / "empty.so", folder / "empty.c"], check=True
        )
        return cls(folder, (folder / "empty.so").read_bytes())

    def answers(self, names: Iterable[str]) -> dict[str, Verdict]:
        """Start the servers of several cases, some at the same time."""
        with ThreadPoolExecutor(_SERVERS) as pool:
            return dict(pool.map(lambda name: (name, self.answer(name, CASES[name])), names))

    def answer(self, name: str, case: Case) -> Verdict:
        """Start the server of a case, again if it crashed: on a busy machine it does,
        before it says why.
        """
        for attempt in range(3):
            verdict = self._start(case, self.folder / name / str(attempt))
            if verdict["starts"] or any(not _CRASH.match(each) for each in verdict["messages"]):
                break
        return verdict

    def _start(self, case: Case, folder: Path) -> Verdict:
        """Start the server of a case, and end it as soon as it is known what becomes of it."""
        repositories = case.write(folder / "models", self.library)
        backends = folder / "backends"
        backends.mkdir(parents=True)
        (backends / "python").symlink_to(self.folder / "backends" / "python")
        write_files(backends, case.backends, self.library)
        log = folder / "server.log"
        command = [*_NAMESPACES, "sh", "-c", _script(case, repositories, backends)]
        with (
            log.open("wb") as output,
            subprocess.Popen(
                command, cwd=folder, stdout=output, stderr=output, env=_environment(folder)
            ) as server,
        ):
            try:
                seen = _wait(server, folder / "http.sock")
            finally:
                server.kill()
        return _verdict(seen, log.read_text("utf-8", "replace"), _without(folder))


def _script(case: Case, repositories: list[Path], backends: Path) -> str:
    mounts = [f"mount -t tmpfs -o size={case.shm} tmpfs /dev/shm"]
    if case.is_read_only:
        paths = [shlex.quote(str(each)) for each in repositories]
        mounts += [
            f"mount --bind {each} {each} && mount -o remount,bind,ro {each}" for each in paths
        ]
    flags = [
        *(f"--model-repository={each}" for each in repositories),
        f"--backend-directory={backends}",
        "--http-address=unix:http.sock",  # relative to the server's working directory
        "--allow-grpc=false",
        "--allow-metrics=false",
        *case.flags,
    ]
    server = shlex.join([str(find_installation().executable), *flags])
    return " && ".join([*mounts, f"exec {server}"])


def _environment(folder: Path) -> dict[str, str]:
    python = inspect_python()
    return {
        "HOME": str(folder),
        "PATH": os.pathsep.join([str(python.bin), "/usr/local/bin", "/usr/bin", "/bin"]),
        "LD_LIBRARY_PATH": find_installation().library_path(python),
    }


def _wait(server: subprocess.Popen[bytes], socket: Path) -> Verdict:
    """Wait until the server answers or has ended."""
    deadline = time.monotonic() + _START_SECONDS
    while server.poll() is None:
        assert time.monotonic() < deadline, f"no answer within {_START_SECONDS:.0f} s"
        with suppress(OSError, http.client.HTTPException):
            is_ready = _request(socket, "GET", "/v2/health/ready")[0] == http.HTTPStatus.OK
            index = json.loads(_request(socket, "POST", "/v2/repository/index")[1])
            models = {each["name"]: _state(each) for each in index}
            return {"starts": True, "ready": is_ready, "models": dict(sorted(models.items()))}
        time.sleep(_POLL_SECONDS)
    return {"starts": False}


def _state(model: dict[str, str]) -> str:
    state, reason = model.get("state", "not loaded"), model.get("reason", "")
    return f"{state}: {reason}" if reason else state


def _request(socket: Path, method: str, path: str) -> tuple[int, bytes]:
    connection = UnixHTTPConnection(socket, timeout=10)
    try:
        connection.request(method, path, body=b"{}" if method == "POST" else None)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def _without(folder: Path) -> Callable[[str], str]:
    """Return a function that removes what differs from run to run, and the traces of Python."""

    def cleaned(text: str) -> str:
        text = text.replace(f"{folder}/", "").replace(str(folder), "")
        text = re.sub(r"(triton_\w+_backend_shm_region_)[-0-9a-f]+", r"\1<uuid>", text)
        return re.sub(r"\s+", " ", text.replace("\\n", " ").partition(" At: ")[0]).strip()

    return cleaned


def _verdict(seen: Verdict, log: str, cleaned: Callable[[str], str]) -> Verdict:
    said = {cleaned(line) for line in _ERROR_LINE.findall(log) if not line.startswith(_NOISE)}
    last = [
        cleaned(line) for line in log.splitlines() if not seen["starts"] and _LAST_LINE.match(line)
    ]
    if "models" in seen:
        seen["models"] = {name: cleaned(state) for name, state in seen["models"].items()}
    return {**seen, "messages": [*sorted(said), *last]}


def main() -> None:
    """Record the answers of some cases, or of all."""
    names = sys.argv[1:] or list(CASES)
    with tempfile.TemporaryDirectory(prefix="oracle-") as folder:
        found = {**VERDICTS, **Machine.prepare(Path(folder)).answers(names)}
    kept = {name: found[name] for name in CASES if name in found}
    text = json.dumps(kept, indent=1, ensure_ascii=False)
    (ORACLE / "verdicts.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
