"""The console command ``tplrepro report my.csv --user who --alpha 1 --horizon 30``.

Exit status: 0, 2 for arguments or data that cannot be used, 3 where the recommendation is withheld.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tplreport.files import write_whole

USED, WRONG, WITHHELD = 0, 2, 3
#: Options that go to the reader of files, and to `tr.report` beside --alpha and --horizon, with their types.
COLUMNS: dict[str, type] = dict.fromkeys(("user", "time", "state", "latitude", "longitude", "cell_km", "step"), str)
COLUMNS |= dict.fromkeys(("max_gap", "time_format", "time_unit", "same_time", "until", "bins", "binning"), str)
COLUMNS |= dict.fromkeys(("order", "missing", "box"), str)
COLUMNS |= {"cell_km": float, "bins": int}
NUMBERS: dict[str, type] = {"draws": int, "against": str}
NUMBERS |= dict.fromkeys(("epsilon", "delta", "sensitivity", "smoothing", "confidence", "count"), float)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, by default those of the process; returns the exit status."""
    parser = argparse.ArgumentParser(prog="tplrepro", allow_abbrev=False)
    command = parser.add_subparsers(dest="command", required=True).add_parser(
        "report", help="which budgets keep a promise about the people in a file", allow_abbrev=False
    )
    command.add_argument("file", help="observations: who was in which state at which time")
    command.add_argument("--alpha", type=float, required=True, help="level that every time point keeps, in nats")
    command.add_argument("--horizon", type=int, required=True, help="number of releases T")
    for name, kind in {**COLUMNS, **NUMBERS}.items():
        command.add_argument(f"--{name.replace('_', '-')}", type=kind)
    command.add_argument("--anyway", action="store_true", help="recommend a plan though a check refuses the model")
    command.add_argument("--json", action="store_true", help="print JSON in place of text")
    command.add_argument("--html", help="write the report as a page to this file")
    command.add_argument("--budgets", help="write the budgets of every plan to this CSV file")
    options = vars(parser.parse_args(arguments))
    try:
        return _report(options)
    except (ValueError, OSError, ModuleNotFoundError) as error:
        print(f"tplrepro report: {error}", file=sys.stderr)
        return WRONG


def read_observations(source: Any, **options: Any) -> Any:
    """`tr.read_sequences`; ModuleNotFoundError names the extra."""
    from tplrepro.lazy import extra

    with extra():
        from tplreport import read_sequences

        return read_sequences(source, **options)


def _report(options: dict) -> int:
    """Print and write what the options ask for."""
    from tplrepro.lazy import extra

    with extra():
        from tplreport.reporting.report import report

    columns, numbers = (
        {name: options[name] for name in names if options[name] is not None} for names in (COLUMNS, NUMBERS)
    )
    sequences = read_observations(options["file"], **columns, progress=True)
    numbers |= {name: options[name] for name in ("alpha", "horizon", "anyway")}
    result = report(sequences, title=Path(options["file"]).name, progress=True, **numbers)
    print(json.dumps(result.to_dict(), ensure_ascii=False, indent=2) if options["json"] else result)
    if options["html"]:
        write_whole(Path(options["html"]), result.to_html().encode())
    if options["budgets"]:
        write_whole(Path(options["budgets"]), result.budgets.to_csv(index=False).encode())
    return WITHHELD if result.withheld else USED


if __name__ == "__main__":
    sys.exit(main())
