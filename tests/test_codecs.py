"""Streams and digests: sharing survives, and equal values are equal in every process."""

# ruff: noqa: E501 - a row of a table is one line
from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import weakref
from typing import Any

import numpy as np
import pandas as pd
import pytest

from nbckpt.codecs import (
    Canonical,
    Encoded,
    Encoder,
    SecretEncoder,
    Target,
    decode,
    global_names,
    is_local,
)
from nbckpt.codecs.trace import path_to
from nbckpt.credentials import Secrets
from tests.notebook import forget_classes

VALUES = """
import collections, dataclasses, datetime, enum, functools, re
import numpy as np, pandas as pd, polars as pl
k = 3
def f(x, y=2): return x + k
def g(s): return s in {'a', 'b', 'c'}
def mk(n):
    def inner(): return n
    return inner
class C:
    names = {'p', 'q', 'r'}
    def m(self): return self.names
    @property
    def p(self): return 1
@dataclasses.dataclass
class D:
    a: int = 1
    b: str = 'x'
class E(enum.Enum):
    A = 'a'
    B = 'b'
VALUES = {
    'set of texts': {'a', 'b', 'c', 'dd'}, 'mixed set': {1, 'a', (2, 'b'), None, 2.5},
    'set of sets': {frozenset('ab'), frozenset('cd')}, 'frozenset': frozenset('xyz'),
    'dict': {'b': {'x', 'y'}, 'a': [1]}, 'text': 'grün', 'nested': [[{'k': ({1, 2},)}]],
    'function': f, 'function with a set': g, 'lambda': lambda x: x + 1, 'closure': mk(2),
    'class': C, 'instance': C(), 'dataclass': D(2), 'enum': E.A, 'enum class': E,
    'array': np.arange(9.), 'strided': np.arange(18)[::2], 'objects': np.array(['a', 1], object),
    'frame': pd.DataFrame({'a': [1, 2], 's': ['x', 'y']}), 'series': pd.Series([1.5], name='n'),
    'categories': pd.Series(['a', 'b']).astype('category'), 'polars': pl.DataFrame({'a': [1]}),
    'partial': functools.partial(f, 1), 'cached': functools.lru_cache(f), 'pattern': re.compile('a+'),
    'date': datetime.datetime(2020, 1, 1), 'rng': np.random.default_rng(1), 'module': np,
    'counter': collections.Counter('aab'), 'type': int, 'builtin': len,
}
oneself = [1]; oneself.append(oneself); VALUES['oneself'] = oneself
"""
PROGRAM = f"""
import json
from nbckpt.codecs import Canonical, Encoder, Target, decode
space = {{"__name__": "__main__"}}
exec({VALUES!r}, space)
values = space["VALUES"]
first = {{n: Canonical(v, space).digest for n, v in values.items()}}
again = {{}}
for name, value in values.items():
    e = Encoder(space, {{"x": value}}).encode()
    found = decode(memoryview(bytes(e.stream)), [memoryview(bytearray(b)) for b in e.buffers], Target(space))
    again[name] = Canonical(found["x"], space).digest
print(json.dumps([first, again]))
"""


def digests(seed: str) -> list[dict[str, str]]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[dict[str, str]] = json.loads(done.stdout)
    return found


def test_digests_are_equal_in_every_process_and_after_a_restore() -> None:
    (first, again), (other, _) = digests("1"), digests("4711")
    assert {n for n in first if first[n] != other[n]} == set()
    assert {n for n in first if first[n] != again[n]} == set()
    assert len(set(first.values())) == len(first)


def space(source: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "__main__", "np": np, "pd": pd}
    exec(source, namespace)  # noqa: S102 - rows of tables
    return namespace


