"""``incrt train``."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated

from incrt.cli.display import Display
from incrt.cli.evaluate import evaluated, print_results
from incrt.cli.options import AS_PRESET, DEVICE, PRESET, TaskOptions, shown, with_settings
from incrt.cli.terminal import log, prepare_folder, print_json, say_stopping
from incrt.config import EncoderConfig, HeadsConfig, RunConfig, SacConfig, TaskConfig, parse_seeds, preset
from incrt.config.heads import WITH_HEADS
from incrt.config.rules import COUNT
from incrt.engine.population import News, Population
from incrt.engine.threads import ThreadChoice, limit_threads
from incrt.engine.training import Job, make_job, train, until_signalled
from incrt.runs import find_runs
from incrt.storage.cache import keep_compiled
from incrt.storage.json import checksum


@dataclass(frozen=True, kw_only=True)
class Train(TaskOptions):
    """Train runs, evaluate them, and print them beside what constant gains and a clairvoyant reach.

    Unfinished runs are resumed. Interrupt at any time: what was done is kept.
    """

    out: Path
    """Folder for the runs; each gets a folder seed-N in it."""
    preset: Annotated[str, PRESET] = "memory"
    """Task, encoder, heads and training that belong together."""
    tau_z: Annotated[float, shown(TaskConfig, "tau_z")] = TaskConfig.tau_z
    seeds: str = "42-51"
    """Seeds, one run each: numbers and ranges, such as 42-51 or 1,5,7-9."""
    steps: Annotated[int, shown(SacConfig, "steps", " A run that is over can be made longer.")] = SacConfig.steps
    encoder: Annotated[str, shown(EncoderConfig, "encoder")] = EncoderConfig.encoder
    window: Annotated[int | None, shown(TaskConfig, "window", AS_PRESET)] = None
    k_max: Annotated[int | None, shown(EncoderConfig, "k_max", AS_PRESET)] = None
    k_init: Annotated[int | None, shown(EncoderConfig, "k_init", AS_PRESET)] = None
    trigger: Annotated[str | None, shown(HeadsConfig, "trigger", AS_PRESET)] = None
    grace: Annotated[int | None, shown(HeadsConfig, "grace", AS_PRESET)] = None
    share: Annotated[str | None, shown(HeadsConfig, "share", AS_PRESET)] = None
    shield: Annotated[bool, shown(TaskConfig, "shield")] = TaskConfig.shield
    penalty: Annotated[bool, shown(SacConfig, "penalty")] = SacConfig.penalty
    set: tuple[str, ...] = ()
    """Any other field, as PART.FIELD=VALUE: task.eta_max=[8,5.5] sac.gamma=0.98. incrt settings lists them all."""
    device: Annotated[str, DEVICE] = "auto"
    """Where to train; auto takes a GPU if there is one."""
    cores: int | None = None
    """Threads that compute on a CPU, and runs that train at a time; if not given all, or one for one run if faster."""
    save_every: int = 5000
    """Steps between two checkpoints."""
    figures: Path | None = None
    """Also draw each run into this folder: its tracking beside the reference controllers, and its heads over time."""
    tensorboard: bool = False
    """Also write the figures for TensorBoard, into each run's folder."""
    json: bool = False
    """Print JSON and nothing else."""

    def run(self) -> None:
        """Train and evaluate."""
        if self.cores is not None:
            limit_threads(COUNT("cores", self.cores))
        with self._thread_choice() or nullcontext() as threads:  # before JAX starts
            self._train(threads)

    def _thread_choice(self) -> ThreadChoice | None:
        """Of a run that trains alone on a CPU, unless the user has said how many cores it is to have."""
        on_cpu = self.device == "cpu" or (self.device == "auto" and not entry_points(group="jax_plugins"))
        if self.cores is not None or not on_cpu or len(parse_seeds(self.seeds)) > 1:
            return None
        config = self.config()
        # The regime is a number in the program, and how long a run lasts or when heads come is none of its business.
        config = config.replace(task=config.task.replace(tau_z=1.0), sac=config.sac.replace(steps=SacConfig.steps))
        shape = {**config.to_json(), "heads": {}}
        return ThreadChoice(f"{config.encoder.encoder}, W = {config.task.window}, {checksum(shape)[:12]}")

    def _train(self, threads: ThreadChoice | None) -> None:
        jobs = self.jobs()
        if self.figures is not None:
            prepare_folder(self.figures)
        keep_compiled()
        folders = [job.folder for job in jobs]
        with Display(folders, log, tensorboard=self.tensorboard) as display, until_signalled(say_stopping):
            on_news = display.update if threads is None else _noting(threads, display.update)
            progress = train(jobs, self.device, self.save_every, on_news, display.warn, cores=self.cores)
        if not all(each.finished for each in progress):
            done = min(each.step for each in progress)
            log.print(f"stopped at step {done} of {self.steps}; the same command goes on from here")
            raise SystemExit(130)
        rows = evaluated([run for job in jobs for run in find_runs(job.folder)], {}, self.figures)
        if self.json:
            print_json(rows)
        else:
            print_results(f"preset {self.preset}, {self.encoder}, {self.steps} steps: {self.out}", rows)

    def jobs(self) -> list[Job]:
        """The runs that the options ask for."""
        config = self.config()
        return [make_job(self.out / f"seed-{seed}", config.replace(seed=seed)) for seed in parse_seeds(self.seeds)]

    def config(self) -> RunConfig:
        """What the options ask for, whatever the seed."""
        self._refuse_idle_options()
        options = {
            "task": {**self.task_options, "tau_z": self.tau_z, "shield": self.shield, "window": self.window},
            "encoder": {"encoder": self.encoder, "k_max": self.k_max, "k_init": self.k_init},
            "heads": {"trigger": self.trigger, "grace": self.grace, "share": self.share},
            "sac": {"steps": self.steps, "penalty": self.penalty},
        }
        return with_settings(preset(self.preset), self.set, options)

    def _refuse_idle_options(self) -> None:
        """Refuse options that would make no difference to this encoder."""
        used_by = {"k_init": WITH_HEADS, **dict.fromkeys(("trigger", "grace", "share"), ("runtime",))}
        for name, encoders in used_by.items():
            if getattr(self, name) is not None and self.encoder not in encoders:
                option = f"--{name.replace('_', '-')}"
                raise ValueError(f"{option} goes with encoder {' or '.join(encoders)}, not with {self.encoder}")


def _noting(threads: ThreadChoice, tell: Callable[[Population, News], None]) -> Callable[[Population, News], None]:
    """Also note how fast each stretch of the only run was trained, by the heads that were active in it."""
    heads: list[int] = []

    def on_news(population: Population, news: News) -> None:
        for report in news.reports:
            threads.note(heads[-1], report.metrics.steps_per_s)
        heads[:] = [population.progress[0].heads]
        tell(population, news)

    return on_news
