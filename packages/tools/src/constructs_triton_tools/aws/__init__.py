"""Calls of AWS that only the tools need: optional ones, and waits."""
