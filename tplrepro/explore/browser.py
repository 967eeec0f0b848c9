"""What only the browser can do: choose a file, start a download, and give every control an accessible name.

Two small widgets with their JavaScript and style beside them in `static`; nothing is loaded from a network.
"""

from __future__ import annotations

from pathlib import Path

import anywidget
import traitlets

from tplrepro.explore.inputs import MAX_BYTES

__all__ = ["Browser", "FileInput"]

STATIC = Path(__file__).parent / "static"


class FileInput(anywidget.AnyWidget):
    """A button that reads one file of at most `limit` bytes.

    A larger file is not sent, because the connection to the kernel would break: `size` tells, and `content` is empty.

    Attributes
    ----------
    label : str, shown before the button
    name, content, size : of the file chosen last; empty before
    count : int, grows with each choice, also of the same file
    """

    _esm = STATIC / "file_input.js"
    label = traitlets.Unicode().tag(sync=True)
    accept = traitlets.Unicode(".csv,.tsv,.txt,text/plain,text/csv").tag(sync=True)
    limit = traitlets.Int(MAX_BYTES).tag(sync=True)
    name = traitlets.Unicode().tag(sync=True)
    content = traitlets.Any(b"").tag(sync=True)  # a memoryview when it comes from the browser
    size = traitlets.Int().tag(sync=True)
    count = traitlets.Int().tag(sync=True)


class Browser(anywidget.AnyWidget):
    """Style of the page, accessible names of its controls, and downloads."""

    _esm = STATIC / "browser.js"
    _css = STATIC / "page.css"

    def download(self, name: str, media_type: str, content: bytes) -> None:
        """Have the browser save a file under a name."""
        self.send({"name": name, "type": media_type}, buffers=[content])
