"""Files that a step reads where nobody sees it: in native code, which opens them itself."""

from __future__ import annotations

import ast
import re
from fnmatch import fnmatch
from typing import TYPE_CHECKING

from nbckpt.lint.calls import is_memory
from nbckpt.lint.notebook import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nbckpt.lint.notebook import Names
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
    nodes = (node for statement in statements for node in ast.walk(statement))
    for node in nodes:
        if isinstance(node, ast.Call) and _reads_file(node, names, step.writes):
            yield node.lineno, f"{ast.unparse(node.func)}()"


def _reads_file(call: ast.Call, names: Names, written: tuple[str, ...]) -> bool:
    """Tell whether a call reads a file that the step does not write itself."""
    if not READERS.fullmatch(names.dotted(call.func)) or is_memory(call.args, names):
        return False
    texts = [text_of(argument, names) or "" for argument in call.args[:2]]
    path, mode = (*texts, "", "")[:2]
    is_own = any(fnmatch(path, pattern) for pattern in written)
    return "://" not in path and mode != "w" and not is_own
