# SPDX-License-Identifier: BSD-3-Clause
"""A real browser without a screen: Chromium, by the protocol that its driver speaks."""
import base64
import http.client
import json
import os
import re
import shutil
import subprocess
import time

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
ELEMENT = "element-6066-11e4-a52e-4f735466cecf" # what the protocol calls a reference to one


class Browser:
    def __init__(self):
        self.driver = subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE, text=True,
                                       stderr=subprocess.DEVNULL, start_new_session=True)
        for line in self.driver.stdout:
            if found := re.search(r"successfully on port (\d+)", line):
                self.port = int(found[1])
                break
        options = {"binary": CHROMIUM, "args": [
            "--headless=new", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage",
            *(["--no-sandbox"] if os.geteuid() == 0 else [])]}
        self.path = ""
        answer = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.path = f"/session/{answer['sessionId']}"

    def ask(self, method, path, body=None):
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        link.request(method, self.path + path, json.dumps(body) if body is not None else None)
        answer = json.loads(link.getresponse().read())["value"]
        link.close()
        if isinstance(answer, dict) and "error" in answer:
            raise AssertionError(f"{path}: {answer['message']}")
        return answer

    def close(self):
        try:
            self.ask("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait(30)
            self.driver.stdout.close()

    def devtools(self, command, **params):
        return self.ask("POST", "/goog/cdp/execute", {"cmd": command, "params": params})

    def open(self, path, width=1200, height=900, scheme="light"):
        self.resize(width, height)
        self.devtools("Emulation.setEmulatedMedia",
                      features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.ask("POST", "/url", {"url": path.resolve().as_uri()})

    def resize(self, width, height):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height,
                      deviceScaleFactor=1, mobile=width < 600)

    def js(self, script, *args):
        """The value of an expression, in which the arguments are $[0] and so on."""
        return self.ask("POST", "/execute/sync", {"script": f"const $ = arguments; return {script}",
                                                  "args": list(args)})

    def wait_for(self, condition, seconds=30):
        """Until an expression is true: some things come after the click that causes them."""
        deadline = time.monotonic() + seconds
        while not self.js(condition):
            if time.monotonic() > deadline:
                raise AssertionError(f"never true: {condition}")
            time.sleep(0.02)

    def find(self, selector):
        answer = self.ask("POST", "/element", {"using": "css selector", "value": selector})
        return answer[ELEMENT]

    def click(self, selector):
        self.ask("POST", f"/element/{self.find(selector)}/click", {})

    def type(self, selector, keys):
        self.ask("POST", f"/element/{self.find(selector)}/value", {"text": keys})

    def choose(self, selector, value):
        self.click(f'{selector} option[value="{value}"]')

    def point_at(self, selector, x, y):
        """Move the mouse to a place within an element, from its left upper corner."""
        left, top = self.js("(b => [b.left, b.top])(document.querySelector($[0])"
                            ".getBoundingClientRect())", selector)
        self.devtools("Input.dispatchMouseEvent", type="mouseMoved", x=left + x, y=top + y)

    def complaints(self):
        """What the console has got since the last call."""
        return [line["message"] for line in self.ask("POST", "/se/log", {"type": "browser"})]

    def picture(self, path, width):
        """The whole page, as high as it is."""
        self.resize(width, self.js("document.documentElement.scrollHeight"))
        path.write_bytes(base64.b64decode(self.ask("GET", "/screenshot")))
