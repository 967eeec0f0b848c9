"""Noisy counts that are handed out once: noise, the publisher, and what its file knows.

`counts` adds the noise. `publisher` is what users call; `settings` checks how it was made, `clock`
names its times. `store` is the content of its file, `mark` and `marked_file` tell the file from its
copies.
"""
