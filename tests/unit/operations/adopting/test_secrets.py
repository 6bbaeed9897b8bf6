"""Values that look like secrets, by their names or their forms."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from constructs_triton.operations.adopting.secrets import MASK, is_secret, masked

#: Each has the form of a real secret, and is none.
SECRETS = {
    "HF_TOKEN": "short",
    "DB_PASSWORD": "12345678",
    "apiKey": "x",
    "AWS_ACCESS": "AKIAABCDEFGHIJKLMNOP",
    "GIT": "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "HUB": "hf_abcdefghijklmnopqrstuvwxyz",
    "SESSION": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    "DATABASE_URL": "postgres://user:word@db.internal:5432/models",
    "CERTIFICATE": "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----",
    "BLOB": "q7Zt1LmX9vR4kP2sWc8YdN5bJfH3aEoG",
    "DIGEST": "9f86d081884c7d659a2feaa0c55ad015",
    "REPOSITORY": "https://x-access-gho:@github.com".replace(":@", "abcdef@"),
    "DOWNLOAD": "https://b.s3.amazonaws.com/m?X-Amz-Signature=abc",
    "ARGUMENTS": "--level=1 --password=hunter2",
    "OPTIONS": '{"token": "abc"}',
    "HEADER": "Bearer abcdefghijkl",
}
HARMLESS = {
    "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "bert-large-uncased-whole-word-masking",
    "SAGEMAKER_TRITON_SHM_DEFAULT_BYTE_SIZE": "16777216000",
    "SAGEMAKER_TRITON_LOG_VERBOSE": "false",
    "TOKENIZERS_PARALLELISM": "false",
    "MAX_TOKENS": "512",
    "MODEL_ID": "sentence-transformers/all-MiniLM-L6-v2",
    "ENDPOINT": "https://models.example.com/v1?stage=beta",
    "MONKEY": "banana",
    "EMPTY_TOKEN": "",
}


@pytest.mark.parametrize(("name", "value"), SECRETS.items())
def test_secret_is_found(name: str, value: str) -> None:
    """A value is a secret if its name or its form says so."""
    assert is_secret(name, value)
    assert value not in json.dumps(masked({"Environment": {name: value}}))
    assert masked([{"Key": name, "Value": value}]) == [{"Key": name, "Value": MASK}]


@pytest.mark.parametrize(("name", "value"), HARMLESS.items())
def test_other_value_is_kept(name: str, value: str) -> None:
    """Settings and names of models are not secrets."""
    assert not is_secret(name, value)
    assert masked({"Environment": {name: value}}) == {"Environment": {name: value}}


def test_answers_are_masked_everywhere() -> None:
    """Known forms are masked in any member, and names, ARNs and digests stay."""
    digest = "repository@sha256:" + "0" * 64
    answer = {
        "FailureReason": "git clone https://user:word@host failed",
        "Image": digest,
        "CreationTime": datetime(2023, 4, 5, tzinfo=UTC),
        "Count": 2,
        "Parts": [{"AssumeRolePolicyDocument": "token=abcdef"}],
    }
    assert masked(answer) == {
        "FailureReason": MASK,
        "Image": digest,
        "CreationTime": "2023-04-05T00:00:00+00:00",
        "Count": 2,
        "Parts": [{"AssumeRolePolicyDocument": MASK}],
    }
