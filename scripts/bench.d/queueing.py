"""The queues in process: 500 nodes of 8 GPUs, gangs, reclaim, very many that wait."""

import functools
import json
import os
import tempfile

from figures import Broken, figure, measured, program

MILLISECONDS = {'ns': 1e-6, 'us': 1e-3, 'ms': 1.0, 's': 1e3}


@functools.lru_cache(None)
def medians():
    """{benchmark: median of its repetitions in milliseconds}, and the peak memory of the program in MB."""
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, 'report.json')
        run = measured([program('tests/tessera_bench'), '--benchmark_filter=^BM_queueing_', '--benchmark_repetitions=3',
                        '--benchmark_report_aggregates_only=true', f'--benchmark_out={report}',
                        '--benchmark_out_format=json'])
        with open(report, encoding='utf-8') as file:
            rows = json.load(file)['benchmarks']
    found = {row['run_name'].split('/')[0]: row['real_time'] * MILLISECONDS[row['time_unit']]
             for row in rows if row.get('aggregate_name') == 'median'}
    return found, run.peak_mb


def median(name):
    found, _ = medians()
    if name not in found:
        raise Broken(f'tessera_bench has no {name}, only {sorted(found)}')
    return found[name]


@figure('queueing.fill_4000_gpus_ms', 'ms', '<=100')
def fill():
    return median('BM_queueing_fill_4000')


@figure('queueing.no_to_a_gang_ms', 'ms', '<=10')
def no():
    return median('BM_queueing_say_no_to_a_gang')


@figure('queueing.reclaim_2000_gpus_ms', 'ms', '<=50')
def reclaim():
    return median('BM_queueing_reclaim_2000_gpus')


@figure('queueing.cycle_4000_4000_ms', 'ms', '<=500')
def cycle():
    return median('BM_queueing_cycle_4000_running_4000_pending')


@figure('queueing.cycle_100k_pending_ms', 'ms', '<=1000')
def pending():
    return median('BM_queueing_cycle_100k_pending_1000_queues')


@figure('queueing.memory_mb', 'MB', '<=1000')
def memory():
    return medians()[1]
