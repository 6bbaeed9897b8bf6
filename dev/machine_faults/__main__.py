"""Kills commands at random moments: ``PYTHONPATH=dev python -m machine_faults --kills 200``."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
from pathlib import Path

from machine_faults.killing import kill
from machine_faults.services import running
from machine_faults.writers import WRITERS


def main() -> int:
    """Return 1 if a command has left something that it must not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="commands (default: all)")
    parser.add_argument("--kills", type=int, default=200, help="kills of each command")
    parser.add_argument("--repeat-each", type=int, default=4, help="kills for each repetition")
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    arguments = parser.parse_args()
    os.environ["JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION"] = "18,20"
    print(f"seed {arguments.seed}", flush=True)
    failed = False
    for writer in WRITERS:
        if arguments.names and writer.name not in arguments.names:
            continue
        with (
            tempfile.TemporaryDirectory(prefix="machine-faults-") as root,
            running(writer.needs) as services,
        ):
            outcome = kill(
                writer,
                Path(root),
                services,
                count=arguments.kills,
                seed=arguments.seed,
                repeated_each=arguments.repeat_each,
            )
        print(outcome, flush=True)
        for problem in outcome.problems[:20]:
            print(f"  {problem}", flush=True)
        failed = failed or bool(outcome.problems)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
