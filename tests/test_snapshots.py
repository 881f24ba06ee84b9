"""What a step changed: everything it did is found, and nothing that it did not do."""

from __future__ import annotations

import gc
import textwrap
from typing import Any

import matplotlib as mpl
import pytest

from nbckpt.codecs import Target, decode
from nbckpt.state.snapshots import Changes, changes, take

mpl.use("Agg")

# Before, step, names that are new or changed, names that are gone.
TABLE: list[tuple[str, str, str, str]] = [
    ("x = 1", "pass", "", ""),
    ("x = 1", "x = 2", "x", ""),
    ("x = 1", "x = 1", "", ""),
    ("x = 1", "x = 1.0", "x", ""),
    ("x = 1", "x = True", "x", ""),
    ("x = 0.0", "x = -0.0", "x", ""),
    ("x = 'a'", "x = b'a'", "x", ""),
    ("", "x = None", "x", ""),
    ("x = 1", "del x", "", "x"),
    ("x = 1; y = 2", "del x; y = 3; z = 4", "y z", "x"),
    ("x = [1]", "x.append(2)", "x", ""),
    ("x = [1]", "x.append(2); x.pop()", "", ""),
    ("x = {'a': 1}", "x['a'] = 2", "x", ""),
    ("x = {'a': 1, 'b': 2}", "x['a'] = x.pop('a')", "x", ""),
    ("x = {1}", "x.add(2)", "x", ""),
    ("x = [[[[]]]]", "x[0][0][0].append(1)", "x", ""),
    ("x = {'k': [{'a': (1, [2])}]}", "x['k'][0]['a'][1].append(3)", "x", ""),
    ("x = [1]; y = x", "y.append(2)", "x y", ""),
    ("x = [1]; y = {'k': x}", "x.append(2)", "x y", ""),
    ("x = [1]; y = [1]", "x.append(2)", "x", ""),
    ("x = [1]; y = x", "y = [1]", "x y", ""),
    ("x = [1]; y = [1]", "y = x", "x y", ""),
    # What was shared is alone now, and is kept alone.
    ("x = [1]; y = x", "del y", "x", "y"),
    ("x = [1]; y = [x]; z = [y]", "x.append(2)", "x y z", ""),
    ("x = [1]; y = [2]; z = [3]", "y.append(x)", "x y", ""),
    ("import numpy as np; x = np.zeros(5)", "x[2] = 1", "x", ""),
    ("import numpy as np; x = np.zeros(5)", "x += 0", "", ""),
    ("import numpy as np; x = np.zeros(5); y = x", "y[0] = 1", "x y", ""),
    ("import numpy as np; x = np.zeros(9); y = x[2:5]", "y[0] = 1", "x y", ""),
    ("import numpy as np; x = np.zeros(9); y = x[2:5]", "x[2] = 1", "x y", ""),
    ("import numpy as np; x = np.zeros(9); y = x[2:5]", "y = y.copy()", "x y", ""),
    ("import numpy as np; x = np.zeros(9)", "y = x[2:5]", "x y", ""),
    ("import numpy as np; x = np.zeros(9); y = x.copy()", "y[0] = 1", "y", ""),
    ("import numpy as np; x = np.zeros((2, 3))", "x = x.reshape(3, 2)", "x", ""),
    ("import numpy as np; x = np.zeros(3)", "x = x.astype('f4')", "x", ""),
    ("import numpy as np; x = np.zeros(3)", "x.flags.writeable = False", "x", ""),
    ("import numpy as np; x = np.zeros(90000)", "x[70000] = 1", "x", ""),
    ("import numpy as np; x = {'a': np.zeros(9)}", "x['a'][1] = 1", "x", ""),
    ("import pandas as pd; x = pd.DataFrame({'a': [1]})", "x['b'] = 2", "x", ""),
    ("import pandas as pd; x = pd.DataFrame({'a': [1]})", "x.loc[0, 'a'] = 2", "x", ""),
    ("import pandas as pd; x = pd.DataFrame({'a': [1]})", "y = x.a.sum()", "y", ""),
    ("import pandas as pd; x = pd.DataFrame({'a': [1]})", "x.attrs['k'] = 1", "x", ""),
    (
        "import pandas as pd; x = pd.DataFrame({'a': [1]})",
        "x.index.name = 'i'",
        "x",
        "",
    ),
    (
        "import pandas as pd; x = pd.DataFrame({'a': [1]}); y = x",
        "y['b'] = 1",
        "x y",
        "",
    ),
    ("import pandas as pd; x = pd.Series([1])", "x[0] = 2", "x", ""),
    ("import polars as pl; x = pl.DataFrame({'a': [1]})", "x = x * 2", "x", ""),
    ("def f(): return 1", "pass", "", ""),
    ("def f(): return 1", "def f(): return 2", "f", ""),
    ("def f(): pass", "f.calls = 1", "f", ""),
    ("def f(a=[]): a.append(1)", "f()", "f", ""),
    ("k = 1\ndef f(): return k", "k = 2", "k", ""),
    ("def mk():\n n = [0]\n def f(): n[0] += 1\n return f\nf = mk()", "f()", "f", ""),
    (
        "def mk():\n n = 0\n def f():\n  nonlocal n; n += 1\n return f, lambda: n\nf, g = mk()",
        "f()",
        "f g",
        "",
    ),
    ("class C: n = 0", "C.n = 1", "C", ""),
    ("class C: n = 0", "pass", "", ""),
    ("class C: pass\nc = C()", "c.a = 1", "c", ""),
    ("class C: pass\nc = C()", "C.k = 1", "C", ""),
    ("class C: n = []", "C.n.append(1)", "C", ""),
    ("class C:\n __slots__ = ('a',)\nc = C(); c.a = 1", "c.a = 2", "c", ""),
    ("import random; x = random.Random(1)", "x.random()", "x", ""),
    (
        "import collections; x = collections.deque([1])",
        "x.rotate(); x.append(2)",
        "x",
        "",
    ),
    ("import io; x = io.StringIO('abc')", "x.read(1)", "x", ""),
    ("x = iter([1, 2])", "next(x)", "x", ""),
    ("x = [i for i in range(5000)]", "x[4999] = -1", "x", ""),
    ("x = 'a' * 9000", "x = 'a' * 8999 + 'b'", "x", ""),
    ("x = []; x.append(x)", "x.append(1)", "x", ""),
    ("x = (i for i in [1, 2])", "y = 1", "y", ""),
    ("import math", "import json", "json", ""),
    ("import math as m", "import json as m", "m", ""),
]


