"""PowerPoint presentations: a section for each slide, with its text, tables and the speaker's notes."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from typing import Any

import pptx
from pptx.enum.shapes import PP_PLACEHOLDER

from ingestion.file_content import FileContent
from ingestion.office_html import FullError, OfficeHtml
from ingestion.office_properties import language_of, moment, real_title

MAX_SLIDES = 2_000
MAX_GROUPS = 20
"""Groups in groups."""
TRIMMINGS = frozenset({PP_PLACEHOLDER.DATE, PP_PLACEHOLDER.FOOTER, PP_PLACEHOLDER.HEADER, PP_PLACEHOLDER.SLIDE_NUMBER})
LISTED = frozenset({PP_PLACEHOLDER.BODY, PP_PLACEHOLDER.OBJECT})
"""Placeholders whose paragraphs have bullets unless the master says otherwise, which it rarely does."""


def read(data: bytes) -> FileContent:
    presentation = pptx.Presentation(io.BytesIO(data))
    properties = presentation.core_properties
    html = OfficeHtml()
    first = ""
    with contextlib.suppress(FullError):
        for number, slide in enumerate(presentation.slides, 1):
            if number > MAX_SLIDES:
                break
            if slide.element.get("show") in {"0", "false"}:  # hidden from those who saw it
                continue
            title = slide.shapes.title
            words = " ".join(title.text_frame.text.split()) if title is not None and title.has_text_frame else ""
            first = first or words
            _slide(html, slide, title, words or f"Slide {number}")
    return html.content(
        title=real_title(properties.title) or first,
        language=language_of(properties.language),
        modified=moment(properties.modified),
    )


def _slide(html: OfficeHtml, slide: Any, title: Any, words: str) -> None:
    html.add(html.heading(1), words)
    for shape in _shapes(slide.shapes, MAX_GROUPS):
        if title is not None and shape.shape_id == title.shape_id:
            continue
        if getattr(shape, "has_table", False):
            html.rows([[cell.text for cell in row.cells] for row in shape.table.rows])
        elif shape.has_text_frame:
            _text(html, shape)
    notes = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    if notes is not None and notes.text.strip():
        html.add(html.block("p"), f"Notes: {notes.text}")


def _shapes(shapes: Any, depth: int) -> Iterator[Any]:
    """Those of groups too, without what stands on every slide; in the order of the file, which is that of reading."""
    for shape in shapes:
        if hasattr(shape, "shapes"):
            if depth:
                yield from _shapes(shape.shapes, depth - 1)
        elif not (shape.is_placeholder and shape.placeholder_format.type in TRIMMINGS):
            yield shape


def _text(html: OfficeHtml, shape: Any) -> None:
    listed = shape.is_placeholder and shape.placeholder_format.type in LISTED
    for paragraph in shape.text_frame.paragraphs:
        if not paragraph.text.strip():
            continue
        several = listed or paragraph.level > 0
        into = html.item(paragraph.level) if several else html.block("p")
        for run in paragraph.runs:
            html.add(into, run.text, _address(run))
        if not paragraph.runs:  # a field alone
            html.add(into, paragraph.text)


def _address(run: Any) -> str:
    """ "" for a link to another slide."""
    try:
        return run.hyperlink.address or ""
    except KeyError:  # to a relation that is not there
        return ""
