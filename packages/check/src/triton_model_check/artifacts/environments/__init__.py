"""Python environments for the Python backend, from requirements, without conda or the image's
interpreter.

An environment is a virtual environment without an interpreter, in one tar file. Triton's stub finds
``python3`` of the environment on its PATH, reads ``pyvenv.cfg`` above it, and adds the packages of
the environment before those of the image. That works in every release; a script that sets
PYTHONPATH is no longer executed from 25.08 on.
"""

from constructs_triton_core.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
