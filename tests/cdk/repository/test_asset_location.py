"""The place of an asset, which is read with two calls instead of six."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import aws_cdk as cdk
import jsii
import pytest

from constructs_triton.cdk.repository.archive_assets import AssetLocation, StackAssets


class OwnSynthesizer(cdk.DefaultStackSynthesizer):
    """A synthesizer of a user, in Python."""


def location(folder: Path, synthesizer: cdk.IStackSynthesizer | None = None) -> AssetLocation:
    environment = cdk.Environment(account="123456789012", region="eu-west-1")
    stack = cdk.Stack(cdk.App(outdir=str(folder)), "Test", env=environment, synthesizer=synthesizer)
    return StackAssets(stack).add_file(folder / "file.gz", "0123.tar", "File")


def test_it_has_the_bucket_and_the_key(tmp_path: Path) -> None:
    """The key has the digest of the archive and ends in .tar.gz."""
    found = location(tmp_path)
    assert "cdk-hnb659fds-assets-" in found.bucket_name
    assert found.object_key == "0123.tar.gz"


def test_it_is_the_same_without_the_undecorated_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another version of jsii may have no undecorated function;
    then the public method is called.
    """
    found, invoke = location(tmp_path), jsii.invoke
    monkeypatch.setattr(jsii, "invoke", partial(invoke))
    assert location(tmp_path) == found


def test_it_is_that_of_a_synthesizer_written_in_python(tmp_path: Path) -> None:
    """The methods of a class of the user are called."""
    found = location(tmp_path, OwnSynthesizer(qualifier="own"))
    assert ("cdk-own-assets-" in found.bucket_name, found.object_key) == (True, "0123.tar.gz")
