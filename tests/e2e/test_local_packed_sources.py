"""`local up` of a model repository and of an archive, without a template."""

from __future__ import annotations

from pathlib import Path

import pytest
from local_assembly import adding_model, below, write_archive, write_files
from test_local_endpoints import Caller
from triton_server import needs_server

from constructs_triton_tools.local import LocalEndpoint
from constructs_triton_tools.local.server.namespaces import why_no_private_mounts

pytestmark = [pytest.mark.e2e, needs_server, pytest.mark.xdist_group("local_endpoints")]
PLACES = """
import glob
SINGLE, MULTI = "/opt/ml/model/m/1/ten", "/opt/ml/models/*/model/m/1/ten"
(FOUND,) = glob.glob(SINGLE) or glob.glob(MULTI)
"""


NO_MOUNTS = why_no_private_mounts()
needs_private_mounts = pytest.mark.skipif(
    NO_MOUNTS is not None, reason=f"no private /opt/ml here: {NO_MOUNTS}"
)


def _model_with_absolute_path() -> dict[str, str]:
    files = adding_model(0)
    code = PLACES + files["1/model.py"].replace("(x + 0)", "(x + float(open(FOUND).read()))")
    return below("m", {**files, "1/model.py": code, "1/ten": "10"})


@needs_private_mounts
def test_an_archive_runs_directly_and_finds_its_files_below_opt_ml(tmp_path: Path) -> None:
    """The endpoint is named after the file; a path that works on SageMaker works locally."""
    archive = write_archive(tmp_path / "ten_adder.tar.gz", _model_with_absolute_path())
    before = sorted(Path("/opt").iterdir())
    with LocalEndpoint.from_repository(archive) as local:
        assert local.endpoint_names == ("ten-adder",)
        assert Caller(local.endpoint_url).add("ten-adder", 1.0) == 11
        assert sorted(Path("/opt").iterdir()) == before


@needs_private_mounts
def test_a_repository_of_several_models_runs_as_a_multi_model_endpoint(tmp_path: Path) -> None:
    """Each top-level model is packed, called by its archive's name,
    and finds its files below /opt/ml.
    """
    models = {**_model_with_absolute_path(), **below("two", adding_model(2))}
    with LocalEndpoint.from_repository(
        write_files(tmp_path / "shop", models), is_multi_model=True
    ) as local:
        caller = Caller(local.endpoint_url)
        assert caller.add("shop", 5.0, TargetModel="two.tar.gz") == 7
        assert caller.add("shop", 5.0, TargetModel="m.tar.gz") == 15
