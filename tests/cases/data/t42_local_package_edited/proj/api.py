from proj.low import base


def top(v):
    return base(v) + 1
