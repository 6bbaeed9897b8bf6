"""Is this model repository right? Reads, checks and packs model repositories of NVIDIA Triton."""
