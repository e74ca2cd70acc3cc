"""The population engine: many runs of Soft Actor-Critic at once."""

from incrt.sac.policy import LearnedPolicy, policy_of
from incrt.sac.policy import load as load_policy
from incrt.sac.population import News, Population
from incrt.sac.progress import Progress, Report, Run, Saved
from incrt.sac.rollout import deterministic_returns
from incrt.sac.training import Job, bench_job, train

__all__ = [
    "Job",
    "LearnedPolicy",
    "News",
    "Population",
    "Progress",
    "Report",
    "Run",
    "Saved",
    "bench_job",
    "deterministic_returns",
    "load_policy",
    "policy_of",
    "train",
]
