"""The table of `tplreport.reporting.simulated`: in how many simulated data sets plans leaked more
than α, by what the report found and by size.

It is written from the published record of explore/advice whenever that is published, and by
``python -m experiments.advice.simulated_plans``.
"""

import csv
import io
import json
from pathlib import Path

import pandas as pd

from experiments.provenance import repository_folder
from tplreport.files import write_whole
from tplreport.reporting.simulated import FEW_STEPS, FEW_USERS, FINDINGS, TABLE

#: Of the results of the record.
PLANS_BY_FINDING = "plans by finding"
COLUMNS = (
    "finding",
    "many_users",
    "many_steps",
    "plans",
    "above",
    "plans_of_one_chain",
    "above_of_one_chain",
)


def count_plans(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Plans that need a model, and those of them above α, in the `outcomes` of `judge_worlds`.

    Parameters
    ----------
    outcomes : DataFrame

    Returns
    -------
    DataFrame with `COLUMNS`, a row for each finding and size that occurs
    """
    is_plan = ~(outcomes["composed"] | outcomes["withheld"])
    is_plan_of_one_chain = ~outcomes["model_composed"]
    flags = pd.DataFrame(
        {
            "finding": pd.Categorical(outcomes["finding"], FINDINGS),
            "many_users": (outcomes["users"] > FEW_USERS).astype(int),
            "many_steps": (outcomes["steps"] > FEW_STEPS).astype(int),
            "plans": is_plan,
            "above": is_plan & outcomes["is_broken"],
            "plans_of_one_chain": is_plan_of_one_chain,
            "above_of_one_chain": is_plan_of_one_chain
            & (outcomes["model_tpl"] > outcomes["alpha"]),
        }
    )
    groups = ["finding", "many_users", "many_steps"]
    return flags.groupby(groups, observed=True).sum().reset_index()


def rows_of_record(record: dict) -> list[dict]:
    """The rows of the table that a record holds; none if it was made before there was one."""
    return record["results"].get(PLANS_BY_FINDING, [])


def as_csv(rows: list[dict]) -> str:
    """The text of the table."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        numbers = {name: int(row[name]) for name in COLUMNS[1:]}
        writer.writerow({"finding": row["finding"], **numbers})
    return text.getvalue()


def published_table() -> str:
    """The text of the table by the published record."""
    path = repository_folder() / "figures" / "explore" / "advice.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    return as_csv(rows_of_record(record))


def write_table(path: Path = TABLE) -> None:
    """Write the table into the package."""
    write_whole(path, published_table().encode())


if __name__ == "__main__":
    write_table()
