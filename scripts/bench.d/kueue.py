"""The shape of Kueue's own performance test through the API of `tessera up`: 5 cohorts of 6 queues with 500 jobs each, 15 000
jobs in all, that arrive over a minute, with the Jobs' controller and kubelets at work. Kueue admits objects without pods and
without a placement; here every job is placed, started, run and ended."""

import functools
import json
import os
import subprocess
import sys

from figures import Broken, cpu_seconds, figure, program, resident_mb
from load_sides import Side

# Room beyond the queues' 600 cores, as in Kueue's test, where there are no nodes: quota alone decides.
FLEET = """
name: queues
racks: [{name: r, nodes: [{name: cpu, count: 30, cpu: 100, memory: 400Gi, pods: 250}]}]
"""


class Cluster(Side):
    """`tessera up` with nodes that have no GPU."""

    def launch(self):
        fleet, data = os.path.join(self.folder, 'fleet.yaml'), os.path.join(self.folder, 'data')
        with open(fleet, 'w', encoding='utf-8') as file:
            file.write(FLEET)
        child = self.start('tessera', [program('tessera'), 'up', '--fleet', fleet, '--data', data, '--port', '0'],
                           stdout=subprocess.PIPE)
        line = child.stdout.readline().decode()
        if not line.startswith('ready '):
            raise Broken(f'tessera up did not become ready: {line}')
        self.port, self.pki = int(line.rsplit(':', 1)[1]), os.path.join(data, 'pki')


@functools.lru_cache(None)
def seen(percent):
    """What became of that part of the jobs, and what the process used."""
    with Cluster() as side:
        found = side.load('queues', limit_s=1200, percent=percent, **{'limit-s': 900})
        server = side.children[0].pid
        found['cpu_s'], found['rss_mb'] = cpu_seconds(server), resident_mb(server)
    print(f'# kueue: {percent} %: {json.dumps(found)}', file=sys.stderr)
    if found['done'] < found['jobs']:
        raise Broken(f"{found['done']} of {found['jobs']} jobs ended")
    return found


def wait(of_class):
    return lambda: seen(100)['classes'][of_class]['wait_mean_s']


# Kueue's figures are the expectations of its CI: wall time 351 s, usage of queues 50 % at least, and the mean times below.
figure('kueue.wall_s', 's', '<=351')(lambda: seen(100)['seconds'])
figure('kueue.usage', 'share', '>=0.5')(lambda: seen(100)['usage'])
figure('kueue.large_wait_mean_s', 's', '<=16.5')(wait('large'))
figure('kueue.medium_wait_mean_s', 's', '<=76.8')(wait('medium'))
figure('kueue.small_wait_mean_s', 's', '<=215.5')(wait('small'))
figure('kueue.cpu_ms_per_job', 'ms', '-')(lambda: seen(100)['cpu_s'] / seen(100)['jobs'] * 1000)
figure('kueue.rss_mb', 'MB', '-')(lambda: seen(100)['rss_mb'])


@figure('kueue.small_wall_s', 's', '<=60')
def small_wall_s():
    """A tenth of the jobs: a quick look whether all of it works."""
    return seen(10)['seconds']
