"""The same answers as Kubernetes: tests/conformance against the embedded API and against the real control plane."""

import functools
import os
import re

import running
from figures import Broken, figure, measured, program

FOLDER = os.path.join(running.ROOT, 'tests', 'conformance')


@functools.lru_cache(None)
def suite(side):
    """(passed, failed)."""
    ran = measured(['env', f"TESSERA={program('tessera')}", os.path.join(FOLDER, 'run.py'), '--against', side], 1800,
                   good=(0, 1))
    last = re.findall(r'^.*?(\d+) passed, (\d+) failed', ran.output, re.M)
    if not last:
        raise Broken(ran.output.strip()[-300:])
    return int(last[-1][0]), int(last[-1][1])


@figure('conformance.behaviours', 'behaviours', '>=250')
def behaviours():
    """Those in which the embedded API answers as the frozen answers of kube-apiserver say, accepted differences included."""
    return suite('embedded')[0]


@figure('conformance.failed', 'behaviours', '<=0')
def failed():
    return suite('embedded')[1]


@figure('conformance.real_failed', 'behaviours', '<=0')
def real_failed():
    """Frozen answers that kube-apiserver itself does not give."""
    return suite('real')[1]


def entries(name, pattern):
    with open(os.path.join(FOLDER, name), encoding='utf-8') as file:
        return len(re.findall(pattern, file.read(), re.M))


@figure('conformance.differences', 'differences', '<=10')
def differences():
    """Accepted, each with a reason."""
    return entries('differences.yaml', r'^- ')


@figure('conformance.gaps', 'behaviours', '<=0')
def gaps():
    """Known to be answered otherwise, still to be mended."""
    return entries('known_gaps.yaml', r'^  - ')
