"""The registry of scenarios, in the order in which their modules declare them."""

import dataclasses
from collections.abc import Callable

SCENARIOS = {}


@dataclasses.dataclass(frozen=True)
class Scenario:
    name: str
    run: Callable
    #: Whether it kills the broker, and so needs one of its own.
    own_broker: bool


@dataclasses.dataclass(frozen=True)
class Options:
    """Command-line options for scenarios."""

    #: Makes a random scenario repeat its actions (processes may still interleave differently).
    seed: int
    #: Number of kills of kill9_storm.
    kills: int
    #: Kill the broker even if it then loses acknowledged messages.
    hard_broker_kill: bool


def scenario(own_broker=False):
    """Declares a function (driver, options) as a scenario. It raises Failure to fail, and Skip to be skipped."""

    def declare(function):
        SCENARIOS[function.__name__] = Scenario(function.__name__, function, own_broker)
        return function

    return declare
