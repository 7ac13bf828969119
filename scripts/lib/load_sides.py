"""The servers that scripts/bench puts under load: `tessera up`, and etcd with kube-apiserver, each with a disk folder of
its own beside the other's, real fsync, the same certificates and the same client."""

import functools
import json
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

import running
from figures import Broken, Skip, cpu_seconds, program, resident_mb


@functools.lru_cache(None)
def control_plane():
    """The folder with etcd and kube-apiserver."""
    result = subprocess.run([os.path.join(running.ROOT, 'scripts', 'kubernetes')], stdin=subprocess.DEVNULL,
                            capture_output=True, text=True, check=False)
    if result.returncode:
        raise Skip(f'no control plane: {result.stderr.strip()[-300:]}')
    return result.stdout.strip()


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(('127.0.0.1', 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Side:
    """Processes in a folder, ended in reverse order with the `with` block. Subclasses start them in `launch`."""

    def __enter__(self):
        self.folder, self.children = tempfile.mkdtemp(prefix='tessera-load-'), []
        try:
            self.launch()
            self.wait_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for child in reversed(self.children):
            child.terminate()
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                pass
            running.end(child)
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, name, command, stdout=None):
        with open(os.path.join(self.folder, name + '.log'), 'wb') as log:
            child = subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=stdout or log, stderr=log,
                                     start_new_session=True)
        self.children.append(child)
        return child

    def wait_ready(self, limit_s=90):
        context = ssl.create_default_context(cafile=f'{self.pki}/ca.crt')
        context.load_cert_chain(f'{self.pki}/admin.crt', f'{self.pki}/admin.key')
        end, last = time.monotonic() + limit_s, ''
        while time.monotonic() < end:
            for child in self.children:
                if child.poll() is not None:
                    raise Broken(f'{child.args[0]} ended with {child.returncode}')
            try:
                with urllib.request.urlopen(f'https://127.0.0.1:{self.port}/readyz', timeout=5, context=context):
                    return
            except (OSError, urllib.error.URLError) as problem:
                last = str(problem)
            time.sleep(0.1)
        raise Broken(f'{type(self).__name__} did not become ready: {last}')

    def resident_mb(self):
        return sum(resident_mb(child.pid) for child in self.children)

    def cpu_seconds(self):
        return sum(cpu_seconds(child.pid) for child in self.children)

    def load_command(self, mode, **options):
        command = [program('tests/tessera_load'), mode, '--port', str(self.port), '--ca', f'{self.pki}/ca.crt',
                   '--certificate', f'{self.pki}/admin.crt', '--key', f'{self.pki}/admin.key']
        for name, value in options.items():
            command += ['--' + name, str(value)]
        return command

    def load(self, mode, limit_s=600, **options):
        """Runs tessera_load to its end; what it found, its last line."""
        result = subprocess.run(self.load_command(mode, **options), input='\n', capture_output=True, text=True,
                                timeout=limit_s, check=False)
        if result.returncode:
            raise Broken(f'tessera_load {mode}: status {result.returncode}: {result.stderr.strip()[-400:]}')
        return {**json.loads(result.stdout.strip().splitlines()[-1]), 'faults': result.stderr.strip()}


class Tessera(Side):
    """The API with its controllers and its audit log, as `tessera up --nodes 0` runs it: no scheduler, no kubelets."""

    def launch(self):
        data = os.path.join(self.folder, 'data')
        child = self.start('tessera', [program('tessera'), 'up', '--nodes', '0', '--data', data, '--port', '0'],
                           stdout=subprocess.PIPE)
        line = child.stdout.readline().decode()
        if not line.startswith('ready '):
            raise Broken(f'tessera up did not become ready: {line}')
        self.port, self.pki = int(line.rsplit(':', 1)[1]), os.path.join(data, 'pki')


class ControlPlane(Side):
    """etcd and kube-apiserver with default admission and RBAC; `flags` are added to kube-apiserver's."""

    # Nothing is refused for want of a seat; priority and fairness stays on.
    RAISED = ('--max-requests-inflight=3000', '--max-mutating-requests-inflight=1500')

    def __init__(self, pki, flags=()):
        self.pki, self.flags = pki, flags

    def launch(self):
        client, peer, self.port = free_ports(3)
        key, public = os.path.join(self.folder, 'sa.key'), os.path.join(self.folder, 'sa.pub')
        for command in (['openssl', 'genrsa', '-out', key, '2048'],
                        ['openssl', 'rsa', '-in', key, '-pubout', '-out', public]):
            subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True)
        etcd = f'http://127.0.0.1:{client}'
        self.start('etcd', [f'{control_plane()}/etcd', '--data-dir', os.path.join(self.folder, 'etcd'),
                            '--listen-client-urls', etcd, '--advertise-client-urls', etcd,
                            '--listen-peer-urls', f'http://127.0.0.1:{peer}', '--log-level', 'error'])
        self.start('kube-apiserver', [
            f'{control_plane()}/kube-apiserver', f'--etcd-servers={etcd}', f'--secure-port={self.port}',
            '--bind-address=127.0.0.1', f'--tls-cert-file={self.pki}/server.crt',
            f'--tls-private-key-file={self.pki}/server.key', f'--client-ca-file={self.pki}/ca.crt',
            f'--service-account-key-file={public}', f'--service-account-signing-key-file={key}',
            '--service-account-issuer=https://kubernetes.default.svc', '--authorization-mode=Node,RBAC',
            '--service-cluster-ip-range=10.96.0.0/16', '--allow-privileged=true', *self.flags])
