"""The test of scripts/check: each rule finds what it is for in a small bad tree, and nothing in a good one."""

import os
import re
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import check_rules  # noqa: E402
import cpp_text  # noqa: E402

README = '# base\n' + 'line\n' * 24
GOOD = {
    'src/modules.txt': 'base:\nkube: base\nscheduler/core: base\nscheduler: base kube scheduler/core\n',
    'src/base/a.h': '// What a is.\n#pragma once\n\nint a();\n',
    'src/base/a.cc': '#include "base/a.h"\n\nint a() { return 1; }  // std::thread in a comment is fine\n',
    'src/base/README.md': README,
    'src/kube/b.cc': '#include "base/a.h"\n\nconst char* b() { return "time(nullptr) co_await"; }\n',
    'src/kube/README.md': README,
    'src/scheduler/core/c.h': '// What c is.\n#pragma once\n',
    'src/scheduler/core/README.md': README,
    'src/scheduler/d.cc': '#include "scheduler/core/c.h"\n',
    'src/scheduler/README.md': README,
    'src/base/module.cmake': 'target_link_libraries(${MODULE} PUBLIC fmt)\n',
    'third_party.md': '| `fmt` |\n',
    'scripts/run': '#!/bin/sh\n',
    'tests/fuzz/x_fuzz.cc': '// A fuzz target.\n',
    'tests/fuzz/corpus/x_fuzz/one': 'any\tthing',
}
LONG = 'void f(int a) {\n' + '  a += 1;\n' * 71 + '}\n'
# rule, files that replace or join the good ones, the file found, a word of the finding
BAD = [
    ('module_arrows', {'src/kube/b.cc': '#include "scheduler/core/c.h"\n'}, 'src/kube/b.cc', 'must not include'),
    ('module_arrows', {'src/scheduler/core/c.h': '// C.\n#pragma once\n#include "kube/b.h"\n'},
     'src/scheduler/core/c.h', 'must not include kube'),
    ('module_arrows', {'src/kube/b.cc': '#include "b.h"\n'}, 'src/kube/b.cc', 'names no module'),
    ('module_arrows', {'src/lost/x.cc': 'int x;\n'}, 'src/lost/x.cc', 'no module'),
    ('outside_libraries', {'src/kube/b.cc': '#include <boost/asio/ip/tcp.hpp>\n'}, 'src/kube/b.cc', 'src/http'),
    ('outside_libraries', {'src/kube/b.cc': '#include <boost/json.hpp>\n'}, 'src/kube/b.cc', 'src/json'),
    ('outside_libraries', {'src/kube/b.cc': '#include <CLI/CLI.hpp>\n'}, 'src/kube/b.cc', 'src/cli'),
    ('outside_libraries', {'src/kube/b.cc': '#include <sqlite3.h>\n'}, 'src/kube/b.cc', 'src/apiserver'),
    ('outside_libraries', {'src/kube/b.cc': '#include <grpcpp/grpcpp.h>\n'}, 'src/kube/b.cc', 'src/agent'),
    ('outside_libraries', {'src/kube/b.cc': '#include <spdlog/spdlog.h>\n'}, 'src/kube/b.cc', 'src/base'),
    ('banned_calls', {'src/kube/b.cc': 'auto t = std::chrono::steady_clock::now();\n'}, 'src/kube/b.cc', 'Clock'),
    ('banned_calls', {'src/kube/b.cc': 'auto t = time(nullptr);\n'}, 'src/kube/b.cc', 'Clock'),
    ('banned_calls', {'src/kube/b.cc': 'void f() { usleep(3); }\n'}, 'src/kube/b.cc', 'post_after'),
    ('banned_calls', {'tests/sim/x.cc': 'void f() { std::this_thread::sleep_for(t); }\n'}, 'tests/sim/x.cc', 'post_after'),
    ('banned_calls', {'src/kube/b.cc': 'int r = rand();\n'}, 'src/kube/b.cc', 'Random'),
    ('banned_calls', {'src/kube/b.cc': 'std::mt19937_64 r;\n'}, 'src/kube/b.cc', 'Random'),
    ('banned_calls', {'src/kube/b.cc': 'std::regex r;\n'}, 'src/kube/b.cc', 'parser'),
    ('banned_calls', {'src/kube/b.cc': 'std::jthread r;\n'}, 'src/kube/b.cc', 'Executor'),
    ('banned_calls', {'src/kube/b.cc': 'auto h = std::getenv("HOME");\n'}, 'src/kube/b.cc', 'environment'),
    ('banned_calls', {'src/kube/b.cc': '#include <iostream>\n'}, 'src/kube/b.cc', 'fmt'),
    ('banned_calls', {'src/base/a.cc': 'task f() { co_return 1; }\n'}, 'src/base/a.cc', 'coroutines'),
    ('open_ends', {'src/base/a.cc': '// TO' 'DO later\n'}, 'src/base/a.cc', 'finish it'),
    ('open_ends', {'docs/x.md': 'this is not imple' 'mented\n'}, 'docs/x.md', 'finish it'),
    ('machine_paths', {'docs/x.md': 'see /wo' 'rk/x\n'}, 'docs/x.md', 'one machine'),
    ('machine_paths', {'scripts/run': '#!/bin/sh\ncurl py' 'pi.org\n'}, 'scripts/run', 'one machine'),
    ('header_form', {'src/base/a.h': '// A.\nint a();\n'}, 'src/base/a.h', 'pragma once'),
    ('header_form', {'src/base/a.h': '#pragma once\nint a();\n'}, 'src/base/a.h', 'comment'),
    ('sizes', {'src/base/a.cc': 'int a;\n' * 801}, 'src/base/a.cc', '801 lines'),
    ('sizes', {'src/base/a.cc': LONG}, 'src/base/a.cc', 'f has 73 lines'),
    ('names', {'src/base/a.cc': 'class PodManager {};\n'}, 'src/base/a.cc', 'PodManager'),
    ('names', {'src/base/a.cc': 'struct NodeInfo {};\n'}, 'src/base/a.cc', 'NodeInfo'),
    ('names', {'src/base/BigName.cc': 'int a;\n'}, 'src/base/BigName.cc', 'snake_case'),
    ('module_readmes', {'src/kube/README.md': None}, 'src/kube/README.md', 'missing'),
    ('module_readmes', {'src/kube/README.md': 'short\n'}, 'src/kube/README.md', '1 lines'),
    ('dead_files', {'src/base/unused.h': '// U.\n#pragma once\n'}, 'src/base/unused.h', 'no file includes'),
    ('whitespace', {'src/base/a.cc': 'int a; \n'}, 'src/base/a.cc', 'end of the line'),
    ('whitespace', {'src/base/a.cc': '\tint a;\n'}, 'src/base/a.cc', 'a tab'),
    ('whitespace', {'src/base/a.cc': 'int a;'}, 'src/base/a.cc', 'line feed'),
    ('third_party', {'third_party.md': 'none\n'}, 'src/base/module.cmake', '`fmt`'),
    ('scripts', {'scripts/other': '#!/bin/sh\n'}, 'scripts/other', 'executable'),
    ('scripts', {'scripts/other': 'echo\n'}, 'scripts/other', 'without #!'),
    ('scripts', {'scripts/lib/x.py': 'def f(:\n'}, 'scripts/lib/x.py', 'python3'),
    ('fuzz_corpora', {'tests/fuzz/corpus/x_fuzz/one': None}, 'tests/fuzz/x_fuzz.cc', 'no corpus'),
]
FUNCTIONS = '''
namespace a {
struct X : public Y {
  int f(int a = 3) const { return 1; }
  X(int a) : a_{1}, b_(2), c_{3} {
    go();
  }
  int a_ = 5;
  std::vector<int> v{1, 2};
};
enum class E { a, b };
const T kTable[] = {{"a", [](int) { return 1; }}};
bool operator==(const X& a, const X& b) { return a < b; }
void g(std::function<void()> a = [] {}) {
  if (a) {
    a();
  }
}
X::~X() {}
#define M(x) {
TEST(Group, name) { EXPECT_TRUE("}"[0] == '}'); }
Result<std::map<int, int>> h() noexcept {
  return R"({{{)";
}
}  // namespace a
'''


