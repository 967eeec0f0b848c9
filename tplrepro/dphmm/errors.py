"""Errors with a name: what the caller may want to catch and handle."""

__all__ = ["ImpossibleReleaseError", "NoPrivacyError"]


class NoPrivacyError(ValueError):
    """Only one state is left, or no two states are connected: nothing can hide the true state (section 11.6 of [5])."""


class ImpossibleReleaseError(ValueError):
    """A released value has density zero under every possible state, so that Eq. (2) of [5] divides by zero."""
