"""Makes the test equipment under ``tests/e2e`` importable; to be imported before it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "e2e"))
