"""Privacy profiles over time: the (epsilon, delta) of releases by any mechanism.

`events` reads a release, `privacy_profile` composes releases and takes them through a step of
correlation, `recursion` and `repeated_releases` run Eq. (13) of [1] with profiles, and
`temporal_profile` is the result. `pair_profiles` keeps a profile for each pair of states;
`event_accountant` adds releases one by one; `gaussian` is mu-GDP.
"""
