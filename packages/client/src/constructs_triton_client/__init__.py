"""Client of a Triton endpoint: takes and returns NumPy arrays, over SageMaker, plain HTTP or in
memory.

Importing the package loads neither NumPy nor boto3 nor urllib3: ``__init__.pyi`` lists the public
names, and each is imported when it is first used (PEP 562).
"""

from constructs_triton_core import same_version

__version__ = same_version("constructs-triton-client", "0.1.0.dev0")

from constructs_triton_core.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
