"""Advice on a user's own data: is the chain believable, which budgets keep the promise, in plain
sentences.

`tr.report` is the one entry; the command ``tplrepro report my.csv`` prints it. The room is not
called ``report`` because a module of that name would hide the function.
"""
