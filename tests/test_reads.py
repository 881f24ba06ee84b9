"""What a body reads: a table of small programs and the names that are inputs of each."""

from __future__ import annotations

import ast

import pytest

from nbckpt.source.cells import parse_body
from nbckpt.source.reads import Reads, compile_body, environment_names, read_body


def reads(source: str) -> Reads:
    return read_body(parse_body(source))


FLOW: list[tuple[str, str]] = [
    # source, names that are read before the body surely binds them
    ("y = x", "x"),
    ("y = x + 1; z = y", "x"),
    ("x = 1; y = x", ""),
    ("x = x + 1", "x"),
    ("x += 1", "x"),
    ("x = 1; x += 1", ""),
    ("x.a = 1", "x"),
    ("x[0] = 1", "x"),
    ("x[i] = v", "x i v"),
    ("x[0] += y", "x y"),
    ("x: int = y", "y"),
    ("x: int", ""),
    ("a, b = c", "c"),
    ("a = b = c", "c"),
    ("(a, *b), c = d", "d"),
    ("del x", ""),
    ("x", "x"),
    ("print(x)", "print x"),
    ("f'{x} {y!r:>{w}}'", "x y w"),
    ("x if c else y", "x c y"),
    ("a and b or not c", "a b c"),
    ("x[1:n:s]", "x n s"),
    ("(y := x); y", "x"),
    ("if (n := f()): n", "f"),
    ("for i in r: i", "r"),
    ("for i in r: pass\ni", "r i"),
    ("for i in r: s = i\ns", "r s"),
    ("for i in r: pass\nelse: e = i", "r i"),
    ("while c: x = 1\nx", "c x"),
    ("while True: x = 1; break\nx", ""),
    ("while 1:\n  x = f()\n  if x: break\ny = x", "f"),
    ("if c: x = 1\nx", "c x"),
    ("if c: x = 1\nelse: x = 2\nx", "c"),
    ("if c: x = 1\nelse: y = 2\nx; y", "c x y"),
    ("try: x = f()\nexcept E: x = 0\nx", "f E"),
    ("try: x = f()\nexcept E: pass\nx", "f E x"),
    ("try: x = f()\nexcept E as e: x = e\nx", "f E"),
    ("try: f()\nfinally: x = 1\nx", "f"),
    ("try: f()\nexcept E: pass\nelse: x = 1\nx", "f E x"),
    ("try: f()\nexcept* E: g", "f E g"),
    ("with o() as f: f.read()", "o"),
    ("with o() as f, p(f) as g: g", "o p"),
    ("with a: x = 1\nx", "a"),
    ("import a.b; a.c", ""),
    ("import a.b as c; c; a", "a"),
    ("from m import f, g as h; f(); h(); g", "g"),
    ("def f(): return x", ""),
    ("def f(): return x\nf()", "x"),
    ("def f(): return x\nx = 1\nf()", ""),
    ("def f(): return x\nf()\nx = 1", "x"),
    ("def f(a=d): pass", "d"),
    ("def f(*, a=d): pass", "d"),
    ("def f(a): return a\nf(1)", ""),
    ("def f():\n  def g(): return z\n  return g()\nf()", "z"),
    ("def f(): return f()\nf()", ""),
    ("def f(): return g()\ndef g(): return k\nf()", "k"),
    ("async def f(): return x\nawait f()", "x"),
    ("@deco\ndef f(): pass", "deco"),
    ("@deco(k)\nclass C: pass", "deco k"),
    ("class C(B): pass", "B"),
    ("class C(metaclass=M): pass", "M"),
    ("class C:\n  def m(self): return x\nC()", "x"),
    ("class C:\n  a = k", "k"),
    ("class C:\n  a = 1\n  b = a", ""),
    ("lambda a: a + b", "b"),
    ("lambda a=d: a", "d"),
    ("f = lambda x: x; x", "x"),
    ("lambda *a, **k: (a, k)", ""),
    ("[i for i in r]", "r"),
    ("[i * k for i in r if i > m]", "r k m"),
    ("{a: b for a, b in r}", "r"),
    ("{i for i in r}; i", "r i"),
    ("(i for j in r for i in j)", "r"),
    ("[i for i in [j for j in r]]", "r"),
    ("sum(x for x in xs) + x", "sum xs x"),
    ("match s:\n  case 1: x = 1\nx", "s x"),
    ("match s:\n  case [a, b]: a", "s a"),
    ("match s:\n  case K(): pass", "s K"),
    ("global g\ng = 1", ""),
    ("assert c, m", "c m"),
    ("raise E from e", "E e"),
    ("await x", "x"),
    ("async for i in r: i", "r"),
    ("async with o() as f: f", "o"),
    ("df.query('a > @lim')", "df lim"),
    ("df.query('a > @lim and b < @top')", "df lim top"),
    ("lim = 1; df.query('a > @lim')", "df"),
    ("eval('x + y')", "x y"),
    ("exec('z = 1')", "z"),
    ("print(*a, **k)", "print a k"),
    ("x.y.z(w)", "x w"),
    ("", ""),
    ("# x", ""),
    ("'x'", ""),
]


