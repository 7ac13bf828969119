"""Queueing policies on a real stream of jobs of 15 tenants, virtual time: ours against strict FIFO, best-effort FIFO, EASY and
DRF without history. The baselines are settings of our own engine in the same harness: re-implementations, nobody's product.

Offered load is 100 % of 576 GPUs: the first 50 days of the file, arrivals stretched. Tenants weigh what their jobs ask for; the
figures named equal_weights are of the same replay with equal weights."""

import functools
import json
import os
import tempfile

from figures import figure, measured, program, shared

OURS = 'tessera'
FIFO = 'best-effort-fifo'


@functools.lru_cache(None)
def runs(*options):
    """{policy: its scores}."""
    jobs = shared('data', 'philly', 'philly_gavel_vc_jobs.csv')
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, 'report.json')
        measured([program('tessera'), 'replay-queues', '--jobs-file', jobs, *options, '--json', report], 900)
        with open(report, encoding='utf-8') as file:
            return {run['policy']: run for run in json.load(file)['runs']}


class Compared:
    """Ours against the others, with tenants weighed one way."""

    def __init__(self, *options):
        self.options = options

    def ours(self):
        return runs(*self.options)[OURS]

    def over_best(self, name):
        return self.ours()[name] / max(run[name] for policy, run in runs(*self.options).items() if policy != OURS)

    def wait_16(self, policy, what='p99_s'):
        """The wait of jobs of 16 GPUs or more, ours over theirs."""
        return self.ours()['waits']['16+'][what] / runs(*self.options)[policy]['waits']['16+'][what]


BY_USE = Compared('--weights-by-use')
EQUAL = Compared()


@figure('queue_replay.utilisation_ratio', 'x', '>=1.0')
def utilisation():
    """Kept work until the last arrival, against the best of the others."""
    return BY_USE.over_best('utilisation')


@figure('queue_replay.p99_wait_16gpu_vs_fifo', 'x', '<=1.0')
def p99_fifo():
    """Against best-effort FIFO."""
    return BY_USE.wait_16(FIFO)


@figure('queue_replay.p99_wait_16gpu_vs_drf', 'x', '<=1.0')
def p99_drf():
    return BY_USE.wait_16('drf')


@figure('queue_replay.p99_wait_16gpu_vs_easy', 'x', '<=1.0')
def p99_easy():
    return BY_USE.wait_16('easy')


@figure('queue_replay.p99_wait_16gpu_vs_strict', 'x', '<=1.0')
def p99_strict():
    return BY_USE.wait_16('strict-fifo')


@figure('queue_replay.mean_wait_16gpu_vs_easy', 'x', '-')
def mean_easy():
    return BY_USE.wait_16('easy', 'mean_s')


@figure('queue_replay.jain_p5', 'index', '-')
def jain_p5():
    """Of the hourly indices of received over entitled GPU-hours, the one that 5 % are below."""
    return BY_USE.ours()['jain_p5']


@figure('queue_replay.jain_p5_over_best', 'x', '>=1.0')
def jain_ratio():
    return BY_USE.over_best('jain_p5')


@figure('queue_replay.lost_percent', '%', '-')
def lost():
    """Work lost to eviction, of all that ran until the last arrival."""
    ours = BY_USE.ours()
    return 100 * (ours['occupied'] - ours['utilisation']) / ours['occupied']


@figure('queue_replay.seconds', 's', '-')
def seconds():
    return BY_USE.ours()['seconds']


@figure('queue_replay.equal_weights_utilisation_ratio', 'x', '>=1.0')
def equal_utilisation():
    return EQUAL.over_best('utilisation')


@figure('queue_replay.equal_weights_p99_wait_16gpu_vs_fifo', 'x', '<=1.0')
def equal_p99_fifo():
    return EQUAL.wait_16(FIFO)


@figure('queue_replay.equal_weights_p99_wait_16gpu_vs_easy', 'x', '<=1.0')
def equal_p99_easy():
    return EQUAL.wait_16('easy')


@figure('queue_replay.equal_weights_jain_p5_over_best', 'x', '>=1.0')
def equal_jain_ratio():
    return EQUAL.over_best('jain_p5')
