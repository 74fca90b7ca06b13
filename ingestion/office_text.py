"""The child process that reads Office files: looks at the archive first, then has the format's own reader do it."""

from __future__ import annotations

import importlib
import io
import logging
import warnings
import zipfile

import msgspec

from ingestion.file_content import FileContent
from ingestion.killable import serve
from ingestion.office_content import LOCKED

READERS = {
    ".docx": "ingestion.office_docx",
    ".odt": "ingestion.office_odt",
    ".pptx": "ingestion.office_pptx",
    ".xlsx": "ingestion.office_xlsx",
}
"""A module is loaded for the first file of its kind: the libraries are an extra, and slow to load."""
MAX_PARTS = 20_000
MAX_PART_BYTES = 200 * 2**20
MAX_UNPACKED_BYTES = 500 * 2**20
COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""Microsoft's container: Office before 2007, and an encrypted file since."""
ENCRYPTED = "EncryptedPackage".encode("utf-16-le")


def read(data: bytes, suffix: str) -> FileContent:
    if data.startswith(COMPOUND):
        old = f"it is in the format of before 2007; save it as {suffix}"
        return FileContent(problem=LOCKED if ENCRYPTED in data else old)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if problem := _problem(archive):
            return FileContent(problem=problem)
    content: FileContent = importlib.import_module(READERS[suffix]).read(data)
    return content if content.text or content.problem else msgspec.structs.replace(content, skipped="it has no text")


def _problem(archive: zipfile.ZipFile) -> str:
    """Why not to unpack it. Python reads no more of a part than the archive says it has."""
    parts = archive.infolist()
    if any(part.flag_bits & 1 for part in parts):
        return LOCKED
    whole, largest = sum(part.file_size for part in parts), max((part.file_size for part in parts), default=0)
    if len(parts) > MAX_PARTS or whole > MAX_UNPACKED_BYTES or largest > MAX_PART_BYTES:
        return f"it unpacks to {whole:,} bytes in {len(parts):,} parts, which is more than a document has"
    return ""


def answer(payload: bytes) -> bytes:
    suffix, _, data = payload.partition(b"\n")
    try:
        content = read(data, suffix.decode())
    except MemoryError:
        content = FileContent(problem="it takes too much memory to read")
    except RuntimeError as error:
        content = FileContent(problem=LOCKED if "encrypted" in str(error) else f"it is damaged ({error})"[:200])
    except Exception as error:  # noqa: BLE001 - the libraries have errors of their own, without a common root
        content = FileContent(problem=f"it is damaged, or no {suffix.decode()} file ({type(error).__name__})")
    return msgspec.msgpack.encode(content)


def main() -> None:
    logging.disable()
    warnings.simplefilter("ignore")  # openpyxl reports what it leaves out
    serve(answer)


if __name__ == "__main__":
    main()
