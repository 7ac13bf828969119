"""The rules of scripts/check. A rule takes a Tree and yields (file, line, what is wrong and how to mend it)."""

import os
import re

import cpp_text

# Which modules may include which outside library; everything else that is not listed is free.
LIBRARIES = [
    (r'boost/(?:asio|beast)|openssl/|curl/', 'http', {'http'}),
    (r'boost/json|yaml-cpp/', 'json', {'json'}),
    (r'CLI/', 'cli', {'cli'}),
    (r'sqlite3\.h', 'apiserver', {'apiserver', 'metering'}),
    (r'grpcpp?/|google/protobuf/', 'agent', {'agent'}),
    (r'spdlog/', 'base', {'base'}),
]

# What product code outside base/ must not call, and what to use instead.
BANNED = [
    ('clock', r'\b\w*_clock\s*::\s*now\b|\bgettimeofday\s*\(|\bclock_gettime\s*\('
              r'|\btime\s*\(\s*(?:nullptr|NULL|0|&\s*\w+)\s*\)', 'take a base::Clock'),
    ('sleep', r'\bsleep_(?:for|until)\s*\(|\b(?:u|nano)?sleep\s*\(', 'post_after on a base::Executor'),
    ('random', r'\bs?rand\s*\(|\bstd::random_device\b|\bstd::mt19937|\bstd::default_random_engine\b',
     'take a base::Random'),
    ('regex', r'\bstd::w?regex\b|<regex>', 'write a small parser: std::regex is slow and overflows the stack'),
    ('thread', r'\bstd::(?:thread|jthread|async)\b|\bpthread_create\b', 'run on a base::Executor'),
    ('getenv', r'\b(?:secure_)?getenv\s*\(', 'read the environment in cli/ and hand the value in'),
    ('iostream', r'<iostream>', 'print with fmt, log with base/log.h'),
]
# Where a rule above does not hold, and why.
ALLOWED = {
    ('thread', 'http'): 'the I/O loop of Asio runs on threads of its own',
    ('getenv', 'cli'): 'the command line is where the environment comes in',
}
COROUTINES = re.compile(r'\bco_(?:await|return|yield)\b')
OPEN_ENDS = re.compile(r'\b(?:TO' r'DO|FIX' r'ME|X' r'XX)\b|\bnot imple' r'mented\b|\bunimple' r'mented\b')
MACHINE = re.compile(
    r'(?<![\w.-])/wo' r'rk/|/tmp/bu' r'ild|(?<!\w)/ro' r'ot/'
    r'|registry\.np' r'mjs\.org|(?:proxy|sum)\.gol' r'ang\.org|(?:deb|security)\.deb' r'ian\.org|\bpy' r'pi\.org'
    r'|files\.python' r'hosted\.org|\b(?:static|index)\.cra' r'tes\.io|\brepo1?\.ma' r'ven\.')
WEAK_WORDS = {'Manager', 'Helper', 'Helpers', 'Util', 'Utils', 'Info'}
TYPE_NAME = re.compile(r'\b(?:class|struct|enum(?:\s+class|\s+struct)?|concept|using)\s+([A-Z]\w*)')
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.M)

CODE = ('.h', '.cc', '.py', '.sh', '.ts', '.tsx')
FILE_LINES, FUNCTION_LINES, TEST_FUNCTION_LINES = 800, 70, 120


class Tree:
    """The files to be checked: path -> text, read once. Paths are relative to root, with '/'."""

    def __init__(self, root, paths):
        self.root, self.paths = root, sorted(paths)
        self._text, self._stripped = {}, {}
        self.modules = self._read_modules()

    def text(self, path):
        if path not in self._text:
            with open(os.path.join(self.root, path), 'rb') as file:
                self._text[path] = file.read().decode('utf-8', 'replace')
        return self._text[path]

    def stripped(self, path):
        if path not in self._stripped:
            self._stripped[path] = cpp_text.strip(self.text(path))
        return self._stripped[path]

    def _read_modules(self):
        modules = {}
        if 'src/modules.txt' in self.paths:
            for line in self.text('src/modules.txt').splitlines():
                match = re.match(r'([a-z_/]+):(.*)', line)
                if match:
                    modules[match.group(1)] = set(match.group(2).split())
        return modules

    def module_of(self, path):
        """The module of a path below src/, the innermost one; None for what belongs to none."""
        parts = path.split('/')[:-1]
        while parts and '/'.join(parts) not in self.modules:
            parts.pop()
        return '/'.join(parts) or None

    def select(self, *endings, under=''):
        return [p for p in self.paths if p.startswith(under) and p.endswith(endings)]


