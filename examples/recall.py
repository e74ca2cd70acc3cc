"""Heads that grow where it is known how many are needed: as many as there are things to remember.

Each of two channels must give the value that came with its largest key within the last eight steps. A policy that knows
nothing has a squared error of 1/3 a channel; one that attends to one channel alone gets to about half of that. Training
begins with one head, and trigger ``earned`` grows another while the critic leaves too much unexplained. Run with
``python examples/recall.py [STEPS]``, a minute or two on two cores.
"""

import sys

import incrt

CHANNELS = 2
WINDOW = 8


def make_run(steps: int, seed: int = 0) -> incrt.Run:
    """What is to be trained. The reward is immediate, so the discount factor is next to nothing."""
    return incrt.Run(
        seed,
        *incrt.recall_task(CHANNELS, WINDOW),
        window=WINDOW,
        encoder=incrt.EncoderConfig(k_max=8, d_k=8),
        heads=incrt.HeadsConfig(trigger="earned", grace=3000),
        sac=incrt.SacConfig(steps=steps, gamma=0.01, buffer=20_000, evaluations=10),
    )


def main(steps: int = 20_000) -> None:
    """Train, and print how many heads there are and how well the deterministic policy does."""
    run = make_run(steps)
    population = incrt.Population([run])
    for news in population.train():
        for number, metrics, check in news.reports:
            line = f"step {metrics.step:6}  K = {population.progress[number].heads}"
            if metrics.evaluation is not None:  # the return of an episode of 100 steps
                line += f"  squared error a channel {-metrics.evaluation / 100 / CHANNELS:.4f}"
            if check is not None and check.certificate is not None:
                line += f"  {check.decision.action}: {check.decision.reason}; jump {check.certificate.jump:.3g}"
            print(line, flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
