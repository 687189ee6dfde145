"""Help that looks the same with every version of Typer: no type beside a switch, plain names of arguments."""

from typing import Any

from typer.core import TyperCommand, TyperGroup


class _PlainHelp:
    """Help of commands and of the program itself."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, switches without a type beside them."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The parts of the usage line after the program's name."""
        pieces: list[str] = super().collect_usage_pieces(ctx)  # type: ignore[misc]
        arguments = [_usage_name(param) for param in self.get_params(ctx) if param.param_type_name == "argument"]
        return [*pieces[: len(pieces) - len(arguments)], *arguments]


class PlainCommand(_PlainHelp, TyperCommand):
    """A command whose help has no types beside switches."""


class PlainGroup(_PlainHelp, TyperGroup):
    """The program itself, with the same form of help."""


def _usage_name(argument: Any) -> str:
    name = argument.name.upper() if argument.required else f"[{argument.name.upper()}]"
    return f"{name}..." if argument.nargs == -1 else name
