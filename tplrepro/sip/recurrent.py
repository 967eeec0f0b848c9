"""Re-identification by a recurrent network, as the paper does it (Fig. 8 of [3]); needs PyTorch, an optional extra.

An embedding, a gated recurrent unit and a linear layer give the probability of each user at the end of a
sequence; trained by Adam on windows of the training half. [3] gives neither architecture nor training; these
are small and conventional.

References
----------
[3] B. Jiang, M. Li, R. Tandon, "Online Context-Aware Data Release with Sequence Information Privacy", 2023.
"""

from __future__ import annotations

import numpy as np

from tplrepro.validation import check_horizon

__all__ = ["RecurrentClassifier"]


def _torch():
    try:
        import torch
    except ImportError:
        raise ImportError(
            "the recurrent classifier needs PyTorch, which is not installed; pip install 'tplrepro[torch]', or use "
            "MarkovClassifier"
        ) from None
    return torch


class RecurrentClassifier:
    """A gated recurrent unit that names the user of a sequence.

    Parameters
    ----------
    n_symbols : int
    window : int, symbols a training example holds
    width : int, size of embedding and state
    epochs : int
    seed : int
    """

    def __init__(self, n_symbols: int, window: int = 50, width: int = 32, epochs: int = 30, seed: int = 0):
        self.torch = _torch()
        self.n_symbols, self.window = check_horizon(n_symbols, "n_symbols"), check_horizon(window, "window")
        self.width, self.epochs, self.seed = width, epochs, seed
        self.users: list = []

    def fit(self, sequences: dict) -> RecurrentClassifier:
        """Train on a dict user -> list of sequences; returns itself."""
        torch = self.torch
        self.users = list(sequences)
        if len(self.users) < 2:
            raise ValueError(f"identification needs at least two users, found {len(self.users)}; give more")
        examples, labels = [], []
        for i, user in enumerate(self.users):
            for sequence in sequences[user]:
                symbols = np.asarray(sequence, dtype=np.int64)
                for start in range(0, symbols.size - self.window + 1, max(1, self.window // 2)):
                    examples.append(symbols[start : start + self.window])
                    labels.append(i)
        if not examples:
            raise ValueError(f"no sequence holds a window of {self.window} symbols; shorten window=")
        generator = torch.Generator().manual_seed(self.seed)
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            self.layers = torch.nn.ModuleDict(
                {
                    "embed": torch.nn.Embedding(self.n_symbols, self.width),
                    "recur": torch.nn.GRU(self.width, self.width, batch_first=True),
                    "name": torch.nn.Linear(self.width, len(self.users)),
                }
            )
            inputs, targets = torch.tensor(np.array(examples)), torch.tensor(labels)
            optimizer = torch.optim.Adam(self.layers.parameters(), lr=5e-3)
            for _ in range(self.epochs):
                for part in torch.randperm(len(inputs), generator=generator).split(64):
                    optimizer.zero_grad()
                    loss = torch.nn.functional.cross_entropy(self._scores(inputs[part]), targets[part])
                    loss.backward()
                    optimizer.step()
        return self

    def _scores(self, inputs):
        _, state = self.layers["recur"](self.layers["embed"](inputs))
        return self.layers["name"](state[-1])

    def predict(self, sequence):
        """The most probable user of a sequence."""
        if not self.users:
            raise ValueError("the classifier has not been fitted, found no users; call fit first")
        with self.torch.no_grad():
            scores = self._scores(self.torch.tensor(np.asarray(sequence, dtype=np.int64))[None])
        return self.users[int(scores.argmax())]
