"""What was changed in modules since they were imported.

A module keeps state of its own: a registry, a setting, a cache. Where one of the user's
no longer is what its import made, it is kept, restored and compared like a variable,
under a dotted name such as ``registry.LEVEL``; attributes of a module's classes likewise,
and those that a step sets on a library.
"""

from __future__ import annotations

import enum
import importlib.machinery
import re
import sys
import types
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from nbckpt.codecs import is_local
from nbckpt.source.overrides import accessors, overridden
from nbckpt.state.snapshots import digests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractContextManager
    from importlib.machinery import ModuleSpec

    Importing = Callable[[str], AbstractContextManager[None]]

Namespace = dict[str, Any]
OWN = {"nbckpt", "__main__", "__mp_main__", "IPython", "ipykernel"}
DUNDER = re.compile(r"__\w+__")
DEFINITIONS = (types.ModuleType, types.BuiltinFunctionType, type)


def _alone(_: str) -> AbstractContextManager[None]:
    """Put nothing around the making of a module."""
    return nullcontext()


class Names:
    """The notebook's names, and dotted ones for what moved in the user's modules.

    Parameters
    ----------
    namespace : dict
        The notebook's names.
    importing : callable, optional
        Called with the name of each module of the user's own; what it returns stands
        around the making of the module.

    Notes
    -----
    State that only a closure, a default argument or a C extension holds is not seen.
    """

    def __init__(self, namespace: Namespace, importing: Importing = _alone) -> None:
        self.namespace = namespace
        self._importing = importing
        self._imported: dict[str, dict[str, str]] = {}
        self._known: set[str] = set()
        self._own: set[str] = set()
        self._moved: set[str] = set()
        self._overridden: set[str] = set()
        self._expected: set[str] = set()
        self._last: Namespace = {}

    def install(self) -> None:
        """Begin to take note of modules as their import leaves them."""
        sys.meta_path.insert(0, self)
        self.moved()

    def uninstall(self) -> None:
        """End it."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: Any = None
    ) -> ModuleSpec | None:
        """Find a module as Python does; one of the user's own is looked at once made."""
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        loader: Any = spec.loader if spec is not None else None
        if spec is None or not is_own(name, spec.origin) or loader is None:
            return None
        execute = loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            with self._importing(name):
                execute(module)
            self._imported[name] = digests(_state(name, module), self.namespace)

        loader.exec_module = exec_module
        return spec

    def note(self, chains: Iterable[str]) -> None:
        """Take note of what a step's source may have set on a library.

        Parameters
        ----------
        chains : iterable of str
            What `nbckpt.source.overrides.set_attributes` told of the source.
        """
        found = (*overridden(chains, self.namespace), *accessors(self.namespace))
        names = set(filter(self._is_of_library, found))
        self._overridden |= names
        self._moved |= names

    def expect(self, chains: Iterable[str]) -> None:
        """Take note of what a plain cell may set on a library when it runs.

        Parameters
        ----------
        chains : iterable of str
            What `nbckpt.source.overrides.set_attributes` told of the source.
        """
        self._expected |= set(chains)

    def _is_of_library(self, name: str) -> bool:
        """Tell whether a dotted name is bound, and in no module of the user's own."""
        return not is_own_module(home(name)) and name in self

    def moved(self, *, still: bool = False) -> Namespace:
        """Return the state of the user's modules that is not what their import made.

        Parameters
        ----------
        still : bool, optional
            Whether nothing has run since the last look, so that it holds.

        Returns
        -------
        dict
            Dotted name → value; a name that moved once stays in.
        """
        if still:
            return self._last
        new = sys.modules.keys() - self._known
        self._known |= new
        self._own |= {name for name in new if is_own_module(name)}
        found: Namespace = {}
        for name in sorted(self._own & sys.modules.keys()):
            state = _state(name, sys.modules[name])
            now = digests(state, self.namespace)
            before = self._imported.setdefault(name, now)
            self._moved |= {n for n, digest in now.items() if before.get(n) != digest}
            found |= {n: state[n] for n in state.keys() & self._moved}
        found |= {name: self[name] for name in self._overridden if name in self}
        self._last = found
        return found

    def of_modules(self, modules: Iterable[str]) -> set[str]:
        """Return the dotted names of what moved in some modules; of libraries, in any."""
        homes = set(modules)
        packages = set(map(package, homes))
        found = overridden(self._expected, self.namespace)
        self._moved |= set(filter(self._is_of_library, found))
        near = {n for n in self._moved if package(n) in packages and n in self}
        return {n for n in near if home(n) in homes or not is_own_module(home(n))}

    def __contains__(self, name: str) -> bool:
        """Tell whether a name is bound."""
        return self.get(name, self) is not self

    def __getitem__(self, name: str) -> Any:
        """Return what a name is bound to."""
        found = self.get(name, self)
        if found is self:
            raise KeyError(name)
        return found

    def get(self, name: str, default: Any = None) -> Any:
        """Return what a name is bound to, or something else."""
        if "." not in name:
            return self.namespace.get(name, default)
        holder, attribute = _place(name)
        if isinstance(holder, types.ModuleType):
            return getattr(holder, attribute, default)
        return vars(holder).get(attribute, default) if holder is not None else default

    def bind(self, name: str, value: Any) -> None:
        """Bind a name; the module of a dotted one is imported already."""
        if "." not in name:
            self.namespace[name] = value
            return
        holder, attribute = _place(name)
        setattr(holder, attribute, value)
        self._moved.add(name)
        if not is_own_module(home(name)):
            self._overridden.add(name)

    def unbind(self, name: str) -> None:
        """Delete a name if it is bound."""
        if "." not in name:
            self.namespace.pop(name, None)
        elif name in self:
            holder, attribute = _place(name)
            delattr(holder, attribute)


def home(name: str) -> str:
    """Return the module of a dotted name; empty if it is not imported."""
    found = name.rpartition(".")[0]
    while found and found not in sys.modules:
        found = found.rpartition(".")[0]
    return found


def package(name: str) -> str:
    """Return the package that a dotted name begins with."""
    return name.partition(".")[0]


def is_own(name: str, file: str | None) -> bool:
    """Tell whether a module of a name and file is the user's own."""
    return name.partition(".")[0] not in OWN and is_local(file)


def is_own_module(name: str) -> bool:
    """Tell whether an imported module is the user's own."""
    module = sys.modules.get(name)
    if module is None or name.partition(".")[0] in OWN:
        return False  # asked for its file, a module that waits for its use is loaded
    return is_local(getattr(module, "__file__", None))


def _place(name: str) -> tuple[Any, str]:
    """Return the module or class that holds a dotted name, or None, and the last part."""
    holder, _, attribute = name.rpartition(".")
    if holder in sys.modules:
        return sys.modules[holder], attribute
    module, _, definition = holder.rpartition(".")
    return getattr(sys.modules.get(module), definition, None), attribute


def _state(name: str, module: types.ModuleType) -> Namespace:
    """Return the data in a module and in the classes that it defines."""
    found = _data(name, module)
    for key, value in list(vars(module).items()):
        is_class = isinstance(value, type) and not isinstance(value, enum.EnumMeta)
        if is_class and value.__module__ == name and value.__qualname__ == key:
            found |= _data(f"{name}.{key}", value)
    return found


def _data(prefix: str, holder: Any) -> Namespace:
    """Return what a module or class holds that is no definition."""
    return {
        f"{prefix}.{key}": value
        for key, value in list(vars(holder).items())
        if not DUNDER.fullmatch(key)
        and not isinstance(value, DEFINITIONS)
        and not hasattr(type(value), "__get__")
    }