def digest(source: str) -> str:
    namespace = space(source)
    return Canonical(namespace["x"], namespace).digest


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("def x(): return 1", "def x(): return 2"),
        ("def x(): return 1", "def x(): return 1.0"),
        ("def x(): return 1", "def x(): return True"),
        ("def x(): return 0.0", "def x(): return -0.0"),
        ("def x(a): return a.b", "def x(a): return a.c"),
        ("def x(a=1): pass", "def x(a=2): pass"),
        ("def x(*, a=1): pass", "def x(*, a=2): pass"),
        ("def x(a): pass", "def x(b): pass"),
        ("def x(): return g()", "def x(): return h()"),
        ("def x():\n def i(): return 1\n return i", "def x():\n def i(): return 2\n return i"),
        ("def x(s): return s in {1, 2}", "def x(s): return s in {1, 3}"),
        ("def x(): pass\nx.k = 1", "def x(): pass\nx.k = 2"),
        ("x = lambda v: v + 5", "x = lambda v: v + 6"),
        ("x = {'inc': lambda v: v + 5}", "x = {'inc': lambda v: v + 6}"),
        ("x = [[lambda v: v == 'a']]", "x = [[lambda v: v == 'b']]"),
        ("def m(n):\n return lambda: n\nx = m(1)", "def m(n):\n return lambda: n\nx = m(2)"),
        ("class x: k = 1", "class x: k = 2"),
        ("class x:\n def m(s): return 1", "class x:\n def m(s): return 2"),
        ("class x:\n @property\n def m(s): return 1", "class x:\n @property\n def m(s): return 2"),
        ("class x:\n @staticmethod\n def m(): return 1", "class x:\n @staticmethod\n def m(): return 2"),
        ("class x:\n @classmethod\n def m(s): return 1", "class x:\n @classmethod\n def m(s): return 2"),
        ("class x:\n @property\n def m(s): return 1", "class x:\n def m(s): return 1"),
        ("class B: k = 1\nclass x(B): pass", "class B: k = 2\nclass x(B): pass"),
        ("class C: k = 1\nx = C()", "class C: k = 2\nx = C()"),
        ("class C: pass\nx = C(); x.a = 1", "class C: pass\nx = C(); x.a = 2"),
        ("x = [1, 2]", "x = [2, 1]"),
        ("x = [1]", "x = (1,)"),
        ("x = {1}", "x = {2}"),
        ("x = {1}", "x = frozenset([1])"),
        ("x = {'a': 1}", "x = {'a': 2}"),
        ("x = 1", "x = 1.0"),
        ("x = 1", "x = True"),
        ("x = 'a'", "x = b'a'"),
        ("x = None", "x = False"),
        ("x = np.zeros(3)", "x = np.zeros(4)"),
        ("x = np.zeros(3)", "x = np.zeros(3, 'f4')"),
        ("x = np.zeros(6)", "x = np.zeros((2, 3))"),
        ("x = np.zeros(90000)", "x = np.zeros(90000); x[80000] = 1"),
        ("x = np.array(['a'], object)", "x = np.array(['b'], object)"),
        ("x = pd.DataFrame({'a': [1]})", "x = pd.DataFrame({'a': [2]})"),
        ("x = pd.DataFrame({'a': [1]})", "x = pd.DataFrame({'b': [1]})"),
        ("x = pd.DataFrame({'a': [1]})", "x = pd.DataFrame({'a': [1.0]})"),
        ("x = pd.DataFrame({'a': [1]})", "x = pd.DataFrame({'a': [1]}, index=[7])"),
        ("x = pd.Series([1], name='a')", "x = pd.Series([1], name='b')"),
        ("import functools as t\nx = t.partial(int, base=2)", "import functools as t\nx = t.partial(int, base=3)"),
        ("import functools as t\n@t.lru_cache\ndef x(): return 1", "import functools as t\n@t.lru_cache\ndef x(): return 2"),
        ("import re\nx = re.compile('a')", "import re\nx = re.compile('a', re.I)"),
        ("x = np.random.default_rng(1)", "x = np.random.default_rng(1); x.random()"),
        ("x = np.ma.array([1, 2], mask=[0, 1])", "x = np.ma.array([1, 2], mask=[1, 0])"),
        ("import enum\nclass x(enum.Enum): A = 1", "import enum\nclass x(enum.Enum): A = 2"),
        ("class M(type):\n def f(c): return 1\nclass x(metaclass=M): pass", "class M(type):\n def f(c): return 2\nclass x(metaclass=M): pass"),
        ("s = {}; exec('def f(): return 1', s); x = s['f']", "s = {}; exec('def f(): return 2', s); x = s['f']"),
        ("s = {}; exec('k = 1\\ndef g(): return k\\ndef f(): return g()', s); x = s['f']", "s = {}; exec('k = 2\\ndef g(): return k\\ndef f(): return g()', s); x = s['f']"),
        ("def x(): return 'a'", "def x(): return 'b'"),
        ("x = lambda: 'a'", "x = lambda: 'b'"),
    ],
)  # fmt: skip
def test_digest_differs_when_code_constant_or_content_does(
    one: str, other: str
) -> None:
    assert digest(one) == digest(one)
    assert digest(one) != digest(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("def x(): return 1", "# why\n\n\ndef x():\n    # so\n    return 1"),
        ("x = {'a', 'b'}", "x = {'b', 'a'}"),
        ("a = [1]; x = [a, a]", "x = [[1], [1]]"),
        ("x = np.arange(6.)[::2]", "x = np.array([0., 2., 4.])"),
        ("x = np.asfortranarray(np.ones((2, 3)))", "x = np.ones((2, 3))"),
        ("x = pd.DataFrame({'a': [1], 'b': [2]})", "x = pd.DataFrame({'a': [1]}); x['b'] = 2"),
        ("class C: pass\nx = [C]", "class C:\n  '''Doc.'''\nx = [C]"),
        ("def x():\n '''Doc.'''\n return 'a'", "def x():\n '''Other.'''\n return 'a'"),
        ("class C:\n def f(s):\n  '''Doc.'''\nx = C", "class C:\n def f(s):\n  '''Other.'''\nx = C"),
        ("x = 'ab' * 2", "x = ''.join(['a', 'b', 'ab'])"),
        ("x = [1]; x.append(2); x.pop()", "x = [1]"),
    ],
)  # fmt: skip
def test_layout_sharing_and_order_of_sets_are_no_matter(one: str, other: str) -> None:
    assert digest(one) == digest(other)


