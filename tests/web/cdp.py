"""A headless Chromium driven over its DevTools protocol, with the standard library alone.

browser = Browser()            # None from Browser.find() when no Chromium is installed
browser.open("file:///...")    # waits for the load event
browser.eval("1 + 1")          # the value of an expression
browser.key("Enter")           # a real key press
browser.requests, browser.errors: URLs fetched, messages and exceptions of the console
"""
import base64
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request

NAMED_KEYS = {"Enter": ("\r", 13), "Escape": ("", 27), "Home": ("", 36), "ArrowLeft": ("", 37), "ArrowUp": ("", 38),
              "ArrowRight": ("", 39), "ArrowDown": ("", 40), "Tab": ("", 9)}


class Browser:
    @staticmethod
    def find():
        return next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)

    def __init__(self, width=1400, height=800, dark=False):
        self.profile = tempfile.mkdtemp(prefix="culprit-web.")
        arguments = [self.find(), "--headless=new", "--disable-gpu", "--no-first-run", "--disable-extensions",
                     "--hide-scrollbars", f"--window-size={width},{height}", f"--user-data-dir={self.profile}",
                     "--remote-debugging-port=0", "about:blank"]
        if os.geteuid() == 0:
            arguments.insert(1, "--no-sandbox")  # Chromium refuses to start as root otherwise
        if dark:
            arguments.insert(1, "--force-dark-mode")
        self.process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        start_new_session=True)
        self.requests, self.errors, self.loaded, self.last_id = [], [], False, 0
        try:
            self.connect()
        except Exception:
            self.close()
            raise

    def connect(self):
        port_file = os.path.join(self.profile, "DevToolsActivePort")
        deadline = time.monotonic() + 30
        while not os.path.exists(port_file) or not open(port_file).read().strip():
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise RuntimeError("Chromium did not start")
            time.sleep(0.05)
        port = int(open(port_file).read().split()[0])
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=10) as answer:
            page = next(target for target in json.load(answer) if target["type"] == "page")
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        path = page["webSocketDebuggerUrl"].split(str(port), 1)[1]
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        self.stream = self.socket.makefile("rb")
        while self.stream.readline().strip():
            pass
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        size = bytes([0x80 | len(data)]) if len(data) < 126 else (
            struct.pack(">BH", 0x80 | 126, len(data)) if len(data) < 65536 else struct.pack(">BQ", 0x80 | 127, len(data)))
        self.socket.sendall(b"\x81" + size + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(data)))

    def receive(self):
        text = b""
        while True:
            first, size = self.stream.read(2)
            size &= 0x7f
            if size == 126:
                size, = struct.unpack(">H", self.stream.read(2))
            elif size == 127:
                size, = struct.unpack(">Q", self.stream.read(8))
            text += self.stream.read(size)
            if first & 0x80:
                return json.loads(text)

    def note(self, message):
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.errors.append(str(parameters["exceptionDetails"].get("exception", parameters["exceptionDetails"])))
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning"):
            self.errors.append(str(parameters["args"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.errors.append(parameters["entry"]["text"])
        elif method == "Page.loadEventFired":
            self.loaded = True

    def call(self, method, **parameters):
        self.last_id += 1
        self.send(json.dumps({"id": self.last_id, "method": method, "params": parameters}))
        while True:
            message = self.receive()
            if message.get("id") == self.last_id:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.note(message)

    def open(self, url):
        self.requests, self.errors, self.loaded = [], [], False
        self.call("Page.navigate", url=url)
        while not self.loaded:
            self.note(self.receive())

    def eval(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def key(self, key):
        text, code = NAMED_KEYS.get(key, (key, ord(key[0].upper())))
        event = {"key": key, "windowsVirtualKeyCode": code, "text": text} if text else {"key": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", **event)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)
