"""One Triton server process on this machine."""