def space(source: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(textwrap.dedent(source), namespace)  # noqa: S102 - rows of the table
    return namespace


def own(namespace: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in namespace.items()
        if not name.startswith("__") and name not in {"np", "pd", "pl", "plt"}
    }


def step(namespace: dict[str, Any], source: str) -> Changes:
    before = take(own(namespace), namespace)
    exec(source, namespace)  # noqa: S102 - rows of the table
    return changes(before, take(own(namespace), namespace, before))


@pytest.mark.parametrize(("before", "body", "names", "gone"), TABLE)
def test_step_changed_exactly_these_names(
    before: str, body: str, names: str, gone: str
) -> None:
    found = step(space(before), body)
    assert found.names == sorted(names.split())
    assert found.deleted == tuple(sorted(gone.split()))


STILL = """
import collections, dataclasses, datetime, enum, functools, re
import matplotlib.pyplot as plt, numpy as np, pandas as pd, polars as pl
a = np.arange(9.); v = a[2:5]; m = np.ma.array([1, 2], mask=[0, 1]); o = np.array(['a', 1], object)
df = pd.DataFrame({'h': [1, 1, 2], 's': ['a', 'b', 'c'], 't': pd.date_range('2020', periods=3)})
col = df['h']; ix = df.index; gr = df.groupby('h'); cat = df.s.astype('category'); pf = pl.DataFrame({'a': [1]})
fig, ax = plt.subplots(); line = ax.plot([1, 2])
def f(x, y=[]): return a
def outer():
    n = [1]
    return lambda: n
g = outer(); h = functools.partial(f, 1)
@functools.lru_cache
def cached(x): return x
class C:
    k = []
    def m(self): return super().__repr__()
    @property
    def p(self): return 1
class D(C): pass
@dataclasses.dataclass
class E: a: int = 1
class F(enum.Enum): A = 1
c = D(); c.me = c; e = E(); en = F.A
s = {'a', 'b', ('c',)}; fs = frozenset('xyz'); d = {'a': s, 'b': [c, e]}; oneself = [d]; oneself.append(oneself)
rng = np.random.default_rng(1); when = datetime.datetime(2020, 1, 1); pat = re.compile('a+')
dd = collections.defaultdict(list); nt = collections.namedtuple('nt', 'a b'); t = nt(1, [2])
gen = (i for i in range(3)); handle = open('/etc/hostname')
"""  # noqa: E501 - one namespace of everything


def test_integer_that_python_does_not_spell_is_a_value_like_others() -> None:
    before = take({"n": 9**9998}, {})
    assert changes(before, take({"n": 9**9999}, {}, before)).names == ["n"]
    assert changes(before, take({"n": 9**9998}, {}, before)).names == []


def test_nothing_changed_means_no_changes() -> None:
    namespace = space(STILL)
    try:
        before = take(own(namespace), namespace)
        for _ in range(3):
            after = take(own(namespace), namespace, before)
            assert changes(before, after) == Changes({}, ())
            before = after
    finally:
        namespace["handle"].close()


LOOKS = [
    "repr(df), df.describe(), df.sort_values('h'), df.h.mean(), len(df), df.head()",
    "df.query('h > 1'), df.groupby('h').s.count(), df.merge(df, on='h'), df.dtypes",
    "a.sum(), a + 1, a[a > 2], a.reshape(3, 3).T.sum(), sorted(a), a.copy()",
    "c.m(), c.p, F.A.name, E(1) == e, isinstance(c, C), hasattr(c, 'zzz')",
    "f(1), g(), h(), cached(3), cached(3)",
    "list(d), len(s), 'a' in s, sorted(fs), str(oneself)",
    "pat.match('aa'), when.isoformat(), t._asdict(), dd.get('zzz')",
    "pf.sum(), pf.to_dicts()",
    "import gc; gc.collect()",
]


@pytest.mark.parametrize("look", LOOKS)
def test_looking_at_values_changes_nothing(look: str) -> None:
    namespace = space(STILL)
    take(own(namespace), namespace)
    try:
        found = step(
            namespace, f"(lambda: ({look}))()" if "import" not in look else look
        )
        assert set(found.names) <= {"gc"}
    finally:
        namespace["handle"].close()


def restored(found: Changes, namespace: dict[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for encoded in found.components.values():
        copies = [memoryview(bytearray(buffer)) for buffer in encoded.buffers]
        stream = memoryview(bytes(encoded.stream))
        values |= decode(stream, copies, Target(namespace, values))
    return values


def test_aliases_are_one_object_again() -> None:
    namespace = space("x = [1]")
    found = step(namespace, "y = x; z = {'k': x}")
    values = restored(found, namespace)
    assert values["y"] is values["x"] is values["z"]["k"]


def test_views_see_one_memory_again() -> None:
    namespace = space("import numpy as np")
    found = step(namespace, "a = np.zeros(9000); v = a[5:9]; w = a[::-1]; b = a.copy()")
    values = restored(found, namespace)
    values["v"][0] = 7
    assert values["a"][5] == values["w"][-6] == 7
    assert values["b"][5] == 0


def test_two_names_that_became_two_objects_stay_two() -> None:
    namespace = space("x = [1]; y = x")
    found = step(namespace, "y = list(x)")
    values = restored(found, namespace)
    assert values["x"] == values["y"]
    assert values["x"] is not values["y"]


def test_components_hold_what_belongs_together_and_no_more() -> None:
    found = step(space(""), "a = [1]; b = [a]; c = [2]; d = (3,); e = (3,); f = e")
    groups = {tuple(sorted(names)) for names in found.components}
    assert {("a", "b"), ("c",), ("d",), ("e",), ("f",)} == groups


@pytest.mark.parametrize(
    "shared",
    ["'text'", "(1, 2)", "None", "len", "int", "b'x' * 9000", "range(9)", "10 ** 30"],
)
def test_constants_tie_nothing_together(shared: str) -> None:
    found = step(space(""), f"k = {shared}; a = [k]; b = [k]")
    assert frozenset({"a", "b"}) not in found.components
    assert all(len({"a", "b"} & names) < 2 for names in found.components)


def test_refusals_of_a_step_have_their_paths() -> None:
    found = step(space(""), "x = {'g': [i for i in '']}; y = (i for i in [1])")
    assert [refusal.path for refusal in found.refusals] == ["y"]


def test_generator_that_was_there_before_is_no_refusal_of_the_step() -> None:
    found = step(space("y = (i for i in [1])"), "x = 1")
    assert found.refusals == []


def test_snapshot_keeps_nothing_of_what_did_not_change() -> None:
    namespace = space("import weakref\nclass C: pass\nc = C()\nr = weakref.ref(c)")
    values = {"c": namespace["c"]}
    snapshot = take(values, namespace)
    del values["c"], namespace["c"]
    gc.collect()
    assert namespace["r"]() is None
    assert snapshot.parts.keys() == {"c"}


@pytest.mark.parametrize(
    "source",
    [
        "class A:\n    all = []\nclass B(A): pass\nA.all.append(B)",
        "class B: pass\nclass A:\n    b = B\nB.a = A",
        "class A:\n    all = []\nclass B(A): pass\nclass C(B): pass\nA.all.append(C)",
    ],
)
def test_classes_that_refer_to_each_other_are_one_component(source: str) -> None:
    found = step(space(""), source)
    (names,) = found.components
    assert {"A", "B"} <= names


def test_class_and_its_instance_stay_two_components() -> None:
    found = step(space(""), "class A: pass\na = A()")
    assert set(found.components) == {frozenset({"A"}), frozenset({"a"})}
