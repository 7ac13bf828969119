"""The simulated world: one seed gives one run, many seeds keep the invariants, and a large fleet costs little."""

import filecmp
import os
import re
import sys
import tempfile

from figures import Broken, at_rest, figure, measured, program

SEEDS = 200


@figure('world.same_seed', 'runs', '>=1')
def same_seed():
    """1 when two runs of one seed write the same event log, byte for byte."""
    with tempfile.TemporaryDirectory() as folder:
        logs = [os.path.join(folder, name) for name in ('first', 'second')]
        for log in logs:
            measured([program('tessera'), 'world', '--seed', '7', '--log', log])
        if os.path.getsize(logs[0]) == 0:
            raise Broken('tessera world wrote an empty event log')
        return 1 if filecmp.cmp(*logs, shallow=False) else 0


@figure('world.seeds_ok', 'seeds', '>=200')
def seeds_ok():
    """Seeds whose runs, with node failures and API errors, kept every invariant after every step."""
    ran = measured([program('tessera'), 'world', '--seed', '1', '--seeds', str(SEEDS)], 1800, good=(0, 1))
    for failure in re.findall(r'^FAILED .*', ran.output, re.M)[:5]:
        print(f'# world.seeds_ok: {failure}', file=sys.stderr)
    return len(re.findall(r'^seed \d+ ok', ran.output, re.M))


@figure('world.rest_1000_nodes_rss_mb', 'MB', '<=200')
def rest_1000_nodes_rss_mb():
    return at_rest(1000)[0]


@figure('world.rest_1000_nodes_cpu_percent', '%', '<=10')
def rest_1000_nodes_cpu_percent():
    return at_rest(1000)[1]
