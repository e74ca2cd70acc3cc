"""How much the integration step matters: baseline RMSE against the number of substeps in a control interval.

Run with ``python benchmarks/substeps.py``.
"""

import incrt
from incrt.controllers.evaluation import delta_pct


def main() -> None:
    """Print one line a regime: RMSE with the default substeps, and the change with others."""
    counts = (1, 2, 4, 8, 32)
    default = incrt.TaskConfig().substeps
    print(f"tau_z   RMSE with {default} substeps   change with " + ", ".join(map(str, counts)))
    for tau_z in (1.0, 2.0, 5.0):
        found = {}
        for substeps in counts:
            config = incrt.TaskConfig(tau_z=tau_z, substeps=substeps)
            found[substeps] = incrt.evaluate(config, incrt.reference_controller("baseline", config))[0].rmse
        changes = "  ".join(f"{delta_pct(found[count], found[default]):+.4f} %" for count in counts)
        print(f"{tau_z:5.0f} {found[default]:17.5f} rad   {changes}")


if __name__ == "__main__":
    main()
