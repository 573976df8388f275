"""The list of scenarios, in the order in which their modules declare them."""

import dataclasses
from collections.abc import Callable

SCENARIOS = {}


@dataclasses.dataclass(frozen=True)
class Scenario:
    name: str
    run: Callable
    #: Whether it kills the broker, and so needs one that is nobody else's.
    own_broker: bool


@dataclasses.dataclass(frozen=True)
class Options:
    """What the command line says to scenarios."""

    #: Makes a random scenario do the same things again (their interleaving still differs).
    seed: int
    #: Number of kills of kill9_storm.
    kills: int
    #: Kill the broker also where that loses what it has acknowledged.
    hard_broker_kill: bool


def scenario(own_broker=False):
    """Declares a function (driver, options) as a scenario. It fails by raising waiting.Failure."""

    def declare(function):
        SCENARIOS[function.__name__] = Scenario(function.__name__, function, own_broker)
        return function

    return declare
