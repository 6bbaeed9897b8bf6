"""The value types that endpoint properties take."""
