"""Lets all sessions of a process share the service models that one of them has parsed."""

from __future__ import annotations

import copy
import functools

import botocore.session
from botocore.loaders import Loader

__all__ = ["share_service_models"]


@functools.cache
def share_service_models() -> None:
    """Share them from now on. moto's sessions parse each model again, a third of the time of a rehearsal."""
    first_loader = functools.cache(botocore.session.create_loader)

    def create_loader(search_path_string: str | None = None) -> Loader:
        loader = copy.copy(first_loader(search_path_string))
        vars(loader)["_search_paths"] = list(loader.search_paths)  # boto3 adds to it
        return loader

    botocore.session.create_loader = create_loader
