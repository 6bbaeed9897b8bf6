"""A model as it is in its folder: configuration, files, code, and what Triton completes."""
