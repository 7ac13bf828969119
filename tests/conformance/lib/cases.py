"""Reads the cases: YAML files of behaviours, with shared objects and rows of variants.

A file is a list of cases:
  - case: what is true
    steps: [...]                 see README.md
    rows: [{row: name, x: ...}]  one case for each row; `$x` in the steps is the row's value
"""

import copy
import os
import re

import yaml

import match

FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VARIABLE = re.compile(r'\$(\w+)|\$\{(\w+)\}')
PREFIXES = {'core': '/api/v1/namespaces/$ns', 'apps': '/apis/apps/v1/namespaces/$ns',
            'batch': '/apis/batch/v1/namespaces/$ns', 'policy': '/apis/policy/v1/namespaces/$ns'}
STEP_KEYS = {'do', 'body', 'type', 'headers', 'as', 'show', 'capture', 'until', 'watch', 'events', 'of', 'end', 'each',
             'sort', 'code', 'wait'}


class Case:
    def __init__(self, topic, name, steps, row):
        self.topic, self.name, self.steps, self.row = topic, name, steps, row
        self.full_name = f'{topic}: {name}'

    def wants_namespace(self):
        text = repr((self.steps, self.row))
        return '$ns' in text or any(f'${prefix}' in text for prefix in PREFIXES)


def substitute(value, variables):
    """`$name` in every string; a string that is nothing but `$name` becomes the value itself. Others stay as they are."""
    if isinstance(value, dict):
        words = {k: v for k, v in variables.items() if isinstance(v, str)}  # `$patch` may be a key and a row's name
        return {substitute(k, words): substitute(v, variables) for k, v in value.items()}
    if isinstance(value, list):
        return [substitute(item, variables) for item in value]
    if not isinstance(value, str) or '$' not in value:
        return value
    whole = VARIABLE.fullmatch(value)
    if whole and (whole[1] or whole[2]) in variables and (whole[1] or whole[2]) not in PREFIXES:
        return copy.deepcopy(variables[whole[1] or whole[2]])
    return VARIABLE.sub(lambda m: str(variables.get(m[1] or m[2], m[0])), value)


def body_of(step, objects, variables):
    """The body of a request: as it stands, or `{use: object, name: n, with: {path: value}}`."""
    body = substitute(substitute(step.get('body'), variables), variables)  # a row may name what a step captured
    if isinstance(body, dict) and 'use' in body:
        if body['use'] not in objects:
            raise ValueError(f"no object '{body['use']}' in objects.yaml")
        made = copy.deepcopy(objects[body['use']])
        if 'name' in body:
            made['metadata']['name'] = body['name']
        for path, value in (body.get('with') or {}).items():
            match.put(made, path, copy.deepcopy(value))
        body = substitute(made, variables)
    return body


def load_yaml(path):
    with open(path, encoding='utf-8') as file:
        return yaml.load(file, getattr(yaml, 'CSafeLoader', yaml.SafeLoader))


def load(folder=os.path.join(FOLDER, 'cases')):
    cases, seen = [], set()
    for file in sorted(os.listdir(folder)):
        if not file.endswith('.yaml'):
            continue
        topic = file[:-5]
        for written in load_yaml(os.path.join(folder, file)):
            cases += expand(topic, written)
    for case in cases:
        if case.full_name in seen:
            raise ValueError(f"two cases are named '{case.full_name}'")
        seen.add(case.full_name)
        for step in case.steps:
            if set(step) - STEP_KEYS:
                raise ValueError(f'{case.full_name}: no step has {sorted(set(step) - STEP_KEYS)}')
    return cases


def expand(topic, written):
    if 'rows' not in written:
        return [Case(topic, written['case'], written['steps'], {})]
    made = []
    for row in written['rows']:
        row = row if isinstance(row, dict) else {'row': row}
        made.append(Case(topic, f"{written['case']} [{row['row']}]", written['steps'], row))
    return made
