"""The table of types: each comes back in a fresh process, or is refused when saved.

One process makes, encodes and load-tests every value as a step's commit does; another
one, which never saw them, decodes them and tells whether the check of each is true.
"""

# ruff: noqa: E501 - a row of the table is one line
from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from nbckpt.codecs.listings import revive_entry

if TYPE_CHECKING:
    from pathlib import Path

SETUP = """
import abc, array, asyncio, collections, concurrent.futures, contextvars, csv, ctypes, dataclasses
import datetime, decimal, enum, fractions, functools, io, itertools, logging, multiprocessing
import operator, os, pathlib, queue, random, re, socket, sqlite3, string, subprocess, sys, tempfile
import threading, types, typing, uuid, warnings, weakref, zoneinfo
warnings.simplefilter("ignore")
import matplotlib; matplotlib.use("Agg")
import matplotlib.pyplot as plt, numpy as np, pandas as pd, polars as pl
import plotly.graph_objects as go, requests, scipy.sparse as sp, sqlalchemy
from IPython.display import HTML, DisplayHandle, Markdown
from PIL import Image
from sklearn.linear_model import LinearRegression
TMP = os.environ["TYPES_TMP"]
K = 10
class Plain:
    a = 1
def helper(): return K
"""

# Label → (code that makes x, expression that is true afterwards).
KEPT: dict[str, tuple[str, str]] = {
    "int": ("x = 2 ** 100", "x == 2 ** 100"),
    "float": ("x = float('nan')", "x != x"),
    "bool": ("x = True", "x is True"),
    "none": ("x = None", "x is None"),
    "complex": ("x = 1j", "x == 1j"),
    "str": ("x = 'grün\\ud800'", "x == 'grün\\ud800'"),
    "bytes": ("x = bytes(10000)", "x == bytes(10000)"),
    "bytearray": ("x = bytearray(b'ab') * 5000", "x.append(1) is None and len(x) == 10001"),
    "list": ("x = [1, [2, [3]]]", "x == [1, [2, [3]]]"),
    "tuple": ("x = (1, (2,))", "x == (1, (2,))"),
    "dict": ("x = {'b': 1, 'a': {2: 3}}", "list(x) == ['b', 'a'] and x['a'][2] == 3"),
    "set": ("x = {1, 'a', (2,)}", "x == {1, 'a', (2,)}"),
    "frozenset": ("x = frozenset('ab')", "x == frozenset('ab')"),
    "range": ("x = range(1, 9, 2)", "list(x) == [1, 3, 5, 7]"),
    "slice": ("x = slice(1, 2)", "x == slice(1, 2)"),
    "ellipsis": ("x = ...", "x is ..."),
    "notimplemented": ("x = NotImplemented", "x is NotImplemented"),
    "list that holds itself": ("x = []; x.append(x)", "x[0] is x"),
    "dict that holds itself": ("x = {}; x['x'] = [x]", "x['x'][0] is x"),
    "one object twice": ("a = []; x = [a, a]", "x[0] is x[1] is a"),
    "deep nesting": (
        "x = []\nfor _ in range(150): x = [x]",
        "str(x).count('[') == 151",
    ),
    "ordered dict": ("x = collections.OrderedDict(b=1, a=2)", "list(x) == ['b', 'a']"),
    "counter": ("x = collections.Counter('aab')", "x['a'] == 2 and x['z'] == 0"),
    "deque": ("x = collections.deque([1, 2], 2); x.append(3)", "list(x) == [2, 3]"),
    "chain map": ("x = collections.ChainMap({}, {'a': 1})", "x['a'] == 1"),
    "defaultdict of list": ("x = collections.defaultdict(list)", "x['z'] == []"),
    "defaultdict of lambda": ("x = collections.defaultdict(lambda: 5)", "x['z'] == 5"),
    "mapping proxy": ("x = types.MappingProxyType({'a': 1})", "x['a'] == 1"),
    "simple namespace": ("x = types.SimpleNamespace(a=1)", "x.a == 1"),
    "keys view": ("x = {'a': 1}.keys()", "list(x) == ['a']"),
    "memoryview": ("x = memoryview(b'abc')", "type(x) is memoryview and x[0] == 97"),
    "memoryview of a bytearray": (
        "b = bytearray(b'abc'); x = (b, memoryview(b))",
        "x[1].__setitem__(0, 65) is None and x[0] == b'Abc'",
    ),
    "memoryview with a form": (
        "x = memoryview(bytearray(16)).cast('d', (2, 1)).toreadonly()",
        "x.format == 'd' and x.shape == (2, 1) and x.readonly",
    ),
    "views of a dict": (
        "d = {'a': 1}; x = (d, d.keys(), d.values(), d.items())",
        "x[0].update(b=2) is None and [*map(len, x)] == [2, 2, 2, 2]",
    ),
    "view of an ordered dict": (
        "d = collections.OrderedDict(a=1); x = (d, d.items())",
        "x[0].update(b=2) is None and [*x[1]] == [('a', 1), ('b', 2)]",
    ),
    "proxy of a dict": (
        "d = {'a': 1}; x = (d, types.MappingProxyType(d))",
        "x[0].update(b=2) is None and x[1]['b'] == 2",
    ),
    "array on a bytearray": (
        "b = bytearray(8); x = (b, np.frombuffer(b, np.uint8)[2:])",
        "x[1].__setitem__(0, 7) is None and x[0][2] == 7 and len(x[1]) == 6",
    ),
    "array on an array": (
        "b = array.array('d', [1, 2]); x = (b, np.frombuffer(b))",
        "x[1].__setitem__(1, 7) is None and x[0][1] == 7.0",
    ),
    "object that may be copied though it cleans up": (
        "class T:\n  def __del__(self): pass\n  def __getstate__(self): return {'a': 1}\nx = T()",
        "x.a == 1",
    ),
    "mapping with attributes": (
        "class A(dict): __getattr__ = dict.__getitem__\nx = A(a=1)",
        "x.a == 1",
    ),
    "array": ("x = array.array('d', [1.5])", "x[0] == 1.5"),
    "ndarray": ("x = np.arange(10.)", "(x == np.arange(10.)).all() and x.flags.writeable"),
    "large ndarray": (
        "x = np.arange(90000.)",
        "x.sum() == 4049955000.0 and x.flags.writeable",
    ),
    "window over an array": (
        (
            "x = np.arange(12.).reshape(3, 4)\n"
            "y = np.lib.stride_tricks.sliding_window_view(x, 2, axis=1)"
        ),
        "np.shares_memory(x, y) and y.shape == (3, 3, 2) and y[0, 1, 0] == 1",
    ),
    "broadcast array": (
        "x = np.broadcast_to(np.arange(3.), (100000, 3))",
        "x.strides[0] == 0 and not x.flags.writeable and (x[9] == [0, 1, 2]).all()",
    ),
    "read-only view": (
        "x = np.arange(9000.); y = x[1:]; y.flags.writeable = False",
        "np.shares_memory(x, y) and x.flags.writeable and not y.flags.writeable",
    ),
    "exception with arguments of its own": (
        (
            "class Failed(ValueError):\n"
            "    def __init__(self, text, code):\n"
            "        super().__init__(text); self.code = code\n"
            "x = Failed('no', 7)"
        ),
        "type(x) is Failed and x.args == ('no',) and x.code == 7",
    ),
    "new type": (
        "import typing\nUid = typing.NewType('Uid', int); x = [Uid]",
        "x[0] is Uid and Uid(3) == 3 and Uid.__supertype__ is int",
    ),
    "classes in a circle": (
        (
            "class Base:\n"
            "    subs = []\n"
            "    def __init_subclass__(cls): Base.subs.append(cls)\n"
            "class One(Base): pass\n"
            "class Two(One): pass"
        ),
        "Base.subs == [One, Two] and isinstance(Two(), Base)",
    ),
    "read-only ndarray": (
        "x = np.arange(9000.); x.flags.writeable = False",
        "not x.flags.writeable",
    ),
    "fortran ndarray": (
        "x = np.asfortranarray(np.ones((3, 4)))",
        "x.flags.f_contiguous and x.shape == (3, 4)",
    ),
    "strided ndarray": ("x = np.arange(20000)[::2]", "x[-1] == 19998 and len(x) == 10000"),
    "empty ndarray": ("x = np.empty((0, 3))", "x.shape == (0, 3)"),
    "zero-dimensional ndarray": ("x = np.array(5)", "x == 5 and x.shape == ()"),
    "numpy scalar": ("x = np.float32(1.5)", "type(x) is np.float32 and x == 1.5"),
    "dtype": ("x = np.dtype([('a', 'i4')])", "x == np.dtype([('a', 'i4')])"),
    "datetime64": ("x = np.array(['2020-01-01'], 'M8[D]')", "x.dtype == 'M8[D]'"),
    "object array": ("x = np.array([1, 'a', None], object)", "x[1] == 'a' and x[2] is None"),
    "long object array": (
        "x = np.array(['ä', 'b'] * 1000, object)",
        "x.dtype == object and x[0] == 'ä' and type(x[1]) is str and x.flags.writeable",
    ),
    "string array": ("x = np.array(['ab', 'c'])", "x[0] == 'ab'"),
    "masked array": ("x = np.ma.array([1, 2], mask=[0, 1])", "bool(x.mask[1])"),
    "structured array": ("x = np.zeros(3, [('a', 'i4')])", "x['a'].sum() == 0"),
    "array and its view": (
        "a = np.arange(10.); x = (a, a[2:5])",
        "np.shares_memory(x[0], x[1]) and x[0] is a",
    ),
    "transposed view": (
        "a = np.arange(6.).reshape(2, 3); x = a.T",
        "np.shares_memory(a, x) and (x == a.T).all()",
    ),
    "reversed view": (
        "a = np.arange(10); x = a[::-2]",
        "np.shares_memory(a, x) and list(x) == [9, 7, 5, 3, 1]",
    ),
    "two views of one array": (
        "b = np.arange(10); x, y = b[:6], b[4:]; del b",
        "np.shares_memory(x, y) and x[4] == y[0] == 4",
    ),
    "memory map": (
        "x = np.memmap(TMP + '/mm', 'f8', 'w+', shape=10); x[:] = 7; x.flush()",
        "isinstance(x, np.memmap) and x[3] == 7 and x.filename.endswith('mm')",
    ),
    "frame": ("x = pd.DataFrame({'a': [1, 2], 'b': ['x', 'y']})", "x.b.iloc[1] == 'y'"),
    "large frame": (
        "x = pd.DataFrame(np.ones((9000, 3)), columns=list('abc'))",
        "x.a.sum() == 9000 and x.assign(d=1).d.sum() == 9000",
    ),
    "frame with attrs": ("x = pd.DataFrame({'a': [1]}); x.attrs['k'] = 1", "x.attrs['k'] == 1"),
    "frame with categories": (
        "x = pd.DataFrame({'c': pd.Categorical(['a', 'b'])})",
        "list(x.c.cat.categories) == ['a', 'b']",
    ),
    "frame with time zone": (
        "x = pd.DataFrame({'t': pd.to_datetime(['2020-01-01']).tz_localize('Europe/Berlin')})",
        "str(x.t.dt.tz) == 'Europe/Berlin'",
    ),
    "frame with several levels": (
        "x = pd.DataFrame({'v': [1, 2]}, index=pd.MultiIndex.from_tuples([(1, 'a'), (1, 'b')]))",
        "x.loc[(1, 'b'), 'v'] == 2",
    ),
    "frame of nullable types": (
        "x = pd.DataFrame({'i': pd.array([1, None], 'Int64'), 's': pd.array(['a', None], 'string')})",
        "x.i.isna().sum() == 1 and x.s[0] == 'a'",
    ),
    "column of a frame is no alias": (
        "d = pd.DataFrame({'a': [1., 2.]}); x = d['a']",
        "(x.__setitem__(0, 9.), d.a[0])[1] == 1.0",
    ),
    "series": ("x = pd.Series([1, 2], name='n')", "x.name == 'n' and x.sum() == 3"),
    "index": ("x = pd.Index(['a', 'b'])", "list(x) == ['a', 'b']"),
    "timestamp": ("x = pd.Timestamp('2020-01-01', tz='UTC')", "x.year == 2020"),
    "group by": (
        "x = pd.DataFrame({'a': [1, 1], 'b': [1, 2]}).groupby('a')",
        "x.b.sum().iloc[0] == 3",
    ),
    "polars frame": ("x = pl.DataFrame({'a': [1], 's': ['ä']})", "x['s'][0] == 'ä'"),
    "polars series": ("x = pl.Series('n', [1, 2])", "x.name == 'n' and x.sum() == 3"),
    "polars lazy frame": (
        "x = pl.DataFrame({'a': [1]}).lazy().filter(pl.col('a') > 0)",
        "x.collect().height == 1",
    ),
    "sparse matrix": ("x = sp.eye(4).tocsr()", "x.sum() == 4"),
    "fitted model": (
        "x = LinearRegression().fit([[1], [2]], [1, 2])",
        "abs(x.predict([[3]])[0] - 3) < 1e-6",
    ),
    "dataclass": ("@dataclasses.dataclass\nclass D: a: int\nx = D(1)", "x == D(1)"),
    "frozen dataclass": (
        "@dataclasses.dataclass(frozen=True, slots=True)\nclass D: a: int\nx = D(1)",
        "x == D(1) and type(x) is D and hash(x) == hash(D(1))",
    ),
    "enum": ("class E(enum.Enum): A = 1\nx = E.A", "x is E.A and E(1) is x"),
    "flag": ("class F(enum.Flag):\n  A = 1\n  B = 2\nx = F.A | F.B", "x == F.A | F.B"),
    "named tuple": (
        "N = collections.namedtuple('N', 'a b'); x = N(1, 2)",
        "isinstance(x, N) and x.b == 2",
    ),
    "typed named tuple": ("class N(typing.NamedTuple): a: int\nx = N(1)", "type(x) is N"),
    "super and property": (
        ("class B:\n  def f(s): return 1\nclass C(B):\n  def f(s): return super().f() + 1\n"
        "  @property\n  def p(s): return s.f()\nx = C()"),
        "x.p == 2 and isinstance(x, B) and type(x) is C",
    ),
    "slots": ("class S:\n  __slots__ = ('a',)\nx = S(); x.a = 1", "x.a == 1 and type(x) is S"),
    "abstract base": (
        ("class A(abc.ABC):\n  @abc.abstractmethod\n  def f(s): ...\n"
        "class B(A):\n  def f(s): return 1\nx = B()"),
        "x.f() == 1 and isinstance(x, A)",
    ),
    "generic": (
        "T = typing.TypeVar('T')\nclass G(typing.Generic[T]): pass\nx = G[int]",
        "x.__origin__ is G",
    ),
    "nested class": ("class O:\n  class I: pass\nx = O.I()", "type(x) is O.I"),
    "class with a meta class": ("class M(type): pass\nclass C(metaclass=M): k = 1\nx = C()", "type(C) is M"),
    "class that counts": ("class C:\n  n = 0\nC.n += 5\nx = C()", "C.n == x.n == 5"),
    "class of the notebook": ("x = Plain()", "type(x) is Plain"),
    "local class": ("def mk():\n  class L: a = 3\n  return L()\nx = mk()", "x.a == 3"),
    "instance state": ("class P: pass\nx = P(); x.me = x; x.l = [1]", "x.me is x and x.l == [1]"),
    "function": ("def x(a, b=2, *c, d=4, **e): 'doc'; return a + b + d", "x(1) == 7 and x.__doc__"),
    "annotated function": ("def x(a: int) -> str: ...", "x.__annotations__['a'] is int"),
    "recursive function": ("def x(n): return 1 if n < 2 else n * x(n - 1)", "x(5) == 120"),
    "function with attributes": ("def x(): pass\nx.calls = [1]", "x.calls == [1]"),
    "lambda": ("x = lambda y: y * 2", "x(2) == 4"),
    "closure": ("def mk(n):\n  return lambda y: y + n\nx = mk(3)", "x(1) == 4"),
    "closures over one cell": (
        ("def mk():\n  n = 0\n  def up():\n    nonlocal n; n += 1\n  return up, lambda: n\n"
        "up, x = mk(); up()"),
        "(up(), x())[1] == 2",
    ),
    "function sees the live global": (
        "def x(): return K",
        "(globals().__setitem__('K', 20), x())[1] == 20",
    ),
    "function of the notebook": ("x = [helper]", "x[0] is helper"),
    "function through a global function": ("def g(): return 1\ndef x(): return g()", "x() == 1"),
    "cached function": (
        "@functools.lru_cache(7)\ndef f(a): return [a]\nf(1); x = f",
        "x is f and x(1) is x(1) and x.cache_info().maxsize == 7",
    ),
    "cached method": (
        "class C:\n  @functools.cached_property\n  def p(s): return [1]\nx = C(); x.p",
        "x.p == [1]",
    ),
    "wrapped function": (
        ("def d(f):\n  @functools.wraps(f)\n  def w(*a): return f(*a) + 1\n  return w\n"
        "@d\ndef x(a): return a"),
        "x(1) == 2",
    ),
    "partial": ("x = functools.partial(int, base=2)", "x('10') == 2"),
    "bound method": ("x = [1, 2].append", "x(3) is None and x.__self__ == [1, 2, 3]"),
    "method of an instance": ("class C:\n  def m(s): return s.k\nc = C(); c.k = 4; x = c.m", "x() == 4 and x.__self__ is c"),
    "static and class method": (
        "class C:\n  @staticmethod\n  def s(): return 1\n  @classmethod\n  def c(k): return k\nx = C.c",
        "x() is C and C.s() == 1",
    ),
    "property object": ("x = property(lambda s: 1)", "x.fget(None) == 1"),
    "built-in function": ("x = len", "x is len"),
    "item getter": ("x = operator.itemgetter(1)", "x('ab') == 'b'"),
    "numpy function": ("x = np.sin", "x is np.sin"),
    "exhausted generator": ("x = (i for i in []); list(x)", "list(x) == []"),
    "list iterator": ("x = iter([1, 2]); next(x)", "next(x) == 2"),
    "zip": ("x = zip([1], [2])", "next(x) == (1, 2)"),
    "exception": ("x = ValueError('a', 1)", "x.args == ('a', 1)"),
    "exception class": ("class X(Exception): pass\nx = X('a')", "type(x) is X"),
    "module": ("x = np", "x is np"),
    "submodule": ("import os.path; x = os.path", "x is os.path"),
    "logger": ("x = logging.getLogger('a.b')", "x is logging.getLogger('a.b')"),
    "pattern": ("x = re.compile('a+', re.I)", "x.match('AA') and x == re.compile('a+', re.I)"),
    "match": ("x = re.search('b(.)', 'abc')", "x.group(1) == 'c' and x.span() == (1, 3)"),
    "match with a look behind": ("x = re.search('(?<=a)b', 'ab')", "x.group() == 'b'"),
    "match in a part of a text": ("x = re.compile('b$').search('abc', 0, 2)", "x.group() == 'b'"),
    "figure": (
        "x, ax = plt.subplots(); ax.plot([1, 2])",
        "ax.figure is x and x.axes[0].lines[0].get_ydata()[1] == 2",
    ),
    "plotly figure": ("x = go.Figure(go.Scatter(y=[1, 2]))", "x.data[0].y[1] == 2"),
    "image": ("x = Image.new('RGB', (2, 2), (1, 2, 3))", "x.getpixel((0, 0)) == (1, 2, 3)"),
    "html": ("x = HTML('<b>')", "x.data == '<b>'"),
    "markdown": ("x = Markdown('**b**')", "x.data == '**b**'"),
    "display handle": ("x = DisplayHandle('d')", "x.display_id == 'd'"),
    "numpy generator": (
        "x = np.random.default_rng(1); x.random()",
        "(lambda r: (r.random(), x.random() == r.random())[1])(np.random.default_rng(1))",
    ),
    "numpy random state": (
        "x = np.random.RandomState(1)",
        "x.rand() == np.random.RandomState(1).rand()",
    ),
    "random": ("x = random.Random(1)", "x.random() == random.Random(1).random()"),
    "c integer": ("x = ctypes.c_int(3)", "x.value == 3"),
    "path": ("x = pathlib.Path('/a')", "x == pathlib.Path('/a')"),
    "decimal": ("x = decimal.Decimal('1.10')", "str(x) == '1.10'"),
    "fraction": ("x = fractions.Fraction(1, 3)", "x * 3 == 1"),
    "datetime": (
        "x = datetime.datetime(2020, 1, 1, tzinfo=zoneinfo.ZoneInfo('UTC'))",
        "str(x.tzinfo) == 'UTC'",
    ),
    "uuid": ("x = uuid.UUID(int=1)", "x.int == 1"),
    "bytes io": ("x = io.BytesIO(b'abc'); x.read(1)", "x.read() == b'bc'"),
    "string io": ("x = io.StringIO('abc'); x.read(1)", "x.read() == 'bc'"),
    "template": ("x = string.Template('$a')", "x.substitute(a=1) == '1'"),
    "closed file": ("x = open(TMP + '/w', 'w'); x.close()", "x.closed and x.name.endswith('/w')"),
    "slots of every kind": (
        "class S:\n    __slots__ = 'a', '__b', '__weakref__'\n    def __init__(s): s.a = s.__b = 1\nx = S()",
        "not hasattr(x, '__dict__') and x.a == x._S__b == 1 and weakref.ref(x)() is x",
    ),
    "dataclass with slots": (
        "@dataclasses.dataclass(slots=True)\nclass D:\n    a: int = 2\nx = D(1), D()",
        "not hasattr(x[0], '__dict__') and (x[0].a, x[1].a, type(x[0])().a) == (1, 2, 2)",
    ),
    "closed connection of an engine": (
        "with sqlalchemy.create_engine('sqlite://').begin() as x: pass",
        "x.closed",
    ),
    "writer of lines to a closed file": (
        "f = open(TMP + '/l', 'w'); x = csv.writer(f, delimiter=';'); f.close()",
        "x.dialect.delimiter == ';'",
    ),
    "writer of lines to a text": (
        "b = io.StringIO(); x = b, csv.DictWriter(b, ['k'], dialect='unix'); x[1].writeheader()",
        "x[1].writerow({'k': 1}) and x[0].getvalue().split() == ['\"k\"', '\"1\"']",
    ),
    "reader of lines of a closed file": (
        "f = io.FileIO(TMP + '/m', 'w+'); x = csv.DictReader(io.TextIOWrapper(f), list('ab'), delimiter=';')\nlist(x); f.close()",
        "x.fieldnames == ['a', 'b'] and x.reader.dialect.delimiter == ';'",
    ),
    "closed listing": ("with os.scandir('/') as x: pass", "list(x) == []"),
    "spent listing": ("x = os.scandir('/'); list(x)", "next(x, None) is None"),
    "entry of a folder": (
        "os.mkdir(TMP + '/d'); os.mkdir(TMP + '/d/e'); x = [*os.scandir(TMP + '/d')]",
        "x[0].path == TMP + '/d/e' and x[0].is_dir()",
    ),
    "entry of this folder": (
        "x = next(e for e in os.scandir() if e.is_dir() or e.is_file())",
        "x.path == './' + x.name and os.path.exists(x)",
    ),
    "standard stream": ("x = sys.stderr", "x is sys.stderr"),
    "closed connection": ("x = sqlite3.connect(':memory:'); x.close()", "type(x) is sqlite3.Connection"),
    "closed socket": ("x = socket.socket(); x.close()", "x.fileno() == -1"),
    "free lock": ("x = threading.Lock()", "x.acquire(blocking=False)"),
    "free re-entrant lock": ("x = threading.RLock()", "x.acquire() and x.acquire()"),
    "event that is set": ("x = threading.Event(); x.set()", "x.is_set()"),
    "event that is not set": ("x = threading.Event()", "not x.is_set()"),
    "queue": ("x = queue.Queue(3); x.put(1)", "x.get_nowait() == 1 and x.maxsize == 3"),
    "ended thread": (
        "x = threading.Thread(target=int, name='t'); x.start(); x.join()",
        "not x.is_alive() and x.name == 't'",
    ),
    "ended executor": (
        "with concurrent.futures.ThreadPoolExecutor(1) as x: pass",
        "type(x) is concurrent.futures.ThreadPoolExecutor and x._shutdown",
    ),
    "done future": (
        "x = concurrent.futures.Future(); x.set_result([1])",
        "x.done() and x.result() == [1]",
    ),
    "failed future": (
        "x = concurrent.futures.Future(); x.set_exception(KeyError('k'))",
        "type(x.exception()) is KeyError",
    ),
    "ended process": (
        "x = subprocess.Popen(['true']); x.wait()",
        "x.poll() == 0 and x.args == ['true']",
    ),
    "completed process": (
        "x = subprocess.run(['true'], capture_output=True)",
        "x.returncode == 0 and x.stdout == b''",
    ),
}  # fmt: skip

