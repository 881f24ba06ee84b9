TABLE = {}
LEVEL = 1


def add(k, v):
    TABLE[k] = v
