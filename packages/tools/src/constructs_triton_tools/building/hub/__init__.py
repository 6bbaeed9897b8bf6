"""Copies of repositories of Hugging Face, at a fixed commit and verified."""
