"""The list of archives as JSON."""

from __future__ import annotations

import json

from constructs_triton_functions.model_sync.manifest import ListedArchive, Manifest


def test_values_that_are_not_known_are_left_out() -> None:
    """By default an archive has no size and comes from the bucket of the CDK assets."""
    manifest = Manifest.of([ListedArchive("net", "1.tar.gz", "net-1.tar.gz")])
    rows = json.loads(manifest.to_json())["archives"]
    assert rows == [{"Name": "net", "SourceKey": "1.tar.gz", "TargetModel": "net-1.tar.gz"}]


def test_manifest_is_read_as_written() -> None:
    """Reading the JSON gives the same archives, with sizes and buckets."""
    archives = [ListedArchive("b", "2", "b-2", 7, 0), ListedArchive("a", "1", "a-1", None, 1)]
    manifest = Manifest.of(archives)
    assert [archive.name for archive in manifest.archives] == ["a", "b"]
    assert Manifest.from_json(manifest.to_json()) == manifest
