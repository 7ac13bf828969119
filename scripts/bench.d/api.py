"""The same trace through the embedded Kubernetes API, with simulated kubelets."""

import functools
import re

from figures import figure, measured, program, shared


@functools.lru_cache(None)
def through_api():
    """(pods a second, peak MB): the 8152 pods of the default workload, created, admitted, bound and running."""
    ran = measured([program('tessera'), 'replay', '--nodes', shared('data', 'openb', 'openb_node_list_gpu_node.csv'),
                    '--pods', shared('data', 'openb', 'openb_pod_list_default.csv'), '--policy', 'fgd',
                    '--seeds', '42', '--load', '98', '--through-api'])
    line = re.search(r'(\d+) pods through the API in ([\d.]+) s', ran.output)
    return int(line[1]) / float(line[2]), ran.peak_mb


@figure('api.pods_per_second', 'pods/s', '>=2000')
def pods_per_second():
    return through_api()[0]


@figure('api.rss_mb', 'MB', '<=400')
def rss_mb():
    return through_api()[1]
