"""The constructs: a checked model repository and the SageMaker endpoints that serve it.

The only part of the package that imports ``aws_cdk``. Its public names are names of ``constructs_triton``.
"""
