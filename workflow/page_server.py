"""Voilà for its own user only: a token, one host name, no requests from other pages, few kernels at
once."""

import secrets
import threading
import webbrowser
from pathlib import Path

from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
from tornado.web import HTTPError
from traitlets import Integer
from voila.app import Voila


class FewKernels(AsyncMappingKernelManager):
    """Limits the number of kernels (one per page, about 300 MB), and ends those whose page is
    gone."""

    limit = Integer(6, config=True)
    cull_idle_timeout = Integer(20, config=True)  # seconds without a connection
    cull_interval = Integer(5, config=True)
    starting = 0

    async def start_kernel(self, **kwargs):
        if len(self) + self.starting >= self.limit:
            raise HTTPError(
                503, reason=f"at most {self.limit} pages may be open at once; close one"
            )
        self.starting += 1
        try:
            return await super().start_kernel(**kwargs)
        finally:
            self.starting -= 1


class PageServer(Voila):
    """Starts kernels only for requests with its own random token, whatever is configured as
    JUPYTER_TOKEN."""

    @property
    def display_url(self):
        return f"{self.connection_url}?token={self.token}"

    def init_settings(self):
        self.token = secrets.token_hex(24)
        self.voila_configuration.multi_kernel_manager_class = FewKernels
        self.voila_configuration.prelaunch_hook = admit
        settings = super().init_settings()
        # Other pages cannot make requests in the user's name, because the cookie is not sent with
        # them. The XSRF check is off, because a page that is closed ends its kernel by a message
        # that cannot carry the XSRF token.
        self.identity_provider.cookie_options = {"samesite": "Strict"}
        return settings | {"allow_remote_access": False, "disable_check_xsrf": True}

    def launch_browser(self):
        """Open a file of the user that leads to the link, because others can see a browser's
        arguments."""
        page = Path(self.connection_dir, "link.html")
        page.write_text(
            f'<meta http-equiv="refresh" content="0;url={self.display_url}">', encoding="utf-8"
        )
        threading.Thread(target=webbrowser.open, args=[page.as_uri()], daemon=True).start()


def admit(handler, notebook, cwd):
    """The notebook without its static cells, which would contradict the controls; 403 for another
    page."""
    if not handler.check_origin():
        raise HTTPError(
            403, reason="another page made this request; open the link that the server has printed"
        )
    notebook.cells = [
        cell for cell in notebook.cells if "static" not in cell.metadata.get("tags", ())
    ]
    return notebook


if __name__ == "__main__":
    PageServer.launch_instance()
