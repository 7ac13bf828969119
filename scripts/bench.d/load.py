"""Load on the embedded API, and the same load on etcd with kube-apiserver in the same run, by turns."""

import functools
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from figures import Broken, figure
from load_sides import ControlPlane, Side, Tessera

ROUNDS = 3
REQUESTS = 20_000
CONNECTIONS = 16


class Round:
    """One measurement: what the client saw, and what the server had used when it was over."""

    def __init__(self, side: Side):
        with subprocess.Popen(side.load_command('mixed', requests=REQUESTS, connections=CONNECTIONS),
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
            warm = client.stdout.readline()
            before = side.cpu_seconds()
            out, _ = client.communicate('\n', timeout=600)
            self.cpu_us = (side.cpu_seconds() - before) / REQUESTS * 1e6
        if client.returncode or not warm:
            raise Broken(f'tessera_load ended with {client.returncode}')
        found = json.loads(out)
        self.per_second, self.errors, self.p99_ms = found['per_second'], found['errors'], found['all']['p99_ms']
        self.rss_mb = side.resident_mb()
        self.verbs = found


def show(name, one):
    verbs = ' '.join(f'{verb} {one.verbs[verb]["p99_ms"]:.1f}'
                     for verb in ('get', 'list', 'create', 'patch_merge', 'patch_strategic', 'patch_apply'))
    print(f'# load: {name}: {one.per_second} requests/s, {one.errors} errors, p99 {one.p99_ms:.1f} ms ({verbs}), '
          f'{one.cpu_us:.0f} us of server CPU a request, {one.rss_mb:.0f} MB', file=sys.stderr)


@functools.lru_cache(None)
def alone():
    """Rounds on the embedded API, each on a fresh store."""
    rounds = []
    for _ in range(ROUNDS):
        with Tessera() as side:
            rounds.append(Round(side))
            show('tessera', rounds[-1])
    return rounds


@functools.lru_cache(None)
def side_by_side():
    """{name: rounds}: by turns, each on a fresh store, with the same certificates."""
    rounds = {'tessera': [], 'kube-apiserver': [], 'kube-apiserver, limits raised': []}
    with tempfile.TemporaryDirectory() as pki:
        for _ in range(ROUNDS):
            with Tessera() as side:
                shutil.copytree(side.pki, pki, dirs_exist_ok=True)
                rounds['tessera'].append(Round(side))
            for name, flags in (('kube-apiserver', ()), ('kube-apiserver, limits raised', ControlPlane.RAISED)):
                with ControlPlane(pki, flags) as side:
                    rounds[name].append(Round(side))
            for name, of_side in rounds.items():
                show(name, of_side[-1])
    return rounds


def median(rounds, what):
    return statistics.median(getattr(one, what) for one in rounds)


def best_real(what, best):
    """Of the two configurations the better one."""
    return best(median(rounds, what) for name, rounds in side_by_side().items() if name != 'tessera')


@figure('load.errors', 'requests', '<=0')
def errors():
    return sum(one.errors for one in alone())


@figure('load.p99_ms', 'ms', '<=20')
def p99_ms():
    return median(alone(), 'p99_ms')


@figure('load.per_second', 'requests/s', '>=5000')
def per_second():
    """20 000 requests (get 50 %, list 10 %, create 20 %, patch 20 %) from 16 connections; the client takes its part of the
    same cores."""
    return median(alone(), 'per_second')


@figure('load.cpu_us_per_request', 'us', '-')
def cpu_us_per_request():
    return median(alone(), 'cpu_us')


@figure('load.real_per_second', 'requests/s', '-')
def real_per_second():
    return best_real('per_second', max)


@figure('load.real_p99_ms', 'ms', '-')
def real_p99_ms():
    return best_real('p99_ms', min)


@figure('load.real_rss_mb', 'MB', '-')
def real_rss_mb():
    return best_real('rss_mb', min)


@figure('load.rss_mb', 'MB', '-')
def rss_mb():
    return median(side_by_side()['tessera'], 'rss_mb')


@figure('load.throughput_ratio', 'x', '>=3')
def throughput_ratio():
    return median(side_by_side()['tessera'], 'per_second') / best_real('per_second', max)


@figure('load.memory_share', 'share', '<=0.25')
def memory_share():
    """Resident memory right after the load, as a share of etcd's and kube-apiserver's together."""
    return median(side_by_side()['tessera'], 'rss_mb') / best_real('rss_mb', min)


@figure('load.watches_1000_mb', 'MB', '<=50')
def watches_1000_mb():
    """What 1000 idle watches, each on a TLS connection of its own, add to the resident memory."""
    with Tessera() as side:
        side.load('fill', requests=1000)
        time.sleep(1)
        before = side.resident_mb()
        with subprocess.Popen(side.load_command('watch', connections=1000), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as client:
            if json.loads(client.stdout.readline() or '{}').get('watches') != 1000:
                raise Broken('not every watch began')
            time.sleep(2)
            more = side.resident_mb() - before
            client.communicate('', timeout=60)
        if client.returncode:
            raise Broken('a watch did not last')
        return more


@functools.lru_cache(None)
def full_store(pods=100_000):
    """(resident MB, what a walk through the pages found while others wrote)."""
    with Tessera() as side:
        filled = side.load('fill', requests=pods, limit_s=1800)
        if filled['errors']:
            raise Broken(f"{filled['errors']} creates failed: {filled['faults'][-300:]}")
        stored_mb = side.resident_mb()
        walk = side.load('pages', limit=500, connections=4, seed=2)
        print(f"# load: {pods} pods at {filled['per_second']} creates/s, {stored_mb:.0f} MB; {walk['pages']} pages of 500, "
              f"the slowest {walk['load']['list']['max_ms']:.0f} ms, while {walk['load']['create']['count']} were created",
              file=sys.stderr)
        if walk['seen'] < pods or walk['twice'] or walk['load']['errors']:
            raise Broken(f"pages: {walk['seen']} pods seen, {walk['twice']} twice, {walk['load']['errors']} errors")
        return side.resident_mb(), walk


@figure('load.pods_100000_rss_mb', 'MB', '<=1000')
def pods_100000_rss_mb():
    return full_store()[0]


@figure('load.pods_100000_page_p99_ms', 'ms', '-')
def pods_100000_page_p99_ms():
    return full_store()[1]['load']['list']['p99_ms']
