"""Where the archives of packages and the environments are kept: outside of the repository."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

CACHE = Path(
    os.environ.get("FOREIGN_MODELS_CACHE")
    or platformdirs.user_cache_path("constructs-triton") / "foreign_models"
)
