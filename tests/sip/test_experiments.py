import numpy as np
import pytest

from tplrepro import sip

USERS = {"slow": np.array([[0.9, 0.1], [0.1, 0.9]]), "fast": np.array([[0.2, 0.8], [0.8, 0.2]])}


def streams(rng, length, count):
    """`count` sequences of each user, all of which begin with 0."""
    found = {user: [[0] for _ in range(count)] for user in USERS}
    for user, step in USERS.items():
        for x in found[user]:
            while len(x) < length:
                x.append(int(rng.choice(2, p=step[x[-1]])))
    return found


def test_users_are_told_apart_and_noise_hides_them():
    rng = np.random.default_rng(3)
    train, test = streams(rng, 200, 2), streams(rng, 40, 20)
    classifier = sip.MarkovClassifier(2).fit(train)
    assert sip.identification_rate(classifier, test) > 0.95
    hidden = {user: rng.integers(0, 2, (20, 40)) for user in test}
    assert sip.identification_rate(classifier, hidden) < 0.8


def test_likelihood_of_outputs_is_the_sum_over_hidden_sequences():
    classifier = sip.MarkovClassifier(2).fit(streams(np.random.default_rng(4), 50, 1))
    channel = sip.RandomizedResponse(0.7).matrix([0.5, 0.5])
    outputs = [0, 1, 1]
    told = channel[:, outputs].T
    found = classifier.log_likelihood(outputs, told)
    for i in range(2):
        joint = sip.markov_sequences(classifier.initial[i], classifier.steps[i], 3)
        expected = sum(joint[x] * np.prod([channel[x[k], outputs[k]] for k in range(3)]) for x in np.ndindex(2, 2, 2))
        assert found[i] == pytest.approx(np.log(expected), rel=1e-12)
    # The same as statements about the previous symbol, too; and without noise.
    pairs = [told[0], *(np.tile(row, (2, 1)) for row in told[1:])]
    assert classifier.log_likelihood(outputs, pairs) == pytest.approx(found, rel=1e-12)
    assert classifier.predict(outputs, told) in USERS
    long = [0, 1] * 2000
    exact = classifier.log_likelihood(long)
    assert exact.min() < -1000  # so the likelihood itself would underflow
    assert classifier.log_likelihood(long, np.eye(2)[long]) == pytest.approx(exact, rel=1e-12)
