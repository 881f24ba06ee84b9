"""Keyed records in transactions: what keeps them, and what refuses them."""

from nbckpt.store.database import translated
from nbckpt.store.embedded import Store
from nbckpt.store.writer import META, Transaction

__all__ = ["META", "Store", "Transaction", "translated"]
