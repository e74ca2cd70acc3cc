"""What heads cost inside Stable-Baselines3: steps a second of SAC on the task, W = 20, with three features extractors.

Run with ``python benchmarks/sb3_cost.py``. A step is one of the environment and one update of 256 windows; layers,
batch and buffer are the engine's. The flat window is what Stable-Baselines3 makes of an observation by itself, the
literal attention is the paper's written out (``incrt.sb3.literal``), with all eight heads active as in the other.
"""

from itertools import product
from time import perf_counter
from typing import Any

from incrt import EncoderConfig, SacConfig, TaskConfig
from incrt.engine.threads import usable_cores
from incrt.sb3 import policy_kwargs
from incrt.sb3.literal import LiteralAttention
from incrt.sb3.timing import TimedSac

STEPS = 300
REPEATS = 3

EXTRACTORS: dict[str, dict[str, Any]] = {
    "flat window": {},
    "heads": policy_kwargs(k_max=8, k_init=8),
    "literal attention": {
        "features_extractor_class": LiteralAttention,
        "features_extractor_kwargs": {"encoder": EncoderConfig()},
    },
}


def main() -> None:
    """Print one line an extractor and number of threads, the best of some repeats."""
    for name, threads in product(EXTRACTORS, sorted({1, usable_cores()})):
        rates = []
        for seed in range(REPEATS):
            timed = TimedSac(TaskConfig(), SacConfig(), EXTRACTORS[name], seed)
            begin = perf_counter()
            timed.train(STEPS, threads)
            rates.append(STEPS / (perf_counter() - begin))
        print(f"{name:18s} {threads} threads of PyTorch: {max(rates):6.1f} steps a second", flush=True)


if __name__ == "__main__":
    main()