KEPT_TORCH: dict[str, tuple[str, str]] = {
    "tensor": ("x = torch.arange(4.)", "x.sum() == 6"),
    "large tensor": ("x = torch.ones(9000)", "(x.add_(1), x.sum() == 18000)[1]"),
    "tensor and its view": (
        "a = torch.zeros(4); x = (a, a[:2])",
        "(x[0].add_(1), x[1][0].item() == 1)[1]",
    ),
    "leaf tensor with gradient": (
        "x = torch.ones(2, requires_grad=True); (x * 3).sum().backward()",
        "x.requires_grad and x.grad.tolist() == [3, 3]",
    ),
    "tensor on an array": (
        "a = np.zeros(3, dtype='f4'); x = (a, torch.from_numpy(a))",
        "x[1].fill_(5) is x[1] and x[0].tolist() == [5.0, 5.0, 5.0]",
    ),
    "array on a tensor": (
        "t = torch.zeros(3); x = [t[1:], t.numpy(), t]",
        "x[0].fill_(5) is x[0] and x[1].tolist() == [0.0, 5.0, 5.0] == x[2].tolist()",
    ),
    "empty tensor": ("x = torch.empty(0, 3)", "tuple(x.shape) == (0, 3)"),
    "half tensor": ("x = torch.ones(3, dtype=torch.bfloat16)", "x.dtype is torch.bfloat16"),
    "module": ("x = torch.nn.Linear(2, 2)", "x.weight.requires_grad and x(torch.ones(2)).shape[0] == 2"),
    "optimizer and module": (
        "m = torch.nn.Linear(2, 2); x = (m, torch.optim.Adam(m.parameters()))",
        "x[1].param_groups[0]['params'][0] is m.weight",
    ),
    "torch generator": ("x = torch.Generator().manual_seed(3)", "x.initial_seed() == 3"),
}  # fmt: skip

