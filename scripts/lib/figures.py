"""What an area file of scripts/bench.d uses: the list of figures, and the programs they are measured with.

    @figure('area.what', 'unit', '<=1.0')      # or '>=2000', or '-' for a figure without a target
    def what():
        return value                           # raise Skip(reason) when it cannot be measured on this machine
"""

import functools
import os
import subprocess
import tempfile
import time

import running

RELEASE = os.path.join(running.ROOT, 'build', 'release')
ALL = []


class Skip(Exception):
    """This machine lacks something that the figure needs."""


class Broken(Exception):
    """A program that was measured failed."""


class Figure:
    def __init__(self, name, unit, target, measure):
        self.name, self.unit, self.target, self.measure = name, unit, target, measure


def figure(name, unit, target):
    def add(measure):
        ALL.append(Figure(name, unit, target, measure))
        return measure
    return add


def program(name):
    path = os.path.join(RELEASE, name)
    if not os.access(path, os.X_OK):
        raise Skip(f'build/release/{name} is missing')
    return path


def shared(*parts):
    """A path in the folder of third-party data."""
    folder = os.environ.get('TESSERA_SHARED') or os.path.join(os.path.dirname(running.ROOT), 'shared')
    path = os.path.join(folder, *parts)
    if not os.path.exists(path):
        raise Skip(f'{os.path.join(*parts)} is missing: set TESSERA_SHARED to the folder that has it')
    return path


class Ran:
    """How a command went: wall seconds, its own peak memory in MB, what it printed."""

    def __init__(self, seconds, peak_mb, output):
        self.seconds, self.peak_mb, self.output = seconds, peak_mb, output


def measured(command, limit_s=600, good=(0,)):
    """Runs a command to its end. Raises Broken when its status is not a good one or it runs past the limit."""
    with tempfile.TemporaryFile() as output:
        started = time.monotonic()
        child = subprocess.Popen(command, cwd=running.ROOT, stdin=subprocess.DEVNULL, stdout=output,
                                 stderr=subprocess.STDOUT, start_new_session=True)
        pid, status, usage = wait(child, started + limit_s)
        seconds = time.monotonic() - started
        if pid == 0:
            running.end(child)
        output.seek(0)
        text = output.read().decode('utf-8', 'replace')
    if pid == 0:
        raise Broken(f"{' '.join(command)}: ended after {limit_s} s")
    if status not in good:
        raise Broken(f"{' '.join(command)}: status {status}: {text.strip()[-400:]}")
    return Ran(seconds, usage.ru_maxrss * 1024 / 1e6, text)


def wait(child, deadline):
    """(pid, status, resource usage) of the child; pid 0 when the deadline came first."""
    pause = 0.0005
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            return pid, child.returncode, usage
        if time.monotonic() > deadline:
            return 0, None, None
        time.sleep(pause)
        pause = min(pause * 2, 0.005)


def resident_mb(pid):
    with open(f'/proc/{pid}/status', encoding='utf-8') as file:
        for line in file:
            if line.startswith('VmRSS:'):
                return int(line.split()[1]) * 1024 / 1e6
    raise Broken(f'process {pid} is gone')


def cpu_seconds(pid):
    with open(f'/proc/{pid}/stat', encoding='utf-8') as file:
        fields = file.read().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


class Cluster:
    """`tessera up` in a folder of its own, ended with the `with` block."""

    def __init__(self, nodes):
        self.nodes = nodes

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix='tessera-bench-')
        self.kubeconfig = os.path.join(self.folder.name, 'kubeconfig')
        self.log = open(os.path.join(self.folder.name, 'log'), 'w+b')
        tessera = program('tessera')
        self.started = time.monotonic()
        self.child = subprocess.Popen(
            [tessera, 'up', '--nodes', str(self.nodes), '--data', os.path.join(self.folder.name, 'data'), '--port', '0',
             '--kubeconfig', self.kubeconfig],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT, start_new_session=True)
        return self

    def __exit__(self, *_):
        self.child.terminate()
        try:
            self.child.wait(10)
        except subprocess.TimeoutExpired:
            pass
        running.end(self.child)
        self.log.close()
        self.folder.cleanup()

    def said(self):
        self.log.seek(0)
        return self.log.read().decode('utf-8', 'replace').strip()[-400:]

    def await_nodes(self, limit_s=60):
        """Seconds from the start until `kubectl get nodes` answered with every node."""
        kubectl = real_kubectl()
        answer = ''
        while time.monotonic() - self.started < limit_s:
            if self.child.poll() is not None:
                raise Broken(f'tessera up ended with {self.child.returncode}: {self.said()}')
            if not os.path.exists(self.kubeconfig):
                time.sleep(0.005)
                continue
            result = subprocess.run([kubectl, '--kubeconfig', self.kubeconfig, 'get', 'nodes', '--no-headers'],
                                    stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False,
                                    env={**os.environ, 'HOME': self.folder.name})
            seconds = time.monotonic() - self.started
            if result.returncode == 0 and result.stdout.count('\n') == self.nodes:
                return seconds
            answer = (result.stdout + result.stderr).strip()[-300:]
            time.sleep(0.01)
        raise Broken(f'no {self.nodes} nodes within {limit_s} s: kubectl said "{answer}", tessera up said "{self.said()}"')


@functools.lru_cache(None)
def real_kubectl():
    result = subprocess.run([os.path.join(running.ROOT, 'scripts', 'kubectl')], stdin=subprocess.DEVNULL,
                            capture_output=True, text=True, check=False)
    if result.returncode:
        raise Skip(f'no kubectl: {result.stderr.strip()[-300:]}')
    return result.stdout.strip()


@functools.lru_cache(None)
def at_rest(nodes, settle_s=10, over_s=20):
    """(resident MB, percent of one core) of `tessera up` with nothing to do, after it settled."""
    with Cluster(nodes) as cluster:
        cluster.await_nodes()
        time.sleep(settle_s)
        before, started = cpu_seconds(cluster.child.pid), time.monotonic()
        time.sleep(over_s)
        used = cpu_seconds(cluster.child.pid) - before
        return resident_mb(cluster.child.pid), 100 * used / (time.monotonic() - started)
