"""Wrong input to every command and Python function: one clear message, and nothing left behind.

`CASES` and `CALLS` are tables: a command line or a Python expression, and words of its message. All
run in one folder with files of every kind, good and spoilt, which none of them may change.
"""

from __future__ import annotations

import hashlib
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import deniable
from deniable import store as stores
from deniable.cli.app import app
from deniable.errors import DeniableError

SURVEY = """
name = "pages"
version = 1
owner = "you@example.com"
description = "home page, dark mode, browser and a word"
expires = 2999-12-31
collect = "once"
[questions.homepage]
kind = "string"
epsilon = 3
[questions.dark_mode]
kind = "boolean"
epsilon = 1
[questions.browser]
kind = "choice"
options = ["Firefox", "Chrome", "Safari"]
epsilon = 1
[questions.word]
kind = "string"
epsilon = 3
[questions.word.dictionary]
protocol = "prefixes"
alphabet = "a-z"
max_length = 3
"""
TEXTS = {
    "second.toml": SURVEY.replace("version = 1", "version = 2"),
    "other.toml": SURVEY.partition("[questions.dark")[0].replace("pages", "others"),
    "three-mistakes.toml": 'name = "Pages"\nversion = 0\ncollect = "often"\n',
    "answers.csv": "homepage,dark_mode,browser,word\n" + "a.example,yes,Firefox,abc\n" * 100,
    "candidates.txt": "a.example\nb.example\n",
    "unknown.csv": "homepage,colour\na,b\n",
    "ragged.csv": "homepage,dark_mode,browser,word\na\n",
    "maybe.csv": "homepage,dark_mode,browser,word\na,maybe,,\n",
    "twice.csv": "homepage,homepage\na,b\n",
    "header.csv": "homepage,dark_mode,browser,word\n",
    "quotes.csv": 'homepage,dark_mode,browser,word\n"a,,,\n',
    "letters.csv": "value,weight\na,x\n",
    "negative.csv": "value,weight\na,-1\nb,2\n",
    "nan.csv": "value,weight\na,nan\n",
    "string.csv": "string\na\n",
    "table.csv": "browser,yes,no\nFirefox,0.2,0.3\nChrome,0.4,x\n",
    "list.json": "[1, 2]",
    "deep.json": "[" * 100_000,
    "number.json": '{"homepage": 7}',
    "misspelt.json": '{"hompage": "a"}',
    "keys-bad.json": '{"format": "deniable-keys/1", "keys": 7}',
    "collector.toml": 'port = "http"\n',
    "misspelt.toml": "portt = 7\n",
    "map.csv": "a,1\n",
    "params.csv": "k,h,m,p,q,f\n16,2,8,0.25,0.75,0\n",
}
BYTES = {
    "latin.toml": SURVEY.replace("home page", "caf\xe9").encode("latin-1"),
    "latin.csv": "homepage\ncaf\xe9\n".encode("latin-1"),
    **{f"empty.{ending}": b"" for ending in ("toml", "json", "csv", "txt", "parquet", "dn", "db")},
    **{
        f"binary.{ending}": bytes(range(256)) * 5
        for ending in ("toml", "json", "csv", "txt", "parquet", "dn", "db", "npz")
    },
}
MADE = (
    "check survey.toml -o survey.json",
    "check second.toml -o second.json",
    "check other.toml -o other.json",
    "simulate survey.json --values answers.csv --seed 1 -o reports.parquet",
    "simulate survey.json --values answers.csv --seed 1 -o reports.dn",
    "simulate other.json --population zipf:n=5 --clients 100 --seed 1 -o other.parquet",
    "import reports.db reports.parquet --day 2026-11-01",
    "decode survey.json reports.parquet --question dark_mode -o result.json",
    "associate survey.json reports.parquet --question dark_mode --question browser -o joint.json",
    "count survey.json reports.parquet --question dark_mode --question browser -o counts.npz",
    "keys add phones --role ingest --keys keys.json",
    "answer survey.json homepage=a.example --folder device",
)
CUT = ("reports.parquet", "reports.dn", "reports.db", "counts.npz", "result.json")

