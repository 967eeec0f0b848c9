"""Mutation run: change one operator, constant or margin of a module at a time; a test must then
fail.

The modules that promises rest on, and the tests that guard them, stand in config/mutation.yaml,
together with the changes that alter no promise, each with its reason. From each module a fixed
number of changes is drawn; a change keeps its place in the draw while the code around it changes.

A process collects the tests of several modules once, runs them once to see which of them reach
which change, and then forks for each change: the fork gets the changed code, and runs the tests
that reach it until one fails. Tools on the package index start Python anew for each change
(cosmic-ray), or leave out decorated functions, constants and defaults (mutmut): a fifth of ours.
"""
