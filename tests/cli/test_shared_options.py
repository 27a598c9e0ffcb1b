"""Options that several commands share reach each of them as one value."""

from __future__ import annotations

from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from twopc.cli.shared_options import shared_options

Size = Annotated[int, typer.Option(envvar="TEST_FOLDING_SIZE", help="How big.")]


def shape_of(size: Size = 3, colour: str = "red") -> str:
    return f"{size} {colour}"


app = typer.Typer()


@app.command()
@shared_options(shape=shape_of)
def draw(shape: str, name: str, *, filled: bool = False) -> None:
    """Draw one."""
    typer.echo(f"{name}: {shape}, {filled}")


def drawn(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout.strip()


def test_a_command_takes_what_its_shared_options_make(monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn("circle") == "circle: 3 red, False"
    assert drawn("circle", "--size", "5", "--filled", "--colour", "blue") == "circle: 5 blue, True"
    monkeypatch.setenv("TEST_FOLDING_SIZE", "7")
    assert drawn("circle") == "circle: 7 red, False"


def test_help_lists_shared_options_after_the_commands_own() -> None:
    text = drawn("--help")
    assert text.index("--filled") < text.index("--size")
    assert "How big." in text
    assert "--shape" not in text
