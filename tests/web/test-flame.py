#!/usr/bin/env python3
"""The flame graph page in a real browser: it draws, zooms and searches by key and mouse, asks the network
for nothing, prints no error, and opens 100,000 frames quickly. Prints TAP; needs $CULPRIT and Chromium.
$CULPRIT_SCREENSHOTS names a folder to leave pictures in.
"""
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from cdp import Browser  # noqa: E402

count = failed = 0

STACKS = """\
main;parse;read_[k] 10
main;parse 20
main;work;inner 50
main;work;inner;memcpy 5
main;idle 15
"""

# Pixels of the canvas that are not transparent, and the number of different colours.
PIXELS = """(() => { const c = document.getElementById("graph"), d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
let n = 0; const s = new Set(); for (let i = 0; i < d.length; i += 4) if (d[i + 3]) { n++; s.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); }
return [n, s.size]; })()"""


def ok(condition, name, *seen):
    global count, failed
    count += 1
    failed += not condition
    print(("ok" if condition else "not ok"), count, "-", name, flush=True)
    if not condition:
        print("#", *seen, flush=True)


def text(browser, element):
    return browser.eval(f'document.getElementById("{element}").textContent')


def settle(browser):
    browser.eval("new Promise((done) => setTimeout(done, 260))")


def shot(browser, name):
    folder = os.environ.get("CULPRIT_SCREENSHOTS")
    if folder:
        browser.screenshot(os.path.join(folder, name + ".png"))


def page(folder, name, stacks, *options):
    source, target = folder / (name + ".folded"), folder / (name + ".html")
    source.write_text(stacks)
    subprocess.run([os.environ["CULPRIT"], "flame", "-i", source, "-o", target, *options], check=True,
                   stdout=subprocess.DEVNULL)
    return target.as_uri()


def big_stacks(frames):
    """About that many different call paths, up to 60 deep, as a real service has them."""
    random.seed(7)
    lines, paths = [], [["main"]]
    while len(lines) < frames:
        path = random.choice(paths[-2000:])
        path = path + [f"ns{random.randrange(40)}::function_{random.randrange(4000)}<std::vector<int>>"]
        lines.append(";".join(path) + f" {random.randrange(1, 30)}")
        if len(path) < 60:
            paths.append(path)
    return "\n".join(lines) + "\n"


def test_small(browser, folder):
    url = page(folder, "small", STACKS, "--title", "A <title>")
    browser.open(url)
    settle(browser)
    drawn, colors = browser.eval(PIXELS)
    ok(drawn > 20000 and colors > 6, "the graph is drawn", drawn, colors)
    ok(text(browser, "info") == "100 samples", "the line below the title", text(browser, "info"))
    ok(browser.eval("document.title") == "A <title>", "the title is text", browser.eval("document.title"))
    ok(text(browser, "legend") == "userkernel", "the legend has the kinds that are there", text(browser, "legend"))
    shot(browser, "small")

    browser.eval('document.getElementById("graph").focus()')
    for key in ("ArrowUp", "ArrowUp", "ArrowUp"):
        browser.key(key)
    ok(text(browser, "details").startswith("inner"), "arrows go to the largest callee", text(browser, "details"))
    ok("total 55 samples, 55.00%" in text(browser, "details") and "self 50 samples" in text(browser, "details"),
       "details say samples and shares", text(browser, "details"))
    browser.key("ArrowDown")
    ok(text(browser, "details").startswith("work"), "and back to the caller", text(browser, "details"))
    browser.key("Enter")
    settle(browser)
    ok(text(browser, "path") == "all\u203amain\u203awork", "Enter zooms; the path says where", text(browser, "path"))
    shot(browser, "zoomed")
    browser.key("Escape")
    settle(browser)
    ok(text(browser, "path") == "all\u203amain", "Esc zooms out one step", text(browser, "path"))
    browser.key("Home")
    settle(browser)
    ok(text(browser, "path") == "all", "Home shows everything", text(browser, "path"))
    browser.key("ArrowUp")
    browser.key("ArrowUp")
    browser.key("ArrowLeft")
    ok(text(browser, "details").startswith("parse"), "Left goes to the neighbour", text(browser, "details"))

    browser.key("/")
    for letter in "inner|parse":
        browser.key(letter)
    ok(text(browser, "matched") == "85.00% in 2 frames", "/ searches by regular expression with the matched share",
       text(browser, "matched"))
    browser.key("Enter")
    ok(text(browser, "details").startswith("parse"), "Enter goes to the first match", text(browser, "details"))
    browser.key("n")
    ok(text(browser, "details").startswith("inner"), "n goes to the next match", text(browser, "details"))
    browser.key("N")
    ok(text(browser, "details").startswith("parse"), "N goes back", text(browser, "details"))
    shot(browser, "search")
    browser.key("Escape")
    ok(text(browser, "matched") == "", "Esc clears the search", text(browser, "matched"))
    return url