@pytest.mark.parametrize(
    ("source", "unknown"),
    [
        ("x = (i for i in [1])", "builtins.generator"),
        ("import queue\nx = [queue.SimpleQueue()]", "_queue.SimpleQueue"),
        ("import threading\nx = {'k': threading.Thread(target=int)}", "threading.Thread"),
        ("class R:\n def __reduce__(s): raise KeyError\nx = R()", "__main__.R"),
        ("x = [1, {'a': (2, 'b')}]", ""),
    ],
)  # fmt: skip
def test_value_that_can_not_be_told_says_so(source: str, unknown: str) -> None:
    namespace = space(source)
    assert Canonical(namespace["x"], namespace).unknown == unknown


@pytest.mark.parametrize(
    ("source", "reached"),
    [
        ("def x(): return k", {"k"}),
        ("def x():\n return [f(k) for f in g]", {"k", "g"}),
        ("x = [lambda: k]", {"k"}),
        ("class x:\n def m(s): return k", {"k"}),
        ("class C:\n def m(s): return k\nx = C()", {"k"}),
        ("def x(a): return a", set()),
        ("x = 1", set()),
    ],
)
def test_names_that_functions_inside_a_value_use_are_told(
    source: str, reached: set[str]
) -> None:
    namespace = space(source)
    assert Canonical(namespace["x"], namespace).reached == reached


def test_modules_that_a_value_comes_from_are_told() -> None:
    namespace = space("x = [np.sin, pd.DataFrame()]")
    found = {name.partition(".")[0] for name in Canonical(namespace["x"], {}).modules}
    assert {"numpy", "pandas"} <= found


