"""Targets and drafts, one file a kind."""
