"""The Python and the platform that an environment is built for."""

from __future__ import annotations

from dataclasses import dataclass

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.versions import is_at_least
from triton_model_check.facts.images import DEFAULT_VERSION, image_version, published_versions

__all__ = ["EnvironmentTarget", "image_target", "numpy_constraint"]

_NUMPY_2_SINCE = "24.11"
_NUMPY_1 = "numpy<2"
#: NumPy 1.26, the last one below 2, has no wheel for a newer Python.
_NEWEST_PYTHON_OF_NUMPY_1 = (3, 12)


@dataclass(frozen=True, slots=True)
class EnvironmentTarget:
    """What packages are resolved and laid out for.

    Args:
        python: Minor version of Python, such as ``"3.12"``.
        platform: Platform as uv names it, such as ``"x86_64-manylinux_2_39"``.
        numpy_constraint: Requirement that limits NumPy, or ``""``.
        must_keep_numpy: Whether the server cannot use another NumPy, so that requirements cannot
            change it.
        home: Folder of the interpreter on the machine that serves.
        more_packages: Folder of packages that come after those of the interpreter, or ``""``.
    """

    python: str
    platform: str
    numpy_constraint: str
    must_keep_numpy: bool
    home: str = "/usr/bin"
    more_packages: str = ""

    @property
    def description(self) -> str:
        """The target in messages."""
        return f"Python {self.python} on {self.platform}"


def image_target(version: str = DEFAULT_VERSION) -> EnvironmentTarget:
    """Return the target of AWS's image of a Triton release.

    Every image installs ``numpy<2``. The Python backend before 24.11 cannot use another one; later
    it can.

    Raises:
        InvalidValueError: the version is not ``YY.MM``, or its Python is not known.
    """
    image = image_version(version)
    if image.python is None:
        known = ", ".join(published_versions())
        raise InvalidValueError(
            f'image_version: its Python is not known, got "{version}"; use one of {known}'
        )
    return EnvironmentTarget(
        python=image.python,
        platform=f"x86_64-manylinux_{image.glibc.replace('.', '_')}",
        numpy_constraint=numpy_constraint(image.python),
        must_keep_numpy=not is_at_least(version, _NUMPY_2_SINCE),
    )


def numpy_constraint(python: str) -> str:
    """Return the requirement that limits NumPy to what the images install,
    or ``""`` if it has no wheel.
    """
    major, minor = map(int, python.split("."))
    return _NUMPY_1 if (major, minor) <= _NEWEST_PYTHON_OF_NUMPY_1 else ""
