from tplrepro.eventlog.log import Release as Release
from tplrepro.eventlog.log import releases as releases
from tplrepro.eventlog.quantification import PublishedLoss as PublishedLoss
from tplrepro.eventlog.quantification import quantify_releases as quantify_releases
from tplrepro.eventlog.transition_system import TransitionSystem as TransitionSystem
from tplrepro.eventlog.transition_system import loss_matrix as loss_matrix
from tplrepro.eventlog.transition_system import release_step as release_step
