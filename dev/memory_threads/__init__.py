"""Rebuilds public threads about models that do not fit."""
