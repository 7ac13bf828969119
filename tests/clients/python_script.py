#!/usr/bin/env python3
"""The Kubernetes Python client against the server of $KUBECONFIG: prints a transcript, the same for every server that
answers alike. Steps begin with `== `; uids, times and revisions are left out."""

import json
import sys
import threading
import time

import urllib3
from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.rest import ApiException

NAMESPACE = 'python'
PATIENCE_S = 30
VOLATILE = {'uid', 'lastProbeTime', 'resourceVersion', 'creationTimestamp', 'managedFields', 'lastTransitionTime', 'lastUpdateTime',
            'startTime', 'completionTime', 'controller-uid', 'batch.kubernetes.io/controller-uid'}


def step(name):
    print(f'== {name}', flush=True)


def stable(value):
    if isinstance(value, dict):
        return {k: stable(v) for k, v in value.items() if k not in VOLATILE and v is not None}
    return [stable(v) for v in value] if isinstance(value, list) else value


def show(what, value):
    plain = value.to_dict() if isinstance(value, dynamic.resource.ResourceField) else \
        client.ApiClient().sanitize_for_serialization(value)
    print(f'{what}: {json.dumps(stable(plain), sort_keys=True)}')


def refused(what, call):
    try:
        call()
    except (ApiException, dynamic.exceptions.DynamicApiError) as problem:
        body = json.loads(problem.body)
        print(f'{what}: {problem.status} {body.get("kind")} {body.get("reason")}: {body.get("message")}')
        for cause in (body.get('details') or {}).get('causes') or []:
            print(f'  {cause.get("reason")} {cause.get("field")}: {cause.get("message")}')
        return
    fail(f'{what}: no error')


def fail(why):
    print(f'FAILED: {why}', flush=True)
    sys.exit(1)


def until(what, ask):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if ask():
            return
        time.sleep(0.05)
    fail(f'{what} did not come about within {PATIENCE_S} s')


def config_map(name, value='1', **labels):
    return {'metadata': {'name': name, 'labels': labels}, 'data': {'k': value}}


def pod_spec(**more):
    return {'schedulerName': 'none', 'containers': [{'name': 'main', 'image': 'registry.example/app:1'}], **more}


def basics(core):
    step('create, read, replace, patch, delete')
    made = core.create_namespaced_config_map(NAMESPACE, config_map('a', app='x'))
    show('created', made)
    refused('created again', lambda: core.create_namespaced_config_map(NAMESPACE, config_map('a')))
    refused('a bad name', lambda: core.create_namespaced_config_map(NAMESPACE, config_map('A_')))
    made.data['k'] = '2'
    core.replace_namespaced_config_map('a', NAMESPACE, made)
    refused('a stale replace', lambda: core.replace_namespaced_config_map('a', NAMESPACE, made))
    show('a strategic patch', core.patch_namespaced_config_map('a', NAMESPACE, {'data': {'more': 'y'}}).data)
    show('a JSON patch', core.patch_namespaced_config_map(
        'a', NAMESPACE, [{'op': 'remove', 'path': '/data/more'}]).data)
    show('listed', [one.metadata.name for one in core.list_namespaced_config_map(NAMESPACE, label_selector='app=x').items])
    show('deleted', core.delete_namespaced_config_map('a', NAMESPACE).status)
    refused('after its end', lambda: core.read_namespaced_config_map('a', NAMESPACE))
    refused('a bad selector', lambda: core.list_namespaced_config_map(NAMESPACE, label_selector='a in'))


def pages(core):
    step('pages')
    for i in range(7):
        core.create_namespaced_config_map(NAMESPACE, config_map(f'page-{i}', paged='yes'))
    sizes, token = [], None
    while token != '':
        page = core.list_namespaced_config_map(NAMESPACE, label_selector='paged=yes', limit=3, _continue=token)
        sizes.append(len(page.items))
        token = page.metadata._continue or ''
    print(f'pages of {sizes}')
    core.delete_collection_namespaced_config_map(NAMESPACE, label_selector='paged=yes')
    print(f'left: {len(core.list_namespaced_config_map(NAMESPACE, label_selector="paged=yes").items)}')


