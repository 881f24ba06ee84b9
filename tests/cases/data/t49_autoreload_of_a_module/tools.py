def f(v):
    return v + 1
