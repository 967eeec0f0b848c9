"""A chain that is learned from private data with a budget, and what it promises.

`learn` is what users call. `first_steps` counts at most so many steps of each user, `noisy_counts`
adds noise to all counts, `floor` draws one number instead; `model` is the result and its file.
"""
