def base(v):
    return v * 2
