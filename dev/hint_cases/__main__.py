"""Follows the hint of each case and prints which of them do not end in success, and how many do."""

from __future__ import annotations

import sys

from hint_cases import CASES, FEWEST_PERCENT, REASONS, unsuccessful


def main() -> int:
    """Print the result; 1 if fewer than 95 percent succeed."""
    failed = unsuccessful()
    for key, findings in failed.items():
        for finding in findings:
            print(f"{key}: {finding}")
    succeeded = len(CASES) - len(failed)
    percent = 100 * succeeded / len(CASES)
    print(f"{succeeded} of {len(CASES)} hints of checks end in success: {percent:.1f} percent")
    for code, reason in REASONS.items():
        print(f"not followed: {code}: {reason}")
    return 0 if percent >= FEWEST_PERCENT else 1


if __name__ == "__main__":
    sys.exit(main())
