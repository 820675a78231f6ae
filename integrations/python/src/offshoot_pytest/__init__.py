"""Databases from an Offshoot engine, for Python programs and tests."""

from .engine import Engine, OffshootError, Vdb

__all__ = ["Engine", "OffshootError", "Vdb"]