def watches(core):
    step('watches')
    version = core.list_namespaced_config_map(NAMESPACE).metadata.resource_version

    def change():
        core.create_namespaced_config_map(NAMESPACE, config_map('w', watched='yes'))
        core.patch_namespaced_config_map('w', NAMESPACE, {'data': {'k': '2'}})
        core.delete_namespaced_config_map('w', NAMESPACE)

    writer = threading.Thread(target=change)
    writer.start()
    stream = watch.Watch()
    for event in stream.stream(core.list_namespaced_config_map, NAMESPACE, label_selector='watched=yes',
                               resource_version=version, timeout_seconds=20):
        print(event['type'], event['object'].metadata.name, event['object'].data)
        if event['type'] == 'DELETED':
            stream.stop()
    writer.join()
    began = time.monotonic()
    events = list(watch.Watch().stream(core.list_namespaced_config_map, NAMESPACE, label_selector='watched=yes',
                                       timeout_seconds=2))
    print(f'a quiet watch of two seconds: {len(events)} events, ended in time: {1 < time.monotonic() - began < 10}')
    try:
        list(watch.Watch().stream(core.list_namespaced_config_map, NAMESPACE, resource_version='nonsense',
                                  timeout_seconds=2))
    except ApiException as problem:
        print(f'a version that is no number: {problem.status}')
    try:
        core.list_namespaced_config_map(NAMESPACE, watch=True, label_selector='watched=yes', _request_timeout=1)
    except urllib3.exceptions.HTTPError as problem:
        print(f'given up by the client: {type(problem).__name__}')


def workloads(core, apps, batch):
    step('a deployment and a job')
    labels = {'app': 'web'}
    body = {'metadata': {'name': 'web'}, 'spec': {'replicas': 2, 'selector': {'matchLabels': labels}, 'template': {
        'metadata': {'labels': labels}, 'spec': pod_spec()}}}
    show('created', apps.create_namespaced_deployment(NAMESPACE, body).spec)
    until('two replicas', lambda: apps.read_namespaced_deployment('web', NAMESPACE).status.replicas == 2)
    show('scaled', apps.patch_namespaced_deployment_scale('web', NAMESPACE, {'spec': {'replicas': 1}}).spec)
    until('one replica', lambda: apps.read_namespaced_deployment('web', NAMESPACE).status.replicas == 1)
    apps.delete_namespaced_deployment('web', NAMESPACE, propagation_policy='Foreground')
    until('its pods gone', lambda: not core.list_namespaced_pod(NAMESPACE, label_selector='app=web').items)
    batch.create_namespaced_job(NAMESPACE, {'metadata': {'name': 'once'}, 'spec': {'template': {
        'spec': pod_spec(restartPolicy='Never')}}})
    until('its pod', lambda: core.list_namespaced_pod(NAMESPACE, label_selector='job-name=once').items)
    pod = core.list_namespaced_pod(NAMESPACE, label_selector='job-name=once').items[0].metadata.name
    core.patch_namespaced_pod_status(pod, NAMESPACE, {'status': {'phase': 'Succeeded'}})
    until('the job complete', lambda: batch.read_namespaced_job('once', NAMESPACE).status.completion_time)
    show('status', batch.read_namespaced_job_status('once', NAMESPACE).status)
    batch.delete_namespaced_job('once', NAMESPACE, propagation_policy='Background')


def evictions(core):
    step('logs of a pod that waits, and its eviction')
    core.create_namespaced_pod(NAMESPACE, {'metadata': {'name': 'p', 'labels': {'app': 'p'}}, 'spec': pod_spec()})
    show('its log', core.read_namespaced_pod_log('p', NAMESPACE, _preload_content=False).data.decode())
    show('followed', list(watch.Watch().stream(core.read_namespaced_pod_log, 'p', NAMESPACE)))
    refused('of another container', lambda: core.read_namespaced_pod_log('p', NAMESPACE, container='other'))
    refused('less than no lines', lambda: core.read_namespaced_pod_log('p', NAMESPACE, tail_lines=-1, limit_bytes=0))
    refused('of no pod', lambda: core.read_namespaced_pod_log('none', NAMESPACE))
    core.create_namespaced_pod_eviction('p', NAMESPACE, {'metadata': {'name': 'p'}, 'deleteOptions': {'gracePeriodSeconds': 0}})
    refused('after its end', lambda: core.read_namespaced_pod('p', NAMESPACE))
    refused('evicted again', lambda: core.create_namespaced_pod_eviction('p', NAMESPACE, {'metadata': {'name': 'p'}}))


