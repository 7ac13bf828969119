#!/usr/bin/env python3
"""Holds the embedded API to the real one: the same requests, the same answers. README.md says how cases are written.

  tests/conformance/run.py [--against embedded|real|both] [--filter WORDS] [--freeze]

--freeze writes golden/ from the answers of the real control plane. Programs: TESSERA (build/dev/tessera), and those of
scripts/kubernetes. Last line: `N passed, N failed`.
"""

import argparse
import concurrent.futures
import json
import os
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, 'lib'))

import yaml  # noqa: E402

import cases  # noqa: E402
import match  # noqa: E402
import perform  # noqa: E402
import servers  # noqa: E402

LANES = 8
MENDED = 'no longer open: --tidy takes it out of known_gaps.yaml'
LISTS = {'differences': 'differs', 'known_gaps': 'open'}  # file -> word of the output


def read_golden():
    golden, folder = {}, os.path.join(HERE, 'golden')
    for file in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if file.endswith('.yaml'):
            for name, answers in (cases.load_yaml(os.path.join(folder, file)) or {}).items():
                golden[f'{file[:-5]}: {name}'] = answers
    return golden


def write_golden(topic, frozen):
    os.makedirs(os.path.join(HERE, 'golden'), exist_ok=True)
    with open(os.path.join(HERE, 'golden', topic + '.yaml'), 'w', encoding='utf-8') as file:
        file.write('# Written by run.py --freeze from the answers of the real control plane.\n')
        for name, answers in frozen.items():
            file.write('\n')
            yaml.dump({name: answers}, file, Dumper=getattr(yaml, 'CSafeDumper', yaml.SafeDumper), sort_keys=False,
                      width=116, allow_unicode=True)


def read_lists():
    """{case: (word, reason)} of the accepted differences and the known gaps."""
    listed = {}
    for file, word in LISTS.items():
        path = os.path.join(HERE, file + '.yaml')
        for entry in (cases.load_yaml(path) or []) if os.path.exists(path) else []:
            for name in entry['cases']:
                listed[name] = (word, entry['reason'])
    return listed


def problems(golden, gave, variables, steps):
    """Lines that say how the answers differ."""
    if golden is None:
        return ['nothing is frozen for it: run --against real --freeze']
    if len(golden) != len(gave):
        return ['its steps changed after it was frozen: run --against real --freeze']
    found = []
    for i, (expected, got) in enumerate(zip(golden, gave)):
        for path, want, have in match.differences(expected, got, variables):
            what = steps[i].get('do') or steps[i].get('watch') or ''
            found.append(f'step {i + 1} {what} {path}: expected {json.dumps(want)[:600]}, got {json.dumps(have)[:600]}')
    return found


def prepare(server, wanted):
    """A namespace for each case, with its default service account."""
    performer = perform.Performer(server, {})
    names = {}
    for i, case in enumerate(wanted):
        names[case.full_name] = f'n{i:03d}-{case.topic}'
        if case.wants_namespace():
            body = json.dumps({'metadata': {'name': names[case.full_name]}}).encode()
            performer.request('POST', '/api/v1/namespaces', {'Content-Type': 'application/json'}, body)
    for case in wanted:
        path = f'/api/v1/namespaces/{names[case.full_name]}/serviceaccounts/default'
        end = time.monotonic() + 60
        while case.wants_namespace() and time.monotonic() < end:
            if performer.request('GET', path, {}, None).status == 200:
                break
            time.sleep(0.05)
    return names


def run_side(side, wanted):
    """{case: (variables, answers, error)}."""
    objects = cases.load_yaml(os.path.join(HERE, 'objects.yaml'))
    names, outcome, seconds = prepare(side.server, wanted), {}, {}

    def one(case):
        performer, started = perform.Performer(side.server, objects), time.monotonic()
        try:
            variables, gave = performer.run(case, names[case.full_name])
            return case.full_name, (variables, gave, None)
        except Exception as problem:  # pylint: disable=broad-except  # a case that breaks is a failed case
            return case.full_name, ({}, [], f'{type(problem).__name__}: {problem}')
        finally:
            seconds[case.full_name] = time.monotonic() - started

    alone = [case for case in wanted if case.topic.endswith('_alone')]
    with concurrent.futures.ThreadPoolExecutor(LANES) as pool:
        outcome.update(pool.map(one, [case for case in wanted if case not in alone]))
    outcome.update(map(one, alone))
    slowest = sorted(seconds, key=seconds.get)[-5:]
    print('slowest: ' + ', '.join(f'{name} {seconds[name]:.1f} s' for name in slowest))
    return outcome


