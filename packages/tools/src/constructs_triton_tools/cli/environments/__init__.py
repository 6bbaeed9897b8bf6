"""The commands that build what models need."""
