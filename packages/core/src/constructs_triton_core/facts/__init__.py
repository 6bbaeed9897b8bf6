"""What AWS and NVIDIA publish and two packages need: JSON files with sources, and typed look-ups."""