def test_modules_can_be_sorted_where_a_method_of_a_c_type_is_wrapped() -> None:
    wrapped = space("import functools\nx = functools.wraps([].append)(lambda: 0)")
    wrapped["x"].__qualname__ = "append"
    assert sorted(Canonical(wrapped["x"], {}).modules) == []


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ("t = object()\nx = {'a': [1, t]}", "x['a'][1]"),
        ("t = object()\nx = (1, {t})", "x[1]{…}"),
        ("t = object()\nx = (lambda v: lambda: v)(t)", "x.v"),
        ("class C: pass\nt = object()\nx = C()\nx.deep = C()\nx.deep.er = t", "x.deep.er"),
        ("class C: __slots__ = ('s',)\nx = C()\nx.s = t = object()", "x.s"),
        ("class C:\n def m(s): 0\nt = C()\nx = t.m", "x.__self__"),
        ("class C:\n def __getattr__(s, n): return s\nt = object()\nx = [C(), t]", "x[1]"),
        ("t = object()\nx = 1", "x"),
    ],
)  # fmt: skip
def test_way_to_a_value_is_told(source: str, path: str) -> None:
    namespace = space(source)
    assert path_to({"x": namespace["x"]}, namespace["t"]) == path


def test_global_names_are_found_in_nested_code_and_attributes_are_not() -> None:
    code = compile("def f():\n def g(): return deep.attr\n return top", "<c>", "exec")
    assert global_names(code) == {"deep", "top"}


def test_packages_are_not_local_and_source_files_elsewhere_are() -> None:
    here: Any = type(sys)("here")
    here.__file__ = "/home/me/project/here.py"
    assert is_local(here.__file__)
    assert not is_local(np.__file__)
    assert not is_local(json.__file__)
    assert not is_local(None)
    assert not is_local("_ops.py")  # that of torch.ops, which is made in memory


def there_and_back(source: str, into: dict[str, Any] | None = None) -> dict[str, Any]:
    namespace = space(source)
    values = {
        k: v for k, v in namespace.items() if k not in {*space(""), "__builtins__"}
    }
    encoded = Encoder(namespace, values).encode()
    assert encoded.refusals == []
    buffers = [memoryview(bytearray(buffer)) for buffer in encoded.buffers]
    return decode(encoded.stream, buffers, Target(space("") if into is None else into))


def test_cell_that_closures_share_is_shared_again_and_apart_from_the_old_one() -> None:
    source = "def mk():\n n = 0\n def up():\n  nonlocal n; n += 1\n return up, lambda: n\nup, get = mk()"
    found = there_and_back(source)
    found["up"]()
    assert found["get"]() == 1


def test_empty_cell_and_recursive_closure_come_back() -> None:
    source = "def mk():\n def fact(n): return n * fact(n - 1) if n else 1\n return fact\nx = mk()"
    assert there_and_back(source)["x"](5) == 120


def test_restored_function_lives_in_the_notebook_that_restores_it() -> None:
    into = space("k = 42")
    found = there_and_back("k = 1\ndef x(): return k", into)
    assert found["x"].__globals__ is into
    assert found["x"]() == 42


def test_instance_of_a_plain_class_is_one_of_the_class_that_is_there_now() -> None:
    namespace = space("class C:\n def v(s): return 1\nx = [C()]")
    encoded = Encoder(namespace, {"x": namespace["x"]}).encode()
    into = space("class C:\n def v(s): return 2")
    (again,) = decode(encoded.stream, [], Target(into))["x"]
    assert type(again) is into["C"]
    assert again.v() == 2


def test_definition_that_is_gone_is_an_error_that_names_it() -> None:
    namespace = space("class C: pass\nx = [C()]")
    encoded = Encoder(namespace, {"x": namespace["x"]}).encode()
    with pytest.raises(LookupError, match="does not define C any more"):
        decode(encoded.stream, [], Target(space("")))


def encoded(source: str, *names: str) -> Encoded:
    namespace = space(source)
    found = Encoder(namespace, {name: namespace[name] for name in names}).encode()
    forget_classes()
    return found


def test_class_that_a_step_changed_gives_its_attributes_to_the_one_that_is_there() -> (
    None
):
    into = space("class C: n = 1\nold = C()")
    found = decode(encoded("class C: n = 5", "C").stream, [], Target(into))
    assert found["C"] is into["C"]
    assert into["old"].n == 5


