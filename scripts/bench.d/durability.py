"""kill -9 under write load, again and again: tests/e2e/kill9_durability.py."""

import functools
import os
import re

import running
from figures import Broken, figure, measured, program

ROUNDS = 200


@functools.lru_cache(None)
def kills():
    """(rounds after which everything acknowledged was there and whole, writes acknowledged)."""
    script = os.path.join(running.ROOT, 'tests', 'e2e', 'kill9_durability.py')
    ran = measured(['python3', script, program('tessera'), '--rounds', str(ROUNDS)], 1800, good=(0, 1))
    whole = re.search(r'^(\d+) rounds in .*: (\d+) writes acknowledged', ran.output, re.M)
    if whole:
        return int(whole[1]), int(whole[2])
    lost = re.search(r'^round (\d+), seed .*', ran.output, re.M)
    if not lost:
        raise Broken(ran.output.strip()[-300:])
    raise Broken(lost[0])


@figure('durability.kill9_rounds', 'rounds', '>=200')
def kill9_rounds():
    return kills()[0]


@figure('durability.kill9_writes', 'writes', '-')
def kill9_writes():
    return kills()[1]