def rights(core):
    step('a token of a service account')
    core.create_namespaced_service_account(NAMESPACE, {'metadata': {'name': 'robot'}})
    token = core.create_namespaced_service_account_token('robot', NAMESPACE, {'spec': {'expirationSeconds': 3600}})
    own = client.Configuration.get_default_copy()
    own.cert_file = own.key_file = own.refresh_api_key_hook = None
    own.api_key = {'authorization': f'Bearer {token.status.token}'}
    robot = client.ApiClient(own)
    review = client.AuthenticationV1Api(robot).create_self_subject_review({})
    print(f'it says that it is {review.status.user_info.username}')
    refused('without a role', lambda: client.CoreV1Api(robot).list_namespaced_secret(NAMESPACE))
    rbac = client.RbacAuthorizationV1Api()
    rbac.create_namespaced_role_binding(NAMESPACE, {
        'metadata': {'name': 'view'}, 'roleRef': {'apiGroup': 'rbac.authorization.k8s.io', 'kind': 'ClusterRole', 'name': 'view'},
        'subjects': [{'kind': 'ServiceAccount', 'name': 'robot', 'namespace': NAMESPACE}]})

    def may():
        try:
            client.CoreV1Api(robot).list_namespaced_pod(NAMESPACE)
            return True
        except ApiException:
            return False
    until('the right to list', may)
    refused('secrets are not in view', lambda: client.CoreV1Api(robot).list_namespaced_secret(NAMESPACE))


def dynamics():
    step('the dynamic client')
    api = dynamic.DynamicClient(client.ApiClient())
    jobs = api.resources.get(api_version='batch/v1', kind='CronJob')
    body = {'apiVersion': 'batch/v1', 'kind': 'CronJob', 'metadata': {'name': 'nightly'}, 'spec': {
        'schedule': '0 3 * * *', 'suspend': True,
        'jobTemplate': {'spec': {'template': {'spec': pod_spec(restartPolicy='Never')}}}}}
    show('created', jobs.create(body=body, namespace=NAMESPACE).spec)
    applied = {'apiVersion': 'batch/v1', 'kind': 'CronJob', 'metadata': {'name': 'nightly'}, 'spec': {'schedule': '0 4 * * *'}}
    refused('applied by another', lambda: jobs.server_side_apply(
        body=applied, name='nightly', namespace=NAMESPACE, field_manager='other'))
    forced = jobs.server_side_apply(body=applied, name='nightly', namespace=NAMESPACE, field_manager='other',
                                    force_conflicts=True)
    print(f'forced: {forced.spec.schedule}')
    show('patched', jobs.patch(body={'spec': {'suspend': False}}, name='nightly', namespace=NAMESPACE,
                               content_type='application/merge-patch+json').spec.suspend)
    print([event['type'] for event in jobs.watch(namespace=NAMESPACE, timeout=2)])
    show('deleted', jobs.delete(name='nightly', namespace=NAMESPACE).kind)
    refused('after its end', lambda: jobs.get(name='nightly', namespace=NAMESPACE))
    try:
        api.resources.get(api_version='nothing.example/v1', kind='Thing')
    except dynamic.exceptions.ResourceNotFoundError as problem:
        print(f'{type(problem).__name__}: {problem}')


DEFINITION = {
    'apiVersion': 'apiextensions.k8s.io/v1', 'kind': 'CustomResourceDefinition', 'metadata': {'name': 'lamps.python.example.com'},
    'spec': {'group': 'python.example.com', 'scope': 'Namespaced', 'names': {
        'kind': 'Lamp', 'listKind': 'LampList', 'plural': 'lamps', 'singular': 'lamp'}, 'versions': [
            {'name': 'v1', 'served': True, 'storage': True, 'subresources': {'status': {}}, 'schema': {'openAPIV3Schema': {
                'type': 'object', 'properties': {
                    'spec': {'type': 'object', 'properties': {'watts': {'type': 'integer', 'maximum': 100, 'default': 40}}},
                    'status': {'type': 'object', 'x-kubernetes-preserve-unknown-fields': True}}}}}]}}


