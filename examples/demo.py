"""make demo: real clients answer a small survey; what leaves each device, and what is learnt."""

from __future__ import annotations

from pathlib import Path

from deniable.cli.check import describe, in_words
from deniable.client import Client, new_secret
from deniable.survey import Survey, from_batch, to_batch

PEOPLE = [
    ("Ada", {"homepage": "example.com", "browser": "Firefox", "ad_blocker": True}),
    ("Bob", {"homepage": "example.org", "browser": "Safari", "ad_blocker": False}),
    ("Cyd", {}),
]
CROWD = 20_000


def main() -> None:
    survey = Survey.load(Path(__file__).with_name("survey.toml"))
    print(f"{survey!r}: {survey.description}\n")

    print("What leaves each device (Cyd did not answer; nobody can tell):")
    for name, answers in PEOPLE:
        report = Client(survey, secret=new_secret()).answer(answers)
        print(f"  {name}: cohort {report.cohort:2}, {len(bytes(report))} bytes")
        for question, answer in zip(survey.questions, report.answers, strict=True):
            bits = "".join(f"{byte:08b}"[::-1] for byte in answer.slots[0])
            print(f"       {question.name:10} {bits[: question.protocol.mechanisms[0].width]}")

    print(f"\n{CROWD:,} clients answer; 50% use Firefox, 30% Chromium, 20% Safari, 40% block ads.")
    reports = []
    for i in range(CROWD):
        browser = "Firefox" if i % 10 < 5 else "Chromium" if i % 10 < 8 else "Safari"
        answers = {"homepage": "example.com", "browser": browser, "ad_blocker": i % 5 < 2}
        reports.append(Client(survey, secret=new_secret()).answer(answers))
    batch = to_batch(reports)
    received = from_batch(batch, survey)
    print(f"One batch of {len(batch):,} bytes. The server counts bits and removes the known noise:")
    for name in ("browser", "ad_blocker"):
        show(survey, name, [report[name].slots[0] for report in received])

    found = describe(survey)
    print(f"\n{in_words(found['once'], 'Each report')}.")


def show(survey: Survey, name: str, slots: list[bytes]) -> None:
    """Counts of each bit, and the unbiased estimate (count/N − p*)/(q* − p*)."""
    mechanism = survey.question(name).protocol.mechanisms[0]
    p, q = float(mechanism.noise.p_star), float(mechanism.noise.q_star)
    options = getattr(mechanism, "options", ("yes",))
    for i, option in enumerate(options):
        count = sum(slot[i // 8] >> (i % 8) & 1 for slot in slots)
        rate = count / len(slots)
        estimate = (rate - p) / (q - p)
        sd = (rate * (1 - rate) / len(slots)) ** 0.5 / abs(q - p)
        label = f"{name} {option}"
        print(f"  {label:20} {count:7,} ones  ->  {100 * estimate:5.1f}% ± {196 * sd:.1f}")


if __name__ == "__main__":
    main()
