"""The client where nothing at all is installed, pytest included: plain unittest."""

import subprocess
import sys
import tempfile
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import deniable
from deniable.client import Client, Sender, fetch_survey, load_or_create_secret
from deniable.conformance import FILES, cases
from deniable.errors import BudgetExceeded, WireError
from deniable.survey import from_batch, from_bytes, to_batch

SURVEY = """
name = "bare"
version = 1
owner = "tests"
description = "all kinds of questions"
expires = 2099-12-31
collect = "repeatedly"
[questions.page]
kind = "string"
epsilon = 3.0
[questions.page.dictionary]
protocol = "ngrams"
max_length = 6
alphabet = "a-z"
[questions.tag]
kind = "string"
epsilon = 1.0
[questions.tag.dictionary]
protocol = "prefixes"
max_length = 4
alphabet = "bytes"
[questions.theme]
kind = "choice"
options = ["light", "dark"]
epsilon = 1.0
[questions.ads]
kind = "boolean"
epsilon = 1.0
"""


class Bare(unittest.TestCase):
    def test_nothing_else_is_here(self) -> None:
        for name in ("numpy", "click", "rich", "pytest"):
            with self.assertRaises(ImportError, msg=name):
                __import__(name)

    def test_only_the_standard_library_is_imported(self) -> None:
        foreign = {m.split(".")[0] for m in sys.modules} - sys.stdlib_module_names
        foreign = {m for m in foreign if not m.startswith("_")}
        self.assertLessEqual(foreign, {"deniable", "tests", "test_bare", "sitecustomize"})

    def test_a_whole_life(self) -> None:
        survey = deniable.Survey.from_toml(SURVEY)
        with tempfile.TemporaryDirectory() as folder:
            survey.publish(Path(folder) / "survey.json")
            loaded = deniable.Survey.load(Path(folder) / "survey.json")
            self.assertEqual(loaded, survey)
            client = Client.open(loaded, Path(folder) / "client")
            answers = {"page": "a", "tag": "é", "theme": "dark", "ads": True}
            reports = [client.answer(answers) for _ in range(30)]
            self.assertEqual(from_bytes(bytes(reports[0]), survey), reports[0])
            self.assertEqual(from_batch(to_batch(reports), survey), reports)
            with self.assertRaises(WireError):
                from_bytes(bytes(reports[0])[:-1], survey)
            with self.assertRaises(BudgetExceeded):
                client.answer({"page": "b", "tag": "x", "theme": "light", "ads": False})
            self.assertEqual(len(load_or_create_secret(Path(folder) / "client" / "secret")), 32)

    def test_queue_and_send(self) -> None:
        survey = deniable.Survey.from_toml(SURVEY)
        kept: dict[str, bytes] = {}

        class Collector(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(survey.canonical + b"\n")

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                first = not kept
                kept[self.headers["Idempotency-Key"]] = body
                self.send_response(503 if first else 202)  # the first answer hides that it is kept
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
        threading.Thread(target=server.serve_forever).start()
        url = f"http://127.0.0.1:{server.server_port}"
        try:
            with tempfile.TemporaryDirectory() as folder:
                found = fetch_survey(f"{url}/v1/surveys/bare", digest=survey.digest.hex())
                client = Client.open(found, folder)
                made = {bytes(client.answer_and_queue({"ads": True})) for _ in range(3)}
                self.assertEqual(client.send(url).waiting, 3)
                Sender(client.outbox, url).send(now=True)
                self.assertEqual(set(kept.values()), made)
                self.assertEqual(len(kept), 3)
                self.assertEqual(client.outbox.counts().accepted, 3)
        finally:
            server.shutdown()
            server.server_close()

    def test_vectors_are_in_the_package(self) -> None:
        self.assertEqual({case.file for case in cases()}, set(FILES))

    def test_command_says_how_to_get_it(self) -> None:
        command = [sys.executable, "-c", "from deniable.cli import main; main()"]
        got = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(got.returncode, 1)
        self.assertIn("pip install 'deniable[cli]'", got.stderr)


if __name__ == "__main__":
    unittest.main()
