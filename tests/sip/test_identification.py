import numpy as np
import pytest

from tplrepro import sip


def streams(rng, step, length, count):
    found = []
    for _ in range(count):
        x = [0]
        for _ in range(length - 1):
            x.append(int(rng.choice(len(step), p=step[x[-1]])))
        found.append(x)
    return found


USERS = {"slow": np.array([[0.9, 0.1], [0.1, 0.9]]), "fast": np.array([[0.2, 0.8], [0.8, 0.2]])}


def test_users_are_told_apart_and_noise_hides_them():
    rng = np.random.default_rng(3)
    train = {u: streams(rng, step, 200, 2) for u, step in USERS.items()}
    test = {u: streams(rng, step, 40, 20) for u, step in USERS.items()}
    classifier = sip.MarkovClassifier(2).fit(train)
    assert sip.identification_rate(classifier, test) > 0.95
    hidden = {u: [rng.integers(0, 2, 40) for _ in s] for u, s in test.items()}
    assert sip.identification_rate(classifier, hidden) < 0.8


def test_likelihood_of_outputs_is_the_sum_over_hidden_sequences():
    rng = np.random.default_rng(4)
    classifier = sip.MarkovClassifier(2).fit({u: streams(rng, step, 50, 1) for u, step in USERS.items()})
    channel = sip.RandomizedResponse(0.7).matrix([0.5, 0.5])
    outputs = [0, 1, 1]
    found = classifier.log_likelihood(outputs, channel[:, outputs].T)
    for i in range(2):
        joint = sip.markov_sequences(classifier.initial[i], classifier.steps[i], 3)
        expected = sum(joint[x] * np.prod([channel[x[k], outputs[k]] for k in range(3)]) for x in np.ndindex(2, 2, 2))
        assert found[i] == pytest.approx(np.log(expected), rel=1e-12)
    assert classifier.log_likelihood(outputs, np.eye(2)[outputs]) == pytest.approx(classifier.log_likelihood(outputs))
    assert classifier.predict(outputs, channel[:, outputs].T) in USERS


def test_bad_arguments():
    with pytest.raises(ValueError, match="smoothing must be positive"):
        sip.MarkovClassifier(2, smoothing=0)
    with pytest.raises(ValueError, match="identification needs at least two users, found 1"):
        sip.MarkovClassifier(2).fit({"a": [[0, 1]]})
    with pytest.raises(ValueError, match="has not been fitted"):
        sip.MarkovClassifier(2).predict([0])
    classifier = sip.MarkovClassifier(2).fit({"a": [[0, 1]], "b": [[1, 1]]})
    with pytest.raises(ValueError, match="a sequence must hold at least one symbol"):
        classifier.predict([])
    with pytest.raises(ValueError, match="a rate needs at least one sequence, found none"):
        sip.identification_rate(classifier, {"a": []})
