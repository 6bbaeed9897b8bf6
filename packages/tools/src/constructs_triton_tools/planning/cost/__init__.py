"""What the instances of a synthesized template cost."""
