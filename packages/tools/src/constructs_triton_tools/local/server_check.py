"""Loads the models of a repository in the Triton server and returns its answers.

Several servers share the models, and each loads one model at a time. A server that ends or does not
answer is replaced. Its last model gets no verdict from that: a server can also end because of the
model before, which is still being unloaded, or because of another process of the machine. So this
model is loaded again, in a new server and without any other. The Python backend waits forever
without ``model.py``.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import queue
import re
import select
import signal
import time
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from constructs_triton_core.errors import LocalEndpointError
from constructs_triton_core.facts.failures import Rank
from constructs_triton_core.processes.children import PIPE, Child, foreign_environment
from constructs_triton_core.untrusted.drafts import temporary_folder
from constructs_triton_tools.local.checked_models import CopiedModel, copy_models, has_gpu
from constructs_triton_tools.local.server.installation import (
    TritonInstallation,
    find_installation,
    inspect_python,
)
from constructs_triton_tools.local.server.supervisor_process import supervisor_command
from constructs_triton_tools.local.server.unix_http import UnixHTTPConnection
from constructs_triton_tools.operations.diagnosis import Message, recognize
from triton_model_check.artifacts.environments.placement import as_packed
from triton_model_check.facts.images import release_of_server
from triton_model_check.model_config.server_answer import ServerAnswer
from triton_model_check.model_repository import ModelRepository

_SOCKET_NAME = "http.sock"
#: Triton waits for its Python processes most of the time in which it loads a small model.
_SERVERS = 4
_START_SECONDS = 60.0
_LOAD_SECONDS = 30.0
_LOAD_ALONE_SECONDS = 60.0
_END_SECONDS = 15.0
_READ_SECONDS = 10.0
_ASCII_LOCALE = "UnicodeEncodeError: 'ascii' codec"
#: What ends the path of a request, or the line that has it.
_IN_NO_PATH = re.compile(r"[\x00-\x20\x7f?#]")
_CRASHES = (signal.SIGABRT, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV)
_IMPORT_CALL = re.compile(r" <frozen importlib[^>]{0,100}>\(\d+\): \w+")
# Of an ensemble, the steps are unloaded too.
_BODIES = {"load": b"{}", "unload": b'{"parameters": {"unload_dependents": true}}'}


def ask_server(path: Path, names: Collection[str] = ()) -> dict[str, ServerAnswer]:
    """Return the server's answer for each model.

    It is unknown if the server does not answer, or was killed. An answer says if another backend
    was used. Without a GPU, instance groups on GPUs are removed first.

    Args:
        path: The model repository.
        names: The models to load, which load the models that they need too. Default: all models.

    Raises:
        InvalidValueError: a Python environment was not built, or cannot be built for the server's
            Python.
        MissingDependencyError: nvidia-pytriton is not installed, or uv, which an environment needs.
        LocalEndpointError: the server does not start, or an empty backend needs a C compiler and
            there is none.
    """
    repository = as_packed(ModelRepository.from_directory(path))
    with temporary_folder() as folder:
        return CheckRun.prepare(repository, folder, names).ask()


class _NoAnswerError(Exception):
    """The server ended, or did not answer in time; it is not asked again."""


@dataclass(frozen=True)
class CheckRun:
    """The models of a check, each as it was copied, and the servers that load them."""

    directory: Path
    models: dict[str, CopiedModel]
    installation: TritonInstallation
    _running: list[CheckServer] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @classmethod
    def prepare(
        cls, repository: ModelRepository, directory: Path, names: Collection[str] = ()
    ) -> CheckRun:
        """Copy the models and the backends into an empty folder; ``names`` are to be loaded."""
        installation = find_installation()
        copied = copy_models(repository, directory, installation)
        asked = {name: copied[name] for name in sorted(names or copied) if name in copied}
        return cls(directory, asked, installation)

    def ask(self) -> dict[str, ServerAnswer]:
        """Load every model, those that got no answer a second time and alone,
        and return the answers.
        """
        answers = self._ask_together()
        for name in self.models:
            if name not in answers:
                answers[name] = self._ask_alone(name)
        return {
            name: replace(answers[name], note=copied.note, loader=copied.loader)
            for name, copied in self.models.items()
        }

    def _ask_together(self) -> dict[str, ServerAnswer]:
        """Ask servers about all models, several at a time, and return the answers by model."""
        answers: dict[str, ServerAnswer] = {}
        waiting = queue.SimpleQueue[str]()
        for name in self.models:
            waiting.put(name)
        # Models of several servers could need more memory than a GPU has.
        count = 1 if has_gpu() else min(_SERVERS, len(self.models))
        with ThreadPoolExecutor(count) as pool:
            try:
                asked = [pool.submit(self._ask_waiting, waiting, answers) for _ in range(count)]
                for future in asked:
                    future.result()
            except BaseException:  # Ctrl-C: the threads end with their servers
                _empty(waiting)
                for server in self._running:
                    server.stop()
                raise
        return answers

    def _ask_waiting(
        self, waiting: queue.SimpleQueue[str], answers: dict[str, ServerAnswer]
    ) -> None:
        while not waiting.empty():
            with self.server() as server, suppress(_NoAnswerError, queue.Empty):
                while True:
                    name = waiting.get_nowait()
                    answers[name] = server.load(name, _LOAD_SECONDS)
                    server.unload(name)

    def _ask_alone(self, name: str) -> ServerAnswer:
        with self.server() as server:
            try:
                return server.load(name, _LOAD_ALONE_SECONDS)
            except _NoAnswerError as error:
                if isinstance(error.__cause__, TimeoutError):
                    reason = f"the server did not answer within {_LOAD_ALONE_SECONDS:.0f} s"
                    return ServerAnswer(name, "unknown", reason, release=server.release)
                return _answer_of_ended(name, server.exit_code(), server.release)

    @contextmanager
    def server(self) -> Iterator[CheckServer]:
        """Start a server without models, on a Unix socket in a private folder."""
        number = next(self._numbers)
        folder = self.directory / f"server{number}"
        folder.mkdir()
        prefix = f"triton_{self.directory.name}_{number}_"
        command = supervisor_command(prefix, folder, self.directory)
        # The supervisor ends with its standard input, after it has cleaned up.
        streams = {"stdin": PIPE, "stdout": PIPE, "text": True}
        with Child[str](
            command, environment=foreign_environment(), is_kept=False, **streams
        ) as supervisor:
            server = CheckServer(folder, supervisor)
            self._running.append(server)
            try:
                server.start(self._request(folder, prefix))
                server.release = server.read_release()
                yield server
            finally:
                server.stop()
                self._running.remove(server)

    def _request(self, folder: Path, prefix: str) -> dict[str, object]:
        python = inspect_python()
        return {
            "argv": [str(self.installation.executable), *self._flags(prefix)],
            "environment": {
                "HOME": str(self.directory / "home"),
                "PATH": os.pathsep.join([str(python.bin), "/usr/local/bin", "/usr/bin", "/bin"]),
                "LD_LIBRARY_PATH": self.installation.library_path(python),
            },
            "cwd": str(folder),
            "log": str(folder / "server.log"),
            "mounted_models": None,
            "private_port": None,
            "has_network": True,
            "grace_seconds": 0,
        }

    def _flags(self, prefix: str) -> list[str]:
        return [
            f"--model-repository={self.directory / 'models'}",
            f"--backend-directory={self.directory / 'backends'}",
            "--model-control-mode=explicit",
            f"--http-address=unix:{_SOCKET_NAME}",  # relative to the server's working directory
            "--allow-grpc=false",
            "--allow-metrics=false",
            "--allow-sagemaker=false",
            f"--backend-config=python,shm-region-prefix-name={prefix}",
            "--backend-config=python,shm-default-byte-size=1048576",
        ]


@dataclass(eq=False)
class CheckServer:
    """One server of a check, in its folder, with the supervisor that started it.

    ``release`` is its Triton release, once it has started; ``None`` if it is not known.
    """

    folder: Path
    supervisor: Child[str]
    release: str | None = None

    def start(self, request: dict[str, object]) -> None:
        """Start the server and wait until it answers."""
        assert self.supervisor.stdin is not None
        assert self.supervisor.stdout is not None
        with suppress(OSError, ValueError):  # it was stopped
            self.supervisor.stdin.write(json.dumps(request) + "\n")
            self.supervisor.stdin.flush()
        self.supervisor.stdout.readline()  # that it was started
        deadline = time.monotonic() + _START_SECONDS
        # The next line says that it has ended.
        while time.monotonic() < deadline and not self._has_event(0.05):
            with suppress(_NoAnswerError):
                if self.request("GET", "/v2/health/live", 2.0)[0] == http.HTTPStatus.OK:
                    return
        tail = (self.folder / "server.log").read_text("utf-8", "replace").splitlines()[-8:]
        raise LocalEndpointError(
            "the Triton server did not start; its log ends with:\n" + "\n".join(tail)
        )

    def stop(self) -> None:
        """End the supervisor, and with it the server; keep the folder of the run."""
        assert self.supervisor.stdin is not None
        with suppress(OSError, ValueError):  # it has ended, or was stopped before
            self.supervisor.stdin.write('{"stop": true}\n')
            self.supervisor.stdin.close()

    def read_release(self) -> str | None:
        """Return the Triton release of the server, such as ``"24.10"``, if it is known."""
        with suppress(_NoAnswerError, ValueError, KeyError, TypeError):
            _, text = self.request("GET", "/v2", _READ_SECONDS)
            return release_of_server(str(json.loads(text)["version"]))
        return None

    def load(self, name: str, seconds: float) -> ServerAnswer:
        """Return whether a model loads."""
        if _IN_NO_PATH.search(name) is not None:
            reason = "the name of its folder cannot be in a URL of Triton, which decodes none"
            return ServerAnswer(name, "unknown", reason, release=self.release)
        status, text = self.request("POST", _path(name, "load"), seconds)
        if status == http.HTTPStatus.OK:
            return ServerAnswer(name, "loads", release=self.release)
        reason = _reason(text, self.folder.parent / "models")
        if not name.isascii() and _ASCII_LOCALE in reason:
            reason = (
                "this server has no UTF-8 locale, so its Python cannot open a folder whose name is "
                "not ASCII, and the locale of the image is not known; rename the folder"
            )
            return ServerAnswer(name, "unknown", reason, release=self.release)
        hint = _hint(reason, self.release)
        return ServerAnswer(name, "rejected", reason, release=self.release, hint=hint)

    def unload(self, name: str) -> None:
        """Unload a model: its processes would slow down the others."""
        if _IN_NO_PATH.search(name) is None:
            self.request("POST", _path(name, "unload"), _LOAD_SECONDS)

    def exit_code(self) -> int | None:
        """Return the exit code of a server that has ended,
        or ``None`` if the supervisor has ended too.
        """
        assert self.supervisor.stdout is not None
        line = self.supervisor.stdout.readline() if self._has_event(_END_SECONDS) else ""
        code: int | None = json.loads(line or "{}").get("ended")
        return code

    def request(self, method: str, path: str, seconds: float) -> tuple[int, str]:
        """Send a request and return the status and the body.

        Raises:
            _NoAnswerError: the server ended, or did not answer in time.
        """
        connection = UnixHTTPConnection(self.folder / _SOCKET_NAME, timeout=seconds)
        try:
            connection.request(method, path, body=_BODIES.get(path.rpartition("/")[2]))
            response = connection.getresponse()
            return response.status, response.read().decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as error:
            raise _NoAnswerError from error
        finally:
            connection.close()

    def _has_event(self, seconds: float) -> bool:
        assert self.supervisor.stdout is not None
        return bool(select.select([self.supervisor.stdout], [], [], seconds)[0])


def _path(name: str, action: str) -> str:
    # Not quoted: Triton looks for a folder whose name has the escapes.
    return f"/v2/repository/models/{name}/{action}"


def _empty(waiting: queue.SimpleQueue[str]) -> None:
    with suppress(queue.Empty):
        while True:
            waiting.get_nowait()


def _answer_of_ended(name: str, code: int | None, release: str | None) -> ServerAnswer:
    if code is None or (code < 0 and -code not in _CRASHES):
        by = "" if code is None else f" by {signal.Signals(-code).name}"
        reason = (
            f"the server was ended{by}; free memory and space in /dev/shm, and run the check again"
        )
        return ServerAnswer(name, "unknown", reason, release=release)
    how = f"exit code {code}" if code >= 0 else signal.Signals(-code).name
    reason = f"the server ended with {how} while it loaded this model alone"
    return ServerAnswer(name, "rejected", reason, release=release)


def _hint(reason: str, release: str | None) -> str:
    """Return the fix of a message that the catalogue of failures explains, else ``""``."""
    found = recognize(Message(reason, "server", is_log=True, triton_version=release))
    return found.fix if found is not None and found.rank <= Rank.KIND else ""


def _reason(text: str, models: Path) -> str:
    """Return the message of an answer in one line, with paths as in the user's repository.

    The models are a copy, whose folder no longer exists when the user reads the message. The calls
    inside Python's own import are left out.
    """
    with suppress(ValueError, KeyError, TypeError):
        text = str(json.loads(text)["error"])
    line = re.sub(r"\s+", " ", text.replace(f"{models}{os.sep}", ""))
    return _IMPORT_CALL.sub("", line).strip(" ;")
