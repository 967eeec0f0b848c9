"""What only the browser can do: draw, read a file, start a download, and name controls for screen readers.

These small widgets keep their JavaScript and style in `static`; nothing is loaded from a network.
"""

from pathlib import Path

import anywidget
import traitlets

from page.analysis import Analysis
from page.plots import PANELS, curves
from page.text import MAX_BYTES, decode

# Curves in the order of the panels; they are sent by number, because Jupyter splits names at blanks.
NAMES = [curve["name"] for panel in PANELS for curve in panel["curves"]]
STATIC = Path(__file__).parent / "static"


class FileInput(anywidget.AnyWidget):
    """A button that reads one file of at most `limit` bytes.

    A larger file would break the connection to the kernel, so its content is not sent.
    """

    _esm = STATIC / "file_input.js"
    label = traitlets.Unicode().tag(sync=True)  # shown before the button
    wanted = traitlets.Unicode()  # what the file should contain, with an example
    limit = traitlets.Int(MAX_BYTES).tag(sync=True)
    name = traitlets.Unicode().tag(sync=True)
    content = traitlets.Any(b"").tag(sync=True)  # a memoryview when it comes from the browser
    size = traitlets.Int().tag(sync=True)
    value = traitlets.Int().tag(sync=True)  # grows with each choice, even of the same file

    def read(self) -> bytes:
        """The content of the file, or ValueError."""
        if not self.name:
            raise ValueError(f"no file has been chosen yet; choose one with {self.wanted}")
        if self.size > self.limit:
            raise ValueError(
                f"{self.name} must be at most {self.limit / 1e6:g} MB here, found {self.size / 1e6:.1f} MB; load fewer "
                "lines, or a matrix estimated with tplrepro.TransitionMatrix.from_sequences"
            )
        return bytes(self.content)

    def text(self) -> str:
        """The text of the file, or ValueError."""
        return decode(self.read(), self.name)


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

    def __init__(self, analysis: Analysis):
        super().__init__()
        self.add_traits(**{name: traitlets.List(xy).tag(sync=True) for name, xy in self._values(analysis).items()})

    def update(self, analysis: Analysis) -> None:
        """Show another result; only the curves that changed are sent, in one message."""
        with self.hold_sync():
            for name, values in self._values(analysis).items():
                setattr(self, name, values)

    @staticmethod
    def _values(analysis: Analysis) -> dict[str, list]:
        drawn = curves(analysis)
        return {f"curve_{k}": [values.tolist() for values in drawn[name]] for k, name in enumerate(NAMES)}