# Label → (code, path of the variable that the refusal names).
REFUSED: dict[str, tuple[str, str]] = {
    "generator": ("x = (i for i in range(3))", "x"),
    "coroutine": ("async def c(): pass\nx = c()", "x"),
    "asynchronous generator": ("async def c(): yield 1\nx = c()", "x"),
    "asyncio future": ("x = asyncio.new_event_loop().create_future()", "x"),
    "reader of lines": ("x = csv.reader(['a', 'b'])", "x"),
    "writer of lines to an open file": ("x = csv.writer(open(TMP + '/n', 'w'))", "x"),
    "listing not at its end": ("x = os.scandir('/'); next(x)", "x"),
    "entry by number": (
        "f = os.open('/', os.O_RDONLY); x = [*os.scandir(f)][0]; os.close(f); del f",
        "x",
    ),
    "file open to read": ("x = open('/etc/hostname')", "x"),
    "file open to write": ("x = open(TMP + '/wf', 'w')", "x"),
    "binary file": ("x = open(TMP + '/wb', 'wb')", "x"),
    "unbuffered file": ("x = open(TMP + '/wu', 'wb', buffering=0)", "x"),
    "file in a dict": ("x = {'f': [open('/etc/hostname')]}", "x['f'][0]"),
    "connection": ("x = sqlite3.connect(':memory:')", "x"),
    "connection in an object": (
        "class C: pass\ncfg = {'db': C()}; cfg['db'].conn = sqlite3.connect(':memory:')",
        "cfg['db'].conn",
    ),
    "cursor": ("c = sqlite3.connect(':memory:'); x = [c.cursor()]; del c", "x[0]"),
    "open connection of an engine": ("x = sqlalchemy.create_engine('sqlite://').connect()", "x"),
    "database engine": ("x = sqlalchemy.create_engine('sqlite://')", "x"),
    "web session": ("x = requests.Session()", "x"),
    "socket": ("x = socket.socket()", "x"),
    "running process": ("x = subprocess.Popen(['sleep', '30'])", "x"),
    "thread not started": ("x = threading.Thread(target=print)", "x"),
    "held lock": ("x = threading.Lock(); x.acquire()", "x"),
    "simple queue": ("x = queue.SimpleQueue()", "x"),
    "running executor": ("x = concurrent.futures.ThreadPoolExecutor(1)", "x"),
    "pending future": ("x = concurrent.futures.Future()", "x"),
    "running pool": ("x = multiprocessing.Pool(1)", "x"),
    "logging handler": ("x = logging.StreamHandler()", "x"),
    "weak reference": ("class W: pass\nw = W(); x = weakref.ref(w)", "x"),
    "object that cleans up at its end": (
        "class T:\n  def __del__(self): open(TMP + '/ended', 'w').close()\nx = [T()]",
        "x[0]",
    ),
    "weak proxy": ("class W: pass\nw = W(); x = weakref.proxy(w)", "x"),
    "finalizer": ("class W: pass\nw = W(); x = weakref.finalize(w, print)", "x"),
    "part of a bytearray": ("x = memoryview(bytearray(4))[1:3]", "x"),
    "memoryview that is released": ("x = memoryview(b'a'); x.release()", "x"),
    "weak dictionary": ("x = weakref.WeakValueDictionary()", "x"),
    "pointer": ("x = ctypes.pointer(ctypes.c_int(3))", "x"),
    "library": ("x = ctypes.CDLL(None)", "x"),
    "context": ("x = contextvars.copy_context()", "x"),
    "context variable": ("x = contextvars.ContextVar('a')", "x"),
    "stack frame": ("x = sys._getframe()", "x"),
    "traceback": (
        "try: 1 / 0\nexcept Exception as e: x = e.__traceback__",
        "x",
    ),
    "temporary folder": ("x = tempfile.TemporaryDirectory()", "x"),
    "thread-local values": ("x = threading.local()", "x"),
    "generator in a closure": (
        "def mk(g):\n  return lambda: next(g)\nx = mk(i for i in range(3))",
        "x.g",
    ),
    "file in a set of slots": (
        "class S:\n  __slots__ = ('f',)\nx = S(); x.f = open('/etc/hostname')",
        "x.f",
    ),
    "type that raises when saved": (
        "class R:\n  def __reduce__(self): raise RuntimeError('no way')\nx = [R()]",
        "x[0]",
    ),
    "type that raises when loaded": (
        ("def boom(): raise RuntimeError('no way')\n"
        "class R:\n  def __reduce__(self): return boom, ()\nx = R()"),
        "x",
    ),
    "single dispatch": (
        ("@functools.singledispatch\ndef f(a): return 0\n"
        "@f.register\ndef _g(a: int): return 1\nx = f"),
        "f.register.dispatch_cache",
    ),
}  # fmt: skip
REFUSED_TORCH: dict[str, tuple[str, str]] = {
    "tensor in a graph": ("x = torch.ones(2, requires_grad=True) * 2", "x"),
}

