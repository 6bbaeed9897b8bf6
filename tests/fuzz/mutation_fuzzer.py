"""Mutates samples, and reports inputs that raise an unexpected error or take too long."""

from __future__ import annotations

import hashlib
import random
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fuzz_targets import FuzzTarget

CASES = Path(__file__).resolve().parent / "cases"
SECONDS_PER_INPUT = 10.0
"""Processor time. A reader that waits has ten times as long by the clock."""

_MAX_BYTES = 200_000
_TOKENS = (
    *(
        b"[",
        b"]",
        b"{",
        b"}",
        b"<",
        b">",
        b'"',
        b"'",
        b"\\",
        b"#",
        b":",
        b",",
        b"-",
        b"- ",
        b"+",
        b"_",
        b"/",
    ),
    *(
        b"\0",
        b"\n",
        b"\r\n",
        b"\xff",
        b"\xc3",
        b"\x80",
        b" " * 50,
        b"0" * 50,
        b"9" * 30,
        b"../",
        b"a" * 300,
    ),
    *(b"-1", b"0x1", b"1e999", b"NaN", b"null", b"true"),
    *(b"${x}", b"{{x}}", b"\\377", b"\\u0000", b"GNU.sparse."),
)


def mutate(rng: random.Random, samples: list[bytes]) -> bytes:
    """Return a sample after one to six random changes."""
    content = bytearray(rng.choice(samples))
    for _ in range(rng.randint(1, 6)):
        at, end = sorted(rng.randrange(len(content) + 1) for _ in range(2))
        match rng.randrange(7):
            case 0 if content:
                content[rng.randrange(len(content))] = rng.randrange(256)
            case 1:
                content[at:at] = rng.choice(_TOKENS)
            case 2:
                content[at:at] = rng.choice(_TOKENS) * rng.choice((2, 10, 1000))
            case 3:
                del content[at : min(end, at + 40)]
            case 4:
                content[at:at] = content[at:end] * rng.choice((1, 1, 20))
            case 5:
                other = rng.choice(samples)
                start = rng.randrange(len(other) + 1)
                content[at:at] = other[start : start + 200]
            case _:
                content[at : at + 1] = rng.choice(_TOKENS)
        del content[_MAX_BYTES:]
    return bytes(content)


def problem_of(target: FuzzTarget, content: bytes) -> str | None:
    """Return what is wrong with reading ``content``, or ``None``."""
    with tempfile.TemporaryDirectory(prefix="constructs-triton-fuzz-") as folder:
        try:
            with _time_limit():
                target.read(content, Path(folder))
        except target.errors:
            return None
        except Exception as error:  # what the fuzzer looks for
            return f"{type(error).__name__}: {str(error)[:200]}"
    return None


def fuzz(
    target: FuzzTarget, seed: int, *, seconds: float | None = None, count: int | None = None
) -> int:
    """Read mutants for some seconds, or a number of them; return how many were read.

    Raises:
        AssertionError: reading one has failed; it has been saved as a case.
    """
    rng, samples = random.Random(seed), target.samples()
    deadline = None if seconds is None else time.monotonic() + seconds
    done = 0
    while (
        samples
        and (deadline is None or time.monotonic() < deadline)
        and (count is None or done < count)
    ):
        content = mutate(rng, samples)
        problem = problem_of(target, content)
        assert problem is None, (
            f"{target.name}, seed {seed}: {problem}; saved as {save(target, content)}"
        )
        done += 1
    return done


def save(target: FuzzTarget, content: bytes) -> Path:
    """Save an input, so that the tests read it from now on."""
    path = CASES / target.name / f"{hashlib.sha256(content).hexdigest()[:16]}.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@contextmanager
def _time_limit() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError(f"takes longer than {SECONDS_PER_INPUT:.0f} s")

    # By the clock alone, a machine with other work would find each input slow.
    timers = (
        (signal.ITIMER_PROF, signal.SIGPROF, SECONDS_PER_INPUT),
        (signal.ITIMER_REAL, signal.SIGALRM, 10 * SECONDS_PER_INPUT),
    )
    before = {number: signal.signal(number, stop) for _, number, _ in timers}
    for timer, _, seconds in timers:
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for timer, number, _ in timers:
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])
