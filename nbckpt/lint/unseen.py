"""Files that a step opens where nobody sees it: in native code, which does so itself."""

from __future__ import annotations

import ast
import re
from fnmatch import fnmatch
from glob import glob
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from nbckpt.lint.calls import is_memory
from nbckpt.lint.notebook import Names, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nbckpt.plan import Step

READERS = re.compile(
    r"pandas\.read_(parquet|hdf)|polars\.(read|scan)_(parquet|csv|ipc|json|ndjson|avro)"
    r"|pyarrow\.(\w+\.)?(read_table|read_pandas|read_feather|read_csv|read_json|memory_map"
    r"|dataset|ParquetFile|ParquetDataset|ORCFile)|duckdb\.read_(parquet|csv|json)"
    r"|geopandas\.read_(file|parquet)|fiona\.open|rasterio\.open|pyreadstat\.read_\w+"
    r"|xarray\.(open|load)_(dataset|dataarray|mfdataset)|netCDF4\.Dataset|h5py\.File"
    r"|cv2\.(imread|VideoCapture)|soundfile\.read|torchaudio\.load"
)
"""By what the name stands for. Given a path, they or an engine of theirs open it themselves:
no audit event tells of it."""
WRITERS = re.compile(
    r".*\.(to_(parquet|hdf|netcdf)|write_(parquet|csv|ipc|json|ndjson|avro|table|feather)"
    r"|sink_\w+|imwrite)"
)
"""By their last names, since they are mostly methods."""
PATHS = {"path", "source", "where", "file", "filename"}
PLAIN = (
    ast.Constant, ast.Name, ast.Load, ast.JoinedStr, ast.FormattedValue, ast.BinOp, ast.Div,
    ast.Add,
)  # fmt: skip


def unseen(
    statements: list[ast.stmt], names: Names, step: Step
) -> Iterator[tuple[int, str]]:
    """Yield the calls of a step that read files which neither it nor its line names.

    Parameters
    ----------
    statements : list of ast.stmt
        The step's body.
    names : Names
        What names stand for.
    step : Step
        What its line declares.

    Yields
    ------
    tuple of int and str
        Line, and the call as it reads.
    """
    if step.reads:
        return
    for call in _calling(READERS, statements, names):
        texts = [text_of(argument, names) or "" for argument in call.args[:2]]
        path, mode = (*texts, "", "")[:2]
        is_elsewhere = is_memory(call.args, names) or "://" in path
        if not is_elsewhere and mode != "w" and not _is_own(path, step):
            yield call.lineno, f"{ast.unparse(call.func)}()"


def told(statements: list[ast.stmt], namespace: dict[str, Any], step: Step) -> str:
    """Return what is told of files that a body has opened unseen.

    Parameters
    ----------
    statements : list of ast.stmt
        The step's body, which has run.
    namespace : dict
        The notebook's names, as it left them.
    step : Step
        What its line declares.

    Returns
    -------
    str
        A line for each file that is there and that the step's line does not name.
    """
    names = Names(_standing(namespace))
    lines = []
    for pattern, declared, lost, option in (
        (READERS, step.reads, "a change of it will go unnoticed", "reads"),
        (WRITERS, step.writes, "nobody will look whether it is there", "writes"),
    ):
        calls = [] if declared else _calling(pattern, statements, names)
        found = {path: call for call in calls for path in _paths(call, namespace)}
        lines += [
            f"nbckpt: step {step.name}: {ast.unparse(call.func)}() opens its file unseen, "
            f"and {lost}. Name it: %%step {step.name} --{option} {path}\n"
            for path, call in found.items()
            if not _is_own(path, step)
        ]
    return "".join(lines)


def _calling(
    pattern: re.Pattern[str], statements: list[ast.stmt], names: Names
) -> list[ast.Call]:
    """Return the calls in code of what a pattern tells."""
    nodes = (node for statement in statements for node in ast.walk(statement))
    calls = (node for node in nodes if isinstance(node, ast.Call))
    return [call for call in calls if pattern.fullmatch(names.dotted(call.func))]


def _paths(call: ast.Call, namespace: dict[str, Any]) -> list[str]:
    """Return the file that a call is given, if it is there; all files of a folder."""
    given = [*call.args[:2], *(k.value for k in call.keywords if k.arg in PATHS)]
    values = (_value(node, namespace) for node in given)
    paths = [value for value in values if isinstance(value, str | Path)]
    there = [path for path in paths if glob(str(path))]  # noqa: PTH207 - from anywhere
    return [f"{p}/**" if Path(p).is_dir() else str(p) for p in there[:1]]


def _is_own(path: str, step: Step) -> bool:
    """Tell whether a step declares that it writes a file itself."""
    return any(fnmatch(path, pattern) for pattern in step.writes)


def _standing(namespace: dict[str, Any]) -> dict[str, str]:
    """Return what the names of modules and of what comes from them stand for."""
    found = {}
    # A copy: another thread may bind a name meanwhile.
    for name, value in namespace.copy().items():
        if isinstance(value, ModuleType):
            found[name] = value.__name__
        elif isinstance(value, FunctionType | type):
            found[name] = f"{str(value.__module__).partition('.')[0]}.{value.__name__}"
    return found


def _value(node: ast.expr, namespace: dict[str, Any]) -> Any:
    """Return the value of a path that is put together of names and texts alone."""
    if not all(isinstance(part, PLAIN) for part in ast.walk(node)):
        return None
    try:
        return eval(compile(ast.Expression(node), "path", "eval"), namespace)  # noqa: S307 - no call
    except Exception:
        return None