HAS_TORCH = importlib.util.find_spec("torch") is not None
if HAS_TORCH:
    SETUP += "import torch\n"
    KEPT |= KEPT_TORCH
    REFUSED |= REFUSED_TORCH
ALL = {**KEPT, **REFUSED}

CHILD = """
import json, os, pathlib, sys
from nbckpt.codecs import Target, decode
from nbckpt.state.snapshots import changes, take
from nbckpt.state.variables import load_test
order = json.loads(pathlib.Path(sys.argv[2]).read_text())
folder = pathlib.Path(sys.argv[3])

def save(number, code, namespace):
    known = set(namespace)
    exec(compile(code, "<step>", "exec"), namespace)
    made = {n: v for n, v in namespace.items() if n not in known}
    before = take({}, namespace)
    found = changes(before, take(made, namespace, before))
    refusals = found.refusals or load_test(found, namespace, set())
    for group, encoded in enumerate(found.components.values()):
        for part, data in enumerate([encoded.stream, *encoded.buffers]):
            mark = "r" if data.readonly else "w"
            if not refusals:
                (folder / f"{number}.{group}.{part}.{mark}").write_bytes(data)
    return [[refusal.path, str(refusal)] for refusal in refusals]

def load(number, check, namespace):
    groups = {}
    for path in folder.glob(f"{number}.*"):
        _, group, part, mark = path.name.split(".")
        data = memoryview(bytearray(path.read_bytes()))
        data = data.toreadonly() if mark == "r" else data
        groups.setdefault(group, {})[int(part)] = data
    found = {}
    for _ in range(len(groups)):
        # A definition can be in a group of its own that comes later.
        for group in list(groups):
            stream, *buffers = [groups[group][part] for part in sorted(groups[group])]
            try:
                found.update(decode(stream, buffers, Target(namespace, found)))
            except LookupError:
                continue
            del groups[group]
        if not groups:
            break
    namespace.update(found)
    return bool(eval(check, namespace)) if found else "not saved"

results = {}
setup = {"__name__": "__main__"}
exec(order["setup"], setup)
for number, (code, check) in enumerate(order["cases"]):
    # Definitions of the set-up belong to the namespace of each case, as its globals do.
    namespace = {k: v for k, v in setup.items() if k not in ("Plain", "helper")}
    exec("class Plain:\\n    a = 1\\ndef helper(): return K", namespace)
    try:
        if sys.argv[1] == "save":
            results[number] = save(number, code, namespace)
        else:
            results[number] = load(number, check, namespace)
    except BaseException as error:
        results[number] = f"{type(error).__name__}: {error}"
pathlib.Path(sys.argv[4]).write_text(json.dumps(results))
os._exit(0)
"""


