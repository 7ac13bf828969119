"""The two sides: `tessera up` and a real control plane, each on a temporary folder and free ports."""

import http.client
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
TOKEN = 'conformance'


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def all(self, name):
        return [value for key, value in self.headers if key.lower() == name.lower()]


class Server:
    """Something that speaks HTTPS on loopback. `connect` gives a connection of the caller's own."""

    def __init__(self, port, context, headers):
        self.port, self.context, self.headers = port, context, headers

    def connect(self, limit_s=30):
        return http.client.HTTPSConnection('127.0.0.1', self.port, timeout=limit_s, context=self.context)

    def stranger(self, limit_s=30):
        """A connection without the certificate that we are known by."""
        return http.client.HTTPSConnection('127.0.0.1', self.port, timeout=limit_s, context=client_context())

    def send(self, connection, method, path, headers, body):
        connection.request(method, path, body=body, headers={**self.headers, **headers})
        return connection.getresponse()


def client_context(certificate=None, key=None):
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if certificate:
        context.load_cert_chain(certificate, key)
    return context


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(('127.0.0.1', 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Side:
    """Owns the processes and the folder; they end with it, in reverse order."""

    def __init__(self):
        self.folder, self.processes, self.server = tempfile.mkdtemp(prefix='conformance-'), [], None

    def start(self, name, command, **options):
        with open(os.path.join(self.folder, name + '.log'), 'wb') as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=log,
                                       stdout=options.get('stdout', log), cwd=self.folder)
        self.processes.append((name, process))
        return process

    def tail(self, name):
        try:
            with open(os.path.join(self.folder, name + '.log'), encoding='utf-8', errors='replace') as log:
                return ''.join(log.readlines()[-15:])
        except OSError:
            return ''

    def close(self):
        for _, process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def wait_ready(self, name, path='/readyz', limit_s=90):
        end, last = time.monotonic() + limit_s, ''
        while time.monotonic() < end:
            for started, process in self.processes:
                if process.poll() is not None:
                    raise RuntimeError(f'{started} ended with {process.returncode}:\n{self.tail(started)}')
            try:
                connection = self.server.connect(5)
                answer = self.server.send(connection, 'GET', path, {}, None)
                last = answer.read().decode('utf-8', 'replace')
                connection.close()
                if answer.status == 200:
                    return
            except OSError as problem:
                last = str(problem)
            time.sleep(0.2)
        raise RuntimeError(f'{name} did not become ready: {last}\n{self.tail(name)}')


def embedded(program, nodes=0):
    """`tessera up`; without nodes, the API and its controllers alone."""
    side = Side()
    try:
        data = os.path.join(side.folder, 'data')
        process = side.start('tessera', [program, 'up', '--nodes', str(nodes), '--data', data, '--port', '0'],
                             stdout=subprocess.PIPE)
        line = process.stdout.readline().decode()
        if not line.startswith('ready '):
            process.wait(10)
            raise RuntimeError(f'{program} did not become ready: {line}{side.tail("tessera")}')
        pki = os.path.join(data, 'pki')
        side.server = Server(int(line.rsplit(':', 1)[1]), client_context(f'{pki}/admin.crt', f'{pki}/admin.key'), {})
        side.wait_ready('tessera')
    except BaseException:
        side.close()
        raise
    return side


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    return path


def real():
    """etcd, kube-apiserver and kube-controller-manager, built by scripts/kubernetes; default admission and NodeRestriction; Node, RBAC."""
    built = subprocess.run([os.path.join(ROOT, 'scripts', 'kubernetes')], stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, check=True)
    programs = built.stdout.decode().strip()
    side = Side()
    try:
        start_real(side, programs)
    except BaseException:
        side.close()
        raise
    return side


def start_real(side, programs):
    folder = side.folder
    client, peer, port = free_ports(3)
    key, public = os.path.join(folder, 'sa.key'), os.path.join(folder, 'sa.pub')
    for command in (['openssl', 'genrsa', '-out', key, '2048'], ['openssl', 'rsa', '-in', key, '-pubout', '-out', public]):
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    tokens = write(folder, 'tokens.csv', f'{TOKEN},conformance-admin,1,"system:masters"\n')
    etcd = f'http://127.0.0.1:{client}'
    side.start('etcd', [f'{programs}/etcd', '--data-dir', os.path.join(folder, 'etcd'), '--unsafe-no-fsync',
                        '--listen-client-urls', etcd, '--advertise-client-urls', etcd,
                        '--listen-peer-urls', f'http://127.0.0.1:{peer}', '--log-level', 'error'])
    side.start('kube-apiserver', [
        f'{programs}/kube-apiserver', f'--etcd-servers={etcd}', f'--secure-port={port}', '--bind-address=127.0.0.1',
        f'--cert-dir={folder}/certs', f'--service-account-key-file={public}', f'--token-auth-file={tokens}',
        f'--service-account-signing-key-file={key}', '--service-account-issuer=https://kubernetes.default.svc',
        '--authorization-mode=Node,RBAC', '--enable-admission-plugins=NodeRestriction', '--service-cluster-ip-range=10.96.0.0/16', '--allow-privileged=true'])
    side.server = Server(port, client_context(), {'Authorization': f'Bearer {TOKEN}'})
    side.wait_ready('kube-apiserver')
    kubeconfig = write(folder, 'kubeconfig', f'''
apiVersion: v1
kind: Config
current-context: c
clusters: [{{name: c, cluster: {{server: "https://127.0.0.1:{port}", insecure-skip-tls-verify: true}}}}]
users: [{{name: c, user: {{token: {TOKEN}}}}}]
contexts: [{{name: c, context: {{cluster: c, user: c}}}}]
''')
    side.start('kube-controller-manager', [
        f'{programs}/kube-controller-manager', f'--kubeconfig={kubeconfig}', '--leader-elect=false', '--secure-port=0',
        f'--service-account-private-key-file={key}', f'--root-ca-file={folder}/certs/apiserver.crt',
        '--kube-api-qps=1000', '--kube-api-burst=2000', '--concurrent-serviceaccount-token-syncs=20'])
