import pytest

from tplrepro.explore import sources


@pytest.fixture
def no_real_data(monkeypatch, tmp_path):
    """Neither real data nor downloads: stand-ins."""
    monkeypatch.delenv("TPLREPRO_DATA", raising=False)
    monkeypatch.setenv("TPLREPRO_CACHE", str(tmp_path))
    sources.dataset.cache_clear()
    yield
    sources.dataset.cache_clear()
