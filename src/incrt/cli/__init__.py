"""The command line: tables on stdout, progress and errors on stderr."""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any

import tyro

from incrt import __version__
from incrt.cli.baselines import Baselines
from incrt.cli.bench import Bench
from incrt.cli.capacity import CapacityCommand
from incrt.cli.evaluate import Evaluate
from incrt.cli.phase1 import Phase1
from incrt.cli.report import Report
from incrt.cli.settings import Settings
from incrt.cli.study import StudyCommand
from incrt.cli.terminal import log
from incrt.cli.train import Train

_INTERRUPTED = 130
_COMMANDS: dict[str, Callable[..., Any]] = {
    "train": Train,
    "evaluate": Evaluate,
    "baselines": Baselines,
    "phase1": Phase1,
    "study": StudyCommand,
    "capacity": CapacityCommand,
    "report": Report,
    "bench": Bench,
    "settings": Settings,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command; bad input ends with one line that says what is wrong."""
    if list(sys.argv[1:] if arguments is None else arguments) == ["--version"]:
        sys.stdout.write(f"incrt {__version__}\n")
        return
    _refuse_repeated(sys.argv[1:] if arguments is None else arguments)
    command = tyro.extras.subcommand_cli_from_dict(
        _COMMANDS,
        prog="incrt",
        description="Reinforcement-learned control with attention that grows while it learns; see also --version.",
        args=arguments,
    )
    try:
        command.run()
    except (ValueError, OSError) as error:  # a full disk, for example
        log.print(f"incrt: {error}", markup=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a third would meet threads of the device on their way out
        log.print("incrt: interrupted; what was saved so far is kept")
        sys.exit(_INTERRUPTED)


def _refuse_repeated(arguments: Sequence[str]) -> None:
    """Of an option that is given twice the parser takes the last, and the values of the first would be lost unseen."""
    names = (each.partition("=")[0].replace("_", "-") for each in arguments if each.startswith("--"))
    options = [name.replace("--no-", "--") for name in names]
    if repeated := sorted({option for option in options if options.count(option) > 1}):
        words = f"{', '.join(repeated)} is given twice; an option that takes several values is followed by all of them"
        log.print(f"incrt: {words}", markup=False, soft_wrap=True)
        sys.exit(2)


def program() -> None:
    """``incrt`` as a process of its own."""
    try:
        main()
    except SystemExit as end:
        if end.code == _INTERRUPTED:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(_INTERRUPTED)  # threads that compile for a device would fault while the interpreter goes down
        raise
