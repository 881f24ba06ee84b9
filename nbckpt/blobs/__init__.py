"""Bulk bytes: pack files, and where their chunks lie."""
