"""The fixtures of the recorded data sets' tests serve these tests as well."""

from tests.experiments.datasets.conftest import own_folders, real_data  # noqa: F401
