"""Bytes on disk: whole or not at all.

Every file is written under a temporary name in its own folder and then renamed, so that a reader (or a later run)
sees the old file or the new one, never half of one. The bytes are fixed by the content: sorted keys, `\\n`, floats in
their shortest round-trip form, no NaN.
"""

import contextlib
import csv
import errno
import io
import json
import os
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from specexp.errors import UserError

NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def write_bytes(path: Path, data: bytes) -> Path:
    """Returns `path`, holding `data`. UserError, and neither a half-written nor a temporary file, if it cannot be."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, path)
    except OSError as error:
        raise unwritable(path, error) from error
    finally:  # after a Ctrl-C too; once renamed there is nothing left to remove
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    return path


def unwritable(path: Path, error: OSError) -> UserError:
    """The one line for a failed write to `path`: what is wrong and what would be right."""
    if error.errno in NO_SPACE:
        return UserError(f"{path}: no space left to write it; free some, or set SPECEXP_OUTPUTS to a folder with room")
    reason = error.strerror or str(error)
    return UserError(f"{path}: cannot be written ({reason}); set SPECEXP_OUTPUTS to a folder that you may write to")


def read_text(path: Path) -> str:
    """Returns the UTF-8 text of `path`; UserError if it is missing, unreadable or not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "not UTF-8 text"
        raise UserError(f"{path}: cannot be read ({reason})") from error


def damaged(path: Path, what: str) -> UserError:
    """The one line for a file whose content is not what was once written there."""
    return UserError(f"{path}: damaged ({what}); run it again, or remove its folder")


def json_bytes(content: dict[str, Any]) -> bytes:
    """JSON with sorted keys, two spaces, a last newline. ValueError for NaN and infinity, which JSON has not."""
    return (json.dumps(content, sort_keys=True, indent=2, allow_nan=False, ensure_ascii=False) + "\n").encode()


def read_json(path: Path, needed: Sequence[str] = ()) -> dict[str, Any]:
    """Returns the object in `path`, unknown keys kept; UserError naming the file if it is cut off or lacks a key."""
    try:
        content = json.loads(read_text(path))
    except ValueError as error:
        if isinstance(error, UserError):
            raise
        raise damaged(path, f"not JSON: {error}") from error
    if not isinstance(content, dict):
        raise damaged(path, "not a JSON object")
    missing = [key for key in needed if key not in content]
    if missing:
        raise damaged(path, f"lacks the key {missing[0]!r}")
    return content


def csv_bytes(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """CSV with `\\n`; None is an empty cell, a float its repr, a list or dict its JSON."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([cell(value) for value in row] for row in rows)
    return text.getvalue().encode()


def cell(value: Any) -> str:
    """One value as it stands in a CSV cell."""
    if value is None:
        return ""
    if isinstance(value, float):  # numpy's float64 is a float, but its repr is not a number
        return repr(float(value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def read_csv(path: Path, needed: Sequence[str]) -> list[dict[str, str]]:
    """Returns one dict a row, all texts; UserError naming the file if a needed column or a row's cell is missing."""
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""))
    missing = [name for name in needed if name not in (reader.fieldnames or [])]
    if missing:
        raise damaged(path, f"lacks the column {missing[0]!r}")
    rows = list(reader)
    if any(None in row or None in row.values() for row in rows):
        raise damaged(path, "a row with too few or too many cells")
    return rows


def parse_cell(text: str) -> Any:
    """The value that `cell` wrote; a text that happens to be a number comes back as that number."""
    if not text:
        return None
    try:
        return json.loads(text, parse_constant=_not_json)
    except ValueError:
        return text


def _not_json(constant: str) -> None:
    raise ValueError(constant)  # NaN, Infinity: words here
