"""Functions for deployed endpoints and their models. They call AWS with boto3.

``pip install 'constructs-triton-client[aws]'`` installs boto3.
"""

from constructs_triton_core.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
