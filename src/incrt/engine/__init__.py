"""The population engine: many runs of Soft Actor-Critic at once."""

from incrt.engine.policy import LearnedPolicy, policy_of
from incrt.engine.policy import load as load_policy
from incrt.engine.population import News, Population
from incrt.engine.progress import Checkpoint, Progress, Report, Run
from incrt.engine.rollout import deterministic_returns
from incrt.engine.training import Job, make_job, train

__all__ = [
    "Checkpoint",
    "Job",
    "LearnedPolicy",
    "News",
    "Population",
    "Progress",
    "Report",
    "Run",
    "deterministic_returns",
    "load_policy",
    "make_job",
    "policy_of",
    "train",
]
