#!/usr/bin/env python3
"""The scenario suite: whole nodes, as an operator would run them.

    python3 Tests/scenarios/run.py --driver process --binary .build/release/martlet
    python3 Tests/scenarios/run.py --driver compose kill9_of_an_agent

The process driver uses the broker of --bootstrap or MARTLET_TEST_BOOTSTRAP, else starts one of its own; scenarios that
kill the broker always do. With --jobs several run at once, and are reported in the order in which they end. Nothing but Python's standard library is needed. Files of a failed scenario are kept.
"""

import argparse
import concurrent.futures
import os
import pathlib
import random
import shutil
import sys
import tempfile
import time
import traceback

from brokers import ROOT
from compose_driver import ComposeDriver
from process_driver import ProcessDriver
from registry import SCENARIOS, Options
# Importing them declares the scenarios.
from scenarios import basics, chinook, identity, logins, storm, tombstones  # noqa: F401
from waiting import Failure, Skip


def main():
    arguments = parse_arguments()
    options = Options(arguments.seed, arguments.kills, arguments.hard_broker_kill)
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    print(f"seed {options.seed}", flush=True)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        runs = [pool.submit(run, SCENARIOS[name], arguments, options) for name in arguments.scenarios or SCENARIOS]
        for done in concurrent.futures.as_completed(runs):
            outcome, line = done.result()
            counts[outcome] += 1
            print(f"{outcome:8}{line}", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    return 1 if counts["failed"] else 0


def run(scenario, arguments, options):
    """Runs one scenario on a driver and in a folder of its own. Returns the outcome and what there is to say."""
    started = time.monotonic()
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"martlet-{scenario.name}-"))
    driver = make_driver(arguments, folder)
    outcome, text = "passed", ""
    try:
        driver.open(scenario.own_broker)
        text = scenario.run(driver, options) or ""
    except Skip as reason:
        outcome, text = "skipped", str(reason)
    except Failure as failure:
        outcome, text = "failed", str(failure)
    except Exception:  # a fault of the suite or the machine: reported, and the other scenarios still run
        outcome, text = "failed", traceback.format_exc()
    finally:
        driver.close()
    line = f"{scenario.name} ({time.monotonic() - started:.1f} s){text and ': ' + text}"
    if outcome == "failed" or arguments.keep:
        return outcome, f"{line}\n  files: {folder}"
    shutil.rmtree(folder)
    return outcome, line


def make_driver(arguments, folder):
    if arguments.driver == "compose":
        return ComposeDriver(folder, arguments.build)
    return ProcessDriver(folder, arguments.binary, arguments.bootstrap)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--driver", choices=["process", "compose"], required=True)
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / ".build" / "release" / "martlet")
    parser.add_argument("--bootstrap", default=os.environ.get("MARTLET_TEST_BOOTSTRAP"), metavar="HOST:PORT")
    parser.add_argument("--build", action="store_true", help="compose: build the image first")
    parser.add_argument("--keep", action="store_true", help="keep the files of every scenario")
    parser.add_argument("--jobs", type=int, default=1, help="how many scenarios run at once (default: 1)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--kills", type=int, default=50, help="of kill9_storm (default: 50)")
    parser.add_argument("--hard-broker-kill", action="store_true",
                        help="kill noida-db without letting it save: it forgets up to a second of what it acknowledged")
    parser.add_argument("scenarios", nargs="*", metavar="scenario", help=", ".join(SCENARIOS))
    arguments = parser.parse_args()
    unknown = [name for name in arguments.scenarios if name not in SCENARIOS]
    if unknown:
        parser.error(f"no scenario {', '.join(unknown)}; there are: {', '.join(SCENARIOS)}")
    if arguments.driver == "process" and not arguments.binary.exists():
        parser.error(f"no {arguments.binary}: make release builds it")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
