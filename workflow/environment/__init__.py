"""The pinned environment: its lock files, and whether an environment is this folder's."""
