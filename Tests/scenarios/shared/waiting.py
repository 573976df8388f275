"""Waits for conditions, with a deadline. No other module of the suites sleeps."""

import threading
import time

DEADLINE_SECONDS = 90.0
INTERVAL_SECONDS = 0.1

_never = threading.Event()


class Failure(AssertionError):
    """An expectation of a scenario does not hold."""


class Skip(Exception):
    """A scenario can't run here; the reason is shown."""


def eventually(description, condition, deadline_seconds=DEADLINE_SECONDS, interval_seconds=INTERVAL_SECONDS):
    """Polls `condition` until it returns a true value, and returns that.

    The condition may return (False, details). After the deadline, raises Failure with the last details.
    """
    deadline = time.monotonic() + deadline_seconds
    while True:
        result = condition()
        details = ""
        if isinstance(result, tuple) and result and result[0] is False:
            result, details = False, f": {result[1]}"
        if result:
            return result
        if time.monotonic() >= deadline:
            raise Failure(f"not within {deadline_seconds:g} s: {description}{details}")
        _never.wait(interval_seconds)


def pause(seconds):
    """Sleeps, so that other processes make progress."""
    _never.wait(seconds)


def wait_for_clock_tick(seconds=0.1):
    """Waits until the next write gets a later timestamp."""
    start = time.time()
    eventually("the clock advances", lambda: time.time() > start + seconds)


def expect(condition, message):
    """Raises Failure with the message if the condition is false."""
    if not condition:
        raise Failure(message)


def expect_equal(actual, expected, description):
    """Raises Failure with both values, shortened, if they differ."""
    if actual != expected:
        raise Failure(f"{description}\n  expected: {_short(expected)}\n  actual:   {_short(actual)}")


def _short(value, limit=2000):
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"
