"""The fingerprint of a step: everything that its result depends on, by value."""

from __future__ import annotations

import importlib.metadata
import os
import re
import sys
import types
import weakref
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from nbckpt import keys
from nbckpt.codecs import Canonical, attribute_of
from nbckpt.inputs.localmodules import sources
from nbckpt.inputs.proofs import Paths, refuse_elsewhere
from nbckpt.plan import Step
from nbckpt.records import Fingerprint, Value
from nbckpt.source.lasting import calls, results
from nbckpt.source.overrides import set_attributes
from nbckpt.source.reads import Reads, compile_body, environment_names, read_body
from nbckpt.state.deviations import deviations
from nbckpt.state.modulestate import OWN, Names, home, is_own_module, package

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from nbckpt.inputs.imported import Imported
    from nbckpt.trust import Secret

Namespace = dict[str, Any]
DUNDER = re.compile(r"__\w+__")
SHELL_NAMES = {"get_ipython", "In", "Out", "exit", "quit", "open", "display"}


@dataclass(slots=True)
class Body:
    """What is told from a step's source, once."""

    code: str
    reads: Reads
    environment: set[str]
    attributes: frozenset[str] = frozenset()
    """Attributes that it sets on what it names."""
    calls: frozenset[str] = frozenset()
    """What it calls, as it names it."""

    @classmethod
    def of(cls, statements: list[Any]) -> Body:
        """Analyse a body.

        Parameters
        ----------
        statements : list of ast.stmt
            As IPython's own transformations left them.

        Returns
        -------
        Body
            Its fingerprint, its reads and the environment variables that it names.
        """
        found = environment_names(compile_body(statements))
        code, reads = keys.code_fingerprint(statements), read_body(statements)
        reads.names |= results(statements)
        return cls(code, reads, found, set_attributes(statements), calls(statements))


