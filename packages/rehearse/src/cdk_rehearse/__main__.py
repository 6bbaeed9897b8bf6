"""``python -m cdk_rehearse``."""

import sys

from cdk_rehearse.cli import main

if __name__ == "__main__":
    sys.exit(main())
