"""What `constructs-triton local` does beside running endpoints."""
