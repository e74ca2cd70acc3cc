"""What charts draw of all that runs left on their way, and how exactly.

It is far less than there is, and the archive of a report keeps no more. The rest is left out before anything is drawn,
so that a report shows the same whether it is made from the runs or from an archive.
"""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from incrt.report.charts.view import View
from incrt.report.outcomes import Episodes, History, Material, Outcome
from incrt.report.selection import representative, shown_in_episodes

Types = Mapping[str, npt.DTypeLike]

HISTORY: Types = {
    "k_init": np.int16,
    "steps": np.int32,
    "returns": np.float32,
    "event_steps": np.int32,
    "event_actions": "U5",
    "event_heads": np.int16,
    "check_steps": np.int32,
    "ranks": np.float32,
    "shares": np.float32,
}
"""As what the parts of a history are kept."""
EPISODES: Types = {field.name: np.float32 for field in fields(Episodes)}
"""As what the parts of episodes are kept, which is also as what a run keeps them."""
_NONE = np.zeros(0)

Record = TypeVar("Record", History, Episodes)


def only_drawn(material: Material) -> Material:
    """The material without what no chart draws; done twice it is the same."""
    views = [View(material, preset) for preset in dict.fromkeys(study.preset for study in material.studies)]
    learning = {each.folder for each in material.outcomes if each.is_sound and not each.condition}
    growing = [regime for view in views for regime in _growing(view)]
    grown = {run.folder for regime in growing for run in regime}
    stacked = {run.folder for regime in growing if (run := _with_shares(regime, material.histories)) is not None}
    shown = {run.folder for view in views for run in shown_in_episodes(view.runs, material.episodes)}
    histories = {
        folder: _rounded(_stripped(history, grown=folder in grown, stacked=folder in stacked), HISTORY)
        for folder, history in material.histories.items()
        if folder in learning
    }
    episodes = {folder: _rounded(each, EPISODES) for folder, each in material.episodes.items() if folder in shown}
    return replace(material, histories=histories, episodes=episodes)


def _growing(view: View) -> list[list[Outcome]]:
    """By regime the runs whose heads and ranks are drawn."""
    place = view.growing()
    return [view.sound(*place, tau_z) for tau_z in view.runs.regimes(place[0])] if place else []


def _with_shares(regime: list[Outcome], histories: Mapping[str, History]) -> Outcome | None:
    """The run whose shares are drawn."""
    return representative([run for run in regime if run.folder in histories and histories[run.folder].shares.size])


def _stripped(history: History, *, grown: bool, stacked: bool) -> History:
    """The returns, and what else is drawn of the run."""
    if not grown:
        history = replace(history, event_steps=_NONE, event_actions=(), event_heads=_NONE)
        history = replace(history, check_steps=_NONE, ranks=_NONE)
    return history if stacked else replace(history, shares=np.zeros((0, 0)))


def _rounded(record: Record, types: Types) -> Record:
    arrays = {name: value for name, value in vars(record).items() if isinstance(value, np.ndarray)}
    kept: dict[str, Any] = {name: value.astype(types[name]).astype(np.float64) for name, value in arrays.items()}
    return replace(record, **kept)
