"""What is moved, listed and packed of the files that a package has installed."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from handmade_wheels import write_wheel

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.building.environments import archive
from constructs_triton_tools.building.environments.building import build
from triton_model_check.artifacts.environments.lock import EnvironmentLock
from triton_model_check.artifacts.environments.requirements import read_requirements
from triton_model_check.artifacts.environments.target import image_target

SITE = "lib/python3.12/site-packages"


def add_row(folder: Path, name: str) -> None:
    """Add a row to RECORD of the wheel ``helper``."""
    (wheel,) = (folder / "wheels").iterdir()
    with zipfile.ZipFile(wheel) as archive:
        files = {member: archive.read(member) for member in archive.namelist()}
    files["helper-1.0.dist-info/RECORD"] += f"{name},,\n".encode()
    with zipfile.ZipFile(wheel, "w") as archive:
        for member, content in files.items():
            archive.writestr(member, content)


def lock() -> EnvironmentLock:
    return EnvironmentLock("3.12", "x", (), (), (), (), "", "")


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder in which a program has installed a package, as uv before 0.11.9 did."""
    site = tmp_path / "a" / "environment" / SITE
    (site / "evil-1.0.dist-info").mkdir(parents=True)
    (site / "bin").mkdir()
    (site / "bin" / "tool").write_text("#!/home/me/python\n")
    (site / "evil-1.0.dist-info" / "direct_url.json").write_text("{}")
    return tmp_path / "a" / "environment"


def record_of(environment: Path) -> Path:
    return environment / SITE / "evil-1.0.dist-info" / "RECORD"


@pytest.mark.parametrize(
    "row",
    [
        f"bin/{'../' * 40}{{victim}}",
        "{victim}",
        f"evil-1.0.dist-info/{'../' * 40}{{victim}}/.dist-info/INSTALLER",
        "bin\\..\\..\\secret",
        "../../../../../secret",
    ],
)
def test_row_that_leads_out_of_a_package(row: str, installed: Path, tmp_path: Path) -> None:
    """A file outside of the environment is not moved, changed or deleted,
    and the message names the row.
    """
    victim = tmp_path / "secret"
    victim.write_text("#!python\n")
    victim.chmod(0o600)
    name = row.format(victim=str(victim).lstrip("/") if "../" in row else victim)
    record_of(installed).write_text(f"bin/tool,,\n{name},,\n")
    with pytest.raises(
        InvalidValueError, match=r"evil-1\.0\.dist-info/RECORD: .*only in its own folder, got"
    ):
        archive.arrange(installed, lock(), image_target())
    assert (victim.read_text(), victim.stat().st_mode & 0o777) == ("#!python\n", 0o600)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (f"{'a' * 200_000},,\n".encode(), "field larger than field limit"),
        (b"\xff,,\n", "codec can't decode"),
        (b'"a\n', ""),
    ],
)
def test_record_that_cannot_be_read(content: bytes, message: str, installed: Path) -> None:
    """It is one error with the name of the package, or has no row that names a file."""
    record_of(installed).write_bytes(content)
    if message:
        with pytest.raises(
            InvalidValueError, match=rf"RECORD: cannot be read \(.*{message}.*use another"
        ):
            archive.arrange(installed, lock(), image_target())
    else:
        archive.arrange(installed, lock(), image_target())
        assert record_of(installed).read_text() == ""


def test_only_what_was_installed_is_moved_and_listed(installed: Path) -> None:
    """A script moves although RECORD does not name it, and a row without a file leaves RECORD."""
    record_of(installed).write_text(
        "evil-1.0.dist-info/RECORD,,\netc/absent,,\nevil-1.0.dist-info/direct_url.json,,\n"
    )
    archive.arrange(installed, lock(), image_target())
    assert (installed / "bin" / "tool").read_text() == "#!/usr/bin/env python3\n"
    assert record_of(installed).read_text() == "evil-1.0.dist-info/RECORD,,\n"


@pytest.mark.parametrize("place", ["bin/link", "evil-1.0.dist-info/RECORD", "share"])
def test_link_in_a_package(place: str, installed: Path, tmp_path: Path) -> None:
    """What a link points to is neither packed nor changed."""
    (tmp_path / "secret").write_text("bin/tool,,\n")
    (installed / SITE / place).symlink_to(tmp_path / "secret")
    with pytest.raises(
        InvalidValueError, match=f"{place}: a package has installed something that is no file"
    ):
        archive.arrange(installed, lock(), image_target())


def test_real_uv_keeps_a_wheel_inside(tmp_path: Path, own_cache: Path) -> None:
    """The uv that is required installs a wheel whose RECORD names files outside,
    and reaches none of them.
    """
    project, victim = tmp_path / "project", tmp_path / "secret"
    write_wheel(project / "wheels", "helper")
    (project / "requirements.txt").write_text("--no-index\n--find-links ./wheels\nhelper\n")
    victim.write_text("#!python\n")
    victim.chmod(0o600)
    add_row(project, f"bin/{'../' * 40}{str(victim).lstrip('/')}")
    build(read_requirements(project / "requirements.txt"), image_target())
    assert (victim.read_text(), victim.stat().st_mode & 0o777) == ("#!python\n", 0o600)
