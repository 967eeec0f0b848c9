"""What people have in files: tables of observations, event logs, matrices and columns of numbers.

`observations` makes sequences of states of a table; `table` opens the formats, `text_files` reads
lines in blocks and counts known defects, `rows_by_user` gathers rows that may not fit in memory,
`times` reads time stamps and `time_steps` cuts them into steps. `grid` makes cells of positions.
`event_logs` reads XES and CSV logs, `matrices` matrices and budgets as they are typed. `sizes`
refuses files that hold too much.
"""
