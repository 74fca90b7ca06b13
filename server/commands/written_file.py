"""The file that a command writes its result to: whether it can be written is known before any work is done."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from graph.errors import InputError


def check_output(path: Path, *, force: bool) -> None:
    """Raises `InputError`."""
    try:
        _check(path, force=force)
    except (OSError, ValueError) as error:
        raise _cannot(path, error) from error


def _check(path: Path, *, force: bool) -> None:
    target = path.resolve()
    if target.is_dir():
        raise InputError(f"{path} is a folder; name a file in it.")
    if target.exists() and not target.is_file():
        raise InputError(f"{path} is not a file; name another one.")
    if target.exists() and not force:
        raise InputError(f"{path} is there already; name another file, or overwrite it with --force.")
    if not target.parent.is_dir():
        raise InputError(f"The folder {target.parent} is not there; make it, or name another file.")
    descriptor, temporary = _beside(target)
    os.close(descriptor)
    Path(temporary).unlink()


def write_output(path: Path, text: str, *, force: bool) -> None:
    """Readers find the old text or the whole new one. Raises `InputError`, also where the file has come meanwhile."""
    try:
        target = path.resolve()
        if target.exists() and not force:
            raise InputError(f"{path} has come into being meanwhile; name another file, or overwrite it with --force.")
        descriptor, temporary = _beside(target)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            _as_others(Path(temporary))
            Path(temporary).replace(target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except (OSError, ValueError) as error:
        raise _cannot(path, error) from error


def _beside(target: Path) -> tuple[int, str]:
    """In the same folder, as only there it can be renamed. Its name is as long as the target's, or longer."""
    return tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")


def _as_others(path: Path) -> None:
    """With the rights of any new file: temporary ones are their owner's alone."""
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(0o666 & ~mask)


def _cannot(path: Path, error: OSError | ValueError) -> InputError:
    why = (error.strerror if isinstance(error, OSError) else "") or str(error)
    return InputError(f"{str(path)[:200]!r} cannot be written ({why}); name another file.")
