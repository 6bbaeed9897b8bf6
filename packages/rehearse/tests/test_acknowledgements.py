"""Problems of a rehearsal that the user has acknowledged."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_assembly import endpoint, write_assembly

from cdk_rehearse import rehearse
from cdk_rehearse.updates.acknowledging import acknowledged, expect_codes
from cdk_rehearse.updates.problems import problem
from cdk_rehearse.updates.report import Rehearsal
from constructs_triton_core.errors import InvalidValueError

LEFTOVER, STOPS = "rehearse-leftover", "rehearse-serving-stops"
FOUND = Rehearsal(
    {"Shop": "UPDATE_COMPLETE"},
    problems=(
        problem(LEFTOVER, "DigitsBucket0F23", "remains"),
        problem(STOPS, "endpoint Shop-Digits4A1B-7T5M0LKXXV08", "stops"),
        problem("rehearse-callers-fail", "endpoint shared, model", "fails"),
        problem("rehearse-update-fails", "Shop (aws://123456789012/eu-west-1)", "fails"),
    ),
    construct_paths={"DigitsBucket0F23": "Digits/Bucket", "Digits4A1B": "Digits"},
)


@pytest.mark.parametrize(
    ("acknowledgement", "count"),
    [
        (LEFTOVER, 1),
        (f"{LEFTOVER}@Digits/Bucket", 1),
        (f"{LEFTOVER}@Digits", 1),
        (f"{LEFTOVER}@DigitsBucket0F23", 1),
        (f"{STOPS}@endpoint Shop-Digits4A1B-AAAAAAAAAAAA", 1),
        (f"{STOPS}@Shop-Digits4A1B-7T5M0LKXXV08", 1),
        (f"{STOPS}@Digits", 1),
        ("rehearse-callers-fail@shared", 1),
        ("rehearse-update-fails@Shop", 1),
        (f"{LEFTOVER}@Digit", 0),
        (f"{LEFTOVER}@Bucket", 0),
        (f"{STOPS}@Shop", 0),
    ],
)
def test_place_is_what_the_report_prints(acknowledgement: str, count: int) -> None:
    """A construct or one above it, a logical ID or an endpoint;
    generated ends of names do not matter.
    """
    found = acknowledged(FOUND, (acknowledgement,))
    assert len(found.acknowledged) == count
    assert len(found.problems) == 4 - count
    assert found.unused_acknowledgements == (() if count else (acknowledgement,))


def test_unknown_code_has_the_nearest_ones() -> None:
    """A misspelled code does not pass as one that matches nothing."""
    with pytest.raises(InvalidValueError, match='"rehearse-leftover"'):
        expect_codes(["rehearse-leftovers@Digits"])


@pytest.mark.e2e
@pytest.mark.xdist_group("loopback_stack")
def test_acknowledged_error_does_not_count(tmp_path: Path) -> None:
    """A rehearsal with an acknowledged error has no error."""
    old, new = (
        write_assembly(tmp_path / "old", endpoint()),
        write_assembly(tmp_path / "new", endpoint(name="letters")),
    )
    known = ["rehearse-endpoint-replaced@digits", "rehearse-leftover"]
    found = rehearse(old, new, failures="none", orders=1, acknowledge=known)
    assert found.errors == []
    assert [problem.code for problem in found.acknowledged] == ["rehearse-endpoint-replaced"]
    assert found.unused_acknowledgements == ("rehearse-leftover",)