def customs():
    step('custom objects')
    extensions, lamps = client.ApiextensionsV1Api(), client.CustomObjectsApi()
    name, place = DEFINITION['metadata']['name'], ('python.example.com', 'v1', NAMESPACE, 'lamps')
    extensions.create_custom_resource_definition(DEFINITION)

    def established():
        conditions = extensions.read_custom_resource_definition(name).status.conditions or []
        return any(one.type == 'Established' and one.status == 'True' for one in conditions)
    until('the definition established', established)

    def served():
        try:
            return lamps.list_namespaced_custom_object(*place)['items'] == []
        except ApiException:
            return False
    until('the kind served', served)
    body = {'apiVersion': 'python.example.com/v1', 'kind': 'Lamp', 'metadata': {'name': 'l'}, 'spec': {'color': 'red'}}
    show('made', lamps.create_namespaced_custom_object(*place, body))
    body['metadata']['name'], body['spec'] = 'm', {'watts': 500}
    refused('too bright', lambda: lamps.create_namespaced_custom_object(*place, body))
    show('status', lamps.patch_namespaced_custom_object_status(*place, 'l', {'status': {'lit': True}})['status'])
    show('patched', lamps.patch_namespaced_custom_object(*place, 'l', {'spec': {'watts': 60}}))
    print([event['type'] for event in watch.Watch().stream(
        lamps.list_namespaced_custom_object, *place, timeout_seconds=2)])
    api = dynamic.DynamicClient(client.ApiClient())
    found = api.resources.get(api_version='python.example.com/v1', kind='Lamp')
    print(f'the dynamic client finds {found.name}, {found.singular_name}')
    lamps.delete_namespaced_custom_object(*place, 'l')
    extensions.delete_custom_resource_definition(name)
    until('the definition gone', lambda: all(
        one.metadata.name != name for one in extensions.list_custom_resource_definition().items))
    print('gone')


def from_documents():
    step('objects from YAML')
    documents = [
        {'apiVersion': 'v1', 'kind': 'ServiceAccount', 'metadata': {'name': 'made', 'namespace': NAMESPACE}},
        {'apiVersion': 'v1', 'kind': 'Service', 'metadata': {'name': 'made', 'namespace': NAMESPACE},
         'spec': {'selector': {'app': 'made'}, 'ports': [{'port': 80}]}},
        {'apiVersion': 'networking.k8s.io/v1', 'kind': 'Ingress', 'metadata': {'name': 'made', 'namespace': NAMESPACE},
         'spec': {'defaultBackend': {'service': {'name': 'made', 'port': {'number': 80}}}}}]
    for made in utils.create_from_yaml(client.ApiClient(), yaml_objects=documents):
        print(f'made {made[0].kind} {made[0].metadata.name}')
    try:
        utils.create_from_yaml(client.ApiClient(), yaml_objects=documents[:1])
    except utils.FailToCreateError as problem:
        print(f'again: {[failure.reason for failure in problem.api_exceptions]}')


def main():
    urllib3.disable_warnings()
    config.load_kube_config()
    core = client.CoreV1Api()
    version = client.VersionApi().get_code()
    step('version and discovery')
    print(f'{version.major}.{version.minor}')
    groups = {group.name for group in client.ApisApi().get_api_versions().groups}
    print({name: name in groups for name in ('apps', 'batch', 'policy', 'events.k8s.io', 'nothing.example')})
    core.create_namespace({'metadata': {'name': NAMESPACE}})
    until('the default service account', lambda: any(
        one.metadata.name == 'default' for one in core.list_namespaced_service_account(NAMESPACE).items))
    basics(core)
    pages(core)
    watches(core)
    workloads(core, client.AppsV1Api(), client.BatchV1Api())
    evictions(core)
    rights(core)
    dynamics()
    customs()
    from_documents()
    step('the namespace and all in it go')
    core.delete_namespace(NAMESPACE)
    until('the namespace gone', lambda: all(one.metadata.name != NAMESPACE for one in core.list_namespace().items))
    print('gone')


if __name__ == '__main__':
    main()
