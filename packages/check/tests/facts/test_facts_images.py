"""AWS's Triton images: their Regions and content."""

import json
import re
from pathlib import Path

import pytest

from constructs_triton_core.errors import FactNotFoundError, InvalidValueError
from constructs_triton_core.facts.versions import is_at_least, parse_version
from triton_model_check.facts import images

PUBLISHED = json.loads((Path(__file__).parent / "published_tritonserver_images.json").read_text())


def test_accounts_are_the_published_ones() -> None:
    """For every Region and version, the account is the one that sagemaker-core publishes."""
    ours = {}
    for version in images.published_versions():
        regions = images.regions(version)
        if regions and not images.image_version(version).is_legacy:
            ours[version] = {region: images.account(region, version) for region in regions}
    assert ours == PUBLISHED["versions"]


@pytest.mark.parametrize(
    ("region", "version", "cpu", "uri"),
    [
        ("eu-west-1", "26.05", False, "763104351884.dkr.ecr.eu-west-1.amazonaws.com/{}:26.05-py3"),
        (
            "eu-west-1",
            "26.05",
            True,
            "763104351884.dkr.ecr.eu-west-1.amazonaws.com/{}:26.05-py3-cpu",
        ),
        (
            "cn-north-1",
            "25.04",
            False,
            "727897471807.dkr.ecr.cn-north-1.amazonaws.com.cn/{}:25.04-py3",
        ),
        ("us-east-1", "23.10", False, "785573368785.dkr.ecr.us-east-1.amazonaws.com/{}:23.10-py3"),
        ("us-east-1", "23.12", False, "763104351884.dkr.ecr.us-east-1.amazonaws.com/{}:23.12-py3"),
    ],
)
def test_uri_of_partition_processor_and_age(region: str, version: str, cpu: bool, uri: str) -> None:
    """The URI has the partition's domain, the processor's tag, and other accounts before 23.12."""
    assert images.image_uri(region, version, cpu=cpu) == uri.format("sagemaker-tritonserver")


@pytest.mark.parametrize(
    "region",
    [
        *("af-south-1", "ap-northeast-3", "ap-southeast-5", "ap-southeast-7"),
        *("ca-west-1", "il-central-1", "mx-central-1"),
    ],
)
def test_regions_that_region_info_lacks_have_the_default_version(region: str) -> None:
    """Regions that CDK's own table of accounts lacks still have an image (another
    library fails for them).
    """
    account = images.account(region, images.DEFAULT_VERSION)
    uri = images.image_uri(region, images.DEFAULT_VERSION, cpu=False)
    assert uri.startswith(f"{account}.dkr.ecr.{region}.")


def test_default_version_is_the_newest() -> None:
    """The default is the newest version whose Regions are published (another
    library hard-codes 23.02).
    """
    assert images.newest_version("us-east-1") == images.DEFAULT_VERSION == "26.05"


@pytest.mark.parametrize(
    ("region", "version", "message"),
    [
        (
            "cn-north-1",
            "26.05",
            r'cn-north-1, got "26\.05".*use "25\.04", the newest in that Region',
        ),
        (
            "us-east-1",
            "26.04",
            r"does not list its Regions.*\"26\.05\", the newest listed in us-east-1",
        ),
        ("us-east-1", "23.11", r"publishes no Triton image of this release"),
        ("us-gov-west-1", "26.05", r"got \"us-gov-west-1\"; use your own image"),
        ("eu-wst-1", "26.05", r"did you mean \"eu-west-1\""),
    ],
)
def test_error_of_an_unpublished_image_has_an_alternative(
    region: str, version: str, message: str
) -> None:
    """Not in the Region, released without Regions, never released, no images in
    the partition, misspelled.
    """
    with pytest.raises(FactNotFoundError, match=message):
        images.image_uri(region, version, cpu=False)


@pytest.mark.parametrize(
    ("version", "right"),
    [
        ("26.5", '"26.05"'),
        ("24.9", '"24.09"'),
        ("25.3", '"25.03"'),
        ("25.1", '"25.01" or "25.10"'),
        ("25.12-py3", '"25.12"'),
        ("26.13", '"26.05"'),
        ("latest", '"26.05"'),
        ("", '"26.05"'),
    ],
)
def test_malformed_version_is_an_error(version: str, right: str) -> None:
    """A version is a year and a month; the error has those that were given."""
    with pytest.raises(
        InvalidValueError, match=f"^image_version: .*; write it as {re.escape(right)}$"
    ):
        images.image_version(version)


def test_first_published_version_is_the_oldest_with_regions() -> None:
    """No Region is listed for 25.03 and 26.03; a version that is not released
    is returned unchanged.
    """
    assert images.first_published("25.03") == "25.04"
    assert images.first_published("99.01") == "99.01"
    assert images.image_version("26.03").is_published
    assert images.regions("26.03") == ()


def test_versions_compare_by_time() -> None:
    """Releases are ordered by date, also across years."""
    ordered = ["24.01", "25.09", "25.10", "26.05"]
    assert sorted(["25.09", "26.05", "24.01", "25.10"], key=parse_version) == ordered
    assert is_at_least("25.10", "25.09")
    assert not is_at_least("24.12", "25.01")


def test_content_of_an_image_depends_on_its_release() -> None:
    """Python, TensorFlow, the generate endpoints and the oldest GPU depend on the release."""
    old, new = images.image_version("24.09"), images.image_version("26.05")
    assert (old.python, new.python) == ("3.10", "3.12")
    assert "tensorflow" not in old.removed_backends
    assert {"tensorflow", "tensorflow_graphdef", "tensorflow_savedmodel"} <= new.removed_backends
    assert (old.has_inference_type, new.has_inference_type) == (False, True)
    assert (old.min_compute_capability, new.min_compute_capability) == ("6.0", "7.5")
    assert (old.newest_compute_capability_major, new.newest_compute_capability_major) == (9, 12)


def test_python_of_every_published_image_is_known() -> None:
    """The images of the AWS Machine Learning Blog's articles, 23.02 and 23.03, have Python 3.8."""
    pythons = {
        version: images.image_version(version).python for version in images.published_versions()
    }
    assert set(pythons.values()) == {"3.8", "3.10", "3.12"}
    assert (pythons["23.02"], pythons["23.03"], pythons["23.05"]) == ("3.8", "3.8", "3.10")


def test_unpublished_release_has_the_values_of_its_time() -> None:
    """A release newer than the table, as in your own image,
    has the values of all releases of its time.
    """
    image = images.image_version("27.01")
    assert not image.is_published
    assert (image.min_compute_capability, image.has_inference_type, image.python) == (
        "7.5",
        True,
        None,
    )
