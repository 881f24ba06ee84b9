"""One run: who holds it, what is written of it, how it ends or goes over."""