class Table:
    """What came of each case in the two processes."""

    def __init__(self, to: Path) -> None:
        labels = list(ALL)
        order = to / "order.json"
        order.write_text(json.dumps({"setup": SETUP, "cases": [*ALL.values()]}))
        (to / "data").mkdir()
        environment = {**os.environ, "TYPES_TMP": str(to)}
        for mode in ("save", "load"):
            subprocess.run(
                [sys.executable, "-c", CHILD, mode, order, to / "data", to / mode],
                env={**environment, "PYTHONHASHSEED": "1" if mode == "save" else "2"},
                check=True,
                timeout=120,
            )
        self.saved = self._read(to / "save", labels)
        self.loaded = self._read(to / "load", labels)

    @staticmethod
    def _read(path: Path, labels: list[str]) -> dict[str, Any]:
        found = json.loads(path.read_text())
        return {labels[int(number)]: value for number, value in found.items()}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return Table(tmp_path_factory.mktemp("types"))


@pytest.mark.parametrize("label", KEPT)
def test_value_comes_back_in_a_fresh_process(table: Table, label: str) -> None:
    assert table.saved[label] == []
    assert table.loaded[label] is True


@pytest.mark.parametrize("label", REFUSED)
def test_value_is_refused_with_its_path(table: Table, label: str) -> None:
    assert [path for path, _ in table.saved[label]] == [REFUSED[label][1]]
    assert table.loaded[label] == "not saved"


