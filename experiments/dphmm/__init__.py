"""The evaluation of [5]: mobility, errors, its running example and how graphs are drawn."""