SEND = "send http://127.0.0.1:9 --folder device"
DECODE = "decode survey.json reports.parquet --question"
ASSOCIATE = "associate survey.json reports.parquet --question browser --question"
SIMULATE = "simulate survey.json -o out.parquet"
RAPPOR = "rappor import map.csv --client cpp -o new"
PAIR = "--question browser --question dark_mode"
SERVE = "serve survey.json --store new.db"
ANSWER = "answer survey.json --folder new-device"

CASES: list[tuple[str, int, str]] = [
    # the root
    ("chek survey.toml", 2, "no command 'chek'. Did you mean \"check\"?"),
    ("--no-such-option", 2, "No such option"),
    ("completion powershell", 2, "not one of 'bash'"),
    # check
    ("check", 2, "Missing argument 'FILE'"),
    ("check missing.toml", 2, "'missing.toml' does not exist"),
    ("check folder", 2, "'folder' is a directory"),
    ("check loop.json", 2, "'loop.json' does not exist"),
    ("check survey.toml/x", 2, "'survey.toml/x' does not exist"),
    ("check empty.toml", 1, "name: missing"),
    ("check empty.json", 1, "empty.json: this is not a published survey"),
    ("check binary.toml", 1, "binary.toml is not a text file"),
    ("check binary.json", 1, "binary.json: this is not a published survey, because it is not JSON"),
    ("check latin.toml", 1, "latin.toml is not UTF-8 text (line 5)"),
    ("check list.json", 1, "list.json: this is not a published survey: its format must be"),
    ("check deep.json", 1, "deep.json: this is not a published survey"),
    ("check result.json", 1, "result.json: this is not a published survey"),
    ("check reports.parquet", 1, "reports.parquet is not a text file"),
    ("check three-mistakes.toml", 1, "collect (line 3): must be"),
    ("check survey.toml -o survey.txt", 2, "ends in .json; got survey.txt"),
    ("check survey.toml -o missing/survey.json", 2, "folder missing does not exist; create it"),
    ("check survey.toml --clients many", 2, "such as 1000000 or 1e6; got 'many'"),
    # init and plan
    ("init survey.toml --string x --owner a --description b", 1, "survey.toml already exists"),
    ("init new.toml --string x --epsilon nan --owner a --description b", 2, "expected a number"),
    ("init new.toml --string x --epsilon -1 --owner a --description b", 2, "not in the range x>0"),
    ("init new.toml --string x --expires soon --owner a --description b", 2, "as YYYY-MM-DD"),
    ("plan --clients 1000", 2, "give two of --clients, --epsilon and --detect"),
    ("plan --clients 1000 --epsilon nan", 1, "epsilon must be between 0.05 and 12, got nan"),
    ("plan --clients 1000 --epsilon 1e9", 1, "epsilon must be between 0.05 and 12"),
    ("plan --clients 1000 --detect 200%", 2, "a share between 0 and 1"),
    ("plan --clients 2 --detect 0.0001%", 1, "ask more clients"),
    ("plan --clients 1000 --epsilon 1 --unknown --alphabet z-a", 1, "runs backwards: write 'a-z'"),
    ("plan --clients 1000 --epsilon 1 --write survey.toml", 1, "survey.toml already exists"),
    ("plan --clients 1000 --epsilon 1 -o plan.docx", 2, "ends in .csv"),
    # simulate
    (SIMULATE, 2, "give either --values, or --population and --table"),
    (f"{SIMULATE} --values missing.csv", 2, "'missing.csv' does not exist"),
    (f"{SIMULATE} --values empty.csv", 1, "empty.csv is empty: expected a header"),
    (f"{SIMULATE} --values header.csv", 1, "header.csv has a header and no rows"),
    (f"{SIMULATE} --values binary.csv", 1, "binary.csv is not UTF-8 text"),
    (f"{SIMULATE} --values latin.csv", 1, "latin.csv is not UTF-8 text"),
    (f"{SIMULATE} --values unknown.csv", 1, "no question 'colour'"),
    (f"{SIMULATE} --values ragged.csv", 1, "ragged.csv, line 2: expected 4 cells, got 1"),
    (f"{SIMULATE} --values maybe.csv", 1, "maybe.csv, line 2: expected yes, no"),
    (f"{SIMULATE} --values quotes.csv", 1, "quotes.csv, line 2: unexpected end of data"),
    (f"{SIMULATE} --values answers.csv --clients 5", 2, "--clients goes with --population"),
    ("simulate survey.json --values maybe.csv -o reports.parquet", 1, "maybe.csv, line 2"),
    ("simulate survey.json --values answers.csv -o out.csv", 2, "ends in .parquet, .dn"),
    (f"{SIMULATE} --population zipf:n=5 --clients 9", 2, "name the question of population"),
    (f"{SIMULATE} --population homepage=zipf:n=5", 2, "--population needs --clients"),
    (f"{SIMULATE} --population hompage=zipf:n=5 --clients 9", 1, 'Did you mean "homepage"?'),
    (f"{SIMULATE} --population homepage=zip:n=5 --clients 9", 1, 'Did you mean "zipf"?'),
    (f"{SIMULATE} --population homepage=zipf:n=-5 --clients 9", 1, "n must be a whole number"),
    (f"{SIMULATE} --population homepage=zipf:n=1e12 --clients 9", 1, "number from 1 to"),
    (f"{SIMULATE} --population homepage=geometric:p=3 --clients 9", 1, "p must be below 1"),
    (f"{SIMULATE} --population homepage=missing.csv --clients 9", 1, "file or folder missing.csv"),
    (f"{SIMULATE} --population homepage=letters.csv --clients 9", 1, "line 2: expected a number"),
    (f"{SIMULATE} --population homepage=negative.csv --clients 9", 1, "must be finite and at"),
    (f"{SIMULATE} --population homepage=zipf --clients many", 2, "a whole number, got 'many'"),
    (f"{SIMULATE} --table browser=table.csv --clients 9", 2, "expected --table Q1,Q2=FILE.csv"),
    (f"{SIMULATE} --table browser,dark_mode=table.csv --clients 9", 1, "table.csv, line 3"),
    # answer and send
    ("answer missing.json homepage=a --folder new-device", 1, "file or folder missing.json"),
    ("answer homepage=a survey.json --folder new-device", 1, "file or folder homepage=a"),
    ("answer ftp://x/survey homepage=a --folder new-device", 1, "such as https://"),
    ("answer http://127.0.0.1:9/x homepage=a --folder new-device", 1, "Connection refused"),
    (f"{ANSWER} hompage=a", 1, 'Did you mean "homepage"?'),
    (f"{ANSWER} homepage", 1, "expected QUESTION=VALUE, got 'homepage'"),
    (f"{ANSWER} dark_mode=perhaps", 1, "dark_mode: expected yes, no"),
    (f"{ANSWER} homepage=a homepage=b", 1, "answered twice"),
    (f"{ANSWER} --values binary.json", 1, "--values is not a text file"),
    (f"{ANSWER} --values list.json", 1, "expected a JSON object of answers"),
    (f"{ANSWER} --values deep.json", 1, "nested too deeply"),
    (f"{ANSWER} --values number.json", 1, "the answer to question 'homepage' must be a string"),
    (f"{ANSWER} --values misspelt.json", 1, 'Did you mean "homepage"?'),
    (f"{ANSWER} --digest 00 homepage=a", 1, "the digest must have 32 hexadecimal digits"),
    ("answer survey.json homepage=a --folder survey.json/x", 3, "secret survey.json/x/secret"),
    ("answer survey.json homepage=a --folder device", 3, "has already answered survey 'pages'"),
    ("send http://127.0.0.1:9 --folder missing", 1, "no outbox in missing: queue a report"),
    ("send 127.0.0.1:8080 --folder device", 1, "such as https://collector.example"),
    ("send http://a..b --folder device", 1, "such as https://collector.example"),
    (f"{SEND} --survey pagess", 1, "no outbox of pagess"),
    (f"{SEND} --token-file binary.txt", 1, "--token-file is not a text file"),
    (f"{SEND} --wait nan", 2, "expected a number, got 'nan'"),
    # decode
    ("decode survey.json", 2, "Missing argument 'REPORTS...'"),
    ("decode survey.json reports.parquet browser", 2, "with an option: --question browser"),
    ("decode reports.db survey.json", 1, "expected a survey before the reports, got reports.db"),
    ("decode reports.parquet survey.json", 1, "expected a survey before the reports"),
    ("decode survey.json reports.parquet", 2, "choose one of the questions homepage, dark_mode"),
    (f"{DECODE} brower", 1, 'Did you mean "browser"?'),
    (f"{DECODE} homepage", 1, "pass the candidates"),
    (f"{DECODE} homepage --candidates missing.txt", 2, "'missing.txt' does not exist"),
    (f"{DECODE} homepage --candidates empty.txt", 1, "empty.txt is empty: expected one string"),
    (f"{DECODE} homepage --candidates binary.txt", 1, "binary.txt is not a text file"),
    (f"{DECODE} homepage --candidates string.csv", 1, "expected a column 'value', found string"),
    (f"{DECODE} homepage --candidates list.json", 1, "list.json: this is not a result"),
    (f"{DECODE} homepage --candidates deep.json", 1, "deep.json"),
    (f"{DECODE} homepage --candidates survey.json", 1, "survey.json: "),
    (f"{DECODE} homepage --candidates joint.json", 1, "a result of decode or discover"),
    (f"{DECODE} browser --alpha nan", 2, "expected a number, got 'nan'"),
    (f"{DECODE} browser --correction bonferoni", 2, "'bonferoni' is not one of 'holm'"),
    (f"{DECODE} browser --executor thread", 1, 'Did you mean "threads"?'),
    (f"{DECODE} browser --executor threads:0", 1, "workers must be at least 1"),
    (f"{DECODE} browser -o missing/x.csv", 2, "the folder missing does not exist"),
    (f"{DECODE} browser --since 2026-11-01", 1, "need one store"),
    (f"{DECODE} browser --by fortnight", 2, "not one of 'day', 'week'"),
    (f"{DECODE} browser --where browser", 2, "expected --where QUESTION=ANSWER"),
    ("decode survey.json reports.db --question browser --since 2027-13-01", 2, "as YYYY-MM-DD"),
    ("decode survey.json reports.db --question browser --since 2030-01-01", 1, "no reports of"),
    ("decode survey.json missing.parquet --question browser", 1, "file or folder missing.parquet"),
    ("decode survey.json survey.json --question browser", 1, "is not a file of reports"),
    ("decode survey.json answers.csv --question browser", 1, "is not a file of reports"),
    ("decode survey.json folder --question browser", 1, "folder has no files of reports"),
    ("decode survey.json '' --question browser", 1, "name of a file of reports is empty"),
    ("decode survey.json loop.parquet --question browser", 1, "loop.parquet"),
    ("decode survey.json empty.parquet --question browser", 1, "empty.parquet"),
    ("decode survey.json empty.db --question browser", 1, "empty.db is empty, not a store"),
    ("decode survey.json binary.parquet --question browser", 1, "binary.parquet"),
    ("decode survey.json binary.dn --question browser", 1, "binary.dn"),
    ("decode survey.json binary.db --question browser", 1, "binary.db is not a store"),
    ("decode survey.json foreign.db --question browser", 1, "a database of another program"),
    ("decode survey.json foreign.parquet --question browser", 1, "foreign.parquet: the table has"),
    ("decode survey.json cut-reports.parquet --question browser", 1, "cut-reports.parquet"),
    ("decode survey.json cut-reports.dn --question browser", 1, "the file was truncated"),
    ("decode survey.json cut-reports.db --question browser", 1, "damaged"),
    ("decode survey.json missing.db --question browser", 1, "there is no store missing.db"),
    ("decode survey.json sqlite:// --question browser", 1, "expected sqlite:///FILE.db"),
    ("decode survey.json postgresql://127.0.0.1:9/x --question browser", 4, "cannot connect to"),
    (
        "decode survey.json mysql://x/y --question browser",
        1,
        "is not a store: expected FILE.db, sqlite",
    ),
    ("decode survey.json other.parquet --question browser", 1, "survey others version 1"),
    ("decode second.json reports.parquet --question browser", 1, "expected survey pages version 2"),
    ("decode second.json reports.db --question browser", 1, "it has pages v1"),
    ("decode pagess reports.db --question browser", 1, 'Did you mean "pages"?'),
    ("decode pages@7 reports.db --question browser", 1, "which has pages@1"),
    ("decode pages reports.parquet --question browser", 1, "there is no survey file pages"),
    ("decode survey.json reports.dn reports.dn --question browser", 1, "reports.dn is given twice"),
    # associate, discover and count
    ("associate survey.json reports.parquet --question browser", 2, "at least two questions"),
    (f"{ASSOCIATE} browser", 1, "different questions"),
    (f"{ASSOCIATE} homepage", 1, "pass the candidates"),
    (f"{ASSOCIATE} homepage --candidates candidates.txt", 2, "expected --candidates QUESTION=FILE"),
    (f"{ASSOCIATE} homepage --candidates homepage=missing.txt", 2, "'missing.txt' does not exist"),
    (f"{ASSOCIATE} homepage --candidates homepage=folder", 2, "'folder' is a directory"),
    (f"{ASSOCIATE} dark_mode --candidates browser=candidates.txt", 1, "whose options are known"),
    (f"associate survey.json counts.npz {PAIR}", 1, "not of dark_mode × browser of"),
    (f"associate survey.json cut-counts.npz {PAIR}", 1, "cut-counts.npz does not hold counts"),
    (f"associate survey.json binary.npz {PAIR}", 1, "binary.npz does not hold counts"),
    (
        "associate survey.json counts.npz --question dark_mode --question browser --test lrt",
        1,
        "needs the reports",
    ),
    ("decode survey.json counts.npz --question browser", 1, "counts.npz is not a file of reports"),
    ("discover survey.json reports.parquet --question browser", 1, "has no dictionary"),
    ("discover survey.json reports.parquet --accept [", 1, "not a valid regular expression"),
    ("discover survey.json reports.parquet --words nan.csv", 1, "expected a positive number"),
    ("discover survey.json reports.parquet --reading paper", 1, 'need protocol "ngrams"'),
    ("count survey.json reports.parquet -o out.npz", 1, "two different questions"),
    (f"count survey.json reports.parquet {PAIR} -o out.csv", 2, "ends in .npz"),
    # report
    ("report survey.json", 2, "Missing option '-o'"),
    ("report survey.json -o out.html", 1, "survey.json: this is not a result"),
    ("report missing.json -o out.html", 2, "'missing.json' does not exist"),
    ("report cut-result.json -o out.html", 1, "cut-result.json: this is not a result"),
    ("report deep.json -o out.html", 1, "deep.json"),
    ("report reports.parquet -o out.html", 1, "reports.parquet is not a text file"),
    ("report result.json --survey binary.toml -o out.html", 1, "binary.toml is not a text file"),
    # stores
    ("store status missing.db", 1, "there is no store missing.db"),
    ("store status survey.json", 1, "survey.json is not a store"),
    ("store status empty.db", 1, "empty.db is empty, not a store"),
    ("store status foreign.db", 1, "a database of another program"),
    ("store check cut-reports.db", 1, "damaged"),
    ("store backup reports.db reports.db", 1, "expected an empty store"),
    ("store backup reports.db missing/x.db", 1, "there is no folder missing"),
    ("store backup reports.db folder", 1, "folder is not a store"),
    ("store delete reports.db pages", 1, "delete 100 reports of pages v1, received on 2026-11-01?"),
    ("store delete reports.db pagess --yes", 1, 'Did you mean "pages"?'),
    ("store delete reports.db pages --before soon --yes", 2, "as YYYY-MM-DD"),
    ("import new.db missing.parquet", 1, "file or folder missing.parquet"),
    ("import new.db survey.json", 1, "survey.json is not a file of reports"),
    ("import new.db binary.parquet", 1, "binary.parquet"),
    ("import new.db foreign.parquet", 1, "foreign.parquet: the table has"),
    ("import new.db cut-reports.dn --survey survey.json", 1, "the file was truncated"),
    ("import new.db reports.dn", 1, "reports.dn does not contain its survey"),
    ("import new.db reports.dn --survey other.json", 1, "reports.dn"),
    ("import new.db reports.parquet --survey other.json", 1, "expected survey others version 1"),
    ("import new.db missing.db", 1, "there is no store missing.db"),
    ("import new-store binary.parquet", 1, "binary.parquet"),
    ("import missing/new.db reports.parquet", 1, "there is no folder missing"),
    ("import reports.parquet reports.db", 1, "reports.parquet is not a store"),
    ("import foreign.db reports.parquet", 1, "a database of another program"),
    ("import reports.db reports.db", 1, "which would be counted twice"),
    ("export reports.db pagess out.parquet", 1, 'Did you mean "pages"?'),
    ("export pages reports.db out.parquet", 1, "pages is not a store"),
    ("export reports.db pages out.csv", 2, "ends in .parquet, .dn"),
    ("export reports.db pages out.parquet --since 2030-01-01", 1, "has no reports"),
    ("compact missing.db", 1, "there is no store missing.db"),
    # serve and keys
    ("serve --store new.db", 1, "there is no survey to collect"),
    ("serve survey.json", 1, "there is no store: give one"),
    ("serve binary.json --store new.db --port 0", 1, "port"),
    ("serve missing.json --store new.db", 2, "'missing.json' does not exist"),
    (f"{SERVE} --port 80000", 1, "port to be at most 65535, got 80000"),
    (f"{SERVE} --port http", 2, "'http' is not a valid integer"),
    (f"{SERVE} --host 256.1.1.1", 1, "cannot listen on 256.1.1.1"),
    (f"{SERVE} --config collector.toml", 1, "collector.toml: port: expected a whole number"),
    (f"{SERVE} --config misspelt.toml", 1, 'Did you mean "port"?'),
    (f"{SERVE} --config binary.toml", 1, "binary.toml is not a text file"),
    (f"{SERVE} --cors nonsense", 1, "an origin such as https://"),
    (f"{SERVE} --max-body 0", 1, "max_body to be 1 or more"),
    (f"{SERVE} --require-key", 1, "require_key needs keys"),
    ("keys list --keys keys-bad.json", 1, "keys-bad.json is not a key file"),
    ("keys list --keys deep.json", 1, "nested too deeply"),
    ("keys add phones --role ingest --keys keys.json", 1, "already has a key 'phones'"),
    ("keys add x --role admin --keys keys.json", 2, "'admin' is not one of 'ingest'"),
    ("keys add x --role ingest --keys missing/keys.json", 1, "there is no folder missing"),
    ("keys add x --role ingest --keys survey.toml", 1, "the key file survey.toml is not JSON"),
    ("keys remove phone --keys keys.json", 1, 'Did you mean "phones"?'),
    ("keys remove x --keys missing.json", 1, "there is no key file missing.json"),
    # other commands
    ("ledger missing", 1, "missing"),
    (f"{RAPPOR} --params empty.csv --map map.csv", 1, "empty.csv"),
    (f"{RAPPOR} --params params.csv --map map.csv", 1, "map.csv, line 1"),
    ("conformance -- no-such-program", 1, "cannot run 'no-such-program'"),
    ("conformance --vectors report -- cat", 2, 'Did you mean "reports"?'),
]

