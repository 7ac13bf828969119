"""Runs the figures of scripts/bench.d and prints one line each. See figures.py for what an area file may use."""

import argparse
import fnmatch
import importlib.util
import os
import platform
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import figures  # noqa: E402
import running  # noqa: E402

WANTED = ('tessera', 'tessera_bench', 'tessera_load', 'tessera_sim_suite')


def load_areas():
    folder = os.path.join(running.ROOT, 'scripts', 'bench.d')
    for name in sorted(os.listdir(folder)):
        if name.endswith('.py'):
            spec = importlib.util.spec_from_file_location('bench_' + name[:-3], os.path.join(folder, name))
            spec.loader.exec_module(importlib.util.module_from_spec(spec))


def build_release():
    problem = running.build('release', ['help'])
    if problem is None:
        with open(os.path.join(running.LOGS, 'release-build.log'), encoding='utf-8') as file:
            known = set(re.findall(r'^([\w./-]+): ', file.read(), re.M))
        targets = [t for t in WANTED if t in known]
        problem = running.build('release', targets) if targets else None
    return problem


def matches(name, patterns):
    return not patterns or any(p in name or fnmatch.fnmatch(name, p) for p in patterns)


def machine():
    model = 'unknown processor'
    try:
        with open('/proc/cpuinfo', encoding='utf-8') as file:
            model = re.search(r'^model name\s*:\s*(.*)$', file.read(), re.M).group(1)
    except (OSError, AttributeError):
        pass
    commit = subprocess.run(['git', '-C', running.ROOT, 'rev-parse', '--short', 'HEAD'], capture_output=True,
                            stdin=subprocess.DEVNULL, text=True, check=False).stdout.strip()
    load = os.getloadavg()[0]
    return f'{os.cpu_count()} cores of {model}, {platform.system()} {platform.release()}, load {load:.1f}, commit {commit}'


def meets(value, target):
    limit = float(target[2:])
    return value <= limit if target.startswith('<=') else value >= limit


def main():
    parser = argparse.ArgumentParser(prog='scripts/bench', description='measures; one line a figure')
    parser.add_argument('--list', action='store_true', help='the names, units and targets, without measuring')
    parser.add_argument('--no-build', action='store_true', help='measure build/release as it stands')
    parser.add_argument('--strict', action='store_true', help='status 1 also when a target is missed or a figure skipped')
    parser.add_argument('patterns', nargs='*', metavar='PATTERN', help='part of a name, or a glob')
    options = parser.parse_args()
    load_areas()
    chosen = [f for f in figures.ALL if matches(f.name, options.patterns)]
    if not chosen:
        parser.error(f"no figure matches {' '.join(options.patterns)}: scripts/bench --list shows the names")
    if options.list:
        for figure in chosen:
            print(figure.name, '-', figure.unit, figure.target)
        return 0
    if not options.no_build:
        problem = build_release()
        if problem:
            print(problem, file=sys.stderr)
            return 1
    print(f'# {machine()}', file=sys.stderr)
    broken = missed = 0
    for figure in chosen:
        started = time.monotonic()
        try:
            value = figure.measure()
            text = f'{value:.4g}' if abs(value) < 1000 else f'{value:.0f}'
            if figure.target != '-' and not meets(value, figure.target):
                missed += 1
                print(f'# {figure.name}: misses its target', file=sys.stderr)
        except figures.Skip as reason:
            text, missed = 'skipped', missed + 1
            print(f'# {figure.name}: {reason}', file=sys.stderr)
        except figures.Broken as reason:
            text, broken = 'failed', broken + 1
            print(f'# {figure.name}: {reason}', file=sys.stderr)
        print(figure.name, text, figure.unit, figure.target, flush=True)
        if time.monotonic() - started > 20:
            print(f'# {figure.name}: took {time.monotonic() - started:.0f} s to measure', file=sys.stderr)
    return 1 if broken or (options.strict and missed) else 0


if __name__ == '__main__':
    sys.exit(main())
