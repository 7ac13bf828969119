"""Builds and runs the test tiers for scripts/test, and counts what passed, failed and was skipped."""

import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as xml

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import running  # noqa: E402
from running import JOBS, ROOT, run, say, tail  # noqa: E402

FUZZ_SECONDS = int(os.environ.get('TESSERA_FUZZ_SECONDS', '10'))
FUZZ_RUNS = int(os.environ.get('TESSERA_FUZZ_RUNS', '20000'))  # bounds the smoke run: the same inputs each time
SKIP_STATUS = 77  # of a script in tests/e2e that cannot run here; its last line says why


class Tally:
    def __init__(self):
        self.passed, self.failed, self.skipped = 0, [], []

    def add(self, name, problem=None):
        if problem is None:
            self.passed += 1
        else:
            self.failed.append((name, problem))

    def skip(self, name, reason):
        self.skipped.append((name, reason))


def build(preset, tally, targets=()):
    """Configures and builds a preset; True when both worked."""
    started = time.monotonic()
    problem = running.build(preset, targets)
    if problem is None:
        say(f'== built {preset} in {time.monotonic() - started:.0f} s')
        return True
    summary, _, output = problem.partition('\n')
    say(output)
    name, _, what = summary.partition(': ')
    tally.add(name, what)
    return False


def read_gtest(path, tally, mark=''):
    """Adds the cases of one GoogleTest report; returns how many failed. `mark` follows each name."""
    failures = 0
    for suite in xml.parse(path).getroot().iter('testsuite'):
        for case in suite.iter('testcase'):
            name = f"{suite.get('name')}.{case.get('name')}{mark}"
            failure, skipped = case.find('failure'), case.find('skipped')
            if failure is not None:
                failures += 1
                tally.add(name, (failure.get('message') or failure.text or '').strip()[:2000])
            elif skipped is not None:
                reason = [line for line in (skipped.get('message') or skipped.text or '').splitlines() if line.strip()]
                tally.skip(name, reason[-1].strip() if reason else 'no reason given')
            elif case.get('status') == 'notrun':
                tally.skip(name, 'disabled')
            else:
                tally.add(name)
    return failures


def ctest(preset, label, tally, timeout_s):
    """Runs the tests with a label; counts the cases of GoogleTest programs, and other programs as one each."""
    folder = os.path.join(ROOT, 'build', preset)
    listed = json.loads(subprocess.run(['ctest', '--test-dir', folder, '-L', f'^{label}$', '--show-only=json-v1'],
                                       capture_output=True, stdin=subprocess.DEVNULL, check=True).stdout)
    tests = listed.get('tests', [])
    if not tests:
        return
    reports = os.path.join(folder, 'reports', label)
    shutil.rmtree(reports, ignore_errors=True)
    os.makedirs(reports)
    junit = os.path.join(reports, 'ctest.xml')
    env = {'GTEST_OUTPUT': f'xml:{reports}/gtest/', 'UBSAN_OPTIONS': 'print_stacktrace=1', 'GTEST_COLOR': 'no',
           'TESSERA_WORLD_SEEDS': os.environ.get('TESSERA_WORLD_SEEDS', '200')}
    status, log = run(f'{preset}-{label}', ['ctest', '--test-dir', folder, '-L', f'^{label}$', '-j', str(JOBS),
                                            '--timeout', str(timeout_s), '--output-on-failure',
                                            '--output-junit', junit], timeout_s * len(tests) + 60, env)
    if not os.path.exists(junit):
        say(tail(log))
        tally.add(f'ctest {label}', f'status {status} and no report, see {os.path.relpath(log, ROOT)}')
        return
    outcome = {case.get('name'): case.get('status') for case in xml.parse(junit).getroot().iter('testcase')}
    mark = '' if preset == 'dev' else f' ({preset})'
    for test in tests:
        program = os.path.basename(test.get('command', [''])[0])
        report = os.path.join(reports, 'gtest', program + '.xml')
        failed = outcome.get(test['name']) != 'run'
        counted = read_gtest(report, tally, mark) if os.path.exists(report) else None
        if failed and not counted:  # a crash, a time-out or a sanitizer's report at exit
            say(tail(log, 60))
            tally.add(test['name'] + mark, f'failed outside its cases, see {os.path.relpath(log, ROOT)}')
        elif counted is None:
            tally.add(test['name'] + mark)


def unit(tally, built):
    if built('dev'):
        ctest('dev', 'unit', tally, 300)


def tier(label, timeout_s):
    def step(tally, built):
        if built('dev'):
            ctest('dev', label, tally, timeout_s)
    return step


def asan(tally, built):
    if built('asan'):
        ctest('asan', 'unit', tally, 600)


def e2e(tally, built):
    folder = os.path.join(ROOT, 'tests', 'e2e')
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    names = [n for n in names if n.endswith(('.sh', '.py')) and os.access(os.path.join(folder, n), os.X_OK)]
    if not names or not built('dev'):
        return
    for name in names:
        status, log = run(f'e2e-{name}', [os.path.join(folder, name)], 900,
                          {'TESSERA': os.path.join(ROOT, 'build', 'dev', 'tessera')})
        if status == SKIP_STATUS:
            tally.skip(f'e2e/{name}', (tail(log, 1).strip() or 'no reason given'))
        elif status:
            say(tail(log))
            tally.add(f'e2e/{name}', f'status {status}, see {os.path.relpath(log, ROOT)}')
        else:
            tally.add(f'e2e/{name}')