@dataclass(slots=True)
class Inputs:
    """Computes fingerprints; keeps digests while nothing can have changed.

    Parameters
    ----------
    names : Names
        The notebook's names, and those of the user's modules.
    paths : Paths
        Names of files.
    secret : Secret
        Keys the digests of environment variables.
    imported : Imported
        What modules read when they were imported.
    """

    names: Names
    paths: Paths
    secret: Secret
    imported: Imported
    _known: dict[str, Value] = field(default_factory=dict)
    _recorded: dict[str, _Recorded] = field(default_factory=dict)
    _rested: set[str] = field(default_factory=set)

    def forget(self) -> None:
        """Forget all digests: other code has run."""
        self._known.clear()

    def forget_names(self, names: Iterable[str]) -> None:
        """Forget what is known of names that a step made or changed."""
        for name in names:
            self._known.pop(name, None)
            self._recorded.pop(name, None)

    def remember(self, name: str, value: Value, again: Callable[[], Any]) -> None:
        """Take a value's digest from the record that holds it.

        Parameters
        ----------
        name : str
            The name, bound to the value.
        value : Value
            From the record.
        again : callable
            Restores the value once more, to tell whether the live one was changed.
        """
        self._known[name] = value
        self._recorded[name] = _Recorded(value, again, _reference(self.names[name]))

    def value(self, name: str) -> Value:
        """Return the digest of a name's value.

        Parameters
        ----------
        name : str
            A name of the namespace.

        Returns
        -------
        Value
            Equal for equal values in every process.
        """
        if name not in self._known:
            self._known[name] = self._compute(name)
        return self._known[name]

    def _compute(self, name: str) -> Value:
        """Digest a live value."""
        live = self.names[name]
        found = _digest(live, self.names.namespace)
        recorded = self._recorded.get(name)
        if recorded is None or recorded.value == found:
            return found
        if any(module.startswith("matplotlib.") for module in found.modules):
            # A figure's state holds addresses and changes as it is looked at: it counts
            # as what the record says as long as it is the same object.
            return recorded.value if recorded.reference() is live else found
        # A restored value can differ from the original in ways that don't matter, such
        # as spare capacity: it counts as unchanged if a fresh restore looks the same.
        try:
            same = _digest(recorded.again(), self.names.namespace) == found
        except Exception:
            return found
        return recorded.value if same else found

    def fingerprint(
        self, step: Step, body: Body, visible: set[str], recorded: Fingerprint
    ) -> Fingerprint:
        """Return a step's fingerprint as things stand before its body.

        Parameters
        ----------
        step : Step
            Its options.
        body : Body
            Its source.
        visible : set of str
            The user's names.
        recorded : Fingerprint
            From its record, or empty: files that it was seen to read are compared too.

        Returns
        -------
        Fingerprint
            Without what only the body's run can tell.
        """
        names = self._reached(step, body, visible)
        known = {name for name in recorded.inputs if name in self.names}
        names |= known - set(step.ignore)
        values = {name: self.value(name) for name in sorted(names)}
        modules = self._modules(body.reads.modules, values)
        local = sources(modules)
        modules |= local.keys()
        values |= self._state(step, modules)
        return Fingerprint(
            code=body.code,
            options=step.options_fingerprint,
            inputs={name: value.digest for name, value in values.items()},
            modules=local,
            files=self._files(step, recorded) | self.imported.files(local),
            environment=self._environment(step, body, values, recorded)
            | self.variables(self.imported.environment(local)),
            versions=_versions(modules) | self._not_imported(body, recorded),
            unknown=self._unknown(step, values),
        )

    def _reached(self, step: Step, body: Body, visible: set[str]) -> set[str]:
        """Return the names that a body reads, and those that functions in them read."""
        queue = set(body.reads.names)
        if body.reads.dynamic:
            queue |= visible
        found: set[str] = set()
        while queue:
            name = queue.pop()
            if name in found or name in step.ignore or name in SHELL_NAMES:
                continue
            if name not in self.names or DUNDER.fullmatch(name):
                continue
            found.add(name)
            queue |= set(self.value(name).reached)
        return found

    def actual(self, step: Step, now: Fingerprint) -> Fingerprint:
        """Return a fingerprint with the state of modules as the body will find it.

        Parameters
        ----------
        step : Step
            The step that runs.
        now : Fingerprint
            As it was compared: what an earlier pass left counted as it was before.

        Returns
        -------
        Fingerprint
            What the step's result will rest on.
        """
        found = {name: d for name, d in now.inputs.items() if "." not in name}
        homes = set(map(home, now.inputs.keys() - found.keys()))
        for name, value in self._state(step, homes.union(now.modules)).items():
            # A setting that is left out was set by a cell below, or by the step itself.
            if name in now.inputs or name in self.names:
                found[name] = value.digest
        return replace(now, inputs=found)

    def _state(self, step: Step, modules: set[str]) -> dict[str, Value]:
        """Return what moved in the modules that a step rests on, if it can be told."""
        self._rested |= set(modules)
        found = {name: self.value(name) for name in self.names.of_modules(modules)}
        settings = deviations(map(package, modules))
        found |= {n: _digest(v, self.names.namespace) for n, v in settings.items()}
        told = {n: found[n] for n in sorted(found.keys() - set(step.ignore))}
        return {name: value for name, value in told.items() if not value.unknown}

    def standing(self) -> dict[str, str]:
        """Return what moved in the modules that steps rested on: digest by dotted name."""
        found = self._state(Step(""), set(self._rested))
        return {name: value.digest for name, value in found.items()}

    def _unknown(self, step: Step, values: dict[str, Value]) -> str:
        """Return why the fingerprint can't be told, if so."""
        for name, value in values.items():
            if value.unknown:
                return (
                    f"input {name!r} holds a {value.unknown}, which can't be compared "
                    f"(if it is no input: %%step {step.name} --ignore {name})"
                )
        return ""

    @staticmethod
    def _not_imported(body: Body, recorded: Fingerprint) -> dict[str, str]:
        """Return the versions of packages that only the body's own run will import.

        One that is installed under another name counts as it was when it was imported.
        """
        named = {module.partition(".")[0] for module in body.reads.modules}
        missing = named - sys.modules.keys() - sys.stdlib_module_names
        found = {n: _version(n) or recorded.versions.get(n, "") for n in missing}
        return {name: version for name, version in found.items() if version}

    def grounds(
        self, names: Iterable[str], imported: set[str]
    ) -> tuple[dict[str, str], dict[str, str]]:
        """Return what the values of names rest on.

        Parameters
        ----------
        names : iterable of str
            Names of the namespace.
        imported : set of str
            Modules whose versions count as well.

        Returns
        -------
        tuple of dict and dict
            Local module → digest of its source; package → version.
        """
        modules = self._modules((), {name: self.value(name) for name in names})
        local = sources(modules)
        return local, _versions(modules | local.keys() | imported)

    def _modules(self, imported: Iterable[str], values: dict[str, Value]) -> set[str]:
        """Return the modules that a step rests on."""
        found = set(imported)
        for name, value in values.items():
            found |= set(value.modules)
            if isinstance(self.names[name], types.ModuleType):
                found.add(self.names[name].__name__)
        return {name for name in found if package(name) not in OWN}

    def _files(self, step: Step, recorded: Fingerprint) -> dict[str, str]:
        """Return the digests of the files that a step reads."""
        refuse_elsewhere(step.name, "reads", step.reads, self.paths)
        names = {*self.paths.expand(step.reads), *recorded.files}
        return {name: self.paths.digest(name) for name in sorted(names)}

    def _environment(
        self,
        step: Step,
        body: Body,
        values: dict[str, Value],
        recorded: Fingerprint,
    ) -> dict[str, str]:
        """Return keyed digests of the environment variables that a step reads."""
        names = set(step.env) | body.environment
        for name in values:
            code = attribute_of(self.names.get(name), "__code__")
            if code is not None:
                names |= environment_names(code)
        names = {name for name in names if name in os.environ or name.isupper()}
        names |= recorded.environment.keys()
        names -= set(step.ignore)
        return self.variables({name: os.environ.get(name) for name in sorted(names)})

    def variables(self, values: dict[str, str | None]) -> dict[str, str]:
        """Return the keyed digests of environment variables.

        Parameters
        ----------
        values : dict
            Name → value; None: it is not set.

        Returns
        -------
        dict
            Name → digest.
        """
        return {
            name: "unset" if text is None else self.secret.keyed_digest(text)
            for name, text in values.items()
        }


