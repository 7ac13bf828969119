#!/usr/bin/env python3
"""The Kubernetes Python client reads and follows the logs of simulated pods. TESSERA: the program (build/dev/tessera)."""

import os
import subprocess
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, 'tests', 'conformance', 'lib'))

import servers  # noqa: E402

SKIP, PATIENCE_S = 77, 120


def pod(name, *containers, **annotations):
    return {'metadata': {'name': name, 'annotations': {f'tessera.dev/{key.replace("_", "-")}': value
                                                       for key, value in annotations.items()}},
            'spec': {'restartPolicy': 'Never', 'containers': [{'name': one, 'image': 'busybox'} for one in containers]}}


class Logs:
    """Asks for logs in the namespace default and counts the answers that are as they should be."""

    def __init__(self, client, watch):
        self.core, self.rest, self.watch = client.CoreV1Api(), client.rest, watch
        self.passed = self.failed = 0

    def check(self, name, wanted, got):
        well = wanted(got)
        self.passed, self.failed = self.passed + well, self.failed + (not well)
        if not well:
            print(f'FAILED {name}: {got!r}')

    def read(self, name, **options):
        """As text: without _preload_content=False, version 36 of the client gives the word for a Python bytes object."""
        return self.core.read_namespaced_pod_log(name, 'default', _preload_content=False, **options).data.decode()

    def refusal(self, name, **options):
        try:
            return f'no error: {self.read(name, **options)!r}'
        except self.rest.ApiException as problem:
            return f'{problem.status} {problem.body}'

    def wait(self, name, phase):
        for event in self.watch.Watch().stream(self.core.list_namespaced_pod, 'default', timeout_seconds=PATIENCE_S,
                                               field_selector=f'metadata.name={name}'):
            if event['object'].status.phase == phase:
                return True
        return False

    def follow(self, name, only_first=False, **options):
        """Its lines to the end, or one: then the reader goes away."""
        lines, stream = [], self.watch.Watch()
        for line in stream.stream(self.core.read_namespaced_pod_log, name, 'default', **options):
            lines.append(line)
            if only_first:
                stream.stop()
        return lines


def run(logs):
    for body in (pod('done', 'main', run_for='2s', exit_code='3'), pod('two', 'main', 'side')):
        logs.core.create_namespaced_pod('default', body)
    logs.check('it runs', bool, logs.wait('done', 'Running'))
    followed = logs.follow('done')
    logs.check('it ends', bool, logs.wait('done', 'Failed'))
    text = logs.read('done')
    lines = text.splitlines()
    logs.check('followed to its end', lambda told: told == lines, followed)
    logs.check('the first line', lambda one: one.startswith('simulated container main of pod default/done started'), lines[0])
    logs.check('the last line', lambda one: one.startswith('ended after') and one.endswith('with exit code 3'), lines[-1])
    logs.check('the same again', lambda again: again == text, logs.read('done'))
    logs.check('followed, though it ended', lambda followed: followed == lines, logs.follow('done'))
    logs.check('one line', lambda one: one.splitlines() == lines[-1:], logs.read('done', tail_lines=1))
    logs.check('nine bytes', lambda one: one == text[:9], logs.read('done', limit_bytes=9))
    logs.check('the last hour', lambda one: one == text, logs.read('done', since_seconds=3600))
    stamped = [line.partition(' ') for line in logs.read('done', timestamps=True).splitlines()]
    logs.check('time stamps', lambda told: [rest for _, _, rest in told] == lines and all(
        stamp.endswith('Z') for stamp, _, _ in told), stamped)
    logs.check('no run before', lambda told: told.startswith('400') and 'previous terminated' in told,
               logs.refusal('done', previous=True))
    logs.check('two run', bool, logs.wait('two', 'Running'))
    logs.check('the other container', lambda told: 'container side of pod default/two' in told,
               logs.read('two', container='side'))
    logs.check('followed for a while', lambda told: len(told) == 1 and 'container main of pod default/two' in told[0],
               logs.follow('two', only_first=True, container='main'))
    logs.check('no such container', lambda told: told.startswith('400') and 'not valid' in told,
               logs.refusal('two', container='none'))


def main():
    fetched = subprocess.run([os.path.join(ROOT, 'scripts', 'python_client')], stdin=subprocess.DEVNULL,
                             capture_output=True, check=False)
    if fetched.returncode:
        print('no Python client could be fetched: ' + (fetched.stderr.decode().splitlines() or ['no reason'])[-1])
        return SKIP
    sys.path.insert(0, fetched.stdout.decode().strip())
    import urllib3
    from kubernetes import client, config, watch
    urllib3.disable_warnings()
    side = servers.embedded(os.environ.get('TESSERA', os.path.join(ROOT, 'build', 'dev', 'tessera')), nodes=2)
    try:
        config.load_kube_config(os.path.join(side.folder, 'data', 'kubeconfig'))
        logs = Logs(client, watch)
        run(logs)
    finally:
        side.close()
    print(f'{logs.passed} passed, {logs.failed} failed')
    return 1 if logs.failed else 0


if __name__ == '__main__':
    sys.exit(main())
