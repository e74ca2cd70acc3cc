"""A trigger of the user's own decides in the engine and in Stable-Baselines3."""

import json
from pathlib import Path

from by_path import load

from incrt.heads.check import HeadsState
from incrt.heads.triggers import Signals


def test_the_trigger_of_the_example_decides_in_both(tmp_path: Path) -> None:
    example = load("examples/own_trigger.py")
    settings = {"trigger": example.Patience(checks=1, share=0.0), "grace": 20, "tokens": 30, "share_batch": 16}
    for path in example.train(tmp_path, 240, horizon=20, **settings):
        checks = [json.loads(line) for line in path.read_text().splitlines()]
        assert [check["step"] for check in checks] == list(range(20, 241, 20))
        events = [check for check in checks if check["action"] != "noop"]
        assert events
        assert all((check["reason"], check["holds"]) == ("no better return for 1 checks", True) for check in events)
    conclusion = json.loads((tmp_path / "engine" / "conclusion.json").read_text())
    assert conclusion["guarantees"]["inside"] is None


def test_it_grows_out_of_patience_and_prunes_the_weakest() -> None:
    trigger, state = load("examples/own_trigger.py").Patience(checks=2, share=0.1), None
    controller = HeadsState((True, True, False))

    def decide(returns: float | None, shares: tuple[float, ...]) -> tuple[str, int | None]:
        nonlocal state
        decision, state = trigger.decide(Signals(1, controller.k, controller.mask, 3.0, shares, {}, returns), state)
        return decision.action, decision.head

    assert decide(-5.0, (0.5, 0.5, 0.0)) == ("noop", None)
    assert decide(None, (0.5, 0.5, 0.0)) == ("noop", None)
    assert decide(-6.0, (0.5, 0.5, 0.0)) == ("noop", None)
    assert decide(-7.0, (0.5, 0.5, 0.0)) == ("grow", None)
    assert state == [-5.0, 0]
    assert decide(-4.0, (0.95, 0.05, 0.0)) == ("prune", 1)
