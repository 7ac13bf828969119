#!/usr/bin/env python3
"""Real clients against the embedded API and the real one: the same script, the same transcript. README.md tells more.

  tests/clients/run.py [--against both|embedded|real] [--filter WORD] [--show] [--tessera PROGRAM]

Programs: TESSERA (build/dev/tessera), and those that scripts/kubernetes, scripts/clients, scripts/helm and
scripts/python_client build or fetch once. Last line: `N passed, N failed`.
"""

import argparse
import concurrent.futures
import difflib
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, 'tests', 'conformance', 'lib'))

import servers  # noqa: E402

LIMIT_S = 170  # of one client against one side


def ask(script, *words):
    """The line that a script of scripts/ prints."""
    done = subprocess.run([os.path.join(ROOT, 'scripts', script), *words], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, check=True)
    return done.stdout.decode().strip()


def clients(wanted):
    """{name: (command, environment)} of those whose name has the word; programs are built here, before servers start."""
    found = {}
    for name, make in {
            'client-go': lambda: ([ask('clients', 'clientgo')], {}),
            'controller-runtime': lambda: ([ask('clients', 'manager')], {}),
            'helm': lambda: ([sys.executable, os.path.join(HERE, 'helm_script.py')],
                             {'HELM': ask('helm'), 'PYTHONPATH': ask('python_client')}),
            'python': lambda: ([sys.executable, os.path.join(HERE, 'python_script.py')],
                               {'PYTHONPATH': ask('python_client')})}.items():
        if wanted in name:
            found[name] = make()
    return found


def run_client(command, environment, kubeconfig):
    """The transcript; a last step tells how the program ended when that was not well."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S, check=False,
                              env={**os.environ, **environment, 'KUBECONFIG': kubeconfig})
        text, errors, end = done.stdout, done.stderr, done.returncode
    except subprocess.TimeoutExpired as late:
        text, errors, end = late.stdout or b'', late.stderr or b'', f'none within {LIMIT_S} s'
    text = text.decode('utf-8', 'replace')
    if end:
        tail = ''.join(line + '\n' for line in errors.decode('utf-8', 'replace').splitlines()[-30:])
        text += f'== the program ended with {end}\n{tail}'
    return text


def steps(text):
    """[(name, lines)] of a transcript."""
    found = [('before the first step', [])]
    for line in text.splitlines():
        if line.startswith('== '):
            found.append((line[3:], []))
        else:
            found[-1][1].append(line)
    return [one for one in found if one[1] or one[0] != 'before the first step']


def how(name, first, others, kinds):
    """The lines that show what is wrong with a step."""
    if all(other == first for other in others):
        return first
    missing = [kind for kind, told in zip(kinds, [first, *others]) if told is None]
    if missing and 'ended with' not in name:
        return [f'{" and ".join(missing)} did not come to it']
    return list(difflib.unified_diff(first or [], others[0] or [], kinds[0], kinds[-1], n=1, lineterm=''))


def judge(client, transcripts):
    """Prints a line a step; counts (passed, failed). Every side must come to the end, and all must tell the same."""
    sides = {kind: dict(steps(text)) for kind, text in transcripts.items()}
    names, passed, failed = [], 0, 0
    for told in sides.values():
        names += [name for name in told if name not in names]
    for name in names:
        first, *others = [told.get(name) for told in sides.values()]
        bad = [line for lines in (first, *others) for line in lines or [] if line.startswith('FAILED')]
        well = not bad and not name.startswith('the program ended') and all(other == first for other in others)
        passed, failed = passed + well, failed + (not well)
        print(f'{"ok" if well else "FAIL"} {client}: {name}')
        if not well:
            print(''.join(f'    {line}\n' for line in how(name, first, others, list(sides))[:60]), end='')
    return passed, failed


def kubeconfig_of(side):
    path = os.path.join(side.folder, 'kubeconfig')
    return path if os.path.exists(path) else os.path.join(side.folder, 'data', 'kubeconfig')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--against', choices=['both', 'embedded', 'real'], default='both')
    parser.add_argument('--filter', default='', help='only the clients whose name has this word')
    parser.add_argument('--show', action='store_true', help='print the transcripts')
    parser.add_argument('--tessera', default=os.environ.get('TESSERA', os.path.join(ROOT, 'build/dev/tessera')))
    options = parser.parse_args()
    programs, sides, passed, failed = clients(options.filter), {}, 0, 0
    try:
        for kind in ['real', 'embedded'] if options.against == 'both' else [options.against]:
            sides[kind] = servers.real() if kind == 'real' else servers.embedded(options.tessera)
        for name, (command, environment) in programs.items():
            started = time.monotonic()
            with concurrent.futures.ThreadPoolExecutor() as pool:
                jobs = {kind: pool.submit(run_client, command, environment, kubeconfig_of(side))
                        for kind, side in sides.items()}
                transcripts = {kind: job.result() for kind, job in jobs.items()}
            if options.show:
                for kind, text in transcripts.items():
                    print(f'---- {name} {kind}\n{text}')
            counts = judge(name, transcripts)
            passed, failed = passed + counts[0], failed + counts[1]
            print(f'== {name}: {time.monotonic() - started:.0f} s')
    finally:
        for side in sides.values():
            side.close()
    print(f'{passed} passed, {failed} failed')
    return 1 if failed or not passed else 0


if __name__ == '__main__':
    sys.exit(main())
