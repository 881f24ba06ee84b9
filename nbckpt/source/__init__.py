"""What is told of code from its source alone."""
