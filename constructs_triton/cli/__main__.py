"""``python -m constructs_triton.cli``."""

import sys

from constructs_triton.cli import main

sys.exit(main())