def prose(tree):
    """What people wrote: not the inputs of fuzzers and golden files, which may hold anything."""
    return [p for p in tree.paths if not re.search(r'(?:^|/)(?:corpus|testdata|golden)/', p)]


def is_test(path):
    return path.startswith('tests/') or re.search(r'_(?:test|bench)\.(?:cc|h)$|(?:^|/)testing/', path) is not None


def line_of(text, at):
    return text.count('\n', 0, at) + 1


def includes(tree, path):
    """[(line, '<' or '"', name)], comments left out. A name in quotes is a literal, so strip() cannot be asked for it."""
    text = tree.text(path)
    stripped = tree.stripped(path)
    return [(line_of(text, m.start()), m.group(1), m.group(2)) for m in INCLUDE.finditer(text)
            if stripped[m.start():m.end()].lstrip().startswith('#')]


def module_arrows(tree):
    for path in tree.select('.h', '.cc', under='src/'):
        module = tree.module_of(path[4:])
        if module is None:
            yield path, 1, 'stands in no module: add its folder to src/modules.txt'
            continue
        for line, mark, name in includes(tree, path):
            if name == 'source_dir.h' and path.endswith('_test.cc'):
                continue  # made by the build, for tests
            other = tree.module_of(name) if mark == '"' else None
            if other and other != module and other not in tree.modules[module]:
                yield path, line, (f'{module} must not include {other} ("{name}"): take what it needs through an '
                                   'interface, or change src/modules.txt with the design')
            if mark == '"' and not other:
                yield path, line, f'"{name}" names no module: includes start at src/'


def outside_libraries(tree):
    for path in tree.select('.h', '.cc', under='src/'):
        module = (tree.module_of(path[4:]) or '').split('/')[0]
        for line, _, name in includes(tree, path):
            for pattern, home, modules in LIBRARIES:
                if re.match(pattern, name) and module not in modules:
                    yield path, line, f'<{name}> is used only in src/{home}: call that module instead'


def banned_calls(tree):
    for path in tree.select('.h', '.cc'):
        text = tree.stripped(path)
        for match in COROUTINES.finditer(text):
            yield path, line_of(text, match.start()), 'no coroutines: g++ 12.2 destroys arguments twice in them'
        module = tree.module_of(path[4:]) if path.startswith('src/') else None
        if module == 'base':
            continue
        for rule, pattern, instead in BANNED:
            if is_test(path) and rule not in ('sleep', 'regex'):
                continue
            if (rule, module) in ALLOWED:
                continue
            for match in re.finditer(pattern, text):
                yield path, line_of(text, match.start()), f'{match.group(0).strip(" (")} is not for here: {instead}'


def open_ends(tree):
    for path in prose(tree):
        for match in OPEN_ENDS.finditer(tree.text(path)):
            yield path, line_of(tree.text(path), match.start()), f'"{match.group(0)}": finish it or take it out'


def machine_paths(tree):
    for path in prose(tree):
        for match in MACHINE.finditer(tree.text(path)):
            yield (path, line_of(tree.text(path), match.start()),
                   f'"{match.group(0)}" belongs to one machine: use a relative path, a setting or the default')


def header_form(tree):
    for path in tree.select('.h'):
        lines = [line for line in tree.text(path).splitlines() if line.strip()]
        if '#pragma once' not in lines:
            yield path, 1, 'add #pragma once below the opening comment'
        body = [line for line in lines[:4] if line != '#pragma once']
        if not body or not body[0].startswith(('//', '/*')):
            yield path, 1, 'open the header with a comment that says what the thing is'


def sizes(tree):
    for path in tree.paths:
        if not path.endswith(CODE):
            continue
        lines = tree.text(path).count('\n')
        if lines > FILE_LINES:
            yield path, 1, f'{lines} lines, more than {FILE_LINES}: split it by duty'
        if path.endswith(('.h', '.cc')):
            most = TEST_FUNCTION_LINES if is_test(path) else FUNCTION_LINES
            for name, first, last in cpp_text.functions(tree.stripped(path)):
                if last - first + 1 > most:
                    yield path, first, f'{name} has {last - first + 1} lines, more than {most}: split it by steps'


