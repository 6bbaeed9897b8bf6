"""The index of the models of a multi-model endpoint."""

from __future__ import annotations

import io
from typing import Any

import pytest

from constructs_triton_client import ModelIndex
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.model_index import split_s3_uri

TEXT = '{"version": 1, "target_models": {"resnet": "resnet-3f.tar.gz"}}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON, got "),
        ("[" * 100_000, "is not JSON, got "),
        ("[]", r'must be {"version": 1, "target_models": {name: key}}, got \[\]; '),
        ('{"version": 2, "target_models": {}}', "must be "),
        ('{"version": 1}', "must be "),
        ('{"version": 1, "target_models": []}', "must be "),
        ('{"version": 1, "target_models": {"a": 1}}', "must be "),
        ('{"version": 1, "target_models": {"a": ""}}', "must be "),
        ('{"version": 2, "x": "' + "y" * 500 + '"}', "must be "),
    ],
)
def test_malformed_index_is_rejected(text: str, message: str) -> None:
    """An index of another form or version names its source and the command that writes it."""
    with pytest.raises(InvalidValueError, match=rf"^s3://b/index\.json: {message}") as caught:
        ModelIndex.from_json(text, "s3://b/index.json")
    assert str(caught.value).endswith("run `constructs-triton models sync`, to write it again")
    assert len(str(caught.value)) < 320


def test_source_defaults_to_the_file_name() -> None:
    """Without a source the error names index.json."""
    with pytest.raises(InvalidValueError, match=r"^index\.json: is not JSON"):
        ModelIndex.from_json("")


def test_index_is_read_from_s3() -> None:
    """The object is read with the given client, and its URI is the source of errors."""

    class Client:
        text = TEXT

        def get_object(self, **arguments: Any) -> dict[str, Any]:
            assert arguments == {"Bucket": "bucket", "Key": "models/index.json"}
            return {"Body": io.BytesIO(self.text.encode())}

    client = Client()
    index = ModelIndex.from_s3("s3://bucket/models/index.json", client)
    assert index == ModelIndex({"resnet": "resnet-3f.tar.gz"})
    client.text = "{}"
    with pytest.raises(InvalidValueError, match=r"^s3://bucket/models/index\.json: must be"):
        ModelIndex.from_s3("s3://bucket/models/index.json", client)


def test_names_are_looked_up() -> None:
    """A model name becomes its archive, an archive stays, and an unknown name gets a suggestion."""
    index = ModelIndex.from_json(TEXT)
    assert index.target_model("resnet") == "resnet-3f.tar.gz"
    assert index.target_model("other.tar.gz") == "other.tar.gz"
    for name, hint in (("resnt", 'did you mean "resnet"?'), ("bert", 'use one of "resnet"')):
        with pytest.raises(InvalidValueError) as caught:
            index.target_model(name)
        what = f'target_model: index.json has 1 model, and none is named "{name}"'
        assert str(caught.value) == f"{what}; {hint}"
    with pytest.raises(InvalidValueError, match=r"has 0 models, .*; add models with"):
        ModelIndex({}).target_model("bert")


@pytest.mark.parametrize(
    ("source", "command"),
    [
        ("s3://b/a b/index.json", "constructs-triton models list --bucket b --prefix 'a b/'"),
        ("s3://b/index.json", "constructs-triton models list --bucket b --prefix ''"),
        ("http://127.0.0.1:8080/i.json", "curl http://127.0.0.1:8080/i.json"),
        ("index.json", ""),
    ],
)
def test_command_that_lists_all_names(source: str, command: str) -> None:
    """An index that was read from S3 or from a local run can be listed;
    names are quoted for a shell.
    """
    assert ModelIndex({}, source).listing == command


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("s3://b/k", ("b", "k")),
        ("s3://b/a/b c?d#e", ("b", "a/b c?d#e")),
        ("s3://b/a/", ("b", "a/")),
        ("s3://b//a", ("b", "/a")),
    ],
)
def test_s3_uris_are_split(uri: str, expected: tuple[str, str]) -> None:
    """The key is everything after the bucket, with characters that have a meaning in other URIs."""
    assert split_s3_uri(uri) == expected


@pytest.mark.parametrize(
    "uri",
    ["", "bucket/key", "http://b/k", "s3://", "s3://b", "s3://b/", "s3://b//", "s3:///k", "s3://["],
)
def test_malformed_s3_uris_are_rejected(uri: str) -> None:
    """A URI needs the scheme s3, a bucket and a key."""
    with pytest.raises(
        InvalidValueError, match=r"^S3 URI: must be s3://bucket/key, got .*; add the bucket"
    ):
        split_s3_uri(uri)


def test_model_of_a_stack_that_was_removed_is_known() -> None:
    """The error for its callers says that it was removed, and what restores it."""
    text = '{"version": 1, "target_models": {"b": "b-1.tar.gz"}, "deployed": {"a": "S", "b": "S"}}'
    index = ModelIndex.from_json(text)
    assert index.removed == ("a",)
    with pytest.raises(InvalidValueError, match=r"was deployed and removed since; .* models add"):
        index.target_model("a")