def build(folder, files):
    for path, text in files.items():
        full = os.path.join(folder, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, 'w', encoding='utf-8') as file:
            file.write(text)
        os.chmod(full, 0o755 if path == 'scripts/run' else 0o644)
    return check_rules.Tree(folder, list(files))


class CheckTest(unittest.TestCase):
    def test_a_good_tree_has_no_findings(self):
        with tempfile.TemporaryDirectory() as folder:
            tree = build(folder, GOOD)
            for rule in check_rules.ALL:
                self.assertEqual(list(rule(tree)), [], rule.__name__)

    def test_each_rule_finds_what_it_is_for(self):
        for name, change, path, word in BAD:
            with self.subTest(rule=name, change=change), tempfile.TemporaryDirectory() as folder:
                files = {k: v for k, v in {**GOOD, **change}.items() if v is not None}
                found = list(getattr(check_rules, name)(build(folder, files)))
                self.assertTrue([f for f in found if f[0] == path and word in f[2]], found)

    def test_no_rule_is_without_a_bad_tree(self):
        self.assertEqual({rule.__name__ for rule in check_rules.ALL}, {name for name, _, _, _ in BAD})

    def test_each_exception_is_still_needed_by_a_rule(self):
        self.assertEqual([key for key in check_rules.ALLOWED if key[0] not in {b[0] for b in check_rules.BANNED}], [])

    def test_functions_are_found_by_their_braces(self):
        found = cpp_text.functions(cpp_text.strip(FUNCTIONS))
        self.assertEqual([(name, last - first + 1) for name, first, last in found],
                         [('f', 1), ('X', 3), ('operator==', 1), ('g', 5), ('X::~X', 1), ('TEST', 1), ('h', 3)])

    def test_stripping_keeps_every_line_where_it_was(self):
        text = 'a /* b\nc */ "d\\"e" // f\nR"x(g\n)x" 1\'000\n'
        self.assertEqual(cpp_text.strip(text).count('\n'), text.count('\n'))
        self.assertIsNone(re.search('[bcdefg]', cpp_text.strip(text)))


if __name__ == '__main__':
    result = unittest.main(verbosity=0, exit=False).result
    sys.exit(0 if result.wasSuccessful() else 1)
