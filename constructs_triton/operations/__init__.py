"""Functions for deployed endpoints and their models. They call AWS with boto3.

``pip install 'constructs-triton-client[aws]'`` installs boto3.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
