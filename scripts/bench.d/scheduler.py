"""Our scheduler and kube-scheduler on a real etcd and kube-apiserver, side by side: 1000 nodes of 8 GPUs and 3000 one-GPU pods,
as a backlog, at fixed rates, and as gangs of three. What was seen, with the machine and the ratios, is kept as JSON."""

import functools
import json
import os

import running
import scheduler_sides
from figures import Broken, figure

NODES, PODS = 1000, 3000
REPORT = os.path.join(running.ROOT, 'build', 'bench', 'scheduler.json')
WORKLOADS = {workload.name: workload for workload in scheduler_sides.workloads(PODS)}


@functools.lru_cache(None)
def seen(name):
    """Both sides with one workload: {side: what it did, 'ratio': ours to theirs}."""
    found = scheduler_sides.compare(NODES, [WORKLOADS[name]])
    keep(found)
    both = found['workloads'][name]
    for side in scheduler_sides.SETTINGS:
        if both[side]['bound'] < WORKLOADS[name].pods:
            raise Broken(f"{side} bound {both[side]['bound']} of {WORKLOADS[name].pods} pods")
        if both[side].get('gangs_partial'):
            raise Broken(f"{side} left {both[side]['gangs_partial']} gangs in part")
    return both


def keep(found):
    """Adds to the report of this checkout."""
    os.makedirs(os.path.dirname(REPORT), exist_ok=True)
    try:
        with open(REPORT, encoding='utf-8') as file:
            found['workloads'] = {**json.load(file)['workloads'], **found['workloads']}
    except (OSError, ValueError, KeyError):
        pass
    scheduler_sides.write_json(REPORT, found)


def define(workload, what, unit, target, read):
    figure(f'scheduler.{workload}_{what}', unit, target)(lambda: read(seen(workload)))


for _workload in ('backlog', 'gangs'):
    define(_workload, 'cpu_ms_per_pod', 'ms', '<=0.84', lambda both: both['tessera']['cpu_ms_per_pod'])
    define(_workload, 'cpu_share', 'share', '<=0.1', lambda both: both['ratio']['cpu_ms_per_pod'])
    define(_workload, 'rss_peak_mb', 'MB', '<=45', lambda both: both['tessera']['rss_peak_mb'])
    define(_workload, 'memory_share', 'share', '<=0.333', lambda both: both['ratio']['rss_peak_mb'])
    define(_workload, 'pods_per_s', 'pods/s', '-', lambda both: both['tessera']['pods_per_s'])
    define(_workload, 'throughput_ratio', 'x', '>=2', lambda both: both['ratio']['pods_per_s'])
    define(_workload, 'requests_per_pod', 'requests', '-', lambda both: both['tessera']['requests_per_pod']['all'])
    define(_workload, 'real_cpu_ms_per_pod', 'ms', '-', lambda both: both['kube-scheduler']['cpu_ms_per_pod'])
    define(_workload, 'real_rss_peak_mb', 'MB', '-', lambda both: both['kube-scheduler']['rss_peak_mb'])
    define(_workload, 'real_pods_per_s', 'pods/s', '-', lambda both: both['kube-scheduler']['pods_per_s'])
for _workload in (name for name in WORKLOADS if name.startswith('rate_')):
    define(_workload, 'p50_ms', 'ms', '-', lambda both: both['tessera']['pod_p50_ms'])
    define(_workload, 'p99_ms', 'ms', '-', lambda both: both['tessera']['pod_p99_ms'])
    define(_workload, 'real_p99_ms', 'ms', '-', lambda both: both['kube-scheduler']['pod_p99_ms'])
    define(_workload, 'p99_ratio', 'x', '<=1', lambda both: both['ratio']['pod_p99_ms'])
    define(_workload, 'cpu_share', 'share', '<=0.1', lambda both: both['ratio']['cpu_ms_per_pod'])
