"""One decision of the scheduler's core on 10 000 nodes of 8 GPUs."""

import functools
import json
import os
import tempfile

from figures import Broken, figure, measured, program

MICROSECONDS = {'ns': 1e-3, 'us': 1.0, 'ms': 1e3, 's': 1e6}


@functools.lru_cache(None)
def medians():
    """{benchmark: median of its repetitions in microseconds}."""
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, 'report.json')
        measured([program('tests/tessera_bench'), '--benchmark_filter=^BM_decision_', '--benchmark_repetitions=5',
                  '--benchmark_report_aggregates_only=true', f'--benchmark_out={report}', '--benchmark_out_format=json'])
        with open(report, encoding='utf-8') as file:
            rows = json.load(file)['benchmarks']
    return {row['run_name'].split('/')[0]: row['real_time'] * MICROSECONDS[row['time_unit']]
            for row in rows if row.get('aggregate_name') == 'median'}


def median(name):
    if name not in medians():
        raise Broken(f'tessera_bench has no {name}, only {sorted(medians())}')
    return medians()[name]


@figure('core.decision_cached_us', 'us', '<=50')
def decision_cached_us():
    return median('BM_decision_cached')


@figure('core.decision_uncached_us', 'us', '<=500')
def decision_uncached_us():
    return median('BM_decision_uncached')
