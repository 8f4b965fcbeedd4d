"""The page of ``jobgen web`` on a server of this process, and in a browser."""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from support.browser import PATIENCE, Browser
from support.jobs import jobgen
from support.require import absent


class _Files(SimpleHTTPRequestHandler):
    extensions_map = {".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript"} | {
        ".wasm": "application/wasm",
        ".css": "text/css",
        "": "application/octet-stream",
    }

    def __init__(self, *args: Any, cut: str | None, **words: Any) -> None:
        self.cut = cut
        super().__init__(*args, **words)

    def copyfile(self, source: Any, outputfile: Any) -> None:
        outputfile.write(source.read(1000 if self.path == f"/{self.cut}" else -1))

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def served(folder: Path, cut: str | None = None) -> Iterator[str]:
    """Serve a folder; the transfer of the file ``cut`` ends early."""
    files = functools.partial(_Files, directory=str(folder), cut=cut)
    server = ThreadingHTTPServer(("127.0.0.1", 0), files)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()


def built(folder: Path, *words: object) -> Path:
    done = jobgen("web", "-o", folder, *words)
    if "cannot be read" in done.stderr:
        absent(f"the parts of the page cannot be downloaded here: {done.stderr}")
    assert done.returncode == 0, done.stderr
    return folder


class Page:
    """The page in a browser."""

    def __init__(self, opened: Browser, url: str) -> None:
        self.run, self.call, self._open, self._url = opened.run, opened.call, opened.open, url
        self._open(url)
        self.wait()

    def wait(self, *states: str) -> None:
        """Wait for a state of the page, which tells of it: to ask it often takes as much time as what it does."""
        wanted = json.dumps(states or ("shown", "linked"))
        reached = f"""new Promise(done => {{
          const look = () => {wanted}.includes(document.body.dataset.state) && done(true);
          new MutationObserver(look).observe(document.body, {{attributeFilter: ["data-state"]}});
          setTimeout(done, {PATIENCE - 20}e3, false);
          look();
        }})"""
        assert self.run(reached), self.text("message")

    def fill(self, form: dict[str, str]) -> None:
        """Fill in the whole form."""
        self.run(f"""{{
          const given = {json.dumps(form)};
          for (const field of document.forms[0].elements) if (field.name) field.value = given[field.name] ?? "";
          document.forms[0].dispatchEvent(new Event("input"));
        }}""")
        self.wait()

    @contextmanager
    def unlinked(self) -> Iterator[None]:
        """Fill in forms one after the other: the page makes the script of each, but not again for its links."""
        self.run("kept = order; order = () => []; 0")
        yield
        self.run("order = kept; 0")

    def choose(self, name: str, value: str) -> None:
        """Change one field, as a user does."""
        self.run(f"""{{
          form[{json.dumps(name)}].value = {json.dumps(value)};
          form[{json.dumps(name)}].dispatchEvent(new Event("input", {{bubbles: true}}));
        }}""")
        self.wait()

    def follow(self, form: dict[str, str] | list[tuple[str, str]]) -> None:
        """Follow the link of a form, on the page; a key of a list may come more than once."""
        self.run(f"""new Promise(done => {{
          const link = {json.dumps("#" + urlencode(form))};
          if (location.hash === link) location.hash = "#scheduler=local";
          addEventListener("hashchange", (event) => event.newURL.endsWith(link) && done(1));
          location.hash = link;
        }})""")
        self.wait()

    def open(self, form: dict[str, str]) -> None:
        """Open the link of a form in a new page."""
        self._open("about:blank")
        self._open(f"{self._url}#{urlencode(form)}")
        self.wait()

    def text(self, name: str) -> str:
        found: str = self.run(f"document.getElementById('{name}').textContent")
        return found

    def script(self) -> str:
        """Return the script as the page shows it."""
        rows = (
            "[...document.querySelectorAll('#script .line > code')].map(row => row.textContent).join('\\n')"
        )
        shown: str = self.run(rows)
        return shown + self.text("runtime")

    def flags(self, text: str) -> list[str]:
        """Return the options at the line that has a text."""
        row = f"[...document.querySelectorAll('#script .line')].find(row => row.textContent.includes({json.dumps(text)}))"
        found: list[str] = self.run(f"[...{row}.querySelectorAll('a')].map(one => one.textContent)")
        return found

    def message(self) -> str:
        return "" if self.run("document.getElementById('message').hidden") else self.text("message")
