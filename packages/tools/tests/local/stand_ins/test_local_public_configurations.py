"""How many public configurations run on a developer's machine."""

from __future__ import annotations

from count_local_models import WITH_FLAG, WITHOUT_FLAG, read_configurations, share

from constructs_triton_tools.local.stand_ins.stand_ins import FRAMEWORKS


def test_the_share_of_public_configurations_that_run_is_as_promised() -> None:
    """At least 71 percent run without a flag, and 83 percent with stand-ins."""
    configurations = read_configurations()
    assert len(configurations) > 400
    assert share(configurations, WITHOUT_FLAG) >= 0.71
    assert share(configurations, {**WITHOUT_FLAG, **WITH_FLAG}) >= 0.83


def test_backends_that_count_have_a_stand_in() -> None:
    """The list of backends is that of the package, and Python."""
    assert WITHOUT_FLAG.keys() == {"python", *FRAMEWORKS}
