"""Places model archives where a multi-model endpoint loads them from.

``handler.py`` is the code of the deploy-time function; it is shipped alone, so it imports nothing of this
package. ``HANDLER_DIRECTORY`` is what the CDK construct uploads.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["HANDLER", "HANDLER_DIRECTORY", "RESOURCE_TYPE"]

HANDLER_DIRECTORY = Path(__file__).parent
"""The folder whose ``handler.py`` runs inside AWS Lambda."""

HANDLER = "handler.handler"
"""Lambda's name of the function, relative to :data:`HANDLER_DIRECTORY`."""

RESOURCE_TYPE = "Custom::TritonModelSync"
"""CloudFormation type of the custom resource that the function answers."""
