"""The rules of axe-core, from the npm registry, on a page that a browser has open."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from jobgen.commands.web.bundle import BundlePart, content, members
from jobgen.errors import JobgenError
from support.browser import Browser
from support.require import absent

AXE = BundlePart(
    "https://registry.npmjs.org/axe-core/-/axe-core-4.14.1.tgz",
    "e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745",
    ("axe.min.js",),
)
WIDTHS = (390, 820, 1440)
SCHEMES = ("light", "dark")
_RUN = """(async () => {
  for (const one of document.querySelectorAll("details, [hidden].help")) one.open = !(one.hidden = false);
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.target.join(" ")).join(", ")}`);
})()"""


@functools.cache
def _source() -> str:
    try:
        return dict(members(content(AXE, None), AXE.members))["axe.min.js"].decode()
    except JobgenError as error:
        absent(f"axe-core cannot be downloaded here: {error}")


def screens(browser: Browser) -> Iterator[tuple[str, int]]:
    """Each width, by day and by night; the browser is that of before at the end."""
    try:
        for scheme in SCHEMES:
            feature = {"name": "prefers-color-scheme", "value": scheme}
            browser.call("Emulation.setEmulatedMedia", features=[feature])
            for width in WIDTHS:
                size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
                browser.call("Emulation.setDeviceMetricsOverride", **size)
                yield scheme, width
    finally:
        browser.call("Emulation.setEmulatedMedia", features=[])
        browser.call("Emulation.clearDeviceMetricsOverride")


def violations(browser: Browser) -> list[str]:
    """What the page violates with all that is folded open: the rules with the elements."""
    if browser.run("typeof axe") == "undefined":
        browser.run(f"{_source()};0")
    found: list[str] = browser.run(_RUN)
    return found


def of_screens(browser: Browser) -> dict[tuple[str, int], list[str]]:
    """The violations of an open page on each screen that has any."""
    found = {screen: violations(browser) for screen in screens(browser)}
    return {screen: rules for screen, rules in found.items() if rules}