def conformance(tally, built):
    tier('conformance', 600)(tally, built)
    if not built('dev'):
        return
    status, log = run('kubernetes', ['scripts/kubernetes'], 3600)
    if status:
        tally.skip('conformance of the real side', f'no control plane could be built: {tail(log, 1).strip()}')
    side = 'embedded' if status else 'both'
    run_suite('conformance', ['tests/conformance/run.py', '--against', side], 900, tally)


def run_suite(name, words, limit_s, tally):
    """Runs a program that prints `ok WHAT` and `FAIL WHAT`, the latter with indented lines; counts each."""
    status, log = run(name, words, limit_s, {'TESSERA': os.path.join(ROOT, 'build', 'dev', 'tessera')})
    with open(log, encoding='utf-8') as file:
        verdicts = re.findall(r'^(ok|FAIL) (.*)\n((?:    .*\n){0,3})', file.read(), re.M)
    for word, what, problem in verdicts:
        tally.add(f'{name} {what}', None if word == 'ok' else ' '.join(problem.split()))
    if status and not any(word == 'FAIL' for word, _, _ in verdicts):
        say(tail(log))
        tally.add(name, f'status {status}, see {os.path.relpath(log, ROOT)}')


def clients(tally, built):
    if not built('dev'):
        return
    for words in (['scripts/kubernetes'], ['scripts/clients', 'clientgo'], ['scripts/clients', 'manager'],
                  ['scripts/helm'], ['scripts/python_client']):
        status, log = run('clients-programs', words, 3600)
        if status:
            tally.skip('clients', f'{" ".join(words)} could not be had: {tail(log, 1).strip()}')
            return
    run_suite('clients', ['tests/clients/run.py'], 900, tally)


def command(name, words, limit_s):
    def step(tally, _):
        status, log = run(name, words, limit_s)
        if status:
            say(tail(log, 60))
        tally.add(name, f'status {status}, see {os.path.relpath(log, ROOT)}' if status else None)
    return step


def check(tally, built):
    command('check-self-test', ['scripts/check', '--self-test'], 120)(tally, built)
    command('check', ['scripts/check'], 120)(tally, built)


def fuzz(tally, built):
    sources = os.path.join(ROOT, 'tests', 'fuzz')
    names = sorted(n[:-3] for n in os.listdir(sources) if n.endswith('_fuzz.cc')) if os.path.isdir(sources) else []
    if not names or not built('fuzz', names):
        return

    def one(name):
        found, crashes = (os.path.join(ROOT, 'build', 'fuzz', folder, name) for folder in ('found', 'crashes'))
        os.makedirs(found, exist_ok=True)
        os.makedirs(crashes, exist_ok=True)
        corpus = os.path.join(sources, 'corpus', name)
        return name, run(f'fuzz-{name}', [
            os.path.join(ROOT, 'build', 'fuzz', 'tests', name), found, *([corpus] if os.path.isdir(corpus) else []),
            '-seed=1', f'-runs={FUZZ_RUNS}', f'-max_total_time={FUZZ_SECONDS}', '-timeout=20', '-rss_limit_mb=2048', '-max_len=16384',
            '-print_final_stats=1', f'-artifact_prefix={crashes}/'], FUZZ_SECONDS + 300,
            {'ASAN_SYMBOLIZER_PATH': shutil.which('llvm-symbolizer-19') or ''})

    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        for name, (status, log) in pool.map(one, names):
            if status:
                say(tail(log))
            tally.add(name, f'status {status}, see {os.path.relpath(log, ROOT)}' if status else None)


TIERS = {
    'unit': unit,
    'sim': tier('sim', 900),
    'conformance': conformance,
    'clients': clients,
    'scenarios': tier('scenarios', 600),
    'e2e': e2e,
    'check': check,
    'headers': command('headers', ['scripts/check', '--headers'], 1800),
    'asan': asan,
    'fuzz': fuzz,
}


def main():
    parser = argparse.ArgumentParser(prog='scripts/test', description='builds and runs test tiers')
    parser.add_argument('--all', action='store_true', help='every tier: ' + ' '.join(TIERS))
    parser.add_argument('tiers', nargs='*', metavar='TIER', help='one of ' + ' '.join(TIERS))
    options = parser.parse_args()
    for name in options.tiers:
        if name not in TIERS:
            parser.error(f"no tier '{name}': the tiers are {' '.join(TIERS)}")
    tally, builds = Tally(), {}

    def built(preset, targets=()):
        if preset not in builds:
            builds[preset] = build(preset, tally, targets)
        return builds[preset]

    for name in TIERS if options.all else options.tiers or ['unit']:
        started, before = time.monotonic(), (tally.passed, len(tally.failed), len(tally.skipped))
        TIERS[name](tally, built)
        now = (tally.passed, len(tally.failed), len(tally.skipped))
        counts = [b - a for a, b in zip(before, now)]
        say('{}: {} passed, {} failed, {} skipped ({:.0f} s)'.format(f'== {name}', *counts, time.monotonic() - started))

    for name, reason in dict(tally.skipped).items():
        say(f'skipped: {name}: {reason}')
    for name, problem in tally.failed:
        say(f'FAILED: {name}: {problem}')
    say(f'{tally.passed} passed, {len(tally.failed)} failed, {len(tally.skipped)} skipped')
    return 1 if tally.failed or not tally.passed else 0


if __name__ == '__main__':
    sys.exit(main())
