"""The recorded verdicts of the real server on the contract cases."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from foreign_models.contract_cases import ContractCase

RECORD = Path(__file__).with_name("contract_verdicts.json")
IMAGE = "24.10"


class Truth(Enum):
    """What the real program does with a model."""

    VALID = "valid"
    #: It loads, and the request gets an error, no answer, or an end of the server.
    CANNOT_BE_SERVED = "cannot-be-served"
    REJECTED = "rejected"
    #: It answers, but with other outputs than config.pbtxt says, or nobody can say why it fails.
    DOUBTFUL = "doubtful"


def recorded() -> dict[str, dict[str, Any]]:
    """Return the verdict of each case."""
    verdicts: dict[str, dict[str, Any]] = json.loads(RECORD.read_text("utf-8"))
    return verdicts


def outdated(cases: Iterable[ContractCase], verdicts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the cases that the server was not asked about as they are now."""
    return [
        case.name
        for case in cases
        if verdicts.get(case.name, {}).get("digest") != case.digest
    ]


def truth_of(verdict: Mapping[str, Any], signatures: Iterable[str]) -> Truth:
    """Return the truth about a model; ``signatures`` are those of the outputs of config.pbtxt."""
    if verdict["load"] != "loads":
        return Truth.REJECTED
    if verdict.get("status") != 200:
        return Truth.CANNOT_BE_SERVED
    if signature(verdict) not in signatures:
        return Truth.DOUBTFUL
    return Truth.VALID


def signature(verdict: Mapping[str, Any]) -> str:
    """Return names, types and shapes of the outputs of an answer; a stream has none."""
    outputs = verdict.get("outputs", [])
    return json.dumps(sorted(outputs))


def write(verdicts: Mapping[str, Mapping[str, Any]]) -> None:
    """Keep the verdicts, one line for each case."""
    lines = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(verdict, ensure_ascii=False)}"
        for name, verdict in sorted(verdicts.items())
    )
    RECORD.write_text("{\n" + lines + "\n}\n", encoding="utf-8")
