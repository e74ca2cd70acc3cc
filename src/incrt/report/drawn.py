"""What charts draw of all that runs left on their way, and how exactly.

It is far less than there is, and the archive of a report keeps no more. The rest is left out before anything is drawn,
so that a report shows the same whether it is made from the runs or from an archive.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from incrt.report.archive import EPISODE_TYPES, HISTORY_TYPES, Record
from incrt.report.data import Dataset, History
from incrt.report.selection import AS_TRAINED, SOUND, Runs, representative

_NONE = np.zeros(0)


def only_drawn(dataset: Dataset) -> Dataset:
    """The dataset without what no chart draws; done twice it is the same."""
    learning = set(dataset.runs.filter(SOUND, AS_TRAINED)["folder"])
    grown, stacked, shown = set[str](), set[str](), set[str]()
    for preset in dataset.presets:
        runs = Runs(dataset, preset)
        shown |= {run["folder"] for run in runs.shown_in_episodes()}
        place = runs.growing()
        for tau_z in runs.regimes(place[0]) if place else ():
            regime = runs.sound(*place, tau_z) if place else runs.rows
            grown |= set(regime["folder"])
            if run := representative(runs.with_history(regime, shares=True)):
                stacked.add(run["folder"])
    histories = {
        folder: _rounded(_stripped(history, grown=folder in grown, stacked=folder in stacked), HISTORY_TYPES)
        for folder, history in dataset.histories.items()
        if folder in learning
    }
    episodes = {name: _rounded(each, EPISODE_TYPES) for name, each in dataset.episodes.items() if name in shown}
    return replace(dataset, histories=histories, episodes=episodes)


def _stripped(history: History, *, grown: bool, stacked: bool) -> History:
    """The returns, and what else is drawn of the run."""
    if not grown:
        history = replace(history, event_steps=_NONE, event_actions=(), event_heads=_NONE)
        history = replace(history, check_steps=_NONE, ranks=_NONE)
    return history if stacked else replace(history, shares=np.zeros((0, 0)))


def _rounded(record: Record, types: Mapping[str, npt.DTypeLike]) -> Record:
    arrays = {name: value for name, value in vars(record).items() if isinstance(value, np.ndarray)}
    kept: dict[str, Any] = {name: value.astype(types[name]).astype(np.float64) for name, value in arrays.items()}
    return replace(record, **kept)
