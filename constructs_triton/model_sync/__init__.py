"""Places model archives where a multi-model endpoint loads them from.

The modules of this folder are the deploy-time function, which ``handler.py`` begins. They are shipped without
the rest of the package, so they import nothing but each other, boto3 and the standard library. The command
line places models with the same modules.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["CODE_DIRECTORY", "CODE_FOLDER", "HANDLER", "RESOURCE_TYPE"]

CODE_DIRECTORY = Path(__file__).parent.parent
"""The folder that becomes the function's code; of it, only the modules of :data:`CODE_FOLDER` are shipped."""

CODE_FOLDER = Path(__file__).parent.name
"""Name of the folder that is shipped."""

HANDLER = f"{CODE_FOLDER}.handler.handler"
"""Lambda's name of the function, relative to :data:`CODE_DIRECTORY`."""

RESOURCE_TYPE = "Custom::TritonModelSync"
"""CloudFormation type of the custom resource that the function answers."""
