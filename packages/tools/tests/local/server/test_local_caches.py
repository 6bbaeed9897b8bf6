"""Response caches of the local server."""

from __future__ import annotations

from pathlib import Path

from constructs_triton_tools.local.server.serve_script import fit_caches


def test_a_cache_that_does_not_exist_is_left_out(tmp_path: Path) -> None:
    """The server would not start with it. Both spellings of the flag are read."""
    (tmp_path / "local").mkdir()
    (tmp_path / "local" / "libtritoncache_local.so").touch()
    given = ["--cache-config", "local,size=9", "--cache-config=redis,host=h", "--log-info=true"]
    kept = ["--cache-config", "local,size=9", "--log-info=true", f"--cache-directory={tmp_path}"]
    printed: list[str] = []
    assert fit_caches(given, tmp_path, "digits/AllTraffic", printed.append) == kept
    assert len(printed) == 1
    assert printed[0].startswith("digits/AllTraffic: this server has no response cache 'redis'")


def test_a_server_without_caches_keeps_its_other_arguments(tmp_path: Path) -> None:
    """No folder of caches is named, and a flag without a value is left to the server."""
    given = ["--log-info=true", "--cache-config=local,size=9", "--cache-config"]
    assert fit_caches(given, tmp_path / "absent", "", print) == ["--log-info=true"]
