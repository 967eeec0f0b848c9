"""Call one function of a section in this process, and print what it returns as JSON."""

import contextlib
import importlib
import json
import sys


def main(name: str, arguments: str) -> None:
    """`name` is "module:function", `arguments` a list as JSON."""
    module, _, function = name.partition(":")
    with contextlib.redirect_stdout(sys.stderr):
        result = getattr(importlib.import_module(module), function)(*json.loads(arguments))
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
