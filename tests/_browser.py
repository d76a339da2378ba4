"""A browser without a window, for tests that look at pages: Chromium, driven through two pipes.

Its DevTools protocol is JSON with a zero byte after each message, so that nothing else is needed.
"""

from __future__ import annotations

import base64
import io
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
NONE = f"no browser: `make browser` installs one, or SKDPNOISE_BROWSER names one ({NAMES[0]}, ...)"
_READS, _WRITES = 3, 4  # the descriptors that Chromium takes for its pipes
_SECONDS = 60


def find_browser() -> str | None:
    """Where Chromium is, if it is here, and can be talked to through pipes."""
    if os.name != "posix":
        return None
    named = os.environ.get("SKDPNOISE_BROWSER")
    return shutil.which(named) if named else next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    """One page.

    Parameters
    ----------
    call : callable
        Sends a command of the protocol to this page, and returns its result.
    """

    def __init__(self, call: Any, events: list[dict[str, Any]] | None = None) -> None:
        self._call, self._events = call, [] if events is None else events

    def show(self, path: Path, **media: str) -> None:
        """Open a file, for who prefers this: such as ``prefers_color_scheme="dark"``."""
        self.visit(path.resolve().as_uri(), **media)

    def visit(self, url: str, **media: str) -> None:
        """Open an address, for who prefers this."""
        self._events.clear()
        features = [
            {"name": name.replace("_", "-"), "value": value} for name, value in media.items()
        ]
        self._call("Emulation.setEmulatedMedia", features=features)
        self._call("Page.navigate", url=url)
        self.ask(
            "new Promise(done => { if (document.readyState == 'complete') done();"
            " else addEventListener('load', () => done()); })"
        )

    def ask(self, script: str) -> Any:
        """Return what JavaScript says, as plain values."""
        answer = self._call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def resize(self, width: int, height: int) -> None:
        """Give the window this many pixels."""
        facts = {"deviceScaleFactor": 1, "mobile": width < 600}
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, **facts)

    def wait_for(self, condition: str) -> None:
        """Return once JavaScript says that something is so."""
        self.ask(
            "new Promise((done, fail) => { const begin = Date.now(); const look = () => {"
            f" if ({condition}) done(); else if (Date.now() - begin > 30000) fail('not so');"
            " else setTimeout(look, 50); }; look(); })"
        )

    def errors(self) -> list[str]:
        """Return what the page complained of since it was opened."""
        self.ask("new Promise(done => setTimeout(done, 100))")
        found = []
        for event in self._events:
            facts = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(facts["exceptionDetails"]["text"])
            elif event["method"] == "Log.entryAdded" and facts["entry"]["level"] == "error":
                found.append(f"{facts['entry']['text']} {facts['entry'].get('url', '')}")
            elif event["method"] == "Runtime.consoleAPICalled" and facts["type"] == "error":
                found.append(str([one.get("value") for one in facts["args"]]))
        return found

    def picture(self, path: Path | None = None) -> NDArray[np.uint8]:
        """Return the pixels of the page, of shape (height, width, 3); keep them as PNG."""
        from PIL import Image

        size = self._call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        shot = self._call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        data = base64.b64decode(shot["data"])
        if path is not None:
            path.write_bytes(data)
        return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder, as a server of this machine gives it."""
    handler = partial(_Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def opened(program: str, folder: Path) -> Iterator[Page]:
    """A page of a fresh browser, which keeps what it writes in this folder."""
    import fcntl  # not on Windows

    # Above what the browser's own descriptors will be.
    ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (*os.pipe(), *os.pipe())]
    commands, send, receive, answers = ends

    def connect() -> None:
        os.dup2(commands, _READS)
        os.dup2(answers, _WRITES)

    options = ["--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe"]
    process = subprocess.Popen(
        [program, "--headless", *options, f"--user-data-dir={folder}", "about:blank"],
        preexec_fn=connect,
        close_fds=False,
        stderr=subprocess.DEVNULL,
    )
    os.close(commands)
    os.close(answers)
    with os.fdopen(send, "wb", 0) as into, os.fdopen(receive, "rb") as out:
        talk = _Talk(into, out)
        try:
            target = talk("Target.createTarget", url="about:blank", width=900, height=700)
            where = {"targetId": target["targetId"], "flatten": True}
            session = talk("Target.attachToTarget", **where)["sessionId"]

            def page(method, **facts):
                return talk(method, session, **facts)

            for domain in ("Page", "Runtime", "Log"):
                page(f"{domain}.enable")
            yield Page(page, talk.events)
            talk("Browser.close")
            process.wait(_SECONDS)
        finally:
            process.kill()
            process.wait(_SECONDS)


class _Talk:
    """Commands and their answers."""

    def __init__(self, into: Any, out: Any) -> None:
        self._into, self._out = into, out
        self._number, self._rest = 0, b""
        self.events: list[dict[str, Any]] = []  # what the browser said without being asked

    def __call__(self, method: str, session: str | None = None, **facts: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": facts}
        if session is not None:
            message["sessionId"] = session
        self._into.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = json.loads(self._next())
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def _next(self) -> bytes:
        while b"\0" not in self._rest:
            more = self._out.read1(1 << 20)
            assert more, "the browser ended"
            self._rest += more
        message, _, self._rest = self._rest.partition(b"\0")
        return message
