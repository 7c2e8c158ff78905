"""The client: answers, secrets, and a ledger that survives kills and races."""

from __future__ import annotations

import datetime as dt
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from deniable.client import (
    Client,
    Ledger,
    encode_report,
    load_or_create_secret,
    load_secret,
    new_secret,
)
from deniable.client.ledger import Charge
from deniable.errors import (
    BudgetExceeded,
    InputError,
    LedgerError,
    SecretError,
    SurveyExpired,
    SurveyRefused,
)
from deniable.privacy import NANO
from deniable.survey import Survey
from tests.replayed import replayed_client
from tests.surveys import ANY_SURVEY, survey_toml

HEAD = survey_toml(name="s", version="{version}", expires="2099-12-31", collect="{collect}")
SECRET = bytes(range(32))


def survey(
    body: str, collect: str = "once", version: int = 1, budget: float | None = None
) -> Survey:
    head = HEAD.format(collect=collect, version=version)
    return Survey.from_toml(head + (f"budget = {budget}\n" if budget else "") + body)


DARK = '[questions.dark]\nkind = "boolean"\nepsilon = 1.0\n'
WORD = '[questions.word]\nkind = "string"\nepsilon = 2.0\nbits = 32\n'
PREFIX = """[questions.word]
kind = "string"
epsilon = 2.0
[questions.word.dictionary]
protocol = "prefixes"
max_length = 4
alphabet = "a-z"
levels = [2, 4]
"""


# --- answers ----------------------------------------------------------------------------------


def test_fresh_noise_each_time_permanent_noise_kept() -> None:
    s = survey('[questions.w]\nkind = "string"\nf = 0.5\np = 0\nq = 1\n', "repeatedly", budget=9999)
    client = Client(s, secret=SECRET, limits=ANY_SURVEY)
    assert len({bytes(client.answer({"w": "a"})) for _ in range(20)}) == 1
    assert bytes(client.answer({"w": "b"})) != bytes(client.answer({"w": "a"}))
    assert bytes(Client(s, secret=new_secret(), limits=ANY_SURVEY).answer({"w": "a"})) != bytes(
        client.answer({"w": "a"})
    )
    fresh = Client(survey(WORD, budget=9999), secret=SECRET, limits=ANY_SURVEY)
    assert len({bytes(fresh.answer({"word": "a"})) for _ in range(20)}) > 15


def test_a_new_version_draws_no_new_permanent_noise() -> None:
    body = '[questions.w]\nkind = "string"\nf = 0.5\np = 0\nq = 1\n'
    first, second = (
        Client(survey(body, "repeatedly", version=v), secret=SECRET).answer({"w": "a"})
        for v in (1, 2)
    )
    assert first.survey.digest != second.survey.digest
    assert first.answers == second.answers


@pytest.mark.parametrize("scheme", ["rappor-python", "rappor-cpp", "rappor-java"])
def test_surveys_of_google_rappor_are_refused(scheme: str, tmp_path: Path) -> None:
    body = f'[questions.w]\nkind = "string"\nscheme = "{scheme}"\nbits = 32\np = 0.25\nq = 0.75\n'
    asked = survey(body)
    says = f"question 'w' of survey 's' has the scheme {scheme}.*nobody can answer this survey"
    with pytest.raises(SurveyRefused, match=says):
        Client(asked, secret=SECRET)
    with pytest.raises(SurveyRefused, match=says):
        Client.open(asked, tmp_path / "state")
    assert not list(tmp_path.iterdir())
    with pytest.raises(SurveyRefused, match=says):
        Client.for_testing(asked.for_testing())
    with pytest.raises(SurveyRefused, match=says):
        encode_report(asked, {}, secret=SECRET, rand=b"")


@pytest.mark.slow
def test_another_f_draws_independent_permanent_noise() -> None:
    """The same random numbers with two thresholds would reveal the bit; see permanent_prefix."""
    word = "x" * 9
    agree = total = 0
    for i in range(300):
        secret = i.to_bytes(32, "big")
        bits = []
        for f in (0.984375, 0.96875):
            s = survey(
                f'[questions.w]\nkind = "string"\nbits = 32\ncohorts = 1\nf = {f}\np = 0\nq = 1\n',
                "repeatedly",
            )
            out = Client(s, secret=secret).answer({"w": word}).answers[0].slots[0]
            bits.append(int.from_bytes(out, "little"))
        agree += 32 - (bits[0] ^ bits[1]).bit_count()
        total += 32
    # Almost fair coins: 50% agree; a shared stream would agree on 98%. sd 0.51%.
    assert abs(agree / total - 0.5) < 0.025


