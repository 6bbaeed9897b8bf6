"""Model packages of AWS Marketplace, by the accounts that own them;
``marketplace.json`` has the source.
"""

from __future__ import annotations

from constructs_triton_core.facts import load

__all__ = ["is_of_marketplace"]


def is_of_marketplace(model_package: str) -> bool:
    """Return whether the name or ARN of a model package is known to be of AWS Marketplace."""
    return any(
        f":{account}:" in model_package for account in load("marketplace")["accounts"].values()
    )