def test_switches(browser):
    browser.key("b")
    settle(browser)
    ok(browser.eval('document.getElementById("bottomup").getAttribute("aria-pressed")') == "true", "b: bottom-up")
    browser.key("ArrowUp")
    ok(text(browser, "details").startswith("inner") and "50 samples" in text(browser, "details"),
       "bottom-up: the first row are the functions themselves", text(browser, "details"))
    shot(browser, "bottom-up")
    browser.key("b")
    browser.key("i")
    settle(browser)
    ok(browser.eval('document.getElementById("icicle").getAttribute("aria-pressed")') == "true", "i: icicle")
    left, top, width = browser.eval('(() => { const b = document.getElementById("graph").getBoundingClientRect(); return [b.left, b.top, b.width]; })()')
    browser.mouse("mouseMoved", left + width * 0.6, top + 18 * 2 + 9)
    tip = text(browser, "tip")
    ok(not browser.eval('document.getElementById("tip").hidden') and tip.startswith("work") and "55.00%" in tip,
       "the pointer shows a tooltip", tip)
    shot(browser, "tooltip")
    browser.click(left + width * 0.6, top + 18 * 2 + 9)
    settle(browser)
    ok(text(browser, "path").endswith("work"), "a click zooms", text(browser, "path"))
    browser.key("c")
    settle(browser)
    ok(text(browser, "copy") in ("Copied", "Copy name"), "c copies", text(browser, "copy"))
    browser.key("?")
    ok(browser.eval('document.getElementById("keys").open'), "? shows the keys")
    shot(browser, "keys")
    browser.key("Escape")


def test_big(browser, folder):
    url = page(folder, "big", big_stacks(100000))
    browser.open(url)
    settle(browser)
    frames = browser.eval('JSON.parse(document.getElementById("data").textContent).up.length')
    first = browser.eval('performance.getEntriesByName("drawn")[0].startTime')
    ok(frames >= 90000, f"{frames} frames are in the page", frames)
    ok(first is not None, f"drawn {first:.0f} ms after the page was asked for")
    # One frame of panning: the time that drawing takes, without waiting for the display.
    browser.eval('document.getElementById("graph").focus()')
    browser.key("+")
    pan = browser.eval("""(async () => { const c = document.getElementById("graph"), b = c.getBoundingClientRect(), times = [];
        for (let i = 0; i < 40; i++) {
            c.dispatchEvent(new WheelEvent("wheel", {deltaX: 12, deltaY: 0, clientX: b.left + 200, clientY: b.top + 90, bubbles: true, cancelable: true}));
            const start = await new Promise((done) => requestAnimationFrame(() => done(performance.now())));
            await new Promise((done) => { const ch = new MessageChannel(); ch.port1.onmessage = done; ch.port2.postMessage(0); });
            times.push(performance.now() - start);
        }
        times.sort((x, y) => x - y); return times[20]; })()""")
    ok(pan is not None, f"panning: {pan:.1f} ms a frame (median of 40)")
    shot(browser, "big")
    ok(not browser.errors, "no error on the console", browser.errors)
    start = time.monotonic()
    browser.key("b")
    settle(browser)
    ok(text(browser, "details").startswith("Bottom-up"), f"bottom-up of all of it in {time.monotonic() - start - 0.26:.2f} s")
    shot(browser, "big-bottom-up")


def main():
    print("TAP version 13")
    if not Browser.find():
        print("ok 1 - flame graph page # SKIP no Chromium is installed\n1..1")
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        browser = Browser()
        try:
            url = test_small(browser, folder)
            test_switches(browser)
            ok(not browser.errors, "no error on the console", browser.errors)
            ok([u for u in browser.requests if not u.startswith("data:")] == [url], "no request but the page itself", browser.requests)
            test_big(browser, folder)
        finally:
            browser.close()
    print(f"1..{count}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
