"""``python -m triton_model_check``."""

import sys

from triton_model_check.cli import main

if __name__ == "__main__":
    sys.exit(main())
