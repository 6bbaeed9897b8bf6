"""A server on the loopback that answers as Hugging Face does for one gated repository.

Source of the answers: the hub's OpenAPI description, and what ``huggingface_hub`` reads of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

REPOSITORY = "acme/Llama-Gated"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
TOKEN = "hf_" + "abcdefghijklmnopqrstuvwxyz"
#: The name of a file, and whether Git LFS stores it.
FILES = {
    "config.json": (b'{"architectures": []}\n', False),
    "model.safetensors": (b"weights" * 10_000, True),
    "tokenizer/vocab.txt": (b"a\nb\n", False),
    ".gitattributes": (b"* filter=lfs\n", False),
}


@dataclass
class Hub:
    """What the server answers. ``replaced`` has the wrong content of files, ``listed`` more files.

    ``authorizations`` are the headers of all requests.
    """

    url: str = ""
    replaced: dict[str, bytes] = field(default_factory=dict)
    listed: list[dict[str, Any]] = field(default_factory=list)
    authorizations: set[str | None] = field(default_factory=set)

    def answer(self, path: str, authorization: str | None) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and content of an answer."""
        self.authorizations.add(authorization)
        path = path.partition("?")[0]
        if authorization != f"Bearer {TOKEN}":
            code = {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"}
            return 401 if authorization is None else 403, code, b"{}"
        if path == f"/api/models/{REPOSITORY}/tree/{COMMIT}":
            return 200, {}, json.dumps([*map(_entry, FILES), *self.listed]).encode()
        if path.startswith(f"/api/models/{REPOSITORY}/revision/"):
            return 200, {}, json.dumps({"id": REPOSITORY, "sha": COMMIT, "siblings": []}).encode()
        prefix = f"/{REPOSITORY}/resolve/{COMMIT}/"
        name = path.removeprefix(prefix)
        if not path.startswith(prefix) or name not in FILES:
            return 404, {"X-Error-Code": "RepoNotFound"}, b"{}"
        content, _ = FILES[name]
        content = self.replaced.get(name, content)
        return 200, {"ETag": f'"{_digest(name)}"', "X-Repo-Commit": COMMIT}, content


def _digest(name: str) -> str:
    content, is_lfs = FILES[name]
    if is_lfs:
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _entry(name: str) -> dict[str, Any]:
    content, is_lfs = FILES[name]
    entry = {"type": "file", "path": name, "size": len(content), "oid": _digest(name)}
    lfs = {"oid": _digest(name), "size": len(content), "pointerSize": 134}
    return {**entry, "oid": "0" * 40, "lfs": lfs} if is_lfs else entry


@contextmanager
def served_hub() -> Iterator[Hub]:
    """Serve the repository on a free port."""
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, content = hub.answer(self.path, self.headers.get("Authorization"))
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        do_HEAD = do_GET  # noqa: N815 - the name that http.server calls

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        hub.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield hub
        finally:
            server.shutdown()
            thread.join()
