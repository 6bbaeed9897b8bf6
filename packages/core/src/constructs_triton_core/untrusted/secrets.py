"""Finds values that look like secrets, so that they are not written anywhere.

A value that is masked without need costs its owner one parameter. A secret that is written costs
more. So the rules prefer to mask.

The forms that secrets have: tokens with the prefix of their issuer, passwords in URLs, random text.

No rule needs a network. The rules prefer to mask, but names of models, paths, ARNs and digests of
images are not secrets. Passphrases, PINs and UUIDs have no form of their own.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from constructs_triton_core.spelling import words_of

__all__ = ["MASK", "holds_secret", "is_secret", "masked"]

#: Beginnings that their issuers publish, so that scanners find a token by them. A name may begin
#: with one of the second group, such as hf_transfer, so only letters and digits may follow there.
_ISSUED = re.compile(
    r"""(?x) (?<![A-Za-z0-9]) (?:
    (?: gh[pousr]_ | github_pat_ | gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|ffct)-
      | (?:sk|rk)_(?:live|test)_ | (?:live|test)_(?:sk|pk|rk)_ | whsec_ | xox[abceoprs]- | xapp-
      | nvapi- | do[opr]_v1_ | AIza | ya29\. | shp(?:at|ca|pa|ss)_ | GOCSPX- | SG\. | wandb_v1_
      | dckr_[po]at_ | gl(?:sa|c)_ | lin_(?:api|oauth)_ | hv[sbr]\.
      | sk-(?:proj|ant|or|svcacct|admin|lf)- | lsv2_[ps][tk]_ | sntry[su]_ | sbp_ | sb_secret_
      | figd_ | tskey-[a-z]+- | pcsk_ | api_org_ | ATATT3 | ATCTT3 | sq0[ac][a-z]{2}- | NRAK-
      | PMAK- | dp\.[a-z]{2,8}\. | CCIPAT_ | rdme_ | AGE-SECRET-KEY- | vc[pka]_
      | FlyV1\  | apify_api_ | ops_eyJ
      ) [A-Za-z0-9_.\-]{6,}
    | (?: hf_ | sk- | npm_ | gsk_ | r8_ | rpa_ | xai- | pplx- | tvly- | jina_ | fw_ | ntn_
      | secret_ | ph[cx]_ | key- | AKCp | LTAI | s\. ) [A-Za-z0-9]{16,}
    | sess[_-](?=[a-z]*[A-Z0-9])[A-Za-z0-9]{10,}
    | pypi-AgE[A-Za-z0-9_\-]{6,}
    | [A-Za-z0-9]{14}\.atlasv1\.
    | (?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}
    | (?<!-)(?:[A-Z0-9]{4,5}-){4,}[A-Z0-9]{4,5}(?![A-Za-z0-9-])  # keys of licenses
    )"""
)
_WORD = (
    r"(?:token|pass(?:word|wd|phrase)|pwd|secret"
    r"|(?:api|access|account|private|signing|encryption)[_-]?key)"
)
#: Not the special tokens of language models, such as pad_token=</s>.
_GIVEN = r"(?!</?\|?\w+\|?>)\S+"
_WRITTEN = re.compile(
    rf"""(?x)
    (?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{{6,}}\.[A-Za-z0-9_-]{{4,}}  # JSON web tokens
    | ://[^\s/?\#@:]*:[^\s/@]+@                                   # URLs with a password
    | ://[^\s/?\#@:]{{8,}}@                                       # URLs with a token
    | (?i:\b(?:thin|oci8?):[^\s/@:]{{1,99}}/[^\s/@]{{1,99}}@)         # Oracle's, with user/password
    | (?i:\bhooks\.slack\.com/\w+/ | \bdiscord(?:app)?\.com/api/webhooks/)
    | -----BEGIN\ [A-Z0-9 ]+-----                                 # PEM
    | (?i:X-Amz-(?:Signature|Credential|Security-Token)|SharedAccessSignature\s
        |[?&](?:sig|signature|token|key)=)
    | (?i:\bbearer\s+[A-Za-z0-9+/=_.-]{{8,}} | \bbasic\s+(?!auth)[A-Za-z0-9+/=_.-]{{8,}})
    | (?<!\d{{12}}:)(?i:{_WORD}["']?\s*[=:]\s*["']?{_GIVEN})
    | (?i:(?<!\S)--?(?:[\w-]*[_-])?{_WORD}\s+(?!-){_GIVEN})       # options
    """
)
#: A digest that says so is not a secret.
_HEX = re.compile(r"(?<!sha256:)(?<!sha512:)(?<![0-9a-fA-F])[0-9a-fA-F]{32,}")
# Without the separators of names and paths, which are rare in random text.
_RANDOM = re.compile(r"[A-Za-z0-9+]{14,}")
#: A secret access key of AWS may have slashes: it has 40 characters.
_ACCESS_KEY = re.compile(r"(?<![A-Za-z0-9/+._:-])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+._:-])")
#: Bits per character. Names of models and paths have less, random letters and digits more.
_ENTROPY = 3.2
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[/+]")
#: Average length of the words of a name such as ResNet50ImageNet; random text changes its kind more
#: often.
_LONGEST_PIECES, _LONGEST_OF_KEYS = 3.0, 3.4
MASK = "***"
#: Words of names, as in HF_TOKEN, apiKey or DB_PASSWORD.
_NAMES = re.compile(
    r"apikey|auth|authorization|bearer|cookie|credentials?|creds|dsn|keys?|pass|passphrase|passwd|password|pat"
    r"|private|pwd|sas|secrets?|signature|token"
)
_ENDINGS = (
    "token",
    "password",
    "passwd",
    "secret",
    "apikey",
    "accesskey",
    "secretkey",
    "credentials",
)

#: The last words of a variable that holds a secret itself, and not its name, file or address.
_LAST_WORDS = frozenset(
    ("token", "password", "passwd", "pwd", "passphrase", "secret", "apikey", "pat", "credentials")
)
_LAST_PAIRS = frozenset(("accesskey", "apikey", "authkey", "privatekey", "secretkey", "signingkey"))
_HARMLESS = re.compile(
    r"""(?ix) | true | false | none | yes | no | on | off | auto | [\d.+-]+   # also nothing
    | (?:arn:|s3://|/|\./|\{\{resolve:) .*                                    # where it is
    | </?\|?\w+\|?> | \[\w+\]                                               # pad_token="</s>"
    """
)


def has_secret_form(value: str) -> bool:
    """Return whether a part of a value has the form of a secret."""
    return _ISSUED.search(value) is not None or _WRITTEN.search(value) is not None


def looks_random(value: str) -> bool:
    """Return whether a part of a value looks like random text, as keys and digests do."""
    if _HEX.search(value):
        return True
    if any(_is_mixed(key, _LONGEST_OF_KEYS) for key in _ACCESS_KEY.findall(value)):
        return True
    return any(_is_mixed(text, _LONGEST_PIECES) for text in _RANDOM.findall(value))


def _is_mixed(text: str, longest_piece: float) -> bool:
    """Whether a string mixes all kinds of characters as random text does, and words do not.

    ``longest_piece`` is the mean length that its pieces may have.
    """
    if not all(re.search(characters, text) for characters in ("[a-z]", "[A-Z]", "[0-9]")):
        return False
    if _entropy(text) < _ENTROPY:
        return False
    mean_length = len(text) / len(_PIECE.findall(text))
    return mean_length <= longest_piece


def _entropy(text: str) -> float:
    """Return the bits of information in each character of a string (Shannon's entropy)."""
    bits = 0.0
    for count in Counter(text).values():
        share = count / len(text)
        bits -= share * math.log2(share)
    return bits


def is_secret(name: str, value: str) -> bool:
    """Return whether the value of a variable or a tag looks like a secret,
    by its name or its form.
    """
    if not value:
        return False
    has_secret_name = any(map(_NAMES.fullmatch, words_of(name))) or name.lower().endswith(_ENDINGS)
    return has_secret_name or has_secret_form(value) or looks_random(value)


def holds_secret(name: str, value: str) -> bool:
    """Return whether a variable certainly holds a secret, for a warning that names it.

    Unlike :func:`is_secret`, this prefers silence: a value has the form of a secret, or the name
    ends like the name of one and the value is no number, path, ARN or special token of a language
    model.
    """
    if has_secret_form(value):
        return True
    words = words_of(name)
    ends_as_secret = bool(words) and (
        words[-1] in _LAST_WORDS or "".join(words[-2:]) in _LAST_PAIRS
    )
    return ends_as_secret and _HARMLESS.fullmatch(value) is None


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
    """Return an object of an answer in which secrets are ``***``.

    A tag has its name in ``Key`` and its value in ``Value``. The members of an ``Environment`` are
    variables.
    """
    if value.keys() >= {"Key", "Value"} and isinstance(value["Value"], str):
        tag = dict(value)
        if is_secret(str(tag["Key"]), tag["Value"]):
            tag["Value"] = MASK
        return tag

    if name == "Environment":
        variables = dict(value)
        for variable, text in value.items():
            if is_secret(variable, text):
                variables[variable] = MASK
        return variables

    return {member: masked(part, member) for member, part in value.items()}
