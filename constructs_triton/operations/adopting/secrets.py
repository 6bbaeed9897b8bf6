"""Finds values that look like secrets, so that they are not written anywhere.

A value that is masked without need costs its owner one parameter. A secret that is written costs more. So
the rules prefer to mask.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from constructs_triton.operations.adopting.members import words_of

__all__ = ["MASK", "is_secret", "masked"]

MASK = "***"

#: Words of names, as in HF_TOKEN, apiKey or DB_PASSWORD.
_NAMES = re.compile(
    r"apikey|auth|authorization|bearer|cookie|credentials?|creds|dsn|keys?|pass|passphrase|passwd|password|pat"
    r"|private|pwd|sas|secrets?|signature|token"
)
_ENDINGS = ("token", "password", "passwd", "secret", "apikey", "accesskey", "secretkey", "credentials")
_SHAPES = re.compile(
    r"""(?x)
    (?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}         # AWS access keys
    | (?<![A-Za-z0-9])(?:gh[pousr]_|github_pat_|glpat-|hf_|sk-|rk_live_|sk_live_|xox[abeprs]-|nvapi-|npm_|
        pypi-|dop_v1_|shpat_|AIza|ya29\.|SG\.|wandb_)[A-Za-z0-9_.\-]{6,}
    | eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{4,}                     # JSON web tokens
    | [A-Za-z][A-Za-z0-9+.-]*://[^\s/?\#@]*:[^\s/@]+@             # URLs with a password
    | [A-Za-z][A-Za-z0-9+.-]*://[^\s/?\#@:]{8,}@                  # URLs with a token
    | -----BEGIN\ [A-Z0-9 ]+-----                                 # PEM
    | (?i:X-Amz-(?:Signature|Credential|Security-Token)|[?&](?:sig|signature|token|key)=)
    | (?i:\b(?:bearer|basic)\s+[A-Za-z0-9+/=_.-]{8,})
    | (?i:(?:token|password|passwd|pwd|secret|api[_-]?key|access[_-]?key)["']?\s*[=:]\s*\S+)
    """
)
_HEX = re.compile(r"[0-9a-fA-F]{32,}")
# Without the separators of names and paths, which are rare in random text.
_RANDOM = re.compile(r"[A-Za-z0-9+]{14,}")
#: Bits per character. Names of models and paths have less, random letters and digits more.
_ENTROPY = 3.2


def is_secret(name: str, value: str) -> bool:
    """Return whether the value of a variable or a tag looks like a secret, by its name or its form."""
    if not value:
        return False
    return _has_secret_name(name) or _SHAPES.search(value) is not None or _looks_random(value)


def masked(value: Any, name: str = "") -> Any:
    """Return an answer of AWS in which secrets are ``***``, with times as strings.

    Args:
        value: The answer, or a part of it.
        name: Name of the member that it is.
    """
    if isinstance(value, Mapping):
        return _masked_mapping(value, name)
    if isinstance(value, list | tuple):
        return [masked(each, name) for each in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str):
        return MASK if _SHAPES.search(value) else value
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


def _looks_random(value: str) -> bool:
    if _HEX.search(value):
        return True
    return any(map(_is_mixed, _RANDOM.findall(value)))


def _is_mixed(text: str) -> bool:
    has_all = all(re.search(each, text) for each in ("[a-z]", "[A-Z]", "[0-9]"))
    counts = Counter(text).values()
    return has_all and -sum(n / len(text) * math.log2(n / len(text)) for n in counts) >= _ENTROPY
