"""`tessera up` with 24 nodes: how soon it answers, and what it costs at rest."""

import statistics

from figures import Cluster, at_rest, figure, program, real_kubectl

NODES = 24


@figure('start.first_answer_s', 's', '<=1.5')
def first_answer_s():
    """From the start of the process until a kubectl command that shows all nodes has ended; median of 3 starts."""
    program('tessera'), real_kubectl()
    seconds = []
    for _ in range(3):
        with Cluster(NODES) as cluster:
            seconds.append(cluster.await_nodes())
    return statistics.median(seconds)


@figure('start.rest_rss_mb', 'MB', '<=80')
def rest_rss_mb():
    return at_rest(NODES)[0]


@figure('start.rest_cpu_percent', '%', '<=3')
def rest_cpu_percent():
    return at_rest(NODES)[1]
