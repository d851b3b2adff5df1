def amp_definitely_not_available() -> bool:
    return False
