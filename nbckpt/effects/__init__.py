"""External effects: intent before the call, outcome after it."""