S = "Survey.load('survey.json')"
CALLS: list[tuple[str, str]] = [
    ("Survey.load('list.json')", "list.json: this is not a published survey"),
    ("Survey.load('binary.toml')", "binary.toml is not a text file"),
    ("Survey.from_toml('name = ')", "not valid TOML"),
    ("Survey.from_json(b'null')", "not a published survey"),
    ('Survey.from_json(b\'{"format": "deniable-survey/1"}\')', "it has no 'expires'"),
    (f"{S}.question('brower')", 'Did you mean "browser"?'),
    (f"Client.open({S}, 'survey.json/x')", "cannot create the secret survey.json/x/secret"),
    (f"Client({S}, secret=b'short')", "the secret must have 32 bytes"),
    (f"Client({S}, secret=bytes(32)).answer({{'hompage': 'a'}})", 'Did you mean "homepage"?'),
    (f"Client({S}, secret=bytes(32)).answer({{'homepage': 7}})", "must be a string or None"),
    (f"Client({S}, secret=bytes(32)).send('http://127.0.0.1:9')", "this client has no outbox"),
    (
        f"simulate({S}, {{'hompage': ['a']}}, rng=rng)",
        'Did you mean "homepage"?',
    ),
    (f"decode({S}, 'reports.parquet', 'brower')", 'Did you mean "browser"?'),
    (f"decode({S}, 'reports.parquet', 'homepage')", "pass the candidates"),
    (f"decode({S}, 'reports.parquet', 'browser', alpha=2)", "alpha must lie strictly between"),
    (f"decode({S}, 'binary.parquet', 'browser')", "binary.parquet"),
    (f"decode({S}, [], 'browser')", "there are no reports"),
    (f"decode({S}, 7, 'browser')", "got int"),
    (f"decode({S}, ['reports.dn', './reports.dn'], 'browser')", "is given twice"),
    (f"associate({S}, 'reports.parquet', ['browser'])", "two or more different questions"),
    (f"discover({S}, 'reports.parquet', 'browser')", "has no dictionary"),
    (f"discover({S}, 'reports.parquet', 'word', accept='[')", "not a valid regular expression"),
    ("Stored('reports.db', since=date(2027, 2, 1), until=date(2027, 1, 1))", "must not be after"),
    ("plan(clients=1000)", "two of"),
    ("plan(clients=1000, epsilon=float('nan'))", "epsilon must be between"),
    ("stores.open('foreign.db')", "a database of another program"),
    ("stores.open('survey.json')", "survey.json is not a store"),
    ("deniable.columns.read('binary.dn', survey=Survey.load('survey.json'))", "binary.dn"),
    ("deniable.results.Result.from_json('7')", "not a result of deniable"),
    ("deniable.simulation.zipf(0)", "n must be a whole number from 1 to 10,000,000, not 0"),
    ('decode("survey.toml", "reports.parquet", "browser", alpha="x")', "alpha must be a number"),
    (
        'decode("survey.toml", "reports.parquet", "browser", reports_per_client="3")',
        "reports_per_client must be a number, not '3'",
    ),
    ('discover("survey.toml", "reports.parquet", "word", alpha=None)', "alpha must be a number"),
    (
        'discover("survey.toml", "reports.parquet", "word", accept=5)',
        "5 is not a valid regular",
    ),
    (
        'associate("survey.toml", "reports.parquet", ["browser", "word"], candidates=["abc"])',
        "candidates must be lists by question, not list",
    ),
    ('plan(clients="100", epsilon=2)', "clients must be a number, not '100'"),
    ('plan(clients=100, epsilon="2")', "epsilon must be a number, not '2'"),
    ("Survey.load(7)", "path must be a path, as text or pathlib.Path, not 7"),
    ("Survey.load(None)", "path must be a path"),
    ('Survey.from_toml(b"name = 1")', "must be text, not bytes"),
    ("Survey.from_json(5)", "this is not a published survey"),
    ('Client.open("survey.toml", None)', "folder must be a path"),
    ('Client.open("survey.toml", "device").send(5)', "the address must be one such as https"),
    ('deniable.simulation.zipf("5")', "n must be a whole number"),
    ('deniable.simulation.Population(("a", "b"), ["x", "y"])', "weights must consist of numbers"),
    ("deniable.simulation.contingency([[1], [2, 3]], a=[1, 2], b=[1, 2])", "rows of equal length"),
    ('deniable.simulation.Population(("a",), [1]).draw(-1)', "clients must be at least 0"),
    ('deniable.simulation.Population(("a",), [1]).draw("5")', "clients must be a number"),
    ('deniable.simulation.zipf(5, "x")', "s must be a number"),
]


