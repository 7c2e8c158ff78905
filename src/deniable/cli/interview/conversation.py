"""A conversation in a terminal: each answer is checked at once, and kept until the end.

The answers are written to a file as they are typed. If the conversation is cut short, the next one
takes them from there, checks them again and goes on after the last.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import click

from deniable.cli.output import echo
from deniable.client.files import replace_private
from deniable.errors import DeniableError

T = TypeVar("T")
WIDTH = 79


@dataclass(frozen=True)
class PromptStep(Generic[T]):
    """Something to ask for.

    Parameters
    ----------
    key : str
        Name of the answer in the file of unfinished answers.
    prompt : str
        What the person sees before the cursor.
    parse : callable
        Returns the value of a typed answer; raises DeniableError, saying what is wrong.
    explanation : str, default ""
        Printed above the prompt.
    default : str or None, default None
        Answer if nothing is typed; None if something must be.
    suggest : callable, optional
        Returns an answer like the wrong one that was typed, or an empty string.
    confirm : callable, optional
        Returns how the answer was understood, to be printed below it.
    prompt_again : str, default ""
        Prompt before a suggestion; by default the same.
    """

    key: str
    prompt: str
    parse: Callable[[str], T]
    explanation: str = ""
    default: str | None = None
    suggest: Callable[[str], str] = lambda _: ""
    confirm: Callable[[T], str] = lambda _: ""
    prompt_again: str = ""


class Conversation:
    """Asks for one thing after another, and keeps the answers in a file.

    Parameters
    ----------
    path : Path
        File of the answers so far.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.answers: list[tuple[str, str]] = []
        self._earlier = _read(path)

    @property
    def unfinished(self) -> int:
        """Number of answers of an earlier conversation."""
        return len(self._earlier)

    def forget(self) -> None:
        """Delete the answers."""
        self._earlier = []
        self.path.unlink(missing_ok=True)

    def ask(self, step: PromptStep[T]) -> T:
        """Return the value of the answer to a step: an earlier one, or the next one typed."""
        if step.explanation:
            say(step.explanation)
        for at, (key, text) in enumerate(self._earlier):
            if key == step.key:
                del self._earlier[: at + 1]
                echo(f"{step.prompt}: {text}")
                if (understood := self._understood(step, text)) is not None:
                    return understood[0]
                break
        prompt, default = step.prompt, step.default
        while True:
            text = click.prompt(prompt, default=default, show_default=bool(default))
            if (understood := self._understood(step, text)) is not None:
                return understood[0]
            if suggestion := step.suggest(text):
                prompt, default = step.prompt_again or prompt, suggestion

    def _understood(self, step: PromptStep[T], text: str) -> tuple[T] | None:
        """Return the value, and keep the answer; None if it is wrong, after saying why."""
        try:
            value = step.parse(text)
        except DeniableError as error:
            say(str(error), indent="  ! ")
            return None
        self.answers.append((step.key, text))
        replace_private(self.path, json.dumps([*self.answers, *self._earlier]).encode())
        if reading := step.confirm(value):
            say(reading, indent="  ")
        return (value,)


def say(text: str, indent: str = "") -> None:
    """Print a paragraph, after an empty line unless it is indented."""
    lines = click.wrap_text(text, WIDTH, indent, " " * len(indent), preserve_paragraphs=True)
    echo(lines if indent else f"\n{lines}")


def _read(path: Path) -> list[tuple[str, str]]:
    """Return the answers in a file; none if there is no such file, or if it is damaged."""
    try:
        return [(str(key), str(text)) for key, text in json.loads(path.read_bytes())]
    except (FileNotFoundError, ValueError, TypeError):
        return []
