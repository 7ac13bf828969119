"""FGD (USENIX ATC'23) reproduced: allocation against the published curves, and what a run costs."""

import csv
import functools
import json
import os
import statistics
import tempfile

from figures import Broken, figure, measured, program, shared

SEEDS = '42,43,44,45,46'
LOADS = (100, 130)  # percent of arrived load at which the curves are compared
WORKLOADS = ('default cpu050 cpu100 cpu200 cpu250 gpushare40 gpushare60 gpushare80 gpushare100 gpuspec10 gpuspec20 '
             'gpuspec25 gpuspec33 multigpu20 multigpu30 multigpu40 multigpu50').split()
PUBLISHED = {'dotprod': '02-DotProd', 'clustering': '03-GpuClustering', 'packing': '04-GpuPacking',
             'bestfit': '05-BestFit', 'fgd': '06-FGD'}


def replay(workload, policies, seeds, *more):
    """Runs `tessera replay` on one openb workload; returns (the runs of its JSON, how the process went)."""
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, 'report.json')
        ran = measured([program('tessera'), 'replay', '--nodes', shared('data', 'openb', 'openb_node_list_gpu_node.csv'),
                        '--pods', shared('data', 'openb', f'openb_pod_list_{workload}.csv'),
                        '--arrivals', shared('data', 'openb', 'arrivals', f'{workload}.seq.gz'),
                        '--policy', ','.join(policies), '--seeds', seeds, '--json', report, *more])
        with open(report, encoding='utf-8') as file:
            runs = json.load(file)['runs']
    wanted = len(policies) * len(seeds.split(','))
    if len(runs) != wanted:
        raise Broken(f'replay of {workload} gave {len(runs)} runs where {wanted} were asked for')
    return runs, ran


@functools.lru_cache(None)
def published(seeds=None):
    """{(workload, policy as published): {load: mean allocation over the 10 seeds, or over those of `seeds`}}."""
    rows = {}
    with open(shared('data', 'openb', 'expected_results', 'analysis_allo_discrete.csv'), encoding='utf-8') as file:
        for row in csv.DictReader(file):
            if seeds and row['seed'] not in seeds.split(','):
                continue
            key = row['workload'].replace('openb_pod_list_', ''), row['sc_policy']
            rows.setdefault(key, []).append({load: float(row[str(load)]) for load in LOADS})
    return {key: {load: statistics.mean(run[load] for run in runs) for load in LOADS} for key, runs in rows.items()}


def error_points(workload, policies, seeds=None):
    """The largest difference to the published means (of those seeds), in points of allocation."""
    worst = 0.0
    runs, _ = replay(workload, policies, SEEDS)
    for policy in policies:
        of_policy = [run for run in runs if run['policy'] == policy]
        if not of_policy:
            raise Broken(f"no run of policy {policy} in the report, only {sorted({run['policy'] for run in runs})}")
        for load in LOADS:
            mean = statistics.mean(run['allocation'][run['load'].index(load)] for run in of_policy)
            worst = max(worst, abs(mean - published(seeds)[workload, PUBLISHED[policy]][load]))
    return worst


@figure('replay.fgd_error_points', 'points', '<=0.15')
def fgd_error_points():
    return max(error_points(workload, ['fgd']) for workload in WORKLOADS)


@figure('replay.fgd_error_same_seeds_points', 'points', '<=0.15')
def fgd_error_same_seeds_points():
    """Against the published runs whose arrivals are the ones replayed; only the order of nodes differs by chance."""
    return max(error_points(workload, ['fgd'], SEEDS) for workload in WORKLOADS)


@figure('replay.policies_error_points', 'points', '<=0.15')
def policies_error_points():
    return max(error_points(workload, list(PUBLISHED))
               for workload in ('default', 'cpu250', 'gpushare100', 'gpuspec33', 'multigpu50'))


@functools.lru_cache(None)
def single_runs():
    return [replay('default', ['fgd'], '42')[1] for _ in range(5)]


@figure('replay.fgd_seconds', 's', '<=0.4')
def fgd_seconds():
    """The whole process, reading the files included."""
    return statistics.median(ran.seconds for ran in single_runs())


@figure('replay.fgd_rss_mb', 'MB', '<=100')
def fgd_rss_mb():
    return max(ran.peak_mb for ran in single_runs())
