"""End to end with a real PostgreSQL: its logical decoding, the programs of Examples/postgres, and agents that export and ingest.

    scripts/venv-python.sh Tests/scenarios/postgres --binary .build/debug/martlet --kills 20 --seed 7 both_ways

Each part kills its processes at random while programs write, and then expects the same rows on all sides. It prints its counts. The
broker is that of --bootstrap or MARTLET_TEST_BOOTSTRAP, or else one that the suite starts; it is not killed. Needs PostgreSQL's server,
and the packages of scripts/test-requirements.txt. The files of a part that fails are kept.
"""

import contextlib
import dataclasses
import os
import pathlib
import random

from postgres.parts import both_ways, conflicts, from_postgres, reader_kills, rebuild, records, rule, to_postgres, watch
from postgres.rig import Rig
from shared import command_line, runner

PARTS = {
    "records": records.run, "rule": rule.run, "watch": watch.run, "rebuild": rebuild.run, "to_postgres": to_postgres.run,
    "from_postgres": from_postgres.run, "conflicts": conflicts.run, "both_ways": both_ways.run, "reader_kills": reader_kills.run,
}


@dataclasses.dataclass(frozen=True)
class Options:
    part: str
    binary: pathlib.Path
    bootstrap: str | None
    kills: int
    #: Makes a part repeat its changes and kills. Processes may still interleave differently.
    seed: int


def main():
    parser = command_line.make_parser(__doc__, build="debug")
    parser.add_argument("--bootstrap", default=os.environ.get("MARTLET_TEST_BOOTSTRAP"), metavar="HOST:PORT")
    parser.add_argument("--kills", type=int, default=20, help="number of kills in each part (default: 20)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32), help="default: random")
    arguments = command_line.parse_names(parser, "part", PARTS)
    command_line.expect_binary(parser, arguments)
    print(f"seed {arguments.seed}", flush=True)
    outcomes = runner.Outcomes()
    for name in arguments.names or PARTS:
        outcomes.add(*runner.run(name, lambda folder: run(name, folder, arguments), "martlet-postgres"))
    print(outcomes)
    return outcomes.exit_code


def run(name, folder, arguments):
    options = Options(name, arguments.binary, arguments.bootstrap, arguments.kills, arguments.seed)
    with contextlib.closing(Rig(folder, options)) as rig:
        rig.open()
        return PARTS[name](rig)
