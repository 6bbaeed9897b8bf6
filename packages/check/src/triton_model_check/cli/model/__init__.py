"""``constructs-triton model new``: create a model's folder from a file,
from code or from models.
"""
