"""The comparison with AWS's packages reports differences, and the refresh writes them."""

import copy
import json
import zipfile
from pathlib import Path
from typing import Any

import facts_check
import facts_refresh
import sdk_tables

PROJECT = Path(__file__).parents[3]
PUBLISHED = json.loads(
    (PROJECT / "packages/check/tests/facts/published_tritonserver_images.json").read_text()
)


def _images() -> dict[str, Any]:
    """The image table in the form of sagemaker-core."""
    return {
        "versions": {
            version: {"registries": dict(registries), "repository": "sagemaker-tritonserver"}
            for version, registries in PUBLISHED["versions"].items()
        }
    }


def test_every_difference_of_the_tables_is_reported() -> None:
    """Equal tables give no line; a new version, another account,
    and a changed Region give one each.
    """
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


def test_different_uri_is_reported() -> None:
    """An image of another name is reported; equal ones, and one that neither has, are not."""
    repository = "dkr.ecr.eu-west-1.amazonaws.com/sagemaker-tritonserver"
    theirs = {
        "eu-west-1 26.05 gpu": f"763104351884.{repository}:26.05-py3",
        "cn-north-1 26.05 gpu": None,
        "cn-north-1 25.09 cpu": (
            "727897471807.dkr.ecr.cn-north-1.amazonaws.com.cn/sagemaker-tritonserver:x"
        ),
    }
    (line,) = facts_check._uris(theirs)
    assert line.startswith("image cn-north-1 25.09 cpu: we have None")


def test_refresh_adds_a_release_and_lists_what_to_look_up() -> None:
    """A new release gets its Regions, facts that no package states are listed,
    and the rest is unchanged.
    """
    facts = json.loads(facts_refresh.IMAGES.read_text())
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


def test_refresh_keeps_the_format_of_the_files() -> None:
    """Rendering an unchanged file gives the same bytes, so a diff shows only changes."""
    for path in (facts_refresh.IMAGES, facts_refresh.INSTANCE_TYPES):
        text = path.read_text(encoding="utf-8")
        assert facts_refresh.render(json.loads(text)) + "\n" == text


def test_tables_of_the_sdk_that_moved_are_reported(tmp_path: Path) -> None:
    """Tables with our values give no line; another account, a moved file and a missing name do."""

    def lines(**files: str) -> list[str]:
        wheel = tmp_path / "sagemaker-2.300.0-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            for name, text in files.items():
                archive.writestr(name, text)
        return list(sdk_tables.wheel_differences(wheel, sdk_tables.TABLES["sagemaker<3"]))

    accounts = json.loads(facts_refresh.IMAGES.read_text())
    legacy = f"{sdk_tables.LEGACY_NAME} = {accounts['legacy_accounts']!r}\n"
    table = _images()
    good = {sdk_tables.SDK_TABLE: json.dumps(table), sdk_tables.LEGACY_TABLE: legacy}
    assert lines(**good) == []
    table["versions"]["25.09"]["registries"]["eu-west-1"] = "111111111111"
    table["versions"]["27.01"] = {"registries": {}}
    changed = {sdk_tables.SDK_TABLE: json.dumps(table), sdk_tables.LEGACY_TABLE: "ACCOUNTS = {}\n"}
    assert lines(**changed) == [
        "sagemaker-2.300.0: 25.09 in eu-west-1 is in account 111111111111, we have 763104351884",
        "sagemaker-2.300.0: has the image 27.01, which we lack",
        (
            f"sagemaker-2.300.0: {sdk_tables.LEGACY_TABLE} has "
            f"no {sdk_tables.LEGACY_NAME}; the table has moved"
        ),
    ]
    moved = "sagemaker/new/sagemaker-tritonserver.json"
    assert lines(**{moved: "{}", sdk_tables.LEGACY_TABLE: legacy}) == [
        f"sagemaker-2.300.0: {sdk_tables.SDK_TABLE} has moved; the wheel has {moved}"
    ]