def test_class_that_two_steps_changed_is_the_one_that_is_there() -> None:
    into = space("class C: n = 1")
    namespace = space("class C: n = 5")
    first = Encoder(namespace, {"C": namespace["C"]}).encode().stream
    namespace["C"].n = 6
    second = Encoder(namespace, {"C": namespace["C"]}).encode().stream
    forget_classes()
    for stream in (first, second):
        found = decode(stream, [], Target(into))
        assert found["C"] is into["C"]
    assert into["C"].n == 6


def test_class_that_a_class_statement_made_is_another_class() -> None:
    into = space("class C: n = 1\nold = C()")
    target = Target(into, binds=frozenset({"C"}))
    found = decode(encoded("class C: n = 5", "C").stream, [], target)
    assert found["C"] is not into["C"]
    assert (into["old"].n, found["C"].n) == (1, 5)


def test_class_of_an_older_instance_changes_nothing_of_its_namesake() -> None:
    into = space("class C: n = 1")
    source = "class C: n = 2\nold = C()\nclass C: n = 3"
    found = decode(encoded(source, "old").stream, [], Target(into))["old"]
    assert (found.n, into["C"].n) == (2, 1)
    assert not isinstance(found, into["C"])


def test_trial_changes_nothing_that_lives() -> None:
    namespace = space("class C:\n    all = []\nall = C.all\nc = C()")
    values = {name: namespace[name] for name in ("C", "all", "c")}
    stream = Encoder(namespace, values).encode().stream
    decode(stream, [], Target(namespace, trial=True))
    assert namespace["C"].all is namespace["all"]


def test_trial_opens_no_figure() -> None:
    namespace = space(
        "import matplotlib.pyplot as plt\nplt.close('all')\nf = plt.figure()"
    )
    stream = Encoder(namespace, {"f": namespace["f"]}).encode().stream
    decode(stream, [], Target(namespace, trial=True))
    assert namespace["plt"].get_fignums() == [1]
    assert namespace["plt"].gcf() is namespace["f"]
    namespace["plt"].close("all")


def test_trial_of_an_older_instance_leaves_its_namesake_alone() -> None:
    namespace = space("class C: n = 1\nold = C()\nclass C: n = 2")
    stream = Encoder(namespace, {"old": namespace["old"]}).encode().stream
    decode(stream, [], Target(namespace, trial=True))
    assert namespace["C"].n == 2


def test_cached_function_comes_back_with_its_settings_and_an_empty_cache() -> None:
    source = "import functools as t\n@t.lru_cache(maxsize=3, typed=True)\ndef x(a): return a\nx(1)"
    found = there_and_back(source)["x"]
    assert found.cache_parameters() == {"maxsize": 3, "typed": True}
    assert found.cache_info().currsize == 0


def test_placeholder_of_a_refused_value_is_never_decoded() -> None:
    encoded = Encoder(space(""), {"x": (i for i in [1])}).encode()
    assert encoded.refusals
    with pytest.raises(ValueError, match="was not kept"):
        decode(encoded.stream, [], Target({}))


def test_large_buffers_stay_outside_the_stream_and_are_not_copied() -> None:
    array = np.ones(90000)
    encoded = Encoder(space(""), {"x": array}).encode()
    assert encoded.stream.nbytes < 1000
    assert encoded.size > array.nbytes
    array[0] = 5
    assert np.frombuffer(encoded.buffers[0])[0] == 5


def test_secret_is_a_reference_in_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "abcdef123")
    encoded = SecretEncoder(
        space(""), {"x": ["u:abcdef123@h"]}, Secrets({"MY_TOKEN": "abcdef123"})
    ).encode()
    assert b"abcdef123" not in bytes(encoded.stream)
    assert decode(encoded.stream, [], Target({}))["x"] == ["u:abcdef123@h"]


def test_encoder_lets_go_of_values_without_a_collection() -> None:
    value = np.arange(90_000)
    gone = weakref.ref(value)
    gc.disable()
    try:
        Encoder({}, {"value": value}).encode()
        del value
        assert gone() is None
    finally:
        gc.enable()
