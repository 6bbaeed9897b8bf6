"""The comparison with AWS's packages finds what differs, and the refresh writes it down."""

import copy
import json
import sys
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).parents[3]
PUBLISHED = json.loads((Path(__file__).parent / "published_tritonserver_images.json").read_text())


@pytest.fixture(autouse=True)
def _tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(PROJECT / "tools"), *sys.path])


def _images() -> dict[str, Any]:
    """The image table in the form of sagemaker-core."""
    return {
        "versions": {
            version: {"registries": dict(registries), "repository": "sagemaker-tritonserver"}
            for version, registries in PUBLISHED["versions"].items()
        }
    }


def test_equal_tables_have_no_difference_and_changed_ones_have_each() -> None:
    """A new version, another account, and a Region more or less are each a line."""
    import facts_check

    theirs = _images()
    assert list(facts_check._accounts(theirs)) == []
    theirs["versions"]["26.09"] = theirs["versions"].pop("23.12")
    theirs["versions"]["25.09"]["registries"]["eu-west-1"] = "111111111111"
    del theirs["versions"]["25.04"]["registries"]["ca-west-1"]
    found = "\n".join(facts_check._accounts(theirs))
    assert "image versions: only we have 23.12" in found
    assert "image versions: we lack 26.09" in found
    assert "accounts of 25.09: we lack ('eu-west-1', '111111111111')" in found
    assert "accounts of 25.04: only we have ('ca-west-1', '204538143572')" in found


def test_other_uri_is_a_difference() -> None:
    """An image that they have and we refuse, and one of another name, are found; the same is not."""
    import facts_check

    repository = "dkr.ecr.eu-west-1.amazonaws.com/sagemaker-tritonserver"
    theirs = {
        "eu-west-1 26.05 gpu": f"763104351884.{repository}:26.05-py3",
        "cn-north-1 26.05 gpu": None,
        "cn-north-1 25.09 cpu": "727897471807.dkr.ecr.cn-north-1.amazonaws.com.cn/sagemaker-tritonserver:x",
    }
    (line,) = facts_check._uris(theirs)
    assert line.startswith("image cn-north-1 25.09 cpu: we say None")


def test_refresh_adds_a_release_and_says_what_to_look_up() -> None:
    """A new release gets its Regions; what no package states is listed; the rest stays as it was."""
    import facts_refresh

    facts = json.loads((PROJECT / "constructs_triton" / "facts" / "images.json").read_text())
    before, theirs = copy.deepcopy(facts), _images()
    assert facts_refresh.refresh_images(facts, theirs) == []
    assert facts == before
    theirs["versions"]["26.09"] = {"registries": {"us-east-1": "763104351884"}}
    assert facts_refresh.refresh_images(facts, theirs) == [
        "images.json: released_on, python and cuda of 26.09"
    ]
    assert next(iter(facts["versions"])) == "26.09"
    assert "us-east-1" not in facts["versions"]["26.09"]["regions_without"]
    assert facts["versions"]["26.05"] == before["versions"]["26.05"]


def test_refresh_writes_the_files_as_they_are() -> None:
    """Rendering a file that did not change gives the same bytes, so a difference shows only what changed."""
    import facts_refresh

    for name in ("images", "instance_types"):
        text = (PROJECT / "constructs_triton" / "facts" / f"{name}.json").read_text(encoding="utf-8")
        assert facts_refresh.render(json.loads(text)) + "\n" == text
