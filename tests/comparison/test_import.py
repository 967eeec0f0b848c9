import re
from pathlib import Path

import tplrepro
from tplrepro import comparison


def test_every_public_name_resolves():
    assert all(getattr(comparison, name) for name in comparison.__all__)


def test_nothing_in_the_package_is_built_on_the_comparison():
    package = Path(tplrepro.__file__).parent
    users = [
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if re.search(r"(from|import) tplrepro\.comparison", path.read_text(encoding="utf-8"))
    ]
    assert users
    assert all(name.startswith("comparison/") for name in users)
