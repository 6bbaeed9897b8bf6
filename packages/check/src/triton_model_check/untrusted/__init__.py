"""Reads archives, TOML and ignore files of others within bounds."""
