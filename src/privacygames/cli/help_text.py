"""Help that looks the same with every version of the library behind it: no type beside a switch, plain names."""

from typing import Any

from typer.core import TyperCommand, TyperGroup


class _Plain:
    """What commands and the program itself have in common."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, with what help shows beside each."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """What follows the program's name in the line of usage."""
        pieces: list[str] = super().collect_usage_pieces(ctx)  # type: ignore[misc]
        named = [_named(param) for param in self.get_params(ctx) if param.param_type_name == "argument"]
        return [*pieces[: len(pieces) - len(named)], *named]


class PlainCommand(_Plain, TyperCommand):
    """A command whose help shows names as people write them."""


class PlainGroup(_Plain, TyperGroup):
    """The same for the program itself."""


def _named(argument: Any) -> str:
    name = argument.name.upper() if argument.required else f"[{argument.name.upper()}]"
    return f"{name}..." if argument.nargs == -1 else name
