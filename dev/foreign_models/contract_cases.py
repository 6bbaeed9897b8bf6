"""Models in Python that are written for the contract of ``model.py``, one for each deliberate case.

Each file in ``contract/`` has one model as people write it, and cases that change it: a text that
is replaced, a file that is added. What the server does with each case is recorded, not assumed.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).with_name("contract")


@dataclass(frozen=True)
class ContractCase:
    """One model, with the models that it calls and one request."""

    name: str
    point: str
    files: Mapping[str, bytes]
    others: Mapping[str, Mapping[str, bytes]]
    request: Mapping[str, Any]

    @property
    def is_stream(self) -> bool:
        """Whether the answer is a stream of responses, as a decoupled model sends them."""
        return "inputs" not in self.request

    @property
    def digest(self) -> str:
        """A hash of the files and of the request: a verdict is of this content alone."""
        content = hashlib.sha256(json.dumps(self.request, sort_keys=True).encode())
        for model, files in sorted({self.name: self.files, **self.others}.items()):
            for path, data in sorted(files.items()):
                content.update(f"{model}/{path}:{len(data)}:".encode() + data)
        return content.hexdigest()[:16]

    def write(self, repository: Path) -> None:
        """Write the model and those that it calls to a model repository."""
        for model, files in {self.name: self.files, **self.others}.items():
            (repository / model).mkdir(parents=True, exist_ok=True)
            for path, content in files.items():
                target = repository / model / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)


def contract_cases() -> list[ContractCase]:
    """Return all cases.

    Raises:
        ValueError: a case changes a text that its model does not contain.
    """
    return [case for path in sorted(SOURCES.glob("*.toml")) for case in _cases_of(path)]


def _cases_of(path: Path) -> Iterator[ContractCase]:
    content = tomllib.loads(path.read_text("utf-8"))
    others = {
        model: {name: text.encode() for name, text in files.items()}
        for model, files in content.get("others", {}).items()
    }
    for case in content["case"]:
        name = f"{path.stem}_{case['name']}"
        files = _changed(name, content["files"], case)
        request = _request_of(content["request"], case)
        yield ContractCase(name, case["point"], files, others, request)


def _changed(name: str, files: Mapping[str, str], case: Mapping[str, Any]) -> dict[str, bytes]:
    texts = dict(files)
    for old, new in case.get("replace", []):
        if not any(old in text for text in texts.values()):
            raise ValueError(f"{name}: replaces a text that the model does not contain: {old!r}")
        texts = {path: text.replace(old, new) for path, text in texts.items()}
    if "cut" in case:
        texts = {path: _without(text, *case["cut"]) for path, text in texts.items()}
    for old, new in case.get("rename", {}).items():
        texts[new] = texts.pop(old)
    for path in case.get("remove", []):
        del texts[path]
    texts.update(case.get("add", {}))
    encoding = "latin-1" if case.get("latin1") else "utf-8"
    return {path: text.encode(encoding) for path, text in texts.items()}


def _without(text: str, begin: str, end: str) -> str:
    """Return the text without the part from ``begin`` to the next ``end``."""
    before, found, after = text.partition(begin)
    return before + after.partition(end)[2] if found else text


def _request_of(request: Mapping[str, Any], case: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of the request: ``inputs`` of the inference protocol, or of a stream."""
    if "inputs" in case:
        kept = {name: value for name, value in request.items() if name != "stream"}
        return {**kept, "inputs": case["inputs"]}
    if "stream" in case:
        return dict(case["stream"])
    return dict(request.get("stream", request))
