"""The recorded verdicts of the real server on the contract cases."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

from foreign_models.contract_cases import ContractCase
from foreign_models.verdicts import Truth

RECORD = Path(__file__).with_name("contract_verdicts.json")
IMAGE = "24.10"


def recorded() -> dict[str, dict[str, Any]]:
    """Return the verdict of each case."""
    verdicts: dict[str, dict[str, Any]] = json.loads(RECORD.read_text("utf-8"))
    return verdicts


def outdated(cases: Iterable[ContractCase], verdicts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the cases that the server was not asked about as they are now."""
    return [case.name for case in cases if verdicts.get(case.name, {}).get("digest") != case.digest]


def truth_of(name: str, verdicts: Mapping[str, Mapping[str, Any]]) -> Truth:
    """Return the truth about a case.

    A case whose answer has outputs that the unchanged model does not have, or the other way round,
    is served, and yet not right.
    """
    verdict = verdicts[name]
    if verdict["load"] != "loads":
        return Truth.REJECTED
    if verdict.get("status") != HTTPStatus.OK:
        return Truth.CANNOT_BE_SERVED
    whole = next(each for other, each in verdicts.items() if _is_whole(other, name))
    has_stream = "outputs" not in verdict or "outputs" not in whole
    if has_stream or sorted(verdict["outputs"]) == sorted(whole["outputs"]):
        return Truth.VALID
    return Truth.DOUBTFUL


def _is_whole(other: str, name: str) -> bool:
    """Whether the other case is the model that this case changes."""
    return other.endswith("_as_it_is") and name.startswith(other.removesuffix("as_it_is"))


def write(verdicts: Mapping[str, Mapping[str, Any]]) -> None:
    """Keep the verdicts, one line for each case."""
    lines = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(verdict, ensure_ascii=False)}"
        for name, verdict in sorted(verdicts.items())
    )
    RECORD.write_text("{\n" + lines + "\n}\n", encoding="utf-8")