CHANGES = {
    "an option more": (
        '[questions.w]\nkind = "choice"\noptions = ["red", "blue"]\n',
        '[questions.w]\nkind = "choice"\noptions = ["red", "blue", "green"]\n',
        ["red", "blue", "green", None],
    ),
    "a bit less": (
        '[questions.w]\nkind = "string"\nbits = 128\n',
        '[questions.w]\nkind = "string"\nbits = 127\n',
        ["a", "b", "c", "d", None],
    ),
    "a wider alphabet": (
        *(
            '[questions.w]\nkind = "string"\n{}[questions.w.dictionary]\nprotocol = "prefixes"\n'
            f'max_length = 4\nlevels = [4]\nalphabet = "{alphabet}"\n'
            for alphabet in ("a-z", "a-z0-9")
        ),
        ["abcd", "ab12", "0000", "", None],
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_version_with_another_encoding_charges_every_value_alike(name: str) -> None:
    """If only values with changed bits were charged, the charge would reveal them."""
    *bodies, values = CHANGES[name]
    noise = "f = 0.5\np = 0.25\nq = 0.75\n"
    surveys = [
        survey(
            body.format(noise) if "{}" in body else body + noise,
            "repeatedly", version=version, budget=1000,
        )
        for version, body in enumerate(bodies, 1)
    ]  # fmt: skip
    spent = []
    for value in values:
        ledger = Ledger()
        for s in surveys:
            for _ in range(60):
                Client(s, secret=SECRET, ledger=ledger, limits=ANY_SURVEY).answer({"w": value})
        spent.append(ledger.spent("s"))
    forever = sum(s.loss.in_total for s in surveys)
    assert spent == pytest.approx([forever] * len(values))


def test_only_types_are_checked() -> None:
    s = survey(DARK + WORD)
    for values, says in (
        ({"dark": 1}, "must be a boolean or None .no answer., not int"),
        ({"word": b"x"}, "must be a string or None .no answer., not bytes"),
        ({"wrod": "x"}, 'has no question .wrod.; .* Did you mean "word"'),
    ):
        client = Client(s, secret=SECRET)
        with pytest.raises(InputError, match=says):
            client.answer(values)
        assert client.ledger.spent("s") == 0


def test_expired_survey_is_not_answered() -> None:
    client = Client(survey(DARK), secret=SECRET)
    with pytest.raises(SurveyExpired, match="2099-12-31"):
        client.answer({}, today=dt.date(2100, 1, 1))
    client.answer({}, today=dt.date(2099, 12, 31))


@pytest.mark.parametrize("values", ["x", None, 5, ["dark"], [("dark", True)]])
def test_answers_are_a_mapping(values: Any) -> None:
    client = Client(survey(DARK), secret=SECRET)
    with pytest.raises(InputError, match="answers must be given by question"):
        client.answer(values)
    assert client.ledger.spent("s") == 0


def test_secret_must_be_a_secret() -> None:
    with pytest.raises(SecretError, match="32 bytes, not 5"):
        Client(survey(DARK), secret=b"short")


@pytest.mark.parametrize("collect", ["once", "repeatedly"])
def test_a_client_sends_what_the_documented_function_makes(collect: str) -> None:
    s, values = survey(DARK + WORD, collect), {"dark": True, "word": "a"}
    drawn: list[bytes] = []

    def entropy(size: int) -> bytes:
        drawn.append(os.urandom(size))
        return drawn[-1]

    sent = replayed_client(s, secret=SECRET, entropy=entropy).answer(values)
    (rand,) = drawn
    assert bytes(sent) == bytes(encode_report(s, values, secret=SECRET, rand=rand))
    with pytest.raises(InputError, match="random bytes"):
        encode_report(s, values, secret=SECRET, rand=rand + b"0")


def test_entropy_is_the_operating_systems_and_asked_once() -> None:
    asked: list[int] = []

    def entropy(size: int) -> bytes:
        asked.append(size)
        return os.urandom(size)

    replayed_client(survey(DARK + WORD), secret=SECRET, entropy=entropy).answer({"word": "a"})
    assert len(asked) == 1
    assert Client(survey(DARK), secret=SECRET)._entropy is os.urandom


# --- secrets ----------------------------------------------------------------------------------


def test_secret_is_made_once_and_private(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "secret"
    first = load_or_create_secret(path)
    assert len(first) == 32
    assert load_or_create_secret(path) == first == load_secret(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in path.parent.iterdir()] == ["secret"]


def test_secret_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    load_or_create_secret(path)
    path.chmod(0o644)
    with pytest.raises(SecretError, match="chmod 600"):
        load_secret(path)


def test_damaged_or_missing_secret(tmp_path: Path) -> None:
    with pytest.raises(SecretError, match="cannot read"):
        load_secret(tmp_path / "none")
    path = tmp_path / "secret"
    path.write_bytes(b"x" * 31)
    path.chmod(0o600)
    with pytest.raises(SecretError, match="not 31"):
        load_secret(path)
    with pytest.raises(SecretError, match="not 31"):
        load_or_create_secret(path)


def test_processes_that_race_get_one_secret(tmp_path: Path) -> None:
    code = (
        "import sys; from deniable.client import load_or_create_secret as f;"
        "sys.stdout.write(f(sys.argv[1]).hex())"
    )
    path = str(tmp_path / "secret")
    running = [
        subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE)
        for _ in range(4)
    ]
    (secret,) = {p.communicate()[0] for p in running}
    assert [p.returncode for p in running] == [0] * 4
    assert len(bytes.fromhex(secret.decode())) == 32


def test_threads_that_race_get_one_secret(tmp_path: Path) -> None:
    for i in range(20):
        path = tmp_path / str(i) / "secret"
        with ThreadPoolExecutor(8) as pool:
            assert len(set(pool.map(load_or_create_secret, [path] * 8))) == 1


# --- the ledger -------------------------------------------------------------------------------


def test_one_report_over_all_versions(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.json")
    Client(survey(DARK), secret=SECRET, ledger=ledger).answer({"dark": True})
    for version in (1, 2):
        with pytest.raises(
            BudgetExceeded,
            match=r"already answered survey .s., .*: no report was made. Client.for_testing",
        ) as raised:
            Client(survey(DARK, version=version), secret=SECRET, ledger=ledger).answer({})
        assert raised.value.__suppress_context__, "the amount needed may depend on the value"
    assert ledger.spent("s") == pytest.approx(1.0)


def test_an_unchanging_value_is_charged_up_to_the_total() -> None:
    s = survey(DARK + WORD, "repeatedly")
    client = Client(s, secret=SECRET)
    spent = []
    for _ in range(100):
        client.answer({"dark": True, "word": "a"})
        spent.append(client.ledger.spent("s"))
    assert spent[0] == pytest.approx(s.loss.per_report)
    assert spent == sorted(spent)
    assert spent[-1] == pytest.approx(s.loss.in_total)
    with pytest.raises(BudgetExceeded):
        client.answer({"dark": True, "word": "changed"})
    client.answer({"dark": True, "word": "a"})


def test_a_changed_value_is_charged_anew() -> None:
    client = Client(survey(WORD, "repeatedly", budget=15), secret=SECRET)
    for word in ("a", "b", "c"):
        for _ in range(50):
            client.answer({"word": word})
    assert client.ledger.spent("s") == pytest.approx(6.0)


def test_an_unchanged_prefix_is_not_charged_anew() -> None:
    s = survey(PREFIX, "repeatedly", budget=15)
    secret = next(k for i in range(99) if s.draw(k := i.to_bytes(32, "big"))[1] == ((0,),))
    client = Client(s, secret=secret)
    for word in ("aaaa", "aabb", "aazz"):
        for _ in range(50):
            client.answer({"word": word})
    assert client.ledger.spent("s") == pytest.approx(2.0), "only the first two letters were told"


def test_a_new_secret_is_charged_anew(tmp_path: Path) -> None:
    s = survey(WORD, "repeatedly", budget=3.0)
    folder = tmp_path / "client"
    for _ in range(50):
        Client.open(s, folder).answer({"word": "a"})
    (folder / "secret").unlink()
    for _ in range(20):
        try:
            Client.open(s, folder).answer({"word": "a"})
        except BudgetExceeded:
            break
    else:
        pytest.fail("new noise for the same value must be paid for")
    assert Ledger(folder / "ledger.json").spent("s") <= 3.0


def test_slots_without_permanent_noise_are_charged_every_time() -> None:
    client = Client(survey(WORD, budget=10.0), secret=SECRET)
    for _ in range(5):
        client.answer({"word": "a"})
    assert client.ledger.spent("s") == pytest.approx(10.0)
    with pytest.raises(BudgetExceeded):
        client.answer({"word": "a"})


def test_the_ledger_is_private_and_does_not_contain_the_value(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    s = survey(WORD, "repeatedly")
    Client(s, secret=SECRET, ledger=Ledger(path)).answer({"word": "marker-value"})
    assert path.stat().st_mode & 0o777 == 0o600
    assert "marker" not in path.read_text()
    other = tmp_path / "other.json"
    Client(s, secret=new_secret(), ledger=Ledger(other)).answer({"word": "marker-value"})
    keys = [next(iter(json.loads(p.read_text())["surveys"]["s"])) for p in (path, other)]
    assert keys[0] != keys[1], "fingerprints are keyed with the secret"


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"[]", b'{"format":"deniable-ledger/2","surveys":{}}',
     b'{"format":"deniable-ledger/1","surveys":{"s":{"x":[-1,null]}}}',
     b'{"format":"deniable-ledger/1","surveys":{"s":{"x":[1.5,null]}}}',
     b'{"format":"deniable-ledger/1","surveys":{"s":{"x":[1]}}}',
     b'{"format":"deniable-ledger/1","surveys":{"s":{"x":[5,-100]}}}',
     b'{"format":"deniable-ledger/1","surveys":{"s":{"x":[true,null]}}}',
     b"[" * 100_000,
     b'{"format":"deniable-ledger/1","surveys":{"s"'],
)  # fmt: skip
def test_damaged_ledger_sends_nothing(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "ledger.json"
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="restore the file"):
        Client(survey(DARK), secret=SECRET, ledger=Ledger(path)).answer({"dark": True})
    assert path.read_bytes() == content


def test_refusal_changes_nothing(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.json")
    ledger.charge("s", 10, [Charge("a", 6, None)])
    before = (tmp_path / "ledger.json").read_bytes()
    with pytest.raises(BudgetExceeded):
        ledger.charge("s", 10, [Charge("b", 2, None), Charge("a", 3, None)])
    assert (tmp_path / "ledger.json").read_bytes() == before
    ledger.charge("s", 10, [Charge("b", 4, None)])
    assert ledger.spent("s") == 10 / NANO


def test_the_largest_limit_counts() -> None:
    for limits in ((10, 20), (20, 10)):
        ledger = Ledger()
        for limit in limits:
            ledger.charge("s", 100, [Charge("n", 15, limit)])
        assert ledger.spent("s") == 20 / NANO


def test_threads_together_never_exceed_the_budget() -> None:
    ledger, before = Ledger(), sys.getswitchinterval()

    def spend(_: int) -> int:
        try:
            ledger.charge("s", 100, [Charge("n", 1, None), Charge("m", 1, None)])
        except BudgetExceeded:
            return 0
        return 1

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(spend, range(400))) == 50
    finally:
        sys.setswitchinterval(before)


def test_two_slots_with_one_noise_are_charged_together() -> None:
    ledger = Ledger()
    ledger.charge("s", 100, [Charge("n", 6, 10), Charge("n", 6, 10)])
    assert ledger.spent("s") == 10 / NANO


HAMMER = """
import sys
from deniable.client.ledger import Charge, Ledger
from deniable.errors import BudgetExceeded
from tests.replayed import replayed_client
ledger = Ledger(sys.argv[1])
while True:
    try:
        ledger.charge("s", int(sys.argv[2]), [Charge("n", 1, None)])
    except BudgetExceeded:
        break
    sys.stdout.write("x")
    sys.stdout.flush()
"""


def hammer(path: Path, budget: int) -> subprocess.Popen[bytes]:
    args = [sys.executable, "-c", HAMMER, str(path), str(budget)]
    return subprocess.Popen(args, stdout=subprocess.PIPE)


def test_processes_together_never_exceed_the_budget(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    running = [hammer(path, 120) for _ in range(3)]
    sent = sum(len(p.communicate(timeout=60)[0]) for p in running)
    assert [p.returncode for p in running] == [0] * 3
    assert sent == 120
    assert round(Ledger(path).spent("s") * NANO) == 120


@pytest.mark.slow
def test_killed_at_any_moment_nothing_is_sent_uncharged(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    sent = 0
    for i in range(15):
        process = hammer(path, 10**9)
        assert process.stdout is not None
        process.stdout.read(1)  # started
        time.sleep(0.003 * i)
        process.send_signal(signal.SIGKILL)
        sent += 1 + len(process.communicate()[0])
        paid = round(Ledger(path).spent("s") * NANO)
        # Each kill can leave one charge whose report was never sent.
        assert sent <= paid <= sent + i + 1
    leftovers = {p.name for p in tmp_path.iterdir()}
    assert leftovers <= {"ledger.json", "ledger.json.lock", "ledger.json.tmp"}


def test_written_before_the_report_exists(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    seen: list[Any] = []

    def entropy(size: int) -> bytes:
        seen.append(Ledger(path).spent("s"))
        return os.urandom(size)

    client = replayed_client(survey(DARK), secret=SECRET, ledger=Ledger(path), entropy=entropy)
    client.answer({"dark": True})
    assert seen == [pytest.approx(1.0)]
