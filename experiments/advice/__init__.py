"""Do the plans that reports recommend keep their promise against an adversary who knows the truth?

Simulated data sets whose truth is known (`truths`, `kinds`) are recorded as tables, read as
`tr.read_sequences` offers (`recordings`) and judged (`judging`, `outcomes`).
"""
