"""What one given mechanism, or one series of outputs, leaks exactly: never more than the upper
bounds."""
