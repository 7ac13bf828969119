"""Schedulers under load on a real etcd and kube-apiserver: ours and kube-scheduler, each as a process of its own on a control
plane of its own, with the same nodes, pods, certificates and watch client.

    scripts/lib/scheduler_sides.py --nodes 1000 --pods 3000 --out FILE     # all workloads; needs build/release
"""

import argparse
import contextlib
import functools
import json
import os
import platform
import re
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request

import running
from figures import Broken, Skip, cpu_seconds, program
from load_sides import ControlPlane, Tessera

# Without kube-controller-manager there are no service accounts, and nobody takes a new node's taint away.
API_FLAGS = ('--disable-admission-plugins=ServiceAccount,TaintNodesByCondition', *ControlPlane.RAISED)
GATES = 'GenericWorkload=true,GangScheduling=true'
NATIVE = 'scheduling.k8s.io/v1alpha2'
GANG_FLAGS = (f'--feature-gates={GATES}', f'--runtime-config={NATIVE}=true')

# Best settings: no limit of its own on calls, and packing where a GPU is what counts.
KUBE_SCHEDULER_CONFIG = {
    'apiVersion': 'kubescheduler.config.k8s.io/v1', 'kind': 'KubeSchedulerConfiguration',
    'leaderElection': {'leaderElect': False},
    'profiles': [{'schedulerName': 'default-scheduler', 'pluginConfig': [
        {'name': 'NodeResourcesFit', 'args': {'scoringStrategy': {
            'type': 'MostAllocated', 'resources': [{'name': 'nvidia.com/gpu', 'weight': 1}]}}}]}]}
SETTINGS = {
    'tessera': 'tessera scheduler, defaults, no leader election',
    'kube-scheduler': 'qps and burst 5000, no leader election, MostAllocated on nvidia.com/gpu; for gangs ' + GATES,
}


class Workload:
    """`rate` 0 is a backlog: all pods wait when the scheduler starts."""

    def __init__(self, name, pods, rate=0, gang=1, native=False):
        self.name, self.pods, self.rate, self.gang, self.native = name, pods, rate, gang, native


