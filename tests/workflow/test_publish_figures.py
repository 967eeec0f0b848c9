import json

from workflow.fingerprint import fingerprint, write_status
from workflow.publish_figures import publish


def save(repository, name, data, suffixes=(".png", ".pdf")):
    for suffix in (*suffixes, ".json"):
        repository.write(f"build/quick/figures/{name}{suffix}", json.dumps({"data": data}))


def test_current_figures_of_real_data_or_none_are_copied_and_what_is_no_longer_saved_goes(repository):
    repository.of("a/one", "a/two")  # a finished batch of two notebooks, without having run it
    for name in ("a/one", "a/two"):
        repository.write(f"build/quick/notebooks/{name}.ipynb", "{}")
        write_status(name, "quick", {"fingerprint": fingerprint(*repository.entry(name))}, repository.root)
    save(repository, "a/removed", "none")
    assert publish("quick", repository.root) == ([], [])
    save(repository, "a/one", "synthetic")
    synthetic = "a/one: computed from synthetic data; set TPLREPRO_DATA and run make figures"
    assert publish("quick", repository.root) == ([], [synthetic])
    folder = repository.write("figures/a/one.csv", "old").parent
    save(repository, "a/one", "none")
    save(repository, "a/two_detail", "real", suffixes=(".csv",))
    assert publish("quick", repository.root) == (["a/one", "a/two_detail"], [])
    published = ["one.json", "one.pdf", "one.png", "two_detail.csv", "two_detail.json"]
    assert sorted(path.name for path in folder.iterdir()) == published
    repository.write("tplrepro/module.py", "answer = 43\n")
    older = "a/one: notebooks/a/one.ipynb is not up to date; run make figures (same TPLREPRO_DATA)"
    assert publish("quick", repository.root)[1][0] == older
