"""The names of the model that publishes Triton's own metrics: the constructs place it,
local runs know it.
"""

from __future__ import annotations

__all__ = ["PUBLISHER", "SOCKET_VARIABLE"]

PUBLISHER = "_metrics"
"""The name of the model."""
SOCKET_VARIABLE = "CONTAINER_METRICS_SOCKET"
"""The variable that the model reads in place of a port where the server has none."""
