from tplrepro.markov.filtering import ImpossibleOutputError as ImpossibleOutputError
from tplrepro.markov.filtering import forward_backward as forward_backward
from tplrepro.markov.sequences import Sequences as Sequences
from tplrepro.markov.sequences import as_sequences as as_sequences
from tplrepro.markov.sequences import count_transitions as count_transitions
from tplrepro.markov.transition import drop_dead_ends as drop_dead_ends
