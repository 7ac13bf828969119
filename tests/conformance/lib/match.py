"""Answers as patterns: what differs between two runs (uids, times, revisions) becomes a placeholder."""

import re

PLACES = {
    'uid': r'[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}',
    'time': r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z',
    'rv': r'\d+',
    'suffix': r'[bcdfghjklmnpqrstvwxz2456789]{5,10}',
    'ip': r'\d+\.\d+\.\d+\.\d+',
    'port': r'\d+',
    'any': r'(?s:.*)',
}
PLACE = re.compile('<(' + '|'.join(PLACES) + ')>')
ABSENT = '<absent>'
# What only the decoder of the real server's language says is not compared.
INTERNAL = [(re.compile(r'Go struct field [\w.]+ of type .*', re.S), 'Go struct field <any>'),
            (re.compile(r'json parse error: .*', re.S), 'json parse error: <any>'),
            (re.compile(r'error decoding patch: .*', re.S), 'error decoding patch: <any>'),
            (re.compile(r'\?hash=[0-9A-F]+'), '?hash=<any>'),
            (re.compile(r'Invalid value: "\{.*', re.S), 'Invalid value: "{<any>'),
            # Its structs, printed whole; why they are refused is compared.
            (re.compile(r'Invalid value: (?:\[\{"Name"|\{"ID").*?[\]}]: (?=[a-z])', re.S), 'Invalid value: <any>: '),
            (re.compile(r'is missing in .*', re.S), 'is missing in <any>'),
            (re.compile(r'(in record|current:) \(?\d+\)?'), r'\1 <any>'),
            (re.compile(r' in scheme "[^"]*"'), '<any>')]
STEP = re.compile(r'\.?([^.\[\]"#]+)|\[(\d+)\]|\[(\*)\]|\["([^"]*)"\]')


def paths(text):
    """`items[*].metadata.labels["a.b/c"]` -> ['items', ALL, 'metadata', 'labels', 'a.b/c']."""
    found, at = [], 0
    while at < len(text):
        match = STEP.match(text, at)
        if not match:
            raise ValueError(f"'{text}' is no path: column {at + 1}")
        name, index, star, quoted = match.groups()
        found.append(name if name is not None else int(index) if index is not None else ... if star else quoted)
        at = match.end()
    return found


def look(value, path):
    """The value at a path; ABSENT where there is none. `#path` counts a list or an object."""
    if path.startswith('#'):
        found = look(value, path[1:])
        return len(found) if isinstance(found, (list, dict)) else ABSENT
    return _look(value, paths(path))


def _look(value, steps):
    for i, step in enumerate(steps):
        if step is ...:
            if not isinstance(value, list):
                return ABSENT
            return [_look(item, steps[i + 1:]) for item in value]
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return ABSENT
    return value


def put(value, path, new):
    """Sets (or, for ABSENT, removes) what stands at a path, making objects on the way."""
    steps = paths(path)
    for step, following in zip(steps, steps[1:]):
        if isinstance(value, dict):
            value = value.setdefault(step, [] if isinstance(following, int) else {})
        else:
            while len(value) <= step:
                value.append({})
            value = value[step]
    last = steps[-1]
    if new == ABSENT:
        if isinstance(value, dict):
            value.pop(last, None)
        else:
            del value[last]
    elif isinstance(value, list) and last == len(value):
        value.append(new)
    else:
        value[last] = new


def without_managed_fields(value):
    """Field ownership depends on every client before; the cases that are about it ask for it by path."""
    if isinstance(value, list):
        return [without_managed_fields(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {k: {n: v for n, v in part.items() if n != 'managedFields'} if k == 'metadata' and isinstance(part, dict)
            else without_managed_fields(part) for k, part in value.items()}


class Freezer:
    """Makes a pattern of the answers of a case, whose own variables and row tell which values are chance."""

    def __init__(self, variables, row):
        self.words = [(value, f'${name}') for name, value in variables.items() if name == 'ns']
        self.revisions = {v for k, v in variables.items() if k not in row and isinstance(v, str) and v.isdigit()}

    def value(self, value, key=''):
        if isinstance(value, dict):
            frozen = {self.text(k): self.value(v, k) for k, v in value.items()}
            prefix = value.get('generateName')
            if prefix and str(value.get('name', '')).startswith(prefix):
                frozen['name'] = self.text(prefix) + '<suffix>'
            return frozen
        if isinstance(value, list):
            return [self.value(item, key) for item in value]
        if isinstance(value, str):
            if key == 'resourceVersion' and value.isdigit():
                return '<rv>'
            if key == 'continue' and value:
                return '<any>'
            return self.text(value)
        return value

    def text(self, text):
        for word, name in self.words:
            text = text.replace(word, name)
        for place in ('uid', 'time'):
            text = re.sub(PLACES[place], f'<{place}>', text)
        for internal, place in INTERNAL:
            text = internal.sub(place, text)
        text = re.sub(r'\b10\.96\.\d+\.\d+', '<ip>', text)
        text = re.sub(r'(?<=kube-api-access-)[a-z0-9]{5}\b', '<suffix>', text)
        text = re.sub(r'127\.0\.0\.1:\d+', '127.0.0.1:<port>', text)
        for revision in self.revisions:
            text = re.sub(rf'(?<![\w.]){revision}(?![\w.])', '<rv>', text)
        return text


def fits(pattern, text, variables):
    pattern = pattern.replace('$ns', variables.get('ns', '$ns'))
    pieces = PLACE.split(pattern)
    if len(pieces) == 1:
        return pattern == text
    regex = ''.join(PLACES[p] if i % 2 else re.escape(p) for i, p in enumerate(pieces))
    return re.fullmatch(regex, text) is not None


def differences(pattern, got, variables, path=''):
    """[(path, expected, got)] of an answer against its pattern."""
    if isinstance(pattern, dict) and isinstance(got, dict):
        names = {key.replace('$ns', variables.get('ns', '$ns')): key for key in pattern}
        found = []
        for name in sorted(set(names) | set(got)):
            there = pattern[names[name]] if name in names else ABSENT
            found += differences(there, got.get(name, ABSENT), variables, f'{path}.{name}' if path else name)
        return found
    if isinstance(pattern, list) and isinstance(got, list) and len(pattern) == len(got):
        return [d for i, (p, g) in enumerate(zip(pattern, got)) for d in differences(p, g, variables, f'{path}[{i}]')]
    if isinstance(pattern, str) and isinstance(got, str) and got != ABSENT and fits(pattern, got, variables):
        return []
    if pattern == got and type(pattern) is type(got):
        return []
    return [(path, pattern, got)]