def judge(case, outcome, golden, listed):
    """(word, lines) of one case on one side."""
    variables, gave, error = outcome
    lines = [error] if error else problems(golden, gave, variables, case.steps)
    word, reason = listed
    if lines and word:
        return word, [reason]
    if word == 'open':
        return 'ok', [MENDED]
    if word:
        return 'FAIL', [f'no longer differs: take it out of the list']
    return ('FAIL', lines) if lines else ('ok', [])


def freeze(wanted, outcome, golden):
    for topic in sorted({case.topic for case in wanted}):
        frozen = {}
        for case in cases.load():
            if case.topic != topic:
                continue
            variables, gave, error = outcome.get(case.full_name, ({}, None, None))
            if any('until' in step for step in gave or []):
                error = 'what it waits for did not come about'
            if error:
                print(f'FAIL real {case.full_name}: {error}')
            if gave is None or error:
                if case.full_name in golden:
                    frozen[case.name] = golden[case.full_name]
                continue
            freezer = match.Freezer(variables, case.row)
            frozen[case.name] = [freezer.value(step) for step in gave]
        write_golden(topic, frozen)


def tidy(mended):
    """Takes cases out of known_gaps.yaml; its comments stay."""
    path = os.path.join(HERE, 'known_gaps.yaml')
    with open(path, encoding='utf-8') as file:
        lines = file.readlines()
    gone = {'  - ' + json.dumps(name, ensure_ascii=False) for name in mended}
    with open(path, 'w', encoding='utf-8') as file:
        file.writelines(line for line in lines if line.rstrip('\n') not in gone)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--against', choices=['embedded', 'real', 'both'], default='embedded')
    parser.add_argument('--filter', default='', help='only the cases whose name has these words')
    parser.add_argument('--freeze', action='store_true', help='write golden/ (with --against real)')
    parser.add_argument('--tessera', default=os.environ.get('TESSERA', os.path.join(servers.ROOT, 'build/dev/tessera')))
    parser.add_argument('--lines', type=int, default=6, help='how many differences of a case are printed')
    parser.add_argument('--tidy', action='store_true', help='take what is no longer open out of known_gaps.yaml')
    options = parser.parse_args()
    wanted = [c for c in cases.load() if all(w in c.full_name for w in options.filter.split())]
    golden, listed, passed, failed, known, mended = read_golden(), read_lists(), 0, 0, 0, []
    for kind in ['real', 'embedded'] if options.against == 'both' else [options.against]:
        started = time.monotonic()
        side = servers.real() if kind == 'real' else servers.embedded(options.tessera)
        try:
            outcome = run_side(side, wanted)
        finally:
            side.close()
        if options.freeze and kind == 'real':
            freeze(wanted, outcome, golden)
            golden = read_golden()
        for case in wanted:
            name = case.full_name
            on_list = listed.get(name, (None, None)) if kind == 'embedded' else (None, None)
            word, lines = judge(case, outcome[name], golden.get(name), on_list)
            passed, failed, known = passed + (word == 'ok'), failed + (word == 'FAIL'), known + (word in LISTS.values())
            mended += [name] if lines == [MENDED] else []
            print(f'{word} {kind} {name}' + ''.join(f'\n    {line}' for line in lines[:options.lines]))
        print(f'== {kind}: {len(wanted)} cases in {time.monotonic() - started:.0f} s, {known} on a list')
    if options.tidy:
        tidy(mended)
    print(f'{passed} passed, {failed} failed')
    return 1 if failed or not passed else 0


if __name__ == '__main__':
    sys.exit(main())
