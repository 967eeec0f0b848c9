"""Leakages of people whose behaviour was estimated: of each user, and how sure they are.

`population` computes them for many users, whose matrices `shrinkage` estimates; `uncertainty` draws
the matrices that data allow, and gives intervals.
"""
