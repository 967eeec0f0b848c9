"""The fixtures of the readers' tests."""

from tests.datasets.conftest import own_folders, real_data  # noqa: F401
