"""The experiments of [3]: their settings, and attackers that identify an activity."""