@pytest.mark.parametrize(("source", "names"), FLOW, ids=[s for s, _ in FLOW])
def test_names_that_are_read_are_found(source: str, names: str) -> None:
    expected = set(names.split())
    assert reads(source).names - {"__name__"} == expected


BOUND_FIRST: list[tuple[str, str]] = [
    ("try: f()\nexcept E as e: e", "e"),
    ("def f(x): return x\nf(1)", "x"),
    ("class C:\n  x = 1\nC.x", "x"),
    ("import x\nx.y", "x"),
    ("with f() as x: x", "x"),
    ("for x in f(): x", "x"),
    ("for x, y in f(): y", "y"),
    ("x = y = 1; y", "y"),
]


@pytest.mark.parametrize(
    ("source", "name"), BOUND_FIRST, ids=[s for s, _ in BOUND_FIRST]
)
def test_name_that_the_body_binds_first_is_no_input(source: str, name: str) -> None:
    assert name not in reads(source).names


@pytest.mark.parametrize(
    "source",
    [
        "globals()['x']",
        "locals()",
        "vars()",
        "dir()",
        "eval(text)",
        "exec(text)",
        "eval('x' + y)",
        "eval('x', space)",
        "e = eval",
        "def f(): return globals()",
        "class C:\n  def m(self): return eval(t)",
        "[exec(t) for t in ts]",
    ],
)
def test_body_that_can_read_any_name_says_so(source: str) -> None:
    assert reads(source).dynamic


@pytest.mark.parametrize(
    "source",
    ["x = 1", "eval('x + 1')", "exec('y = x')", "obj.eval(text)", "df.eval('a+b')", ""],
)
def test_body_whose_reads_can_be_told_is_not_dynamic(source: str) -> None:
    assert not reads(source).dynamic


@pytest.mark.parametrize(
    ("source", "bound"),
    [
        ("x = 1", "x"),
        ("x = y = 1", "x y"),
        ("a, (b, *c) = r", "a b c"),
        ("if c: x = 1", ""),
        ("if c: x = 1\nelse: x = 2; y = 3", "x"),
        ("for i in r: x = 1", ""),
        ("while c: x = 1", ""),
        ("while True: x = 1; break", "x"),
        ("try: x = 1\nexcept E: pass", ""),
        ("try: x = 1\nexcept E: x = 2", "x"),
        ("try: pass\nfinally: x = 1", "x"),
        ("def f(): y = 1", "f"),
        ("class C: y = 1", "C"),
        ("import a.b, c as d", "a d"),
        ("from m import n as o", "o"),
        ("[i for i in r]", ""),
        ("(x := 1)", "x"),
        ("x[0] = 1", ""),
        ("x.a = 1", ""),
        ("x: int", ""),
        ("x: int = 1", "x"),
        ("with f() as g: pass", "g"),
        ("match s:\n  case 1: x = 1", ""),
        ("lambda: (x := 1)", ""),
    ],
)
def test_names_that_a_body_surely_binds_are_found(source: str, bound: str) -> None:
    assert reads(source).bound == set(bound.split())


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("!echo $x", "x"),
        ("!echo ${x}", "x"),
        ("!echo {x}", "x"),
        ("!cp {a} {b.c}", "a b c"),
        ("out = !ls $folder", "folder"),
        ("%time y = x", "x"),
        ("%timeit x + y", "x y"),
        ("%run {script}", "script run"),
        ("%time x = 1\nx", ""),
        ("%%time\ny = x", "x"),
        ("%%time\nx = 1\ny = x", ""),
        ("%%capture out\ny = x", "x"),
        ("%%sql\nselect * from x", "sql select from x"),
        ("%%bash -s {x}\necho y", "x"),
        ("%%writefile a.py\ny = x", ""),
    ],
)
def test_names_in_magics_and_shell_commands_are_read(source: str, names: str) -> None:
    found = reads(source).names - {"get_ipython"}
    assert set(names.split()) - {"run"} <= found
    assert not found - set(names.split()) - {"out"}


