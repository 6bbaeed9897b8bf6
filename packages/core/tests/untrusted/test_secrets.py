"""Values that look like secrets, by their names or their forms."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from cpu_limit import cpu_limit

from constructs_triton_core.untrusted.secrets import MASK, is_secret, masked

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
    "A1": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "A2": "AccountName=x;AccountKey=abc+def/ghi==;EndpointSuffix=core.windows.net",
    "A3": "dckr_pat_abcdEFGHijklMNOP",
    "A4": "glsa_abcdefghij_1234",
    "A5": "lin_api_abcdefghijklmnopqrstuvwxyz012345",
    "A6": "sess_ABCDEFGHIJKLMNOP",
    "A7": "--level 1 --api-key abcdef123",
    "A8": "--hf-token abcdef123",
    "A9": "jdbc:oracle:thin:scott/tiger@//h:1521/s",
    "B1": "hvs.abcdefghijklmnop",
    "B2": "s.abcdefghijklmnopqrst",
    "B3": "gsk_abcdefghijklmnopqrst",
    "B4": "glrt-abcdefghij",
    "B5": "ABCD-EFGH-IJKL-MNOP-QRST",
    "B6": "https://hooks.slack.com/services/T00000000/B00000000/abcdefghijkl",
    "B7": "signing_key: abc",
    "B8": "redis://:word@cache:6379/0",
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
    "M1": "laion/CLIP-ViT-H-14-laion2B-s32B-b79K",
    "M2": "hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4",
    "M3": "ResNet50V2ImageNetClassifier",
    "M4": "XGBoostFraudDetectorV20240901",
    "M5": "sk-learn-pipeline",
    "U1": "s3://b/Team/Project2024/RunNumber7/ModelArtifacts/Final/output",
    "U2": "/opt/ml/Models/Bert2/VocabFiles/SpecialTokens/Final/Config",
    "U3": "TitanEmbedText/Version2/ModelArtifact/Pr",
    "U4": "arn:aws:secretsmanager:us-east-1:123456789012:secret:prod/hub-AbCdEf",
    "U5": f"{'1' * 12}.dkr.ecr.eu-west-1.amazonaws.com/team/triton@sha256:{'9f86d081' * 8}",
    "U6": "redis://cache.internal:6379/0",
    "U7": "jdbc:oracle:thin:@//h:1521/s",
    "O1": "--tokenizer-mode auto --api-key-header X-Api-Key",
    "O2": "pad_token=</s>",
    "O3": "eos_token: <|eot_id|>",
    "O4": "hf_transfer",
    "O5": "npm_config_prefix=/opt/node",
    "O6": "pypi-mirror.internal",
    "O7": "Basic authentication",
    "O8": "AccountName=models;EndpointSuffix=core.windows.net",
    "O9": "550e8400-e29b-41d4-a716-446655440000",
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


@pytest.mark.parametrize(
    "part", ["a", "-a", "aB1", "a://", "ABCD-", "thin:a/", "eyJ", " -a_", "--w_"]
)
def test_long_value_takes_linear_time(part: str) -> None:
    """No form is searched from each character to the end."""
    with cpu_limit():
        is_secret("x", part * (500_000 // len(part)))
