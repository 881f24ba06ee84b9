"""Which calls change the world outside the notebook.

Reading the world (GET, SELECT, ``!ls``) is no effect, and neither is a write that says
itself that it may be repeated (``INSERT OR IGNORE``, ``ON CONFLICT``).
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from nbckpt.lint.notebook import Names, text_of

if TYPE_CHECKING:
    from collections.abc import Callable

Kind = Literal["network", "process", "database", "file", "append"]

HTTP = {"requests", "httpx", "aiohttp", "urllib3"}
WRITING = {"post", "put", "patch", "delete"}
READING = {"GET", "HEAD", "OPTIONS", "TRACE"}
CLIENTS = {
    "smtplib": r"sendmail|send_message",
    "socket": r"send|sendall|sendto",
    "ftplib": r"stor\w+|delete|rename|mkd|rmd",
    "paramiko": r"exec_command|put|remove|rename",
    "boto3": (
        r"(put|delete|create|update|send|publish|upload|copy|invoke|start|stop|run"
        r"|terminate|write|batch_write|execute)(_\w+)?"
    ),
    "google": r"publish|upload_from_\w+|insert_rows\w*|delete\w*",
    "stripe": r"create|modify|capture|refund|cancel|confirm",
    "twilio": r"create",
    "slack_sdk": r"chat_\w+|files_upload\w*|send",
    "redis": r"set|delete|publish|xadd|[lr]push|incr\w*|decr\w*|hset|sadd|zadd",
    "kafka": r"send",
    "confluent_kafka": r"produce",
    "pika": r"basic_publish",
}
PROCESSES = re.compile(
    r"subprocess\.(run|call|check_call|check_output|Popen|getoutput|getstatusoutput)"
    r"|os\.(system|popen|spawn\w+|posix_spawnp?)"
    r"|asyncio\.create_subprocess_(exec|shell)"
)
SHELLS = {"bash", "sh", "script", "sx", "system", "perl", "ruby"}
HARMLESS = re.compile(
    r"\s*(ls|cat|head|tail|wc|echo|pwd|date|whoami|uname|hostname|grep|rg|find|du|df|free"
    r"|nproc|lscpu|nvidia-smi|which|env|printenv|file|stat|tree|diff|md5sum|sha256sum"
    r"|pip3?|uv|conda|mamba|python3? --version|python3? -V|sleep|true|test"
    r"|git (-C \S+ )?(rev-parse|status|log|show|diff|describe|branch|remote|ls-files))"
    r"(?![\w-])[^>]*"
)
SQL = re.compile(
    r"\s*(?!replace\s+into)(insert(?!\s+or\s+(ignore|replace))|update|delete|replace|merge|upsert|drop|alter|truncate|copy"
    r"|create(?!.*\bif\s+not\s+exists\b))\b",
    re.IGNORECASE | re.DOTALL,
)
UPSERT = re.compile(r"\bon\s+(conflict|duplicate\s+key)\b", re.IGNORECASE)
BUILT = re.compile(r"sqlalchemy\.(\w+\.)*(insert|update|delete)\(")
EXECUTES = {"execute", "executemany", "executescript", "exec_driver_sql"}
FRAMES = re.compile(
    r"to_(csv|parquet|excel|json|feather|pickle|hdf|html|stata|orc|zarr|netcdf|markdown"
    r"|latex|xml|file)|write_(csv|parquet|json|ipc|excel|image|html|delta)|sink_\w+"
)
FILES = re.compile(
    r"shutil\.(copy\w*|move|rmtree|make_archive|unpack_archive)"
    r"|os\.(remove|unlink|rename|replace|renames|rmdir|removedirs|truncate)"
    r"|numpy\.(save|savez|savez_compressed|savetxt)|joblib\.dump|torch\.save"
    r"|matplotlib\.pyplot\.(savefig|imsave)"
)
OPENS = re.compile(r"(io\.|gzip\.|bz2\.|lzma\.|codecs\.)?open")

PATH_OPENS = re.compile(r"(\?|pathlib\.).*\.open")


@dataclass(frozen=True, slots=True)
class Effect:
    """A call that changes something outside."""

    kind: Kind
    node: ast.expr
    what: str
    """The call as it reads."""


def effect_of(call: ast.Call, names: Names) -> Effect | None:
    """Return what a call changes outside the notebook.

    Parameters
    ----------
    call : ast.Call
        The call.
    names : Names
        What names stand for.

    Returns
    -------
    Effect or None
        None if it changes nothing, or the source can't tell.
    """
    called = names.dotted(call.func)
    tests: dict[Kind, Callable[[ast.Call, str, Names], bool]] = {
        "network": _is_request,
        "process": _is_process,
        "database": _is_database_write,
        "append": _is_append,
        "file": _is_file_write,
    }
    for kind, test in tests.items():
        if test(call, called, names):
            return Effect(kind, call, _shown(call))
    return None


def _shown(call: ast.Call) -> str:
    """Return a call as it reads, short."""
    match call:
        case ast.Call(
            func=ast.Attribute(value=ast.Call(func=ast.Name(id="get_ipython"))),
            args=[*_, ast.Constant(value=str(text))],
        ):
            first = text.strip().split("\n")[0]
            return f"!{first[:40]}"
        case _:
            return f"{ast.unparse(call.func)}()"


def _is_request(call: ast.Call, called: str, names: Names) -> bool:
    """Tell whether a call sends something over the network."""
    root, _, rest = called.partition(".")
    method = rest.rpartition(".")[2]
    if called == "urllib.request.urlopen":
        return _sends_data(call, names)
    if root in HTTP:
        return method in WRITING or (method == "request" and _is_writing(call))
    pattern = CLIENTS.get(root.removesuffix("()"))
    return pattern is not None and bool(re.fullmatch(pattern, method))


def _is_writing(call: ast.Call) -> bool:
    """Tell whether ``request(method, …)`` is no reading one."""
    named = [k.value for k in call.keywords if k.arg == "method"]
    match [*call.args[:1], *named]:
        case [ast.Constant(value=str(method)), *_]:
            return method.upper() not in READING
        case _:
            return False


def _sends_data(call: ast.Call, names: Names) -> bool:
    """Tell whether ``urlopen`` is given data, or a request that may hold some."""
    if len(call.args) > 1 or any(k.arg == "data" for k in call.keywords):
        return True
    match call.args:
        case [ast.Call() as made] if names.dotted(made.func).endswith("Request"):
            return _sends_data(made, names) or any(
                k.arg == "method" and _is_writing(ast.Call(made.func, [k.value], []))
                for k in made.keywords
            )
        case _:
            return False


def _is_process(call: ast.Call, called: str, names: Names) -> bool:
    """Tell whether a call starts a process that may change something."""
    match call:
        case ast.Call(
            func=ast.Attribute(
                value=ast.Call(func=ast.Name(id="get_ipython")), attr=method
            )
        ):
            return _is_shell(method, call.args)
        case _:
            pass
    if not PROCESSES.fullmatch(called) or not call.args:
        return False
    return not HARMLESS.fullmatch(_command(call.args[0], names))


def _is_shell(method: str, arguments: list[ast.expr]) -> bool:
    """Tell whether a magic or ``!command`` starts a process."""
    texts = [str(a.value) for a in arguments if isinstance(a, ast.Constant)]
    if method in {"system", "getoutput"}:
        return not HARMLESS.fullmatch(texts[0] if texts else "")
    is_magic = method in {"run_cell_magic", "run_line_magic"} and bool(texts)
    return is_magic and texts[0].lstrip("!") in SHELLS | {""}


def _command(node: ast.expr, names: Names) -> str:
    """Return a command line as far as it is written out."""
    if isinstance(node, ast.List | ast.Tuple):
        return " ".join(text_of(part, names) or "?" for part in node.elts)
    return text_of(node, names) or ""


def _is_database_write(call: ast.Call, called: str, names: Names) -> bool:
    """Tell whether a call changes a database."""
    method = called.rpartition(".")[2]
    if method in {"to_sql", "write_database"}:
        return True
    if method not in EXECUTES or not call.args:
        return False
    first = call.args[0]
    text = text_of(first, names)
    if text is not None:
        return any(SQL.match(part) for part in text.split(";")) and not (
            UPSERT.search(text)
        )
    return bool(BUILT.match(names.dotted(first)))


def _mode(call: ast.Call, called: str) -> str:
    """Return the mode of an ``open``; empty if it is none or not written out."""
    is_method = bool(PATH_OPENS.fullmatch(called))
    if not (is_method or OPENS.fullmatch(called)):
        return ""
    place = 0 if is_method else 1
    named = [k.value for k in call.keywords if k.arg == "mode"]
    match [*call.args[place : place + 1], *named]:
        case [ast.Constant(value=str(mode))] if re.fullmatch(r"[rwaxbtU+]{1,4}", mode):
            return mode
        case _:
            return ""


def _is_append(call: ast.Call, called: str, names: Names) -> bool:
    """Tell whether a call makes a file longer."""
    del names
    if FRAMES.fullmatch(called.rpartition(".")[2]):
        return any(
            k.arg == "mode"
            and isinstance(k.value, ast.Constant)
            and k.value.value == "a"
            for k in call.keywords
        )
    return "a" in _mode(call, called)


def _is_file_write(call: ast.Call, called: str, names: Names) -> bool:
    """Tell whether a call writes, moves or removes a file."""
    method = called.rpartition(".")[2]
    if set("wx+") & set(_mode(call, called)):
        return True
    if FILES.fullmatch(called):
        return not is_memory(call.args[:1], names)
    if method in {"write_text", "write_bytes", "savefig"} or FRAMES.fullmatch(method):
        target = [k.value for k in call.keywords if k.arg in _TARGETS]
        given = [*call.args[:1], *target]
        return bool(given) and not is_memory(given, names)
    return False


_TARGETS = {
    "path", "path_or_buf", "fname", "excel_writer", "buf", "file", "data",
}  # fmt: skip


def is_memory(given: list[ast.expr], names: Names) -> bool:
    """Tell whether one of the arguments is a buffer in memory.

    Parameters
    ----------
    given : list of ast.expr
        What a call is given.
    names : Names
        What names stand for.

    Returns
    -------
    bool
        False if the source can't tell.
    """
    return any(names.dotted(one).startswith(("io.", "sys.")) for one in given)
