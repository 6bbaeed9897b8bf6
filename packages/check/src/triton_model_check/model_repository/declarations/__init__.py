"""What a user declares about the models of a folder, in an app or in ``triton-models.toml``."""