@dataclass(frozen=True, slots=True)
class _Recorded:
    """A value that a record holds."""

    value: Value
    again: Callable[[], Any]
    reference: Callable[[], Any]
    """Returns the object that was bound, or None if it is gone."""


def _reference(value: Any) -> Callable[[], Any]:
    """Return a weak reference to a value; one to nothing if it can't have any."""
    try:
        return weakref.ref(value)
    except TypeError:
        return lambda: None


def _digest(value: Any, namespace: Namespace) -> Value:
    """Return the digest of a value and what it rests on."""
    canon = Canonical(value, namespace)
    reached, modules = tuple(sorted(canon.reached)), tuple(sorted(canon.modules))
    return Value(canon.digest, canon.unknown, reached, modules)


def _versions(modules: set[str]) -> dict[str, str]:
    """Return the versions of Python and of the packages that a step rests on."""
    found = {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    for name in set(map(package, modules)) - OWN:
        module = sys.modules.get(name)
        if module is None or name in sys.stdlib_module_names or is_own_module(name):
            continue
        version = _version(name)
        if version:
            found[name] = version
    return found


def _version(package: str) -> str:
    """Return the version of a package; empty if unknown."""
    version = getattr(sys.modules.get(package), "__version__", None)
    return _installed(package) or (version if isinstance(version, str) else "")


@cache
def _installed(package: str) -> str:
    """Return the version of a package that is installed under its name, else empty."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
