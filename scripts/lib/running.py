"""Runs programs for the scripts: output in build/logs, nothing on standard input, a limit on time, no process left behind."""

import os
import re
import signal
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LOGS = os.path.join(ROOT, 'build', 'logs')
JOBS = os.cpu_count() or 2


def say(text):
    print(text, flush=True)


def end(child):
    """Ends a child started in a session of its own, and what it left running."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()


def run(log, command, limit_s, env=None):
    """Runs a command with its output in build/logs; returns (status, log path). Status 124: it ran past the limit."""
    os.makedirs(LOGS, exist_ok=True)
    path = os.path.join(LOGS, log + '.log')
    with open(path, 'wb') as file:
        child = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                                 env={**os.environ, **(env or {})}, start_new_session=True)
        try:
            status = child.wait(limit_s)
        except subprocess.TimeoutExpired:
            status = 124
            file.write(f'\nended after {limit_s} s\n'.encode())
        finally:
            end(child)
    return status, path


def tail(path, lines=40):
    """The end of a log, without ninja's progress lines."""
    with open(path, encoding='utf-8', errors='replace') as file:
        return ''.join([line for line in file if not re.match(r'\[\d+/\d+\] ', line)][-lines:])


def build(preset, targets=()):
    """Configures and builds a preset; None, or what failed."""
    target_flags = [flag for target in targets for flag in ('--target', target)]
    for step, command in (('configure', ['cmake', '--preset', preset]),
                          ('build', ['cmake', '--build', '--preset', preset, '-j', str(JOBS), *target_flags])):
        status, log = run(f'{preset}-{step}', command, 3600)
        if status:
            return f'{step} {preset}: status {status}, see {os.path.relpath(log, ROOT)}\n{tail(log)}'
    return None
