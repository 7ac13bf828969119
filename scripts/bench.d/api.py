"""The same trace through the embedded Kubernetes API, with simulated kubelets."""

import functools
import json
import os
import tempfile

from figures import figure, measured, program, shared


@functools.lru_cache(None)
def through_api():
    """(pods a second, peak MB): the 8152 pods of the default workload, created, admitted, bound and running."""
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, 'report.json')
        ran = measured([program('tessera'), 'replay', '--nodes', shared('data', 'openb', 'openb_node_list_gpu_node.csv'),
                        '--pods', shared('data', 'openb', 'openb_pod_list_default.csv'), '--policy', 'fgd',
                        '--seeds', '42', '--load', '98', '--through-api', '--json', report])
        with open(report, encoding='utf-8') as file:
            run = json.load(file)['runs'][0]
    return run['pods'] / run['seconds'], ran.peak_mb


@figure('api.pods_per_second', 'pods/s', '>=2000')
def pods_per_second():
    return through_api()[0]


@figure('api.rss_mb', 'MB', '<=400')
def rss_mb():
    return through_api()[1]
