"""The example of heads that grow on recall, shortened."""

import re

import pytest
from by_path import load

example = load("examples/recall.py")


def test_heads_and_errors_are_printed_to_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    example.main(1000)
    lines = capsys.readouterr().out.splitlines()
    found = [re.fullmatch(r"step +(\d+)  K = 1  squared error a channel (0\.\d{4})", line) for line in lines]
    assert [int(match[1]) for match in found if match] == [500, 1000]
    assert all(0.2 < float(match[2]) < 0.5 for match in found if match)


def test_heads_may_grow_and_their_number_is_known() -> None:
    run = example.make_run(20_000)
    assert (run.environment.channels, run.environment.window) == (example.CHANNELS, run.window)
    assert run.encoder.adapts
    assert run.encoder.heads_at_start < example.CHANNELS < run.encoder.k_max
    assert run.environment.horizon == 100, "the error that is printed divides by it"
