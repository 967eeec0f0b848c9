"""Lines by room: all of them, and those of code, which are neither blank nor comment nor docstring."""

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

__all__ = ["code_lines", "main"]

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("tplrepro", "workflow", "benchmarks", "tests")
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


def main():
    """Print the table: a row for each room, and one for each folder."""
    lines, code = Counter(), Counter()
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).parts
            source = path.read_text(encoding="utf-8")
            rooms = [f"{folder} in all"] if len(parts) == 2 else ["/".join(parts[:2]), f"{folder} in all"]
            for room in rooms:
                lines[room] += len(source.splitlines())
                code[room] += code_lines(source)
    print(f"{'room':<28}{'lines':>8}{'code':>8}")
    for room in sorted(lines):
        print(f"{room:<28}{lines[room]:>8}{code[room]:>8}")


if __name__ == "__main__":
    main()
