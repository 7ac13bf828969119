"""Performs the steps of a case on a server and gives what each answered, as it is."""

import http.client
import json
import queue
import socket
import threading
import time
import urllib.parse

import cases
import match
import servers

PATCHES = {'json': 'application/json-patch+json', 'merge': 'application/merge-patch+json',
           'strategic': 'application/strategic-merge-patch+json', 'apply': 'application/apply-patch+yaml'}
UNTIL_S, EVENT_S, KIND_S = 12, 8, 4
STOPPED = object()


class Watch:
    """One open watch: reads lines on a thread of its own until the server or the case ends it."""

    def __init__(self, server, path, headers):
        self.connection = server.connect(60)
        self.connection.connect()
        self.socket = self.connection.sock
        self.answer = server.send(self.connection, 'GET', path, headers, None)
        self.events = queue.Queue()
        self.first = None
        if self.answer.status != 200:
            self.first = self.answer.read()
            self.events.put(STOPPED)
        else:
            threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        try:
            for line in self.answer:
                if line.strip():
                    self.events.put(json.loads(line))
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            pass
        self.events.put(STOPPED)

    def take(self, count):
        found, end = [], time.monotonic() + EVENT_S
        while len(found) < count:
            try:
                event = self.events.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                found.append({'type': '(no event within the time)'})
                break
            if event is STOPPED:
                self.events.put(STOPPED)
                found.append({'type': '(the server ended the watch)'})
                break
            found.append(event)
        return found

    def close(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)  # wakes the reader; close() would wait for it
        except OSError:
            pass


class Performer:
    """Runs cases one after the other over one connection."""

    def __init__(self, server, objects):
        self.server, self.objects, self.connection = server, objects, None

    def request(self, method, path, headers, body):
        if 'Authorization' in headers:  # nothing else must tell who calls
            connection = self.server.stranger()
            answer = self.server.send(connection, method, path, headers, body)
            data = answer.read()
            connection.close()
            return servers.Answer(answer.status, answer.getheaders(), data)
        for attempt in (1, 2):
            fresh = self.connection is None
            if fresh:
                self.connection = self.server.connect()
            try:
                answer = self.server.send(self.connection, method, path, headers, body)
                data = answer.read()
                return servers.Answer(answer.status, answer.getheaders(), data)
            except (OSError, http.client.HTTPException):
                self.connection.close()
                self.connection = None
                if fresh or attempt == 2:  # an idle connection may have been closed meanwhile; a new one may not
                    raise
        return None

    def run(self, case, namespace):
        """(variables, [what each step gave])."""
        variables = {k: v.replace('$ns', namespace) for k, v in cases.PREFIXES.items()}
        variables['ns'] = namespace
        variables.update(cases.substitute(case.row, variables))
        variables['big'] = 'x' * case.row.get('size', 0)
        watches, gave = {}, []
        try:
            for step in case.steps:
                gave.append(self.step(step, variables, watches))
        finally:
            for watch in watches.values():
                watch.close()
        return variables, gave

    def step(self, step, variables, watches):
        if 'wait' in step:
            time.sleep(step['wait'])
            return {}
        if 'watch' in step:
            path = cases.substitute(step['watch'], variables)
            path += ('&' if '?' in path else '?') + 'watch=true'
            watch = Watch(self.server, path, cases.substitute(step.get('headers', {}), variables))
            watches[step.get('of', 'w')] = watch
            answer = servers.Answer(watch.answer.status, watch.answer.getheaders(), watch.first or b'')
            return described(answer, {'show': []} if watch.first is None else step)
        if 'events' in step:
            events = watches[step.get('of', 'w')].take(step['events'])
            shown = step.get('show', ['type', 'object.metadata.name'])
            return {'events': events if shown == 'all' else [{p: match.look(e, p) for p in shown} for e in events]}
        if 'end' in step:
            watch = watches[step['end']]
            return {'events': [{'type': e['type']} for e in watch.take(1)]}
        return self.call(step, variables)

    def call(self, step, variables):
        method, path = cases.substitute(cases.substitute(step['do'], variables), variables).split(' ', 1)
        path = urllib.parse.quote(path, safe="/?&=%:,;!*()+$~'@")
        headers = dict(cases.substitute(step.get('headers', {}), variables))
        body = cases.body_of(step, self.objects, variables)
        if body is not None:
            kind = cases.substitute(step.get('type', 'application/json'), variables)
            headers.setdefault('Content-Type', PATCHES.get(kind, kind))
            body = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        if 'as' in step:
            headers['Impersonate-User'] = cases.substitute(step['as'], variables)
        started, until = time.monotonic(), cases.substitute(step.get('until', {}), variables)
        while True:
            answer = self.request(method, path, headers, body)
            got = described(answer, step)
            value = decoded(answer)
            met = all((answer.status if k == 'code' else match.look(value, k)) == v for k, v in until.items())
            limit_s = UNTIL_S if answer.status != 404 or tells_kind(value) else KIND_S
            if met or time.monotonic() - started > limit_s:
                break
            time.sleep(0.1)
        if not met:
            got['until'] = 'not met within the time'
        for name, where in step.get('capture', {}).items():
            variables[name] = match.look(value, where)
        return got


def tells_kind(value):
    """Whether a Status tells of an object: it does not where the server knows no such resource."""
    return match.look(value, 'details.kind') != match.ABSENT


def decoded(answer):
    try:
        return json.loads(answer.body)
    except ValueError:
        return {'text': answer.body.decode('utf-8', 'replace')[:2000]}


def described(answer, step):
    got = {'code': answer.status}
    kind = (answer.all('content-type') or [''])[0]
    if kind != 'application/json' and step.get('show') != []:
        got['type'] = kind
    warnings = answer.all('warning')
    if warnings:
        got['warnings'] = warnings
    value, shown = decoded(answer), step.get('show')
    if answer.status >= 400 and shown is None or shown == 'all' or shown is None:
        got['body'] = match.without_managed_fields(value)
    elif answer.status >= 400 and isinstance(value, dict) and value.get('kind') == 'Status' and shown != []:
        got['body'] = value  # an error where the case expects none is shown whole
    else:
        got['shown'] = {path: match.look(value, path) for path in shown}
    if step.get('sort'):
        got = in_order(got)
    return got


def in_order(value):
    if isinstance(value, dict):
        return {k: in_order(v) for k, v in value.items()}
    if isinstance(value, list):
        return sorted((in_order(v) for v in value), key=lambda v: json.dumps(v, sort_keys=True))
    return value
