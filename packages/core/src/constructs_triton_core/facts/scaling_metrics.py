"""Metrics of SageMaker that have no value without instances or copies.

Source: SageMaker developer guide, "Monitor Amazon SageMaker AI with Amazon CloudWatch": instances
and containers publish them.
"""

from __future__ import annotations

__all__ = ["METRICS_OF_INSTANCES"]

METRICS_OF_INSTANCES = frozenset(
    {
        "CPUUtilization",
        "CPUUtilizationNormalized",
        "DiskUtilization",
        "GPUMemoryUtilization",
        "GPUMemoryUtilizationNormalized",
        "GPUUtilization",
        "GPUUtilizationNormalized",
        "MemoryUtilization",
        "ModelLatency",
        "OverheadLatency",
    }
)
"""The names of the metrics. A policy on them alone never starts the first instance or copy."""
