"""A group of commands that suggests a name if the user misspells one."""

from __future__ import annotations

import click

from deniable.errors import did_you_mean


class SuggestingGroup(click.Group):
    """A group whose error for an unknown command suggests a similar one, or the help."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is called; suggest a name if there is no such command."""
        has_no_name = not args or args[0].startswith("-")
        if not (has_no_name or ctx.resilient_parsing) and self.get_command(ctx, args[0]) is None:
            hint = did_you_mean(args[0], self.list_commands(ctx))
            hint = hint or f" See {ctx.command_path} --help."
            ctx.fail(f"there is no command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)