def workloads(pods, rates=(20, 50, 100), gangs=None):
    found = [Workload('backlog', pods)]
    found += [Workload(f'rate_{rate}', min(pods, 60 * rate), rate=rate) for rate in rates]
    found.append(Workload('gangs', (gangs or pods // 3) * 3, gang=3, native=True))
    return found


@functools.lru_cache(None)
def kube_scheduler():
    result = subprocess.run([os.path.join(running.ROOT, 'scripts', 'kubernetes'), 'kube-scheduler'],
                            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if result.returncode:
        raise Skip(f'no kube-scheduler: {result.stderr.strip()[-300:]}')
    return os.path.join(result.stdout.strip(), 'kube-scheduler')


class Lab(ControlPlane):
    """A control plane with a scheduler: `start_scheduler` runs it, `used` says what it has taken."""

    def __init__(self, pki, name, gangs):
        super().__init__(pki, API_FLAGS + (GANG_FLAGS if gangs else ()))
        self.name, self.gangs, self.scheduler = name, gangs, None

    def command(self):
        kubeconfig = os.path.join(self.folder, 'kubeconfig')
        write_json(kubeconfig, {
            'apiVersion': 'v1', 'kind': 'Config', 'current-context': 'lab',
            'contexts': [{'name': 'lab', 'context': {'cluster': 'lab', 'user': 'lab'}}],
            'clusters': [{'name': 'lab', 'cluster': {'server': f'https://127.0.0.1:{self.port}',
                                                     'certificate-authority': f'{self.pki}/ca.crt'}}],
            'users': [{'name': 'lab', 'user': {'client-certificate': f'{self.pki}/admin.crt',
                                               'client-key': f'{self.pki}/admin.key'}}]})
        if self.name == 'tessera':
            return [program('tessera'), 'scheduler', '--kubeconfig', kubeconfig, '--name', 'default-scheduler',
                    '--no-leader-election']
        config = os.path.join(self.folder, 'kube-scheduler.config')
        write_json(config, {**KUBE_SCHEDULER_CONFIG, 'clientConnection': {
            'kubeconfig': kubeconfig, 'qps': 5000, 'burst': 5000}})
        return [kube_scheduler(), '--config', config, '--secure-port=0',
                *([f'--feature-gates={GATES}'] if self.gangs else [])]

    def start_scheduler(self):
        self.scheduler = self.start(self.name, self.command())

    def used(self):
        """(CPU seconds, highest resident MB) of the scheduler's process."""
        if self.scheduler.poll() is not None:
            with open(os.path.join(self.folder, self.name + '.log'), encoding='utf-8', errors='replace') as log:
                raise Broken(f'{self.name} ended with {self.scheduler.returncode}: {log.read()[-400:]}')
        with open(f'/proc/{self.scheduler.pid}/status', encoding='utf-8') as file:
            peak_kb = int(re.search(r'^VmHWM:\s+(\d+)', file.read(), re.M).group(1))
        return cpu_seconds(self.scheduler.pid), peak_kb * 1024 / 1e6

    def requests(self):
        """{(verb, resource, subresource): count} so far."""
        context = ssl.create_default_context(cafile=f'{self.pki}/ca.crt')
        context.load_cert_chain(f'{self.pki}/admin.crt', f'{self.pki}/admin.key')
        with urllib.request.urlopen(f'https://127.0.0.1:{self.port}/metrics', timeout=30, context=context) as page:
            text = page.read().decode()
        found = {}
        for labels, value in re.findall(r'^apiserver_request_total\{([^}]*)\} (\S+)$', text, re.M):
            label = dict(re.findall(r'(\w+)="([^"]*)"', labels))
            key = (label['verb'], label['resource'], label['subresource'])
            found[key] = found.get(key, 0) + float(value)
        return found

    def settled(self, limit_s=30):
        """The requests once the scheduler asks for no more: what it writes after the last binding is its work too."""
        found, end = self.requests(), time.monotonic() + limit_s
        while time.monotonic() < end:
            time.sleep(1)
            before, found = found, self.requests()
            if all(found.get(key) == before.get(key) for key in found if key[1] in ('pods', 'events', 'podgroups')):
                break
        return found


def write_json(path, value):
    with open(path, 'w', encoding='utf-8') as file:
        json.dump(value, file)


# Requests for these are the scheduler's, but for the load's own: creations of pods, nodes and groups, and one watch.
SCHEDULERS_KINDS = {'pods', 'nodes', 'events', 'podgroups', 'workloads', 'persistentvolumes', 'persistentvolumeclaims',
                    'storageclasses', 'namespaces', 'priorityclasses', 'queues'}
LOADS_OWN = {('POST', 'pods', ''), ('POST', 'nodes', ''), ('POST', 'podgroups', '')}


def per_pod(before, after, bound):
    """Requests of the scheduler for each bound pod: {"POST pods/binding": 1.0, ..., "all": 2.0}."""
    asked = {}
    for key, count in after.items():
        more = count - before.get(key, 0)
        if more > 0 and key[1] in SCHEDULERS_KINDS and key not in LOADS_OWN:
            asked[f"{key[0]} {key[1]}{'/' + key[2] if key[2] else ''}"] = more
    shares = {what: round(count / bound, 3) for what, count in sorted(asked.items())}
    return {**{what: share for what, share in shares.items() if share >= 0.01}, 'all': round(sum(asked.values()) / bound, 3)}


def run(name, workload, nodes, pki, limit_s=600):
    """What one scheduler did with one workload, on a fresh control plane."""
    with Lab(pki, name, workload.native) as lab:
        lab.load('schedule', nodes=nodes)
        before = lab.requests()
        options = {'pods': workload.pods, 'rate': workload.rate, 'gang': workload.gang, 'scheduler': 'default-scheduler',
                   'limit-s': limit_s, **({'gang-api': NATIVE} if workload.native else {})}
        if workload.rate:
            lab.start_scheduler()
            time.sleep(3)  # until it has read the nodes
        idle_cpu = lab.used()[0] if workload.rate else 0
        with subprocess.Popen(lab.load_command('schedule', **options), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as client:
            if client.stdout.readline() != 'ready\n':
                raise Broken('tessera_load schedule did not get ready')
            if not workload.rate:
                lab.start_scheduler()
            out, _ = client.communicate('\n', timeout=limit_s + 300)
        if client.returncode:
            raise Broken(f'tessera_load schedule ended with {client.returncode}')
        result = json.loads(out)
        bound = max(1, result['bound'])
        after = lab.settled()
        cpu_s, peak_mb = lab.used()
        result['cpu_ms_per_pod'] = round((cpu_s - idle_cpu) / bound * 1000, 3)
        result['rss_peak_mb'] = round(peak_mb, 1)
        result['pods_per_s'] = round(result['bound'] / max(result['bound_span_s'], 0.001), 1)
        result['requests_per_pod'] = per_pod(before, after, bound)
        return result


@contextlib.contextmanager
def certificates():
    with Tessera() as side, tempfile.TemporaryDirectory() as folder:
        for name in ('ca.crt', 'admin.crt', 'admin.key', 'server.crt', 'server.key'):
            with open(f'{side.pki}/{name}', 'rb') as source, open(f'{folder}/{name}', 'wb') as target:
                target.write(source.read())
        side.children[0].send_signal(signal.SIGTERM)
        side.children[0].wait(20)
        yield folder


def machine():
    with open('/proc/cpuinfo', encoding='utf-8') as file:
        model = re.search(r'^model name\s*:\s*(.*)$', file.read(), re.M)
    return {'cores': os.cpu_count(), 'processor': model.group(1) if model else 'unknown',
            'system': f'{platform.system()} {platform.release()}', 'load_before': round(os.getloadavg()[0], 2)}


def ratios(sides):
    """Ours to theirs: below one is better, but for pods_per_s."""
    ours, theirs = sides['tessera'], sides['kube-scheduler']
    return {what: round(ours[what] / theirs[what], 4) if theirs[what] else None
            for what in ('cpu_ms_per_pod', 'rss_peak_mb', 'pods_per_s', 'pod_p50_ms', 'pod_p99_ms')}


def undisturbed(name, workload, nodes, pki, limit_s, attempts=3):
    """A run in which the API server ended no watch, or the fastest of some: on a machine that others use it cuts watches that
    are slow to read, and a scheduler whose own watch is cut stands for a minute and more."""
    runs = []
    while len(runs) < attempts and all(one['watch_breaks'] for one in runs):
        runs.append(run(name, workload, nodes, pki, limit_s))
    best = min(runs, key=lambda one: (one['watch_breaks'] > 0, one['seconds']))
    return {**best, 'runs': len(runs)}


def compare(nodes, todo, names=('tessera', 'kube-scheduler'), limit_s=600):
    """Every workload on every side, by turns."""
    out = {'machine': machine(), 'nodes': nodes, 'gpus_per_node': 8, 'settings': SETTINGS, 'workloads': {}}
    with certificates() as pki:
        for workload in todo:
            sides = {}
            for name in names:
                sides[name] = undisturbed(name, workload, nodes, pki, limit_s)
                print(f'# {workload.name}: {name}: {json.dumps(sides[name])}', file=sys.stderr, flush=True)
            out['workloads'][workload.name] = {
                'pods': workload.pods, 'rate': workload.rate or 'backlog', 'gang': workload.gang, **sides,
                **({'ratio': ratios(sides)} if len(sides) == 2 else {})}
    return out


def main():
    parser = argparse.ArgumentParser(description='both schedulers on a real control plane; JSON')
    parser.add_argument('--nodes', type=int, default=1000)
    parser.add_argument('--pods', type=int, default=3000)
    parser.add_argument('--only', help='workloads whose names have this part')
    parser.add_argument('--side', action='append', choices=tuple(SETTINGS), help='one side alone')
    parser.add_argument('--limit-s', type=int, default=600)
    parser.add_argument('--out', help='a file instead of standard output')
    options = parser.parse_args()
    todo = [w for w in workloads(options.pods) if not options.only or options.only in w.name]
    text = json.dumps(compare(options.nodes, todo, tuple(options.side or SETTINGS), options.limit_s), indent=1)
    if options.out:
        with open(options.out, 'w', encoding='utf-8') as file:
            file.write(text + '\n')
    else:
        print(text)


if __name__ == '__main__':
    try:
        main()
    except (Broken, Skip) as problem:
        sys.exit(f'scheduler_sides: {problem}')
