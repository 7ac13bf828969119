"""A reading of C++ text that is good enough for checks: comments and literals blanked out, function bodies found by
their braces. No preprocessor and no parser: what it cannot tell apart it leaves alone."""

import re

_TOKEN = re.compile(
    r'//[^\n]*(?:\\\n[^\n]*)*'
    r'|/\*.*?\*/'
    r'|(?:u8|[uUL])?R"(?P<tag>[^()\s\\]{0,16})\(.*?\)(?P=tag)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'",
    re.S)


def _blank(text):
    return re.sub(r'[^\n]', ' ', text)


def strip(text):
    """The text with comments and the insides of literals replaced by spaces; line numbers stay."""

    def replace(match):
        token = match.group(0)
        if token[0] == '/':
            return _blank(token)
        quote = token[-1]
        start = token.index(quote)
        return token[:start] + quote + _blank(token[start + 1:-1]) + quote

    return _TOKEN.sub(replace, text)


def comments(text):
    """The text with everything but comments replaced by spaces."""
    out, last = [], 0
    for match in _TOKEN.finditer(text):
        if match.group(0)[0] == '/':
            out.append(_blank(text[last:match.start()]) + match.group(0))
            last = match.end()
    out.append(_blank(text[last:]))
    return ''.join(out)


_PREPROCESSOR = re.compile(r'^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', re.M)
_PARENS = re.compile(r'\([^()]*\)|<[^<>()]*>')
_NAME = re.compile(r'(operator\s*[^\s\w(]+|operator\s+\w+|~?\w+(?:\s*::\s*~?\w+)*)\s*$')


def _function_name(head):
    """The name when `head`, the text before a brace, opens a function body; else None."""
    if '(' not in head or re.match(r'\s*(?:namespace|extern\b[^(]*$)', head):
        return None
    first = head.index('(')
    before = head[:first].rstrip()
    name = _NAME.search(before)
    if not name or re.search(r'\b(?:if|for|while|switch|catch|return|alignas|decltype)\s*$', before):
        return None
    flat, previous = head, None
    while flat != previous:
        previous, flat = flat, _PARENS.sub(' ', flat)
    flat = re.sub(r'operator\s*\S+', ' ', flat)
    if '=' in flat or re.search(r'\b(?:enum|struct|class|union)\s+\w+\s*(?:final\s*)?(?::[^:]|$)', flat):
        return None
    return re.sub(r'\s+', '', name.group(1)) if not name.group(1).startswith('operator') else name.group(1)


def functions(text):
    """[(name, first line, last line)] of the outermost function bodies of stripped text."""
    text = _PREPROCESSOR.sub(lambda m: _blank(m.group(0)), text)
    found, depth, body_depth, name, head_at, start = [], 0, None, None, 0, 0
    ended = None  # the function that closed last: a brace initializer in a constructor looks like one
    parens = 0
    for match in re.finditer(r'[{}();]', text):
        mark, at = match.group(0), match.start()
        if mark in '()':
            parens += 1 if mark == '(' else -1
        elif mark == '{':
            if body_depth is None and parens > 0:  # a brace inside parentheses: part of the head
                depth += 1
                continue
            if body_depth is None:
                head = text[head_at:at]
                resumed = ended is not None and re.fullmatch(r'\s*(?:,[^{};]*)?', head)
                opened = ended if resumed else None
                if opened is None:
                    opened_name = _function_name(head)
                    if opened_name:
                        first = head_at + len(head) - len(head.lstrip())
                        opened = (opened_name, first)
                if opened:
                    if resumed and found and found[-1][3] == opened[1]:
                        found.pop()
                    name, start = opened
                    body_depth = depth
            depth += 1
            if body_depth is None:
                head_at, ended = at + 1, None
        elif mark == '}':
            depth -= 1
            if body_depth is not None and depth == body_depth:
                first_line = text.count('\n', 0, start) + 1
                found.append((name, first_line, text.count('\n', 0, at) + 1, start))
                ended, body_depth, head_at = (name, start), None, at + 1
            elif body_depth is None and parens <= 0:
                head_at, ended = at + 1, None
        elif body_depth is None and parens <= 0:
            head_at, ended = at + 1, None
    return [entry[:3] for entry in found]
