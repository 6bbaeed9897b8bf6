"""The fixtures that ``shared_endpoint`` defines.

A module with functions, or of one account, has its own.
"""

from __future__ import annotations

from shared_endpoint import account, aws

__all__ = ["account", "aws"]
