from tplfrontier.pairs import tree_simplex
from tplreport.compilation import compile_kernels
from tplreport.learning import worst_shares
from tplreport.reporting import evidence


def test_kernels_of_all_packages_are_compiled_before_a_notebook_may_say_that_it_waits():
    compile_kernels()
    for kernel in (
        tree_simplex.largest_ratios,
        worst_shares.largest_ratio,
        evidence.count_in_table,
    ):
        assert kernel.compiled.signatures
