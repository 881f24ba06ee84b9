def half(v):
    return v // 2