@pytest.mark.parametrize(
    "source",
    [
        "%nbckpt decide cut limit",
        "%nbckpt unknown is this the limit?",
        "if x:\n    %nbckpt note limit",
        "get_ipython().run_line_magic(*('a', 'b'))",
    ],
)
def test_words_of_a_line_for_nbckpt_are_not_read(source: str) -> None:
    assert "limit" not in reads(source).names


@pytest.mark.parametrize(
    ("source", "magics"),
    [
        ("%matplotlib inline", [("matplotlib", "inline")]),
        (
            "%load_ext autoreload\n%autoreload 2",
            [("load_ext", "autoreload"), ("autoreload", "2")],
        ),
        ("x = 1", []),
        ("!ls", []),
    ],
)
def test_line_magics_are_told(source: str, magics: list[object]) -> None:
    found = reads(source).magics
    assert found == magics


@pytest.mark.parametrize(
    ("source", "modules"),
    [
        ("import a", "a"),
        ("import a.b.c", "a.b.c"),
        ("from a.b import c", "a.b"),
        ("import a as b, c", "a c"),
        ("from . import x", ""),
        ("if c: import a", "a"),
        ("def f(): import a", ""),
        ("x = 1", ""),
    ],
)
def test_modules_that_a_body_imports_are_told(source: str, modules: str) -> None:
    assert reads(source).modules == set(modules.split())


@pytest.mark.parametrize(
    ("source", "seeds"),
    [
        ("random.seed(1)", True),
        ("np.random.seed(1)", True),
        ("seed(1)", True),
        ("torch.manual_seed(0)", True),
        ("set_seed(3)", True),
        ("seed_everything(3)", True),
        ("np.random.set_state(s)", True),
        ("torch.set_rng_state(s)", True),
        ("random.setstate(s)", True),
        ("random.random()", False),
        ("np.random.default_rng(1)", False),
        ("seedling(1)", False),
        ("proceed(1)", False),
        ("x = seed", False),
    ],
)
def test_body_that_seeds_a_stream_is_told(source: str, seeds: bool) -> None:
    assert reads(source).seeds is seeds


def test_texts_of_a_body_are_kept_also_inside_definitions() -> None:
    found = reads("x = 'a'\ndef f(): return 'b'\nclass C:\n  def m(s): return 'c'")
    assert {"a", "b", "c"} <= found.constants


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("os.environ['HOME']", "HOME"),
        ("os.getenv('LANG', 'C.x')", "LANG"),
        ("environ.get('A_B')", "A_B"),
        ("def f(): return os.environ['IN']", "IN"),
        ("class C:\n  def m(s): return os.getenv('DEEP')", "DEEP"),
        ("x = 'HOME'", ""),
        ("os.environ['not a name']", ""),
        ("os.environ[key]", ""),
        ("lambda: os.environ['LAM']", "LAM"),
    ],
)
def test_environment_variables_that_code_names_are_found(
    source: str, names: str
) -> None:
    found = environment_names(compile_body(ast.parse(source).body))
    # Attributes of a class body are texts too; one too many is only looked up.
    assert set(names.split()) == found - {"C", "m"} or (not names and not found)


def test_top_level_await_compiles() -> None:
    assert "f" in compile_body(parse_body("x = await f()")).co_names
