"""The commands about a model repository."""
