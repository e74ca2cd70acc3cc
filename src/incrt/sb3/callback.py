"""The check of the heads as a callback of Stable-Baselines3."""

import json
from collections import deque
from dataclasses import dataclass, field, replace
from itertools import chain, count
from numbers import Real
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import numpy.typing as npt
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import TensorBoardOutputFormat
from torch import Tensor

from incrt.config import HeadsConfig
from incrt.config import preset as named_preset
from incrt.heads.certificates import Certificate, Evidence, PruneMeasures
from incrt.heads.check import Check, HeadsState, Measured, Watched, check_run, first_heads
from incrt.heads.rank import effective_rank
from incrt.heads.triggers import Decision, EarnedTrigger, make_trigger, wanted_signals
from incrt.heads.triggers.base import OTHER_SIGNALS
from incrt.sb3.networks import Networks
from incrt.sb3.signals import measure_signals
from incrt.storage.atomic import write_whole
from incrt.storage.json import finite

Context = npt.NDArray[np.float32]


@dataclass
class Memory:
    """What the callback knows of a training.

    It is kept on the model, as ``model.runtime_heads``, so that Stable-Baselines3 saves and loads it with the model.
    """

    config: HeadsConfig
    """Of the latest training."""
    heads_state: HeadsState
    recent: deque[Context]
    """The latest contexts, of which the rank is taken."""
    generator: np.random.Generator
    """For the draws of checks and events, which thus leave those of the training alone."""
    step: int = 0
    """Environment steps under this callback, however often learn() was called."""
    updates: int = 0
    """Of the model, at the latest check that measured."""
    losses: dict[str, float] = field(default_factory=dict)
    """What the model's logger last had under train/."""
    returns: list[float] = field(default_factory=list)
    """Of the episodes that ended since the latest check, as Stable-Baselines3's Monitor has them."""
    reward_sum: float = 0.0
    """Of the steps since the latest check that measured."""
    reward_steps: int = 0
    """How many those are, in all environments."""
    is_normalised: bool = False
    """Whether the policy reads what a VecNormalize has normalised."""
    training: str = field(default_factory=lambda: uuid4().hex[:12])
    """Stands in every line of events.jsonl, and tells the lines of one training from those of another."""
    checks: list[Check] = field(default_factory=list)
    """All of them, as events.jsonl has them."""

    @property
    def certificates(self) -> list[Certificate]:
        """Of all events."""
        return [each.certificate for each in self.checks if each.certificate is not None]

    def lines(self) -> str:
        """The text of events.jsonl."""
        return "".join(map(self.line, self.checks))

    def line(self, found: Check) -> str:
        """One line of it."""
        return json.dumps(finite({**found.to_json(), "training": self.training}), allow_nan=False) + "\n"

    def is_in(self, path: Path) -> bool:
        """Whether a file holds lines of this training alone; what a kill left of a last line does not count."""
        try:
            lines = [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
            return all(line["training"] == self.training for line in lines)
        except FileNotFoundError:
            return True
        except (ValueError, KeyError, TypeError):
            return False


class RuntimeHeads(BaseCallback):
    """Grows and prunes the heads of a policy while it trains, and certifies each event.

    Every ``check_every`` environment steps it measures what the trigger wants to be shown, asks it, lets every network
    of the policy follow its decision and checks the certificate. A prune whose certificate would not hold is left out.

    :param trigger: what decides, see :mod:`incrt.heads.triggers`; None stands for the preset's, the paper's rule.
        ``earned`` and others that ask the critic need an algorithm with replay: SAC, TD3, DDPG or TQC
    :param preset: which preset to start from, ``memory`` (the default) or ``paper``. With neither a preset nor a field
        the settings are those that the model was trained with before.
    :param events: file for one line a check; None stands for events.jsonl in the folder of the model's logger, or for
        events-2.jsonl and so on where that is another training's
    :param verbose: 1 prints where that file is, and every event
    :param fields: any field of :class:`incrt.config.HeadsConfig`, such as ``grace`` or ``check_every``
    """

    def __init__(
        self,
        preset: str | None = None,
        *,
        trigger: Any = None,
        events: Path | str | None = None,
        verbose: int = 0,
        **fields: Any,
    ) -> None:
        super().__init__(verbose)
        fields |= {} if trigger is None else {"trigger": trigger}
        self.config = self._own_config = named_preset(preset or "memory").heads.replace(**fields)
        self._is_chosen = preset is not None or bool(fields)
        self._events = events
        self._figures: dict[str, float] = {}

    def _init_callback(self) -> None:
        self.networks = Networks(self.model.policy)
        self.memory = self._remember()
        self.model.runtime_heads = self.memory  # type: ignore[attr-defined]
        self._seen = self.memory.step
        normaliser = self.model.get_vec_normalize_env()
        self.memory.is_normalised |= normaliser is not None and normaliser.norm_obs
        checks = self.memory.checks
        self._figures = checks[-1].figures() if checks else {"heads/k": self.memory.heads_state.k}
        self.events = self._find_events()
        write_whole(self.events, self.memory.lines().encode())
        self._say(f"checks and events go to {self.events}")

    def _remember(self) -> Memory:
        """What is known of the model's earlier training, or the beginning of a first one."""
        memory: Memory | None = getattr(self.model, "runtime_heads", None)
        self.config = self._own_config if memory is None or self._is_chosen else memory.config
        self.trigger = make_trigger(self.config)
        self._signals = self._wanted()
        beginning = first_heads(self.config, self.networks.mask)
        if memory is None:
            recent: deque[Context] = deque(maxlen=self.config.tokens)
            return Memory(self.config, beginning, recent, np.random.default_rng(self.model.seed))
        if memory.heads_state.mask != self.networks.mask:
            raise ValueError(
                f"the policy has the heads {self.networks.mask}, but model.runtime_heads remembers "
                f"{memory.heads_state.mask}: they are of different trainings; del model.runtime_heads forgets it"
            )
        before, now = (type(each) for each in (make_trigger(memory.config), self.trigger))
        if (before.__module__, before.__qualname__) != (now.__module__, now.__qualname__):
            memory.heads_state = replace(memory.heads_state, state=None)  # another trigger cannot read it
        memory.config = self.config
        memory.recent = deque(memory.recent, maxlen=self.config.tokens)
        return memory

    def _wanted(self) -> list[str]:
        """The signals from replay that the trigger asks for; what this model cannot show it is refused."""
        words, wanted = f"trigger {type(self.trigger).__name__}", wanted_signals(self.trigger)
        found = [name for name in OTHER_SIGNALS if name in wanted]
        if found and not self.networks.has_targets:
            raise ValueError(
                f"{words} asks for {', '.join(found)}, which need replay and a critic of actions; "
                f"{type(self.model).__name__} has neither: choose trigger paper or clock, or one of your own that asks "
                "for rank and shares alone"
            )
        if isinstance(self.trigger, EarnedTrigger) and self.networks.are_shared:
            raise ValueError(
                f"{words} prunes a head of the actor and a head of the critic, and here they share theirs; leave "
                "share_features_extractor at False, or choose another trigger"
            )
        return found

    def _find_events(self) -> Path:
        """The file of this training. Lines of steps that a kill, or the return to an older model, undid are moved."""
        if self._events is not None:
            path = Path(self._events)
            if path.is_dir() or not self.memory.is_in(path):
                held = "is a folder" if path.is_dir() else "holds the events of another training"
                raise ValueError(f"{path} {held}; choose another file")
        elif self.logger.dir is None:
            raise ValueError("the model's logger has no folder: pass RuntimeHeads(events=...)")
        else:
            names = chain(["events.jsonl"], (f"events-{i}.jsonl" for i in count(2)))
            path = next(filter(self.memory.is_in, (Path(self.logger.dir) / name for name in names)))
        known = set(self.memory.lines().splitlines())
        undone = [line for line in path.read_text().splitlines() if line not in known] if path.exists() else []
        if undone:
            with path.with_name(f"{path.stem}-undone{path.suffix}").open("a") as file:
                file.writelines(f"{line}\n" for line in undone)
        return path

    def _on_step(self) -> bool:
        contexts, memory = self.locals["new_obs"], self.memory
        if memory.step != self._seen:
            raise ValueError("two RuntimeHeads train one model; leave one of them out")
        memory.recent.extend(np.array(context, np.float32) for context in contexts)
        before, self._seen = self._seen, self._seen + len(contexts)
        memory.step = self._seen
        memory.reward_sum += float(np.sum(self.locals["rewards"]))
        memory.reward_steps += len(contexts)
        memory.returns += [float(info["episode"]["r"]) for info in self.locals["infos"] if "episode" in info]
        if self._seen // self.config.check_every > before // self.config.check_every:
            self._check()
        for name, figure in self._figures.items():  # SB3 forgets what it has written
            self.logger.record(name, figure, exclude="tensorboard")
        return True

    def _on_rollout_start(self) -> None:
        self._note_losses()

    def _on_training_end(self) -> None:
        self._note_losses()

    def _note_losses(self) -> None:
        """Between learning and acting, where the logger has what was learned, and where a training may be saved."""
        for name, value in self.logger.name_to_value.items():
            if name.startswith("train/") and isinstance(value, Real):
                self.memory.losses[name.removeprefix("train/")] = float(value)

    def _check(self) -> None:
        memory, step = self.memory, self.memory.step
        if self.model._n_updates == memory.updates:  # noqa: SLF001  # it has no other name
            # Shares would be those of the latest check, and a new head would be silent still.
            decision = Decision("noop", "nothing was learned since the latest check that asked")
            found = Check(step, decision, None, None, memory.heads_state.mask, more={})
        elif self._signals and self._replay() is None:
            decision = Decision("noop", "replay is empty")  # a model that was loaded without it
            found = Check(step, decision, None, None, memory.heads_state.mask, more={})
        else:
            returns = float(np.mean(memory.returns)) if memory.returns else None
            reward = memory.reward_sum / memory.reward_steps
            run = Watched(self.trigger, memory.heads_state, memory.losses, returns, reward)
            found, memory.heads_state = check_run(step, run, self._measure, self._weigh, self._act)
            memory.updates = self.model._n_updates  # noqa: SLF001
            memory.returns, memory.reward_sum, memory.reward_steps = [], 0.0, 0
        memory.checks.append(found)
        with self.events.open("a") as file:
            file.write(memory.line(found))
        self._figures = found.figures()
        for output in self.logger.output_formats:
            if isinstance(output, TensorBoardOutputFormat):  # at the step of the check, not of the logger's next dump
                output.write(self._figures, dict.fromkeys(self._figures, ()), self.num_timesteps)
        if found.certificate is not None:
            words = f"{found.decision.action} head {found.decision.head}, {found.decision.reason}"
            self._say(f"step {step}: {words}; jump {found.certificate.jump:g}, K = {found.k}")

    def _say(self, words: str) -> None:
        if self.verbose:
            print(words)  # noqa: T201  # as the callbacks of Stable-Baselines3 do

    def _measure(self) -> Measured:
        """The rank of the latest contexts, the shares on a fresh batch, and whatever else the trigger wants."""
        rank, generator = None, self.memory.generator
        if "rank" in wanted_signals(self.trigger):
            tokens = np.stack([context.ravel() for context in self.memory.recent])
            rank = effective_rank(tokens, self.config.alpha)
        self.memory.updates = self.model._n_updates  # noqa: SLF001
        shares, more = self.networks.shares(self._draw_contexts()), {}
        if self._signals:
            more = measure_signals(self.model, self.networks, self._signals, self.config.share_batch, generator)
        return Measured(rank, shares, more)

    def _weigh(self, decision: Decision) -> PruneMeasures:
        """What a prune would do, on the batches on which it is then done and certified."""
        contexts, fitted_on = self._draw_contexts(), None
        gone = decision.head
        if decision.actor_head is not None:
            gone, fitted_on = decision.actor_head, self._draw_contexts()
        self._weighed_on = contexts, fitted_on
        return self.networks.measure_prune(gone or 0, contexts, fitted_on)

    def _act(self, decision: Decision) -> Evidence:
        """An event, measured on one batch before and after it."""
        networks, optimiser, head = self.networks, self.config.optimiser, decision.head or 0
        contexts, fitted_on = (self._draw_contexts(), None) if decision.action == "grow" else self._weighed_on
        before, energy = networks.outputs(contexts), networks.energy()
        if decision.action == "grow":
            networks.grow(head, self.memory.generator, optimiser)
        elif decision.actor_head is not None and fitted_on is not None:
            networks.prune_and_compensate(head, decision.actor_head, optimiser, fitted_on)
        else:
            networks.prune(head, optimiser)
        return Evidence(before, networks.outputs(contexts), (energy, networks.energy()))

    def _draw_contexts(self) -> Tensor:
        """A fresh batch from replay; an algorithm without one has the latest contexts to draw from."""
        generator, size = self.memory.generator, self.config.share_batch
        if (replay := self._replay()) is None:
            rows = generator.integers(len(self.memory.recent), size=size)
            return self.networks.contexts([self.memory.recent[row] for row in rows])
        rows = generator.integers(replay.size(), size=size)
        found: Any = replay.observations[rows, generator.integers(replay.n_envs, size=size)]
        if (normaliser := self.model.get_vec_normalize_env()) is not None:
            found = normaliser.normalize_obs(found)  # replay holds what the environment gave
        return self.networks.contexts(found)

    def _replay(self) -> ReplayBuffer | None:
        """The buffer, if there is one with something in it."""
        found = getattr(self.model, "replay_buffer", None)
        return found if isinstance(found, ReplayBuffer) and found.size() > 0 else None
