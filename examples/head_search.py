"""How many heads, and how long a window? Optuna searches both, by training short runs with a fixed number of heads.

This is the other way to choose the head count before training; ``incrt phase1`` does it without any training. Every
trial is kept in FOLDER, in Optuna's own journal and as the folder of a run: the same command again goes on from there.
Needs the extra ``search``; run with ``python examples/head_search.py FOLDER``.
"""

import sys
from pathlib import Path

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

import incrt

SHORT = incrt.preset(task={"tau_z": 5.0}, encoder={"encoder": "static"}, sac={"steps": 5000, "buffer": 5000})
"""What every trial trains, but for K and W."""
WINDOWS = (10, 20, 50)


def train(folder: Path, config: incrt.RunConfig) -> float:
    """RMSE of a run that was trained in this folder; it goes on with one that was interrupted."""
    (progress,) = incrt.train([incrt.make_job(folder, config)])
    if not progress.finished:  # SIGINT or SIGTERM has come
        raise KeyboardInterrupt
    return incrt.evaluate(config.task, incrt.load_policy(folder))[0].rmse


def search(folder: Path, trials: int, base: incrt.RunConfig = SHORT) -> optuna.Study:
    """Make so many trials, those of earlier calls counted; a pair (K, W) that comes again is not trained again."""
    folder.mkdir(parents=True, exist_ok=True)
    study = optuna.create_study(
        study_name="K and W",
        storage=JournalStorage(JournalFileBackend(str(folder / "journal.log"))),
        sampler=optuna.samplers.TPESampler(n_startup_trials=3, seed=len(list(folder.glob("K*")))),
        load_if_exists=True,
    )

    def objective(trial: optuna.Trial) -> float:
        k = trial.suggest_int("K", 1, base.encoder.k_max)
        window = trial.suggest_categorical("W", WINDOWS)
        config = base.replace(task={"window": window}, encoder={"k_init": k})
        return train(folder / f"K{k}-W{window}", config)

    study.optimize(objective, max(0, trials - len(done(study))))
    return study


def done(study: optuna.Study) -> list[optuna.trial.FrozenTrial]:
    """The trials that came to their end, the best first."""
    return sorted(study.get_trials(states=[optuna.trial.TrialState.COMPLETE]), key=lambda each: each.values[0])


if __name__ == "__main__":
    for each in done(search(Path(sys.argv[1] if len(sys.argv) > 1 else "head_search"), trials=12)):
        print(f"K = {each.params['K']}, W = {each.params['W']:2d}: RMSE {each.values[0]:.4f} rad")
