"""The population engine: many runs of Soft Actor-Critic at once."""

from incrt.sac.policy import load as load_policy
from incrt.sac.population import Population
from incrt.sac.progress import Run
from incrt.sac.training import bench_job, train

__all__ = ["Population", "Run", "bench_job", "load_policy", "train"]