def names(tree):
    for path in tree.select('.h', '.cc'):
        text = tree.stripped(path)
        for match in TYPE_NAME.finditer(text):
            weak = WEAK_WORDS.intersection(re.findall(r'[A-Z][a-z0-9]*|[A-Z]+(?![a-z])', match.group(1)))
            if weak:
                yield path, line_of(text, match.start()), f'{match.group(1)}: say what it does instead of {weak.pop()}'
        if not re.fullmatch(r'[a-z0-9_]+\.(?:h|cc)', os.path.basename(path)):
            yield path, 1, 'name the file in snake_case'


def module_readmes(tree):
    for module in tree.modules:
        folder = f'src/{module}/'
        if not tree.select('.cc', '.h', under=folder):
            continue
        readme = folder + 'README.md'
        if readme not in tree.paths:
            yield readme, 1, 'missing: say the duty, the main types, who may call it, invariants, where its tests are'
            continue
        lines = tree.text(readme).count('\n')
        if not 20 <= lines <= 60:
            yield readme, 1, f'{lines} lines: a module README has 20 to 60'


def dead_files(tree):
    used = set()
    for path in tree.select('.h', '.cc'):
        for _, _, name in includes(tree, path):
            used.update({f'src/{name}', os.path.normpath(os.path.join(os.path.dirname(path), name)), name})
    for path in tree.select('.h', under='src/') + tree.select('.h', under='tests/'):
        if path not in used:
            yield path, 1, 'no file includes this header: use it or delete it'


def whitespace(tree):
    for path in prose(tree):
        if re.search(r'\.(?:svg|csv|patch)$', path):
            continue
        text = tree.text(path)
        tabs_allowed = re.search(r'(?:^|/)(?:go\.mod|go\.sum|Makefile)$|\.(?:go|mk)$', path)
        for match in re.finditer(r'[ \t\r]+$' if tabs_allowed else r'[ \t\r]+$|\t', text, re.M):
            what = 'a tab' if match.group(0) == '\t' else 'a space at the end of the line'
            yield path, line_of(text, match.start()), f'{what}: take it out'
        if text and not text.endswith('\n'):
            yield path, line_of(text, len(text)), 'end the file with a line feed'


def third_party(tree):
    listed = tree.text('third_party.md') if 'third_party.md' in tree.paths else ''
    for path in tree.select('CMakeLists.txt', '.cmake'):
        text = re.sub(r'#[^\n]*', lambda m: ' ' * len(m.group(0)), tree.text(path))
        for call in re.finditer(r'target_link_libraries\s*\(([^)]*)\)', text):
            for name in call.group(1).split()[1:]:
                if name in ('PUBLIC', 'PRIVATE', 'INTERFACE') or name.startswith('tessera_') or '$' in name:
                    continue
                if f'`{name}`' not in listed:
                    yield (path, line_of(text, call.start()),
                           f'third_party.md does not list `{name}`: add its version, licence and why it was picked')


def scripts(tree):
    for path in tree.paths:
        if not re.match(r'scripts/|\.ci/|tests/e2e/', path):
            continue
        full = os.path.join(tree.root, path)
        if tree.text(path).startswith('#!'):
            if not os.access(full, os.X_OK):
                yield path, 1, 'has #! but is not executable: chmod +x'
        elif path.count('/') == 1 and '.' not in os.path.basename(path):
            yield path, 1, 'a script without #!: say what runs it'
        if path.endswith('.py') or tree.text(path).startswith('#!/usr/bin/env python3'):
            try:
                compile(tree.text(path), path, 'exec')
            except SyntaxError as error:
                yield path, error.lineno or 1, f'{error.msg}: python3 cannot read it'


def fuzz_corpora(tree):
    for path in tree.select('_fuzz.cc', under='tests/fuzz/'):
        corpus = f'tests/fuzz/corpus/{os.path.basename(path)[:-3]}/'
        if not tree.select('', under=corpus):
            yield path, 1, f'has no corpus: put a few inputs into {corpus}'


ALL = [module_arrows, outside_libraries, banned_calls, open_ends, machine_paths, header_form, sizes, names,
       module_readmes, dead_files, whitespace, third_party, scripts, fuzz_corpora]
