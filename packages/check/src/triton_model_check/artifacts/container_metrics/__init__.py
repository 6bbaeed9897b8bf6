"""The model that publishes Triton's own metrics, and how an archive gets it."""
