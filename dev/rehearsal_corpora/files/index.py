"""The handler of a function of the corpora."""


def handler(_event: object, _context: object) -> dict[str, str]:
    return {}
