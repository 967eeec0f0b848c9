"""Voilà for its own user only: a token, one host name, no requests from other pages, few kernels at
once."""

import re
import secrets
import threading
import webbrowser
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
from tornado.web import HTTPError, RequestHandler
from traitlets import Integer
from voila.app import Voila

#: Parameters of requests that mean something here -> their values; all others are dropped.
PARAMETERS = {
    "theme": r"light|dark",
    "token": r"[0-9a-f]{1,100}",
    "password": r".{0,100}",  # the token, in the form that asks for it
    "next": r"/([\w.?=&-][\w/.?=&-]*)?",  # a page of this server, for after the form
    "session_id": r"[\w-]{1,100}",  # of the page's connection to its kernel
    "v": r"[0-9a-f]{1,128}",  # of a static file
}


class FewKernels(AsyncMappingKernelManager):
    """Limits the number of kernels (one per page, about 300 MB), and ends those whose page is
    gone."""

    limit = Integer(6, config=True)
    cull_idle_timeout = Integer(20, config=True)  # seconds without a connection
    cull_interval = Integer(5, config=True)
    starting = 0

    async def start_kernel(self, **kwargs: Any) -> Any:  # type: ignore[override]
        if len(self) + self.starting >= self.limit:
            raise HTTPError(
                503, reason=f"at most {self.limit} pages may be open at once; close one"
            )
        self.starting += 1
        try:
            return await super().start_kernel(**kwargs)
        finally:
            self.starting -= 1

    async def cull_kernel_if_idle(self, kernel_id: str) -> None:
        """End a kernel without a connection, but none that may still be starting."""
        if not self.may_be_starting(self._kernels[kernel_id]):
            await super().cull_kernel_if_idle(kernel_id)

    def may_be_starting(self, kernel: Any) -> bool:
        """Whether a kernel has said nothing yet, and has not had the time that jupyter_server
        gives any to answer; on a slow machine that is longer than one may be idle."""
        if getattr(kernel, "execution_state", None) != "starting":
            return False
        silence = datetime.now(UTC) - kernel.last_activity
        return silence <= timedelta(seconds=self.kernel_info_timeout)


class PageServer(Voila):
    """Starts kernels only for requests with its own random token, whatever is configured as
    JUPYTER_TOKEN."""

    @property
    def display_url(self) -> str:
        return f"{self.connection_url}?token={self.token}"

    def init_settings(self) -> dict[str, Any]:
        self.token = secrets.token_hex(24)
        self.voila_configuration.multi_kernel_manager_class = FewKernels
        self.voila_configuration.prelaunch_hook = admit
        self.voila_configuration.allow_template_override = "NO"
        settings = super().init_settings()
        # Other pages cannot make requests in the user's name, because the cookie is not sent with
        # them. The XSRF check is off, because a page that is closed ends its kernel by a message
        # that cannot carry the XSRF token.
        self.identity_provider.cookie_options = {"samesite": "Strict"}
        return settings | {"allow_remote_access": False, "disable_check_xsrf": True}

    def init_handlers(self) -> list[tuple]:
        return [
            (pattern, with_known_parameters(handler), *more)
            for pattern, handler, *more in super().init_handlers()
        ]

    def launch_browser(self) -> None:
        """Open a file of the user that leads to the link, because others can see a browser's
        arguments."""
        page = Path(self.connection_dir, "link.html")
        page.write_text(
            f'<meta http-equiv="refresh" content="0;url={self.display_url}">', encoding="utf-8"
        )
        threading.Thread(target=webbrowser.open, args=[page.as_uri()], daemon=True).start()


class KnownParameters(RequestHandler):
    """A handler of requests that sees no parameter but those of `PARAMETERS`.

    Voilà writes the theme into its pages as it stands in the request.
    """

    def __init__(self, application: Any, request: Any, **options: Any) -> None:
        drop_unknown_parameters(request)
        super().__init__(application, request, **options)

    def prepare(self) -> Any:
        """Drop those of a form, which is read only then."""
        drop_unknown_parameters(self.request)
        return super().prepare()


def with_known_parameters(handler: type) -> type:
    """The class of a handler, with `KnownParameters`."""
    return type(handler.__name__, (KnownParameters, handler), {})


def drop_unknown_parameters(request: Any) -> None:
    """Leave only known parameters with their values, in the address and in forms."""
    for arguments in (request.arguments, request.query_arguments, request.body_arguments):
        for name in [*arguments]:
            if not all(is_known(name, value) for value in arguments[name]):
                del arguments[name]
    request.query = urlencode(request.query_arguments, doseq=True)
    request.uri = request.path
    if request.query:
        request.uri += f"?{request.query}"


def is_known(name: str, value: bytes) -> bool:
    """Whether a parameter of a request, whose value is bytes, means something."""
    pattern = PARAMETERS.get(name)
    if pattern is None:
        return False
    return re.fullmatch(pattern, value.decode("utf-8", "replace")) is not None


def admit(handler: Any, notebook: Any, cwd: str) -> Any:
    """The notebook without its static cells, which would contradict the controls; 403 for the
    request of another page. Voilà gives `cwd`, which is not used."""
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
