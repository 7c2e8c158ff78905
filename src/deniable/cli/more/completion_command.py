"""`deniable completion`: names of commands, options and files at the press of a key."""

from __future__ import annotations

import click

from deniable.cli.documented import command


@command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script by which SHELL completes commands and options.

    Examples
    --------
    deniable completion bash >> ~/.bashrc
    deniable completion zsh >> ~/.zshrc
    deniable completion fish > ~/.config/fish/completions/deniable.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    root = click.get_current_context().find_root()
    click.echo(kind(root.command, {}, "deniable", "_DENIABLE_COMPLETE").source())
