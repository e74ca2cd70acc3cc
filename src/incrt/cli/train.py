"""``incrt train``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from incrt.cli.display import Display
from incrt.cli.evaluate import evaluated, print_results
from incrt.cli.terminal import log, prepare_folder, print_json
from incrt.compiled import keep_compiled
from incrt.config import SacConfig, encoder_preset, parse_seeds, preset, runtime_preset
from incrt.config.heads import WITH_HEADS
from incrt.runs import find_runs
from incrt.sac.training import Job, bench_job, train


@dataclass(frozen=True)
class Train:
    """Train runs on the bench, evaluate them, and print them beside what constant gains and a clairvoyant reach.

    A folder that holds an unfinished run is gone on with. Interrupt at any time: what was done is kept.
    """

    out: Path
    """Folder for the runs; each gets a folder seed-N in it."""
    preset: Literal["memory", "paper"] = "memory"
    """Bench, encoder and runtime controller that belong together."""
    tau_z: float = 5.0
    """Memory horizon of the friction [s]."""
    seeds: str = "42-51"
    """Seeds, one run each: numbers and ranges, such as 42-51 or 1,5,7-9."""
    steps: int = SacConfig.steps
    """Environment steps of a run. One that is over can be made longer; its results are then made anew."""
    encoder: Literal["runtime", "static", "deep", "gru", "lstm", "none"] = "runtime"
    """Heads that grow, a fixed number of them, a deep Transformer, recurrent networks, the last observation alone."""
    window: int | None = None
    """W: observations in a context; that of the preset if not given."""
    k_max: int | None = None
    """K_max: head-count cap, and by it the width d_model of every encoder; that of the preset if not given."""
    k_init: int | None = None
    """K_init: heads at the start; 1 for encoder runtime and all for static if not given."""
    grace: int | None = None
    """Fewest steps between two events; that of the preset if not given."""
    share: Literal["absolute", "relative"] | None = None
    """Whether a head is weak by its share alone or relative to 1/K; that of the preset if not given."""
    shield: bool = True
    """Whether gains are projected onto the admissible set."""
    penalty: bool = True
    """Whether the distance to the admissible set joins the actor's loss, where there is a shield."""
    device: Literal["auto", "cpu", "gpu"] = "auto"
    """Where to train; auto takes a GPU if there is one."""
    save_every: int = 5000
    """Steps between two checkpoints."""
    figures: Path | None = None
    """Also draw each run into this folder: its tracking beside the references, and its heads over time."""
    tensorboard: bool = False
    """Also write the figures for TensorBoard, into each run's folder."""
    json: bool = False
    """Print JSON and nothing else."""

    def run(self) -> None:
        """Train and evaluate."""
        jobs = self.jobs()
        if self.figures is not None:
            prepare_folder(self.figures)
        keep_compiled()
        with Display([job.folder for job in jobs], log, tensorboard=self.tensorboard) as display:
            progress = train(jobs, self.device, self.save_every, display.update, display.warn)
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

        def given(**options: object) -> dict[str, object]:
            return {name: value for name, value in options.items() if value is not None}

        self._refuse_idle_options()
        bench = preset(self.preset, tau_z=self.tau_z, shield=self.shield, **given(window=self.window))
        encoder = encoder_preset(self.preset, encoder=self.encoder, **given(k_max=self.k_max, k_init=self.k_init))
        runtime = runtime_preset(self.preset, **given(grace=self.grace, share=self.share))
        sac = SacConfig(steps=self.steps, penalty=self.penalty)
        return [
            bench_job(self.out / f"seed-{seed}", seed, bench, encoder=encoder, runtime=runtime, sac=sac)
            for seed in parse_seeds(self.seeds)
        ]

    def _refuse_idle_options(self) -> None:
        """Refuse options that would make no difference to this encoder."""
        used_by = {"k_init": WITH_HEADS, "grace": ("runtime",), "share": ("runtime",)}
        for name, encoders in used_by.items():
            if getattr(self, name) is not None and self.encoder not in encoders:
                option = f"--{name.replace('_', '-')}"
                raise ValueError(f"{option} goes with encoder {' or '.join(encoders)}, not with {self.encoder}")
