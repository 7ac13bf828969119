#!/usr/bin/env python3
"""helm 3 ($HELM) with tests/clients/chart against the server of $KUBECONFIG: prints a transcript, the same for every
server that answers alike. No kubelet runs: a thread here says of each pod what a kubelet would."""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading

import urllib3
from kubernetes import client, config

HERE = os.path.dirname(os.path.abspath(__file__))
NAMESPACE = 'helm'
TIME = re.compile(r'\w{3} \w{3} +\d+ \d\d:\d\d:\d\d(?:\.\d+)?(?: [+-]\d{4} \w+)? \d{4}|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z| ?[+-]\d\d:?\d\d)?(?: \w+)?')


class Kubelet:
    """Says that pods of jobs and hooks succeeded, and that all others run and are ready."""

    def __init__(self):
        self.core, self.stopped = client.CoreV1Api(), threading.Event()
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join()

    def run(self):
        while not self.stopped.wait(0.1):
            for pod in self.core.list_namespaced_pod(NAMESPACE).items:
                done = pod.spec.restart_policy == 'Never'
                if pod.status.phase == 'Pending' and 'broken' not in pod.spec.containers[0].image:
                    self.tell(pod, 'Succeeded' if done else 'Running', 'False' if done else 'True')

    def tell(self, pod, phase, ready):
        try:
            self.core.patch_namespaced_pod_status(pod.metadata.name, NAMESPACE, {'status': {
                'phase': phase, 'conditions': [{'type': 'Ready', 'status': ready}]}})
        except client.ApiException as problem:
            if problem.status not in (404, 409):
                raise


def step(name):
    print(f'== {name}', flush=True)


def helm(*words, ends=0):
    """Runs helm and prints what it says, without times."""
    done = subprocess.run([os.environ['HELM'], *words, '--namespace', NAMESPACE], stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=90, check=False)
    print('$ helm ' + ' '.join(word.replace(HERE, '.') for word in words))
    output = done.stdout.decode() + done.stderr.decode()
    for line in output.splitlines():
        print('  ' + ' '.join(TIME.sub('TIME', line.replace(HERE, '.')).split()))
    if done.returncode != ends:
        print(f'FAILED: helm ended with {done.returncode}', flush=True)
        sys.exit(1)


def tell_objects():
    """What the release left in the server."""
    apps, core = client.AppsV1Api(), client.CoreV1Api()
    deployment = apps.read_namespaced_deployment('shop', NAMESPACE)
    print('deployment:', deployment.spec.replicas, deployment.spec.template.spec.containers[0].image,
          deployment.status.ready_replicas, sorted(deployment.metadata.labels.items()),
          sorted(key for key in deployment.metadata.annotations if not key.startswith('deployment.kubernetes.io')))
    print('settings:', sorted(core.read_namespaced_config_map('shop', NAMESPACE).data.items()))
    shelf = client.CustomObjectsApi().get_namespaced_custom_object('shop.example.com', 'v1', NAMESPACE, 'shelves', 'shop')
    print('shelf:', json.dumps(shelf['spec'], sort_keys=True), shelf['metadata'].get('labels'))
    print('managers:', sorted({entry.manager for entry in deployment.metadata.managed_fields
                               if entry.manager != 'OpenAPI-Generator'} - {'kube-controller-manager', 'tessera'}))
    for secret in core.list_namespaced_secret(NAMESPACE, label_selector='owner=helm').items:
        labels = {k: v for k, v in secret.metadata.labels.items() if k != 'modifiedAt'}
        print('release:', secret.metadata.name, secret.type, json.dumps(labels, sort_keys=True))


def release(chart):
    step('install')
    helm('install', 'shop', chart, '--dry-run=server', '--hide-notes', '--set', 'shelfWidth=0')  # its kind comes with the install
    helm('install', 'shop', chart, '--wait', '--timeout', '60s')
    helm('status', 'shop')
    helm('list')
    tell_objects()
    helm('install', 'shop', chart, ends=1)

    step('what it keeps')
    for what in ('manifest', 'values', 'notes', 'hooks'):
        helm('get', what, 'shop')

    step('test hooks')
    helm('test', 'shop', '--timeout', '60s')

    step('upgrade with other values, over what was changed by hand')
    apps = client.AppsV1Api()
    apps.patch_namespaced_deployment('shop', NAMESPACE, {
        'metadata': {'labels': {'by-hand': 'yes'}}, 'spec': {'replicas': 7}})
    helm('upgrade', 'shop', chart, '--set', 'replicas=3,image=registry.example/shop:2,extra.COLOR=blue,shelfWidth=4', '--wait', '--timeout', '60s')
    tell_objects()
    helm('upgrade', 'shop', chart, '--reuse-values', '--set', 'replicas=1,motd=good day', '--wait', '--timeout', '60s')
    tell_objects()


def failures(chart):
    step('upgrades that fail')
    helm('upgrade', 'shop', chart, '--set', 'port=70000', ends=1)
    helm('upgrade', 'shop', chart, '--set', 'replicas=-1', ends=1)
    helm('upgrade', 'shop', chart, '--set', 'replicas=many', ends=1)
    helm('upgrade', 'shop', chart, '--set', 'shelfWidth=-1', ends=1)
    helm('upgrade', 'shop', chart, '--set', 'image=registry.example/broken:3', '--atomic', '--timeout', '3s', ends=1)
    helm('status', 'nothing', ends=1)
    helm('list', '--all')
    tell_objects()


def back_and_away(chart):
    step('rollback')
    helm('rollback', 'shop', '1', '--wait', '--timeout', '60s')
    tell_objects()
    helm('history', 'shop')
    helm('rollback', 'shop', '99', ends=1)

    step('upgrade or install')
    helm('upgrade', 'shop', chart, '--install', '--set', 'replicas=2', '--wait', '--timeout', '60s', '--history-max', '3')
    helm('history', 'shop')

    step('uninstall')
    helm('uninstall', 'shop', '--wait', '--timeout', '60s')
    helm('list', '--all')
    core, left = client.CoreV1Api(), []
    for kind, listed in (('service', core.list_namespaced_service), ('config map', core.list_namespaced_config_map),
                         ('secret', core.list_namespaced_secret),
                         ('deployment', client.AppsV1Api().list_namespaced_deployment),
                         ('role', client.RbacAuthorizationV1Api().list_namespaced_role)):
        left += [f'{kind} {one.metadata.name}' for one in listed(NAMESPACE).items if one.metadata.name != 'kube-root-ca.crt']
    print('left:', left)
    extensions = client.ApiextensionsV1Api()
    print('definitions left:', [one.metadata.name for one in extensions.list_custom_resource_definition().items
                                if one.spec.group == 'shop.example.com'])
    extensions.delete_custom_resource_definition('shelves.shop.example.com')
    helm('status', 'shop', ends=1)


def main():
    urllib3.disable_warnings()
    config.load_kube_config()
    chart = os.path.join(HERE, 'chart')
    with tempfile.TemporaryDirectory() as folder:
        for name in ('HELM_CACHE_HOME', 'HELM_CONFIG_HOME', 'HELM_DATA_HOME', 'HOME'):
            os.environ[name] = folder
        step('the chart itself')
        helm('lint', chart)
        client.CoreV1Api().create_namespace({'metadata': {'name': NAMESPACE}})
        with Kubelet():
            release(chart)
            failures(chart)
            back_and_away(chart)


if __name__ == '__main__':
    main()
