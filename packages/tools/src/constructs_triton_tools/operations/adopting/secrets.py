"""Finds values that look like secrets, so that they are not written anywhere.

A value that is masked without need costs its owner one parameter. A secret that is written costs more. So
the rules prefer to mask.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from constructs_triton_tools.operations.adopting.members import words_of
from constructs_triton_tools.operations.adopting.secret_forms import has_secret_form, looks_random

MASK = "***"

#: Words of names, as in HF_TOKEN, apiKey or DB_PASSWORD.
_NAMES = re.compile(
    r"apikey|auth|authorization|bearer|cookie|credentials?|creds|dsn|keys?|pass|passphrase|passwd|password|pat"
    r"|private|pwd|sas|secrets?|signature|token"
)
_ENDINGS = ("token", "password", "passwd", "secret", "apikey", "accesskey", "secretkey", "credentials")


def is_secret(name: str, value: str) -> bool:
    """Return whether the value of a variable or a tag looks like a secret, by its name or its form."""
    if not value:
        return False
    return _has_secret_name(name) or has_secret_form(value) or looks_random(value)


def masked(value: Any, name: str = "") -> Any:
    """Return an answer of AWS in which secrets are ``***``, with times as strings."""
    if isinstance(value, Mapping):
        return _masked_mapping(value, name)
    if isinstance(value, list | tuple):
        return [masked(each, name) for each in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str):
        return MASK if has_secret_form(value) else value
    return value if isinstance(value, bool | int | float) or value is None else str(value)


def _masked_mapping(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    if value.keys() >= {"Key", "Value"} and isinstance(value["Value"], str):
        is_hidden = is_secret(str(value["Key"]), value["Value"])
        return {**value, "Value": MASK if is_hidden else value["Value"]}
    if name == "Environment":
        return {each: MASK if is_secret(each, text) else text for each, text in value.items()}
    return {each: masked(part, each) for each, part in value.items()}


def _has_secret_name(name: str) -> bool:
    return any(map(_NAMES.fullmatch, words_of(name))) or name.lower().endswith(_ENDINGS)
