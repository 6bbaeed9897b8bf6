"""The rehearsal on a tenth of the constructs of aws-cdk-lib, each in an app of its own.

A seed chooses the part: ``REHEARSAL_CORPORA_SEED``, or a new one in each run. A failure prints it.
``make rehearsal-corpora`` rehearses all of them, and those of other libraries.
"""

from __future__ import annotations

import os
import random
import sys

from rehearsal_corpora.__main__ import rehearsed, unexplained
from rehearsal_corpora.table import NOT_BUILT, figures, read_table

BUDGET_MINUTES = 2

SEED = int(os.environ.get("REHEARSAL_CORPORA_SEED") or random.randrange(10**6))


def test_app_that_is_right_is_not_refused() -> None:
    """A first deployment, the same app and harmless edits have no error, and the generator still
    writes the apps that it wrote.
    """
    rows = rehearsed(["l2"], SEED)
    message = f"REHEARSAL_CORPORA_SEED={SEED}\n{figures(rows)}"
    # `pytest -rP` shows it for a part without a false stop too.
    sys.stdout.write(message)
    assert unexplained(rows) == [], message
    recorded = {row.construct: row.verdict for row in read_table()}
    gone = [row for row in rows if row.verdict == NOT_BUILT != recorded[row.construct]]
    assert gone == [], message