def test_every_refusal_names_type_and_reason(table: Table) -> None:
    for label in REFUSED:
        for path, text in table.saved[label]:
            assert text.startswith(f"{path}: ")
            assert text.endswith(")")


IN_CELLS = [
    "array and its view",
    "frame",
    "fitted model",
    "dataclass",
    "enum",
    "closures over one cell",
    "cached function",
    "figure",
    "numpy generator",
    "ended thread",
]
REFUSED_IN_CELLS = ["generator", "connection in an object", "running executor"]
KERNEL = """
import json, os, pathlib, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
cells = json.loads(pathlib.Path(sys.argv[1]).read_text())
results = []
shell.run_cell(cells["setup"]).raise_error()
shell.run_cell("%load_ext nbckpt").raise_error()
for code, check in cells["steps"]:
    name = f"s{len(results)}"
    shell.run_cell(f"%%step {name}\\n{code}").raise_error()
    decision = shell.user_ns["__nbckpt__"].runner.last[name]
    # A plain cell, so that what the check itself changes is no secret of the step's.
    shell.run_cell(f"ok = bool({check or True})").raise_error()
    true = shell.user_ns["ok"]
    results.append([type(decision).__name__, getattr(decision, "reason", ""), true])
pathlib.Path(sys.argv[2]).write_text(json.dumps(results))
os._exit(0)
"""


