"""Multi-node scenarios: complete nodes, run as an operator would run them.

    python3 Tests/scenarios/multi_node --driver process --binary .build/release/martlet
    python3 Tests/scenarios/multi_node --driver compose kill9_of_an_agent

The process driver uses the broker of --bootstrap or MARTLET_TEST_BOOTSTRAP, or else starts one, whose kind --broker selects.
Scenarios that kill the broker always start their own. With --jobs several scenarios run at once, and are reported in the order in
which they end. The suite keeps the files of a failed scenario. It needs only Python's standard library.
"""

import concurrent.futures
import contextlib
import os
import random
import sys

from multi_node.compose_driver import ComposeDriver
from multi_node.registry import SCENARIOS, Options
# Importing these modules adds their scenarios to the registry.
from multi_node.scenarios import (  # noqa: F401
    acls, authentication, basics, changes, chinook, export, identity, storm, tombstones)
from shared import brokers, command_line, runner
from shared.process_driver import ProcessDriver
from shared.waiting import Skip


def main():
    arguments = parse_arguments()
    options = Options(arguments.seed, arguments.kills, arguments.hard_broker_kill)
    outcomes = runner.Outcomes()
    print(f"seed {options.seed}", flush=True)
    if arguments.librdkafka == "pypi":
        try:
            library = brokers.newer_librdkafka()
        except Skip as reason:
            sys.exit(f"--librdkafka pypi: {reason}")
        print(f"librdkafka: {library}", flush=True)
        # Inherited by every process that the suite starts.
        os.environ["LD_PRELOAD"] = str(library)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        runs = [pool.submit(run, SCENARIOS[name], arguments, options) for name in arguments.names or SCENARIOS]
        for done in concurrent.futures.as_completed(runs):
            outcomes.add(*done.result())
    print(outcomes)
    return outcomes.exit_code


def run(scenario, arguments, options):
    """Runs one scenario with its own driver and folder. Returns the outcome and a line about it."""

    def work(folder):
        with contextlib.closing(make_driver(arguments, folder)) as driver:
            driver.open(scenario.own_broker)
            return scenario.run(driver, options)

    return runner.run(scenario.name, work, keep=arguments.keep)


def make_driver(arguments, folder):
    if arguments.driver == "compose":
        return ComposeDriver(folder, arguments.build)
    return ProcessDriver(folder, arguments.binary, arguments.bootstrap, arguments.broker)


def parse_arguments():
    parser = command_line.make_parser(__doc__)
    parser.add_argument("--driver", choices=["process", "compose"], required=True)
    parser.add_argument("--bootstrap", default=os.environ.get("MARTLET_TEST_BOOTSTRAP"), metavar="HOST:PORT")
    parser.add_argument("--broker", choices=brokers.NAMES,
                        help="process: start this broker (default: Apache Kafka at KAFKA_HOME, else noida-db)")
    parser.add_argument("--librdkafka", choices=["system", "pypi"], default="system",
                        help="process: pypi preloads the newer librdkafka of the package confluent-kafka")
    parser.add_argument("--build", action="store_true", help="compose: build the image first")
    parser.add_argument("--keep", action="store_true", help="keep the files of every scenario")
    parser.add_argument("--jobs", type=int, default=1, help="how many scenarios run at once (default: 1)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32), help="default: random")
    parser.add_argument("--kills", type=int, default=50, help="number of kills in kill9_storm (default: 50)")
    parser.add_argument("--hard-broker-kill", action="store_true",
                        help="kill noida-db without letting it save: it loses up to a second of acknowledged messages")
    arguments = command_line.parse_names(parser, "scenario", SCENARIOS)
    if arguments.broker:
        arguments.bootstrap = None
    if arguments.driver == "process":
        command_line.expect_binary(parser, arguments)
    return arguments
