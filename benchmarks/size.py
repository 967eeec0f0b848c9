"""Lines by room, of all kinds and of code, and whether they keep to the budget in benchmarks/size.yaml.

Lines of code are neither blank nor comment nor docstring.
"""

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("tplrepro", "tplfrontier", "tplreport", "experiments", "page", "workflow", "benchmarks", "tests")
OTHERS = {"JavaScript and CSS": (".js", ".css"), "YAML": (".yaml", ".yml")}
LONG = 110
LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def code_lines(source: str) -> int:
    """The number of lines that hold a token of code."""
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in LAYOUT:
            code.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if documented and ast.get_docstring(node, clean=False) is not None:
            code.difference_update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(code)


def measure(root: Path = ROOT) -> tuple[Counter, Counter, Counter, Counter]:
    """Lines, lines of code and long lines by room and by folder; lines of other languages by name."""
    lines: Counter = Counter()
    code: Counter = Counter()
    long: Counter = Counter()
    for folder in FOLDERS:
        for path in sorted((*(root / folder).rglob("*.py"), *(root / folder).rglob("*.pyi"))):
            parts = path.relative_to(root).parts
            source = path.read_text(encoding="utf-8")
            rooms = [folder] if len(parts) == 2 else ["/".join(parts[:2]), folder]
            for room in rooms:
                lines[room] += len(source.splitlines())
                code[room] += code_lines(source)
                long[room] += sum(len(line) > LONG for line in source.splitlines())
    others: Counter = Counter()
    for name, suffixes in OTHERS.items():
        for folder in (*FOLDERS, "config", "docs"):
            paths = (path for path in (root / folder).rglob("*") if path.suffix in suffixes)
            others[name] += sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)
    return lines, code, long, others


def excesses(budget: dict, lines: Counter, long: Counter) -> list[str]:
    """One sentence for each number of the budget that is exceeded."""
    found = [
        (f"lines of {' + '.join(row['of'])}", sum(lines[part] for part in row["of"]), row["lines"])
        for row in budget["lines"]
    ]
    share = 100 * sum(long[folder] for folder in FOLDERS) / sum(lines[folder] for folder in FOLDERS)
    found.append((f"percentage of lines above {LONG} characters", round(share, 2), budget["long_percent"]))
    remedy = "say things once, or raise the budget in benchmarks/size.yaml and give the reason in the commit"
    return [f"{name} must be at most {limit}, found {value}; {remedy}" for name, value, limit in found if value > limit]


def main() -> int:
    """Print the table, a row for each room and each folder; 1 if the budget is exceeded."""
    lines, code, long, others = measure()
    print(f"{'room':<28}{'lines':>8}{'code':>8}{'long':>8}")
    for room in sorted(lines):
        print(f"{room:<28}{lines[room]:>8}{code[room]:>8}{long[room] / lines[room]:>8.1%}")
    for name, count in others.items():
        print(f"{name:<28}{count:>8}")
    budget = yaml.safe_load((ROOT / "benchmarks" / "size.yaml").read_text(encoding="utf-8"))
    problems = excesses(budget, lines, long)
    print(*problems, sep="\n", end="\n" * bool(problems), file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