def test_values_come_back_or_run_again_through_real_step_cells(tmp_path: Path) -> None:
    steps = [KEPT[label] for label in IN_CELLS]
    steps += [(REFUSED[label][0], "") for label in REFUSED_IN_CELLS]
    setup = SETUP.removesuffix("import torch\n")
    (tmp_path / "cells").write_text(json.dumps({"setup": setup, "steps": steps}))
    results = []
    for number in ("1", "2"):
        subprocess.run(
            [sys.executable, "-c", KERNEL, tmp_path / "cells", tmp_path / number],
            env={**os.environ, "TYPES_TMP": str(tmp_path)},
            cwd=tmp_path,
            check=True,
            timeout=120,
            capture_output=True,
        )
        results.append(json.loads((tmp_path / number).read_text()))
    first, second = (
        dict(zip([*IN_CELLS, *REFUSED_IN_CELLS], r, strict=True)) for r in results
    )
    assert {
        label: found[0] for label, found in first.items() if found[0] != "Run"
    } == {}
    assert {
        label: second[label]
        for label in IN_CELLS
        if second[label][::2] != ["Skip", True]
    } == {}
    for label in REFUSED_IN_CELLS:
        decision, reason, _ = second[label]
        assert decision == "Run"
        assert reason.startswith(f"it can't be kept: {REFUSED[label][1]}: ")


def test_entry_whose_file_is_gone_is_not_made_up(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    assert revive_entry(f"{tmp_path}/", "a").path == str(tmp_path / "a")
    with pytest.raises(FileNotFoundError, match="no such entry"):
        revive_entry(f"{tmp_path}/", "b")