def contents(folder: Path) -> dict[str, str]:
    """Return a digest of every file in a folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    } | {str(path.relative_to(folder)): "" for path in folder.rglob("*") if path.is_dir()}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with good and spoilt files of every kind."""
    import sqlite3

    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = tmp_path_factory.mktemp("wrong")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, text in {"survey.toml": SURVEY, **TEXTS}.items():
            Path(name).write_text(text)
        for name, data in BYTES.items():
            Path(name).write_bytes(data)
        for line in MADE:
            done = CliRunner().invoke(app, shlex.split(line))
            assert done.exit_code == 0, f"{line}: {done.output}"
        for name in CUT:
            data = Path(name).read_bytes()
            Path(f"cut-{name}").write_bytes(data[: len(data) * 2 // 3])
        Path("folder").mkdir()
        for name in ("loop.json", "loop.parquet"):
            Path(name).symlink_to(name)
        with sqlite3.connect("foreign.db") as database:
            database.execute("CREATE TABLE t (x)")
        database.close()
        pq.write_table(pa.table({"x": [1, 2]}), "foreign.parquet")
    return folder


@pytest.fixture
def untouched(files: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Work in the folder; afterwards it has the same files with the same contents."""
    monkeypatch.chdir(files)
    before = contents(files)
    yield files
    after = contents(files)
    for name in sorted(after.keys() - before.keys()):  # so that one failure does not cause others
        shutil.rmtree(name, ignore_errors=True)
        Path(name).unlink(missing_ok=True)
    assert after == before, "files were left behind or changed"


def check_message(text: str, words: str) -> None:
    assert words in text
    for never in ("Traceback", "object at 0x", "<Survey", "<PairCounts", "[Errno", "codec can't"):
        assert never not in text


@pytest.mark.parametrize(("line", "code", "words"), CASES, ids=[line for line, *_ in CASES])
def test_commands(line: str, code: int, words: str, untouched: Path) -> None:
    done = CliRunner().invoke(app, shlex.split(line), prog_name="deniable")
    assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
    assert done.exit_code == code, done.output
    check_message(done.output, words)


@pytest.mark.parametrize(("call", "words"), CALLS, ids=[call for call, _ in CALLS])
def test_python(call: str, words: str, untouched: Path) -> None:
    names: dict[str, Any] = {
        "deniable": deniable,
        "stores": stores,
        "date": date,
        "rng": np.random.default_rng(1),
    }
    names |= {name: getattr(deniable, name) for name in deniable.__all__}
    with pytest.raises(DeniableError) as caught:
        eval(call, names)
    check_message(str(caught.value), words)


def test_every_command_is_in_the_table() -> None:
    from deniable.cli.app import MODULES

    assert {line.split()[0] for line, *_ in CASES} >= MODULES.keys()


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    "kind, variable, meant, command",
    [
        ("error", "DENIABLE_PROT", "DENIABLE_PORT", ["serve", "survey.json"]),
        ("warning", "DENIABLE_TOKN", "DENIABLE_TOKEN", ["send", "http://127.0.0.1:1"]),
    ],
)
def test_an_unknown_variable_is_named(
    kind: str,
    variable: str,
    meant: str,
    command: list[str],
    untouched: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(variable, "8081")
    done = CliRunner().invoke(app, command)
    says = f'{kind}: {variable} is not a setting. Did you mean "{meant}"?'
    assert says in done.output


@pytest.mark.slow
def test_a_reader_that_stops_early_is_no_error(files: Path) -> None:
    """`deniable … | head -1`, in processes."""
    command = f"{sys.executable} -m deniable {DECODE} browser --json | head -1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], cwd=files, capture_output=True, text=True
    )
    assert done.stdout == "{" + done.stdout[1:] and done.stderr == ""


@pytest.mark.slow
def test_a_full_disk_is_named(files: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    command = [sys.executable, "-m", "deniable", "check", "survey.toml"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, cwd=files, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    check_message(done.stderr, "No space left on device")
