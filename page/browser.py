"""What only the browser can do: draw, read a file, start a download, and name controls for screen readers.

These small widgets keep their JavaScript and style in `static`; nothing is loaded from a network.
"""

from pathlib import Path

import anywidget
import traitlets

from page.analysis import Analysis
from page.plots import PANELS, curves

# Curves in the order of the panels; they are sent by number, because Jupyter splits names at blanks.
NAMES = [curve["name"] for panel in PANELS for curve in panel["curves"]]
STATIC = Path(__file__).parent / "static"
MAX_BYTES = 5_000_000  # more would make the page slow, and from 10 MB on break JupyterLab's connection to the kernel


class FileInput(anywidget.AnyWidget):
    """A button that reads one file, and then shows its name; of more than `limit` bytes only name and size come."""

    _esm = STATIC / "file_input.js"
    wanted = traitlets.Unicode().tag(sync=True)  # what the file should contain, with an example
    limit = traitlets.Int(MAX_BYTES).tag(sync=True)
    value = traitlets.Dict().tag(sync=True)  # name, size and content, once a file has been chosen

    @property
    def name(self) -> str:
        return self.value.get("name", "")

    def read(self) -> bytes:
        """The content of the file, or ValueError."""
        if not self.value:
            raise ValueError(f"no file has been chosen yet; choose one with {self.wanted}")
        if self.value["size"] > self.limit:
            raise ValueError(
                f"{self.name} must be at most {self.limit / 1e6:g} MB here, found {self.value['size'] / 1e6:.1f} MB; "
                "load fewer lines, or a matrix estimated with tplrepro.TransitionMatrix.from_sequences"
            )
        return bytes(self.value["content"])


class Browser(anywidget.AnyWidget):
    """The style of the page, accessible names of its controls, downloads, and its address."""

    _esm = STATIC / "browser.js"
    _css = STATIC / "page.css"
    query = traitlets.Unicode().tag(sync=True)  # of the page's address, unless JupyterLab shows the page

    def download(self, name: str, media_type: str, content: bytes) -> None:
        """Make the browser save a file."""
        self.send({"name": name, "type": media_type}, buffers=[content])


class LivePlots(anywidget.AnyWidget):
    """The panels of `plots`, redrawn in the browser when their curves change.

    A plotting library would need ten times as long for each change as the rest of an update.
    """

    _esm = STATIC / "plots.js"
    panels = traitlets.List(PANELS).tag(sync=True)

    def __init__(self):
        super().__init__()
        self.add_traits(**{f"curve_{k}": traitlets.List([[], []]).tag(sync=True) for k in range(len(NAMES))})

    def update(self, analysis: Analysis) -> None:
        """Show another result; only the curves that changed are sent, in one message."""
        drawn = curves(analysis)
        with self.hold_sync():
            for k, name in enumerate(NAMES):
                setattr(self, f"curve_{k}", [values.tolist() for values in drawn[name]])
